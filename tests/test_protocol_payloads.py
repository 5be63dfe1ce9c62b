"""Typed payloads: told apart by their type, given as schemas, and open for types that are not ours."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, Literal

import pytest
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from waitpoint import protocol
from waitpoint.protocol import Decision, HITLResponse, InDoubtAnswer, KnownRequest, TypedRequest
from waitpoint.schemas import check_answer, convert_answer, to_json_schema

REQUESTS: list[dict[str, Any]] = [
    {"type": "approval", "question": "Go on?", "action": "delete"},
    {"type": "review_text", "instruction": "Read it", "content": "Hello"},
    {"type": "tool_approval", "tool_call_id": "c1", "name": "rm", "args": {"path": "a"}, "description": "d"},
    {"type": "frontend_tool", "tool_call_id": "c1", "tool_name": "pick_file", "args": {}},
    {"type": "form_input", "field": "age", "prompt": "Your age"},
    {
        "type": "in_doubt",
        "kind": "step",
        "name": "send",
        "args": {"to": "ana"},
        "idempotency_key": "k",
        "started_at": "2026-01-01T00:00:00Z",
    },
]
BATCH = {
    "action_requests": [{"name": "rm", "args": {"path": "a"}}],
    "review_configs": [{"action_name": "rm", "allowed_decisions": ["approve", "reject"]}],
}


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: r["type"])
def test_payload_of_each_type_is_known_by_its_type(request_: dict[str, Any]) -> None:
    assert TypeAdapter(TypedRequest).validate_python(request_) == request_
    assert TypeAdapter(KnownRequest).validate_python(request_) == request_
    for key in set(request_) - {"type", "action"}:
        cut = {k: v for k, v in request_.items() if k != key}
        with pytest.raises(ValidationError) as caught:
            TypeAdapter(TypedRequest).validate_python(cut)
        assert [e["loc"] for e in caught.value.errors()] == [(request_["type"], key)]


def test_batched_request_is_known_by_its_keys() -> None:
    assert TypeAdapter(KnownRequest).validate_python(BATCH) == BATCH


def test_union_is_open_for_a_type_of_ones_own() -> None:
    class Seal(TypedDict):
        type: Literal["seal"]
        color: str

    mine: TypeAdapter[Any] = TypeAdapter(KnownRequest | Seal)
    for payload in (*REQUESTS, BATCH, {"type": "seal", "color": "red"}):
        assert mine.validate_python(payload) == payload


@pytest.mark.parametrize(
    ("of", "good", "bad", "place"),
    [
        (Decision, {"type": "reject", "message": "no"}, {"type": "edit"}, ("edit", "edited_action")),
        (InDoubtAnswer, {"type": "happened", "result": 5}, {}, ("type",)),
        (
            HITLResponse,
            {"decisions": [{"type": "approve"}, {"type": "respond", "message": "x"}]},
            {"decisions": [{"type": "approve"}, {"type": "respond"}]},
            ("decisions", 1, "respond", "message"),
        ),
        (protocol.ApprovalVerdict, {"action": "approve"}, {"action": "maybe"}, ("action",)),
        (
            protocol.FrontendToolAnswer,
            {"tool_call_id": "c", "tool_result": [1]},
            {"tool_call_id": "c"},
            ("tool_result",),
        ),
    ],
)
def test_answers_can_be_the_schema_of_a_question(of: Any, good: Any, bad: Any, place: tuple[Any, ...]) -> None:
    schema = to_json_schema(of)
    assert schema is not None
    check_answer(schema, good, title="t")
    assert convert_answer(of, good) == good
    with pytest.raises(ValidationError) as caught:
        check_answer(schema, bad, title="t")
    assert [e["loc"] for e in caught.value.errors()] == [place]


def test_answers_without_a_type_are_plain_values() -> None:
    assert convert_answer(protocol.ApprovalAnswer, True) is True
    assert convert_answer(protocol.ApprovalAnswer, {"action": "reject"}) == {"action": "reject"}
    assert convert_answer(protocol.FormInputAnswer, 7) == 7


def test_import_loads_no_pydantic() -> None:
    code = "import sys, waitpoint.protocol; print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=50)
    assert done.stdout.strip() == "False"
