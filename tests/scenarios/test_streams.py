"""Scenarios of streams: where questions show, that who sees them may answer them, and that finished work shows at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.scenarios.conftest import Call
from tests.scenarios.world import Shelf, State, asked, thread
from waitpoint.callbacks import GraphCallbackHandler
from waitpoint.checkpoint.base import ThreadKey
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt

GIVEN: Any = {"log": []}
SILENT = ("messages", "custom", "tools")  # they carry no questions


def asks(question: str) -> Any:
    def ask(state: State) -> State:
        return {"log": [interrupt(question)]}

    return ask


def note(state: State) -> State:
    return {"log": ["note"]}


def side_by_side(saver: Any, **nodes: Any) -> Any:
    graph = StateGraph(State)
    for name, node in nodes.items():
        graph.add_node(name, node).add_edge(START, name)
    return graph.compile(checkpointer=saver)


def two_questions(saver: Any) -> Any:
    """One question in a node, one two graphs further inside, and a sibling that asks nothing."""
    low = side_by_side(None, deep=asks("deep?"), note=note)
    return side_by_side(saver, own=asks("own?"), low=side_by_side(None, low=low), free=note)


def _streamed(graph: Any, given: Any, config: Any, **options: Any) -> list[Any]:
    return list(graph.stream(given, config, **options))


def _astreamed(graph: Any, given: Any, config: Any, **options: Any) -> list[Any]:
    async def parts() -> list[Any]:
        return [part async for part in graph.astream(given, config, **options)]

    return asyncio.run(parts())


@pytest.fixture(params=[_streamed, _astreamed], ids=["stream", "astream"])
def streamed(request: pytest.FixtureRequest) -> Call:
    found: Call = request.param
    return found


def shown(mode: str, part: Any) -> list[tuple[Any, str]]:
    """Return the questions in a part, as values and ids, in whatever form that mode has them."""
    if mode in ("values", "updates"):
        return [(i.value, i.id) for i in part.get("__interrupt__", ())]
    if mode == "debug":
        return shown("checkpoints" if part["type"] == "checkpoint" else "tasks", part["payload"])
    tasks = [part] if mode == "tasks" else part["tasks"]
    return [(i["value"], i["id"]) for task in tasks for i in task.get("interrupts", ())]


# --- S115 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("subgraphs", [False, True])
@pytest.mark.parametrize("mode", ["values", "updates", "checkpoints", "tasks", "debug", *SILENT])
def test_s115_each_mode_that_can_show_questions_ends_with_all_of_them(
    shelf: Shelf, streamed: Call, mode: str, subgraphs: bool
) -> None:
    graph, config = two_questions(shelf.open()), thread()
    parts = streamed(graph, GIVEN, config, stream_mode=mode, subgraphs=subgraphs)
    state = graph.get_state(config)
    open_now = [(i.value, i.id) for i in state.interrupts]
    assert {value for value, _ in open_now} == {"own?", "deep?"}
    if mode in SILENT:
        assert parts == []
        return
    told = [part if subgraphs else ((), part) for part in parts]
    at_root = [found for ns, part in told if not ns and (found := shown(mode, part))]
    if mode == "tasks":  # each task tells its own, at each level
        assert sorted(q for found in at_root for q in found) == sorted(open_now)
        below = [q for ns, part in told if ns for q in shown(mode, part)]
        assert below == [q for q in open_now if q[0] == "deep?"] * (2 if subgraphs else 0)
        return
    assert not [found for ns, part in told if ns and mode != "debug" for found in shown(mode, part)]
    ends = [found for found in at_root if mode != "debug" or len(found) == len(open_now)]
    assert ends == [open_now]
    assert shown(mode, told[-1][1]) == open_now
    assert told[-1][0] == ()


def test_s115_in_a_list_of_modes_each_ends_with_all_of_them(shelf: Shelf, streamed: Call) -> None:
    graph, config = two_questions(shelf.open()), thread()
    modes = ["values", "updates", "checkpoints", "messages", "custom"]
    parts = streamed(graph, GIVEN, config, stream_mode=modes, subgraphs=True)
    open_now = [(i.value, i.id) for i in graph.get_state(config).interrupts]
    last = [(ns, mode, shown(mode, part)) for ns, mode, part in parts[-3:]]
    assert last == [((), mode, open_now) for mode in ("checkpoints", "updates", "values")]
    assert not any(shown(mode, part) for _, mode, part in parts[:-3])


def test_s115_a_partial_answer_ends_with_the_rest(shelf: Shelf, streamed: Call) -> None:
    graph, config = two_questions(shelf.open()), thread()
    streamed(graph, GIVEN, config)
    first, second = graph.get_state(config).interrupts
    for mode in ("values", "updates", "checkpoints"):
        answer = Command(resume={first.id: "yes"}) if mode == "values" else None
        parts = streamed(two_questions(shelf.open()), answer, config, stream_mode=mode)
        assert [found for part in parts if (found := shown(mode, part))] == [[(second.value, second.id)]]
        assert shown(mode, parts[-1])


@pytest.mark.parametrize("use_async", [False, True], ids=["stream_events", "astream_events"])
def test_s115_event_streams_end_with_all_of_them(shelf: Shelf, use_async: bool) -> None:
    graph, config = two_questions(shelf.open()), thread()

    async def told() -> tuple[list[Any], Any]:
        run = await graph.astream_events(GIVEN, config, version="v3")
        return [event async for event in run], await run.interrupts()

    if use_async:
        events, found = asyncio.run(told())
    else:
        run = graph.stream_events(GIVEN, config, version="v3")
        events, found = list(run), run.interrupts
    open_now = graph.get_state(config).interrupts
    assert tuple(found) == open_now
    at_root = [e["params"] for e in events if e["method"] == "values" and not e["params"]["namespace"]]
    assert [params.get("interrupts", ()) for params in at_root if params.get("interrupts")] == [open_now]
    assert at_root[-1]["interrupts"] == open_now


async def test_s115_langchains_events_have_all_of_them_once_in_the_last_chunk(shelf: Shelf) -> None:
    graph, config = two_questions(shelf.open()), thread()
    told = [
        (event["event"], event["data"])
        async for event in graph.astream_events(GIVEN, config, version="v2")
        if event["name"] == graph.get_name() and not event["parent_ids"]
    ]
    open_now = (await graph.aget_state(config)).interrupts
    chunks = [data["chunk"]["__interrupt__"] for kind, data in told if "__interrupt__" in data.get("chunk", {})]
    assert chunks == [open_now]
    assert [kind for kind, _ in told[-2:]] == ["on_chain_stream", "on_chain_end"]


# --- S118 -------------------------------------------------------------------------------------------------------------


def live(parts: Iterator[Any]) -> dict[str, Any]:
    """Do as a page does that renders from the stream alone: what the root said last is what is open."""
    page: dict[str, Any] = {}
    for ns, mode, part in parts:
        if mode == "updates" and not ns:
            page = {i.id: i.value for i in part.get("__interrupt__", ())}
    return page


def test_s118_what_the_stream_showed_is_what_is_there_after_a_reload(shelf: Shelf) -> None:
    config = thread()
    given: Any = GIVEN
    rounds = []
    while True:
        graph = two_questions(shelf.open())
        page = live(graph.stream(given, config, stream_mode=["updates", "values", "messages"], subgraphs=True))
        reloaded = two_questions(shelf.open()).get_state(config)
        assert page == {i.id: i.value for i in reloaded.interrupts}
        assert page == {i.id: i.value for task in reloaded.tasks for i in task.interrupts}
        assert page == {q.id: q.value for q in shelf.open().pending()}
        rounds.append(sorted(page.values()))
        if not page:
            break
        given = Command(resume={next(i for i, value in page.items() if value == max(page.values())): "yes"})
    assert rounds == [["deep?", "own?"], ["deep?"], []]


@pytest.mark.parametrize("subgraphs", [False, True])
@pytest.mark.parametrize("mode", ["values", "updates", "checkpoints", "tasks", "debug"])
@pytest.mark.parametrize(
    "build", [two_questions, lambda saver: side_by_side(saver, own=asks("own?"))], ids=["two", "one"]
)
def test_s118_a_question_that_is_shown_is_on_record_and_can_be_answered(
    shelf: Shelf, mode: str, subgraphs: bool, build: Any
) -> None:
    """Whoever sees it may answer at once, and it does not vanish if the process dies that showed it."""
    graph, reader, config = build(shelf.open()), shelf.open(), thread()
    seen = 0
    for part in graph.stream(GIVEN, config, stream_mode=mode, subgraphs=subgraphs):
        for value, question in shown(mode, part[1] if subgraphs else part):
            assert (question, value) in {(q.id, q.value) for q in reader.pending()}
            seen += 1
    assert seen


@pytest.mark.parametrize("mode", ["values", "updates", "checkpoints", "tasks", "debug"])
def test_s118_a_consumer_that_leaves_at_a_question_leaves_a_thread_that_waits(
    shelf: Shelf, call: Call, mode: str
) -> None:
    graph, config = two_questions(shelf.open()), thread()
    for _, part in graph.stream(GIVEN, config, stream_mode=mode, subgraphs=True):
        if shown(mode, part):
            break
    row = shelf.open().thread(ThreadKey(config["configurable"]["thread_id"], "LangGraph"))
    assert row is not None
    assert (row.status, row.owner) == ("waiting", None)
    again = two_questions(shelf.open())
    answers = {i.id: f"{i.value} yes" for i in again.get_state(config).interrupts}
    assert sorted(call(again, Command(resume=answers), config)["log"]) == ["deep? yes", "note", "note", "own? yes"]


def test_s118_handlers_hear_of_a_pause_whose_consumer_has_left(shelf: Shelf) -> None:
    """Otherwise nobody would be called to answer it."""
    heard: list[Any] = []

    class Handler(GraphCallbackHandler):
        def on_interrupt(self, event: Any) -> None:
            heard.extend(i.value for i in event.interrupts)

    graph, config = side_by_side(shelf.open(), free=note, own=asks("own?")), thread() | {"callbacks": [Handler()]}
    stream = graph.stream(GIVEN, config, stream_mode="tasks")
    for _ in range(3):  # both have started, and one has ended
        next(stream)
    stream.close()
    assert heard == ["own?"]
    assert asked(graph.invoke(None, config))
    assert heard == ["own?"]


# --- S121 -------------------------------------------------------------------------------------------------------------


def test_s121_finished_work_is_shown_while_a_sibling_still_comes_to_its_question(shelf: Shelf, call: Call) -> None:
    """Its follower belongs to the next superstep, so it waits for the answer (see docs/questions.md)."""
    seen = threading.Event()

    def slow(state: State) -> State:
        assert seen.wait(10)
        return {"log": [interrupt("slow?")]}

    graph: Any = StateGraph(State).add_node("free", note).add_node("slow", slow)
    graph.add_node("follower", lambda s: {"log": ["follower"]}).add_edge("free", "follower")
    graph = graph.add_edge(START, "free").add_edge(START, "slow").compile(checkpointer=shelf.open())
    config, order = thread(), []
    for part in graph.stream(GIVEN, config):
        order.extend(part)
        seen.set()
    assert order == ["free", "__interrupt__"]
    assert graph.get_state(config).next == ("slow",)
    assert call(graph, Command(resume="yes"), config)["log"] == ["note", "yes", "follower"]


def test_s121_finished_work_inside_a_subgraph_is_shown_at_once_too(shelf: Shelf) -> None:
    seen = threading.Event()

    def slow(state: State) -> State:
        assert seen.wait(10)
        return {"log": [interrupt("slow?")]}

    graph = side_by_side(shelf.open(), low=side_by_side(None, free=note, slow=slow))
    order = []
    for _, part in graph.stream(GIVEN, thread(), subgraphs=True):
        order.extend(part)
        seen.set()
    assert order == ["free", "__interrupt__"]
