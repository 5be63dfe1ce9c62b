"""Mode `messages` in the loop: what tasks returned, what was there before; and who hears the models and tools of a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from waitpoint.engine.commands import Emit
from waitpoint.engine.run import Run
from waitpoint.engine.scope import Surroundings, TaskScope
from waitpoint.engine.tasks import Task
from waitpoint.records import START
from waitpoint.stream.listener import heard_by, listener
from waitpoint.stream.said import Said, messages_in
from waitpoint.stream.tools import tool_listener

MODE = "messages"
TOOLS = "tools"


def known(run: Run) -> Iterable[Emit]:
    """Tell which messages are there at the start: in the state, and in what finished in an earlier run."""
    if MODE in run.modes:
        yield _known(run, [*run.values.values(), *(v for t in run.tasks if t.cached for v in _written(t))])


def sent(run: Run, task: Task) -> Iterable[Emit]:
    """Tell which messages came to a task with its `Send`."""
    if MODE in run.modes and task.due.send is not None:
        given = task.due.send.arg
        parts = given if isinstance(given, dict) else getattr(given, "__dict__", None)
        yield _known(run, [given] if parts is None else list(parts.values()))


def returned(run: Run, task: Task) -> Iterable[Emit]:
    """Show the messages that a task returned. Those of a command to a parent graph are passed on, nobody says them."""
    if MODE not in run.modes:
        return
    scope = None if task.name == START else next(s for s in run.scopes if s.task.task_id == task.id)
    if scope is None or scope.sent_up:
        yield _known(run, _written(task))
        return
    for message in messages_in(_written(task)):
        yield Emit(run.shown_ns, MODE, Said("whole", message, scope.told))


def _known(run: Run, values: list[Any]) -> Emit:
    return Emit(run.shown_ns, MODE, Said("known", messages_in(values), {}))


def _written(task: Task) -> list[Any]:
    return [value for _, value in task.result.writes] if task.result is not None else []


def hear(around: Surroundings, modes: frozenset[str], live: Any, ns: tuple[str, ...]) -> None:
    """Let the consumer hear what the tasks of a graph say, as far as these modes want it."""
    if MODE in modes:
        around.say = _sayer(live, ns)
    if MODE in modes or TOOLS in modes:
        around.listen = _listening


def _sayer(live: Any, ns: tuple[str, ...]) -> Callable[[Said], None]:
    return lambda said: live.put(Emit(ns, MODE, said))


def _listening(scope: TaskScope, callbacks: Any) -> Any:
    """Return callbacks by which the models and tools of a task are heard."""
    if scope.around.say is not None:
        told = scope.told
        hidden = frozenset(scope.config["configurable"]).difference(told)
        callbacks = heard_by(callbacks, listener(scope.around.say, told, hidden))
    if TOOLS in scope.run.modes:
        callbacks = heard_by(callbacks, tool_listener(lambda event: scope.show(TOOLS, event)))
    return callbacks
