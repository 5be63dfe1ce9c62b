"""The words of the public API, at the path users of LangGraph know."""

from waitpoint.graph.state import Checkpointer
from waitpoint.interrupts import interrupt, step
from waitpoint.records import (
    All,
    Answer,
    CachePolicy,
    CheckpointMetadata,
    Command,
    Durability,
    Happened,
    Interrupt,
    NotHappened,
    OnPending,
    Overwrite,
    PregelTask,
    Question,
    RetryPolicy,
    Send,
    StateSnapshot,
    StateUpdate,
    StreamMode,
    default_retry_on,
)
from waitpoint.runtime import StreamWriter

__all__ = [
    "All",
    "Answer",
    "CachePolicy",
    "CheckpointMetadata",
    "Checkpointer",
    "Command",
    "Durability",
    "Happened",
    "Interrupt",
    "NotHappened",
    "OnPending",
    "Overwrite",
    "PregelTask",
    "Question",
    "RetryPolicy",
    "Send",
    "StateSnapshot",
    "StateUpdate",
    "StreamMode",
    "StreamWriter",
    "default_retry_on",
    "interrupt",
    "step",
]
