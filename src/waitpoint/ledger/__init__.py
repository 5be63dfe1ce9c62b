"""What a server keeps beside its threads: the port."""

from waitpoint.ledger.base import (
    ACTIVE,
    AssistantRow,
    KeyRow,
    Ledger,
    LogEntry,
    RunActiveError,
    RunRow,
    SeenThread,
    ThreadFilter,
    ThreadRecord,
    TokenUsedError,
    run_active,
)

__all__ = [
    "ACTIVE",
    "AssistantRow",
    "KeyRow",
    "Ledger",
    "LogEntry",
    "RunActiveError",
    "RunRow",
    "SeenThread",
    "ThreadFilter",
    "ThreadRecord",
    "TokenUsedError",
    "run_active",
]
