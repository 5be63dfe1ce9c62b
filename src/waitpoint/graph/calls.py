"""Calls: what kind of thing a node or router is and what it wants injected, looked at once when it is added."""

from __future__ import annotations

import collections.abc
import inspect
import re
import types
from functools import partial
from typing import Any, Union, get_args, get_origin

from waitpoint.core.spec import Call
from waitpoint.engine.runner import Runner
from waitpoint.errors import GraphValidationError
from waitpoint.graph.hints import function_of, resolved_hints

# A class of one of these names, whoever defines it, asks for what stands beside it, under any parameter name.
_BY_TYPE = {"RunnableConfig": "config", "Runtime": "runtime", "NodeError": "error", "StreamWriter": "writer"}
_STORE_TYPE = "BaseStore"

# These parameter names ask too, if nothing in their annotation speaks against it.
_BY_NAME = frozenset({"config", "writer", "store", "runtime", "previous", "error"})
_WITH_ANY_ANNOTATION = frozenset({"runtime", "previous"})

_LAST_NAME = re.compile(r"(?:Optional\[)?\s*(?:\w+\.)*(\w+)")


def make_call(action: Any, name: str) -> Call:
    """Describe a function, callable object, Runnable or compiled graph; `name` is the node's or the router's.

    A function gets its input first and, by name or by type, what it wants injected: `config`, `writer`, `store`,
    `runtime`, `previous`, and in error handlers `error`. One without a parameter for the input is called without it.

    Raises:
        GraphValidationError: it cannot be called, is a generator, or has a parameter that nothing fills.
    """
    if isinstance(action, Runner):
        return Call(action, name, "graph")
    if is_runnable(action):
        return Call(action, name, "runnable")
    if not callable(action):
        raise GraphValidationError(
            f"'{name}' is a {type(action).__name__}, which cannot be called - a node is a function, a callable object, "
            f"a Runnable or a compiled graph{_cure(action)}"
        )
    function = function_of(action)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise GraphValidationError(
            f"'{name}' is a generator, and the values it yields would be lost - return one update, and pass what is to "
            f"be streamed to get_stream_writer()"
        )
    takes_input, wants = _injections(action, name)
    return Call(action, name, "function", is_async(action), takes_input, wants)


def is_runnable(action: Any) -> bool:
    """Whether this is a Runnable by its methods; langchain-core need not be loaded to know."""
    kind = type(action)
    return callable(getattr(kind, "invoke", None)) and callable(getattr(kind, "ainvoke", None))


def is_async(action: Any) -> bool:
    """Whether calling this gives a coroutine."""
    return inspect.iscoroutinefunction(function_of(action))


def has_async_body(call: Call) -> bool:
    """Whether the work can be cancelled: it awaits, as far as can be seen from outside."""
    if call.kind == "function":
        return call.is_async
    if call.kind == "graph":
        return True
    # A Runnable made of plain functions has `func`, and `afunc` only if one of them is async.
    return not hasattr(call.fn, "func") or getattr(call.fn, "afunc", None) is not None


def name_of(action: Any) -> str:
    """Return the name a node gets if none is given: the Runnable's or graph's own, the function's, or the class's."""
    if isinstance(action, Runner) or is_runnable(action):
        get_name = getattr(action, "get_name", None)
        given = get_name() if callable(get_name) else getattr(action, "name", None)
        return str(given or type(action).__name__)
    return str(getattr(action, "__name__", type(action).__name__))


def wanted_by(action: Any) -> dict[str, str]:
    """Return which parameters of a function want what, if nobody passes them; none is taken for an input."""
    try:
        parameters = inspect.signature(action).parameters.values()
    except (TypeError, ValueError):
        return {}  # a builtin that does not tell
    hints = resolved_hints(action)
    by_keyword = [p for p in parameters if p.kind in {p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY}]
    asked = {p.name: _asked(p, hints.get(p.name, p.annotation)) for p in by_keyword}
    return {name: what for name, what in asked.items() if what is not None and what != "error"}


def _cure(action: Any) -> str:
    if hasattr(action, "compile") and hasattr(action, "add_node"):
        return "; call .compile() on the graph first"
    return f"; got {action!r}" if action is None or isinstance(action, str | int) else ""


def _injections(action: Any, name: str) -> tuple[bool, dict[str, str]]:
    """Whether the first parameter takes the input, and which parameters want what."""
    try:
        parameters = list(inspect.signature(action).parameters.values())
        outer = inspect.signature(action, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):
        return True, {}  # a builtin that does not tell
    hints = resolved_hints(action)
    bound = _bound_keywords(action)
    # A decorator may pass on less than the function it wraps has.
    is_open = any(p.kind is p.VAR_KEYWORD for p in outer)
    accepted = {p.name for p in outer}
    takes_input = False
    wants: dict[str, str] = {}
    for place, p in enumerate(parameters):
        hint = hints.get(p.name, p.annotation)
        if p.kind is p.VAR_KEYWORD or p.name in bound:
            continue
        if p.kind is p.VAR_POSITIONAL:
            takes_input = takes_input or place == 0
        elif place == 0 and p.kind is not p.KEYWORD_ONLY and _asked_by_type(p.name, hint) is None:
            takes_input = True
        elif (what := _asked(p, hint)) is not None and p.kind is not p.POSITIONAL_ONLY:
            if is_open or p.name in accepted:
                wants[p.name] = what
        elif p.default is p.empty and (is_open or p.name in accepted):
            raise GraphValidationError(
                f"'{name}' has a parameter '{p.name}' that nothing fills - it is called with its input, then gets "
                f"config, writer, store, runtime or previous by name or type; give '{p.name}' a default, or bind it "
                f"with functools.partial"
            )
    return takes_input, wants


def _bound_keywords(action: Any) -> set[str]:
    """Keywords that the user bound by `functools.partial`; they win over an injection."""
    bound: set[str] = set()
    while isinstance(action, partial):
        bound |= action.keywords.keys()
        action = action.func
    return bound


def _asked(parameter: inspect.Parameter, hint: Any) -> str | None:
    name = parameter.name
    by_type = _asked_by_type(name, hint)
    if by_type is not None or name not in _BY_NAME:
        return by_type
    if hint is parameter.empty or hint is Any:
        # An `error=None` of the user's own is no error handler's parameter.
        return None if name == "error" and parameter.default is not parameter.empty else name
    if name in _WITH_ANY_ANNOTATION:
        return name
    plain = get_origin(hint) or hint
    is_mapping = inspect.isclass(plain) and issubclass(plain, collections.abc.Mapping)
    return name if name == "config" and is_mapping else None


def _asked_by_type(name: str, hint: Any) -> str | None:
    """Say what an annotation asks for, be it a class, a text that was not resolved, or a union with None."""
    if isinstance(hint, str):
        match = _LAST_NAME.match(hint)
        found = match[1] if match else ""
        return "store" if found == _STORE_TYPE else _BY_TYPE.get(found)
    origin = get_origin(hint)
    if origin in {Union, types.UnionType}:
        asked = [_asked_by_type(name, option) for option in get_args(hint) if option is not type(None)]
        return asked[0] if len(asked) == 1 else None
    if origin is collections.abc.Callable:
        # `StreamWriter` is an alias of a plain callable type, so only the name tells it from others.
        return "writer" if name == "writer" else None
    kind = origin if inspect.isclass(origin) else hint
    if not inspect.isclass(kind):
        return None
    if any(base.__name__ == _STORE_TYPE for base in kind.__mro__):
        return "store"
    return _BY_TYPE.get(kind.__name__)
