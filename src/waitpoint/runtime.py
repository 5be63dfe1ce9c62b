"""What a running node can reach: its context, store, writer and where it runs.

The engine puts a `Scope` into `current` around each node; `get_runtime()` and the functions of `waitpoint.config` read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

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

    def patch(self, **changes: Any) -> ExecutionInfo:
        """Return an info with other fields."""
        return replace(self, **changes)


@runtime_checkable
class BaseUser(Protocol):
    """Who calls, as a server knows them: attributes, and what else it knows by key."""

    @property
    def identity(self) -> str:
        """Names the user, and nobody else."""

    @property
    def display_name(self) -> str:
        """The user's name for people."""

    @property
    def is_authenticated(self) -> bool:
        """Whether the server made sure of it."""

    @property
    def permissions(self) -> Sequence[str]:
        """What the user may do."""

    def __getitem__(self, key: str) -> Any: ...

    def __contains__(self, key: object) -> bool: ...

    def __iter__(self) -> Iterator[str]: ...


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ServerInfo(Value):
    """What a server tells of itself and of who calls."""

    assistant_id: str
    graph_id: str
    user: BaseUser | None = None


def server_of(configurable: Mapping[str, Any]) -> ServerInfo | None:
    """Return what a server put into the config of a run, None outside of one."""
    assistant, graph = configurable.get("assistant_id"), configurable.get("graph_id")
    user = configurable.get("langgraph_auth_user")
    if not hasattr(user, "identity"):
        user = None
    if assistant is None and graph is None and user is None:
        return None
    return ServerInfo(str(assistant or ""), str(graph or ""), user)


class RunControl:
    """A handle on a run from outside it: ask it to stop at the next step boundary. One for each run."""

    __slots__ = ("_reason",)

    def __init__(self) -> None:
        self._reason: str | None = None  # written once, by any thread

    def request_drain(self, reason: str = "shutdown") -> None:
        """Let the running step finish, then stop; the run can be continued."""
        self._reason = reason

    @property
    def drain_requested(self) -> bool:
        """Whether the run is to stop."""
        return self._reason is not None

    @property
    def drain_reason(self) -> str | None:
        """Why the run is to stop, None if it is not."""
        return self._reason


def _silent(_: Any) -> None:
    """Nobody listens."""


def _unwatched() -> None:
    """Nobody cancels what is silent."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Runtime(Value, Generic[ContextT]):
    """What is injected into a node's `runtime` parameter.

    `heartbeat()` tells the node's `idle_timeout` that work goes on. `control` asks this run to stop at the next step.
    """

    context: ContextT = None  # type: ignore[assignment]
    store: Any = None
    stream_writer: StreamWriter = field(default=_silent)
    heartbeat: Callable[[], None] = field(default=_unwatched)
    previous: Any = None
    execution_info: ExecutionInfo = field(default_factory=ExecutionInfo)
    server_info: ServerInfo | None = None  # None outside of a server
    control: RunControl | None = None

    @property
    def drain_requested(self) -> bool:
        """Whether this run was asked to stop: end soon what may be ended."""
        return self.control is not None and self.control.drain_requested

    @property
    def drain_reason(self) -> str | None:
        """Why this run was asked to stop, None if it was not."""
        return None if self.control is None else self.control.drain_reason

    def override(self, **changes: Any) -> Runtime[ContextT]:
        """Return a runtime with other parts."""
        return replace(self, **changes)

    def patch_execution_info(self, **changes: Any) -> Runtime[ContextT]:
        """Return a runtime whose `execution_info` has other fields."""
        return replace(self, execution_info=self.execution_info.patch(**changes))

    def merge(self, other: Runtime[ContextT]) -> Runtime[ContextT]:
        """Return a runtime with all that the other one has; the rest is from this one."""
        bare: Runtime[Any] = Runtime()
        parts = {name: getattr(other, name) for name in Runtime.__slots__ if name != "execution_info"}
        given = {name: part for name, part in parts.items() if part is not getattr(bare, name)}
        if other.execution_info != bare.execution_info:
            given["execution_info"] = other.execution_info
        return replace(self, **given)


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

    @property
    def alive(self) -> Any:
        """The pulse that what runs here keeps up, if any."""

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
