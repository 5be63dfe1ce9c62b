"""Mode `tools`: what tools do while they are called, in agents, in nodes and in graphs nested in these."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.tools import tool

from tests.agents.scripted import Scripted, calls
from tests.behaviours.conftest import Call
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import HumanInTheLoopMiddleware
from waitpoint.errors import GraphDrained, ParentCommand
from waitpoint.graph import START, MessagesState, StateGraph
from waitpoint.prebuilt import ToolNode, ToolRuntime
from waitpoint.runtime import RunControl
from waitpoint.stream.tools import ToolListener
from waitpoint.types import Command, interrupt

CONFIG: Any = {"configurable": {"thread_id": "t"}}
GO: Any = {"messages": [("user", "go")]}


@tool
def spell(word: str, runtime: ToolRuntime) -> str:
    """Say a word letter by letter."""
    for letter in word:
        runtime.emit_output_delta(letter)
    return word


@tool
def confirm() -> str:
    """Ask."""
    return f"said {interrupt('sure?')}"


@tool
def fail() -> str:
    """Fail."""
    raise ValueError("broken")


@tool
def hand_over() -> Any:
    """Go to the graph around."""
    raise ParentCommand(Command(graph=Command.PARENT, goto="elsewhere"))


def agent(saver: Any, *replies: Any, **options: Any) -> Any:
    return create_agent(Scripted(*replies), [spell, confirm, fail, hand_over], checkpointer=saver, **options)


def short(event: dict[str, Any]) -> tuple[Any, ...]:
    return event["event"], event["tool_call_id"], event.get("delta", event.get("message"))


def test_a_call_is_told_from_its_start_to_its_end(saver: Any, streamed: Call) -> None:
    """B185"""
    graph = agent(saver, calls(("spell", "c1", {"word": "hi"})), "done")
    started, *deltas, finished = streamed(graph, GO, CONFIG, stream_mode="tools")
    assert started == {
        "event": "tool-started", "tool_call_id": "c1", "tool_name": "spell", "input": {"word": "hi"},
    }  # fmt: skip
    assert [short(d) for d in deltas] == [("tool-output-delta", "c1", "h"), ("tool-output-delta", "c1", "i")]
    assert (finished["event"], finished["tool_call_id"], finished["output"].content) == ("tool-finished", "c1", "hi")


def test_an_interrupt_in_a_tool_is_no_error(saver: Any, streamed: Call) -> None:
    """B186"""
    graph = agent(saver, calls(("confirm", "c1", {})), "done")
    assert [e["event"] for e in streamed(graph, GO, CONFIG, stream_mode="tools")] == ["tool-started"]
    started, finished = streamed(graph, Command(resume="yes"), CONFIG, stream_mode="tools")
    assert (started["event"], finished["event"], finished["output"].content) == (
        "tool-started", "tool-finished", "said yes",
    )  # fmt: skip


def test_an_error_is_told_whether_or_not_it_is_answered(saver: Any, streamed: Call) -> None:
    """B185"""
    node = ToolNode([fail], handle_tool_errors=True)
    graph: Any = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile()
    events = streamed(graph, {"messages": [calls(("fail", "c1", {}))]}, stream_mode="tools")
    assert [short(e) for e in events] == [("tool-started", "c1", None), ("tool-error", "c1", "broken")]


def test_a_call_that_waits_for_approval_has_not_started(saver: Any, streamed: Call) -> None:
    gate = HumanInTheLoopMiddleware(interrupt_on={"spell": True})
    graph = agent(saver, calls(("spell", "c1", {"word": "x"})), "done", middleware=[gate])
    assert streamed(graph, GO, CONFIG, stream_mode="tools") == []
    answer = Command(resume={"decisions": [{"type": "approve"}]})
    events = streamed(graph, answer, CONFIG, stream_mode="tools")
    assert [e["event"] for e in events] == ["tool-started", "tool-output-delta", "tool-finished"]


def test_what_is_on_record_does_not_start_again(saver: Any, streamed: Call) -> None:
    graph = agent(saver, calls(("spell", "c1", {"word": "x"}), ("confirm", "c2", {})), "done")
    streamed(graph, GO, CONFIG, stream_mode="tools")
    events = streamed(graph, Command(resume="yes"), CONFIG, stream_mode="tools")
    assert [(e["event"], e["tool_call_id"]) for e in events] == [("tool-started", "c2"), ("tool-finished", "c2")]


def test_deltas_of_parallel_calls_keep_their_ids(saver: Any, streamed: Call) -> None:
    """B187"""
    both = threading.Barrier(2, timeout=10)

    @tool
    def meet(word: str, runtime: ToolRuntime) -> str:
        """Say a word when the other one does."""
        for letter in word:
            both.wait()
            runtime.emit_output_delta(letter)
        return word

    graph: Any = StateGraph(MessagesState).add_node("tools", ToolNode([meet])).add_edge(START, "tools").compile()
    message = calls(("meet", "c1", {"word": "abc"}), ("meet", "c2", {"word": "xyz"}))
    events = streamed(graph, {"messages": [message]}, stream_mode="tools")
    said = {c: "".join(e["delta"] for e in events if "delta" in e and e["tool_call_id"] == c) for c in ("c1", "c2")}
    assert said == {"c1": "abc", "c2": "xyz"}


def nested(saver: Any) -> Any:
    inner: Any = StateGraph(MessagesState).add_node("tools", ToolNode([spell])).add_edge(START, "tools").compile()
    return StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner").compile(checkpointer=saver)


def test_events_of_a_tool_in_a_subgraph_have_its_namespace(saver: Any, streamed: Call) -> None:
    """B187"""
    given = {"messages": [calls(("spell", "c1", {"word": "x"}))]}
    parts = streamed(nested(saver), given, CONFIG, stream_mode=["tools"], subgraphs=True)
    assert {(len(ns), ns[0].split(":")[0], mode) for ns, mode, _ in parts} == {(1, "inner", "tools")}
    assert [p["event"] for *_, p in parts] == ["tool-started", "tool-output-delta", "tool-finished"]
    other = {"configurable": {"thread_id": "other"}}
    assert streamed(nested(saver), given, other, stream_mode="tools") == []


@pytest.mark.parametrize("subgraphs", [False, True])
def test_a_graph_that_a_node_streams_tells_that_node(saver: Any, streamed: Call, subgraphs: bool) -> None:
    """B188"""
    inner: Any = StateGraph(MessagesState).add_node("tools", ToolNode([spell])).add_edge(START, "tools").compile()
    heard: list[Any] = []

    def runs(state: MessagesState) -> Any:
        heard.extend(inner.stream(state, stream_mode="tools"))
        return {}

    graph: Any = StateGraph(MessagesState).add_node("runs", runs).add_edge(START, "runs").compile(checkpointer=saver)
    given = {"messages": [calls(("spell", "c1", {"word": "x"}))]}
    outer = streamed(graph, given, CONFIG, stream_mode="tools", subgraphs=subgraphs)
    assert [e["event"] for e in heard] == ["tool-started", "tool-output-delta", "tool-finished"]
    assert [e for _, e in outer] == heard if subgraphs else outer == []


def test_a_tool_that_a_node_calls_by_itself_is_heard_with_its_config() -> None:
    @tool
    def add(a: int) -> int:
        """Add one."""
        return a + 1

    def node(state: MessagesState) -> Any:
        add.invoke({"name": "add", "args": {"a": 1}, "id": "mine", "type": "tool_call"})
        return {}

    graph: Any = StateGraph(MessagesState).add_node("node", node).add_edge(START, "node").compile()
    events = list(graph.stream({"messages": []}, stream_mode="tools"))
    assert [(e["event"], e["tool_call_id"]) for e in events] == [("tool-started", "mine"), ("tool-finished", "mine")]


def test_a_hand_over_to_the_graph_around_ends_as_an_error(saver: Any, streamed: Call) -> None:
    """B186"""
    graph = agent(None, calls(("hand_over", "c1", {})))
    outer: Any = StateGraph(MessagesState).add_node("agent", graph).add_node("elsewhere", lambda s: {})
    compiled = outer.add_edge(START, "agent").compile(checkpointer=saver)
    parts = streamed(compiled, GO, CONFIG, stream_mode="tools", subgraphs=True)
    assert [p["event"] for _, p in parts] == ["tool-started", "tool-error"]


def test_a_drain_is_no_error_of_the_tool_in_which_a_graph_stops(saver: Any, streamed: Call) -> None:
    """B186"""
    control = RunControl()

    def stops(state: MessagesState) -> Any:
        control.request_drain("update")
        return {}

    inner: Any = StateGraph(MessagesState).add_node("stops", stops).add_node("last", lambda s: {})
    inner = inner.add_edge(START, "stops").add_edge("stops", "last").compile()

    @tool
    def runs() -> str:
        """Run a graph."""
        inner.invoke({"messages": []})
        return "run"

    graph: Any = StateGraph(MessagesState).add_node("tools", ToolNode([runs])).add_edge(START, "tools")
    compiled, events = graph.compile(checkpointer=saver), []
    with pytest.raises(GraphDrained):
        for event in compiled.stream(
            {"messages": [calls(("runs", "c1", {}))]}, CONFIG, stream_mode="tools", control=control
        ):
            events.append(event["event"])
    assert events == ["tool-started"]
    assert [e["event"] for e in streamed(compiled, None, CONFIG, stream_mode="tools")] == [
        "tool-started", "tool-finished",
    ]  # fmt: skip


def test_deltas_go_out_while_the_tool_runs() -> None:
    heard = asyncio.Event()

    @tool
    async def waits(runtime: ToolRuntime) -> str:
        """Wait until the delta was heard."""
        runtime.emit_output_delta("now")
        await asyncio.wait_for(heard.wait(), 10)
        return "heard"

    async def consumed() -> list[str]:
        graph: Any = StateGraph(MessagesState).add_node("tools", ToolNode([waits])).add_edge(START, "tools").compile()
        events = []
        async for event in graph.astream({"messages": [calls(("waits", "c1", {}))]}, stream_mode="tools"):
            events.append(event["event"])
            if "delta" in event:
                heard.set()
        return events

    assert asyncio.run(consumed()) == ["tool-started", "tool-output-delta", "tool-finished"]


@pytest.mark.parametrize("use_async", [False, True])
def test_an_older_langchain_core_tells_neither_ids_nor_shows_what_is_injected(
    monkeypatch: pytest.MonkeyPatch, use_async: bool
) -> None:
    """It tells a handler all inputs and no id."""
    told = ToolListener.on_tool_start

    def older(self: Any, *args: Any, inputs: Any = None, tool_call_id: Any = None, **known: Any) -> None:
        inputs = {**(inputs or {}), "runtime": "with secrets"} if known.get("name") != "inner" else inputs
        told(self, *args, inputs=inputs, **known)

    monkeypatch.setattr(ToolListener, "on_tool_start", older)

    @tool
    def inner(a: int) -> int:
        """Be called by a tool."""
        return a

    @tool
    def outer(word: str, runtime: ToolRuntime) -> str:
        """Call a tool."""
        inner.invoke({"a": 1}, runtime.config)
        runtime.emit_output_delta(word)
        return word

    graph: Any = StateGraph(MessagesState).add_node("tools", ToolNode([outer])).add_edge(START, "tools").compile()
    given = {"messages": [calls(("outer", "c1", {"word": "x"}))]}

    async def collected() -> list[Any]:
        return [event async for event in graph.astream(given, stream_mode="tools")]

    events = asyncio.run(collected()) if use_async else list(graph.stream(given, stream_mode="tools"))
    own = [e for e in events if e["tool_call_id"] == "c1"]
    assert [e["event"] for e in own] == ["tool-started", "tool-output-delta", "tool-finished"]
    assert own[0]["input"] == {"word": "x"}
    assert [e["event"] for e in events if e not in own] == ["tool-started", "tool-finished"]
