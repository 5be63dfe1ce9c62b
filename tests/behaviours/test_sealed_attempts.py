"""What outlives the attempt that started it can neither ask nor begin an effect; what was executing may record its end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import pytest

from tests.behaviours.conftest import Call
from tests.behaviours.graphs import State, asked, builder, chain, the_id, thread
from waitpoint.errors import SealedAttemptError
from waitpoint.graph import START
from waitpoint.types import Command, Interrupt, RetryPolicy, interrupt, step

WAIT = 10


class Orphan:
    """A thread that outlives its node: it waits for the test's word, does something, and keeps what came of it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.go = threading.Event()
        self.error: BaseException | None = None
        self.result: Any = None
        self.thread: threading.Thread | None = None

    def start(self) -> None:
        self.thread = threading.Thread(target=copy_context().run, args=(self._run,))
        self.thread.start()

    def _run(self) -> None:
        assert self.go.wait(WAIT)
        try:
            self.result = self.work()
        except BaseException as error:
            self.error = error

    def finish(self) -> None:
        self.go.set()
        assert self.thread is not None
        self.thread.join(WAIT)
        assert not self.thread.is_alive()


effects: list[str] = []


@pytest.fixture(autouse=True)
def no_effects() -> None:
    effects.clear()


def late_question() -> Any:
    return interrupt("late?")


def late_step() -> Any:
    return step(effects.append, "late")


def late_step_on_record() -> Any:
    return step(effects.append, "late", in_doubt="ask")


def late_graph() -> Any:
    return chain(None, lambda_node).invoke({"log": []})


def lambda_node(state: State) -> State:
    effects.append("late")
    return {"log": ["late"]}


LATE = [late_question, late_step, late_step_on_record, late_graph]


@pytest.mark.parametrize("ends_by", ["returning", "asking", "failing"])
@pytest.mark.parametrize("work", LATE, ids=lambda f: f.__name__)
def test_an_orphaned_thread_can_neither_ask_nor_act(
    saver: Any, call: Call, work: Callable[[], Any], ends_by: str
) -> None:
    """Section 5: an attempt's journal is sealed at its end"""
    orphan = Orphan(work)

    def node(state: State) -> State:
        orphan.start()
        if ends_by == "asking":
            interrupt("name?")
        if ends_by == "failing":
            raise ValueError("failed")
        return {"log": ["returned"]}

    graph, config = chain(saver, node), thread()
    if ends_by == "failing":
        with pytest.raises(ValueError, match="failed"):
            call(graph, {"log": []}, config)
    else:
        call(graph, {"log": []}, config)
    before = (saver.threads(), saver.pending(answerable=False), graph.get_state(config))
    orphan.finish()
    assert isinstance(orphan.error, SealedAttemptError)
    assert "'node'" in str(orphan.error)
    assert "outlived" in str(orphan.error)
    assert effects == []
    assert (saver.threads(), saver.pending(answerable=False), graph.get_state(config)) == before


def test_an_orphaned_coroutine_can_neither_ask_nor_act(saver: Any) -> None:
    """Section 5, async"""
    errors: list[BaseException] = []
    orphans: list[asyncio.Task[None]] = []

    async def effect() -> None:
        effects.append("late")

    async def late(go: asyncio.Event, what: str) -> None:
        await go.wait()
        try:
            if what == "ask":
                interrupt("late?")
            elif what == "step":
                await step(effect)
            else:
                await chain(None, lambda_node).ainvoke({"log": []})
        except BaseException as error:
            errors.append(error)

    async def main() -> None:
        go = asyncio.Event()

        async def node(state: State) -> State:
            orphans.extend(asyncio.ensure_future(late(go, what)) for what in ("ask", "step", "graph"))
            return {"log": ["returned"]}

        assert await chain(saver, node).ainvoke({"log": []}, thread()) == {"log": ["returned"]}
        go.set()
        await asyncio.wait(orphans)

    asyncio.run(main())
    assert [type(e) for e in errors] == [SealedAttemptError] * 3
    assert effects == []
    assert saver.pending(answerable=False) == []


def test_a_coroutine_that_gather_left_behind_cannot_ask(saver: Any) -> None:
    """Section 5: gather does not cancel the others, so they find the journal sealed"""
    errors: list[BaseException] = []

    async def main() -> Any:
        go, done = asyncio.Event(), asyncio.Event()

        async def first() -> Any:
            return interrupt("first?")

        async def second() -> Any:
            await go.wait()
            try:
                return interrupt("second?")
            except BaseException as error:
                errors.append(error)
                raise
            finally:
                done.set()

        async def node(state: State) -> State:
            return {"log": await asyncio.gather(first(), second())}

        graph, config = chain(saver, node), thread()
        result = await graph.ainvoke({"log": []}, config)
        go.set()
        await done.wait()
        assert [i.value for i in asked(result)] == ["first?"]
        assert [i.value for i in graph.get_state(config).interrupts] == ["first?"]
        result = await graph.ainvoke(Command(resume=1), config)
        assert [i.value for i in asked(result)] == ["second?"]
        return await graph.ainvoke(Command(resume=2), config)

    assert asyncio.run(main()) == {"log": [1, 2]}
    assert [type(e) for e in errors[:1]] == [SealedAttemptError]


def test_a_graph_that_a_node_left_running_stores_nothing_more(saver: Any) -> None:
    """Section 5, nested: a called graph that outlives the call's attempt neither asks nor goes on"""
    errors: list[BaseException] = []

    async def main() -> None:
        go, entered = asyncio.Event(), asyncio.Event()

        async def inner(state: State) -> State:
            entered.set()
            await go.wait()
            return {"log": ["inner"]}

        async def inner_asks(state: State) -> State:
            effects.append("inner_asks")
            return {"log": [interrupt("inner?")]}

        child = builder(inner, inner_asks).compile()

        async def left() -> None:
            try:
                await child.ainvoke({"log": []})
            except BaseException as error:
                errors.append(error)

        orphans: list[asyncio.Task[None]] = []

        async def node(state: State) -> State:
            orphans.append(asyncio.ensure_future(left()))
            await entered.wait()
            return {"log": ["returned"]}

        assert await chain(saver, node).ainvoke({"log": []}, thread()) == {"log": ["returned"]}
        go.set()
        await asyncio.wait(orphans)

    asyncio.run(main())
    assert [type(e) for e in errors] == [SealedAttemptError]
    assert effects == []
    assert saver.pending(answerable=False) == []


def test_a_node_of_a_graph_that_was_left_running_can_neither_ask_nor_act(saver: Any) -> None:
    """Section 5, nested: the seal of an attempt holds for all that it called, however deep"""
    errors: list[BaseException] = []

    async def effect() -> None:
        effects.append("late")

    async def main() -> None:
        go, entered, left = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def inner(state: State) -> State:
            entered.set()
            await go.wait()
            for what in (lambda: step(effect), lambda: asyncio.to_thread(interrupt, "late?")):
                try:
                    await what()
                except BaseException as error:
                    errors.append(error)
            left.set()
            return {"log": ["inner"]}

        middle = builder().add_node("inner", builder(inner).compile()).add_edge(START, "inner").compile()
        orphans: list[Any] = []

        async def node(state: State) -> State:
            orphans.append(asyncio.ensure_future(middle.ainvoke({"log": []})))
            await entered.wait()
            return {"log": ["returned"]}

        assert await chain(saver, node).ainvoke({"log": []}, thread()) == {"log": ["returned"]}
        go.set()
        await left.wait()
        await asyncio.wait(orphans)
        assert isinstance(orphans[0].exception(), SealedAttemptError)

    asyncio.run(main())
    assert [type(e) for e in errors] == [SealedAttemptError] * 2
    assert effects == []
    assert saver.pending(answerable=False) == []


def test_the_attempt_before_a_retry_is_sealed_too(saver: Any, call: Call) -> None:
    """Section 5: a retry is another attempt"""
    orphan = Orphan(late_question)
    tries: list[int] = []

    def node(state: State) -> State:
        tries.append(1)
        if len(tries) == 1:
            orphan.start()
            raise ConnectionError("try again")
        orphan.finish()
        step(effects.append, "second try")
        return {"log": [interrupt("second try?")]}

    graph, config = builder(), thread()
    policy = RetryPolicy(initial_interval=0, jitter=False)
    graph.add_node("node", node, retry_policy=policy).add_edge(START, "node")
    compiled = graph.compile(checkpointer=saver)
    assert [i.value for i in asked(call(compiled, {"log": []}, config))] == ["second try?"]
    assert isinstance(orphan.error, SealedAttemptError)
    assert [q.value for q in saver.pending(answerable=False)] == ["second try?"]
    assert call(compiled, Command(resume="yes"), config) == {"log": ["yes"]}
    assert effects == ["second try"]


class Executing:
    """A step that a thread has begun when its node asks, and ends when the test says so."""

    def __init__(self, in_doubt: Any) -> None:
        self.in_doubt = in_doubt
        self.runs = 0
        self.begun, self.end = threading.Event(), threading.Event()
        self.orphan: threading.Thread | None = None

    def effect(self) -> str:
        self.runs += 1
        if self.runs == 1:
            self.begun.set()
            assert self.end.wait(WAIT)
        return f"effect {self.runs}"

    def do(self) -> Any:
        return step(self.effect, in_doubt=self.in_doubt)

    def node(self, state: State) -> State:
        if self.orphan is None:
            self.orphan = threading.Thread(target=copy_context().run, args=(self.do,))
            self.orphan.start()
            assert self.begun.wait(WAIT)
            interrupt("name?")
        answer = interrupt("name?")
        return {"log": [answer, self.do()]}

    def finish(self) -> None:
        self.end.set()
        assert self.orphan is not None
        self.orphan.join(WAIT)
        assert not self.orphan.is_alive()


@pytest.mark.parametrize("in_doubt", ["rerun", "ask"])
def test_an_effect_that_was_executing_records_its_outcome(saver: Any, call: Call, in_doubt: str) -> None:
    """Section 5: one already executing may record its outcome, so it is not run again"""
    executing, config = Executing(in_doubt), thread()
    graph = chain(saver, executing.node)
    question = the_id(call(graph, {"log": []}, config))
    executing.finish()
    assert [i.id for i in graph.get_state(config).interrupts] == [question]

    def answer(graph: Any) -> Any:
        result = call(graph, Command(resume="ana"), config)
        while "__interrupt__" in result:
            result = call(graph, Command(resume="ana"), config)
        return result

    assert answer(chain(saver, executing.node)) == {"log": ["ana", "effect 1"]}
    assert executing.runs == 1


def test_a_late_outcome_closes_the_doubt_that_was_asked_about(saver: Any, call: Call) -> None:
    """Section 6: the late result of a fenced-off run closes the in-doubt question"""
    executing, config = Executing("ask"), thread()
    graph = chain(saver, executing.node)
    call(graph, {"log": []}, config)
    result = call(graph, Command(resume="ana"), config)
    while _doubt(result) is None:
        result = call(graph, Command(resume="ana"), config)
    executing.finish()
    assert saver.pending() == []
    assert [t.status for t in saver.threads()] == ["ready"]
    assert call(graph, None, config) == {"log": ["ana", "effect 1"]}
    assert executing.runs == 1


def _doubt(result: Any) -> Interrupt[Any] | None:
    questions = asked(result)
    return next((q for q in questions if isinstance(q.value, dict) and q.value["type"] == "in_doubt"), None)
