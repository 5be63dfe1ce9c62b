"""What the loop asks of its driver, and what it is told. The loop knows no threads, no event loop and no store calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any, ClassVar

from waitpoint.engine.scope import TaskScope
from waitpoint.engine.tasks import Outcome, Task


@dataclass(slots=True, eq=False, repr=False)
class Store:
    """Call the store; the reply is its result, or its exception is raised in the loop."""

    call: Callable[..., Any]
    args: tuple[Any, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class Start:
    """Start a task; its end comes as a reply to some `Next`."""

    task: Task
    scope: TaskScope
    calls: Generator[Any, Any, Outcome]


@dataclass(slots=True, eq=False, repr=False)
class Next:
    """Wait for a started task to end; the reply is (task, outcome). Raises `StepTimeoutError` after `timeout` seconds."""

    timeout: float | None = None


@dataclass(slots=True, eq=False, repr=False)
class Cancel:
    """Cancel started coroutines. The reply is how many started tasks will still end by a reply.

    Threads cannot be cancelled: they are waited for, unless `abandon`.
    """

    abandon: bool


@dataclass(slots=True, eq=False, repr=False)
class Emit:
    """Hand a part to whoever consumes the run."""

    ns: tuple[str, ...]
    mode: str
    payload: Any


@dataclass(slots=True, eq=False, repr=False)
class Sleep:
    """Wait some seconds, holding nothing."""

    seconds: float


@dataclass(slots=True, eq=False, repr=False)
class Tell:
    """Call something of the user's with an event; what is awaitable is awaited."""

    call: Callable[[Any], Any]
    event: Any


@dataclass(slots=True, eq=False, repr=False)
class Moment:
    """Make one of two calls that do the same, in this thread or from the event loop. A task may ask for it too."""

    blocking: Callable[[], Any]
    awaiting: Callable[[], Awaitable[Any]]
    crew: ClassVar[Any] = None


TOO_LONG = "The step took longer than the graph's `step_timeout`; raise that, or continue the thread to try again"

Command = Store | Start | Next | Cancel | Emit | Sleep | Tell | Moment
Steps = Generator[Command, Any, Any]


class Stopped(BaseException):
    """Thrown into the loop when its consumer leaves or is cancelled; `error` is what the consumer got."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error
