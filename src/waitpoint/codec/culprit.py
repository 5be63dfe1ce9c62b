"""Finding what in a value cannot be stored, and saying so: the path, the type, and what to do.

This walks the value once more, slowly; it runs only after storing has failed.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any, Final

from waitpoint.codec.classes import is_made_of_fields
from waitpoint.codec.limits import MAX_BYTES
from waitpoint.codec.paths import members
from waitpoint.errors import UnstorableValueError

_MAX_WALK: Final = 200
_NESTING: Final = "it contains itself, or nests too deep - store ids that refer to the parts"
_LEAVES: Final = frozenset({type(None), bool, int, float, str, bytes})
_CODE: Final = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, types.GeneratorType,
    types.CoroutineType, types.AsyncGeneratorType, types.FrameType, types.TracebackType, types.CodeType, type,
)  # fmt: skip


def refusal(value: Any, path: str, is_known: Callable[[type], bool], error: Exception) -> UnstorableValueError:
    """Return the error that names the first thing that cannot be stored; `error` is what storing raised."""
    path = path or "value"
    place, culprit, reason = _first(value, path, is_known, []) or (path, value, "")
    if not reason:
        is_nesting = isinstance(error, (UnstorableValueError, RecursionError)) or "Recursion" in str(error)
        reason = _NESTING if is_nesting else "a part of it cannot be read"
    return _error(f"{place!r} cannot be stored - {reason}", place, type(culprit))


def too_large(value: Any, path: str, size: int) -> UnstorableValueError:
    """Return the error for a value that takes up too many bytes."""
    path = path or "value"
    return _error(
        f"{path!r} cannot be stored - it takes {size} bytes, more than {MAX_BYTES} - keep it in a file or an object "
        "store, and its name in the state",
        path,
        type(value),
    )


def _error(message: str, path: str, cls: type) -> UnstorableValueError:
    return UnstorableValueError(message, path=path, type_name=_full_name(cls))


def _full_name(cls: type) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _first(value: Any, path: str, is_known: Callable[[type], bool], inside: list[Any]) -> tuple[str, Any, str] | None:
    """Return the culprit's path, itself, and reason and cure; None if nothing is wrong with types and nesting."""
    cls = type(value)
    if cls in _LEAVES:
        return None
    if len(inside) > _MAX_WALK or any(value is outer for outer in inside):
        return path, value, _NESTING
    if cls is not dict and cls is not list and not is_known(cls):
        return path, value, _why(value)
    inside.append(value)
    for place, member in _members(value, path):
        found = _first(member, place, is_known, inside)
        if found is not None:
            return found
    inside.pop()
    return None


def _members(value: Any, path: str) -> list[tuple[str, Any]]:
    try:
        return list(members(value, path))
    except Exception:  # noqa: BLE001 - a property may raise anything; the error of storing itself says what
        return []


def _why(value: Any) -> str:
    cls = type(value)
    name = _full_name(cls)
    base = next((b for b in cls.__mro__[1:] if b in _LEAVES or b in {dict, list, tuple, set, frozenset}), None)
    if base is not None:
        return (
            f"its type {name!r} is derived from {base.__name__!r} and would not come back as itself - {_cure(cls)}, "
            f"or convert it to {base.__name__!r}"
        )
    if hasattr(cls, "tolist"):  # arrays and their scalars
        return f"no field of its type {name!r} holds its data - convert it with `.tolist()` or to bytes"
    if isinstance(value, _CODE) or inspect.isawaitable(value) or not is_made_of_fields(cls):
        what = f"{value.__qualname__!r}, a {name}," if isinstance(value, (type, types.FunctionType)) else repr(name)
        return (
            f"{what} is a live object that no other process can have - keep it outside the state (a global, the "
            "runtime context), and store what is needed to find it again"
        )
    return f"a fresh process would not know its type {name!r} - {_cure(cls)}"


def _cure(cls: type) -> str:
    return f"declare it in the schema, or call waitpoint.codec.register({cls.__name__}) where it is defined"
