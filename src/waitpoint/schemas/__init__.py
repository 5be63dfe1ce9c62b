"""Schemas of answers: shown as JSON Schema, enforced before an answer is stored, and again as the class they came from.

Whatever does not fit raises `pydantic.ValidationError`: its `errors()` name the places and never hold the answer.
"""

from waitpoint.schemas.check import check_answer, find_misfits
from waitpoint.schemas.declared import convert_answer, to_json_schema
from waitpoint.schemas.misfits import validation_error
from waitpoint.schemas.plain import json_form, plain_answer

__all__ = [
    "check_answer",
    "convert_answer",
    "find_misfits",
    "json_form",
    "plain_answer",
    "to_json_schema",
    "validation_error",
]
