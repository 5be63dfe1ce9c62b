"""Pydantic models: stored as their fields, read without running a validator.

Stored are the fields that were set, then those that hold defaults, then extra fields, then private attributes. Pydantic
itself is not imported here: whoever has an instance has imported it.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable
from typing import Any

from waitpoint.codec.natives import Encoder, Kind
from waitpoint.codec.unknown import UnknownValue

_NEW = object.__new__
_SET = object.__setattr__
_BLANK = frozenset({dict, list})


def functions(cls: Any, tag: str, *, lean: bool = False) -> tuple[Encoder, Callable[[list[Any], bytes], Any]]:
    """Return how instances are taken apart and put together.

    `lean` leaves out fields nobody set that are None or empty, and `type`: only for classes whose defaults will stay.
    For others a default is stored too, so that a later default does not change old values.
    """
    look_up = functools.cache(lambda: _Shape(cls))  # at first use: a model may still wait for a forward reference

    def encode(value: Any) -> tuple[int, Any]:
        names = look_up().names
        fields_set = value.__pydantic_fields_set__
        given, rest = {}, {}
        for name, item in value.__dict__.items():
            if name in fields_set:
                given[name] = item
            elif lean and (item is None or name == "type" or (not item and type(item) in _BLANK)):
                pass
            elif name in names:
                rest[name] = item
        if not names >= given.keys():
            given = {name: item for name, item in given.items() if name in names}
        extra, private = value.__pydantic_extra__, value.__pydantic_private__
        if extra or private:
            return Kind.TAGGED, [tag, given, rest, extra, private] if private else [tag, given, rest, extra]
        return Kind.TAGGED, [tag, given, rest] if rest else [tag, given]

    def read(payload: list[Any], data: bytes) -> Any:
        shape, given, count = look_up(), payload[1], len(payload)
        stored = {**payload[2], **given} if count > 2 else given
        extra = payload[3] if count > 3 else None
        fields_set = {*given}
        if not shape.names >= stored.keys():
            gone = {name: item for name, item in stored.items() if name not in shape.names}
            stored = {name: item for name, item in stored.items() if name in shape.names}
            fields_set &= shape.names
            extra = {**gone, **(extra or {})}
        for name in shape.required:
            if name not in stored:
                return UnknownValue(tag, data, f"{cls.__qualname__!r} now has a field {name!r} without a default")
        fields = shape.defaults(stored)
        fields.update(stored)
        extra = (extra or {}) if shape.keeps_extra else None
        value = _NEW(cls)
        _SET(value, "__dict__", fields)
        _SET(value, "__pydantic_fields_set__", fields_set | extra.keys() if extra else fields_set)
        _SET(value, "__pydantic_extra__", extra)
        _SET(value, "__pydantic_private__", shape.private(payload[4] if count > 4 else None))
        return value

    return encode, read


class _Shape:
    """What reading needs to know of a model class, looked up once."""

    def __init__(self, cls: Any) -> None:
        self.keeps_extra = cls.model_config.get("extra") == "allow"
        self.required: list[str] = []
        self._fixed: dict[str, Any] = {}
        self._made: list[tuple[str, Callable[..., Any], bool]] = []
        for name, field in cls.model_fields.items():
            self._fixed[name] = None  # keeps the place, so that fields stay in their order
            if field.is_required():
                self.required.append(name)
            elif field.default_factory is None and _is_immutable(field.default):
                self._fixed[name] = field.default
            else:
                self._made.append((name, *_factory(field)))
        self.names = frozenset(self._fixed)
        self._private = cls.__private_attributes__

    def defaults(self, stored: dict[str, Any]) -> dict[str, Any]:
        """Return all fields in their order, with defaults for those that are not stored."""
        fields = self._fixed.copy()
        for name, make, takes_data in self._made:
            if name not in stored:
                fields[name] = make({**fields, **stored}) if takes_data else make()
        return fields

    def private(self, stored: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the private attributes, or None for a class that has none."""
        if not self._private:
            return None
        undefined = sys.modules["pydantic_core"].PydanticUndefined
        made = {
            name: stored[name] if stored and name in stored else a.get_default() for name, a in self._private.items()
        }
        return {name: item for name, item in made.items() if item is not undefined}


def _factory(field: Any) -> tuple[Callable[..., Any], bool]:
    """Return what makes a field's default, and whether it wants to see the other fields."""
    if field.default_factory is None:
        return functools.partial(copy.deepcopy, field.default), False
    return field.default_factory, getattr(field, "default_factory_takes_validated_data", False) is True


def _is_immutable(value: Any) -> bool:
    return value is None or type(value) in {bool, int, float, str, bytes}
