"""Which classes a schema can hold: everything that its annotations lead to."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import types
import typing
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, is_typeddict

from waitpoint.codec import messages
from waitpoint.codec.kinds import is_model, is_namedtuple


def classes_of(schemas: Iterable[Any]) -> list[type]:
    """Return the dataclasses, models, enums, named tuples and exceptions that these schemas and functions lead to."""
    roots = [schema for schema in schemas if schema is not None]
    names = {root.__name__: root for root in roots if isinstance(root, type)}
    found: dict[type, None] = {}
    seen: set[int] = set()
    waiting: list[Any] = list(reversed(roots))
    # Generic aliases are made anew at each access; kept alive here, so that an id stands for one object only.
    alive: list[Any] = []
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        alive.append(item)
        if isinstance(item, type) and not typing.get_args(item):
            if item.__module__.startswith(messages.MODULE) or item.__module__ == "pydantic.main":
                continue
            if _is_stored_by_fields(item):
                found[item] = None
            elif not is_typeddict(item) and item not in roots:
                continue
            waiting += _hints(item, names)
        else:
            waiting += _inside(item, names)
    return list(found)


def _is_stored_by_fields(cls: type) -> bool:
    if cls.__module__ in {"builtins", "typing"}:
        return False
    return (
        dataclasses.is_dataclass(cls)
        or is_model(cls)
        or is_namedtuple(cls)
        or (issubclass(cls, (Enum, BaseException)) and cls is not Enum)
    )


def _inside(item: Any, names: dict[str, Any]) -> Iterator[Any]:
    """Yield what an annotation other than a plain class is made of."""
    if isinstance(item, Enum):  # in a Literal
        yield type(item)
    elif isinstance(item, (list, tuple)):  # the parameters in a Callable
        yield from item
    elif isinstance(item, typing.TypeVar):
        yield from (item.__bound__, *item.__constraints__)
    elif isinstance(item, typing.NewType):
        yield item.__supertype__
    elif isinstance(item, dataclasses.InitVar):
        yield item.type
    elif isinstance(item, str):
        yield names.get(item)
    elif isinstance(item, typing.ForwardRef):
        yield names.get(item.__forward_arg__)
    elif type(item).__name__ == "TypeAliasType":  # also the backport's, for `type X = ...` before Python 3.12
        with contextlib.suppress(NameError, AttributeError):
            yield item.__value__
    elif inspect.isroutine(item):
        yield from _hints(item, names)
    else:
        if typing.get_origin(item) is typing.Annotated:
            yield item.__origin__
            yield from (part for part in item.__metadata__ if isinstance(part, (type, types.GenericAlias)))
            return
        yield typing.get_origin(item)
        yield from typing.get_args(item)


def _hints(item: Any, names: dict[str, Any]) -> Iterator[Any]:
    """Yield the annotations of a class or function; one that cannot be resolved is left out."""
    if isinstance(item, type) and is_model(item):
        yield from (field.annotation for field in item.model_fields.values())  # type: ignore[attr-defined]
        yield from getattr(item, "__pydantic_generic_metadata__", {}).get("args", ())
        yield from _resolved(item, {k: v for k, v in _own(item).items() if k not in item.model_fields}, names)  # type: ignore[attr-defined]
        return
    scope = names | {item.__name__: item} if isinstance(item, type) else names
    try:
        yield from typing.get_type_hints(item, localns=scope, include_extras=True).values()
    except Exception:  # noqa: BLE001 - an annotation may raise anything; then each is tried by itself
        for owner in reversed(item.__mro__) if isinstance(item, type) else (item,):
            yield from _resolved(owner, _own(owner), scope)


def _own(owner: Any) -> dict[str, Any]:
    try:
        return inspect.get_annotations(owner)
    except Exception:  # noqa: BLE001 - annotations that are evaluated when read may raise anything
        return {}


def _resolved(owner: Any, annotations: dict[str, Any], scope: dict[str, Any]) -> Iterator[Any]:
    module = inspect.getmodule(owner)
    for name, annotation in annotations.items():
        one = types.SimpleNamespace(__annotations__={name: annotation})
        with contextlib.suppress(Exception):
            yield from typing.get_type_hints(
                one, globalns=getattr(module, "__dict__", {}), localns=scope, include_extras=True
            ).values()
