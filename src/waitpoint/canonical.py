"""Payloads of questions in one form: plain data that a person can be shown, and digests that say "the same".

A payload holds JSON values, dates and times, UUIDs, decimals, bytes and enum members; models and dataclasses become
dicts at the call, tuples become lists. Digests are those of MessagePack with sorted keys, where -0.0 is 0.0 and every
other type is an extension that names its kind (see docs/decisions/0002-codec.md).
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final
from uuid import UUID

import ormsgpack

from waitpoint.codec import args_digest, is_model, path_of
from waitpoint.errors import PayloadError, UsageError

__all__ = ["args_digest", "diff_paths", "digest", "payload"]

_ATOMS: Final = frozenset({type(None), bool, int, str, bytes, datetime, date, time, timedelta, UUID})
_DEEPEST: Final = 200
_MAX_PATHS: Final = 20


# --- payloads ---------------------------------------------------------------------------------------------------------


def payload(value: Any, *, path: str = "payload") -> Any:
    """Return the plain form of a question's payload, sharing nothing that can change with the original.

    Raises PayloadError with the path of the first thing that is neither plain nor can be made so.
    """
    return value if type(value) in _ATOMS else _plain(value, [], path)


def _plain(value: Any, trail: list[str | int], root: str) -> Any:
    """Copy one value that is no atom; `trail` leads from the root to it."""
    cls = type(value)
    if cls is float:
        if math.isfinite(value):
            return value
        raise _misfit(value, trail, root, "it is not a finite number, and JSON has only those")
    if len(trail) > _DEEPEST:
        raise _misfit(value, trail[:8], root, "it contains itself, or nests too deep")
    if isinstance(value, dict):
        return _plain_dict(value, trail, root)
    if isinstance(value, (list, tuple)):
        return _plain_list(value, trail, root)
    return _plain_object(value, trail, root)


def _plain_dict(value: Mapping[Any, Any], trail: list[str | int], root: str) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, item in value.items():
        if type(item) in _ATOMS and type(key) is str:
            plain[key] = item
            continue
        if not isinstance(key, str):
            raise _misfit(key, trail, root, "a key of a dict has to be text")
        trail.append(key)
        plain[str.__str__(key)] = item if type(item) in _ATOMS else _plain(item, trail, root)
        trail.pop()
    return plain


def _plain_list(value: Sequence[Any], trail: list[str | int], root: str) -> list[Any]:
    plain = []
    for n, item in enumerate(value):
        if type(item) in _ATOMS:
            plain.append(item)
            continue
        trail.append(n)
        plain.append(_plain(item, trail, root))
        trail.pop()
    return plain


def _plain_object(value: Any, trail: list[str | int], root: str) -> Any:
    cls = type(value)
    if isinstance(value, Enum):
        return value
    if cls is Decimal:
        if value.is_finite():
            return value
        raise _misfit(value, trail, root, "it is not a finite number, and JSON has only those")
    if isinstance(value, str):  # of a derived class, like the others below
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return _plain(float.__float__(value), trail, root)
    if is_model(cls):
        try:
            fields = value.model_dump(serialize_as_any=True, warnings=False)
        except Exception as error:
            raise _misfit(value, trail, root, "its model cannot be dumped") from error
        return fields if type(fields) in _ATOMS else _plain(fields, trail, root)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return _plain_dict(fields, trail, root)
    raise _misfit(value, trail, root, "a person or another program could not be shown it")


def _misfit(value: Any, trail: Iterable[str | int], root: str, reason: str) -> PayloadError:
    path, name = path_of(root, trail), type(value).__qualname__
    return PayloadError(
        f"{path!r} cannot be part of a question - it holds a {name!r}: {reason} - pass JSON values, dates, UUIDs, "
        "decimals, bytes, enum members, or models and dataclasses of those",
        path=path,
        type_name=name,
    )


# --- digests ----------------------------------------------------------------------------------------------------------

_OPTIONS: Final = (
    ormsgpack.OPT_SORT_KEYS
    | ormsgpack.OPT_PASSTHROUGH_BIG_INT
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_UUID
)

# The kinds of extensions in what is digested. They never change: digests are stored and compared later.
_BIG_INT, _ENUM, _DATETIME, _DATE, _TIME, _TIMEDELTA, _UUID, _DECIMAL, _TEXT, _OTHER = range(1, 11)


def digest(value: Any, *, ignore: Iterable[str] = ()) -> str:
    """Return the digest of a payload: equal for equal payloads, in every process and release.

    `ignore` leaves out what may vary: "a.b" is a key, "items[].at" that key of every item. Raises PayloadError for what
    is no payload, and UsageError for a path that cannot be read.
    """
    for path in ignore:
        value = _without(value, _segments(path))
    return hashlib.sha256(_packed(value)).hexdigest()


def _packed(value: Any) -> bytes:
    try:
        data = ormsgpack.packb(value, _special, _OPTIONS)
        # The first byte of a float; without one there is no zero to normalise and no NaN to refuse.
        return ormsgpack.packb(_exact(value), _special, _OPTIONS) if 0xCB in data else data
    except TypeError:
        return ormsgpack.packb(_exact(payload(value)), _special, _OPTIONS)


def _special(value: Any) -> Any:
    """Return the extension for a value that MessagePack has no type for."""
    cls = type(value)
    if cls is int:
        return ormsgpack.Ext(_BIG_INT, hex(value).encode())
    if isinstance(value, Enum):
        return ormsgpack.Ext(_ENUM, _text(f"{cls.__qualname__}.{value.name}"))
    if cls is datetime or cls is date or cls is time:
        return ormsgpack.Ext({datetime: _DATETIME, date: _DATE, time: _TIME}[cls], value.isoformat().encode())
    if cls is timedelta:
        return ormsgpack.Ext(_TIMEDELTA, f"{value.days}:{value.seconds}:{value.microseconds}".encode())
    if cls is UUID:
        return ormsgpack.Ext(_UUID, value.bytes)
    if cls is Decimal and value.is_finite():
        return ormsgpack.Ext(_DECIMAL, str(value).encode())
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, (list, tuple)):
        return list(value)
    raise TypeError(cls)


def _exact(value: Any) -> Any:
    """Copy a payload with -0.0 as 0.0, and text that UTF-8 cannot carry as an extension; TypeError for NaN."""
    cls = type(value)
    if cls is float:
        if math.isfinite(value):
            return value + 0.0
        raise TypeError(cls)
    if cls is str:
        return value if _is_utf8(value) else ormsgpack.Ext(_TEXT, _text(value))
    if isinstance(value, (list, tuple)):
        return [_exact(item) for item in value]
    if isinstance(value, dict):
        if all(map(_is_utf8, value)):
            return {key: _exact(item) for key, item in value.items()}
        pairs = [[_text(key), _exact(value[key])] for key in sorted(value)]
        return ormsgpack.Ext(_OTHER, ormsgpack.packb(pairs, _special, _OPTIONS))
    return value


def _text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _is_utf8(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


# --- paths to leave out -----------------------------------------------------------------------------------------------

_EVERY: Final = -1
_SEGMENT: Final = re.compile(r"""\.?(?P<name>[^.\[\]]+)|\[(?P<index>\d*)\]|\[(['"])(?P<quoted>.*?)\3\]""")


def _segments(path: str) -> list[str | int]:
    """Read a path: keys, indexes, and -1 for every item."""
    found: list[str | int] = []
    at = 0
    while at < len(path):
        match = _SEGMENT.match(path, at)
        if match is None:
            break
        name, index, quoted = match["name"], match["index"], match["quoted"]
        if index is None:
            found.append(quoted if name is None else name)
        else:
            found.append(int(index) if index else _EVERY)
        at = match.end()
    if at < len(path) or not found:
        raise UsageError(f"path {path!r} cannot be read - write keys and indexes as in 'a.b', 'items[].at', 'x[0]'")
    return found


def _without(value: Any, segments: list[str | int]) -> Any:
    """Copy the containers along a path, leaving out what it leads to; an item that is left out keeps its place."""
    head, rest = segments[0], segments[1:]
    if isinstance(head, str):
        if not isinstance(value, dict) or head not in value:
            return value
        if not rest:
            return {key: item for key, item in value.items() if key != head}
        return {**value, head: _without(value[head], rest)}
    if not isinstance(value, (list, tuple)):
        return value
    return [
        item if head not in {_EVERY, n} else (_without(item, rest) if rest else None) for n, item in enumerate(value)
    ]


# --- differences ------------------------------------------------------------------------------------------------------


def diff_paths(a: Any, b: Any) -> list[str]:
    """List where two payloads differ, at most 20 places; "(whole)" if they have nothing in common."""
    found: list[str] = []
    _differences(a, b, "", found)
    return found


def _differences(a: Any, b: Any, path: str, found: list[str]) -> None:
    if len(found) >= _MAX_PATHS:
        return
    if isinstance(a, dict) and isinstance(b, dict):
        for key in [*a, *(key for key in b if key not in a)]:
            place = path_of(path, [key])
            if key in a and key in b:
                _differences(a[key], b[key], place, found)
            elif len(found) < _MAX_PATHS:
                found.append(place)
    elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        for n in range(max(len(a), len(b))):
            if n < len(a) and n < len(b):
                _differences(a[n], b[n], f"{path}[{n}]", found)
            elif len(found) < _MAX_PATHS:
                found.append(f"{path}[{n}]")
    elif _packed(a) != _packed(b):
        found.append(path or "(whole)")
