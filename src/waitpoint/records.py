"""The words of the public API: what a user returns, receives and answers with. Plain values, no behaviour.

Names, fields and defaults follow `langgraph.types`; `Answer`, `Question`, `Happened` and `NotHappened` are ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import FrozenInstanceError, dataclass
from datetime import timedelta
from typing import Any, ClassVar, Final, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

START: Final = sys.intern("__start__")
END: Final = sys.intern("__end__")
INTERRUPT: Final = sys.intern("__interrupt__")
INPUT: Final = sys.intern("__input__")
COPY: Final = sys.intern("__copy__")
TAG_NOSTREAM: Final = sys.intern("nostream")
"""A model with this tag is not heard token by token."""
TAG_HIDDEN: Final = sys.intern("langsmith:hidden")
"""What has this tag is left out of traces."""

ResponseT = TypeVar("ResponseT")
N = TypeVar("N", bound=Hashable)

Durability = Literal["sync", "async", "exit"]
StreamMode = Literal["values", "updates", "custom", "messages", "tasks", "checkpoints", "debug", "tools"]
All = Literal["*"]
OnPending = Literal["refuse", "withdraw"]


class _Missing:
    """Marks an argument that was not given, since None is a value like any other."""

    def __repr__(self) -> str:
        return "<not given>"

    def __reduce__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


class Row:  # noqa: PLW1641 - rows change, so they have no hash
    """Equality and text of a dataclass with slots. One for all: to make them for each class slows every import."""

    __slots__: tuple[str, ...] = ()

    def _fields(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.__slots__])

    def __eq__(self, other: object) -> bool:
        return self._fields() == other._fields() if isinstance(other, type(self)) else NotImplemented

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{n}={getattr(self, n)!r}' for n in self.__slots__)})"


class Value(Row):
    """A row that never changes, and so has a hash."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # What a frozen dataclass with slots is given raises TypeError for names that are no fields, in place of an
        # AttributeError, and `Command[str](...)` tries to set such a name.
        if "__setattr__" in cls.__dict__:
            cls.__setattr__ = Value._refuse  # type: ignore[assignment, method-assign]
            cls.__delattr__ = Value._refuse  # type: ignore[assignment, method-assign]

    def _refuse(self, name: str, _: object = None) -> None:
        raise FrozenInstanceError(f"cannot change {name!r}: a {type(self).__name__} is a value")

    def __hash__(self) -> int:
        return hash(self._fields())


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class Interrupt(Value, Generic[ResponseT]):
    """A question that a node asked: its payload, its id for life, and the JSON Schema of a good answer (or None)."""

    value: Any
    id: str
    response_schema: dict[str, Any] | None

    def __init__(
        self, value: Any, id: str = "placeholder-id", *, response_schema: dict[str, Any] | None = None
    ) -> None:
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "id", id)
        object.__setattr__(self, "response_schema", response_schema)

    @property
    def interrupt_id(self) -> str:
        """The id, by the name that event streams give it."""
        return self.id

    @property
    def payload(self) -> Any:
        """The value, by the name that event streams give it."""
        return self.value


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class Send(Value):
    """Run `node` in the next superstep with `arg` as its input, once for each `Send`."""

    node: str
    arg: Any
    timeout: TimeoutPolicy | None

    def __init__(self, node: str, arg: Any, *, timeout: float | timedelta | TimeoutPolicy | None = None) -> None:
        object.__setattr__(self, "node", str(node.value) if hasattr(node, "value") else node)
        object.__setattr__(self, "arg", arg)
        object.__setattr__(self, "timeout", TimeoutPolicy.coerce(timeout))

    def __hash__(self) -> int:
        return hash(self.node)

    def __repr__(self) -> str:
        return f"Send(node={self.node!r}, arg={self.arg!r})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Command(Value, Generic[N]):
    """Update the state, go somewhere, answer a question, or speak to the parent graph.

    `resume` left out means "no answer"; every value that is given, None and {} too, is an answer. A dict with keys in
    the form of question ids is a map of answers.
    """

    PARENT: ClassVar[Literal["__parent__"]] = "__parent__"

    graph: str | None = None
    update: Any | None = None
    resume: Any = MISSING
    goto: Send | Sequence[Send | N] | N = ()

    @property
    def has_resume(self) -> bool:
        """Whether an answer was given."""
        return self.resume is not MISSING

    def __repr__(self) -> str:
        given = ((k, getattr(self, k)) for k in ("graph", "update", "resume", "goto"))
        return f"Command({', '.join(f'{k}={v!r}' for k, v in given if v is not MISSING and v is not None and v != ())})"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Overwrite(Value):
    """Set a key to `value`, past its reducer; at most one for a key in a superstep."""

    value: Any
    type: Literal["__overwrite__"] = "__overwrite__"


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class Answer(Value):
    """An answer with its circumstances; use it as a `resume` value where author or repetition matter.

    `token` makes repetition harmless: a second answer with the same token and value returns the stored outcome.
    `shown_digest` is the digest of the payload that the answerer saw; if the question's differs, the answer is refused.
    """

    value: Any
    by: str | None = None
    comment: str | None = None
    shown_digest: str | None = None
    token: str | None = None

    def __init__(
        self,
        value: Any,
        *,
        by: str | None = None,
        comment: str | None = None,
        shown_digest: str | None = None,
        token: str | None = None,
    ) -> None:
        for name, v in (("value", value), ("by", by), ("comment", comment), ("shown_digest", shown_digest)):
            object.__setattr__(self, name, v)
        object.__setattr__(self, "token", token)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Happened(Value):
    """A probe's finding: the effect took place, with this result."""

    result: Any = None


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class NotHappened(Value):
    """A probe's finding: the effect did not take place, so it is run."""


def default_retry_on(error: Exception) -> bool:
    """Whether an error looks transient: connection errors and HTTP 5xx are, mistakes in the code are not."""
    if isinstance(error, ConnectionError):
        return True
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(status, int):
        return status >= 500
    mistakes = (
        ValueError, TypeError, ArithmeticError, ImportError, LookupError, NameError, SyntaxError, RuntimeError,
        ReferenceError, StopIteration, StopAsyncIteration, OSError,
    )  # fmt: skip
    return not isinstance(error, mistakes)


class RetryPolicy(NamedTuple):
    """How a failing node is tried again; intervals in seconds. A pause never counts as a failure."""

    initial_interval: float = 0.5
    backoff_factor: float = 2.0
    max_interval: float = 128.0
    max_attempts: int = 3
    jitter: bool = True
    retry_on: type[Exception] | Sequence[type[Exception]] | Callable[[Exception], bool] = default_retry_on


class TimeoutPolicy(NamedTuple):
    """How long each try of an async node or task may take; times in seconds, or as `timedelta`.

    `run_timeout` bounds the whole try, `idle_timeout` the time without progress. Progress is what the body streams, each
    task of a graph or function that it calls, each callback of LangChain's, and `runtime.heartbeat()`; with `refresh_on`
    "heartbeat" that alone.
    """

    run_timeout: float | timedelta | None = None
    idle_timeout: float | timedelta | None = None
    refresh_on: Literal["auto", "heartbeat"] = "auto"

    @classmethod
    def coerce(cls, value: float | timedelta | TimeoutPolicy | None) -> TimeoutPolicy | None:
        """Return a policy in seconds, None if it bounds nothing; a number or `timedelta` bounds the run.

        Raises:
            ValueError: a time is none, or not greater than 0, or `refresh_on` is unknown.
        """
        if value is None:
            return None
        given = value if isinstance(value, TimeoutPolicy) else cls(value)
        if given.refresh_on not in ("auto", "heartbeat"):
            raise ValueError(f"`refresh_on` is {given.refresh_on!r}; it must be 'auto' or 'heartbeat'")
        run, idle = given.seconds()
        return None if run is None and idle is None else cls(run, idle, given.refresh_on)

    def seconds(self) -> tuple[float | None, float | None]:
        """Return both times in seconds."""
        return _seconds(self.run_timeout, "run_timeout"), _seconds(self.idle_timeout, "idle_timeout")


def _seconds(given: Any, name: str) -> float | None:
    if given is None:
        return None
    seconds = given.total_seconds() if isinstance(given, timedelta) else given
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise ValueError(f"{name} is a {type(given).__name__}; give seconds, or a timedelta")  # noqa: TRY004 - its kind
    if not seconds > 0:
        raise ValueError(f"{name} is {seconds:g} s, and must be greater than 0; leave it out for no limit")
    return float(seconds)


class CachePolicy(NamedTuple):
    """How the results of a node or task are cached, where the graph has a cache.

    `key_func` gets the node's input, or the task's arguments, and returns a text or bytes; equal ones share a result.
    Without one all of the input counts. `ttl` is in seconds; None: until the cache is cleared.
    """

    key_func: Callable[..., str | bytes] | None = None
    ttl: float | None = None


class StateUpdate(NamedTuple):
    """One update of `bulk_update_state`: `values` written as if `as_node` had returned them."""

    values: Any
    as_node: str | None = None
    task_id: str | None = None


class CheckpointMetadata(TypedDict, total=False):
    """Where a checkpoint comes from: `source` is "input", "loop", "update" or "fork"; `step` counts from -1."""

    source: Literal["input", "loop", "update", "fork"]
    step: int
    parents: dict[str, str]
    run_id: NotRequired[str]


class PregelTask(NamedTuple):
    """A task of a superstep, as seen from outside."""

    id: str
    name: str
    path: tuple[Any, ...]
    error: Any = None
    interrupts: tuple[Interrupt[Any], ...] = ()
    state: Any = None
    result: Any = None


class StateSnapshot(NamedTuple):
    """A thread at one checkpoint: values, what is due next, and the questions that can be answered."""

    values: Any
    next: tuple[str, ...]
    config: dict[str, Any]
    metadata: CheckpointMetadata | None
    created_at: str | None
    parent_config: dict[str, Any] | None
    tasks: tuple[PregelTask, ...]
    interrupts: tuple[Interrupt[Any], ...]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Question(Value):
    """A question as the store lists it over all threads.

    `status` is "open", "answered" or "withdrawn"; times are UTC seconds. `path` is the chain of node names from the
    root graph to the asking node. `can_answer` is true for open questions, and for an answered one whose node failed on
    the answer before it had any effect. `supersedes` names the question whose answer this one's changed payload left
    unused, and `changed_paths` says where the two payloads differ.
    """

    id: str
    thread_id: str
    graph: str
    ns: str
    node: str
    path: tuple[str, ...]
    value: Any
    digest: str
    response_schema: dict[str, Any] | None
    status: str
    can_answer: bool
    asked_at: float
    settled_at: float | None = None
    by: str | None = None
    comment: str | None = None
    answer: Any = None
    reason: str | None = None
    supersedes: str | None = None
    changed_paths: tuple[str, ...] = ()
    key: str | None = None
