"""Python's own types survive storage: equal, of the same type, in every combination."""

# ruff: noqa: DTZ001, DTZ901 - times without a zone are values too
from __future__ import annotations

import math
import re
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from ipaddress import ip_address, ip_interface, ip_network
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waitpoint import codec

BERLIN = ZoneInfo("Europe/Berlin")
NAMED = timezone(timedelta(hours=2), "CEST")


def there_and_back(value: Any) -> Any:
    return codec.loads(codec.dumps(value))


def alike(a: Any, b: Any) -> bool:
    """Equality that also compares types, signs of zero, NaN and the order of dicts."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(alike(x, y) and alike(a[x], b[y]) for x, y in zip(a, b, strict=True))
    if isinstance(a, (list, tuple, deque)):
        return len(a) == len(b) and all(map(alike, a, b))
    return bool(a == b)


VALUES: list[Any] = [
    *(None, True, False, 0, -1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**5000, -(10**50)),
    *(0.0, -0.0, 1.5, 5e-324, 1.7e308, float("inf"), float("-inf"), float("nan")),
    *("", "plain", "käse", "😀", "\ud800", "a\udfffb", "\x00", "x" * 5000),
    *(b"", b"\x00\xff", bytearray(b"changing"), bytearray()),
    *([], [1, [2, [3]]], (), (1,), (1, (2, [3])), set(), {1, 2}, frozenset({"a", ("b", 1)}), {frozenset({1})}),
    *({}, {"a": {"b": 1}}, {1: "one", "1": "text"}, {None: 1, True: 2, 2.5: 3, b"k": 4, (1, 2): 5}, {"\ud800": 1}),
    *(deque([1, 2]), deque([1, 2, 3], maxlen=3), OrderedDict(b=1, a=2), Counter("abca"), Counter({"a": -1})),
    *(defaultdict(list, a=[1]), defaultdict(None, {1: 2}), defaultdict(int)),
    *(datetime(2024, 2, 29, 1, 2, 3, 4), datetime(2024, 1, 1, tzinfo=UTC), datetime(1, 1, 1), datetime.max),
    *(datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1), datetime(2024, 1, 1, tzinfo=NAMED)),
    *(datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=-3, seconds=7))), datetime(2024, 1, 1, fold=1)),
    *(date(2024, 2, 29), time(1, 2, 3, 4), time(1, 2, tzinfo=UTC), time(2, fold=1), timedelta(-1, 3, 5)),
    *(timedelta.max, UTC, NAMED, timezone(timedelta(minutes=-90)), BERLIN),
    *(UUID(int=0), UUID("12345678-1234-5678-1234-567812345678")),
    *(Decimal("1.10"), Decimal("-0"), Decimal("1E+500"), Decimal("Infinity"), Fraction(1, 3), Fraction(-7, 10**40)),
    *(1j, complex(-0.0, 2.5), range(5), range(10, 0, -3), range(10**30)),
    *(Path("/var/x"), Path(), PurePosixPath("a/b"), PureWindowsPath("c:\\x\\y")),
    *(ip_address("10.0.0.1"), ip_address("::1%eth0"), ip_network("10.0.0.0/8"), ip_network("fe80::/10")),
    *(ip_interface("10.1.2.3/8"), ip_interface("::1/128")),
    *(re.compile("a.b", re.IGNORECASE | re.DOTALL), re.compile(rb"\d+")),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda v: type(v).__name__)
def test_value_comes_back_equal_and_of_the_same_type(value: Any) -> None:
    assert alike(there_and_back(value), value)
    assert alike(there_and_back({"deep": [(value,)]}), {"deep": [(value,)]})


def test_order_and_equal_bytes_are_kept() -> None:
    assert list(there_and_back({"b": 1, "a": 2})) == ["b", "a"]
    assert list(there_and_back({2: 1, 1: 2})) == [2, 1]
    words = [f"word{n}" for n in range(50)]
    assert codec.dumps({*words}) == codec.dumps({*reversed(words)})
    mixed = [frozenset({"a", 1}), frozenset({None, b"x"}), ("a", frozenset({2, "b"})), 1, "1", 2.5]
    assert codec.dumps({*mixed}) == codec.dumps({*reversed(mixed)})


def test_fold_zone_and_name_of_a_time_are_kept() -> None:
    back = there_and_back(datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1))
    assert back.fold == 1
    assert back.tzinfo is BERLIN
    assert there_and_back(datetime(2024, 10, 27, 2, 30, fold=1)).fold == 1
    assert there_and_back(time(2, 30, fold=1)).fold == 1
    assert there_and_back(datetime(2024, 1, 1, tzinfo=NAMED)).tzname() == "CEST"
    assert there_and_back(deque([1], maxlen=4)).maxlen == 4
    assert there_and_back(defaultdict(list))["new"] == []


def test_not_a_number_decimals_keep_their_kind() -> None:
    assert str(there_and_back(Decimal("sNaN12"))) == "sNaN12"


ERRORS: list[BaseException] = [
    ValueError("no", 3),
    KeyError("k"),
    FileNotFoundError(2, "No such file", "/etc/x"),
    OSError(5, "io", "a", None, "b"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    StopIteration(5),
    ModuleNotFoundError("no x", name="x", path="/p"),
    ExceptionGroup("several", [ValueError(1), TypeError("t")]),
    KeyboardInterrupt(),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_builtin_exception_comes_back_with_its_arguments(error: BaseException) -> None:
    error.add_note("while testing")
    back = there_and_back(error)
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert repr(back) == repr(error)
    assert back.__notes__ == ["while testing"]
    for name in ("errno", "strerror", "filename", "filename2", "name", "path", "reason", "value"):
        assert getattr(back, name, None) == getattr(error, name, None)


def test_dict_that_looks_like_stored_form_stays_a_dict() -> None:
    for value in (
        {"__type__": "tuple", "value": [1]},
        {"lc": 1, "type": "constructor", "id": ["langchain", "x"], "kwargs": {}},
        ["lc.ai", {"content": "x"}],
        [4, ["wp.send", {"node": "n"}]],
        {"tag": "wp.send"},
    ):
        assert alike(there_and_back(value), value)


def test_text_and_bytes_that_are_stored_form_stay_what_they_are() -> None:
    stored = codec.dumps({"x": (1, 2)})
    assert there_and_back(stored) == stored
    assert there_and_back([stored.decode("latin-1")]) == [stored.decode("latin-1")]
    assert there_and_back({"x": ormsgpack.packb(["wp.send", {}])}) == {"x": ormsgpack.packb(["wp.send", {}])}


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(2**80), max_value=2**80)
    | st.floats()
    | st.text()
    | st.text(alphabet=st.characters(min_codepoint=0xD7F0, max_codepoint=0xE010, categories=["Cs", "Co", "Lo"]))
    | st.binary()
    | st.binary().map(bytearray)
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.complex_numbers(allow_nan=False)
    | st.datetimes(timezones=st.none() | st.just(UTC) | st.timezones())
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.uuids()
    | st.ip_addresses()
)
hashables = st.recursive(
    scalars.filter(lambda v: v == v and not isinstance(v, bytearray)),  # noqa: PLR0124 - leaves out NaN
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=4),
    max_leaves=5,
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(), inner, max_size=5)
        | st.dictionaries(hashables, inner, max_size=5)
        | st.lists(inner, max_size=4).map(tuple)
        | st.lists(inner, max_size=4).map(deque)
        | st.sets(hashables, max_size=4)
    ),
    max_leaves=20,
)


@given(values)
def test_any_nested_value_survives(value: Any) -> None:
    assert alike(there_and_back(value), value)


@given(values)
def test_storing_again_gives_the_same_bytes(value: Any) -> None:
    data = codec.dumps(value)
    assert codec.dumps(codec.loads(data)) == data
