"""Values as JSON, for clients and people: results, events, questions, states, and whatever they hold.

Rule: what has no form in JSON becomes a placeholder that says so, never a `repr`. Nothing here can be read back.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from pathlib import PurePath
from typing import Any, Final
from uuid import UUID

from waitpoint.codec import foreign
from waitpoint.codec.kinds import is_model, is_namedtuple
from waitpoint.codec.natives import Kind, in_order, is_sequence
from waitpoint.codec.registry import PROCESS, Registry, default_tag
from waitpoint.codec.unknown import UnknownValue, find_unknown, made
from waitpoint.records import MISSING

_TEXTS: Final = (
    UUID, Decimal, PurePath, timezone, IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network,
)  # fmt: skip
_MESSAGES: Final = "langchain_core.messages."  # dumping them takes time, and gives their fields
_DEEPEST: Final = 200
_NO_FORM: Final = "it has no form in JSON"
_NESTING: Final = "it contains itself, or nests too deep"


def to_json(value: Any, registry: Registry = PROCESS) -> Any:
    """Return a value as JSON has it: None, booleans, numbers, texts, lists, and dicts with texts as keys.

    Messages become dicts with `type`, `content`, `id` and what else they have, models and dataclasses dicts of their
    fields, enum members their values, times ISO 8601, durations seconds, decimals and UUIDs text, bytes base64, sets and
    tuples lists, exceptions `{"error", "message"}`, and numbers that are not finite their names. An instance of a class in
    `registry` is shown as its fields; of any other, `{"tag": its class, "value": None, "reason": why}`.
    """
    return _View(registry).of(value)


class _View:
    """One walk through a value."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._inside: set[int] = set()  # what we are in the middle of, by identity

    def of(self, value: Any) -> Any:
        cls = type(value)
        if cls is str:
            return value if value.isascii() else _utf8(value)
        if value is None or cls is int or cls is bool:
            return value
        if cls is dict or cls is list:
            return self._within(value, value)
        if isinstance(value, Enum):
            return self._within(value, value.value)
        if isinstance(value, str):
            return _utf8(value)
        if isinstance(value, int):
            return int.__int__(value)
        if isinstance(value, float):
            return float.__float__(value) if math.isfinite(value) else str(float(value))
        leaf = _leaf(value)
        return self._within(value, self._parts(value)) if leaf is None else leaf

    def _within(self, value: Any, parts: Any) -> Any:
        """Return the view of what a value consists of."""
        inside, place = self._inside, id(value)
        if place in inside or len(inside) >= _DEEPEST:
            return _placeholder(value, _NESTING)
        inside.add(place)
        try:
            if isinstance(parts, Mapping):
                return self._dict(parts)
            return [self.of(item) for item in parts] if is_sequence(parts) else self.of(parts)
        finally:
            inside.discard(place)

    def _dict(self, value: Mapping[Any, Any]) -> Any:
        named = {key if type(key) is str and key.isascii() else self._key(key): item for key, item in value.items()}
        if len(named) < len(value):  # as with 1 and "1": none is dropped
            return [[self.of(key), self.of(item)] for key, item in value.items()]
        return {key: self.of(item) for key, item in named.items()}

    def _key(self, key: Any) -> str:
        plain = self.of(key)
        if isinstance(plain, str):
            return plain
        import json

        return json.dumps(plain, ensure_ascii=False)

    def _parts(self, value: Any) -> Any:
        """Return what a value that is no leaf consists of; a placeholder if that is not known."""
        cls = type(value)
        if isinstance(value, UnknownValue):
            shown = value.parts
            return {"tag": value.tag, "value": shown[0] if len(shown) == 1 else shown}
        if is_model(cls):
            return _fields_of_model(value)
        if is_dataclass(value) and not isinstance(value, type):
            named = ((f.name, getattr(value, f.name, MISSING)) for f in fields(value))
            return {name: item for name, item in named if item is not MISSING}
        if isinstance(value, Mapping):
            return value
        if is_namedtuple(cls):
            return {name: getattr(value, name) for name in cls._fields}
        if isinstance(value, (set, frozenset)):
            return in_order(value)
        if is_sequence(value):
            return value
        if isinstance(value, complex):
            return [value.real, value.imag]
        if isinstance(value, BaseException):
            return {"error": cls.__name__, "message": str(value)}
        if cls.__module__ == "numpy" and hasattr(value, "tolist"):
            return value.tolist()
        return self._registered(value)

    def _registered(self, value: Any) -> Any:
        """Return the fields of an instance of a class that is registered, as they would be stored."""
        encode = self._registry.packer.encoder_for(type(value))
        stored = None if encode is None else encode(value)
        if stored is None or stored[0] != Kind.TAGGED:
            return _placeholder(value, _NO_FORM)
        _tag, main, *extras = stored[1]
        if extras and isinstance(main, dict) and isinstance(extras[0], dict):
            return {**main, **extras[0]}
        return [main, *extras] if extras else main


def _utf8(text: str) -> str:
    """Return a text without what UTF-8 cannot carry."""
    return str.__str__(text).encode("utf-8", "replace").decode()


def _leaf(value: Any) -> Any:
    """Return the form of a value that holds no others; None if it is not of those."""
    cls = type(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, range):
        return {"start": value.start, "stop": value.stop, "step": value.step}
    if isinstance(value, re.Pattern):
        return value.pattern if isinstance(value.pattern, str) else _leaf(value.pattern)
    is_secret = cls.__module__ == "pydantic.types" and hasattr(value, "get_secret_value")  # its text is a row of stars
    return str(value) if isinstance(value, _TEXTS) or is_secret or foreign.encoder_of(cls) else None


def _fields_of_model(value: Any) -> Any:
    """Return a model as it dumps itself; one that cannot, or holds what is inert here, as its fields, and messages too."""
    try:
        if not type(value).__module__.startswith(_MESSAGES) and (not made[0] or not any(find_unknown(value))):
            return value.model_dump(serialize_as_any=True, warnings=False)
    except Exception:  # noqa: BLE001, S110 - a serializer of the user's, or a value that does not fit its field
        pass
    return {**value.__dict__, **(value.__pydantic_extra__ or {})}


def _placeholder(value: Any, reason: str) -> dict[str, Any]:
    return {"tag": default_tag(type(value)), "value": None, "reason": reason}
