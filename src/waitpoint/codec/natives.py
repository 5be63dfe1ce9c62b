"""Values of Python's own types: how each is taken apart for storage and put together again.

Rule: what comes back equals what went in and has the same type. The table is closed: a kind is a small number that
selects one of these functions, so stored bytes cannot name code. A kind's number and form never change; a type that
needs another form gets a new number.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any, Final
from uuid import UUID

from typing_extensions import TypeIs

Encoder = Callable[[Any], tuple[int, Any]]
Decoder = Callable[[Any], Any]


class Kind:
    """The MessagePack extension types in stored bytes: plain numbers, since looking up enum members takes time."""

    TAGGED: Final = 1
    BIG_INT: Final = 2
    TEXT: Final = 3
    PAIRS: Final = 4
    TUPLE: Final = 5
    SET: Final = 6
    FROZENSET: Final = 7
    DEQUE: Final = 8
    BYTEARRAY: Final = 9
    DATETIME: Final = 10
    DATE: Final = 11
    TIME: Final = 12
    TIMEDELTA: Final = 13
    TIMEZONE: Final = 14
    ZONEINFO: Final = 15
    UUID: Final = 16
    DECIMAL: Final = 17
    FRACTION: Final = 18
    COMPLEX: Final = 19
    RANGE: Final = 20
    PATH: Final = 21
    IP: Final = 22
    PATTERN: Final = 23
    EXCEPTION: Final = 24
    ORDERED: Final = 25
    COUNTER: Final = 26
    DEFAULTDICT: Final = 27


BUILTIN_EXCEPTIONS: Mapping[str, type[BaseException]] = {
    name: cls
    for name, cls in vars(builtins).items()
    if isinstance(cls, type) and issubclass(cls, BaseException) and cls.__name__ == name
}
_PATHS: Mapping[str, type[PurePath]] = {"posix": PurePosixPath, "windows": PureWindowsPath, "here": Path}
_IP_TYPES: tuple[type, ...] = (IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network)
_IPS: Mapping[str, type] = {cls.__name__: cls for cls in _IP_TYPES}
_FACTORY_TYPES: tuple[type, ...] = (list, dict, set, frozenset, tuple, str, int, float, bool, bytes, deque, Counter)
_FACTORIES: Mapping[str, type] = {cls.__name__: cls for cls in _FACTORY_TYPES}


def is_sequence(value: Any) -> TypeIs[Collection[Any]]:
    """Whether the value is one of the built-in collections without keys."""
    return isinstance(value, (list, tuple, set, frozenset, deque))


# --- numbers and text -------------------------------------------------------------------------------------------------


def big_int(value: int) -> tuple[int, Any]:
    """Take apart an integer beyond 64 bits. Hexadecimal: decimal digits are limited by the interpreter."""
    return Kind.BIG_INT, hex(value)


def odd_text(value: str) -> tuple[int, Any]:
    """Take apart a text that holds lone surrogates, which UTF-8 cannot carry."""
    return Kind.TEXT, value.encode("utf-8", "surrogatepass")


def _decimal(value: Decimal) -> tuple[int, Any]:
    return Kind.DECIMAL, str(value)


def _fraction(value: Any) -> tuple[int, Any]:
    return Kind.FRACTION, [value.numerator, value.denominator]


def _read_fraction(parts: list[Any]) -> Any:
    from fractions import Fraction

    return Fraction(parts[0], parts[1])  # two parts: a single text such as "1e999999999" would be computed


def _complex(value: complex) -> tuple[int, Any]:
    return Kind.COMPLEX, [value.real, value.imag]


def _range(value: range) -> tuple[int, Any]:
    return Kind.RANGE, [value.start, value.stop, value.step]


# --- containers -------------------------------------------------------------------------------------------------------


def pairs(value: Mapping[Any, Any]) -> tuple[int, Any]:
    """Take apart a dict with keys other than text, in its order."""
    return Kind.PAIRS, _flat(value)


def _flat(value: Mapping[Any, Any]) -> list[Any]:
    return [part for pair in value.items() for part in pair]


def _unflat(parts: list[Any]) -> Iterable[tuple[Any, Any]]:
    return zip(parts[::2], parts[1::2], strict=True)


def in_order(value: Collection[Any]) -> list[Any]:
    """Order a set's members, so that equal sets give equal bytes in every process."""
    types = {*map(type, value)}
    return sorted(value) if types <= {str} or types <= {int} else sorted(value, key=_place)


def _place(member: Any) -> tuple[str, str]:
    """Return a key that orders members of any types; sets inside them have no order of their own."""
    inner = member
    if isinstance(member, frozenset):
        inner = sorted(map(_place, member))
    elif isinstance(member, tuple):
        inner = [*map(_place, member)]
    return type(member).__qualname__, repr(inner)


def _tuple(value: tuple[Any, ...]) -> tuple[int, Any]:
    return Kind.TUPLE, list(value)


def _set(value: set[Any]) -> tuple[int, Any]:
    return Kind.SET, in_order(value)


def _frozenset(value: frozenset[Any]) -> tuple[int, Any]:
    return Kind.FROZENSET, in_order(value)


def _deque(value: deque[Any]) -> tuple[int, Any]:
    return Kind.DEQUE, [value.maxlen, list(value)]


def _bytearray(value: bytearray) -> tuple[int, Any]:
    return Kind.BYTEARRAY, bytes(value)


def _ordered(value: OrderedDict[Any, Any]) -> tuple[int, Any]:
    return Kind.ORDERED, _flat(value)


def _counter(value: Counter[Any]) -> tuple[int, Any]:
    return Kind.COUNTER, _flat(value)


def is_known_factory(factory: Any) -> bool:
    """Whether a `defaultdict` with this factory can be stored."""
    return factory is None or any(factory is known for known in _FACTORIES.values())


def _defaultdict(value: defaultdict[Any, Any]) -> tuple[int, Any]:
    factory: Any = value.default_factory
    # A factory outside the table stays what it is, and is then refused like any function.
    is_named = factory is not None and is_known_factory(factory)
    return Kind.DEFAULTDICT, [factory.__name__ if is_named else factory, _flat(value)]


def _read_defaultdict(parts: list[Any]) -> defaultdict[Any, Any]:
    name, flat = parts
    return defaultdict(None if name is None else _FACTORIES[name], _unflat(flat))


# --- time -------------------------------------------------------------------------------------------------------------


def _plain_zone(zone: Any) -> bool:
    """Whether ISO 8601 text carries this zone wholly: none, or a fixed offset without a name."""
    return zone is None or (type(zone) is timezone and len(zone.__getinitargs__()) == 1)  # type: ignore[attr-defined]


def _moment(kind: int, value: Any) -> tuple[int, Any]:
    if value.fold == 0 and _plain_zone(value.tzinfo):
        return kind, value.isoformat()
    return kind, [value.replace(tzinfo=None, fold=0).isoformat(), value.fold, value.tzinfo]


def _datetime(value: datetime) -> tuple[int, Any]:
    return _moment(Kind.DATETIME, value)


def _time(value: time) -> tuple[int, Any]:
    return _moment(Kind.TIME, value)


def _read_datetime(parts: Any) -> datetime:
    if isinstance(parts, str):
        return datetime.fromisoformat(parts)
    text, fold, zone = parts
    return datetime.fromisoformat(text).replace(fold=fold, tzinfo=zone)


def _read_time(parts: Any) -> time:
    if isinstance(parts, str):
        return time.fromisoformat(parts)
    text, fold, zone = parts
    return time.fromisoformat(text).replace(fold=fold, tzinfo=zone)


def _date(value: date) -> tuple[int, Any]:
    return Kind.DATE, value.isoformat()


def _timedelta(value: timedelta) -> tuple[int, Any]:
    return Kind.TIMEDELTA, [value.days, value.seconds, value.microseconds]


def _timezone(value: timezone) -> tuple[int, Any]:
    offset, *name = value.__getinitargs__()  # type: ignore[attr-defined]
    return Kind.TIMEZONE, [offset.days, offset.seconds, offset.microseconds, *name]


def _read_timezone(parts: list[Any]) -> timezone:
    days, seconds, microseconds, *name = parts
    return timezone(timedelta(days, seconds, microseconds), *name)


def fixed_offset(value: Any) -> tuple[int, Any]:
    """Take apart a foreign zone of one fixed offset; it comes back as the standard library's `timezone`."""
    return _timezone(timezone(value.utcoffset(None)))


def _zoneinfo(value: Any) -> tuple[int, Any]:
    # A zone that was read from a file has no key: it comes out as a file object would, as nothing storable.
    key: str | None = value.key
    return Kind.ZONEINFO, value.utcoffset if key is None else key


def _read_zoneinfo(key: str) -> Any:
    from zoneinfo import ZoneInfo

    return ZoneInfo(key)


# --- the rest ---------------------------------------------------------------------------------------------------------


def _uuid(value: UUID) -> tuple[int, Any]:
    return Kind.UUID, value.hex


def _path(value: PurePath) -> tuple[int, Any]:
    pure = next((name for name, cls in _PATHS.items() if cls is type(value)), "here")
    return Kind.PATH, [pure, "windows" if isinstance(value, PureWindowsPath) else "posix", str(value)]


def _read_path(parts: list[str]) -> PurePath:
    name, flavour, text = parts
    here = "windows" if issubclass(type(Path()), PureWindowsPath) else "posix"
    # A path of the other system cannot be a concrete one on this machine; its pure kind is the nearest.
    return _PATHS[flavour if name == "here" and flavour != here else name](text)


def _ip(value: Any) -> tuple[int, Any]:
    return Kind.IP, [type(value).__name__, str(value)]


def _read_ip(parts: list[str]) -> Any:
    name, text = parts
    return _IPS[name](text)


def _pattern(value: re.Pattern[Any]) -> tuple[int, Any]:
    return Kind.PATTERN, [value.pattern, value.flags]


def _exception(value: BaseException) -> tuple[int, Any]:
    args = value.__reduce__()[1] if isinstance(value, OSError) else value.args  # OSError's args leave out file names
    attributes = dict(vars(value))
    if isinstance(value, ImportError):
        attributes |= {k: v for k in ("name", "path") if (v := getattr(value, k)) is not None}
    return Kind.EXCEPTION, [type(value).__name__, list(args), attributes]


def _read_exception(parts: list[Any]) -> BaseException:
    name, args, attributes = parts
    error = BUILTIN_EXCEPTIONS[name](*args)
    for key, value in attributes.items():
        setattr(error, key, value)
    return error


def _cannot_be_read(_: Any) -> Any:
    message = "this kind is read elsewhere"
    raise ValueError(message)


ENCODERS: Mapping[type, Encoder] = {
    int: big_int,  # small ones never get here
    tuple: _tuple,
    set: _set,
    frozenset: _frozenset,
    deque: _deque,
    bytearray: _bytearray,
    OrderedDict: _ordered,
    Counter: _counter,
    defaultdict: _defaultdict,
    datetime: _datetime,
    date: _date,
    time: _time,
    timedelta: _timedelta,
    timezone: _timezone,
    UUID: _uuid,
    Decimal: _decimal,
    complex: _complex,
    range: _range,
    PurePosixPath: _path,
    PureWindowsPath: _path,
    type(Path()): _path,
    **dict.fromkeys(_IP_TYPES, _ip),
    re.Pattern: _pattern,
    **dict.fromkeys(BUILTIN_EXCEPTIONS.values(), _exception),
}

# By name: their modules are loaded by whoever has such a value, and by us only to read one.
_SELDOM: Mapping[str, Encoder] = {"fractions.Fraction": _fraction, "zoneinfo.ZoneInfo": _zoneinfo}


def seldom(cls: type) -> Encoder | None:
    """Return the encoder of a class that is not in `ENCODERS` because its module may not be loaded."""
    encoder = _SELDOM.get(f"{cls.__module__}.{cls.__qualname__}")
    return encoder if encoder and getattr(sys.modules.get(cls.__module__), cls.__name__, None) is cls else None


_DECODERS_BY_KIND: Mapping[int, Decoder] = {
    Kind.BIG_INT: lambda p: int(p, 16),
    Kind.TEXT: lambda p: p.decode("utf-8", "surrogatepass"),
    Kind.PAIRS: lambda p: dict(_unflat(p)),
    Kind.TUPLE: tuple,
    Kind.SET: set,
    Kind.FROZENSET: frozenset,
    Kind.DEQUE: lambda p: deque(p[1], p[0]),
    Kind.BYTEARRAY: lambda p: bytearray(memoryview(p)),  # a number here would reserve that much memory
    Kind.DATETIME: _read_datetime,
    Kind.DATE: date.fromisoformat,
    Kind.TIME: _read_time,
    Kind.TIMEDELTA: lambda p: timedelta(*p),
    Kind.TIMEZONE: _read_timezone,
    Kind.ZONEINFO: _read_zoneinfo,
    Kind.UUID: lambda p: UUID(hex=p),
    Kind.DECIMAL: Decimal,
    Kind.FRACTION: _read_fraction,
    Kind.COMPLEX: lambda p: complex(*p),
    Kind.RANGE: lambda p: range(*p),
    Kind.PATH: _read_path,
    Kind.IP: _read_ip,
    Kind.PATTERN: lambda p: re.compile(*p),
    Kind.EXCEPTION: _read_exception,
    Kind.ORDERED: lambda p: OrderedDict(_unflat(p)),
    Kind.COUNTER: lambda p: Counter(dict(_unflat(p))),
    Kind.DEFAULTDICT: _read_defaultdict,
}

DECODERS: tuple[Decoder, ...] = tuple(
    _DECODERS_BY_KIND.get(n, _cannot_be_read) for n in range(max(_DECODERS_BY_KIND) + 1)
)
