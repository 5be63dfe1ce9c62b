"""What a running node can reach: its context, store, writer and where it runs.

The engine puts a `Scope` into `current` around each node; `get_runtime()` and the functions of `waitpoint.config` read it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from waitpoint.errors import OutsideGraphError
from waitpoint.records import Value

ContextT = TypeVar("ContextT")
StreamWriter = Callable[[Any], None]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ExecutionInfo(Value):
    """Where a node runs. `node_attempt` counts from 1; `node_first_attempt_time` is UTC seconds."""

    thread_id: str | None = None
    run_id: str | None = None
    checkpoint_id: str | None = None
    checkpoint_ns: str = ""
    task_id: str | None = None
    node_attempt: int = 1
    node_first_attempt_time: float | None = None


class RunControl:
    """A handle on a run from outside it: ask it to stop at the next step boundary."""

    def __init__(self) -> None:
        self.drain_reason: str | None = None

    def request_drain(self, reason: str = "shutdown") -> None:
        """Let the running step finish, then stop; the run can be continued."""
        self.drain_reason = reason


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Runtime(Value, Generic[ContextT]):
    """What is injected into a node's `runtime` parameter."""

    context: ContextT = None  # type: ignore[assignment]
    store: Any = None
    stream_writer: StreamWriter = field(default=lambda _: None)
    previous: Any = None
    execution_info: ExecutionInfo = field(default_factory=ExecutionInfo)
    control: RunControl | None = None
    server_info: Any = None  # what a server tells of itself; None outside of one


class Scope(Protocol):
    """The engine's view of a running task; each part is made when first asked for."""

    journal: Any
    run: Any

    @property
    def values(self) -> dict[str, Any]:
        """The state at the start of this superstep."""

    @property
    def specs(self) -> tuple[Any, ...]:
        """The graphs that this task runs in, innermost first."""

    @property
    def config(self) -> dict[str, Any]:
        """The node's own config."""

    @property
    def runtime(self) -> Runtime[Any]:
        """The node's runtime."""

    @property
    def writer(self) -> StreamWriter:
        """Emits in stream mode `custom`."""

    def show(self, mode: str, payload: Any) -> None:
        """Show a part of the run in this stream mode, if it was asked for."""

    def push(self, message: Any, key: str | None) -> None:
        """Show a message in stream mode `messages`, and write it to `key` with what the node returns."""


current: ContextVar[Scope | None] = ContextVar("waitpoint_scope", default=None)
attempt: ContextVar[Any] = ContextVar("waitpoint_attempt", default=None)
"""The journal of the attempt to which the running code belongs; a retry begins another one in the same scope."""


class Strand:
    """A recorded task that runs beside others in one attempt: its questions, pauses and further tasks are its own.

    `path` names it on every run of the attempt's body: by the strand it was called in, function, arguments, occurrence.
    """

    __slots__ = ("crew", "path", "pauses", "reached")

    def __init__(self, path: str) -> None:
        self.path = path
        self.pauses: list[str] = []  # where its body was told to pause
        self.reached: list[Any] = []  # questions that its body came to
        self.crew: Any = None  # the tasks that its body started


class Inside:
    """The recorded effect whose body runs here: graphs that it calls are counted in it, since it may not run again.

    `name` is its own in its task, `lasting` the one that it has in all runs of its node.
    """

    __slots__ = ("calls", "journal", "lasting", "name", "strand")

    def __init__(self, journal: Any, name: str, strand: Strand | None = None, lasting: str = "") -> None:
        self.journal = journal
        self.name = name
        self.lasting = lasting or name
        self.calls = 0
        self.strand = strand


inside: ContextVar[Inside | None] = ContextVar("waitpoint_inside", default=None)


def strand_of(journal: Any) -> Strand | None:
    """Return the strand of this attempt that runs here, None for the body itself."""
    found = inside.get()
    return found.strand if found is not None and found.journal is journal else None


def enter(scope: Scope) -> None:
    """Make a task's scope and its present attempt those of the code that runs here."""
    current.set(scope)
    attempt.set(scope.journal)


def scope(what: str) -> Scope:
    """Return the scope of the node that runs here, for `what`. Raises `OutsideGraphError` outside of one."""
    found = current.get()
    if found is None:
        raise OutsideGraphError(
            f"Called {what} outside of a graph: it works inside a node, tool or task that a graph runs; on your own "
            f"threads run the call in a copy of the node's context (contextvars.copy_context)"
        )
    return found


def get_runtime(context_schema: type[ContextT] | None = None) -> Runtime[ContextT]:  # noqa: ARG001 - it types the result
    """Return the runtime of the node that runs here."""
    return scope("get_runtime()").runtime
