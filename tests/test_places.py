"""The ids of long lists of messages: what is only appended looks at no older message, whatever else it does."""

from __future__ import annotations

import random
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage

from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.engine import places
from waitpoint.graph import MessagesState, StateGraph, add_messages
from waitpoint.graph.message import added
from waitpoint.types import Command, interrupt

LONG = places.WORTH_KEEPING + 10


def numbered(first: int, count: int) -> list[Any]:
    return [HumanMessage(content=str(n), id=str(n)) for n in range(first, first + count)]


def test_appended_messages_follow_the_others_which_stay_the_same_objects() -> None:
    old = numbered(0, LONG)
    merged = added(old, [AIMessage(content="new", id="new")])
    assert [m.id for m in merged] == [*map(str, range(LONG)), "new"]
    assert all(a is b for a, b in zip(old, merged, strict=False))
    assert len(old) == LONG


def test_a_known_id_takes_its_place_in_a_list_that_grew() -> None:
    merged = added(added(numbered(0, LONG), numbered(LONG, 1)), [AIMessage(content="instead", id="3")])
    assert len(merged) == LONG + 1
    assert merged[3].content == "instead"


def test_an_id_that_only_a_longer_branch_has_is_new_to_a_shorter_one() -> None:
    old = numbered(0, LONG)
    longer = added(old, [AIMessage(content="a", id="x")])
    other = added(old, [AIMessage(content="b", id="y")])
    assert [m.id for m in longer[LONG:]] == ["x"]
    assert [m.id for m in other[LONG:]] == ["y"]
    assert [m.id for m in added(other, [AIMessage(content="c", id="x")])[LONG:]] == ["y", "x"]
    assert [m.content for m in added(longer, [AIMessage(content="d", id="x")])[LONG:]] == ["d"]


def test_the_same_messages_added_again_come_to_the_same() -> None:
    old, new = numbered(0, LONG), numbered(LONG, 2)
    assert added(old, new) == added(old, new)
    assert [m.id for m in added(added(old, new[:1]), new[1:])] == [m.id for m in added(old, new)]


def test_a_removed_message_can_be_added_again_at_the_end() -> None:
    grown = added(numbered(0, LONG), numbered(LONG, 1))
    fewer = added(grown, [RemoveMessage(id="5")])
    assert len(fewer) == LONG
    assert [m.id for m in added(fewer, numbered(5, 1))][-1] == "5"


def test_a_list_with_an_id_twice_or_none_is_merged_as_ever() -> None:
    twice = [*numbered(0, LONG), *numbered(0, 1)]
    assert len(added(twice, numbered(LONG, 1))) == LONG + 2
    without: list[Any] = [*numbered(0, LONG), HumanMessage(content="no id")]
    assert all(m.id for m in added(without, numbered(LONG, 1)))


def test_a_list_that_was_changed_after_all_is_looked_through() -> None:
    grown = added(numbered(0, LONG), numbered(LONG, 1))
    grown.append(AIMessage(content="slipped in", id="x"))
    merged = added(grown, [AIMessage(content="instead", id="x")])
    assert [m.content for m in merged[LONG + 1 :]] == ["instead"]


@pytest.mark.parametrize("seed", range(20))
def test_any_way_to_grow_comes_to_what_add_messages_makes(seed: int) -> None:
    choices = random.Random(seed)
    lists: list[list[Any]] = [numbered(0, LONG)]
    for _ in range(40):
        left = choices.choice(lists[-4:])
        right: list[AnyMessage] = []
        for _ in range(choices.randint(0, 3)):
            one = str(choices.randint(0, LONG + 30))
            if choices.random() < 0.2 and any(m.id == one for m in left):
                right.append(RemoveMessage(id=one))
            else:
                right.append(AIMessage(content=one, id=one))
        expected = add_messages(list(left), list(right))
        merged = added(left, right)
        assert merged == expected
        lists.append(merged)


def test_a_turn_of_a_long_thread_looks_at_none_of_its_old_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    plain = HumanMessage.__getattribute__

    def watched(message: HumanMessage, name: str) -> Any:
        if name == "id":
            looked.append(plain(message, "content"))
        return plain(message, name)

    def reply(_: MessagesState) -> dict[str, Any]:
        return {"messages": [("ai", interrupt("what?"))]}

    builder = StateGraph(MessagesState).add_node("reply", reply).add_edge("__start__", "reply")
    graph = builder.compile(checkpointer=InMemorySaver())
    at = {"configurable": {"thread_id": "1"}}

    def turn() -> int:
        graph.invoke({"messages": [("user", "new")]}, at)
        return len(graph.invoke(Command(resume="yes"), at)["messages"])

    graph.invoke({"messages": numbered(0, 500)}, at)
    graph.invoke(Command(resume="first"), at)
    turn()
    monkeypatch.setattr(HumanMessage, "__getattribute__", watched)
    assert turn() == 505
    assert "new" in looked
    assert [text for text in looked if text != "new"] == []
