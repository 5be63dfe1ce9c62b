"""Attempts of tasks as tracers hear of them: each try of a body, its routers, and the recorded tasks that it calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any

from waitpoint.engine.commands import Moment
from waitpoint.engine.endings import interrupts_of
from waitpoint.engine.langchain import lend_config
from waitpoint.engine.scope import TaskScope
from waitpoint.engine.tasks import Outcome, Task
from waitpoint.engine.tracing import Tracing, careful, quietly, quietly_later
from waitpoint.errors import GraphBubbleUp
from waitpoint.stream.listener import heard_by
from waitpoint.tracing.chains import Chain, asks
from waitpoint.tracing.models import watcher
from waitpoint.tracing.spans import Span

Calls = Generator[Any, Any, Outcome]


def _nothing() -> None:
    """Tell nobody."""


async def _nothing_later() -> None:
    """Tell nobody."""


NOTHING = Moment(_nothing, _nothing_later)

# --- tasks ------------------------------------------------------------------------------------------------------------


class _Try:
    """One try of a task's body, and what follows it: a chain and a span."""

    def __init__(self, tracing: Tracing, task: Task, scope: TaskScope) -> None:
        self.scope, self.output = scope, None
        tag = f"graph:step:{scope.step}"
        config = scope.config
        self.chain = None if tracing.chain is None else tracing.chain.inside(task.name, tag, config["metadata"])
        self.span: Span | None = None
        if tracing.span is not None:
            thread_id = scope.task.key.thread_id
            self.span = (tracing.step or tracing.span).inside(
                f"task {task.name}",
                {
                    "waitpoint.node": task.name,
                    "waitpoint.task.id": task.id,
                    "waitpoint.attempt": scope.attempt,
                    "waitpoint.step": scope.step,
                    "waitpoint.thread.id": thread_id or None,
                },
            )

    def begin(self, given: Any) -> Moment:
        """Begin, and let what runs in the task find its callbacks and its span."""

        def blocking() -> None:
            if self.chain is not None:
                self.chain.start(given)
            self._enter()

        async def awaiting() -> None:
            if self.chain is not None:
                await self.chain.start_later(given)
            self._enter()

        return Moment(blocking, awaiting)

    def _enter(self) -> None:
        scope = self.scope
        if self.span is not None:
            self.span.enter()  # this context is the attempt's own
            scope.journal.span = self.span
        _hear(scope, None if self.chain is None else self.chain.callbacks("seq:step:1"), self.span)

    def failed(self, error: BaseException) -> Moment:
        """End with an error; what only bubbles up is none."""
        if isinstance(error, GraphBubbleUp):
            return self.ended(self.output)
        if self.span is not None:
            self.span.end(error)
        if self.chain is None:
            return NOTHING
        return careful(partial(self.chain.fail, error), partial(self.chain.fail_later, error))

    def ended(self, output: Any, *, shown: bool = True) -> Moment:
        """End with what came of it; `shown`: event streams show that as a part of its own."""
        if self.span is not None:
            self.span.end()
        if self.chain is None:
            return NOTHING
        return careful(partial(self.chain.end, output), partial(self.chain.end_later, output, shown=shown))

    def over(self, outcome: Outcome) -> Moment:
        """End as the attempt did."""
        if outcome.kind == "waiting":
            if self.span is not None:
                self.span.put({"waitpoint.interrupt.ids": [i.id for i in outcome.interrupts]})
            return self.ended(asks(outcome.interrupts), shown=False)
        if outcome.kind in ("failed", "stopped") and outcome.error is not None:
            return self.failed(outcome.error)
        return self.ended(self.output)


def attempted(calls: Calls, task: Task, scope: TaskScope) -> Calls:
    """Pass on what an attempt asks for, and tell those who trace the run of each try and of each router."""
    tracing: Tracing = scope.around.tracing
    routers = {id(branch.call): (number, branch.name) for number, branch in enumerate(task.node.branches)}
    opened: _Try | None = None
    reply: Any = None
    failure: BaseException | None = None
    while True:
        try:
            asked = calls.send(reply) if failure is None else calls.throw(failure)
        except StopIteration as end:
            failure = None
            if opened is not None:
                yield opened.over(end.value)
            return end.value  # type: ignore[no-any-return]
        reply, failure = None, None
        call = getattr(asked, "call", None)
        router = routers.get(id(call))
        try:
            if call is not None and opened is None:
                opened = _Try(tracing, task, scope)
                yield opened.begin(asked.input)
            if router is not None and opened is not None and opened.chain is not None:
                reply = yield from _routed(opened, asked, *router)
            else:
                reply = yield asked
                if opened is not None and call is not None and router is None:
                    opened.output = reply.value if scope.run.spec.is_function else reply
        except GeneratorExit:
            calls.close()
            raise
        except BaseException as error:  # noqa: BLE001 - handed on: the attempt decides what each kind means
            failure = error
        if failure is not None and opened is not None and interrupts_of(failure) is None:
            yield opened.failed(failure)
            opened = None


def _routed(opened: _Try, asked: Any, number: int, name: str) -> Generator[Any, Any, Any]:
    """Let a router be a chain inside its task's."""
    assert opened.chain is not None
    chain, scope = opened.chain.inside(name, f"seq:step:{number + 3}"), opened.scope
    before = scope.callbacks
    yield Moment(partial(chain.start, asked.input), partial(chain.start_later, asked.input))
    _hear(scope, chain.callbacks(), opened.span)
    try:
        chosen = yield asked
    except GeneratorExit:
        raise
    except BaseException as error:
        yield careful(partial(chain.fail, error), partial(chain.fail_later, error))
        raise
    finally:
        scope.callbacks = before
        scope.make_anew()
    yield careful(partial(chain.end, chosen), partial(chain.end_later, chosen))
    return chosen


def _hear(scope: TaskScope, callbacks: Any, span: Span | None) -> None:
    """Make these the callbacks of what runs here, with a handler for spans of models and tools."""
    if callbacks is None:
        callbacks = scope.around.config.get("callbacks")
    handler = None if span is None else watcher(span, scope.task.key.thread_id or None)
    scope.callbacks = callbacks if handler is None else heard_by(callbacks, handler)
    scope.make_anew()
    lend_config(None, scope)


# --- tasks of functions -----------------------------------------------------------------------------------------------

Came = tuple[Any, BaseException | None]  # what a body came to: a result, or what it raised


def called(scope: TaskScope, name: str, given: Any, body: Callable[[], Came]) -> Came:
    """Run the body of a recorded task, as a chain and a span inside those of the body that calls it."""
    told = _Called(scope, name)
    chain = told.chain
    if chain is not None:
        chain.start(given)
    told.enter()
    result, failure = body()
    told.leave(failure)
    if chain is not None and failure is not None and not _bubbles(failure):
        quietly(partial(chain.fail, failure))
    elif chain is not None:
        quietly(partial(chain.end, _output(result, failure)))
    return result, failure


async def called_later(scope: TaskScope, name: str, given: Any, body: Callable[[], Awaitable[Came]]) -> Came:
    """Do the same from an event loop."""
    told = _Called(scope, name)
    chain = told.chain
    if chain is not None:
        await chain.start_later(given)
    told.enter()
    result, failure = await body()
    told.leave(failure)
    if chain is not None and failure is not None and not _bubbles(failure):
        await quietly_later(chain.fail_later(failure))
    elif chain is not None:
        await quietly_later(chain.end_later(_output(result, failure), shown=failure is None))
    return result, failure


def _bubbles(failure: BaseException) -> bool:
    return isinstance(failure, GraphBubbleUp) or interrupts_of(failure) is not None


def _output(result: Any, failure: BaseException | None) -> Any:
    interrupts = interrupts_of(failure)
    return result if interrupts is None else asks(interrupts)


class _Called:
    """One try of a recorded task."""

    def __init__(self, scope: TaskScope, name: str) -> None:
        tracing: Tracing = scope.around.tracing
        self.scope = scope
        self.chain = (
            None if tracing.chain is None else Chain.in_callbacks(scope.callbacks, name, scope.config["metadata"])
        )
        outer: Span | None = scope.journal.span
        self.span: Span | None = None
        if outer is not None:
            told = {"waitpoint.node": name, "waitpoint.task.id": scope.task.task_id, "waitpoint.attempt": scope.tries}
            self.span = outer.beneath(f"task {name}", told)
        self._before = scope.callbacks
        self._token: Any = None

    def enter(self) -> None:
        """Let what runs in the task find its callbacks and its span."""
        if self.span is not None:
            self._token = self.span.enter()
        _hear(self.scope, None if self.chain is None else self.chain.callbacks("seq:step:1"), self.span)

    def leave(self, failure: BaseException | None) -> None:
        """End the span; another try begins where this one did."""
        self.scope.callbacks = self._before
        if self.span is not None:
            self.span.leave(self._token)
            self.span.end(None if failure is None or interrupts_of(failure) is not None else failure)
