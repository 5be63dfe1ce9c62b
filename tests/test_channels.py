"""Channels: one rule a test."""

from __future__ import annotations

import operator
from typing import Any

import pytest

from waitpoint.core.channels import combine, initial
from waitpoint.core.spec import Channel
from waitpoint.errors import InvalidUpdateError
from waitpoint.records import MISSING, Overwrite

LAST = Channel("x", "last")
COUNT = Channel("n", "fold", operator.add, int)
BARE = Channel("n", "fold", operator.add)
LOG = Channel("log", "append", operator.add, list)


def test_a_write_to_a_plain_key_replaces_its_value() -> None:
    assert combine(LAST, 1, [2]) == 2


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}, {"a": 1}, {"type": "text", "value": 3}])
def test_any_value_can_be_written_to_a_plain_key(value: Any) -> None:
    assert combine(LAST, MISSING, [value]) is value


def test_two_writes_to_a_plain_key_are_refused_by_its_name() -> None:
    with pytest.raises(InvalidUpdateError, match="At key 'x': Can receive only one value per step") as caught:
        combine(LAST, 1, [2, "secret"])
    assert "Use an Annotated key to handle multiple values." in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("channel", [LAST, COUNT, BARE, LOG])
def test_no_write_leaves_the_value_as_it_is(channel: Channel) -> None:
    value = [1]
    assert combine(channel, value, []) is value
    assert combine(channel, MISSING, []) is MISSING


def test_a_reducer_is_called_with_each_write_in_order() -> None:
    text = Channel("t", "fold", operator.add, str)
    assert combine(text, "a", ["b", "c"]) == "abc"


def test_a_reducer_begins_with_the_default_of_its_type() -> None:
    assert combine(COUNT, MISSING, [2, 3]) == 5


def test_a_reducer_without_a_default_begins_with_the_first_write() -> None:
    seen: list[tuple[Any, Any]] = []
    channel = Channel("n", "fold", lambda a, b: seen.append((a, b)) or b)
    assert combine(channel, MISSING, [1, 2]) == 2
    assert seen == [(1, 2)]


def test_a_list_grows_by_the_lists_of_all_writes() -> None:
    assert combine(LOG, ["a"], [["b"], ["c", "d"]]) == ["a", "b", "c", "d"]


def test_growing_a_list_changes_neither_it_nor_the_updates() -> None:
    current, update = ["a"], ["b"]
    after = combine(LOG, current, [update])
    after.append("c")
    assert (current, update) == (["a"], ["b"])


def test_a_first_update_of_a_list_is_not_the_list_that_is_kept() -> None:
    update = ["b"]
    assert combine(LOG, MISSING, [update]) is not update


@pytest.mark.parametrize("update", ["abc", None, 5, {"a": 1}, ("a",)])
def test_a_list_refuses_what_is_no_list_and_names_the_key(update: Any) -> None:
    with pytest.raises(InvalidUpdateError, match="At key 'log': a list grows by lists"):
        combine(LOG, ["a"], [update])


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("channel", [LAST, COUNT, BARE, LOG])
def test_an_overwrite_passes_the_reducer(channel: Channel, plain: bool) -> None:
    write: Any = {"__overwrite__": 7} if plain else Overwrite(7)
    assert combine(channel, 1 if channel is not LOG else [1], [write]) == 7
    assert combine(channel, MISSING, [write]) == 7


def test_an_overwrite_is_known_in_the_form_that_json_leaves_of_it() -> None:
    assert combine(LOG, ["a"], [{"value": ["z"], "type": "__overwrite__"}]) == ["z"]


@pytest.mark.parametrize("channel", [LAST, COUNT, BARE])
@pytest.mark.parametrize("writes", [[1, Overwrite(7)], [Overwrite(7), 1], [1, {"__overwrite__": 7}, 2]])
def test_other_writes_beside_an_overwrite_are_discarded(channel: Channel, writes: list[Any]) -> None:
    assert combine(channel, 5, writes) == 7


def test_other_writes_beside_an_overwrite_never_reach_the_reducer() -> None:
    def reducer(a: Any, b: Any) -> Any:
        raise AssertionError

    assert combine(Channel("n", "fold", reducer), 1, [2, Overwrite(None), 3]) is None


@pytest.mark.parametrize("channel", [LAST, COUNT, LOG])
def test_two_overwrites_in_one_step_are_refused(channel: Channel) -> None:
    with pytest.raises(InvalidUpdateError, match="Can receive only one Overwrite value per super-step"):
        combine(channel, MISSING, [Overwrite(1), {"__overwrite__": 1}])


def test_a_thread_begins_with_the_defaults_each_its_own() -> None:
    channels = {"x": LAST, "n": COUNT, "log": LOG, "bare": BARE}
    first, second = initial(channels), initial(channels)
    assert first == {"n": 0, "log": []}
    assert first["log"] is not second["log"]
