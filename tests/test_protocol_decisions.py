"""Decisions on tool calls: schemas as the documents show them, answers in one shape, one error at the place."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from waitpoint.protocol import BatchCall, batch_schema, decision_schema, read_batch, read_decision
from waitpoint.schemas import check_answer

ALL = ("approve", "edit", "reject", "respond")
WRITE: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["path", "content"],
}
SQL: dict[str, Any] = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
GOOD_EDIT = {"type": "edit", "edited_action": {"name": "write_file", "args": {"path": "a", "content": "b"}}}


def refused(answer: Any, allowed: tuple[str, ...] = ALL, args: Mapping[str, Any] = WRITE) -> list[Any]:
    schema = decision_schema(allowed, "write_file", args)
    with pytest.raises(ValidationError) as caught:
        read_decision(answer, schema, "write_file", allowed)
    return [(e["loc"], e["type"], e["msg"]) for e in caught.value.errors()]


def read(answer: Any, allowed: tuple[str, ...] = ALL) -> dict[str, Any]:
    return read_decision(answer, decision_schema(allowed, "write_file", WRITE), "write_file", allowed)


# --- the schema of one call -------------------------------------------------------------------------------------------


def test_schema_has_the_branches_of_the_document() -> None:
    schema = decision_schema(ALL, "write_file", WRITE)
    assert schema["oneOf"] == [
        {"$ref": "#/$defs/ApproveDecision"},
        {"$ref": "#/$defs/EditDecision"},
        {"$ref": "#/$defs/RejectDecision"},
        {"$ref": "#/$defs/RespondDecision"},
    ]
    assert schema["$defs"] == {
        "ApproveDecision": {
            "type": "object",
            "properties": {"type": {"type": "string", "const": "approve"}},
            "required": ["type"],
            "additionalProperties": False,
        },
        "EditDecision": {
            "type": "object",
            "properties": {
                "type": {"type": "string", "const": "edit"},
                "edited_action": {
                    "type": "object",
                    "properties": {"name": {"type": "string", "const": "write_file"}, "args": WRITE},
                    "required": ["name", "args"],
                    "additionalProperties": False,
                },
            },
            "required": ["type", "edited_action"],
            "additionalProperties": False,
        },
        "RejectDecision": {
            "type": "object",
            "properties": {"type": {"type": "string", "const": "reject"}, "message": {"type": "string"}},
            "required": ["type"],
            "additionalProperties": False,
        },
        "RespondDecision": {
            "type": "object",
            "properties": {"type": {"type": "string", "const": "respond"}, "message": {"type": "string"}},
            "required": ["type", "message"],
            "additionalProperties": False,
        },
    }


def test_schema_keeps_the_allowed_order_and_nothing_else() -> None:
    schema = decision_schema(["reject", "approve"], "execute_sql", SQL)
    assert [ref["$ref"] for ref in schema["oneOf"]] == ["#/$defs/RejectDecision", "#/$defs/ApproveDecision"]
    assert list(schema["$defs"]) == ["RejectDecision", "ApproveDecision"]


def test_single_decision_is_the_plain_schema() -> None:
    assert decision_schema(["respond"], "ask_user", SQL) == {
        "type": "object",
        "properties": {"type": {"type": "string", "const": "respond"}, "message": {"type": "string"}},
        "required": ["type", "message"],
        "additionalProperties": False,
    }


class Inner(BaseModel):
    n: int


class ApproveDecision(BaseModel):
    word: str


class Outer(BaseModel):
    inner: Inner
    other: ApproveDecision
    children: list[Outer] = []


@pytest.mark.parametrize("allowed", [ALL, ("edit",)])
def test_references_of_the_arguments_still_lead_somewhere(allowed: tuple[str, ...]) -> None:
    schema = decision_schema(allowed, "write_file", Outer.model_json_schema())
    good = {"inner": {"n": 1}, "other": {"word": "x"}, "children": [{"inner": {"n": 2}, "other": {"word": "y"}}]}

    def edit(args: Any) -> Any:
        return {"type": "edit", "edited_action": {"name": "write_file", "args": args}}

    assert read_decision(edit(good), schema, "write_file", allowed) == edit(good)
    bad = good | {"children": [{"inner": {"n": "x"}, "other": {"word": "y"}}]}
    with pytest.raises(ValidationError) as caught:
        read_decision(edit(bad), schema, "write_file", allowed)
    assert [e["loc"] for e in caught.value.errors()] == [
        ("edit", "edited_action", "args", "children", 0, "inner", "n"),
    ]


@pytest.mark.parametrize(
    "args",
    [
        {"properties": {"n": {"type": "integer"}, "next": {"$ref": "#"}}},
        {"properties": {"n": {"type": "integer"}, "next": {"properties": {"n": {"$ref": "#/properties/n"}}}}},
        {"$defs": {"a/b c": {"type": "integer"}}, "properties": {"n": {"$ref": "#/$defs/a~1b%20c"}}},
        {"definitions": {"N": {"type": "integer"}}, "properties": {"n": {"$ref": "#/definitions/N"}}},
        {"$id": "urn:x", "$defs": {"N": {"type": "integer"}}, "properties": {"n": {"$ref": "#/$defs/N"}}},
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {"n": {"type": "integer"}, "pair": {"items": [{"type": "integer"}]}},
        },
        {"properties": {"n": {"type": "integer"}, "$ref": {"const": {"$ref": "#/nowhere"}}}},
    ],
)
def test_odd_schemas_of_arguments_are_put_in_place_whole(args: dict[str, Any]) -> None:
    one = decision_schema(ALL, "a b", args)
    several = batch_schema([BatchCall("c1", "a b", ALL, {"a b": args}), BatchCall("c2", "a b", ALL, {"a b": args})])
    for n, fits in ((1, True), ("x", False)):
        edit = {"type": "edit", "edited_action": {"name": "a b", "args": {"n": n}}}
        assert jsonschema_rs.is_valid(one, edit) is fits
        assert jsonschema_rs.is_valid(several, {"decisions": [{"type": "approve"}, edit]}) is fits


def test_constants_of_the_arguments_are_no_references() -> None:
    constant = {"$ref": "#/$defs/RejectDecision"}  # a name that is taken, so a reference would be changed
    args = {"properties": {"n": {"const": constant}, "m": {"enum": [constant]}}}
    schema = decision_schema(["edit", "reject"], "t", args | {"$defs": {"RejectDecision": {"type": "integer"}}})
    edit = {"type": "edit", "edited_action": {"name": "t", "args": {"n": constant, "m": constant}}}
    assert jsonschema_rs.is_valid(schema, edit)


# --- the answer to one call -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        {"type": "approve"},
        GOOD_EDIT,
        {"type": "reject"},
        {"type": "reject", "message": "Write to the archive/ folder instead."},
        {"type": "respond", "message": ""},
    ],
)
def test_good_decision_is_read_as_it_came(answer: dict[str, Any]) -> None:
    assert read(answer) == answer


def test_camel_case_is_read_outside_of_the_arguments_only() -> None:
    args = {"path": "a", "content": "b", "editedAction": 1, "toolCallId": {"editedAction": 2}}
    edit = {"type": "edit", "editedAction": {"name": "write_file", "args": args}}
    assert read(edit) == {"type": "edit", "edited_action": {"name": "write_file", "args": args}}
    assert read(read(edit)) == read(edit)
    both = GOOD_EDIT | {"editedAction": {}}
    assert refused(both) == [(("edit", "editedAction"), "extra_forbidden", "Extra inputs are not permitted")]


def test_type_may_be_an_enum_member() -> None:
    class Kind(StrEnum):
        YES = "approve"

    decision = read({"type": Kind.YES})
    assert decision == {"type": "approve"}
    assert type(decision["type"]) is str


@pytest.mark.parametrize(
    ("answer", "place", "rule"),
    [
        ({"type": "edit"}, ("edit", "edited_action"), "missing"),
        (
            {"type": "edit", "edited_action": {"name": "write_file", "args": {"path": "a"}}},
            ("edit", "edited_action", "args", "content"),
            "missing",
        ),
        (
            {"type": "edit", "edited_action": {"args": {"path": "a", "content": "b"}}},
            ("edit", "edited_action", "name"),
            "missing",
        ),
        (
            {"type": "edit", "edited_action": {"name": "rm", "args": {"path": "a", "content": "b"}}},
            ("edit", "edited_action", "name"),
            "const",
        ),
        ({"type": "edit", "edited_action": []}, ("edit", "edited_action"), "type"),
        ({"type": "respond"}, ("respond", "message"), "missing"),
        ({"type": "reject", "message": 5}, ("reject", "message"), "type"),
        ({"type": "approve", "message": "secret"}, ("approve", "message"), "extra_forbidden"),
        (GOOD_EDIT | {"x": 1}, ("edit", "x"), "extra_forbidden"),
        ({"type": "approve", "tool_call_id": "c1"}, ("approve", "tool_call_id"), "extra_forbidden"),
        ({}, (), "union_tag_not_found"),
        ({"message": "secret"}, (), "union_tag_not_found"),
        ({"type": None}, (), "union_tag_invalid"),
        ({"type": []}, (), "union_tag_invalid"),
        ({"type": "\ud800"}, (), "union_tag_invalid"),
        ("approve", (), "dict_type"),
        (None, (), "dict_type"),
        ([{"type": "approve"}], (), "dict_type"),
    ],
)
def test_wrong_decision_gives_one_error_at_the_place(answer: Any, place: tuple[str, ...], rule: str) -> None:
    [(loc, kind, message)] = refused(answer)
    assert (loc, kind) == (place, rule)
    assert "secret" not in message


def test_decision_that_is_not_allowed_names_those_that_are() -> None:
    text = "Input tag 'respond' found using 'type' does not match any of the expected tags: 'approve', 'reject'"
    assert refused({"type": "respond", "message": "x"}, ("approve", "reject")) == [((), "union_tag_invalid", text)]
    assert len(refused({"type": "x" * 10_000})[0][2]) < 500


def test_errors_are_the_same_where_one_decision_is_allowed() -> None:
    assert refused({"type": "edit"}, ("edit",)) == [(("edit", "edited_action"), "missing", "Field required")]
    [(loc, rule, message)] = refused({"type": "approve"}, ("reject",))
    assert (loc, rule) == ((), "union_tag_invalid")
    assert "expected tags: 'reject'" in message
    assert [rule for _, rule, _ in refused({}, ("reject",))] == ["union_tag_not_found"]


def test_error_holds_nothing_of_the_arguments() -> None:
    schema = decision_schema(ALL, "write_file", WRITE)
    answer = {
        "type": "edit",
        "edited_action": {"name": "write_file", "args": {"path": ["secret"], "content": "secret"}},
    }
    with pytest.raises(ValidationError) as caught:
        read_decision(answer, schema, "write_file", ALL)
    assert "secret" not in str(caught.value) + repr(caught.value.errors()) + caught.value.json()


# --- several calls ----------------------------------------------------------------------------------------------------

CALLS = [
    BatchCall("call_write", "write_file", ALL, {"write_file": WRITE, "execute_sql": SQL}),
    BatchCall("call_sql", "execute_sql", ("approve", "reject"), {}),
]
PAYLOAD = {
    "action_requests": [
        {"name": "write_file", "args": {"path": "a", "content": "b"}, "description": "d"},
        {"name": "execute_sql", "args": {"query": "q"}, "description": "d"},
    ],
    "review_configs": [
        {"action_name": "write_file", "allowed_decisions": list(ALL)},
        {"action_name": "execute_sql", "allowed_decisions": ["approve", "reject"]},
    ],
}
IDS = ("call_write", "call_sql")
TOOLS = ("write_file", "execute_sql", "read_data")
APPROVE: dict[str, Any] = {"type": "approve"}
REJECT: dict[str, Any] = {"type": "reject"}


def decided(*decisions: Any, tools: tuple[str, ...] | None = TOOLS) -> list[dict[str, Any]]:
    return read_batch({"decisions": list(decisions)}, PAYLOAD, batch_schema(CALLS), IDS, tools)


def batch_refused(answer: Any, tools: tuple[str, ...] | None = TOOLS) -> list[Any]:
    with pytest.raises(ValidationError) as caught:
        read_batch(answer, PAYLOAD, batch_schema(CALLS), IDS, tools)
    return [(e["loc"], e["type"], e["msg"]) for e in caught.value.errors()]


def test_batch_has_one_entry_for_each_call() -> None:
    schema = batch_schema(CALLS)
    decisions = schema["properties"]["decisions"]
    assert {k: decisions[k] for k in ("type", "items", "minItems", "maxItems")} == {
        "type": "array",
        "items": False,
        "minItems": 2,
        "maxItems": 2,
    }
    assert schema["required"] == ["decisions"]
    first, second = decisions["prefixItems"]
    assert [branch["properties"]["type"]["const"] for branch in first["oneOf"]] == list(ALL)
    assert second["oneOf"] == [
        {
            "type": "object",
            "properties": {
                "type": {"type": "string", "const": kind},
                **({"message": {"type": "string"}} if kind == "reject" else {}),
                "tool_call_id": {"type": "string", "const": "call_sql"},
            },
            "required": ["type"],
            "additionalProperties": False,
        }
        for kind in ("approve", "reject")
    ]


def test_unlabelled_decisions_go_by_position_and_labelled_ones_by_their_call() -> None:
    assert decided(GOOD_EDIT, REJECT) == [GOOD_EDIT, REJECT]
    labelled = [REJECT | {"tool_call_id": "call_sql"}, GOOD_EDIT | {"toolCallId": "call_write"}]
    in_order = [GOOD_EDIT | {"tool_call_id": "call_write"}, REJECT | {"tool_call_id": "call_sql"}]
    assert decided(*labelled) == in_order
    assert decided(*in_order) == in_order
    assert decided(APPROVE, REJECT | {"tool_call_id": "call_sql"})[0] == APPROVE


def test_edit_may_name_another_tool_that_takes_it() -> None:
    edit = {"type": "edit", "edited_action": {"name": "execute_sql", "args": {"query": "q"}}}
    assert decided(edit, APPROVE) == [edit, APPROVE]


@pytest.mark.parametrize("decisions", [[], [APPROVE], [APPROVE] * 3])
def test_wrong_number_of_decisions_is_refused_with_both_numbers(decisions: list[Any]) -> None:
    text = f"Number of human decisions ({len(decisions)}) does not match number of hanging tool calls (2)."
    assert batch_refused({"decisions": decisions}) == [(("decisions",), "value_error", text)]
    with pytest.raises(ValueError, match=r"does not match number of hanging tool calls \(2\)\."):
        decided(*decisions)


@pytest.mark.parametrize("kind", ["edit", "respond", "ignore", "{x}"])
def test_decision_that_a_call_does_not_allow_is_refused_in_the_known_words(kind: str) -> None:
    [(loc, _, message)] = batch_refused({"decisions": [APPROVE, {"type": kind}]})
    assert loc == ("decisions", 1)
    assert message == (
        f"Unexpected human decision: {{'type': '{kind}'}}. Decision type '{kind}' is not allowed for tool 'execute_sql'. "
        f"Expected one of ['approve', 'reject'] based on the tool's configuration."
    )


def edit(name: Any, **args: Any) -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


@pytest.mark.parametrize(
    ("first", "place", "words"),
    [
        (edit("serach"), ("edit", "edited_action", "name"), "'serach' is not an available tool"),
        (edit("read_data"), ("edit", "edited_action", "name"), "its policy does not let this call be edited into it"),
        (edit("execute_sql", query=1), ("edit", "edited_action", "args", "query"), "string"),
        (edit("write_file", path="a"), ("edit", "edited_action", "args", "content"), "Field required"),
        (edit(5, path="a"), ("edit", "edited_action"), ""),
        ({"type": "edit", "edited_action": {"args": {}}}, ("edit", "edited_action", "name"), "Field required"),
        ({"type": "edit"}, ("edit", "edited_action"), "Field required"),
        (APPROVE | {"note": 1}, ("approve", "note"), "Extra inputs"),
        ({}, (), "discriminator 'type'"),
        ("approve", (), "is an object such as"),
        (APPROVE | {"tool_call_id": "call_9"}, ("tool_call_id",), "'call_write', 'call_sql'"),
        (APPROVE | {"tool_call_id": 5}, ("tool_call_id",), "no call of that id"),
    ],
)
def test_wrong_decision_among_several_gives_one_error_at_the_place(first: Any, place: Any, words: str) -> None:
    [(loc, _, message)] = batch_refused({"decisions": [first, APPROVE]})
    assert loc == ("decisions", 0, *place)
    assert words in message


def test_unknown_tool_is_unavailable_where_the_tools_are_not_told() -> None:
    [(_, _, message)] = batch_refused({"decisions": [edit("read_data"), APPROVE]}, tools=None)
    assert "'read_data' is not an available tool; an edit may name one of ['write_file', 'execute_sql']" in message


def test_place_of_an_error_is_that_of_the_answer_as_it_was_sent() -> None:
    sent = [REJECT | {"tool_call_id": "call_sql", "x": 1}, APPROVE | {"tool_call_id": "call_write"}]
    assert [loc for loc, _, _ in batch_refused({"decisions": sent})] == [("decisions", 0, "reject", "x")]
    sent[1]["y"] = 1
    places = [("decisions", 0, "reject", "x"), ("decisions", 1, "approve", "y")]
    assert [loc for loc, _, _ in batch_refused({"decisions": sent})] == places


def test_two_decisions_on_one_call_are_refused() -> None:
    for sent in ([APPROVE | {"tool_call_id": "call_sql"}] * 2, [APPROVE | {"tool_call_id": "call_sql"}, APPROVE]):
        [(loc, _, message)] = batch_refused({"decisions": sent})
        assert loc == ("decisions", 1, "tool_call_id")
        assert "Decisions 1 and 2 are both for call 'call_sql'" in message


@pytest.mark.parametrize(
    ("answer", "place"),
    [(None, ()), ([APPROVE, APPROVE], ()), (APPROVE, ("decisions",)), ({"decisions": "approve"}, ("decisions",))],
)
def test_answer_without_a_list_of_decisions_is_refused(answer: Any, place: tuple[str, ...]) -> None:
    assert [loc for loc, _, _ in batch_refused(answer)] == [place]


def test_fifty_calls_of_one_tool_hold_its_arguments_once() -> None:
    calls = [BatchCall(f"c{n}", "write_file", ALL, {"write_file": WRITE, "execute_sql": SQL}) for n in range(50)]
    assert str(batch_schema(calls)).count("'content': {'type': 'string'}") == 1


def test_definitions_of_different_tools_do_not_meet() -> None:
    class Part(BaseModel):
        size: Literal["s"]

    class First(BaseModel):
        part: Part

    first = First.model_json_schema()
    second = {"$defs": {"Part": {"type": "integer"}}, "properties": {"part": {"$ref": "#/$defs/Part"}}}
    schema = batch_schema(
        [BatchCall("a", "one", ("edit",), {"one": first}), BatchCall("b", "two", ("edit",), {"two": second})]
    )
    assert jsonschema_rs.is_valid(schema, {"decisions": [edit("one", part={"size": "s"}), edit("two", part=1)]})
    assert not jsonschema_rs.is_valid(schema, {"decisions": [edit("one", part=1), edit("two", part=1)]})
    assert not jsonschema_rs.is_valid(schema, {"decisions": [edit("one", part={"size": "s"}), edit("two", part={})]})


# --- whatever is sent -------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(
    ["type", "edited_action", "editedAction", "name", "args", "message", "tool_call_id", "decisions"]
)
ATOMS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5)
VALUES = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(), inner))
ARGUMENTS = st.fixed_dictionaries({"path": st.text()}, optional={"content": st.text(), "x": VALUES})
ACTIONS = st.fixed_dictionaries(
    {}, optional={"name": st.sampled_from(["write_file", "execute_sql", "x"]), "args": ARGUMENTS | VALUES}
)
DECISIONS = st.fixed_dictionaries(
    {"type": st.sampled_from(ALL)},
    optional={
        "edited_action": ACTIONS | VALUES,
        "editedAction": ACTIONS,
        "message": st.text() | VALUES,
        "tool_call_id": st.sampled_from(IDS) | VALUES,
    },
)


@given(DECISIONS | VALUES)
def test_any_value_is_refused_or_read_into_a_shape_that_fits_and_stays(answer: Any) -> None:
    schema = decision_schema(ALL, "write_file", WRITE)
    try:
        decision = read_decision(answer, schema, "write_file", ALL)
    except ValidationError:
        return
    check_answer(schema, decision, title="t")
    assert read_decision(decision, schema, "write_file", ALL) == decision


@given(st.fixed_dictionaries({"decisions": st.lists(DECISIONS | VALUES, min_size=1, max_size=3)}) | VALUES)
def test_any_value_for_several_calls_is_refused_or_read_into_their_order(answer: Any) -> None:
    schema = batch_schema(CALLS)
    try:
        decisions = read_batch(answer, PAYLOAD, schema, IDS, TOOLS)
    except ValidationError:
        return
    check_answer(schema, {"decisions": decisions}, title="t")
    assert read_batch({"decisions": decisions}, PAYLOAD, schema, IDS, TOOLS) == decisions
