"""Drawings: nodes and edges as LangGraph has them, in Mermaid, in letters and as JSON, with what waits in a thread."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Literal, TypedDict

import langgraph.graph
import langgraph.types
import pytest
from langchain.agents import create_agent as peer_agent
from langchain_core.runnables import RunnableLambda, graph_mermaid
from langchain_core.tools import tool

import waitpoint.graph
import waitpoint.types
from tests.agents.scripted import Scripted, calls
from tests.behaviours.graphs import chain, thread
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import HumanInTheLoopMiddleware
from waitpoint.func import entrypoint
from waitpoint.graph import END, START, StateGraph
from waitpoint.types import interrupt


class State(TypedDict, total=False):
    log: list[str]


def node(state: State) -> State:
    return {}


def by_literal(state: State) -> Literal["b", "c"]:
    return "b"


def anywhere(state: State) -> Any:
    return "b"


def ask(state: State) -> State:
    return {"log": [interrupt({"question": "Go?"})]}


def graph_of(*names: str, library: Any = waitpoint.graph) -> Any:
    graph = library.StateGraph(State)
    for name in names:
        graph.add_node(name, node)
    return graph


# --- nodes and edges --------------------------------------------------------------------------------------------------


def chosen_by_literal(graph: Any, types: Any) -> Any:
    made = graph_of("a", "b", "c", library=graph).add_edge(START, "a").add_conditional_edges("a", by_literal)
    return made.add_edge("b", "a").compile()


def chosen_by_map(graph: Any, types: Any) -> Any:
    made = graph_of("a", "b", library=graph).add_edge(START, "a")
    return made.add_conditional_edges("a", anywhere, {True: "b", False: END, "b": "b"}).compile()


def chosen_at_the_start(graph: Any, types: Any) -> Any:
    return graph_of("a", "b", library=graph).add_conditional_edges(START, anywhere, ["a", "b"]).compile()


def commands(graph: Any, types: Any) -> Any:
    def goes(state: State) -> Any:
        return types.Command(goto="b")

    goes.__annotations__["return"] = types.Command[Literal["b", "__end__"]]
    made = graph_of(library=graph).add_node("a", goes).add_node("b", node, destinations={"a": "again"})
    made.add_node("d", node, metadata={"m": 1}, defer=True)
    return made.add_edge(START, "a").add_edge(["a", "b"], "d").compile()


def stopped(graph: Any, types: Any) -> Any:
    made = graph_of("a", "b", library=graph).add_edge(START, "a").add_edge("a", "b")
    return made.compile(interrupt_before=["b"], interrupt_after=["a", "b"])


def nested(graph: Any, types: Any) -> Any:
    deep = graph_of("p", "q", library=graph).add_edge(START, "p").add_edge("p", "q").compile()
    inner = graph_of("x", library=graph).add_node("deep", deep).add_edge(START, "x").add_edge("x", "deep").compile()
    return graph_of("a", library=graph).add_node("inner", inner).add_edge(START, "a").add_edge("a", "inner").compile()


def told(drawing: Any) -> Any:
    nodes = {(n.id, n.name, json.dumps(n.metadata)) for n in drawing.nodes.values()}
    return nodes, {tuple(edge) for edge in drawing.edges}


@pytest.mark.parametrize("xray", [False, 1, True])
@pytest.mark.parametrize(
    "make",
    [chosen_by_literal, chosen_by_map, chosen_at_the_start, commands, stopped, nested],
    ids=lambda make: make.__name__,
)
def test_nodes_and_edges_are_the_peers(make: Any, xray: Any) -> None:
    ours = make(waitpoint.graph, waitpoint.types).get_graph(xray=xray)
    theirs = make(langgraph.graph, langgraph.types).get_graph(xray=xray)
    assert told(ours) == told(theirs)
    assert sorted(ours.draw_mermaid().splitlines()) == sorted(theirs.draw_mermaid().splitlines())


def test_a_router_that_tells_no_ends_may_lead_to_the_end() -> None:
    graph = graph_of("a", "b").add_edge(START, "a").add_conditional_edges("a", anywhere).compile()
    assert {(e.source, e.target, e.conditional) for e in graph.get_graph().edges} == {
        ("__start__", "a", False), ("a", "__end__", True), ("b", "__end__", False),
    }  # fmt: skip


def test_a_graph_that_never_ends_is_drawn_as_a_node_under_xray() -> None:
    inner = graph_of("x", "y").add_edge(START, "x").add_edge("x", "y").add_edge("y", "x").compile()
    graph = graph_of().add_node("inner", inner).add_edge(START, "inner").compile()
    assert list(graph.get_graph(xray=True).nodes) == ["__start__", "inner", "__end__"]


def test_json_tells_nodes_and_edges() -> None:
    graph = nested(waitpoint.graph, waitpoint.types)
    found = graph.get_graph().to_json()
    assert [n["id"] for n in found["nodes"]] == ["__start__", "a", "inner", "__end__"]
    assert [n["data"]["name"] for n in found["nodes"][:3]] == ["__start__", "a", "inner"]
    assert found["edges"][0] == {"source": "__start__", "target": "a"}
    assert json.loads(json.dumps(found)) == found


def test_entrypoints_and_chains_with_graphs_are_drawn() -> None:
    @entrypoint()
    def flow(x: int) -> int:
        return x

    assert [(e.source, e.target) for e in flow.get_graph().edges] == [("__start__", "flow"), ("flow", "__end__")]
    drawn = (RunnableLambda(lambda x: {}) | graph_of("a").add_edge(START, "a").compile()).get_graph()
    assert "a" in {n.name for n in drawn.nodes.values()}


@tool
def delete(path: str) -> str:
    """Delete a file."""
    return path


def test_an_agent_is_drawn_with_its_tools_and_middleware() -> None:
    gate = HumanInTheLoopMiddleware(interrupt_on={"delete": True})
    ours = create_agent(Scripted("x"), [delete], middleware=[gate]).get_graph()
    theirs = peer_agent(Scripted("x"), [delete]).get_graph()
    assert ours.nodes["tools"].metadata == theirs.nodes["tools"].metadata == {"__tools": ["delete"]}
    drawn = {(e.source, e.target) for e in ours.edges}
    hook = "HumanInTheLoopMiddleware.after_model"
    assert drawn >= {("__start__", "model"), ("model", hook), (hook, "tools"), (hook, "__end__"), ("tools", "model")}


# --- what waits -------------------------------------------------------------------------------------------------------


def test_nodes_that_wait_are_marked_with_their_questions(saver: Any) -> None:
    graph, config = chain(saver, node, ask), thread()
    assert "waiting" not in graph.get_graph(config).draw_mermaid()
    graph.invoke({"log": []}, config)
    drawing = graph.get_graph(config)
    assert drawing.nodes["ask"].metadata == {"waits for": ["question: Go?"]}
    assert drawing.nodes["node"].metadata is None
    mermaid = drawing.draw_mermaid()
    assert "ask(ask<hr/><small><em>waits for = question: Go?</em></small>)" in mermaid
    assert mermaid.endswith("\tclass ask waiting\n")
    assert "| ? question: Go? |" in drawing.draw_ascii()
    assert asyncio.run(graph.aget_graph(config)).nodes["ask"].metadata == drawing.nodes["ask"].metadata
    assert "waits" not in graph.get_graph().draw_mermaid()
    assert "waits" not in graph.get_graph(thread("another")).draw_mermaid()


@pytest.mark.parametrize("escapes", [True, False], ids=["as installed", "older langchain-core"])
def test_a_question_cannot_break_the_drawing(saver: Any, monkeypatch: pytest.MonkeyPatch, escapes: bool) -> None:
    if not escapes:
        monkeypatch.delattr(graph_mermaid, "_escape_mermaid_label")
        monkeypatch.setattr(
            graph_mermaid, "_format_metadata_lines", lambda told: [f"{k} = {v}" for k, v in told.items()]
        )
    graph, config = chain(saver, lambda s: {"log": [interrupt('drop ("all"); <b>#1</b>')]}), thread()
    graph.invoke({"log": []}, config)
    (line,) = [line for line in graph.get_graph(config).draw_mermaid().splitlines() if "waits for" in line]
    label = line[line.index("waits for") : line.index("</em>")]
    assert not set(label) & set('()<>[]{}"')
    assert "#quot;" in label if escapes else "#34;" in label


def test_under_xray_the_nested_node_is_marked(saver: Any) -> None:
    graph: Any = StateGraph(State).add_node("inner", chain(None, node, ask)).add_edge(START, "inner")
    graph, config = graph.compile(checkpointer=saver), thread()
    graph.invoke({"log": []}, config)
    assert graph.get_graph(config).nodes["inner"].metadata == {"waits for": ["question: Go?"]}
    deep = graph.get_graph(config, xray=True)
    assert deep.nodes["inner:ask"].metadata == {"waits for": ["question: Go?"]}
    assert deep.nodes["inner:node"].metadata is None
    assert "class inner\\3aask waiting" in deep.draw_mermaid()


def test_an_agent_that_waits_for_a_decision_is_marked(saver: Any) -> None:
    gate = HumanInTheLoopMiddleware(interrupt_on={"delete": True})
    agent = create_agent(
        Scripted(calls(("delete", "c1", {"path": "a"}))), [delete], middleware=[gate], checkpointer=saver
    )
    config = thread()
    agent.invoke({"messages": [("user", "go")]}, config)
    (question,) = agent.get_graph(config).nodes["HumanInTheLoopMiddleware.after_model"].metadata["waits for"]
    assert question.startswith('action_requests: [{"name": "delete"')
    assert len(question) == 60


# --- letters ----------------------------------------------------------------------------------------------------------


def test_letters_show_ways_down_between_boxes_and_others_beside_them() -> None:
    drawn = chosen_by_literal(waitpoint.graph, waitpoint.types).get_graph().draw_ascii()
    assert (
        drawn
        == """\
+-----------+
| __start__ |
+-----------+
      |
      v
+-----------+
| a         |<--+
+-----------+...|..+
      :         |  :
      v         |  :
+-----------+   |  :
| b         |   |  :
+-----------+---+  :
                   :
+-----------+      :
| c         |<.....+
+-----------+
      |
      v
+-----------+
| __end__   |
+-----------+"""
    )


def test_a_node_that_leads_to_itself_and_one_that_nothing_leads_to_are_drawn() -> None:
    made = graph_of("a", "b").add_edge(START, "a").add_conditional_edges("a", anywhere, ["a", END])
    drawn = made.compile().get_graph().draw_ascii().splitlines()
    at = drawn.index("| a         |<..+")
    assert drawn[at + 1] == "+-----------+...+..+"
    assert drawn.index("| b         |      :") > at
    assert all(line == line.rstrip() for line in drawn)
