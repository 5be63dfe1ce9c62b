"""Digests of a step's arguments: anything may be passed to a step, and only what can be compared is.

A live object (a client, a lock) counts by the name of its type alone, so that it is the same in the next process.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import types
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import ormsgpack

from waitpoint.codec import natives
from waitpoint.codec.hooks import OPTIONS
from waitpoint.codec.kinds import is_model, is_namedtuple
from waitpoint.codec.registry import PROCESS, Registry
from waitpoint.codec.unknown import UnknownValue

_SCALAR, _TEXT, _SET, _MAP, _OBJECT, _OPAQUE, _NATIVE, _CYCLE, _NAME = range(1, 10)
_OPTIONS: Final = OPTIONS & ~ormsgpack.OPT_PASSTHROUGH_TUPLE | ormsgpack.OPT_SORT_KEYS
_PLAIN: Final = frozenset({type(None), bool, bytes})
_DERIVED_FROM: Final[tuple[Any, ...]] = (str, int, float, bytes)
_NAMED: Final = (types.FunctionType, types.BuiltinFunctionType, type)


def args_digest(args: tuple[Any, ...], kwargs: Mapping[str, Any], registry: Registry | None = None) -> str:
    """Return the digest of a call's arguments: the same in every process, whatever they are.

    Objects of classes that `registry` knows count by their fields; so do dataclasses, models and enum members of any
    class.
    """
    call = [list(args), dict(kwargs)]
    digester = _Digester(registry or PROCESS)
    try:
        data = ormsgpack.packb(call, digester.extension, _OPTIONS)
        is_plain = 0xCB not in data  # the first byte of a float: its zero has to be normalised
    except TypeError:  # keys that are not text, lone surrogates
        is_plain, data = False, b""
    return hashlib.sha256(data if is_plain else _pack(digester.form(call))).hexdigest()


def _pack(form: Any) -> bytes:
    return ormsgpack.packb(form, None, _OPTIONS)


def _ext(kind: int, form: Any) -> ormsgpack.Ext:
    return ormsgpack.Ext(kind, _pack(form))


def _is_utf8(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


class _Digester:
    """Turns values into what can be packed: plain data, with an extension for everything else."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._inside: list[Any] = []

    def form(self, value: Any) -> Any:
        """Return the comparable form of a value."""
        cls = type(value)
        if cls in _PLAIN:
            return value
        if cls is str:
            return value if _is_utf8(value) else _ext(_TEXT, value.encode("utf-8", "surrogatepass"))
        if cls is int:
            return value if -(2**63) <= value < 2**64 else _ext(_SCALAR, hex(value))
        if cls is float:
            return _ext(_SCALAR, "nan") if value != value else value + 0.0  # noqa: PLR0124 - only NaN differs
        return self.extension(value)

    def extension(self, value: Any) -> Any:
        """Return the comparable form of a value that is no scalar."""
        cls = type(value)
        if cls is int:
            return _ext(_SCALAR, hex(value))
        if any(value is outer for outer in self._inside):
            return _ext(_CYCLE, None)
        self._inside.append(value)
        try:
            return self._composed(value, cls)
        finally:
            self._inside.pop()

    def _composed(self, value: Any, cls: type) -> Any:
        if isinstance(value, Enum):
            return _ext(_OBJECT, [cls.__qualname__, value.name])
        if is_namedtuple(cls):
            return self._fields(cls, dict(zip(value._fields, value, strict=True)))
        if isinstance(value, (list, tuple)):
            return [self.form(item) for item in value]
        if isinstance(value, (set, frozenset)):
            return _ext(_SET, sorted(_pack(self.form(item)) for item in value))
        if isinstance(value, dict) and all(type(key) is str and _is_utf8(key) for key in value):
            return {key: self.form(item) for key, item in value.items()}
        if isinstance(value, Mapping):
            return _ext(_MAP, sorted([_pack(self.form(key)), _pack(self.form(item))] for key, item in value.items()))
        if isinstance(value, UnknownValue):
            return _ext(_OBJECT, [value.tag, value.payload])
        if is_model(cls):
            return self._fields(cls, {**value.__dict__, **(value.__pydantic_extra__ or {})})
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._fields(cls, {f.name: getattr(value, f.name, None) for f in dataclasses.fields(value)})
        return self._other(value, cls)

    def _fields(self, cls: type, fields: dict[str, Any]) -> Any:
        return _ext(_OBJECT, [cls.__qualname__, self.form(fields)])

    def _other(self, value: Any, cls: type) -> Any:
        if isinstance(value, functools.partial):
            return _ext(_OBJECT, ["partial", self.form([value.func, value.args, value.keywords])])
        if inspect.ismethod(value):
            return _ext(_OBJECT, [value.__qualname__, self.form(value.__self__)])
        if isinstance(value, _NAMED):
            return _ext(_NAME, value.__qualname__)
        for base in _DERIVED_FROM:
            if isinstance(value, base):
                return self.form(base(value))
        if isinstance(value, bytearray):
            return bytes(value)
        encoder = natives.ENCODERS.get(cls) or self._registry.packer.encoder_for(cls)
        if encoder is not None:
            kind, parts = encoder(value)
            return _ext(_NATIVE, [kind, self.form(parts)])
        return _ext(_OPAQUE, cls.__qualname__)
