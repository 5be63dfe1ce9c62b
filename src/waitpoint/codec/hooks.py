"""The functions that the MessagePack library calls for what it does not know itself, one for each level of nesting.

A tagged value is an extension whose bytes are again MessagePack; packing or reading it goes one level down. The chain
of levels holds no state, so that one registry serves all threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import ormsgpack

from waitpoint.codec.limits import MAX_LEVELS, UNCOUNTED_LEVELS, too_deep
from waitpoint.codec.natives import DECODERS, Encoder, Kind
from waitpoint.errors import StoreError, UnstorableValueError

# Nothing may be converted silently: whatever is not exactly a plain type comes to our hook.
OPTIONS: Final = (
    ormsgpack.OPT_PASSTHROUGH_BIG_INT
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_UUID
)


class _Raised(threading.local):
    """The first exception inside a hook: the library drops it and reports only that a hook failed."""

    error: BaseException | None = None


_raised = _Raised()


def take_raised() -> BaseException | None:
    """Return what the failed hook raised, once."""
    error, _raised.error = _raised.error, None
    return error


def _keep(error: BaseException) -> None:
    if _raised.error is None:
        _raised.error = error


def pack(value: Any, hook: Packer) -> bytes:
    """Pack the way that serves nearly all values; raises TypeError for the few that need `careful.pack`."""
    data = ormsgpack.packb(value, hook, OPTIONS)
    # Invariant: the library writes bytearray and memoryview as bytes without asking. A first byte of that kind is rare.
    if (0xC4 in data or 0xC5 in data or 0xC6 in data) and _holds_buffer(value):
        raise TypeError("bytearray")
    return data


def _holds_buffer(value: Any) -> bool:
    cls = type(value)
    if cls is not dict and cls is not list:
        return cls is bytearray or cls is memoryview
    items = value.values() if cls is dict else value
    types = {*map(type, items)}  # most containers hold nothing that has to be looked into
    if bytearray in types or memoryview in types:
        return True
    return (dict in types or list in types) and any(map(_holds_buffer, items))


class Packer:
    """What packs a value that MessagePack has no type for, at one level of nesting."""

    __slots__ = ("_encoders", "_find", "_is_counted", "_level", "_next")

    def __init__(self, encoders: dict[type, Encoder], find: Callable[[type], Encoder | None], level: int = 0) -> None:
        self._encoders = encoders
        self._find = find
        self._level = level
        self._is_counted = level == UNCOUNTED_LEVELS
        self._next: Packer | None = None

    def __call__(self, value: Any) -> ormsgpack.Ext:
        """Return the extension for the value; raises TypeError when its type is not known."""
        try:
            cls = type(value)
            encoder = self._encoders.get(cls) or self._find(cls)
            if encoder is None:
                raise TypeError(cls)
            kind, payload = encoder(value)
            return ormsgpack.Ext(kind, self.pack_below(pack, payload))
        except BaseException as error:
            _keep(error)
            raise

    def encoder_for(self, cls: type) -> Encoder | None:
        """Return how values of this class are taken apart, or None for a class that is not known."""
        return self._encoders.get(cls) or self._find(cls)

    def pack_below(self, how: Callable[[Any, Packer], bytes], payload: Any) -> bytes:
        """Pack what a tagged value consists of, one level down, in the fast or the careful way."""
        data = how(payload, self._next or self._below())
        if self._is_counted and too_deep(data):
            raise UnstorableValueError("nested too deep")
        return data

    def _below(self) -> Packer:
        if self._level >= MAX_LEVELS:
            raise UnstorableValueError("nested too deep")
        self._next = Packer(self._encoders, self._find, self._level + 1)
        return self._next


class Unpacker:
    """What puts a tagged value together again, at one level of nesting."""

    __slots__ = ("_level", "_next", "_read_tagged")

    def __init__(self, read_tagged: Callable[[Any, bytes], Any], level: int = 0) -> None:
        self._read_tagged = read_tagged
        self._level = level
        self._next: Unpacker | None = None

    def __call__(self, kind: int, data: bytes) -> Any:
        """Return the value of an extension; raises for a kind that does not exist."""
        try:
            if self._level == UNCOUNTED_LEVELS and too_deep(data):
                raise StoreError("it is nested too deep")
            payload = ormsgpack.unpackb(data, ext_hook=self._next or self._below())
            if kind == Kind.TAGGED:
                return self._read_tagged(payload, data)
            if kind < 0:
                raise StoreError(f"it holds a value of the unknown kind {kind}")
            return DECODERS[kind](payload)
        except BaseException as error:
            _keep(error)
            raise

    def _below(self) -> Unpacker:
        if self._level >= MAX_LEVELS:
            raise StoreError("it is nested too deep")
        self._next = Unpacker(self._read_tagged, self._level + 1)
        return self._next
