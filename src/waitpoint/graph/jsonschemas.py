"""JSON Schemas of a graph's input, output and context, for those who call it from elsewhere."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, Required, Union, get_args, get_origin, get_type_hints

import typing_extensions
from typing_extensions import is_typeddict

from waitpoint.graph.schema import ROOT, Schema, is_model, unqualified


def json_schema(schema: Schema, title: str) -> dict[str, Any]:
    """Return the JSON Schema of what a schema's keys hold; `title` names it where the class does not."""
    if is_model(schema.declared):
        return dict(schema.declared.model_json_schema())
    if is_typeddict(schema.declared):
        return _of_type(schema.declared)
    return dict(model_of(schema, title).model_json_schema())


def model_of(schema: Schema, title: str) -> Any:
    """Return a pydantic model of a schema: the class itself if it is one, else one made of its keys."""
    from pydantic import ConfigDict, Field, RootModel, create_model

    if is_model(schema.declared):
        return schema.declared
    config = ConfigDict(arbitrary_types_allowed=True, protected_namespaces=())
    if schema.is_whole:
        return type(title, (RootModel,), {"__annotations__": {"root": schema.hints[ROOT]}, "__module__": __name__})
    fields: dict[str, Any] = {}
    for key in schema.channels:
        default = default_of(key, schema)
        # An alias, since pydantic takes no name with a leading underscore and none of its own methods'.
        name = f"field_{len(fields)}"
        fields[name] = (unqualified(schema.hints[key]), Field(default, alias=key, title=_title(key)))
    return create_model(title, __config__=config, **fields)


def context_json_schema(context_schema: Any) -> dict[str, Any] | None:
    """Return the JSON Schema of the context that a run takes, None if the graph declares none."""
    if context_schema is None:
        return None
    if is_model(context_schema):
        return dict(context_schema.model_json_schema())
    return _of_type(context_schema)


def default_of(key: str, schema: Schema) -> Any:
    """Return what a key holds if it is left out, `...` if it may not be left out."""
    hint = schema.hints[key]
    required = _required(hint)
    if required is None and key in getattr(schema.declared, "__optional_keys__", ()):
        required = False
    if required is not None:
        return ... if required else None
    if dataclasses.is_dataclass(schema.declared):
        field = next(f for f in dataclasses.fields(schema.declared) if f.name == key)
        if field.default is not dataclasses.MISSING:
            return field.default
        if field.default_factory is not dataclasses.MISSING:
            return field.default_factory()
    return None if _allows_none(hint) else ...


def _title(key: str) -> str:
    return key.strip("_").replace("_", " ").title()


def _required(hint: Any) -> bool | None:
    """Whether `Required` or `NotRequired` says so, also inside `Annotated`; None: neither does."""
    origin = get_origin(hint)
    if origin is Required:
        return True
    if origin is NotRequired:
        return False
    return _required(get_args(hint)[0]) if origin is Annotated else None


def _allows_none(hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Annotated:
        return _allows_none(get_args(hint)[0])
    if origin in {Union, types.UnionType}:
        return any(_allows_none(option) for option in get_args(hint))
    return hint is None or hint is type(None)


def _of_type(declared: Any) -> dict[str, Any]:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        return TypeAdapter(declared).json_schema()
    except PydanticUserError:
        # Before Python 3.12 pydantic refuses `typing.TypedDict` and wants the one of typing_extensions.
        if not is_typeddict(declared):
            raise
        return TypeAdapter(_as_extended(declared)).json_schema()


def _as_extended(declared: Any) -> Any:
    """Return the same TypedDict as one of typing_extensions, the TypedDicts in its annotations too."""
    hints: Mapping[str, Any] = get_type_hints(declared, include_extras=True)
    fields = {}
    for key, hint in hints.items():
        value = _extended(hint)
        if _required(hint) is None:
            value = Required[value] if key in declared.__required_keys__ else NotRequired[value]
        fields[key] = value
    made = typing_extensions.TypedDict(declared.__name__, fields)  # type: ignore[misc]
    made.__doc__ = declared.__doc__
    return made


def _extended(hint: Any) -> Any:
    if is_typeddict(hint):
        return _as_extended(hint)
    args = get_args(hint)
    if not args or not any(is_typeddict(a) or get_args(a) for a in args):
        return hint
    origin = get_origin(hint)
    if origin is Annotated:
        return Annotated[_extended(args[0]), *hint.__metadata__]
    changed = tuple(_extended(a) for a in args)
    if origin in {Union, types.UnionType}:
        return Union[changed]  # noqa: UP007 - made at run time
    return hint if origin is None else origin[changed[0] if len(changed) == 1 else changed]
