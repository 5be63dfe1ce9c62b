"""Schemas: what the annotations of a state say about its keys, worked out once when a graph is built."""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import operator
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, NamedTuple, NotRequired, Required, get_args, get_origin, get_type_hints

from typing_extensions import ReadOnly

from waitpoint.core.spec import Channel, ChannelKind, Reader
from waitpoint.errors import GraphValidationError
from waitpoint.graph.managed import ManagedValue
from waitpoint.graph.message import is_add_messages, prepared, reducer_of

ROOT = "__root__"

# Keys that results and streams use for themselves.
RESERVED_KEYS = frozenset({"__input__", "__interrupt__", "__metadata__", "__start__", "__end__"})

_CONCRETE: dict[Any, Any] = {
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Set: set,
    collections.abc.MutableSet: set,
    collections.abc.Mapping: dict,
    collections.abc.MutableMapping: dict,
}


class Schema(NamedTuple):
    """A schema, resolved. `hints` are its annotations with their extras, by key; `make` is as in `Reader`."""

    declared: Any
    channels: Mapping[str, Channel]
    managed: Mapping[str, str]
    hints: Mapping[str, Any]
    make: Callable[[dict[str, Any]], Any] | None

    @property
    def is_whole(self) -> bool:
        """Whether the state is one unnamed value."""
        return len(self.channels) == 1 and ROOT in self.channels

    def reader(self) -> Reader:
        """Return how a node that declares this schema gets its input."""
        return Reader(tuple(self.channels), self.make, self.is_whole, self.managed)

    def maker(self) -> Callable[[dict[str, Any]], Any] | None:
        """Return what makes an instance of values that may have further keys; None for schemas that are dicts."""
        make, keys = self.make, self.channels.keys()
        return None if make is None else lambda values: make({k: v for k, v in values.items() if k in keys})


def read_schema(declared: Any) -> Schema:
    """Resolve a TypedDict, dataclass, pydantic model, annotated class, or a type that is the whole state.

    Raises:
        GraphValidationError: a reducer does not take two values, a key is reserved, an annotation names nothing.
    """
    if not hasattr(declared, "__annotations__"):
        return Schema(declared, {ROOT: channel_of(ROOT, declared)}, {}, {ROOT: declared}, None)
    hints = _hints(declared)
    channels: dict[str, Channel] = {}
    managed: dict[str, str] = {}
    for name, hint in hints.items():
        if name in RESERVED_KEYS:
            raise GraphValidationError(
                f"Key name '{name}' is reserved - results and streams use it, and {named(declared)} declares it; "
                f"rename it"
            )
        if (mark := _managed(hint)) is not None:
            managed[name] = mark.what
        else:
            channels[name] = channel_of(name, hint)
    return Schema(declared, channels, managed, hints, _maker(declared))


def is_model(declared: Any) -> bool:
    """Whether this is a pydantic model class. Asks without importing pydantic: whoever made the class has done that."""
    pydantic = sys.modules.get("pydantic.main")
    return pydantic is not None and inspect.isclass(declared) and issubclass(declared, pydantic.BaseModel)


def is_dataclass_type(declared: Any) -> bool:
    """Whether this is a dataclass (the class, not an instance)."""
    return inspect.isclass(declared) and dataclasses.is_dataclass(declared)


def named(declared: Any) -> str:
    """Return how a schema is called in a message."""
    return f"schema '{getattr(declared, '__name__', declared)}'"


def channel_of(name: str, hint: Any) -> Channel:
    """Return the channel an annotation declares: the last item of `Annotated` is its reducer, if it is callable."""
    hint = unqualified(hint)
    extras = getattr(hint, "__metadata__", ())
    if not extras or not callable(extras[-1]):
        return Channel(name, "last")
    reducer = extras[-1]
    _check_reducer(name, reducer)
    concrete = _concrete_type(hint)
    if is_add_messages(reducer):
        return Channel(name, "messages", reducer_of(reducer), list, prepared)
    kind: ChannelKind = "append" if reducer is operator.add and concrete is list else "fold"
    return Channel(name, kind, reducer, _default(concrete))


def is_same_channel(one: Channel, other: Channel) -> bool:
    """Whether two declarations of a key combine writes alike. Two lambdas are taken to: they cannot be compared."""
    if one.kind != other.kind:
        return False
    if one.reducer is other.reducer:
        return True
    names = (getattr(one.reducer, "__name__", ""), getattr(other.reducer, "__name__", ""))
    if "<lambda>" in names:
        return True
    return _parts(one.reducer) == _parts(other.reducer)


def _parts(reducer: Any) -> tuple[Any, Any, Any]:
    """Return what is equal in two `functools.partial`s that do the same."""
    return getattr(reducer, "func", reducer), getattr(reducer, "args", ()), getattr(reducer, "keywords", {})


# --- annotations ------------------------------------------------------------------------------------------------------


def _hints(declared: Any) -> dict[str, Any]:
    """Return the annotations that are keys: no class variables, no fields that the class computes itself."""
    if is_model(declared):
        return _model_hints(declared)
    try:
        hints = get_type_hints(declared, include_extras=True)
    except NameError as error:
        raise GraphValidationError(
            f"{named(declared)} names '{error.name}', which its module does not define; define or import it at module "
            f"level, not under TYPE_CHECKING or inside a function"
        ) from error
    if is_dataclass_type(declared):
        return {f.name: hints[f.name] for f in dataclasses.fields(declared) if f.init}
    return {
        name: hint
        for name, hint in hints.items()
        if name != "__slots__" and hint is not ClassVar and get_origin(hint) is not ClassVar
    }


def _model_hints(declared: Any) -> dict[str, Any]:
    """Ask the model where its module cannot tell: it has resolved what only its surroundings define."""
    try:
        hints = get_type_hints(declared, include_extras=True)
    except NameError:
        hints = {}
    return {
        name: hints.get(name) or (Annotated[f.annotation, *f.metadata] if f.metadata else f.annotation)
        for name, f in declared.model_fields.items()
    }


def unqualified(hint: Any) -> Any:
    """Return the annotation without `Required`, `NotRequired`, `ReadOnly` and the name of a type alias around it."""
    while True:
        if type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        elif get_origin(hint) in {Required, NotRequired, ReadOnly}:
            hint = get_args(hint)[0]
        else:
            return hint


def _managed(hint: Any) -> ManagedValue | None:
    """Find the mark of a managed value, under qualifiers and `Optional` too."""
    hint = unqualified(hint)
    extras = getattr(hint, "__metadata__", ())
    if extras and isinstance(extras[-1], ManagedValue):
        return extras[-1]
    inner = get_args(hint)
    return _managed(inner[0]) if inner and get_origin(hint) is not None else None


def _concrete_type(hint: Any) -> Any:
    """Return what can be called for an empty value: `list` for `Annotated[Sequence[str], add]`."""
    while True:
        hint = unqualified(hint)
        origin = getattr(hint, "__origin__", None)
        if origin is None:
            return _CONCRETE.get(hint, hint) if isinstance(hint, collections.abc.Hashable) else hint
        hint = origin


def _default(concrete: Any) -> Callable[[], Any] | None:
    """Return the type itself, if it makes a value without arguments."""
    if concrete is object:
        return None
    try:
        concrete()
    except Exception:  # noqa: BLE001 - whatever the user's class raises, it makes no default
        return None
    return concrete  # type: ignore[no-any-return]


def _check_reducer(name: str, reducer: Any) -> None:
    try:
        signature = inspect.signature(reducer)
    except ValueError:
        # A builtin such as `max` does not tell; a class such as `str` is no reducer.
        if not inspect.isclass(reducer):
            return
        found = reducer.__name__
    else:
        counted = [p for p in signature.parameters.values() if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
        needs_more = any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in signature.parameters.values())
        if (len(counted) == 2 and not needs_more) or is_add_messages(reducer):
            return
        found = str(signature)
    raise GraphValidationError(
        f"Invalid reducer signature. Expected (a, b) -> c. Got {found} - the last item in the annotation of key "
        f"'{name}' is its reducer and is called with the current value and the update; give it two parameters"
    )


def _maker(declared: Any) -> Callable[[dict[str, Any]], Any] | None:
    if is_model(declared) or is_dataclass_type(declared):
        return lambda values: declared(**values)
    return None
