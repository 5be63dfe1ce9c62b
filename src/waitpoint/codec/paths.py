"""How a place inside a value is written (`state.items[3].lock`), and which members a value has."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, time
from typing import Any

from waitpoint.codec.natives import is_known_factory, is_sequence

_LONGEST_KEY = 60


def child(path: str, key: Any) -> str:
    """Return the path of a member: a name where the key reads like one, otherwise the key in brackets."""
    if isinstance(key, str) and key.isidentifier():
        return f"{path}.{key}" if path else key
    text = repr(key) if isinstance(key, (str, int)) else f"<{type(key).__qualname__}>"
    if len(text) > _LONGEST_KEY:
        text = text[:_LONGEST_KEY] + "..."
    return f"{path}[{text}]"


def path_of(root: str, trail: Iterable[Any]) -> str:
    """Return the path that leads from the root along keys and indexes."""
    path = root
    for key in trail:
        path = child(path, key)
    return path


def members(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield what a value consists of, each with its path."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if type(key) is not str:
                yield f"{path} (key {child('', key)})", key
            yield child(path, key), item
        if isinstance(value, defaultdict) and not is_known_factory(value.default_factory):
            yield f"{path}.default_factory", value.default_factory
    elif is_sequence(value):
        names = getattr(value, "_fields", None)
        for n, item in enumerate(value):
            yield (child(path, names[n]) if names else f"{path}[{n}]"), item
    elif isinstance(value, (datetime, time)):
        yield f"{path}.tzinfo", value.tzinfo
    elif isinstance(value, BaseException):
        for n, item in enumerate(value.args):
            yield f"{path}.args[{n}]", item
    for name, item in _attributes(value).items():
        yield child(path, name), item


def _attributes(value: Any) -> dict[str, Any]:
    cls = type(value)
    if cls.__module__ == "builtins" and not hasattr(value, "__dict__"):
        return {}
    slots = [name for base in cls.__mro__ for name in _as_tuple(base.__dict__.get("__slots__", ()))]
    if dataclasses.is_dataclass(cls):
        slots += [f.name for f in dataclasses.fields(cls)]
    found = {name: getattr(value, name) for name in slots if not name.startswith("__") and hasattr(value, name)}
    found |= {name: item for name, item in getattr(value, "__dict__", {}).items() if name != "__orig_class__"}
    for name in ("__pydantic_extra__", "__pydantic_private__"):
        found |= getattr(value, name, None) or {}
    return found


def _as_tuple(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)
