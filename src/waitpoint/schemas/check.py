"""Checking an answer against the JSON Schema that was shown with the question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from waitpoint.schemas.misfits import Misfit, misfits, validation_error
from waitpoint.schemas.plain import json_form, plain_answer
from waitpoint.schemas.validators import validator


def check_answer(schema: dict[str, Any], answer: Any, *, title: str) -> None:
    """Check an answer against a JSON Schema; raises pydantic.ValidationError naming every place that does not fit."""
    errors = find_misfits(schema, answer)
    if errors:
        raise validation_error(title, errors)


def find_misfits(schema: Mapping[str, Any], answer: Any) -> list[Misfit]:
    """List every place at which an answer does not fit a JSON Schema, in the terms of a person."""
    checks = validator(schema)
    try:
        form = json_form(plain_answer(answer))
        return [line for error in checks.iter_errors(form) for line in misfits(error, form, schema)]
    except ValueError:  # something in it is neither JSON nor has a JSON form
        return [((), "json_type", "the answer holds a value that JSON has no form for")]
    except RecursionError:
        return [((), "recursion_loop", "the answer contains itself, or nests too deep")]
