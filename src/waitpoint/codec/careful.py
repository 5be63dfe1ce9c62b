"""Packing the slow way: for values that the fast way cannot take, in the same form.

That are dicts with keys other than text, text with lone surrogates, and bytearrays. Each becomes an extension first.
"""

from __future__ import annotations

from typing import Any

import ormsgpack

from waitpoint.codec import natives
from waitpoint.codec.hooks import OPTIONS, Packer
from waitpoint.errors import UnstorableValueError


def pack(value: Any, hook: Packer) -> bytes:
    """Pack any storable value; raises UnstorableValueError for others."""
    if type(value) is ormsgpack.Fragment:  # an unknown value's own bytes
        return ormsgpack.packb(value)
    return ormsgpack.packb(_prepared(value, hook), None, OPTIONS)


def _prepared(value: Any, hook: Packer) -> Any:
    """Copy plain containers, with everything that MessagePack has no type for replaced by extensions."""
    cls = type(value)
    if cls is str:
        return value if _is_utf8(value) else _extension(natives.odd_text(value), hook)
    if cls is dict:
        if all(type(key) is str and _is_utf8(key) for key in value):
            return {key: _prepared(item, hook) for key, item in value.items()}
        return _extension(natives.pairs(value), hook)
    if cls is list:
        return [_prepared(item, hook) for item in value]
    if value is None or cls is bool or cls is float or cls is bytes or (cls is int and -(2**63) <= value < 2**64):
        return value
    encoder = hook.encoder_for(cls)
    if encoder is None:
        raise UnstorableValueError(f"unknown type {cls!r}")
    return _extension(encoder(value), hook)


def _extension(parts: tuple[int, Any], hook: Packer) -> ormsgpack.Ext:
    kind, payload = parts
    return ormsgpack.Ext(kind, hook.pack_below(pack, payload))


def _is_utf8(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
