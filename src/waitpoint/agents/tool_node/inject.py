"""What a tool gets besides the model's arguments: state, store, runtime, call id. The model neither sees nor sets these."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from langchain_core.tools import BaseTool

from waitpoint.agents.tool_node.request import ByIdentity, ToolRuntime
from waitpoint.errors import ConfigError
from waitpoint.records import MISSING


class Injected(NamedTuple):
    """Which parameters of a tool get what: `states` maps a parameter to a key of the state, None for the whole, `runtimes`
    to the class that it wants.

    `hidden` are all that the model must not set, those too that somebody else fills. Those in `optional` may stay as
    they are by default.
    """

    states: Mapping[str, str | None]
    stores: tuple[str, ...]
    runtimes: Mapping[str, type]
    hidden: frozenset[str]
    optional: frozenset[str]

    @property
    def names(self) -> frozenset[str]:
        """All parameters that are filled here."""
        return frozenset((*self.states, *self.stores, *self.runtimes))


def injected_of(tool: BaseTool) -> Injected:
    """Return what a tool wants; looked at once for each tool."""
    return _injected(ByIdentity(tool))


@lru_cache(maxsize=1024)
def _injected(same: ByIdentity) -> Injected:
    states: dict[str, str | None] = {}
    stores: list[str] = []
    runtimes: dict[str, type] = {}
    others: list[str] = []
    hints = _hints(same.tool)
    if hints.get("runtime", Any) is Any and "runtime" in _parameters(same.tool):
        runtimes["runtime"] = ToolRuntime  # by its name, where nothing else is said of it
    for name, hint in hints.items():
        for what in _asked(hint):
            kind = what if isinstance(what, type) else type(what)
            known = {base.__name__ for base in kind.__mro__}
            # By name, so that tools written for LangGraph's or LangChain's own classes get the same.
            if "ToolRuntime" in known:
                runtimes[name] = kind
            elif "InjectedState" in known:
                states[name] = getattr(what, "field", None) if not isinstance(what, type) else None
            elif "InjectedStore" in known:
                stores.append(name)
            elif "InjectedToolArg" in known:
                others.append(name)
            else:
                continue
            break
    hidden = frozenset((*states, *stores, *runtimes, *others))
    return Injected(states, tuple(stores), runtimes, hidden, hidden & _defaulted(same.tool))


def _defaulted(tool: BaseTool) -> frozenset[str]:
    """Return the parameters that have a default, in the tool's schema or its function."""
    fields = getattr(tool.args_schema, "model_fields", {})
    found = {name for name, field in fields.items() if not field.is_required()}
    return frozenset(found | {p.name for p in _parameters(tool).values() if p.default is not inspect.Parameter.empty})


def _parameters(tool: BaseTool) -> Mapping[str, inspect.Parameter]:
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None) or tool._run  # noqa: SLF001
    return inspect.signature(function).parameters


def _hints(tool: BaseTool) -> dict[str, Any]:
    hints: dict[str, Any] = {}
    schema = tool.args_schema
    if isinstance(schema, type):
        hints |= _resolved(schema)
    for function in (getattr(tool, "func", None), getattr(tool, "coroutine", None), type(tool)._run):  # noqa: SLF001
        if isinstance(function, Callable):  # type: ignore[arg-type]
            hints |= {k: v for k, v in _resolved(function).items() if k not in hints}
            if function is not type(tool)._run:  # noqa: SLF001
                return hints
    return hints


def _resolved(what: Any) -> dict[str, Any]:
    try:
        return get_type_hints(what, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return dict(getattr(what, "__annotations__", {}))


def _asked(hint: Any) -> list[Any]:
    """Return what an annotation may ask with: its extras, then its class."""
    found: list[Any] = list(getattr(hint, "__metadata__", ())) if get_origin(hint) is Annotated else []
    plain = get_args(hint)[0] if found else hint
    origin = get_origin(plain)
    if origin is not None and not isinstance(origin, type):  # a union: `ToolRuntime | None`
        return [*found, *(part for option in get_args(plain) for part in _asked(option))]
    kind = origin if isinstance(origin, type) else plain
    return [*found, kind] if isinstance(kind, type) else found


def fill(tool: BaseTool, args: Mapping[str, Any], state: Any, runtime: ToolRuntime[Any, Any]) -> dict[str, Any]:
    """Return the arguments that a tool is called with: the model's, those it must not set taken from where they belong.

    Raises `ConfigError` where the state or a store is wanted and missing.
    """
    wanted = injected_of(tool)
    filled = {name: value for name, value in args.items() if name not in wanted.hidden}
    state = {"messages": state} if isinstance(state, list) else state
    for name, field in wanted.states.items():
        found = state if field is None else _of_state(tool, state, field, is_optional=name in wanted.optional)
        if found is not MISSING:
            filled[name] = found
    for name in wanted.stores:
        if runtime.store is None:
            raise ConfigError(
                f"Tool {tool.name!r} wants the store, and the graph has none; compile it with one, or create the agent with "
                f"`store`"
            )
        filled[name] = runtime.store
    for name, kind in wanted.runtimes.items():
        filled[name] = runtime if isinstance(runtime, kind) else _as_kind(kind, runtime)
    return filled


def _as_kind(kind: type, runtime: ToolRuntime[Any, Any]) -> Any:
    """Return the runtime as another library's class of that name, which a tool's schema asks for."""
    names = [f.name for f in dataclasses.fields(kind) if f.init]
    return kind(**{name: getattr(runtime, name) for name in names if hasattr(runtime, name)})


def _of_state(tool: BaseTool, state: Any, field: str, *, is_optional: bool) -> Any:
    try:
        return state[field] if isinstance(state, Mapping) else getattr(state, field)
    except (KeyError, AttributeError):
        if is_optional:
            return MISSING
        raise ConfigError(
            f"Tool {tool.name!r} wants {field!r} of the state, and the state has no such key; pass it as input, or give the "
            f"agent a state_schema that has it"
        ) from None
