"""What a question may hold, what the reviewer then sees, and what is refused where it is asked."""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, chain, parallel, the_id, thread
from waitpoint import codec
from waitpoint.errors import GraphValidationError, PayloadError, UnstorableValueError, WaitpointError
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt


class Color(Enum):
    RED = "red"


codec.register(Color, tag="tests.behaviours.Color")


class Shade(Enum):
    DARK = "dark"


class Model(BaseModel):
    name: str
    inner: dict[str, int] = {}


@dataclass
class Data:
    name: str
    items: tuple[int, ...] = ()


class Shaded(State, total=False):
    """A state whose schema declares an enum."""

    shade: Shade


class Live:
    """What no other process could be shown."""


PLAIN: list[Any] = [
    None, True, False, 0, -1, 2**80, 1.5, -0.0, "", "text", "日本語 🙂", b"bytes", [], {}, [1, [2, {"a": None}]],
    {"a": {"b": [1, 2.5, "x", None, True]}}, Decimal("1.10"), UUID(int=7), Color.RED,
    dt.date(2026, 2, 3), dt.time(1, 2, 3), dt.timedelta(days=1, microseconds=2),
    dt.datetime(2026, 2, 3, 4, 5, 6, 7, tzinfo=dt.UTC), dt.datetime(2026, 2, 3),  # noqa: DTZ001
]  # fmt: skip


def asking(payload: Any) -> Any:
    def node(state: State) -> State:
        return {"log": [interrupt(payload)]}

    return node


@pytest.mark.parametrize("payload", PLAIN, ids=repr)
def test_plain_data_is_shown_as_it_is_everywhere(store: Store, payload: Any) -> None:
    """Section 5: JSON values, dates and times, UUID, Decimal, bytes, Enum"""
    graph, config = chain(store.saver, asking(payload)), thread()
    (question,) = asked(graph.invoke({"log": []}, config))
    (listed,) = store.again().pending()
    (in_state,) = graph.get_state(config).interrupts
    (again,) = asked(chain(store.again(), asking(payload)).invoke(None, config))
    for shown in (question.value, listed.value, in_state.value, again.value):
        assert shown == payload
        assert type(shown) is type(payload)
    assert graph.invoke(Command(resume="yes"), config) == {"log": ["yes"]}


MADE_PLAIN: list[tuple[Any, Any]] = [
    (Model(name="a", inner={"n": 1}), {"name": "a", "inner": {"n": 1}}),
    (Data("a", (1, 2)), {"name": "a", "items": [1, 2]}),
    ({"a": Data("a"), "b": [Model(name="b")]}, {"a": {"name": "a", "items": []}, "b": [{"name": "b", "inner": {}}]}),
    ((1, (2, 3)), [1, [2, 3]]),
]  # fmt: skip


@pytest.mark.parametrize(("payload", "shown"), MADE_PLAIN, ids=repr)
def test_models_dataclasses_and_tuples_become_plain_data_at_the_call(
    saver: Any, call: Call, payload: Any, shown: Any
) -> None:
    """Section 5"""
    graph, config = chain(saver, asking(payload)), thread()
    (question,) = asked(call(graph, {"log": []}, config))
    assert question.value == shown
    assert type(question.value) is type(shown)
    assert saver.pending()[0].value == shown
    assert call(graph, Command(resume="yes"), config) == {"log": ["yes"]}


REFUSED: list[tuple[Any, str]] = [
    (Live(), "payload"),
    ({"a": [0, Live()]}, "a[1]"),
    ({"a": {"b": lambda: 0}}, "a.b"),
    ({"n": math.nan}, "n"),
    ([math.inf], "[0]"),
    ({"n": Decimal("NaN")}, "n"),
    ({1: "number as key"}, "payload"),
    ({"s": {1, 2}}, "s"),
    ({"c": 1j}, "c"),
    ({"t": Live}, "t"),
]


@pytest.mark.parametrize(("payload", "path"), REFUSED, ids=lambda v: re.sub(r" at 0x\w+", "", repr(v)))
def test_anything_else_is_refused_at_the_call_with_its_path(saver: Any, call: Call, payload: Any, path: str) -> None:
    """Section 5: NaN and infinity too"""
    config = thread()
    with pytest.raises(PayloadError) as caught:
        call(chain(saver, asking(payload)), {"log": []}, config)
    assert caught.value.path.endswith(path)
    assert repr(caught.value.path) in str(caught.value)
    assert isinstance(caught.value, WaitpointError)
    assert saver.pending(answerable=False) == []


def test_an_enum_that_no_other_process_would_know_is_refused_with_the_line_to_add(saver: Any, call: Call) -> None:
    """Section 5 with 7: declared in a schema or registered, an enum member is shown as it is"""
    with pytest.raises(UnstorableValueError, match=r"payload\.shade.*codec\.register\(Shade\)"):
        call(chain(saver, asking({"shade": Shade.DARK})), {"log": []}, thread())
    assert saver.pending(answerable=False) == []

    graph: Any = StateGraph(Shaded).add_node("node", asking({"shade": Shade.DARK})).add_edge(START, "node")
    (question,) = asked(call(graph.compile(checkpointer=saver), {"log": []}, thread()))
    assert question.value == {"shade": Shade.DARK}


def test_a_payload_that_holds_itself_is_refused(saver: Any) -> None:
    """Section 5"""
    ring: dict[str, Any] = {}
    ring["ring"] = ring
    with pytest.raises(PayloadError, match="itself"):
        chain(saver, asking(ring)).invoke({"log": []}, thread())


def test_a_body_may_catch_a_refused_payload_and_ask_otherwise(saver: Any, call: Call) -> None:
    """Section 5: nothing was asked, so nothing was swallowed"""

    def node(state: State) -> State:
        try:
            return {"log": [interrupt(Live())]}
        except PayloadError:
            return {"log": [interrupt("plain?")]}

    graph, config = chain(saver, node), thread()
    assert asked(call(graph, {"log": []}, config))[0].value == "plain?"
    assert call(graph, Command(resume="yes"), config) == {"log": ["yes"]}


def test_a_payload_that_changes_after_the_call_is_shown_as_it_was(saver: Any) -> None:
    """Section 5: what was shown is what was asked"""
    card = {"items": [1]}

    def node(state: State) -> State:
        card["items"] = [1]
        try:
            return {"log": [interrupt(card)]}
        finally:
            card["items"].append(2)

    graph, config = chain(saver, node), thread()
    (question,) = asked(graph.invoke({"log": []}, config))
    assert question.value == {"items": [1]}
    assert saver.pending()[0].value == {"items": [1]}
    assert graph.invoke(Command(resume="yes"), config) == {"log": ["yes"]}


def test_a_refused_payload_leaves_the_siblings_question(saver: Any, call: Call) -> None:
    """Section 5"""

    def bad(state: State) -> State:
        return {"log": [interrupt(Live())]}

    def good(state: State) -> State:
        return {"log": [interrupt("good?")]}

    graph, config = parallel(saver, bad, good), thread()
    with pytest.raises(PayloadError):
        call(graph, {"log": []}, config)
    # The good one may have asked before the bad one failed, or was cancelled: never more than once, never half.
    assert len(saver.pending()) <= 1
    with pytest.raises(PayloadError):
        call(graph, None, config)
    assert len(saver.pending()) <= 1


ANSWERS: list[Any] = [
    *[p for p in PLAIN if p is not None], (1, 2), {1, 2}, frozenset({3}), 1j, float("inf"), {"a": (1, [2])},
]  # fmt: skip


@pytest.mark.parametrize("answer", ANSWERS, ids=repr)
def test_an_answer_may_be_any_value_that_can_be_stored(store: Store, answer: Any) -> None:
    """Section 5: answers are stored values, not payloads"""
    config = thread()
    got: list[Any] = []

    def node(state: State) -> State:
        got.append(interrupt("what?"))
        interrupt("and?")
        return {"log": []}

    chain(store.saver, node).invoke({"log": []}, config)
    chain(store.again(), node).invoke(Command(resume=answer), config)
    chain(store.again(), node).invoke(Command(resume=1), config)
    assert got == [answer, answer]
    assert {type(g) for g in got} == {type(answer)}


def test_an_answer_that_cannot_be_stored_is_refused_and_changes_nothing(saver: Any, call: Call) -> None:
    """Section 5 with 7"""
    graph, config = chain(saver, asking("what?")), thread()
    question = the_id(call(graph, {"log": []}, config))
    before = (graph.get_state(config), saver.threads())
    for resume in (Live(), {question: Live()}, {"deep": [Live()]}):
        with pytest.raises(TypeError, match="Live"):
            call(graph, Command(resume=resume), config)
    assert (graph.get_state(config), saver.threads()) == before
    assert call(graph, Command(resume="yes"), config) == {"log": ["yes"]}


def test_one_text_as_ignore_is_refused_for_it_would_be_read_letter_by_letter(store: Store, call: Call) -> None:
    def node(state: State) -> State:
        return {"log": [interrupt({"a": 1, "t": 2}, ignore="at")]}

    with pytest.raises(GraphValidationError, match=r"give a list of paths, such as \['at'\]"):
        call(chain(store.saver, node), {"log": []}, thread())
