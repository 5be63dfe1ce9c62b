"""Event streams: handles of the graphs nested in a run, and their lifecycle."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from tests.behaviours.conftest import Consumed
from tests.behaviours.graphs import builder, thread
from tests.behaviours.speaking import EMPTY, Speaker, asks, chain, fails, nested, speaks, whole
from waitpoint.graph import START, MessagesState, StateGraph
from waitpoint.types import Command

# --- subgraphs --------------------------------------------------------------------------------------------------------


def test_handles_of_subgraphs_have_their_own_projections(saver: Any) -> None:
    """B198"""
    run = nested(saver, []).stream_events(EMPTY, thread(), version="v3")
    told = []
    for handle in run.subgraphs:
        assert handle.status == "started"
        assert [part.split(":")[0] for part in handle.path] == [handle.graph_name]
        inside = [(h.graph_name, [str(m.text) for m in h.messages]) for h in handle.subgraphs]
        texts = [str(message.text) for message in handle.messages]
        told.append((handle.graph_name, texts, inside, len(handle.output["messages"]), handle.status))
    assert told == [
        ("one", ["a"], [], 1, "completed"),
        ("two", ["b"], [("deep", ["c"])], 3, "completed"),
    ]
    assert [str(message.text) for message in run.messages] == ["last"]
    assert [len(values["messages"]) for values in run.values] == [0, 1, 3, 4]


async def test_handles_of_subgraphs_on_an_event_loop(saver: Any) -> None:
    """B198"""
    run = await nested(saver, []).astream_events(EMPTY, thread(), version="v3")
    told = []
    async for handle in run.subgraphs:
        texts = [await message.text async for message in handle.messages]
        inside = [h.graph_name async for h in handle.subgraphs]
        told.append((handle.graph_name, texts, inside, len((await handle.output())["messages"]), handle.status))
    assert told == [("one", ["a"], [], 1, "completed"), ("two", ["b"], ["deep"], 3, "completed")]


def test_the_output_of_a_handle_does_not_run_on_into_the_next_node(saver: Any) -> None:
    """B199"""
    runs: list[str] = []
    run = nested(saver, runs).stream_events(EMPTY, thread(), version="v3")
    handles = iter(run.subgraphs)
    assert len(next(handles).output["messages"]) == 1
    assert runs == ["a"]
    assert len(next(handles).output["messages"]) == 3
    assert runs == ["a", "b", "c"]
    run.abort()


def test_a_compiled_name_is_the_name_of_the_handle(saver: Any) -> None:
    """B198"""
    inner: Any = builder(whole, schema=MessagesState).compile(name="helper")
    run = chain(saver, inner=inner).stream_events(EMPTY, thread(), version="v3")
    assert [h.graph_name for h in run.subgraphs] == ["helper"]


def test_graphs_that_one_function_calls_have_a_handle_each(saver: Any, consumed: Consumed) -> None:
    """B198"""
    inner = chain(None, speaks(Speaker(texts=["one", "two"])))

    def calls(state: Any) -> Any:
        return {"messages": [inner.invoke(EMPTY)["messages"][0] for _ in range(2)]}

    run = chain(saver, calls).stream_events(EMPTY, thread(), version="v3")
    told = [([str(m.text) for m in handle.messages], handle.path) for handle in run.subgraphs]
    assert [texts for texts, _ in told] == [["one "], ["two "]]
    assert told[1][1] == (*told[0][1], "1")
    assert consumed(chain(saver, calls), "texts", EMPTY, thread()) == []


def test_a_failed_subgraph_fails_its_handle_with_the_text(saver: Any) -> None:
    """B200"""
    run = chain(saver, inner=chain(None, fails)).stream_events(EMPTY, thread(), version="v3")
    handle = next(iter(run.subgraphs))
    with pytest.raises(RuntimeError) as caught:
        _ = handle.output
    assert (str(caught.value), handle.error, handle.status) == ("'broken'", "'broken'", "failed")
    with pytest.raises(RuntimeError):
        list(handle.values)
    with pytest.raises(KeyError):
        _ = run.output


async def test_a_subgraph_that_goes_down_with_its_run_has_failed(saver: Any) -> None:
    """B196, B200"""
    started = asyncio.Event()

    async def waits(state: Any) -> Any:
        started.set()
        await asyncio.Event().wait()

    async def fails_late(state: Any) -> Any:
        await started.wait()
        raise KeyError("broken")

    graph: Any = StateGraph(MessagesState)
    for name, node in (("quiet", waits), ("loud", fails_late)):
        graph.add_node(name, chain(None, node)).add_edge(START, name)
    run = await graph.compile(checkpointer=saver).astream_events(EMPTY, thread(), version="v3")
    handles = {}
    with pytest.raises(KeyError):
        async for handle in run.subgraphs:
            handles[handle.graph_name] = handle
    assert {name: (h.status, h.error) for name, h in handles.items()} == dict.fromkeys(
        ("quiet", "loud"), ("failed", "'broken'")
    )
    with pytest.raises(RuntimeError, match="broken"):
        await handles["quiet"].output()


def test_a_subgraph_that_asks_is_interrupted_and_has_the_question(saver: Any) -> None:
    """B198, B201"""
    config = thread()
    run = chain(saver, inner=chain(None, whole, asks)).stream_events(EMPTY, config, version="v3")
    (handle,) = run.subgraphs
    assert (handle.status, handle.interrupted, len(handle.output["messages"])) == ("interrupted", True, 2)
    assert handle.interrupts == run.interrupts
    again = chain(saver, inner=chain(None, whole, asks)).stream_events(Command(resume="yes"), config, version="v3")
    (handle,) = again.subgraphs
    assert [str(message.text) for message in handle.messages] == ["yes"]
    assert (handle.status, again.interrupted) == ("completed", False)


def test_the_lifecycle_tells_of_every_nested_graph(saver: Any, consumed: Consumed) -> None:
    """B201"""
    told = consumed(nested(saver, []), "lifecycle", EMPTY, thread())
    assert [(t["event"], [part.split(":")[0] for part in t["namespace"]]) for t in told] == [
        ("started", ["one"]),
        ("completed", ["one"]),
        ("started", ["two"]),
        ("started", ["two", "deep"]),
        ("completed", ["two", "deep"]),
        ("completed", ["two"]),
    ]
    assert [t["graph_name"] for t in told if t["event"] == "started"] == ["one", "two", "deep"]


@pytest.mark.parametrize(("node", "event"), [(fails, "failed"), (asks, "interrupted")])
def test_the_lifecycle_tells_of_failures_and_pauses(saver: Any, node: Any, event: str) -> None:
    """B201"""
    run = chain(saver, inner=chain(None, node)).stream_events(EMPTY, thread(), version="v3")
    lifecycle = iter(run.lifecycle)
    assert [next(lifecycle)["event"], next(lifecycle)["event"]] == ["started", event]


def test_a_command_to_the_parent_completes_the_subgraph(saver: Any, consumed: Consumed) -> None:
    """B201"""

    def leaves(state: Any) -> Any:
        return Command(graph=Command.PARENT, update={"messages": [AIMessage("left", id="l")]})

    graph = chain(saver, inner=chain(None, leaves))
    assert [t["event"] for t in consumed(graph, "lifecycle", EMPTY, thread())] == ["started", "completed"]
