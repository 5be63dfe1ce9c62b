"""`add_messages`: one rule a test, and all rules beside the peer."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
)
from langgraph.graph.message import add_messages as peer_add_messages

from waitpoint.graph.message import REMOVE_ALL_MESSAGES, add_messages, identified, prepared
from waitpoint.records import Overwrite


def human(text: str, id: str | None = None) -> HumanMessage:
    return HumanMessage(content=text, id=id)


def test_a_new_message_is_appended() -> None:
    left, right = [human("hi", "1")], [AIMessage(content="hello", id="2")]
    merged = add_messages(left, right)
    assert [m.id for m in merged] == ["1", "2"]


def test_the_merged_list_is_new_and_the_old_ones_stay_as_they_are() -> None:
    left, right = [human("hi", "1")], [human("there", "2")]
    merged = add_messages(left, right)
    assert merged is not left
    assert merged is not right
    assert (len(left), len(right)) == (1, 1)
    replaced = add_messages(left, [human("other", "1")])
    assert left[0].content == "hi"
    assert replaced[0].content == "other"


def test_untouched_messages_stay_the_same_objects() -> None:
    left = [human(str(n), str(n)) for n in range(5)]
    merged = add_messages(left, [human("new", "2"), human("more", "9")])
    assert [merged[n] is left[n] for n in range(5)] == [True, True, False, True, True]


def test_a_message_with_a_known_id_replaces_it_in_place() -> None:
    merged = add_messages([human("a", "1"), human("b", "2")], human("c", "1"))
    assert [(m.id, m.content) for m in merged] == [("1", "c"), ("2", "b")]


def test_of_two_new_messages_with_one_id_the_later_stays() -> None:
    assert [m.content for m in add_messages([], [human("a", "1"), human("b", "1")])] == ["b"]


def test_messages_without_an_id_get_one_on_both_sides() -> None:
    left, right = human("a"), human("b")
    merged = add_messages([left], [right])
    assert merged[0] is left
    assert left.id is not None
    assert right.id is not None
    assert left.id != right.id


@pytest.mark.parametrize(
    ("given_as", "kind"),
    [
        ("hello", HumanMessage),
        (("user", "hello"), HumanMessage),
        (("assistant", "hello"), AIMessage),
        ({"role": "system", "content": "hello"}, SystemMessage),
        ({"type": "human", "content": "hello"}, HumanMessage),
        (AIMessageChunk(content="hello"), AIMessage),
    ],
)
def test_what_looks_like_a_message_becomes_one(given_as: Any, kind: type[BaseMessage]) -> None:
    for update in (given_as, [given_as]):
        (message,) = add_messages([], update)
        assert type(message) is kind
        assert message.content == "hello"
        assert message.id


def test_a_removal_deletes_the_message_of_its_id() -> None:
    merged = add_messages([human("a", "1"), human("b", "2")], RemoveMessage(id="1"))
    assert [m.id for m in merged] == ["2"]


def test_a_removal_of_an_unknown_id_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Attempting to delete a message with an ID that doesn't exist \('9'\)"):
        add_messages([human("a", "1")], [RemoveMessage(id="9")])


def test_a_message_given_again_after_its_removal_stays_in_its_place() -> None:
    update = [RemoveMessage(id="1"), human("again", "1")]
    assert [m.content for m in add_messages([human("a", "1"), human("b", "2")], update)] == ["again", "b"]


def test_remove_all_clears_what_stands_before_it() -> None:
    update = [human("lost", "3"), RemoveMessage(id=REMOVE_ALL_MESSAGES), human("kept", "4")]
    assert [m.id for m in add_messages([human("a", "1")], update)] == ["4"]


def test_after_several_remove_alls_the_last_counts() -> None:
    update = [RemoveMessage(id=REMOVE_ALL_MESSAGES), human("a", "1"), RemoveMessage(id=REMOVE_ALL_MESSAGES)]
    assert add_messages([human("b", "2")], update) == []


def test_messages_after_remove_all_are_merged_by_id_too() -> None:
    update = [RemoveMessage(id=REMOVE_ALL_MESSAGES), human("a", "1"), human("b", "2"), RemoveMessage(id="1")]
    assert [m.id for m in add_messages([], update)] == ["2"]


@pytest.mark.parametrize(("left", "right"), [(None, [human("a")]), ([human("a")], None)])
def test_none_is_refused_as_a_list(left: Any, right: Any) -> None:
    with pytest.raises(ValueError, match="None"):
        add_messages(left, right)


def test_a_format_alone_gives_a_reducer_of_that_form() -> None:
    reducer = add_messages(format="langchain-openai")
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "1234"}}
    (message,) = reducer([], [{"role": "user", "content": [block]}])
    assert message.content == [{"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,1234"}}]
    assert reducer([message], [])[0].id == message.id


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="langchain-openai"):
        add_messages([], [], format="yaml")  # type: ignore[call-overload]


def test_identified_gives_ids_once() -> None:
    first = identified(["a", human("b")])
    assert all(m.id for m in first)
    again = identified(first)
    assert again is not first
    assert [m is n for m, n in zip(first, again, strict=True)] == [True, True]


def test_identified_keeps_removals() -> None:
    removal = RemoveMessage(id="1")
    assert identified(removal) == [removal]


def test_prepared_gives_ids_to_messages_of_an_overwrite_and_leaves_others_alone() -> None:
    write = prepared(Overwrite([human("a")]))
    assert isinstance(write, Overwrite)
    assert write.value[0].id
    assert prepared(prepared({"__overwrite__": [human("a")]})).value[0].id
    for other in (Overwrite("text"), Overwrite(["text"]), Overwrite(None)):
        assert prepared(other) is other
    assert prepared({"role": "user", "content": "a"})[0].id


IDS = st.sampled_from(["1", "2", "3", "4"])
MESSAGES = st.builds(human, st.sampled_from("ab"), IDS)
REMOVALS = IDS.map(lambda known: RemoveMessage(id=known))


def outcome(merge: Any, left: list[Any], right: list[Any]) -> Any:
    try:
        return [(type(m), m.id, m.content) for m in merge(left, right)]
    except ValueError as error:
        return str(error).split(" - ")[0]


@given(st.lists(MESSAGES), st.lists(MESSAGES | REMOVALS, max_size=6))
def test_merging_does_what_the_peer_does(left: list[Any], right: list[Any]) -> None:
    left = add_messages([], left)
    assert outcome(add_messages, left, right) == outcome(peer_add_messages, left, right)


@given(st.lists(MESSAGES), st.lists(MESSAGES | REMOVALS, max_size=3), st.lists(MESSAGES, unique_by=lambda m: m.id))
def test_removing_all_does_what_the_peer_does(left: list[Any], before: list[Any], after: list[Any]) -> None:
    update = [*before, RemoveMessage(id=REMOVE_ALL_MESSAGES), *after]
    assert outcome(add_messages, left, update) == outcome(peer_add_messages, left, update)


def test_the_module_loads_without_langchain_core() -> None:
    code = (
        "import sys, waitpoint.graph.message as m; m.add_messages(format=None); print('langchain_core' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=50)
    assert done.stdout.strip() == "False"
