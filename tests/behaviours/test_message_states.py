"""States with messages: how they are merged, removed and kept apart."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, RemoveMessage, SystemMessage

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import asked, builder, thread
from waitpoint.graph import START, MessagesState, StateGraph
from waitpoint.graph.message import REMOVE_ALL_MESSAGES
from waitpoint.types import Command, interrupt


def say(*messages: Any) -> Any:
    return lambda state: {"messages": list(messages)}


def talk(saver: Any, *turns: Any) -> Any:
    graph: Any = StateGraph(MessagesState)
    before = START
    for i, turn in enumerate(turns):
        graph.add_node(f"n{i}", say(*turn)).add_edge(before, f"n{i}")
        before = f"n{i}"
    return graph.compile(checkpointer=saver)


def contents(result: Any) -> list[tuple[str, Any]]:
    return [(m.type, m.content) for m in result["messages"]]


def test_messages_are_appended_coerced_and_get_ids(saver: Any, call: Call) -> None:
    """B166"""
    graph = talk(saver, [("ai", "two")], [{"role": "user", "content": "three"}], [AIMessageChunk("four")])
    result = call(graph, {"messages": "one"}, thread())
    assert contents(result) == [("human", "one"), ("ai", "two"), ("human", "three"), ("ai", "four")]
    assert len({m.id for m in result["messages"]}) == 4
    assert type(result["messages"][-1]) is AIMessage


def test_a_message_of_the_same_id_replaces_in_place(saver: Any, call: Call) -> None:
    """B166"""
    graph = talk(saver, [AIMessage("old", id="1"), HumanMessage("x", id="2")], [AIMessage("new", id="1")])
    assert contents(call(graph, {"messages": []}, thread())) == [("ai", "new"), ("human", "x")]


def test_messages_are_removed_by_id(saver: Any, call: Call) -> None:
    """B166"""
    graph = talk(saver, [AIMessage("a", id="1"), AIMessage("b", id="2")], [RemoveMessage(id="1")])
    assert contents(call(graph, {"messages": []}, thread())) == [("ai", "b")]


def test_removing_an_unknown_message_fails(saver: Any, call: Call) -> None:
    """B166"""
    with pytest.raises(ValueError, match="Attempting to delete a message with an ID that doesn't exist"):
        call(talk(saver, [RemoveMessage(id="none")]), {"messages": []}, thread())


def test_all_messages_are_removed_and_what_follows_stays(saver: Any, call: Call) -> None:
    """B167"""
    graph = talk(saver, [AIMessage("a")], [RemoveMessage(id=REMOVE_ALL_MESSAGES), SystemMessage("fresh")])
    assert contents(call(graph, {"messages": ["hi"]}, thread())) == [("system", "fresh")]


def test_a_message_without_an_id_is_one_message_over_a_pause(store: Store, call: Call) -> None:
    """B166: the id is given once, with the result"""

    def speaks(state: Any) -> Any:
        return {"messages": [AIMessage("hello")]}

    def asks(state: Any) -> Any:
        return {"messages": [HumanMessage(interrupt("ok?"))]}

    config = thread()
    made = lambda saver: builder(speaks, asks, edges="parallel", schema=MessagesState).compile(checkpointer=saver)  # noqa: E731
    paused = call(made(store.saver), {"messages": []}, config)
    assert asked(paused)
    done = call(made(store.again()), Command(resume="yes"), config)
    assert contents(done) == [("human", "yes"), ("ai", "hello")]
    assert done["messages"][1].id == paused["messages"][0].id
    assert made(store.again()).get_state(config).values["messages"] == done["messages"]


def test_the_list_that_a_node_got_is_not_the_one_that_is_stored(saver: Any, call: Call) -> None:
    """B166"""

    def meddles(state: Any) -> Any:
        state["messages"].append(HumanMessage("not returned"))
        return {}

    graph = builder(meddles, schema=MessagesState).compile(checkpointer=saver)
    assert contents(call(graph, {"messages": ["hi"]}, thread())) == [("human", "hi")]
