"""Event streams: a run object that goes on as far as its projections are consumed, blocking and on an event loop."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from typing import Any

import langchain_core.language_models
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage

from tests.behaviours.conftest import Call, Consumed
from tests.behaviours.graphs import thread
from tests.behaviours.speaking import EMPTY, Speaker, asks, chain, fails, nested, speaks, whole
from waitpoint.config import get_stream_writer
from waitpoint.errors import ConfigError, PendingQuestionsError
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt

# --- the run ----------------------------------------------------------------------------------------------------------


def test_nothing_runs_until_the_run_is_consumed(saver: Any) -> None:
    """B192"""
    runs: list[int] = []

    def node(state: Any) -> Any:
        runs.append(1)
        return {}

    run = chain(saver, node).stream_events(EMPTY, thread(), version="v3")
    assert (runs, saver.threads()) == ([], [])
    assert run.output == EMPTY
    assert runs == [1]


@pytest.mark.parametrize("options", [{}, {"version": "v2"}, {"version": "v1"}])
def test_other_versions_are_refused_and_the_right_one_named(saver: Any, options: Any) -> None:
    """B192"""
    graph = chain(saver, whole)
    with pytest.raises(ConfigError, match='pass version="v3"'):
        graph.stream_events(EMPTY, thread(), **options)
    with pytest.raises(ConfigError, match='pass version="v3"'):
        asyncio.run(graph.astream_events(EMPTY, thread(), version="v1"))
    for chosen in ({"stream_mode": "values"}, {"transformers": [object]}):
        with pytest.raises(ConfigError, match=r"Event streams choose|Transformers make"):
            graph.astream_events(EMPTY, thread(), version="v2", **chosen)


def test_a_langchain_core_that_is_too_old_is_named_with_the_cure(saver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(langchain_core.language_models, "chat_model_stream")
    monkeypatch.setitem(sys.modules, "langchain_core.language_models.chat_model_stream", None)
    with pytest.raises(ConfigError, match="pip install -U langchain-core"):
        chain(saver, whole).stream_events(EMPTY, thread(), version="v3")


@pytest.mark.parametrize("options", [{"stream_mode": "values"}, {"subgraphs": True}])
def test_modes_cannot_be_chosen(saver: Any, options: Any) -> None:
    with pytest.raises(ConfigError, match="leave out"):
        chain(saver, whole).stream_events(EMPTY, thread(), version="v3", **options)


def test_options_of_invoke_are_options_of_the_run(saver: Any, consumed: Consumed) -> None:
    config, graph = thread(), chain(saver, whole, asks)
    assert consumed(graph, "interrupts", EMPTY, config, interrupt_before=["asks"]) == []
    assert graph.get_state(config).next == ("asks",)
    with pytest.raises(ConfigError, match="wrong"):
        consumed(graph, "output", EMPTY, config, wrong=1)


def test_raw_events_have_an_envelope_and_growing_numbers(saver: Any, consumed: Consumed) -> None:
    """B193"""
    inner = chain(None, speaks(Speaker(texts=["hello world"])))
    events = consumed(chain(saver, inner=inner, whole=whole), "events", EMPTY, thread())
    numbers = [event["seq"] for event in events]
    assert numbers == sorted(set(numbers))
    for event in events:
        assert (event["type"], set(event)) == ("event", {"type", "method", "params", "seq"})
        assert {"namespace", "timestamp", "data"} <= event["params"].keys()
        assert isinstance(event["params"]["namespace"], list)
        assert isinstance(event["params"]["timestamp"], int)
    assert {e["method"] for e in events} == {"values", "messages", "lifecycle"}
    assert [len(e["params"]["namespace"]) for e in events if e["method"] == "values"] == [0, 1, 1, 0, 0]


def test_projections_are_attributes_and_a_mapping_that_nobody_changes(saver: Any) -> None:
    """B194"""
    run = chain(saver, whole).stream_events(EMPTY, thread(), version="v3")
    assert set(run.extensions) == {"values", "messages", "lifecycle", "subgraphs"}
    assert all(getattr(run, name) is projection for name, projection in run.extensions.items())
    with pytest.raises(TypeError):
        run.extensions["mine"] = 1
    with pytest.raises(AttributeError, match="lifecycle, messages, subgraphs, values"):
        _ = run.nothing


def test_the_output_is_the_last_of_the_values(saver: Any, consumed: Consumed) -> None:
    """B195"""
    graph, config = chain(saver, whole), thread()
    output = consumed(graph, "output", EMPTY, config)
    assert output == graph.get_state(config).values
    assert consumed(graph, "values", EMPTY, thread())[-1] == output


def test_what_one_projection_passes_is_kept_for_the_others(saver: Any) -> None:
    """B194"""
    graph = chain(saver, speaks(Speaker(texts=["hello world"])), whole)
    run = graph.stream_events(EMPTY, thread(), version="v3")
    assert [message.text.get() for message in run.messages] == ["hello world ", "two words"]
    assert [len(values["messages"]) for values in run.values] == [0, 1, 3]
    assert [len(values["messages"]) for values in run.values] == [0, 1, 3]
    assert len(list(run)) > 3
    assert (len(run.output["messages"]), run.interrupted) == (3, False)


def test_streaming_changes_nothing_of_what_is_stored(saver: Any, consumed: Consumed) -> None:
    """a run by events stores what `invoke` stores"""
    one, other = thread(), thread()
    output = consumed(chain(saver, speaks(Speaker(texts=["hello"], named="m"))), "output", EMPTY, one)
    assert output == chain(saver, speaks(Speaker(texts=["hello"], named="m"))).invoke(EMPTY, other)
    assert isinstance(output["messages"][0].content, str)


# --- questions --------------------------------------------------------------------------------------------------------


def test_a_run_that_rests_with_questions_says_so_and_has_the_state_so_far(saver: Any, consumed: Consumed) -> None:
    """B195, founding document: streaming"""
    graph, config = chain(saver, whole, asks), thread()
    assert consumed(graph, "interrupted", EMPTY, config) is True
    (question,) = consumed(graph, "interrupts", None, config)
    assert (question.payload, question.interrupt_id) == ("ok?", graph.get_state(config).interrupts[0].id)
    assert [m.id for m in consumed(graph, "output", None, config)["messages"]] == ["a", "t"]
    answered = consumed(graph, "output", Command(resume={question.interrupt_id: "yes"}), config)
    assert answered["messages"][-1].content == "yes"


def test_the_questions_are_beside_the_last_values_and_not_in_them(saver: Any, consumed: Consumed) -> None:
    """B195, architecture 3"""
    graph, config = chain(saver, asks), thread()
    *_, last = [e for e in consumed(graph, "events", EMPTY, config) if e["method"] == "values"]
    assert last["params"]["data"] == EMPTY
    assert last["params"]["interrupts"] == graph.get_state(config).interrupts


def test_an_empty_state_stays_one_at_a_question(saver: Any, consumed: Consumed) -> None:
    """B195"""
    graph: Any = StateGraph(dict).add_node("asks", lambda s: interrupt("?") and {}).add_edge(START, "asks")
    graph, config = graph.compile(checkpointer=saver), thread()
    assert [consumed(graph, "output", given, config) for given in ({}, None)] == [{}, {}]


def test_a_conversation_goes_on_over_questions_with_tokens(saver: Any) -> None:
    """founding document: streaming"""
    model = Speaker(texts=["may I ?", "thank you"])

    def approve(state: Any) -> Any:
        return {"messages": [HumanMessage(interrupt({"asks": state["messages"][-1].content}))]}

    def answer(state: Any) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    graph, config = chain(saver, speaks(model), approve, answer), thread()
    said: list[str] = []
    run = graph.stream_events(EMPTY, config, version="v3")
    for message in run.messages:
        said.extend(message.text)
    assert run.interrupted
    answers = {question.interrupt_id: "yes" for question in run.interrupts}
    run = graph.stream_events(Command(resume=answers), config, version="v3")
    for message in run.messages:
        said.extend(message.text)
    assert not run.interrupted
    assert said == ["may ", "I ", "? ", "yes", "thank ", "you "]


async def test_the_same_conversation_on_an_event_loop(saver: Any) -> None:
    """founding document: streaming"""
    model = Speaker(texts=["may I ?", "thank you"])

    async def speak(state: Any) -> Any:
        return {"messages": [await model.ainvoke("say")]}

    async def approve(state: Any) -> Any:
        return {"messages": [HumanMessage(interrupt("?"))]}

    graph, config = chain(saver, speak, approve, answer=speak), thread()
    said: list[str] = []
    given: Any = EMPTY
    while True:
        run = await graph.astream_events(given, config, version="v3")
        async for message in run.messages:
            async for token in message.text:
                said.append(token)
        if not await run.interrupted():
            break
        given = Command(resume={question.interrupt_id: "yes" for question in await run.interrupts()})
    assert said == ["may ", "I ", "? ", "yes", "thank ", "you "]


# --- errors -----------------------------------------------------------------------------------------------------------

WAYS = ["output", "values", "events", "interrupted", "interrupts", "messages", "lifecycle", "subgraphs"]


@pytest.mark.parametrize("way", WAYS)
def test_an_error_is_raised_by_every_way_of_consuming(saver: Any, consumed: Consumed, way: str) -> None:
    """B196"""
    with pytest.raises(KeyError, match="broken"):
        consumed(chain(saver, whole, fails), way, EMPTY, thread())


def test_an_error_is_raised_again_by_each_consumer_after_what_came_before(saver: Any) -> None:
    """B196"""
    run = chain(saver, whole, fails).stream_events(EMPTY, thread(), version="v3")
    seen = []
    for _ in range(2):
        with pytest.raises(KeyError):
            seen += [len(values["messages"]) for values in run.values]
        values = iter(run.values)
        seen += [len(next(values)["messages"]), len(next(values)["messages"])]
    assert seen == [0, 2, 0, 2]
    with pytest.raises(KeyError):
        _ = run.output


def test_an_input_that_is_refused_is_an_error_of_the_run(saver: Any, consumed: Consumed) -> None:
    """B196"""
    graph, config = chain(saver, asks), thread()
    consumed(graph, "output", EMPTY, config)
    with pytest.raises(PendingQuestionsError):
        consumed(graph, "output", EMPTY, config)


# --- runs in runs -----------------------------------------------------------------------------------------------------


def test_a_stream_of_messages_in_a_run_stays_one_of_chunks(saver: Any, consumed: Consumed) -> None:
    """B207: and the run has the tokens too"""
    inner = chain(None, speaks(Speaker(texts=["hello world"])))
    heard: list[Any] = []

    def relays(state: Any) -> Any:
        heard.extend(inner.stream(EMPTY, stream_mode="messages"))
        return {}

    events = consumed(chain(saver, relays), "events", EMPTY, thread())
    assert [type(m) for m, _ in heard if m.content] == [AIMessageChunk] * 2
    data = [e["params"]["data"][0] for e in events if e["method"] == "messages"]
    deltas = [d["delta"]["text"] for d in data if d["event"] == "content-block-delta"]
    assert deltas == ["hello ", "world "]


def test_a_run_in_a_node_is_a_run_of_its_own_and_pauses_with_its_node(saver: Any, call: Call) -> None:
    """B192"""
    inner = chain(None, whole, asks)
    namespaces: list[Any] = []

    def relays(state: Any) -> Any:
        run = inner.stream_events(EMPTY, version="v3")
        namespaces.extend(event["params"]["namespace"] for event in run)
        return {"messages": run.output["messages"]}

    graph, config = chain(saver, relays), thread()
    (question,) = call(graph, EMPTY, config)["__interrupt__"]
    assert question.value == "ok?"
    assert [m.id for m in call(graph, Command(resume="yes"), config)["messages"]] == ["a", "t", "answer"]
    assert set(map(tuple, namespaces)) == {()}


# --- leaving ----------------------------------------------------------------------------------------------------------


def test_leaving_the_run_stops_it_and_leaves_the_thread_ready(saver: Any) -> None:
    """B206"""
    runs: list[str] = []
    graph, config = nested(saver, runs), thread()
    with graph.stream_events(EMPTY, config, version="v3") as run:
        next(iter(run.subgraphs))
    run.abort()
    assert list(run.values)[:1] == [EMPTY]
    assert runs in ([], ["a"])
    assert [m.id for m in graph.invoke(None, config)["messages"]] == ["a", "b", "c", "last"]


def test_a_node_may_abort_its_own_run(saver: Any) -> None:
    """B206: it is stopped after that node"""
    runs: list[Any] = []

    def stops(state: Any) -> Any:
        runs[0].abort()
        return {"messages": [AIMessage("stopped", id="s")]}

    graph, config = chain(saver, stops, whole), thread()
    runs.append(graph.stream_events(EMPTY, config, version="v3"))
    assert len(runs[0].output["messages"]) <= 1
    assert [m.id for m in graph.invoke(None, config)["messages"]] == ["s", "a", "t"]


def test_a_run_that_was_never_consumed_can_be_left(saver: Any) -> None:
    """B206"""
    run = chain(saver, whole).stream_events(EMPTY, thread(), version="v3")
    run.abort()
    assert (list(run), run.output, saver.threads()) == ([], None, [])


async def test_abort_cancels_running_nodes_of_nested_graphs(saver: Any) -> None:
    """B206"""
    told: list[str] = []
    started = asyncio.Event()

    async def waits(state: Any) -> Any:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append("cancelled")
            raise

    graph, config = chain(saver, inner=chain(None, waits)), thread()
    run = await graph.astream_events(EMPTY, config, version="v3")
    output = asyncio.ensure_future(run.output())
    await started.wait()
    await run.abort()
    await run.abort()
    assert told == ["cancelled"]
    assert await output == EMPTY
    assert graph.get_state(config).next == ("inner",)


async def test_leaving_the_context_aborts_the_run(saver: Any) -> None:
    """B206"""
    runs: list[str] = []
    graph, config = nested(saver, runs), thread()
    async with await graph.astream_events(EMPTY, config, version="v3") as run:
        async for _ in run.subgraphs:
            break
    assert "last" not in runs
    assert [m.id for m in (await graph.ainvoke(None, config))["messages"]] == ["a", "b", "c", "last"]


@pytest.mark.parametrize("way", ["values", "messages", "texts", "parts"])
@pytest.mark.parametrize("node", [fails, whole])
def test_a_run_that_nobody_follows_any_more_ends_with_its_loop_without_complaint(
    saver: Any, way: str, node: Any
) -> None:
    """B206"""
    complaints: list[Any] = []
    graph, config = chain(saver, speaks(Speaker(texts=["hello big world"])), whole, last=node), thread()

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        if way == "parts":
            async for _ in graph.astream(EMPTY, config, stream_mode="messages"):
                return
        run = await graph.astream_events(EMPTY, config, version="v3")
        async for item in run.values if way == "values" else run.messages:
            if way == "texts":
                async for _ in item.text:
                    return
            return

    asyncio.run(main())
    gc.collect()
    assert complaints == []
    assert graph.get_state(config).next in (("speaks",), ("whole",), ("last",))


async def test_a_consumer_that_is_cancelled_does_not_cancel_the_run(saver: Any) -> None:
    """B206"""
    started, go_on = asyncio.Event(), asyncio.Event()

    async def waits(state: Any) -> Any:
        started.set()
        await go_on.wait()
        return {"messages": [AIMessage("done", id="d")]}

    run = await chain(saver, waits).astream_events(EMPTY, thread(), version="v3")
    output = asyncio.ensure_future(run.output())
    await started.wait()
    output.cancel()
    await asyncio.wait([output])
    go_on.set()
    assert [m.id for m in (await run.output())["messages"]] == ["d"]


# --- several projections at once --------------------------------------------------------------------------------------


def test_interleaved_projections_come_in_the_order_of_arrival(saver: Any) -> None:
    graph = chain(saver, speaks(Speaker(texts=["hello world"])), inner=chain(None, whole))
    run = graph.stream_events(EMPTY, thread(), version="v3")
    names = [name for name, _ in run.interleave("values", "messages", "subgraphs")]
    assert names == ["values", "messages", "values", "subgraphs", "values"]
    with pytest.raises(KeyError, match="there are lifecycle, messages, subgraphs, values"):
        next(run.interleave("values", "wrong"))


def test_interleaving_raises_the_error_of_the_run(saver: Any) -> None:
    """B196"""
    run = chain(saver, whole, fails).stream_events(EMPTY, thread(), version="v3")
    seen = []
    with pytest.raises(KeyError, match="broken"):
        for name, _ in run.interleave("values", "messages"):
            seen.append(name)
    assert seen == ["values", "messages", "values"]


async def test_several_consumers_share_a_run_on_an_event_loop(saver: Any) -> None:
    graph = chain(saver, speaks(Speaker(texts=["hello world"])), whole)
    run = await graph.astream_events(EMPTY, thread(), version="v3")

    async def texts() -> list[Any]:
        return [[token async for token in message.text] async for message in run.messages]

    async def values() -> list[int]:
        return [len(v["messages"]) async for v in run.values]

    async def interleaved() -> list[str]:
        return [name async for name, _ in run.interleave("values", "messages")]

    found = await asyncio.gather(texts(), values(), run.output(), run.interrupted(), interleaved())
    assert found[:2] == [[["hello ", "world "], ["two words"]], [0, 1, 3]]
    assert (len(found[2]["messages"]), found[3]) == (3, False)
    assert found[4] == ["values", "messages", "values", "messages", "values"]


def test_several_threads_share_a_run(saver: Any) -> None:
    run = chain(saver, speaks(Speaker(texts=["hello world"])), whole).stream_events(EMPTY, thread(), version="v3")
    found: list[Any] = []
    consumers = [threading.Thread(target=lambda: found.append(len(list(run.values)))) for _ in range(4)]
    for consumer in consumers:
        consumer.start()
    for consumer in consumers:
        consumer.join(20)
    assert found == [3] * 4


def test_a_projection_is_read_as_its_run_is(saver: Any) -> None:
    run = chain(saver, whole).stream_events(EMPTY, thread(), version="v3")
    with pytest.raises(TypeError, match="read with `for`"):
        aiter(run.values)
    run.abort()


def test_values_of_a_state_that_is_one_bare_value_stay_bare_at_a_question(saver: Any, consumed: Consumed) -> None:
    """B195"""
    graph: Any = StateGraph(int).add_node("add", lambda n: n + int(interrupt("how much?"))).add_edge(START, "add")
    graph, config = graph.compile(checkpointer=saver), thread()
    assert consumed(graph, "output", 1, config) == 1
    assert [q.payload for q in consumed(graph, "interrupts", None, config)] == ["how much?"]
    assert consumed(graph, "output", Command(resume="4"), config) == 5


def test_custom_events_are_not_there_unless_asked_for(saver: Any, consumed: Consumed) -> None:
    """B203"""

    def writes(state: Any) -> Any:
        get_stream_writer()("written")
        return {}

    events = consumed(chain(saver, writes), "events", EMPTY, thread())
    assert {e["method"] for e in events} == {"values"}
