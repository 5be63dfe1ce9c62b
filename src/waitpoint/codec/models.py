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


def functions(cls: Any, tag: str, *, lean: bool = False) -> tuple[Encoder, Callable[[list[Any], bytes], Any]]:
    """Return how instances are taken apart and put together.

    `lean` leaves out fields nobody set that are None or empty, and `type`: only for classes whose defaults will stay.
    For others a default is stored too, so that a later default does not change old values.
    """
    look_up = functools.cache(lambda: _Shape(cls))  # at first use: a model may still wait for a forward reference

    def encode(value: Any) -> tuple[int, Any]:
        shape = look_up()
        fields_set = value.__pydantic_fields_set__
        given, rest = {}, {}
        for name, item in value.__dict__.items():
            if name in fields_set:
                given[name] = item
            elif name in shape.names and not (lean and (_is_blank(item) or name == "type")):
                rest[name] = item
        if not fields_set <= shape.names:
            given = {name: item for name, item in given.items() if name in shape.names}
        parts = [tag, given, rest, value.__pydantic_extra__, value.__pydantic_private__]
        while not parts[-1] and len(parts) > 2:
            parts.pop()
        return Kind.TAGGED, parts

    def read(payload: list[Any], data: bytes) -> Any:
        shape, given = look_up(), payload[1]
        rest, extra, private = (*payload[2:], None, None, None)[:3]
        stored = {**rest, **given} if rest else given
        fields = shape.defaults(stored)
        if not stored.keys() <= shape.names:
            gone = {name: item for name, item in stored.items() if name not in shape.names}
            stored = {name: item for name, item in stored.items() if name in shape.names}
            extra = {**gone, **(extra or {})}
        fields.update(stored)
        for name in shape.required:
            if name not in stored:
                return UnknownValue(tag, data, f"{cls.__qualname__!r} now has a field {name!r} without a default")
        extra = (extra or {}) if shape.keeps_extra else None
        value = _NEW(cls)
        _SET(value, "__dict__", fields)
        _SET(value, "__pydantic_fields_set__", {name for name in given if name in shape.names} | {*(extra or ())})
        _SET(value, "__pydantic_extra__", extra)
        _SET(value, "__pydantic_private__", shape.private(private))
        return value

    return encode, read


def _is_blank(item: Any) -> bool:
    return item is None or (not item and (type(item) is dict or type(item) is list))


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
