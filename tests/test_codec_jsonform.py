"""Values as JSON: every kind has its form, what has none says so, and what clients know is in the form they know."""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import re
from collections import Counter, OrderedDict, deque, namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from pydantic import AnyUrl, BaseModel, Field, RootModel, SecretStr, field_serializer

from waitpoint import codec
from waitpoint.types import Command, Interrupt, Overwrite, PregelTask, Send


class Color(Enum):
    RED = "r"


class Level(IntEnum):
    HIGH = 3


class Word(StrEnum):
    YES = "yes"


class Pair(NamedTuple):
    left: int
    right: Any


@dataclasses.dataclass
class Point:
    x: int
    at: Any = None


class Order(BaseModel):
    at: date
    size: Decimal
    inner: Any = None


class Sealed(BaseModel):
    key: SecretStr
    hidden: str = Field(default="secret", exclude=True)
    many: set[int] = {3, 1, 2}

    @field_serializer("many")
    def _sorted(self, many: set[int]) -> list[int]:
        return sorted(many, reverse=True)


class Broken(BaseModel):
    x: int = 1

    @field_serializer("x")
    def _fails(self, _: int) -> int:
        raise ValueError("no")


class Plain:
    def __init__(self) -> None:
        self.shown, self._own = 1, 2


class Client:
    def __init__(self) -> None:
        self.api_key = "secret"


class Array:
    """Stands for an array of numpy, which is not installed here."""

    def tolist(self) -> Any:
        return [[1.0, 2.0]]


Array.__module__ = "numpy"

Tuple = namedtuple("Tuple", "a b")  # noqa: PYI024 - people have these

FORMS: list[tuple[Any, Any]] = [
    (None, None), (True, True), (7, 7), (2**70, 2**70), (1.5, 1.5), ("é", "é"), ("\ud800", "?"),
    (float("nan"), "nan"), (float("-inf"), "-inf"), (Array(), [[1.0, 2.0]]),
    (Color.RED, "r"), (Level.HIGH, 3), (Word.YES, "yes"),
    (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05+00:00"), (date(2026, 1, 2), "2026-01-02"),
    (time(3, 4), "03:04:00"), (timedelta(minutes=1), 60.0), (timezone(timedelta(hours=2)), "UTC+02:00"),
    (ZoneInfo("Europe/Rome"), "Europe/Rome"), (UUID(int=7), str(UUID(int=7))), (Decimal("1.50"), "1.50"),
    (Fraction(1, 3), "1/3"), (1 + 2j, [1.0, 2.0]), (range(1, 9, 2), {"start": 1, "stop": 9, "step": 2}),
    (b"\x00\xff", "AP8="), (bytearray(b"x"), "eA=="), (memoryview(b"x"), "eA=="), (re.compile("a+"), "a+"),
    (PurePosixPath("/a/b"), "/a/b"), (ipaddress.ip_address("::1"), "::1"), (AnyUrl("http://a/"), "http://a/"),
    ((1, (2,)), [1, [2]]), ({3, 1, 2}, [1, 2, 3]), (frozenset({"b", "a"}), ["a", "b"]), (deque([1], 4), [1]),
    (OrderedDict(a=1), {"a": 1}), (Counter("aa"), {"a": 2}),
    ({1: "a", None: "b", False: "c"}, {"1": "a", "null": "b", "false": "c"}),
    ({1.5: 1, (1, "x"): 2}, {"1.5": 1, '[1, "x"]': 2}),
    ({1: "a", "1": "b"}, [[1, "a"], ["1", "b"]]), ({Color.RED: 1, date(2026, 1, 2): 2}, {"r": 1, "2026-01-02": 2}),
    (Pair(1, {2}), {"left": 1, "right": [2]}), (Tuple(1, 2), {"a": 1, "b": 2}), (Point(1, (2,)), {"x": 1, "at": [2]}),
    (Order(at=date(2026, 1, 2), size=Decimal("1.5"), inner=Point(1, Color.RED)),
     {"at": "2026-01-02", "size": "1.5", "inner": {"x": 1, "at": "r"}}),
    (Sealed(key=SecretStr("secret")), {"key": "**********", "many": [3, 2, 1]}), (Broken(), {"x": 1}),
    (RootModel[list[Point]]([Point(1)]), [{"x": 1, "at": None}]),
    (ValueError("no"), {"error": "ValueError", "message": "no"}),
    (Interrupt("q", "id"), {"value": "q", "id": "id", "response_schema": None}),
    (Send("node", {"x": (1,)}), {"node": "node", "arg": {"x": [1]}, "timeout": None}),
    (Command(goto="b"), {"graph": None, "update": None, "goto": "b"}),
    (Command(resume=None), {"graph": None, "update": None, "resume": None, "goto": []}),
    (Overwrite([1]), {"value": [1], "type": "__overwrite__"}),
    (PregelTask("id", "name", ("a",)), {"id": "id", "name": "name", "path": ["a"], "error": None, "interrupts": [],
     "state": None, "result": None}),
    (Document("text", metadata={"n": 1}), {"id": None, "metadata": {"n": 1}, "page_content": "text", "type": "Document"}),
]  # fmt: skip


@pytest.mark.parametrize(("value", "form"), FORMS, ids=lambda v: type(v).__name__)
def test_each_kind_has_its_form(value: Any, form: Any) -> None:
    """S071"""
    for given_, wanted in ((value, form), ({"deep": [value]}, {"deep": [form]})):
        found = codec.to_json(given_)
        assert found == wanted
        assert json.loads(json.dumps(found, allow_nan=False)) == wanted


@pytest.mark.parametrize("value", [Client(), object(), len, Client, iter([1])], ids=lambda v: type(v).__name__)
def test_what_has_no_form_says_so_and_shows_nothing_of_itself(value: Any) -> None:
    """S071: neither a `repr` nor what may be secret"""
    shown = codec.to_json({"it": value})["it"]
    assert (shown["value"], shown["reason"]) == (None, "it has no form in JSON")
    assert shown["tag"].endswith(f":{type(value).__qualname__}")
    assert "secret" not in json.dumps(shown)
    assert " at 0x" not in json.dumps(shown)
    assert codec.to_json({value: 1} if value.__hash__ else {}) != {repr(value): 1}


def test_instances_of_registered_classes_are_shown_as_their_fields() -> None:
    registry = codec.Registry()
    registry.register(Plain)
    assert codec.to_json([Plain()], registry) == [{"shown": 1, "_own": 2}]
    assert codec.to_json(Plain())["value"] is None


def test_what_contains_itself_ends_where_it_begins_again() -> None:
    knot: list[Any] = [1]
    knot += [knot, knot]
    point = Point(1)
    point.at = point
    inside = {"tag": "builtins:list", "value": None, "reason": "it contains itself, or nests too deep"}
    assert codec.to_json(knot) == [1, inside, inside]
    assert codec.to_json(point)["at"]["reason"] == inside["reason"]
    twice = [1]
    assert codec.to_json([twice, twice]) == [[1], [1]]


def test_what_nests_too_deep_ends_somewhere() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    assert "nests too deep" in json.dumps(codec.to_json(deep))


MESSAGES = [
    HumanMessage("hi", id="h", name="ana"),
    SystemMessage("be kind", id="s"),
    AIMessage(
        [{"type": "text", "text": "look"}], id="a", tool_calls=[{"name": "look", "args": {"at": "sky"}, "id": "c"}],
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    ),
    ToolMessage("blue", id="t", tool_call_id="c", artifact={"seen": (1, 2)}),
]  # fmt: skip


def test_messages_are_dicts_that_clients_know_and_messages_again() -> None:
    """S071: `id`, `type`, `content` and `additional_kwargs` on each, and what its kind has besides"""
    found = json.loads(json.dumps(codec.to_json(MESSAGES)))
    assert [m["type"] for m in found] == ["human", "system", "ai", "tool"]
    assert all(m.keys() >= {"id", "type", "content", "additional_kwargs", "response_metadata", "name"} for m in found)
    assert found[2]["tool_calls"] == [{"name": "look", "args": {"at": "sky"}, "id": "c", "type": "tool_call"}]
    assert found[2].keys() >= {"invalid_tool_calls", "usage_metadata"}
    assert (found[3]["tool_call_id"], found[3]["status"], found[3]["artifact"]) == ("c", "success", {"seen": [1, 2]})
    again = convert_to_messages(found)
    assert [(type(m), m.id, m.content) for m in again] == [(type(m), m.id, m.content) for m in MESSAGES]
    assert again[2].tool_calls == MESSAGES[2].tool_calls


def test_chunks_and_removals_are_told_from_messages() -> None:
    chunk = AIMessageChunk("par", id="a", tool_call_chunks=[{"name": "n", "args": "{", "id": "c", "index": 0}])
    found = codec.to_json(chunk)
    assert (found["type"], found["content"], found["id"]) == ("AIMessageChunk", "par", "a")
    assert found["tool_call_chunks"] == [{"name": "n", "args": "{", "id": "c", "index": 0, "type": "tool_call_chunk"}]
    assert codec.to_json(RemoveMessage(id="x"))["type"] == "remove"


def test_a_model_that_holds_what_is_unknown_here_shows_its_stored_parts() -> None:
    there = codec.Registry()
    there.register(Plain, tag="app:plain")
    there.register(Order)
    here = codec.Registry()
    here.register(Order)
    stored = codec.dumps(Order(at=date(2026, 1, 2), size=Decimal(1), inner=Plain()), there)
    shown = codec.to_json(codec.loads(stored, here))
    assert shown["inner"] == {"tag": "app:plain", "value": {"shown": 1, "_own": 2}}


any_key = st.one_of(
    st.text(), st.integers(), st.none(), st.booleans(), st.dates(), st.tuples(st.integers()), st.binary()
)
any_leaf = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.dates(), st.datetimes(), st.times(),
    st.timedeltas(), st.decimals(), st.uuids(), st.fractions(), st.complex_numbers(), st.builds(Client),
    st.builds(HumanMessage, st.text()), st.sampled_from([Color.RED, Level.HIGH]),
)  # fmt: skip
any_value = st.recursive(
    any_leaf,
    lambda inner: st.one_of(
        st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(any_key, inner), st.builds(Point, st.just(1), inner),
        st.builds(Pair, st.just(1), inner), st.builds(Interrupt, inner), st.frozensets(st.integers()),
    ),
)  # fmt: skip


@given(any_value)
def test_whatever_is_given_is_strict_json_in_utf_8_and_stays_so(value: Any) -> None:
    found = codec.to_json(value)
    text = json.dumps(found, allow_nan=False, ensure_ascii=False)
    assert json.loads(text.encode("utf-8")) == found
    assert codec.to_json(found) == found
    assert " object at 0x" not in text
