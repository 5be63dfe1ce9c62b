"""Values whose type this process does not know: kept as they are, shown as JSON, written back byte for byte."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import date, time, timedelta
from enum import Enum
from typing import Any

import ormsgpack

from waitpoint.codec.hooks import Unpacker
from waitpoint.codec.kinds import is_model
from waitpoint.codec.natives import is_sequence
from waitpoint.codec.paths import members

made = [0]  # how many were ever made in this process: tells cheaply whether decoding met one


@dataclass(frozen=True, slots=True)
class UnknownValue:
    """A stored value of a type that is not registered here, or no longer fits its class; `reason` says which.

    It is inert: it takes part in equality and hashing, and is stored again exactly as it was. Made by hand, it is a
    placeholder: any plain value may be given as payload, to be shown in place of what could not be stored.
    """

    tag: str
    payload: Any = field(repr=False)
    reason: str = field(default="its type is not registered in this process", compare=False)

    def __post_init__(self) -> None:
        made[0] += 1
        if not isinstance(self.payload, bytes):
            object.__setattr__(self, "payload", ormsgpack.packb([self.tag, self.payload]))

    def to_json(self) -> dict[str, Any]:
        """Return what can be shown of it: the tag, and the stored parts as JSON values."""
        parts = ormsgpack.unpackb(self.payload, ext_hook=_INERT)
        shown = [to_json(part) for part in parts[1:]]
        return {"tag": self.tag, "value": shown[0] if len(shown) == 1 else shown}


def _keep(payload: Any, data: bytes) -> UnknownValue:
    return UnknownValue(str(payload[0]), data)


_INERT = Unpacker(_keep)
_LEAVES = (type(None), str, int, float, bytes)


def to_json(value: Any) -> Any:
    """Return a JSON view of a decoded value, for showing only: it cannot be read back."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, UnknownValue):
        return value.to_json()
    if isinstance(value, Enum):
        return to_json(value.value)
    if is_model(type(value)):
        return to_json(value.__dict__)
    if is_dataclass(value):
        return to_json({f.name: getattr(value, f.name, None) for f in fields(value)})
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if is_sequence(value):
        return [to_json(item) for item in value]
    return str(value)


def find_unknown(value: Any, path: str = "") -> Iterator[tuple[str, UnknownValue]]:
    """Yield every unknown value inside a decoded value, with its path."""
    if isinstance(value, UnknownValue):
        yield path, value
    elif not isinstance(value, _LEAVES):
        for place, member in members(value, path):
            yield from find_unknown(member, place)
