"""TypedDicts of the standard library, which pydantic refuses before Python 3.12."""

from __future__ import annotations

import sys
import types
import typing
from typing import Any, is_typeddict

import typing_extensions


def modern(annotation: Any, made: dict[Any, Any]) -> Any:
    """Replace each `typing.TypedDict` by one of typing_extensions, which pydantic asks for before Python 3.12."""
    if sys.version_info >= (3, 12):
        return annotation
    if is_typeddict(annotation) and type(annotation).__module__ == "typing":
        return _modern_typeddict(annotation, made)
    args = typing.get_args(annotation)
    if not args or typing.get_origin(annotation) is typing.Literal:
        return annotation
    new = tuple(modern(arg, made) for arg in args)
    if all(a is b for a, b in zip(args, new, strict=True)):
        return annotation
    if isinstance(annotation, types.UnionType):
        return typing.Union[new]  # noqa: UP007 - the members are known only here
    if isinstance(annotation, types.GenericAlias):
        return types.GenericAlias(typing.cast("type", annotation.__origin__), new)
    return annotation.copy_with(new)


def _modern_typeddict(cls: Any, made: dict[Any, Any]) -> Any:
    if cls not in made:
        made[cls] = cls  # what refers to itself stays, and is then refused by pydantic
        hints = typing_extensions.get_type_hints(cls, include_extras=True)
        fields = {}
        for name, hint in hints.items():
            marks, bare = _unmarked(hint)
            # The class's own set takes annotations that are still text for required ones.
            is_required = typing.NotRequired not in marks and (
                typing.Required in marks or name in cls.__required_keys__
            )
            mark = typing_extensions.Required if is_required else typing_extensions.NotRequired
            fields[name] = mark[modern(bare, made)]
        made[cls] = typing_extensions.TypedDict(cls.__name__, fields)  # type: ignore[operator]
        made[cls].__doc__, made[cls].__module__ = cls.__doc__, cls.__module__
    return made[cls]


def _unmarked(hint: Any) -> tuple[set[Any], Any]:
    """Strip Required and NotRequired off an annotation; return those that were there, and the rest."""
    marks = set()
    while (origin := typing.get_origin(hint)) in {typing.Required, typing.NotRequired}:
        marks.add(origin)
        hint = typing.get_args(hint)[0]
    return marks, hint
