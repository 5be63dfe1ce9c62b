"""Scenarios of cut connections: a stream is closed or cancelled at random points around a pause, then answered."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from tests.scenarios.world import Shelf, State, thread
from waitpoint.checkpoint.base import ThreadKey
from waitpoint.config import get_stream_writer
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt, step

# --- S181 -------------------------------------------------------------------------------------------------------------

CUTS = 200
GIVEN: Any = {"log": []}
ANSWERS = {"inner?": "yes", "outer?": "no"}
WHOLE = ["before", "inner yes", "last", "outer no", "end"]
MODES = ["values", "updates", "custom", "tasks", "checkpoints"]


class Talk:
    """A question in a graph inside, then one outside, between nodes that say what they do; `ran` has the effects."""

    def __init__(self, shelf: Shelf, *, is_async: bool, nesting: str) -> None:
        self.shelf, self.is_async, self.nesting = shelf, is_async, nesting
        self.config = thread()
        self.ran: Counter[str] = Counter()

    def effect(self, name: str) -> str:
        self.ran[name] += 1
        return name

    def says(self, name: str, question: str = "") -> Any:
        """Return a node that speaks, does something, asks, and speaks again."""

        def node(state: State) -> State:
            get_stream_writer()(f"{name} begins")
            done = step(self.effect, name)
            answer = f"{name} {interrupt(question)}" if question else done
            get_stream_writer()(f"{name} ends")
            return {"log": [answer]}

        async def anode(state: State) -> State:
            await asyncio.sleep(0)
            done = node(state)
            await asyncio.sleep(0)
            return done

        return anode if self.is_async else node

    def graph(self) -> Any:
        """Compile the graph on a saver opened anew, as another process would."""
        low = chained(None, inner=self.says("inner", "inner?"), last=self.says("last"))

        def calls(state: State) -> Any:
            return {"log": low.invoke({"log": []})["log"]}

        async def acalls(state: State) -> Any:
            return {"log": (await low.ainvoke({"log": []}))["log"]}

        called = low if self.nesting == "a node" else (acalls if self.is_async else calls)
        nodes = {"before": self.says("before"), "low": called, "outer": self.says("outer", "outer?")}
        return chained(self.shelf.open(), **nodes, end=self.says("end"))

    def next_input(self, graph: Any) -> Any:
        """Check that all who are asked about the thread agree, and return what it goes on with."""
        key = ThreadKey(self.config["configurable"]["thread_id"], "LangGraph")
        row = graph.checkpointer.thread(key)
        if row is None:
            return GIVEN
        state = graph.get_state(self.config, subgraphs=True)
        asked = [i.id for i in state.interrupts]
        assert [q.id for q in graph.checkpointer.pending(thread_id=key.thread_id)] == asked
        assert row.owner is None
        # A graph inside may have asked, and the task around it be cancelled before it paused too: then it is to go on.
        allowed = {"waiting", "ready"} if self.is_async else {"waiting"}
        assert row.status in (allowed if asked else {"ready"} if state.next else {"idle"})
        if not asked:
            return None if state.next else "ended"
        (task,) = state.tasks
        assert [i.id for i in task.interrupts] == asked
        if task.state is not None:
            assert (task.state.next, [i.id for i in task.state.interrupts]) == (("inner",), asked)
        (question,) = state.interrupts
        return Command(resume={question.id: ANSWERS[question.value]})

    def check_end(self, graph: Any) -> None:
        state = graph.get_state(self.config)
        # A graph that is a node begins with what the graph around it has, and hands that back with its own.
        assert list(dict.fromkeys(state.values["log"])) == WHOLE
        assert self.ran == dict.fromkeys(("before", "inner", "last", "outer", "end"), 1)
        assert [q.status for q in graph.checkpointer.pending(answerable=False)][:2] == ["answered", "answered"]


def chained(saver: Any, **nodes: Any) -> Any:
    graph = StateGraph(State)
    before = START
    for name, node in nodes.items():
        graph.add_node(name, node).add_edge(before, name)
        before = name
    return graph.compile(checkpointer=saver)


def shows_a_question(part: Any) -> bool:
    return part[1] == "updates" and "__interrupt__" in part[2]


def _closed(graph: Any, given: Any, config: Any, after: int) -> bool:
    """Take some parts of a stream, then close it; tell whether a question was among them."""
    seen = False
    stream: Iterator[Any] = graph.stream(given, config, stream_mode=MODES, subgraphs=True)
    for _, part in zip(range(after), stream, strict=False):
        seen = seen or shows_a_question(part)
    stream.close()  # type: ignore[attr-defined]
    return seen


def _aborted(graph: Any, given: Any, config: Any, after: int) -> bool:
    """Take some events of a run, then abort it."""
    with graph.stream_events(given, config, version="v3") as run:
        for _ in zip(range(after // 2), run, strict=False):
            pass
    return False


async def _aclosed(graph: Any, given: Any, config: Any, after: int) -> bool:
    seen = False
    stream: AsyncIterator[Any] = graph.astream(given, config, stream_mode=MODES, subgraphs=True)
    async with contextlib.aclosing(stream):  # type: ignore[type-var]
        async for part in stream:
            seen = seen or shows_a_question(part)
            after -= 1
            if after < 1:
                break
    return seen


async def _cancelled(graph: Any, given: Any, config: Any, after: int) -> bool:
    """Cancel the consumer after some turns of the loop, wherever it is by then."""
    seen = []

    async def consumes() -> None:
        async for part in graph.astream(given, config, stream_mode=MODES, subgraphs=True):
            seen.append(shows_a_question(part))

    consumer = asyncio.create_task(consumes())
    for _ in range(after * 3):
        await asyncio.sleep(0)
    consumer.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await consumer
    return any(seen)


async def _aaborted(graph: Any, given: Any, config: Any, after: int) -> bool:
    async with await graph.astream_events(given, config, version="v3") as run:
        async for _ in run:
            after -= 2
            if after < 1:
                break
    return False


def _in_a_loop(cut: Callable[..., Any]) -> Callable[..., bool]:
    return lambda *given: asyncio.run(cut(*given))


WAYS = {
    "blocking": (_closed, _aborted),
    "asyncio": tuple(map(_in_a_loop, (_aclosed, _cancelled, _aaborted))),
}


@pytest.mark.parametrize("nesting", ["a node", "a function"])
@pytest.mark.parametrize("how", WAYS)
def test_s181_a_cut_at_any_point_around_a_pause_leaves_a_thread_that_can_be_answered(
    shelf: Shelf, how: str, nesting: str
) -> None:
    drawn = random.Random(f"{how} {nesting}")
    cuts = 0
    while cuts < CUTS // 2:
        talk = Talk(shelf, is_async=how == "asyncio", nesting=nesting)
        planned = drawn.randrange(1, 4)
        while (given := talk.next_input(graph := talk.graph())) != "ended":
            if planned > 0:
                planned, cuts = planned - 1, cuts + 1
                if drawn.choice(WAYS[how])(graph, given, talk.config, drawn.randrange(28)):
                    # Who saw the question is right to wait for the answer: closing the stream took nothing back.
                    assert isinstance(talk.next_input(talk.graph()), Command)
            elif how == "asyncio":
                asyncio.run(graph.ainvoke(given, talk.config))
            else:
                graph.invoke(given, talk.config)
        talk.check_end(talk.graph())
