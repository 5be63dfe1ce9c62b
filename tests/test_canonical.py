"""Payloads become plain data that nobody can change later; digests say whether two are the same."""

# ruff: noqa: DTZ001 - times without a zone are values too
from __future__ import annotations

import enum
import functools
import subprocess
import sys
import threading
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel, Field, RootModel, SecretStr, field_serializer

from waitpoint.canonical import args_digest, diff_paths, digest, payload
from waitpoint.errors import PayloadError, UsageError


class Color(enum.Enum):
    RED = "r"
    GREEN = "g"


class Word(enum.StrEnum):
    YES = "yes"


@dataclass
class Item:
    name: str
    tags: tuple[str, ...] = ()
    lock: Any = None


class Base(BaseModel):
    n: int


class Derived(Base):
    more: Decimal
    hidden: str = Field(default="x", exclude=True)
    at: date = date(2024, 1, 1)

    @field_serializer("n")
    def _as_text(self, n: int) -> str:
        return f"{n} pieces"


class Outer(BaseModel):
    inner: Base
    messages: list[BaseMessage] = []


class Numbers(RootModel[list[int]]):
    pass


Pair = namedtuple("Pair", "a b")  # noqa: PYI024 - both ways to make one are in use


# --- payload ----------------------------------------------------------------------------------------------------------


KEPT: list[Any] = [
    *(None, True, 0, 10**400, 1.5, -0.0, "", "\ud800", b"\x00"),
    *(datetime(2024, 1, 1, tzinfo=UTC), date(2024, 1, 1), time(1), timedelta(1), UUID(int=1), Decimal("1.10")),
    *(Color.RED, Word.YES, [], {}, {"a": [{"b": None}]}),
]  # fmt: skip


@pytest.mark.parametrize("value", KEPT, ids=lambda v: type(v).__name__)
def test_plain_value_is_kept_as_it_is(value: Any) -> None:
    for made, wanted in ((payload(value), value), (payload({"x": [value]})["x"][0], value)):
        assert made == wanted
        assert type(made) is type(wanted)


def test_payload_shares_nothing_that_can_change_later() -> None:
    original: dict[str, Any] = {"list": [1, {"x": [2]}], "dict": {}}
    made = payload(original)
    original["list"][1]["x"].append(3)
    original["dict"]["new"] = 1
    assert made == {"list": [1, {"x": [2]}], "dict": {}}


def test_tuples_become_lists_everywhere() -> None:
    assert payload((1, {"a": (2, (3,)), "p": Pair(4, (5,))})) == [1, {"a": [2, [3]], "p": [4, [5]]}]


def test_models_and_dataclasses_become_dicts_at_the_call() -> None:
    made = payload({"item": Item("a", ("x",)), "model": Outer(inner=Derived(n=1, more=Decimal(2)))})
    assert made == {
        "item": {"name": "a", "tags": ["x"], "lock": None},
        "model": {"inner": {"n": "1 pieces", "more": Decimal(2), "at": date(2024, 1, 1)}, "messages": []},
    }
    assert payload(Numbers([1])) == [1]


def test_messages_become_dicts_with_all_their_fields() -> None:
    call = {"name": "x", "args": {"a": 1}, "id": "1"}
    made = payload(Outer(inner=Base(n=1), messages=[HumanMessage("hi"), AIMessage("", tool_calls=[call])]))
    assert made["messages"][0]["content"] == "hi"
    assert made["messages"][0]["type"] == "human"
    assert made["messages"][1]["tool_calls"] == [call | {"type": "tool_call"}]
    assert payload([HumanMessage("hi")])[0] == made["messages"][0]


def test_derived_classes_of_plain_types_become_plain() -> None:
    class Text(str):
        __slots__ = ()

    class Count(int):
        pass

    made = payload({Text("k"): [Text("v"), Count(3), OrderedDict(a=1)]})
    assert made == {"k": ["v", 3, {"a": 1}]}
    assert [type(x) for x in (next(iter(made)), *made["k"])] == [str, str, int, dict]


def circle() -> list[Any]:
    loop: list[Any] = []
    loop.append({"again": loop})
    return loop


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"items": [1, 2, 3, {"lock": threading.Lock()}]}, "payload.items[3].lock"),
        ({"items": (1, Item("a", lock=threading.Lock()))}, "payload.items[1].lock"),
        ([float("nan")], "payload[0]"),
        ({"x": float("-inf")}, "payload.x"),
        (Decimal("NaN"), "payload"),
        ({"d": [Decimal("Infinity")]}, "payload.d[0]"),
        ({"s": {1, 2}}, "payload.s"),
        ({"a b": 1j}, "payload['a b']"),
        ({"f": lambda: 1}, "payload.f"),
        ({"t": Item}, "payload.t"),
        ({"b": bytearray(b"x")}, "payload.b"),
        ({"inner": {1: "x"}}, "payload.inner"),
        ({"m": [SecretStr("hunter2")]}, "payload.m[0]"),
        ({"p": PurePosixPath("x")}, "payload.p"),
        ({"r": Fraction(1, 2)}, "payload.r"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_what_cannot_be_shown_is_refused_with_its_path(value: Any, path: str) -> None:
    with pytest.raises(PayloadError) as caught:
        payload(value)
    assert caught.value.path == path
    assert repr(caught.value.type_name) in str(caught.value)
    assert isinstance(caught.value, (UsageError, TypeError))
    assert "hunter2" not in str(caught.value)


def test_payload_that_contains_itself_is_refused() -> None:
    with pytest.raises(PayloadError, match="contains itself"):
        payload(circle())


def test_path_starts_with_the_given_name() -> None:
    with pytest.raises(PayloadError, match=r"'answer\.x'"):
        payload({"x": 1j}, path="answer")


# --- digest -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ((1, (2,)), [1, [2]]),
        (Pair(1, 2), [1, 2]),
        ({"x": -0.0}, {"x": 0.0}),
        ({"\ud800": 1, "a": -0.0}, {"a": 0.0, "\ud800": 1}),
        (OrderedDict(b=1, a=2), {"a": 2, "b": 1}),
    ],
)
def test_equal_payloads_have_equal_digests(a: Any, b: Any) -> None:
    assert digest(a) == digest(b)
    assert diff_paths(a, b) == []


DISTINCT: list[Any] = [
    *(None, True, False, 0, 1, 1.0, 0.0, "1", b"1", "", [], {}, [[]], [{}], {"a": None}, {"a": []}),
    *(Decimal(1), Decimal("1.0"), UUID(int=1), str(UUID(int=1)), UUID(int=1).bytes, 2**64, hex(2**64), 2**64 + 1),
    *(date(2024, 1, 1), datetime(2024, 1, 1), "2024-01-01", time(0), "00:00:00", timedelta(1), timedelta(seconds=1)),
    *(datetime(2024, 1, 1, tzinfo=UTC), Color.RED, Color.GREEN, Word.YES, "yes", "\ud800", "\udfff", {"\ud800": 1}),
    *({"a": 1}, {"a": 1.0}, {"a": True}, [1, 2], [2, 1], ["a", 1], {"a": "b"}, [["\ud800", 1]]),
]  # fmt: skip


def test_different_payloads_have_different_digests() -> None:
    digests = {digest(value): value for value in DISTINCT}
    assert len(digests) == len(DISTINCT)
    assert all(diff_paths(a, b) for n, a in enumerate(DISTINCT) for b in DISTINCT[:n])


def test_digest_never_changes() -> None:
    """Digests are stored with questions: another value here would make every waiting question look new."""
    value = {
        "n": [None, True, 1, -1, 1.5, -0.0, 2**70, "käse", b"\x00", Decimal("1.10"), UUID(int=7)],
        "t": [datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC), date(2024, 1, 2), time(3, 4), timedelta(1, 2, 3)],
        "e": Color.RED,
        "\ud800": (),
    }
    assert digest(value) == "c96aada0d3d4b29653e82823032b38580f5e94b7955c7d9acea155e37325ccb5"
    del value["\ud800"]
    assert digest(value) == "3b351910904b263e83f67389ff778b4a714cc424560e872e6aab274f5503475b"
    assert digest({"a": 1}) == "ac22adafdfd6421b711ba440b6910ae1e4516fdc7d6210629d885caeb92ce11e"


def test_what_is_no_payload_has_no_digest() -> None:
    for value in (
        {"x": float("nan")},
        {"x": float("inf")},
        {"x": {1}},
        {1: 2},
        Decimal("NaN"),
        {"x": threading.Lock()},
    ):
        with pytest.raises(PayloadError):
            digest(value)


def test_digest_leaves_out_what_is_ignored() -> None:
    one = {"a": {"b": 1, "c": 2}, "items": [{"at": 1, "n": 1}, {"at": 2, "n": 2}], "x.y": [1, 2]}
    two = {"a": {"c": 2}, "items": [{"at": 3, "n": 1}, {"n": 2}], "x.y": [1, 9]}
    assert digest(one) != digest(two)
    ignore = ("a.b", "items[].at", "['x.y'][1]")
    assert digest(one, ignore=ignore) == digest(two, ignore=ignore)
    assert digest(one, ignore=ignore[:2]) != digest(two, ignore=ignore[:2])
    assert digest(one, ignore=("items[]",)) != digest({**one, "items": []}, ignore=("items[]",))
    assert digest([1, 2], ignore=("[0]",)) == digest([5, 2], ignore=("[0]",))
    assert digest(one, ignore=("nothing.here", "a[0]", "items.at")) == digest(one)
    assert one["a"] == {"b": 1, "c": 2}, "the payload itself is not changed"


@pytest.mark.parametrize("path", ["", "[", "a[x]", "a..b", "a]"])
def test_path_that_cannot_be_read_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        digest({}, ignore=(path,))


payloads = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary()
    | st.dates()
    | st.uuids()
    | st.decimals(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)


@given(payloads)
def test_digest_is_that_of_the_plain_form(value: Any) -> None:
    assert digest(payload(value)) == digest(value)
    assert digest({"x": value}) != digest({"y": value})
    assert diff_paths(value, payload(value)) == []


@given(payloads, payloads)
def test_digests_differ_exactly_where_paths_differ(a: Any, b: Any) -> None:
    assert (digest(a) == digest(b)) == (diff_paths(a, b) == [])


# --- diff_paths -------------------------------------------------------------------------------------------------------


def test_differences_are_listed_by_path_without_values() -> None:
    a = {"to": "ana", "items": [1, {"at": 1}, 3], "gone": 1, "same": 2, "kind": 1}
    b = {"to": "bob", "items": [1, {"at": 2}], "new": 1, "same": 2, "kind": True}
    assert diff_paths(a, b) == ["to", "items[1].at", "items[2]", "gone", "kind", "new"]
    assert diff_paths(1, 2) == ["(whole)"]
    assert diff_paths([], {}) == ["(whole)"]


def test_at_most_twenty_differences_are_listed() -> None:
    assert len(diff_paths({f"k{n}": n for n in range(50)}, {})) == 20
    assert len(diff_paths({f"k{n}": n for n in range(50)}, {f"k{n}": -1 for n in range(50)})) == 20
    assert len(diff_paths([*range(50)], [])) == 20


# --- args_digest ------------------------------------------------------------------------------------------------------


class Client:
    def __init__(self) -> None:
        self.socket = object()

    def call(self) -> None: ...


@dataclass
class Opaque:
    client: Client = field(default_factory=Client)


def test_arguments_are_equal_by_value() -> None:
    def arguments() -> tuple[Any, ...]:
        return (
            *(1, "x", {1: {2, 3}, (4,): None}, Item("a", ("b",)), Derived(n=1, more=Decimal(1)), Color.RED),
            *(Client(), Client().call, threading.Lock(), len, Client, Opaque(), functools.partial(len, [1])),
            *(PurePosixPath("a"), float("nan"), HumanMessage("hi"), 2**80, "\ud800", Pair(1, 2), bytearray(b"x")),
            *(frozenset({"a", "b"}), Fraction(1, 2), ValueError("x"), circle(), range(3)),
        )  # fmt: skip

    assert args_digest(arguments(), {"k": {1}}) == args_digest(arguments(), {"k": {1}})


def test_arguments_that_differ_have_different_digests() -> None:
    values: list[Any] = [
        *DISTINCT,
        *(Item("a"), Item("b"), Base(n=1), Base(n=2), Pair(1, 2), {1}, {1, 2}, frozenset(), {1: 2}, {2: 1}, {"1": 2}),
        *(len, print, Client, Client(), functools.partial(len), HumanMessage("a"), AIMessage("a"), HumanMessage("b")),
        *(PurePosixPath("a"), float("nan"), Fraction(1, 2), range(3), range(4), 1j, ValueError(1), ValueError(2)),
    ]  # fmt: skip
    assert len({args_digest((value,), {}) for value in values}) == len(values)
    assert args_digest((1,), {}) != args_digest((), {"x": 1})
    assert args_digest((-0.0, [-0.0]), {}) == args_digest((0.0, [0.0]), {})
    assert args_digest((1, 2), {}) != args_digest((2, 1), {})


def test_order_of_sets_and_dicts_does_not_count() -> None:
    assert args_digest(({1: 2, "a": 3},), {"x": 1, "y": 2}) == args_digest(({"a": 3, 1: 2},), {"y": 2, "x": 1})


def test_digest_of_arguments_is_the_same_in_every_process() -> None:
    code = (
        "import sys, threading\nsys.path.insert(0, '.')\nfrom waitpoint.canonical import args_digest\n"
        "class C: pass\n"
        "print(args_digest(({'a', 'b', 'c', 'd'}, C(), threading.Lock(), {'x', ('y', 1)}, lambda: 1), {'k': C}))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            timeout=50,
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in (1, 2, 3)
    }
    assert len(found) == 1
