"""What the annotations of a node or a router say: its input's schema, and where it may lead."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from waitpoint.core.names import node_name
from waitpoint.records import Command


def function_of(action: Any) -> Any:
    """Return the function whose annotations count: inside partials, or the `__call__` of an object."""
    while isinstance(action, partial):
        action = action.func
    if inspect.isroutine(action) or inspect.isclass(action):
        return action
    return getattr(action, "__call__", action)  # noqa: B004 - its annotations are wanted, not whether there is one


def resolved_hints(action: Any) -> dict[str, Any]:
    """Return the annotations with their names resolved; one that cannot be resolved stays a text, the others do not."""
    function = function_of(action)
    try:
        return get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001 - an annotation may raise anything, and hints are only hints
        return {name: _resolved(function, hint) for name, hint in _annotations(function).items()}


def input_hint(action: Any) -> Any | None:
    """Return the class that annotates the first parameter, if it has annotated fields; it is the input's schema."""
    try:
        first = next(iter(inspect.signature(action).parameters.values()))
    except (TypeError, ValueError, StopIteration):
        return None
    if first.kind not in {first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD}:
        return None
    hint = resolved_hints(action).get(first.name)
    return hint if inspect.isclass(hint) and hasattr(hint, "__annotations__") and _has_fields(hint) else None


def command_destinations(action: Any) -> tuple[str, ...] | None:
    """Return the names in a `Command[Literal["a", "b"]]` that a function says it returns, alone or in a union."""
    returned = resolved_hints(action).get("return")
    for option in get_args(returned) if get_origin(returned) in {Union, types.UnionType} else (returned,):
        if get_origin(option) is Command:
            inner = get_args(option)[0]
            if get_origin(inner) is Literal:
                return tuple(node_name(name) for name in get_args(inner))
    return None


def literal_returns(path: Any) -> dict[Any, str] | None:
    """Return the results that a router annotated with `Literal[...]` may give, and the node each names."""
    returned = resolved_hints(path).get("return")
    if get_origin(returned) is not Literal:
        return None
    return {value: node_name(value) for value in get_args(returned)}


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return dict(inspect.get_annotations(inspect.unwrap(function)))
    except (TypeError, ValueError):
        return {}


def _resolved(function: Any, hint: Any) -> Any:
    if not isinstance(hint, str):
        return hint
    holder = types.SimpleNamespace(__annotations__={"it": hint})
    try:
        return get_type_hints(
            holder,
            getattr(inspect.unwrap(function), "__globals__", {}),
            include_extras=True,
        )["it"]
    except Exception:  # noqa: BLE001 - see resolved_hints
        return hint


def _has_fields(kind: type) -> bool:
    return any(inspect.get_annotations(base) for base in kind.__mro__)
