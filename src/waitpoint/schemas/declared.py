"""Schemas as they are declared: from a class to JSON Schema, and from an answer to an instance of the class."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from waitpoint.canonical import payload
from waitpoint.errors import UsageError
from waitpoint.schemas.misfits import Misfit, validation_error
from waitpoint.schemas.plain import json_form, plain_answer
from waitpoint.schemas.typeddicts import modern
from waitpoint.schemas.validators import validator

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_CACHED: Final = 512


def to_json_schema(response_schema: Any) -> dict[str, Any] | None:
    """Return the JSON Schema of a class, annotation or raw schema; None for none.

    Raises UsageError for a raw schema that is not legal (or refers to another document), and for a type of which no
    schema can be made.
    """
    if response_schema is None:
        return None
    if isinstance(response_schema, dict):
        return _checked_schema(response_schema)
    copy: dict[str, Any] = payload(_schema_of(_Type(response_schema)))
    return copy


def _checked_schema(schema: dict[str, Any]) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = payload(schema, path="response_schema")
        validator(plain)
    except (TypeError, ValueError) as error:  # the errors of jsonschema_rs are ValueErrors
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
        return TypeAdapter(modern(key.type, {}))
    except (PydanticUserError, NameError, TypeError) as error:
        raise _no_schema(key.type, error) from error


def _no_schema(of: Any, error: Exception) -> UsageError:
    name = getattr(of, "__qualname__", None) or repr(of)
    detail = str(error).partition("\n")[0]
    return UsageError(
        f"no JSON Schema can be made of {name!r} - {detail} - use a pydantic model, a TypedDict, a dataclass, or a raw "
        "JSON Schema"
    )


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
        lines: list[Misfit] = [(e["loc"], e["type"], e["msg"]) for e in error.errors(include_url=False)]
        raise validation_error(error.title, lines) from None


def _validated_as_json(adapter: TypeAdapter[Any], answer: Any) -> tuple[Any] | None:
    """Try once more by the rules for JSON: a strict class refuses a date as text from Python, but not from JSON."""
    import json

    from pydantic import ValidationError

    try:
        return (adapter.validate_json(json.dumps(json_form(plain_answer(answer)))),)
    except (TypeError, ValueError, ValidationError):
        return None
