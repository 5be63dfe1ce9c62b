"""Example answers: each fits the schema it was made for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, TypedDict

import pytest
from pydantic import BaseModel, Field

from waitpoint import schemas
from waitpoint.shown.samples import fields, kind, samples


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Edit(TypedDict):
    type: Literal["edit"]
    text: str


class Approve(TypedDict):
    type: Literal["approve"]


class Line(BaseModel):
    amount: int = Field(ge=1)
    colour: Colour


class Order(BaseModel):
    lines: list[Line]
    note: str | None = None


@dataclass
class Pair:
    left: bool
    right: float


@pytest.mark.parametrize(
    "declared",
    [
        *(
            bool,
            int,
            float,
            str,
            list[int],
            Colour,
            Literal["yes", "no"],
            Approve | Edit,
            Line,
            Order,
            Pair,
            int | None,
        ),
        *(
            {"enum": ["a", "b"]},
            {"const": 5},
            {"type": ["null", "string"]},
            {"oneOf": [{"type": "null"}, {"const": 1}]},
        ),
    ],
    ids=str,
)
def test_each_sample_fits_its_schema(declared: Any) -> None:
    schema = schemas.to_json_schema(declared)
    assert schema is not None
    made = samples(schema)
    assert 1 <= len(made) <= 4
    for answer in made:
        schemas.check_answer(schema, answer, title="answer")


def test_a_choice_gives_a_sample_for_each_way() -> None:
    assert samples({"type": "boolean"}) == [True, False]
    assert samples(schemas.to_json_schema(Approve | Edit)) == [{"type": "approve"}, {"type": "edit", "text": "..."}]
    assert [s["colour"] for s in samples(schemas.to_json_schema(Line))] == ["red", "blue"]
    assert len(samples({"enum": list(range(100))})) == 4


@pytest.mark.parametrize("schema", [None, {}, {"not": {}}, {"$ref": "#/$defs/gone"}, {"$ref": "#"}, {"enum": []}])
def test_a_schema_that_says_nothing_gives_none(schema: Any) -> None:
    assert samples(schema) == []


def test_what_would_not_fit_is_not_offered() -> None:
    assert samples({"type": "string", "pattern": "^[A-Z]{3}$"}) == []
    assert samples({"enum": [1, 2, 3], "minimum": 2}) == [2, 3]


def test_a_schema_that_contains_itself_comes_to_an_end() -> None:
    node: dict[str, Any] = {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}, "required": ["next"]}
    assert samples({"$defs": {"n": node}, "$ref": "#/$defs/n"}) == []


def test_fields_are_told_in_words() -> None:
    told = {f.name: f for f in fields(schemas.to_json_schema(Order) or {})}
    assert (told["lines"].kind, told["lines"].is_required) == ("list of object", True)
    assert (told["note"].kind, told["note"].is_required) == ("text | null", False)
    assert kind({"enum": ["a", None, 3]}, {}) == "'a' | None | 3"
    assert [f.kind for f in fields({"type": "boolean"})] == ["true | false"]
