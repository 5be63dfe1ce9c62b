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
_LEAVES: Final = frozenset({type(None), bool, int, float, str, bytes})
_CODE: Final = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, types.GeneratorType,
    types.CoroutineType, types.AsyncGeneratorType, types.FrameType, types.TracebackType, types.CodeType, type,
)  # fmt: skip


def refusal(value: Any, path: str, is_known: Callable[[type], bool]) -> UnstorableValueError:
    """Return the error that names the first thing in the value that cannot be stored."""
    path = path or "value"
    found = _first(value, path, is_known, [])
    if found is None:
        return _error(f"{path!r} cannot be stored - a part of it contradicts its own type", path, type(value))
    place, culprit, is_deep = found
    cls = type(culprit)
    if is_deep:
        return _error(
            f"{place!r} cannot be stored - it contains itself, or nests too deep - store ids that refer to the parts",
            place,
            cls,
        )
    return _error(f"{place!r} cannot be stored - {_why(culprit)}", place, cls)


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


def _first(value: Any, path: str, is_known: Callable[[type], bool], inside: list[Any]) -> tuple[str, Any, bool] | None:
    """Return path and value of the culprit, and whether it is the nesting that is wrong; None if all is well."""
    cls = type(value)
    if cls in _LEAVES:
        return None
    if len(inside) > _MAX_WALK or any(value is outer for outer in inside):
        return path, value, True
    if cls is not dict and cls is not list and not is_known(cls):
        return path, value, False
    inside.append(value)
    for place, member in members(value, path):
        found = _first(member, place, is_known, inside)
        if found is not None:
            return found
    inside.pop()
    return None


def _why(value: Any) -> str:
    cls = type(value)
    name = _full_name(cls)
    if isinstance(value, _CODE) or inspect.isawaitable(value) or not is_made_of_fields(cls):
        base = next((b for b in cls.__mro__[1:] if b in _LEAVES or b in {dict, list, tuple, set, frozenset}), None)
        if base is None:
            what = f"{value.__qualname__!r}, a {name}" if isinstance(value, (type, types.FunctionType)) else repr(name)
            return (
                f"{what}, is a live object that no other process can have - keep it outside the state (a global, the "
                "runtime context), and store what is needed to find it again"
            )
        return (
            f"its type {name!r} is derived from {base.__name__!r} and would not come back as itself - {_cure(cls)}, "
            f"or convert it to {base.__name__!r}"
        )
    return f"a fresh process would not know its type {name!r} - {_cure(cls)}"


def _cure(cls: type) -> str:
    return f"declare it in the schema, or call waitpoint.codec.register({cls.__name__}) where it is defined"
