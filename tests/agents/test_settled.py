"""What is known of a long history's beginning changes how much is looked at, and nothing else."""

from __future__ import annotations

import random
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from waitpoint.agents import history, settled

LONG = settled.WORTH_KEEPING * 2


@pytest.fixture(autouse=True)
def _unknown() -> None:
    settled._known.clear()


def calling(number: int, *, broken: bool = False) -> AIMessage:
    if broken:
        malformed = {"name": "send", "id": f"c{number}", "args": "{", "error": None, "type": "invalid_tool_call"}
        return AIMessage("", id=f"a{number}", invalid_tool_calls=[malformed])
    return AIMessage("", id=f"a{number}", tool_calls=[{"name": "send", "id": f"c{number}", "args": {}}])


def answer(number: int) -> ToolMessage:
    return ToolMessage("sent", id=f"t{number}", tool_call_id=f"c{number}", name="send")


def turns(count: int) -> list[AnyMessage]:
    each = ((HumanMessage("send", id=f"h{n}"), calling(n), answer(n)) for n in range(count))
    return [message for turn in each for message in turn]


def all_about(messages: list[Any]) -> tuple[Any, ...]:
    ids = [m.id for m in messages]
    return (
        history.valid(messages),
        history.repaired(messages),
        history.shown(messages),
        [history.has_id(messages, one) for one in (ids[0], ids[-1], ids[len(ids) // 2], "none")],
    )


class Looked(HumanMessage):
    """Counts how often somebody looks at what it has."""

    @property
    def looks(self) -> Any:
        return self.__dict__["additional_kwargs"].setdefault("looks", [])

    def __getattribute__(self, name: str) -> Any:
        if name in ("id", "content"):
            object.__getattribute__(self, "__dict__")["additional_kwargs"].setdefault("looks", []).append(name)
        return super().__getattribute__(name)


def test_the_beginning_of_a_long_history_is_not_looked_at_again() -> None:
    first = Looked("hello", id="first")
    messages = [first, *turns(LONG)]
    history.valid(messages)
    first.looks.clear()
    longer = [*messages, *turns(LONG + 1)[-3:]]
    assert all_about(longer)[0] == longer
    assert first.looks == ["id"]  # by `all_about` itself
    settled._known.clear()
    assert history.has_id(longer, "none") is False
    assert first.looks == ["id", "id"]


def test_a_rewritten_beginning_is_looked_at_anew() -> None:
    messages = turns(LONG)
    history.valid(messages)
    assert settled.of(messages).messages == messages[: len(settled.of(messages).messages)] != []
    without_call = [m for m in messages if m.id != "a3"]
    assert [m.id for m in history.valid(without_call)] == [m.id for m in messages if m.id not in ("a3", "t3")]
    without_answer = [m for m in messages if m.id != "t3"]
    repaired = history.valid(without_answer)
    assert len(repaired) == len(messages)
    assert repaired[11].tool_call_id == "c3"  # type: ignore[union-attr]
    assert repaired[11].status == "error"  # type: ignore[union-attr]


def test_what_one_branch_added_is_not_in_another() -> None:
    trunk = turns(LONG)
    history.valid(trunk)
    other = [*trunk, *(HumanMessage("b", id=f"b{n}") for n in range(LONG))]
    one = [*trunk, *(HumanMessage("a", id=f"o{n}") for n in range(LONG))]
    for branch in (one, other, one):
        history.valid(branch)
        assert history.has_id(branch, "b0") is (branch is other)
        assert history.has_id(branch, "o0") is (branch is one)
        assert history.shown(branch) == branch


def test_a_malformed_call_long_ago_is_shown_as_a_call_and_not_answered_twice() -> None:
    messages = [calling(-1, broken=True), answer(-1), *turns(LONG)]
    assert history.valid(messages) == messages
    assert settled.of(messages).messages != []
    assert history.repaired(messages) is None
    assert history.shown(messages)[0].tool_calls[0]["id"] == "c-1"  # type: ignore[attr-defined]
    assert history.shown(messages)[1:] == messages[1:]


def test_a_malformed_call_of_now_is_answered_behind_a_known_beginning() -> None:
    messages = turns(LONG)
    history.valid(messages)
    repaired = history.repaired([*messages, calling(-1, broken=True), HumanMessage("and?", id="h")])
    assert repaired is not None
    assert repaired[:-2] == [*messages, calling(-1, broken=True)]
    assert repaired[-2].tool_call_id == "c-1"  # type: ignore[union-attr]
    assert repaired[-1].id == "h"


@pytest.mark.parametrize("seed", range(6))
def test_random_histories_come_to_the_same_with_and_without_what_is_known(seed: int) -> None:
    chance = random.Random(seed)
    messages: list[AnyMessage] = turns(chance.randrange(30))
    for number in range(1000, 1025):
        for _ in range(chance.randrange(4)):
            messages = [*messages, *turns(number)[-3:]]
        cut = chance.randrange(len(messages) + 1)
        messages = chance.choice(
            [
                lambda m=messages: m,
                lambda m=messages, at=cut: [*m[:at], HumanMessage("between", id=f"x{at}"), *m[at:]],
                lambda m=messages, at=cut: m[:at] + m[at + 1 :],
                lambda m=messages, n=number: [*m, calling(n, broken=True)],
                lambda m=messages, n=number: [*m, calling(n, broken=True), answer(n), HumanMessage("go", id=f"g{n}")],
                lambda m=messages, n=number: [*m, answer(n)],
            ]
        )() or [HumanMessage("hello", id="hello")]
        known = all_about(messages)
        beginnings = dict(settled._known)
        settled._known.clear()
        assert all_about(messages) == known
        settled._known.update(beginnings)


def test_as_many_histories_are_kept_as_there_is_room_for() -> None:
    histories = [turns(LONG) for _ in range(settled.KEPT_HISTORIES + 3)]
    for each in histories:
        history.valid(each)
    assert len(settled._known) == settled.KEPT_HISTORIES
    assert settled.of(histories[0]) is settled.NOTHING
    assert settled.of(histories[-1]) is not settled.NOTHING
