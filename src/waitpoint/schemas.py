"""Schemas of answers: shown as JSON Schema, enforced before an answer is stored, and again as the class they came from.

Whatever does not fit raises `pydantic.ValidationError`: its `errors()` name the places and never hold the answer.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import json
import sys
import types
import typing
from collections.abc import Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, is_typeddict
from uuid import UUID

import typing_extensions

from waitpoint.canonical import digest, payload
from waitpoint.codec import is_model
from waitpoint.errors import PayloadError, UsageError

if TYPE_CHECKING:
    import jsonschema_rs
    from pydantic import TypeAdapter, ValidationError
    from pydantic_core import InitErrorDetails

_MASK: Final = "the answer"
_CACHED: Final = 512


# --- from a class to a schema -----------------------------------------------------------------------------------------


def to_json_schema(response_schema: Any) -> dict[str, Any] | None:
    """Return the JSON Schema of a class, annotation or raw schema; None for none.

    Raises UsageError for a raw schema that is not legal (or refers to another document), and for a type of which no
    schema can be made.
    """
    if response_schema is None:
        return None
    if isinstance(response_schema, dict):
        return _checked_schema(response_schema)
    return dict(_schema_of(_Type(response_schema)))


def _checked_schema(schema: dict[str, Any]) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = json.loads(json.dumps(payload(schema, path="response_schema"), allow_nan=False))
        _validator(plain)
    except (TypeError, ValueError) as error:  # jsonschema_rs's own errors are ValueErrors; so are those of JSON
        detail = str(error).partition("\n")[0]
        raise UsageError(
            f"the response_schema is not a legal JSON Schema - {detail} - see https://json-schema.org, draft 2020-12"
        ) from error
    return plain


class _Type:
    """A type as a key of a cache: by identity, since annotations need not be hashable."""

    __slots__ = ("type",)

    def __init__(self, of: Any) -> None:
        self.type = of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Type) and other.type is self.type

    def __hash__(self) -> int:
        return id(self.type)


@functools.lru_cache(maxsize=_CACHED)
def _schema_of(key: _Type) -> dict[str, Any]:
    from pydantic.errors import PydanticUserError

    try:
        return _adapter(key).json_schema()
    except (PydanticUserError, NameError) as error:
        raise _no_schema(key.type, error) from error


@functools.lru_cache(maxsize=_CACHED)
def _adapter(key: _Type) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        return TypeAdapter(_modern(key.type, {}))
    except (PydanticUserError, NameError, TypeError) as error:
        raise _no_schema(key.type, error) from error


def _no_schema(of: Any, error: Exception) -> UsageError:
    name = getattr(of, "__qualname__", None) or repr(of)
    detail = str(error).partition("\n")[0]
    return UsageError(
        f"no JSON Schema can be made of {name!r} - {detail} - use a pydantic model, a TypedDict, a dataclass, or a raw "
        "JSON Schema"
    )


def _modern(annotation: Any, made: dict[Any, Any]) -> Any:
    """Replace each `typing.TypedDict` by one of typing_extensions, which pydantic asks for before Python 3.12."""
    if sys.version_info >= (3, 12):
        return annotation
    if is_typeddict(annotation) and type(annotation).__module__ == "typing":
        return _modern_typeddict(annotation, made)
    args = typing.get_args(annotation)
    if not args or typing.get_origin(annotation) is typing.Literal:
        return annotation
    new = tuple(_modern(arg, made) for arg in args)
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
            fields[name] = mark[_modern(bare, made)]
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


# --- checking an answer against a JSON Schema -------------------------------------------------------------------------


def check_answer(schema: dict[str, Any], answer: Any, *, title: str) -> None:
    """Check an answer against a JSON Schema; raises pydantic.ValidationError naming every place that does not fit."""
    validator = _validator(schema)
    try:
        form = _json_form(plain_answer(answer))
        errors = [line for error in validator.iter_errors(form) for line in _lines(error, form)]
    except ValueError:  # something in it is neither JSON nor has a JSON form
        errors = [((), "json_type", "the answer holds a value that JSON has no form for")]
    if errors:
        raise _validation_error(title, errors)


def plain_answer(answer: Any) -> Any:
    """Return an answer with models and dataclasses turned into plain data; all else stays what it is."""
    cls = type(answer)
    if cls is dict:
        return {key: plain_answer(item) for key, item in answer.items()}
    if cls is list or cls is tuple:
        return cls(plain_answer(item) for item in answer)
    if is_model(type(answer)) or (dataclasses.is_dataclass(answer) and not isinstance(answer, type)):
        try:
            return payload(answer, path="answer")
        except PayloadError:
            return answer
    return answer


def _json_form(value: Any) -> Any:
    """Return what the value would be if it had come as JSON."""
    if isinstance(value, Enum):
        return _json_form(value.value)
    if value is None or isinstance(value, (bool, int, float, str, Decimal)):
        return value
    if isinstance(value, dict):
        return {str(key.value) if isinstance(key, Enum) else key: _json_form(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_json_form(item) for item in value]
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return f"{'-' if value.days < 0 else ''}PT{abs(value).total_seconds()}S"
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    raise ValueError(f"no JSON form for {type(value)!r}")


def _validator(schema: dict[str, Any]) -> jsonschema_rs.Validator:
    return _compiled(_Keyed(schema))


class _Keyed:
    """A schema as a key of a cache: equal schemas share one validator."""

    __slots__ = ("digest", "schema")

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self.digest = digest(schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keyed) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@functools.lru_cache(maxsize=_CACHED)
def _compiled(key: _Keyed) -> jsonschema_rs.Validator:
    import jsonschema_rs

    return jsonschema_rs.validator_for(key.schema, mask=_MASK, retriever=_refuse)


def _refuse(uri: str) -> Any:
    # Invariant: checking an answer never opens a connection or a file; a schema may come from anyone.
    raise ValueError(f"{uri!r} is another document, and schemas are not fetched")


_Line = tuple[tuple[str | int, ...], str, str]
"""Where, which rule, and what is wrong."""


def _lines(error: jsonschema_rs.ValidationError, answer: Any, tag: tuple[str, ...] = ()) -> Iterator[_Line]:
    """Yield what is wrong in the terms of a person: the missing or unexpected key, the branch that was meant."""
    kind: Any = error.kind
    place = (*tag, *error.instance_path)
    if kind.name in {"oneOf", "anyOf"} and getattr(kind, "context", None):
        yield from _branch_lines(kind.context, error, answer, tag)
    elif kind.name == "required":
        yield (*place, kind.property), "missing", "Field required"
    elif kind.name in {"additionalProperties", "unevaluatedProperties"}:
        for name in kind.unexpected:
            yield (*place, name), "extra_forbidden", "Extra inputs are not permitted"
    elif kind.name == "falseSchema" and error.schema_path[-1] == "additionalProperties":
        for name in _at(answer, error.instance_path):
            yield (*place, name), "extra_forbidden", "Extra inputs are not permitted"
    elif kind.name == "propertyNames":
        yield place, kind.name, "a key of the answer is not allowed here"
    else:
        yield place, kind.name, error.message


def _branch_lines(
    branches: list[list[jsonschema_rs.ValidationError]],
    error: jsonschema_rs.ValidationError,
    answer: Any,
    tag: tuple[str, ...],
) -> Iterator[_Line]:
    """Report the one branch that can have been meant: the others fail at a constant key, or by their very type."""
    depth = len(error.instance_path)
    meant = [branch for branch in branches if not any(_rules_out(each, depth) for each in branch)]
    tags = {key: value for branch in branches for each in branch for key, value in _constant(each, depth)}
    if len(meant) == 1:
        name = _tag_in(answer, error.instance_path, tags)
        below = [_shifted(line, depth, name) for each in meant[0] for line in _lines(each, answer, tag)]
        yield from below
        return
    place = (*tag, *error.instance_path)
    if not meant and len(tags) == 1:
        expected = sorted({repr(v) for branch in branches for each in branch for _, v in _constant(each, depth)})
        yield (
            place,
            "union_tag_invalid",
            f"{next(iter(tags))!r} does not match any of the expected tags: {', '.join(expected)}",
        )
        return
    yield place, error.kind.name, error.message


def _rules_out(error: jsonschema_rs.ValidationError, depth: int) -> bool:
    at = len(error.instance_path) - depth
    return (at == 0 and error.kind.name in {"type", "const", "enum"}) or (at == 1 and error.kind.name == "const")


def _constant(error: jsonschema_rs.ValidationError, depth: int) -> Iterator[tuple[str, Any]]:
    kind: Any = error.kind
    if kind.name == "const" and len(error.instance_path) == depth + 1:
        yield str(error.instance_path[-1]), kind.expected_value


def _tag_in(answer: Any, path: list[str | int], tags: dict[str, Any]) -> str | None:
    """Return the tag by which the answer chose its branch, if there is one key for that."""
    if len(tags) != 1:
        return None
    chosen = _at(answer, path)
    tag = chosen.get(next(iter(tags))) if isinstance(chosen, dict) else None
    return tag if isinstance(tag, str) else None


def _at(answer: Any, path: list[str | int]) -> Any:
    for step in path:
        answer = answer[step]
    return answer


def _shifted(line: _Line, depth: int, name: str | None) -> _Line:
    place, rule, message = line
    return (place if name is None else (*place[:depth], name, *place[depth:])), rule, message


def _validation_error(title: str, lines: list[_Line]) -> ValidationError:
    from pydantic import ValidationError
    from pydantic_core import PydanticCustomError

    details: list[InitErrorDetails] = [
        {"type": PydanticCustomError(rule, _literal(message)), "loc": place, "input": None}
        for place, rule, message in lines
    ]
    return ValidationError.from_exception_data(title, details, hide_input=True)


def _literal(message: str) -> Any:
    return message  # without a context the text is taken as it is, braces and all


# --- the answer as an instance ----------------------------------------------------------------------------------------


def convert_answer(response_schema: Any, answer: Any) -> Any:
    """Return the answer as the class has it: an instance, or a dict reduced to the declared keys.

    An answer to a raw JSON Schema stays as it is. Raises pydantic.ValidationError if the class refuses it.
    """
    if response_schema is None or isinstance(response_schema, dict):
        return answer
    from pydantic import ValidationError

    adapter = _adapter(_Type(response_schema))
    try:
        return adapter.validate_python(plain_answer(answer))
    except ValidationError as error:
        as_json = _validated_as_json(adapter, answer)
        if as_json is not None:
            return as_json[0]
        lines: list[_Line] = [(e["loc"], e["type"], e["msg"]) for e in error.errors(include_url=False)]
        raise _validation_error(error.title, lines) from None


def _validated_as_json(adapter: TypeAdapter[Any], answer: Any) -> tuple[Any] | None:
    """Try once more by the rules for JSON: a strict class refuses a date as text from Python, but not from JSON."""
    from pydantic import ValidationError

    try:
        return (adapter.validate_json(json.dumps(_json_form(plain_answer(answer)))),)
    except (TypeError, ValueError, ValidationError):
        return None
