"""Running one task: its body, retries, error handler and routers, and what all that comes to.

Written once as a generator of calls; `run_blocking` and `run_async` only differ in how they make them.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Generator, Hashable, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from waitpoint import runtime as runtimes
from waitpoint import threads
from waitpoint.checkpoint.base import JournalRow, OutcomeRow
from waitpoint.core.apply import Result, apply_writes
from waitpoint.core.names import node_name, suggestion
from waitpoint.core.plan import Due
from waitpoint.core.spec import Branch, Call, GraphSpec, Node, Reader
from waitpoint.engine import endings
from waitpoint.engine.langchain import lend_config
from waitpoint.engine.scope import TaskScope
from waitpoint.engine.trying import seconds_to_retry, within_time
from waitpoint.errors import (
    GraphBubbleUp,
    GraphValidationError,
    InvalidUpdateError,
    NodeError,
    ParentCommand,
    ReplayMismatch,
    UnknownTagError,
    UsageError,
)
from waitpoint.interrupts import site
from waitpoint.interrupts.journal import Conclusion, Journal
from waitpoint.records import END, Command, Interrupt, Send, TimeoutPolicy


@dataclass(slots=True, eq=False, repr=False)
class Body:
    """What the body of a task came to, kept apart from its routers: a body that finished is not run again."""

    result: Result | None = None
    error: BaseException | None = None  # retries exhausted: the error handler's turn
    is_cached: bool = False  # the result was found in the graph's cache


@dataclass(slots=True, eq=False, repr=False)
class Task:
    """A task of the present superstep, with what earlier attempts left."""

    due: Due
    node: Node
    entries: Sequence[JournalRow] = ()
    body: Body = field(default_factory=Body)
    state: Literal["due", "done", "waiting", "failed"] = "due"
    result: Result | None = None
    error: BaseException | str | None = None
    interrupts: tuple[Interrupt[Any], ...] = ()
    attempt: int = 0
    answer_seq: int = 0  # the thread's, when the last attempt read its answers
    children: frozenset[str] = frozenset()  # graphs that the last attempt called
    cached: bool = False  # finished in an earlier run
    is_new: bool = True  # no earlier run can have begun it
    outcome: Outcome | None = None  # of the present run, until it is stored

    @property
    def id(self) -> str:
        """The task's id."""
        return self.due.id

    @property
    def name(self) -> str:
        """The node's name."""
        return self.due.name

    @property
    def timeout(self) -> TimeoutPolicy | None:
        """How long each try may take: as the packet says that led here, else as the node does."""
        sent_with = None if self.due.send is None else self.due.send.timeout
        return self.node.timeout if sent_with is None else TimeoutPolicy.coerce(sent_with)  # older ones are numbers


@dataclass(slots=True, eq=False, repr=False)
class Outcome:
    """What an attempt came to. `kind` "parent": a command for the parent graph; "stopped": cancelled or killed."""

    kind: Literal["done", "waiting", "failed", "parent", "stopped"]
    result: Result | None = None
    error: BaseException | None = None
    interrupts: tuple[Interrupt[Any], ...] = ()
    conclusion: Conclusion = field(default_factory=Conclusion)
    misfit: tuple[str, BaseException] | None = None
    body: Body = field(default_factory=Body)
    attempt: int = 1
    children: frozenset[str] = frozenset()  # graphs that the attempt called
    row: OutcomeRow | None = None  # the same, encoded


# --- the calls that the generator asks for ----------------------------------------------------------------------------


@dataclass(slots=True, eq=False, repr=False)
class _Do:
    """Call something of the user's with an input."""

    call: Call
    input: Any
    scope: TaskScope
    error: NodeError | None = None
    timeout: TimeoutPolicy | None = None

    @property
    def crew(self) -> Any:
        """The recorded tasks that the call started, if any; it has ended when they have."""
        return self.scope.journal.crew

    def blocking(self) -> Any:
        """Make the call in this thread."""
        call = self.call
        if self.timeout is not None and not call.is_async:
            raise self._unbounded()
        if call.kind != "function":
            return call.fn.invoke(self.input, self.scope.config)
        if call.is_async:
            raise UsageError(
                f"Node {self.scope.node!r} is an async function, so it cannot run under invoke() or stream(); use "
                f"ainvoke() or astream()"
            )
        value = threads.carried(f"Node {self.scope.node!r}", self._function)
        if inspect.iscoroutine(value):
            value.close()
            raise UsageError(f"Node {self.scope.node!r} returned a coroutine under invoke() or stream(); use ainvoke()")
        return value

    async def awaiting(self) -> Any:
        """Make the call from the event loop; plain functions run in a worker thread."""
        call, policy = self.call, self.timeout
        if call.is_async or call.kind != "function":
            work = self._function() if call.kind == "function" else call.fn.ainvoke(self.input, self.scope.config)
            if policy is not None:
                assert self.scope.pulse is not None
                work = within_time(policy, self.scope.pulse, work, self.scope.node)
            return await work
        if policy is not None:
            raise self._unbounded()
        import asyncio

        pool = threads.for_bodies() if self.scope.run.spec.is_function else None
        body = threads.carried, f"Node {self.scope.node!r}", self._function
        work = asyncio.get_running_loop().run_in_executor(pool, copy_context().run, *body)
        try:
            value = await asyncio.shield(work)
        except asyncio.CancelledError:
            if self.scope.journal.sealed:
                raise
            await asyncio.wait([work])  # a thread cannot be cancelled: it ends, and what it did is recorded
            value = work.result()
        return await value if inspect.isawaitable(value) else value

    def _unbounded(self) -> GraphValidationError:
        return GraphValidationError(
            f"Node timeouts are only supported for async nodes under ainvoke() and astream() - '{self.scope.node}' cannot be "
            f"stopped halfway here; leave out the timeout of the node, or of the Send that led to it"
        )

    def _function(self) -> Any:
        call = self.call
        if not call.wants:
            return call.fn(self.input) if call.takes_input else call.fn()
        wanted = {name: self.scope.wanted(what, self.error) for name, what in call.wants.items()}
        return call.fn(self.input, **wanted) if call.takes_input else call.fn(**wanted)


@dataclass(slots=True, eq=False, repr=False)
class _Sleep:
    seconds: float
    crew: ClassVar[Any] = None

    def blocking(self) -> None:
        time.sleep(self.seconds)

    async def awaiting(self) -> None:
        import asyncio

        await asyncio.sleep(self.seconds)


_Calls = Generator[_Do | _Sleep, Any, Outcome]


@site.boundary
def run_blocking(calls: _Calls) -> Outcome:
    """Make the calls in this thread."""
    reply: Any = None
    failure: BaseException | None = None
    while True:
        try:
            call = calls.send(reply) if failure is None else calls.throw(failure)
        except StopIteration as end:
            # Its traceback holds this frame: a ring, which would keep all of the run until it is collected.
            failure = None
            return end.value  # type: ignore[no-any-return]
        except BaseException as error:  # noqa: BLE001 - an end that nobody hears of would be awaited forever
            return Outcome("failed" if isinstance(error, Exception) else "stopped", error=error)
        reply, failure = None, None
        try:
            reply = call.blocking()
        except BaseException as error:  # noqa: BLE001 - the generator decides what each kind means
            failure = error
        if (crew := call.crew) is not None:
            failure = crew.end(failure)


async def run_async(calls: _Calls) -> Outcome:
    """Make the calls from the event loop."""
    reply: Any = None
    failure: BaseException | None = None
    while True:
        try:
            call = calls.send(reply) if failure is None else calls.throw(failure)
        except StopIteration as end:
            failure = None  # as above
            return end.value  # type: ignore[no-any-return]
        except BaseException as error:  # noqa: BLE001 - an end that nobody hears of would be awaited forever
            return Outcome("failed" if isinstance(error, Exception) else "stopped", error=error)
        reply, failure = None, None
        try:
            reply = await call.awaiting()
        except BaseException as error:  # noqa: BLE001 - as above
            failure = error
        if (crew := call.crew) is not None:
            failure = await crew.end_later(failure)


site.boundary(run_async)


def in_context(scope: TaskScope) -> Context:
    """Return a copy of the caller's context in which `scope` is current; LangChain's runnables see its config there."""
    context = copy_context()
    context.run(runtimes.enter, scope)
    lend_config(context, scope)
    return context


# --- the attempt ------------------------------------------------------------------------------------------------------


def attempt(spec: GraphSpec, task: Task, values: Mapping[str, Any], scope: TaskScope) -> _Calls:
    """Run a task to its outcome: body with retries, error handler, then routers."""
    body = task.body
    try:
        if body.result is None:
            yield from _body(spec, task, values, scope, body)
            if scope.journal.must_end:
                body.result = None  # something caught the pause or the refusal: what came after it does not count
                return _ended(scope, body)
        assert body.result is not None
        result = yield from _routed(spec, task, values, scope, body.result)
        return _ended(scope, body, result=result)
    except BaseException as error:  # noqa: BLE001 - every end of a body becomes an outcome, in this one place
        return _ended(scope, body, error=error)


def _body(spec: GraphSpec, task: Task, values: Mapping[str, Any], scope: TaskScope, body: Body) -> Any:
    node = task.node
    if body.error is None:
        try:
            body.result = yield from _tried(spec, task, values, scope)
        except Exception as error:
            # Recorded before the handler runs: a handler that crashes runs again, the failed body does not.
            if node.error_handler is None or isinstance(error, GraphBubbleUp) or _is_final(scope.journal, error):
                raise
            body.error = error
    if body.error is not None and body.result is None:
        assert node.error_handler is not None
        whole = node.reader if node.reader.make or node.reader.whole else Reader(tuple(spec.channels))
        given = input_of(task, whole, values, scope)
        scope.pushed = []
        raw = yield _Do(node.error_handler, given, scope, NodeError(node.name, body.error))
        body.result = replace(_with_pushed(spec, scope, collect(spec, node.name, raw)), is_own=False)


def input_of(task: Task, reader: Reader, values: Mapping[str, Any], scope: TaskScope) -> Any:
    """Make a task's input; one that holds what this process cannot read stops the task before it starts."""
    if task.due.send is not None:
        return fresh(task.due.send.arg)
    for key, unknown in scope.run.head.unknown.items():
        if key in reader.keys or reader.whole:
            raise UnknownTagError(
                f"Node {task.name!r} reads {key!r}, which holds a value of type {unknown.tag!r} at {unknown.path!r} that this "
                f"process does not know; register the class with waitpoint.codec.register(..., tag={unknown.tag!r}), then "
                f"continue the thread",
                tag=unknown.tag,
                path=unknown.path,
            )
    return read(reader, values, scope.run.steps_left)


def _tried(spec: GraphSpec, task: Task, values: Mapping[str, Any], scope: TaskScope) -> Any:
    node = task.node
    tries = 0
    while True:
        tries += 1
        try:
            given = input_of(task, node.reader, values, scope)
            raw = yield _Do(node.call, given, scope, timeout=task.timeout)
            return _with_pushed(spec, scope, collect(spec, node.name, raw))
        except ParentCommand as sent:
            command = sent.args[0]
            if command.graph == Command.PARENT:
                raise
            scope.sent_up = True
            return collect(spec, node.name, command)  # a graph inside this node spoke to this graph
        except GraphBubbleUp:
            raise
        except Exception as error:
            wait = seconds_to_retry(node.retry, error, tries)
            if wait is None or _is_final(scope.journal, error):
                raise
            yield _Sleep(wait)
            scope.try_again(error)
            runtimes.enter(scope)  # what the failed attempt left running keeps the sealed journal of that attempt


def _with_pushed(spec: GraphSpec, scope: TaskScope, result: Result) -> Result:
    """Put what was pushed in front of what was returned."""
    pushed = [write for key, message in scope.pushed for write in _writes(spec, result.node, {key: message})]
    result.writes[:0] = _identified(spec, pushed)
    return result


def _is_final(journal: Journal, error: BaseException) -> bool:
    """Errors that trying again cannot mend: a refused answer, a changed program, a swallowed pause."""
    return journal.must_end or isinstance(error, ReplayMismatch)


def _routed(spec: GraphSpec, task: Task, values: Mapping[str, Any], scope: TaskScope, result: Result) -> Any:
    """Ask the node's routers where to go, on the state with the node's own writes in it."""
    node = task.node
    if not node.branches or not result.is_own or (node.goto_instead and result.gotos):
        return result
    base = dict(values)
    for key, _ in result.writes:
        channel = spec.channels.get(key)
        if channel is not None and channel.kind == "fold" and key in base:
            base[key] = fresh(base[key])  # a reducer of the user's may change its argument
    own, _ = apply_writes(spec, base, [result])
    gotos = list(result.gotos)
    for branch in node.branches:
        given = read(branch.reader, own, scope.run.steps_left)
        gotos += destinations(spec, node.name, branch, (yield _Do(branch.call, given, scope)))
    return Result(result.node, result.writes, gotos)


def _ended(scope: TaskScope, body: Body, result: Result | None = None, error: BaseException | None = None) -> Outcome:
    """Turn the end of a body into an outcome, and seal the attempt."""
    journal = scope.journal
    paused = endings.interrupts_of(error)
    if journal.misfit is not None:
        error, paused, result = journal.misfit[1], None, None
    elif journal.refusal is not None:
        error, paused, result = journal.refusal, None, None
    elif journal.pauses and paused is None:
        error, result = endings.beside_pauses(journal, error), None
    elif paused is not None and not journal.pauses:
        error, paused = endings.foreign(journal), None
    elif paused is not None:
        paused = tuple({i.id: i for i in (*journal.waiting, *paused)}.values())
    ended = result is not None or paused is not None
    conclusion = journal.conclude(scope.answers_read_before, ended=ended, error=error)
    if conclusion.drifted is not None and paused is not None:
        error, paused = endings.drifted(journal, conclusion), None
    outcome = Outcome("done", result, error, paused or (), conclusion, journal.misfit, body, journal.attempt)
    outcome.children = frozenset(journal.called)
    if paused is not None:
        outcome.kind, outcome.error = "waiting", None
    elif isinstance(error, ParentCommand):
        outcome.kind = "parent"
    elif error is not None:
        outcome.kind = "failed" if isinstance(error, Exception) else "stopped"
    return outcome


# --- inputs and outputs -----------------------------------------------------------------------------------------------


def read(reader: Reader, values: Mapping[str, Any], left: int = 0) -> Any:
    """Make a node's input from the values; lists and dicts are fresh, so that changing them changes nothing stored.

    `left` is how many supersteps the run may still take, for managed values.
    """
    if reader.whole:
        return fresh(values.get("__root__"))
    given = {key: fresh(values[key]) for key in reader.keys if key in values}
    for key, what in reader.managed.items():
        given[key] = left if what == "remaining_steps" else left == 1
    return given if reader.make is None else reader.make(given)


def fresh(value: Any) -> Any:
    """Return a shallow copy of a plain container; anything else as it is."""
    kind = type(value)
    return kind(value) if kind is list or kind is dict or kind is set else value


def collect(spec: GraphSpec, node: str, raw: Any) -> Result:
    """Turn what a node returned (update, command, or a list of both) into writes and places to go.

    Raises `ParentCommand` for a command to the parent graph, `InvalidUpdateError` for what no update can be.
    """
    result = Result(node)
    parts = raw if isinstance(raw, list | tuple) and any(isinstance(p, Command) for p in raw) else (raw,)
    for part in parts:
        if isinstance(part, Command):
            if part.graph == Command.PARENT:
                raise ParentCommand(part)
            _refuse_resume(node, part)
            result.gotos += places(spec, node, part.goto)
            part = part.update  # noqa: PLW2901 - the rest of the loop is about the update
        if part is not None:
            result.writes += _identified(spec, _writes(spec, node, part))
    return result


def _refuse_resume(node: str, command: Command[Any]) -> None:
    if command.has_resume:
        raise InvalidUpdateError(
            f"Node {node!r} returned a Command with `resume`: answers come from outside; pass it to invoke() instead"
        )


def _writes(spec: GraphSpec, node: str, update: Any) -> list[tuple[str, Any]]:
    try:
        return spec.to_writes(update)
    except InvalidUpdateError as error:
        raise InvalidUpdateError(f"Node {node!r}: {error}") from None


def _identified(spec: GraphSpec, writes: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Give messages their ids before they are recorded, so that a message is one message for good."""
    for i, (key, value) in enumerate(writes):
        channel = spec.channels[key]
        if channel.prepare is not None:
            writes[i] = (key, channel.prepare(value))
    return writes


def places(spec: GraphSpec, node: str, goto: Any) -> list[str | Send]:
    """Return the places of a `goto`, each checked to exist."""
    if goto is None:
        return []
    found = [goto] if isinstance(goto, str | Send) or hasattr(goto, "value") else list(goto)
    return [_place(spec, node, p) for p in found]


def _place(spec: GraphSpec, node: str, place: Any) -> str | Send:
    if isinstance(place, Send):
        name = place.node
        if name == END:
            raise InvalidUpdateError(
                f"{node!r} sent a packet to END, which runs nothing; return END, or Send to a node"
            )
    else:
        name = place = node_name(place)
    if name != END and (name not in spec.nodes or name == "__start__"):
        known = [n for n in sorted(spec.nodes) if n != "__start__"]
        raise InvalidUpdateError(f"{node!r} went to unknown node {name!r}{suggestion(name, known)}")
    return place  # type: ignore[no-any-return]


def destinations(spec: GraphSpec, node: str, branch: Branch, chosen: Any) -> list[str | Send]:
    """Where a router's answer leads."""
    found = list(chosen) if isinstance(chosen, list | tuple | set) else [chosen]
    if any(p is None for p in found):
        raise InvalidUpdateError(f"Router {branch.name!r} of node {node!r} returned None; return a node's name or END")
    mapped = [_mapped(node, branch, p) for p in found]
    return [_place(spec, f"{node} -> {branch.name}", p) for p in mapped]


def _mapped(node: str, branch: Branch, place: Any) -> Any:
    if branch.ends is None or isinstance(place, Send):
        return place
    if not isinstance(place, Hashable):
        kind = type(place).__name__
        raise InvalidUpdateError(
            f"Router {branch.name!r} of node {node!r} returned a {kind}; return keys of its path map"
        )
    if place not in branch.ends and node_name(place) in branch.ends:
        return branch.ends[node_name(place)]
    if place not in branch.ends:
        known = ", ".join(repr(k) for k in branch.ends)
        raise InvalidUpdateError(
            f"Router {branch.name!r} of node {node!r} returned {place!r}; its path map has {known}"
        )
    return branch.ends[place]
