"""Decisions in the words of older clients become today's, typed as the tool's schema says."""

from __future__ import annotations

from typing import Any

import pytest

from waitpoint.protocol import (
    HITL_REQUEST,
    TOOL_APPROVAL,
    BatchCall,
    batch_schema,
    decision_schema,
    from_older,
    with_aliases,
)

ARGS = {
    "type": "object",
    "properties": {
        "to": {"type": "string"},
        "amount": {"type": "integer"},
        "urgent": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        "items": {"type": "array"},
        "place": {"$ref": "#/$defs/Place"},
        "any": {},
    },
    "$defs": {"Place": {"type": "object"}},
}
ALL = ("approve", "edit", "reject", "respond")
ONE = decision_schema(ALL, "pay", ARGS)
TWO = batch_schema([BatchCall("c1", "pay", ALL, {"pay": ARGS, "send": {}}), BatchCall("c2", "pay", ["respond"], {})])
DATA = {"tool_call_ids": ["c1", "c2"]}


def one(answer: Any, schema: Any = ONE) -> Any:
    return from_older(answer, TOOL_APPROVAL, {"tool_call_id": "c1", "name": "pay"}, schema, {})


def two(answer: Any) -> Any:
    return from_older(answer, HITL_REQUEST, {}, TWO, DATA)


def test_fields_that_were_typed_become_what_the_schema_says() -> None:
    given = {"to": "12", "amount": "7", "urgent": "true", "items": "[1]", "place": '{"a": 1}', "any": "5", "other": "6"}
    edit = {"type": "edit", "args": {"action": "pay", "args": given}}
    typed = {"to": "12", "amount": 7, "urgent": True, "items": [1], "place": {"a": 1}, "any": "5", "other": "6"}
    assert one([edit]) == {"type": "edit", "edited_action": {"name": "pay", "args": typed}}
    assert two([edit, {"type": "response", "args": "x"}])["decisions"][0]["edited_action"]["args"] == typed


def test_what_cannot_be_read_as_its_type_stays_as_it_came() -> None:
    edit = {"type": "edit", "args": {"action": "pay", "args": {"amount": "a lot", "urgent": "None"}}}
    assert one(edit)["edited_action"]["args"] == {"amount": "a lot", "urgent": None}


@pytest.mark.parametrize(
    ("allowed", "becomes"), [(ALL, "reject"), (("approve", "respond"), "respond"), (("reject",), "reject")]
)
def test_a_response_is_a_reason_where_a_no_is_allowed_and_a_result_where_not(allowed: Any, becomes: str) -> None:
    schema = decision_schema(allowed, "pay", ARGS)
    assert one([{"type": "response", "args": "not him"}], schema) == {"type": becomes, "message": "not him"}


def test_decisions_by_the_ids_of_their_calls_come_in_the_order_of_the_calls() -> None:
    given = {"c2": {"type": "respond", "message": "b"}, "c1": {"type": "approve"}}
    assert two(given) == {"decisions": [{"type": "approve"}, {"type": "respond", "message": "b"}]}


@pytest.mark.parametrize(
    "answer",
    ["yes", None, [], {}, {"type": "other"}, {"c1": {"type": "approve"}}, [1], {"decisions": "x"}, {"note": "approve"}],
)
def test_what_holds_no_decisions_is_left_to_be_refused(answer: Any) -> None:
    assert two(answer) == answer


def test_a_whole_answer_of_today_stays_as_it_is() -> None:
    given = {"decisions": [{"type": "approve", "tool_call_id": "c1"}, {"type": "respond", "message": "x"}], "more": 1}
    assert two(given) == given


@pytest.mark.parametrize("payload", ["text", None, {"type": "approval"}, {"action_requests": 1, "review_configs": []}])
def test_payloads_of_other_kinds_get_no_further_keys(payload: Any) -> None:
    assert with_aliases(payload) == payload


def test_keys_that_a_payload_has_itself_are_not_changed() -> None:
    payload = {"action_requests": [{"name": "pay", "args": {"a": 1}, "arguments": "mine"}, 3], "review_configs": [None]}
    found = with_aliases(payload)
    assert found["action_requests"] == [{"name": "pay", "args": {"a": 1}, "arguments": "mine"}, 3]
    assert payload["review_configs"] == found["review_configs"]
