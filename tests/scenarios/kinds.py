"""Kinds of values that people put into questions, answers and states, and what becomes of each."""

from __future__ import annotations

import collections
import dataclasses
import enum
import fractions
import pathlib
import threading
import uuid
import zoneinfo
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from pydantic import BaseModel

from waitpoint import codec


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Tone(enum.StrEnum):
    CALM = "calm"


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Order(BaseModel):
    amount: Decimal
    due: date


class Pair(NamedTuple):
    a: int
    b: int


for known in (Color, Level, Tone, Point, Order, Pair):
    codec.register(known)


class Refused:
    """Says that a value is refused where it is given, with the path of the part."""

    def __repr__(self) -> str:
        return "refused"


REFUSED = Refused()
SAME: Any = object()


class Kind(NamedTuple):
    """A value, and what it is as a question, as an answer and in the state; `SAME`: equal and of the same type."""

    value: Any
    as_question: Any = SAME
    as_answer: Any = SAME
    in_state: Any = SAME


def live(value: Any) -> Kind:
    return Kind(value, REFUSED, REFUSED, REFUSED)


def data(value: Any) -> Kind:
    """What a process can store, and a person cannot be shown."""
    return Kind(value, REFUSED)


KINDS = {
    "none": Kind(None),
    "bool": Kind(True),
    "int": Kind(-7),
    "big int": Kind(2**70),
    "float": Kind(1.5),
    "text": Kind("naïve ✓ 漢字 🙂 'quoted' \"twice\" \x00"),
    "lone surrogate": Kind("\ud800"),
    "bytes": Kind(b"\x00\xff"),
    "list": Kind([1, [2, []]]),
    "tuple": Kind((1, (2,)), [1, [2]]),
    "dict": Kind({"a": {"b": 1}, "": 2}),
    "date": Kind(date(2026, 1, 2)),
    "aware datetime": Kind(datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)),
    "datetime of a zone": Kind(datetime(2026, 1, 2, 3, 4, tzinfo=zoneinfo.ZoneInfo("UTC"))),
    "naive datetime": Kind(datetime(2026, 1, 2, 3, 4, 5, 6)),  # noqa: DTZ001 - people do that
    "time": Kind(time(1, 2, 3)),
    "timedelta": Kind(timedelta(days=-1, microseconds=1)),
    "uuid": Kind(uuid.UUID(int=5)),
    "decimal": Kind(Decimal("1.10")),
    "enum": Kind(Color.RED),
    "int enum": Kind(Level.HIGH),
    "str enum": Kind(Tone.CALM),
    "dataclass": Kind(Point(1, 2), {"x": 1, "y": 2}),
    "model": Kind(
        Order(amount=Decimal("1.10"), due=date(2026, 1, 2)),
        {"amount": Decimal("1.10"), "due": date(2026, 1, 2)},
    ),
    "named tuple": Kind(Pair(1, 2), [1, 2]),
    "ordered dict": Kind(collections.OrderedDict(a=1), {"a": 1}),
    "nan": Kind(float("nan"), REFUSED),
    "infinity": Kind(float("inf"), REFUSED),
    "keys that are no text": data({1: "a", (2, 3): "b"}),
    "set": data({1, 2}),
    "frozenset": data(frozenset({1})),
    "bytearray": data(bytearray(b"x")),
    "deque": data(collections.deque([1, 2])),
    "path": data(pathlib.Path("a/b")),
    "pure path": data(pathlib.PurePosixPath("a/b")),
    "complex": data(1 + 2j),
    "fraction": data(fractions.Fraction(1, 3)),
    "range": data(range(1, 9, 2)),
    "exception": data(ValueError("x")),
    "lock": live(threading.Lock()),
    "function": live(lambda: 1),
    "builtin": live(len),
    "generator": live(i for i in ()),
    "object": live(object()),
    "class": live(Point),
    "module": live(threading),
}

OF_S065 = ("big int",)
OF_S066 = ("fraction", "complex", "range", "path", "pure path")


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal, part by part of the same types; NaN is NaN, and equal exceptions have equal args."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Exception):
        return bool(a.args == b.args)
    if isinstance(a, dict):
        return list(map(repr, a)) == list(map(repr, b)) and all(map(same, a.values(), b.values()))
    if isinstance(a, list | tuple | collections.deque):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return repr(a) == repr(b)
    return bool(a == b)


def expected(kind: Kind, what: Any) -> Any:
    """Return what a value becomes."""
    return kind.value if what is SAME else what
