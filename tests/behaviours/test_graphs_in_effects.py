"""Graphs that are called inside recorded effects keep their place, whatever else of the node runs again."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage
from typing_extensions import TypedDict

from waitpoint.graph import MessagesState, StateGraph
from waitpoint.prebuilt import ToolNode
from waitpoint.types import Command, interrupt, step


class State(TypedDict, total=False):
    said: str


CONFIG: Any = {"configurable": {"thread_id": "1"}}


def asking(name: str, log: list[str]) -> Any:
    def ask(state: State) -> State:
        log.append(name)
        return {"said": f"{state['said']}: {interrupt({'from': name})}"}

    return StateGraph(State).add_node("ask", ask).add_edge("__start__", "ask").compile(name=name)


def test_a_graph_after_a_recorded_one_goes_on_where_it_paused(saver: Any) -> None:
    log: list[str] = []
    first, second = asking("first", log), asking("second", log)

    def node(_: State) -> State:
        one = step(lambda: first.invoke({"said": "a"})["said"])
        return {"said": f"{one}, {second.invoke({'said': 'b'})['said']}"}

    graph = StateGraph(State).add_node("node", node).add_edge("__start__", "node").compile(checkpointer=saver)
    graph.invoke({"said": ""}, CONFIG)
    asked = graph.invoke(Command(resume="yes"), CONFIG)
    assert asked["__interrupt__"][0].value == {"from": "second"}
    assert graph.invoke(Command(resume="no"), CONFIG) == {"said": "a: yes, b: no"}
    assert log == ["first", "first", "second", "second"]


def test_graphs_called_by_parallel_tools_of_one_node_are_told_apart(saver: Any) -> None:
    log: list[str] = []
    graphs = {name: asking(name, log) for name in ("red", "green", "blue")}

    def consult(who: str) -> str:
        """Ask somebody."""
        found: str = graphs[who].invoke({"said": who})["said"]
        return found

    calls = [{"name": "consult", "args": {"who": who}, "id": who} for who in graphs]
    built = StateGraph(MessagesState).add_node("tools", ToolNode([consult])).add_edge("__start__", "tools")
    graph = built.compile(checkpointer=saver)
    asked = graph.invoke({"messages": [AIMessage("", tool_calls=calls)]}, CONFIG)
    by_name = {i.value["from"]: i.id for i in asked["__interrupt__"]}
    assert set(by_name) == set(graphs)
    asked = graph.invoke(Command(resume={by_name["green"]: "g"}), CONFIG)
    assert {i.id for i in asked["__interrupt__"]} == {by_name["red"], by_name["blue"]}
    graph.invoke(Command(resume={by_name["blue"]: "b"}), CONFIG)
    done = graph.invoke(Command(resume={by_name["red"]: "r"}), CONFIG)
    assert [m.content for m in done["messages"][1:]] == ["red: r", "green: g", "blue: b"]
    assert sorted(log) == ["blue"] * 2 + ["green"] * 2 + ["red"] * 2
