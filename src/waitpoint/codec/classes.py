"""Instances of registered classes: stored as their fields under the class's tag.

Rule: fields are read and set directly. Neither `__init__` nor a validator runs on load, so old data opens whatever the
class has become: a field that is missing takes the class's default, one that is gone is dropped. If that cannot be
done (a new field without a default), the value stays inert and says why.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, is_typeddict

from waitpoint.codec import models
from waitpoint.codec.kinds import is_model, is_namedtuple
from waitpoint.codec.natives import BUILTIN_EXCEPTIONS, Encoder, Kind
from waitpoint.codec.unknown import UnknownValue
from waitpoint.errors import UsageError

Reader = Callable[[list[Any], bytes], Any]
"""Makes a value of what follows its tag; the bytes are those of the whole, for a value that has to stay inert."""

_NEW = object.__new__
_SET = object.__setattr__


class Form(NamedTuple):
    """How instances of one class are stored and read."""

    encode: Encoder
    read: Reader


def form_of(cls: type, tag: str) -> Form:
    """Return the form for a class; raises UsageError for one whose state lies outside its fields."""
    if issubclass(cls, Enum):
        return _enum(cls, tag)
    if issubclass(cls, BaseException):
        return _exception(cls, tag)
    if is_model(cls):
        return Form(*models.functions(cls, tag))
    if is_namedtuple(cls):
        return _namedtuple(cls, tag)
    if is_typeddict(cls):
        raise UsageError(f"{cls.__qualname__!r} is a TypedDict - its values are plain dicts - no need to register it")
    base = next((base for base in cls.__mro__ if base in _BASES), None)
    if base is not None:  # before dataclasses: one that derives from dict has more than its fields
        return _derived(cls, tag, base)
    if dataclasses.is_dataclass(cls):
        return _dataclass(cls, tag)
    if not is_made_of_fields(cls):
        raise UsageError(
            f"{cls.__qualname__!r} cannot be registered - its state is not in Python attributes - store the values "
            "needed to make it again instead"
        )
    return _plain(cls, tag)


def is_made_of_fields(cls: type) -> bool:
    """Whether an instance is wholly described by its `__dict__` and its slots."""
    slots = sum(1 for _ in _slot_names(cls))
    room = object.__basicsize__ + 8 * slots + 16  # a dict and a weak reference at most
    return cls.__basicsize__ <= room and not cls.__itemsize__ and all(b.__flags__ & 1 << 9 for b in cls.__mro__[:-1])


def _slot_names(cls: type) -> Iterator[str]:
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in {"__dict__", "__weakref__"}:
                private = name.startswith("__") and not name.endswith("__")
                yield f"_{base.__name__.lstrip('_')}{name}" if private else name


def _extras(value: Any, known: Collection[str]) -> dict[str, Any]:
    """Attributes beside the declared fields; what `cached_property` left there is computed again when asked for."""
    return {
        name: item
        for name, item in getattr(value, "__dict__", {}).items()
        if name not in known
        and name != "__orig_class__"  # typing notes there how a generic class was called
        and not isinstance(getattr(type(value), name, None), functools.cached_property)
    }


def _set_extras(value: Any, payload: list[Any], at: int) -> Any:
    if len(payload) > at:
        for name, item in payload[at].items():
            _SET(value, name, item)
    return value


def _parts(tag: str, main: Any, extras: dict[str, Any]) -> tuple[int, Any]:
    return Kind.TAGGED, [tag, main, extras] if extras else [tag, main]


# --- dataclasses and named tuples -------------------------------------------------------------------------------------


def _dataclass(cls: Any, tag: str) -> Form:
    fields = dataclasses.fields(cls)
    names = tuple(f.name for f in fields)
    defaults: dict[str, Callable[[], Any]] = {}
    for f in fields:
        if f.default_factory is not dataclasses.MISSING:
            defaults[f.name] = f.default_factory
        elif f.default is not dataclasses.MISSING:
            defaults[f.name] = functools.partial(_itself, f.default)
    has_dict = bool(cls.__dictoffset__)
    has_only_dict = has_dict and not any(_slot_names(cls))

    def encode(value: Any) -> tuple[int, Any]:
        try:
            main = {name: getattr(value, name) for name in names}
        except AttributeError:
            main = {name: getattr(value, name) for name in names if hasattr(value, name)}
        if not has_dict or len(value.__dict__) == len(main) == len(names):
            return Kind.TAGGED, [tag, main]
        return _parts(tag, main, _extras(value, names))

    def read(payload: list[Any], data: bytes) -> Any:
        stored = payload[1]
        if len(stored) != len(names) or not all(name in stored for name in names):
            missing = _complete(stored, names, defaults)
            if missing:
                return UnknownValue(tag, data, _no_default(cls, missing))
            stored = {name: stored[name] for name in names}
        value = _NEW(cls)
        if has_only_dict:
            value.__dict__.update(stored)
        else:
            for name, item in stored.items():
                _SET(value, name, item)
        return _set_extras(value, payload, 2)

    return Form(encode, read)


def _itself(value: Any) -> Any:
    return value


def _complete(stored: dict[str, Any], names: tuple[str, ...], defaults: Mapping[str, Callable[[], Any]]) -> str | None:
    """Add defaults for the names that are missing; return the first that has none."""
    for name in names:
        if name not in stored:
            if name not in defaults:
                return name
            stored[name] = defaults[name]()
    return None


def _no_default(cls: type, name: str) -> str:
    return f"{cls.__qualname__!r} now has a field {name!r} without a default"


def _namedtuple(cls: Any, tag: str) -> Form:
    names = cls._fields
    defaults = {name: functools.partial(_itself, value) for name, value in cls._field_defaults.items()}

    def encode(value: Any) -> tuple[int, Any]:
        return _parts(tag, dict(zip(names, value, strict=True)), _extras(value, ()))

    def read(payload: list[Any], data: bytes) -> Any:
        stored = payload[1]
        missing = _complete(stored, names, defaults)
        if missing:
            return UnknownValue(tag, data, _no_default(cls, missing))
        return _set_extras(tuple.__new__(cls, [stored[name] for name in names]), payload, 2)

    return Form(encode, read)


# --- enums ------------------------------------------------------------------------------------------------------------


def _enum(cls: type[Enum], tag: str) -> Form:
    members = cls.__members__

    def encode(value: Any) -> tuple[int, Any]:
        # A combination of flags is no member; its number says it all.
        return Kind.TAGGED, [tag, value.name] if value.name in members else [tag, None, value.value]

    def read(payload: list[Any], data: bytes) -> Any:
        try:
            return members[payload[1]] if payload[1] is not None else cls(payload[2])
        except (KeyError, ValueError):
            return UnknownValue(tag, data, f"{cls.__qualname__!r} no longer has the member {payload[-1]!r}")

    return Form(encode, read)


# --- exceptions -------------------------------------------------------------------------------------------------------


def _exception(cls: type[BaseException], tag: str) -> Form:
    base = next(base for base in cls.__mro__ if base in BUILTIN_EXCEPTIONS.values())

    def encode(value: Any) -> tuple[int, Any]:
        return _parts(tag, list(value.args), dict(vars(value)))

    def read(payload: list[Any], data: bytes) -> Any:  # noqa: ARG001 - the shape of a reader
        args = payload[1]
        value = base.__new__(cls, *args)
        value.args = tuple(args)
        return _set_extras(value, payload, 2)

    return Form(encode, read)


# --- classes derived from built-in types, and classes of plain attributes ---------------------------------------------

_ALL: Final = slice(None)
# How the built-in part is taken out, past whatever the class overrides.
_BASES: Final[Mapping[type, Callable[[Any], Any]]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    bytes: lambda v: bytes.__getitem__(v, _ALL),
    list: lambda v: list.__getitem__(v, _ALL),
    tuple: lambda v: tuple.__getitem__(v, _ALL),
    dict: lambda v: dict(dict.items(v)),
    set: lambda v: set(set.__iter__(v)),
    frozenset: lambda v: frozenset(frozenset.__iter__(v)),
}
_FILLS: Final[Mapping[type, Callable[[Any, Any], None]]] = {list: list.extend, dict: dict.update, set: set.update}


def _derived(cls: type, tag: str, base: Any) -> Form:
    take, fill = _BASES[base], _FILLS.get(base)

    def encode(value: Any) -> tuple[int, Any]:
        return _parts(tag, take(value), _attributes(value, cls))

    def read(payload: list[Any], data: bytes) -> Any:  # noqa: ARG001 - the shape of a reader
        made: Any = base.__new__(cls, payload[1]) if fill is None else base.__new__(cls)
        if fill is not None:
            fill(made, payload[1])
        return _set_extras(made, payload, 2)

    return Form(encode, read)


def _plain(cls: type, tag: str) -> Form:
    def encode(value: Any) -> tuple[int, Any]:
        return Kind.TAGGED, [tag, _attributes(value, cls)]

    def read(payload: list[Any], data: bytes) -> Any:  # noqa: ARG001 - the shape of a reader
        value: Any = _NEW(cls)
        has_dict = bool(cls.__dictoffset__)
        slots = {*_slot_names(cls)}
        for name, item in payload[1].items():
            if has_dict or name in slots:
                _SET(value, name, item)
        return value

    return Form(encode, read)


def _attributes(value: Any, cls: type) -> dict[str, Any]:
    slots = {name: getattr(value, name) for name in _slot_names(cls) if hasattr(value, name)}
    return slots | _extras(value, slots)
