"""Where an answer is wrong: keys that look like positions, and empty ones."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from waitpoint.schemas import check_answer


@pytest.mark.parametrize(
    ("answer", "places"),
    [({"0": None, "1": [None], "02": None}, [("0",), ("02",), ("1", 0)]), ({"": [None]}, [("", 0)])],
    ids=["digits", "empty"],
)
def test_a_key_of_digits_or_of_nothing_is_a_key_and_no_position(answer: Any, places: list[Any]) -> None:
    schema = {"additionalProperties": {"oneOf": [{"type": "string"}, {"items": {"type": "integer"}, "type": "array"}]}}
    with pytest.raises(ValidationError) as caught:
        check_answer(schema, answer, title="answer")
    assert sorted(e["loc"] for e in caught.value.errors()) == places
