"""Values whose type this process does not know: kept as they are, and written back byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import ormsgpack

from waitpoint.codec.hooks import Unpacker
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

    @property
    def parts(self) -> list[Any]:
        """What is stored of it after its tag; what is inside and tagged is inert too."""
        found: list[Any] = ormsgpack.unpackb(self.payload, ext_hook=_INERT)
        return found[1:]


def _keep(payload: Any, data: bytes) -> UnknownValue:
    return UnknownValue(str(payload[0]), data)


_INERT = Unpacker(_keep)
_LEAVES = (type(None), str, int, float, bytes)


def find_unknown(value: Any, path: str = "") -> Iterator[tuple[str, UnknownValue]]:
    """Yield every unknown value inside a decoded value, with its path."""
    if isinstance(value, UnknownValue):
        yield path, value
    elif not isinstance(value, _LEAVES):
        for place, member in members(value, path):
            yield from find_unknown(member, place)
