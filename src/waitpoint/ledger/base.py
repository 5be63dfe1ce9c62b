"""The port for what a server keeps beside its threads: assistants, runs, the log of what happened in them, and keys.

A thread itself is the saver's; here is what only callers over a network need of it. Documents (`metadata`, `config`, a
run's `request`) are JSON values, so that they can be searched. Times are UTC seconds. Each change is atomic and says
what its writer believed; one that finds something else raises, or returns None, and changes nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from waitpoint.checkpoint.base import ThreadKey, ThreadRow
from waitpoint.errors import ConflictError
from waitpoint.records import Row

RunStatus = Literal["pending", "running", "success", "error", "timeout", "interrupted"]
Strategy = Literal["enqueue", "reject", "interrupt", "rollback"]
CancelAction = Literal["interrupt", "rollback"]
Document = dict[str, Any]

ACTIVE: tuple[RunStatus, ...] = ("pending", "running")


@dataclass(slots=True, repr=False, eq=False)
class AssistantRow(Row):
    """A graph with settings of its own. Each change makes a new version; one of them is in force."""

    id: str
    graph: str  # the name it is served under
    name: str
    description: str | None
    config: Document
    context: Document
    metadata: Document
    version: int
    created_at: float
    updated_at: float


@dataclass(slots=True, repr=False, eq=False)
class ThreadRecord(Row):
    """What a server knows of a thread. `key` is None until a graph has run in it.

    `halted` is the thread's fence when its last run was cancelled or reached a breakpoint: while it still is, the thread
    waits although nothing is asked.
    """

    id: str
    metadata: Document
    created_at: float
    updated_at: float
    key: ThreadKey | None = None
    halted: int | None = None
    ttl: float | None = None  # minutes after its last change
    ttl_strategy: str = "delete"


@dataclass(slots=True, repr=False, eq=False)
class SeenThread(Row):
    """A thread as it is found by a search: the server's record, the saver's row, whether a run is active, its status.

    Status: busy while a run is active or somebody runs it, interrupted while it waits, error, else idle.
    """

    record: ThreadRecord
    row: ThreadRow | None
    is_active: bool
    status: str


@dataclass(slots=True, repr=False, eq=False)
class ThreadFilter(Row):
    """Which threads `threads()` lists. `metadata` is contained in a thread's own, `status` is one of the wire's four."""

    ids: Sequence[str] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    status: str | None = None  # idle, busy, interrupted, error
    order_by: Literal["created_at", "updated_at", "thread_id", "status"] = "updated_at"
    ascending: bool = False
    limit: int | None = None
    offset: int = 0


@dataclass(slots=True, repr=False, eq=False)
class RunRow(Row):
    """One request to run a thread, and what became of it.

    `request` is what was asked; `is_settled` says that its answers are already stored, so that only the thread is to be
    run. `cancel` is what was asked of a run that is to stop. `outcome` names the checkpoint it ended at and its error.
    """

    id: str
    thread_id: str
    graph: str
    assistant_id: str
    status: RunStatus
    request: Document
    metadata: Document
    strategy: Strategy
    created_at: float
    updated_at: float
    due_at: float  # not to be started before
    is_settled: bool = False
    attempt: int = 0
    owner: str | None = None
    lease_until: float | None = None
    cancel: CancelAction | None = None
    outcome: Document = field(default_factory=dict)
    by: str | None = None  # who asked for it
    token: str | None = None  # of its thread, one run has it
    hook_at: float | None = None  # when its webhook is to be tried next, None if there is none or it was told


@dataclass(slots=True, repr=False, eq=False)
class LogEntry(Row):
    """One thing that happened in a thread's runs, as its readers are told. `seq` counts per thread, from 1."""

    thread_id: str
    run_id: str
    kind: str
    ns: str
    at: float
    data: bytes  # JSON
    seq: int = 0


@dataclass(slots=True, repr=False, eq=False)
class KeyRow(Row):
    """An API key; only its hash is kept. `scopes` are among run, answer, read, admin."""

    id: str
    name: str
    hash: str
    scopes: tuple[str, ...]
    created_at: float
    revoked_at: float | None = None


class RunActiveError(ConflictError):
    """The thread has an active run, and the request was not to be queued behind it."""

    code = "run_active"

    def __init__(self, message: str, *, run_ids: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.run_ids = tuple(run_ids)


def run_active(thread_id: str, run_ids: Sequence[str]) -> RunActiveError:
    """Return the error for a request that was to find no active run."""
    return RunActiveError(
        f"Thread '{thread_id}' has an active run ('{run_ids[0]}'), and this one was not to wait for it; join that one, or "
        f"choose another multitask_strategy",
        run_ids=run_ids,
    )


class TokenUsedError(ConflictError):
    """A token came again with another request, or from somebody else; the first request stands. Take a new token."""

    code = "token_used"


class Ledger(ABC):
    """What a ledger does. Safe to call from several threads at once; `blocking` as for savers."""

    blocking: bool = True

    # --- assistants ---

    @abstractmethod
    def add_assistant(self, row: AssistantRow) -> AssistantRow | None:
        """Store a new assistant; return None, or the one in force that already has its id (nothing is stored then)."""

    @abstractmethod
    def change_assistant(self, row: AssistantRow) -> AssistantRow:
        """Store a further version of an assistant and put it in force; return it with its number."""

    @abstractmethod
    def choose_version(self, assistant_id: str, version: int) -> AssistantRow | None:
        """Put a version in force; None if there is no such version."""

    @abstractmethod
    def assistants(
        self, *, ids: Sequence[str] | None = None, metadata: Mapping[str, Any] | None = None
    ) -> list[AssistantRow]:
        """List the versions in force, newest first."""

    @abstractmethod
    def versions(self, assistant_id: str) -> list[AssistantRow]:
        """List all versions of an assistant, newest first."""

    @abstractmethod
    def delete_assistant(self, assistant_id: str) -> bool:
        """Remove an assistant with its versions; whether it was there."""

    # --- threads ---

    @abstractmethod
    def add_thread(self, record: ThreadRecord) -> ThreadRecord | None:
        """Store a new thread; return None, or the one that already has its id (nothing is stored then)."""

    @abstractmethod
    def thread(self, thread_id: str) -> SeenThread | None:
        """Read one thread; threads that only the saver knows are there too."""

    @abstractmethod
    def threads(self, wanted: ThreadFilter) -> list[SeenThread]:
        """List threads."""

    @abstractmethod
    def count_threads(self, wanted: ThreadFilter) -> int:
        """Count what `threads` would list without limit and offset."""

    @abstractmethod
    def change_thread(
        self, thread_id: str, at: float, *, metadata: Mapping[str, Any] | None = None, key: ThreadKey | None = None,
        halted: int | None = -1, ttl: float | None = None, ttl_strategy: str | None = None,
    ) -> ThreadRecord | None:  # fmt: skip
        """Merge metadata into a thread's and set what is not None (`halted`: not -1); None if there is no such thread."""

    @abstractmethod
    def forget_thread(self, thread_id: str) -> bool:
        """Remove a thread's record, runs and log; whether there was any. The saver's rows are the saver's to remove."""

    @abstractmethod
    def expired(self, at: float) -> list[ThreadRecord]:
        """List threads whose time to live is over and in which no run is active or has yet to tell of its end."""

    # --- runs ---

    @abstractmethod
    def add_run(self, run: RunRow, key: ThreadKey) -> RunRow:
        """Store a new run as the last of its thread, which is `key`; that is made if need be. Raises `RunActiveError`.

        By its strategy, active runs of the thread make it fail (reject), or are told to stop (interrupt, rollback). If
        the thread has a run with its token, that one is returned and nothing changes.
        """

    @abstractmethod
    def run(self, run_id: str) -> RunRow | None:
        """Read a run."""

    @abstractmethod
    def run_of_token(self, thread_id: str, token: str) -> RunRow | None:
        """Read the run of a thread that has a token."""

    @abstractmethod
    def runs(
        self, *, thread_id: str | None = None, status: Sequence[RunStatus] | None = None, limit: int | None = None,
        offset: int = 0,
    ) -> list[RunRow]:  # fmt: skip
        """List runs, newest first."""

    @abstractmethod
    def count_runs(self, *, thread_id: str | None = None, status: Sequence[RunStatus] | None = None) -> int:
        """Count what `runs` would list without limit and offset."""

    @abstractmethod
    def claim_run(self, owner: str, lease_until: float, at: float, graphs: Sequence[str]) -> RunRow | None:
        """Take the oldest due run of a thread in which none is running, make it running under `owner`, and return it."""

    @abstractmethod
    def end_run(self, run_id: str, owner: str, status: RunStatus, outcome: Document, last: LogEntry) -> bool:
        """Give a run that `owner` runs its last status, and its log the last entry, whose time it takes.

        Returns False, and changes nothing, if that owner runs it no more.
        """

    @abstractmethod
    def give_back_run(self, run_id: str, owner: str, at: float) -> bool:
        """Make a run pending again that `owner` runs, so that another process goes on with it."""

    @abstractmethod
    def cancel_run(self, run_id: str, action: CancelAction, at: float) -> RunRow | None:
        """Tell a run to stop; a pending one ends at once, or is gone (rollback). Returns it as it is now."""

    @abstractmethod
    def delete_run(self, run_id: str) -> bool:
        """Remove an ended run and its log; False if there is none or it is active."""

    @abstractmethod
    def beat(self, owner: str, lease_until: float) -> None:
        """Extend the lease of all runs that `owner` runs."""

    @abstractmethod
    def running(self) -> list[RunRow]:
        """List all runs that somebody runs: which of these are dead is the caller's to find out."""

    @abstractmethod
    def next_due(self, after: float) -> float | None:
        """When the next run falls due that is not due yet at `after`; None if there is none."""

    # --- webhooks ---

    @abstractmethod
    def due_hooks(self, at: float, limit: int = 100) -> list[RunRow]:
        """List ended runs whose webhook is to be tried by now, longest due first."""

    @abstractmethod
    def change_hook(self, run: RunRow, hook_at: float | None, told: Document | None = None) -> bool:
        """Set when a run's webhook is tried next, and what came of it so far; False if it is not due as `run` has it."""

    # --- the log ---

    @abstractmethod
    def append(self, entries: Sequence[LogEntry]) -> list[LogEntry]:
        """Add entries to the logs of their threads, in order; return them with their numbers."""

    @abstractmethod
    def log(
        self, thread_id: str, *, after: int = 0, run_id: str | None = None, limit: int | None = None
    ) -> list[LogEntry]:
        """Read a thread's log in order, from the entry after number `after`."""

    @abstractmethod
    def last_entry(self, run_id: str, kind: str) -> LogEntry | None:
        """Return a run's newest entry of a kind that its outermost graph made."""

    @abstractmethod
    def last_seq(self, thread_id: str) -> int:
        """Return the number of a thread's last entry, 0 if it has none; it never falls."""

    @abstractmethod
    def touched(self, after: int) -> tuple[int, list[str]]:
        """Return how far the log of all threads goes, and the threads with entries after the position `after`."""

    @abstractmethod
    def prune_log(self, before: float, kinds: Sequence[str], limit: int = 100) -> int:
        """Remove entries of these kinds of the oldest runs that ended before a time, and note it in their outcome.

        Returns how many runs these were, at most `limit`.
        """

    # --- keys ---

    @abstractmethod
    def add_key(self, row: KeyRow) -> None:
        """Store a key."""

    @abstractmethod
    def api_keys(self) -> list[KeyRow]:
        """List all keys, oldest first."""

    @abstractmethod
    def revoke_key(self, key_id: str, at: float) -> bool:
        """Revoke a key; whether it was valid."""

    def close(self) -> None:  # noqa: B027 - not every ledger holds something
        """Release what the ledger holds."""
