"""Cards of any payload and schema: they are made, hold all of it, and give back what was not changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from waitpoint.inbox import fields, marked
from waitpoint.inbox.answering import draft_of
from waitpoint.inbox.cards import card_of, headline
from waitpoint.inbox.changes import changes
from waitpoint.inbox.fields import Form
from waitpoint.records import MISSING, Question
from waitpoint.schemas import find_misfits
from waitpoint.shown.secrets import Veil

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
WORDS = st.sampled_from(
    ["type", "name", "args", "action_requests", "review_configs", "tool_call_id", "tool_call", "action_request", "config",
     "action", "description", "allowed_decisions", "action_name", "content", "question", "instruction", "kind",
     "allow_edit", "allow_accept", "api_key"]
)  # fmt: skip
KINDS = st.sampled_from(
    ["tool_approval", "in_doubt", "approval", "review_text", "frontend_tool", "tool", "form_input", "approve", "edit"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS | KINDS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | TEXTS, inner, max_size=5),
    max_leaves=12,
)
PAYLOADS = VALUES | st.dictionaries(WORDS, VALUES, max_size=6) | st.lists(st.dictionaries(WORDS, VALUES), max_size=2)
LEAVES = st.sampled_from(
    [{}, {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": ["string", "null"]},
     {"enum": ["a", 1, None]}, {"const": "x"}, {"anyOf": [{"type": "string"}, {"type": "null"}]}, {"$ref": "#/$defs/none"},
     {"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"type": "object"}, True]
)  # fmt: skip
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(
            lambda props, needs: {"type": "object", "properties": props, "required": [p for p in props if needs]},
            st.dictionaries(WORDS | TEXTS, inner, max_size=3),
            st.booleans(),
        )
        | st.builds(lambda branches: {"oneOf": branches}, st.lists(inner, min_size=1, max_size=3))
    ),
    max_leaves=6,
)


def question(value: Any, schema: Any = None) -> Question:
    return Question("0" * 32, "t", "graph", "", "ask", ("ask",), value, "d", schema, "open", True, 1.0)


@given(PAYLOADS, st.none() | SCHEMAS.filter(lambda schema: isinstance(schema, dict)), st.dictionaries(TEXTS, TEXTS))
def test_any_payload_and_schema_make_a_card_with_a_way_to_answer(
    payload: Any, schema: Any, sent: dict[str, str]
) -> None:
    card = card_of(question(payload, schema))
    assert all(item.ways for item in card.asked.items)
    assert "\n" not in marked.line(headline(card.question, card.asked, card.veil))
    for way in (way.name for item in card.asked.items for way in item.ways):
        draft_of(card.question, {**sent, "way": way, "way-1": way, "way-2": way})


@settings(suppress_health_check=[HealthCheck.filter_too_much])
@given(SCHEMAS, VALUES)
def test_a_form_that_nobody_touches_gives_back_the_value_it_shows(schema: Any, value: Any) -> None:
    assume("none" not in json.dumps(schema) and not find_misfits({"allOf": [schema]}, value))
    made = Form({}).field("f", schema, value)
    again = Form({}, dict(sent_by_a_browser(made))).field("f", schema, value)
    found = fields.read(again)
    if not again.has_errors():
        assert json.dumps(found, sort_keys=True) == json.dumps(value, sort_keys=True)


def sent_by_a_browser(made: fields.Field) -> Any:
    """Yield what a browser sends of a field: line ends as it writes them, nothing of what is only shown."""
    if made.kind == "list":
        yield f"{made.name}:n", str(made.size)
    elif made.kind not in ("group", "fixed"):
        yield made.name, made.given.replace("\n", "\r\n")
    if made.states:
        yield f"{made.name}:is", made.state
    for part in made.parts:
        yield from sent_by_a_browser(part)


@given(VALUES)
def test_secrets_come_back_from_behind_their_veil(value: Any) -> None:
    veil = Veil(value)
    shown = veil.value(value)
    assert veil.restored(shown) == value


@pytest.mark.parametrize(
    "name", ["api_key", "API-KEY", "apikey", "access_token", "dbPassword", "client_secret", "Authorization"]
)
def test_telling_names_are_veiled(name: str) -> None:
    value = {name: "0123456789", "other": "it is 0123456789", "max_tokens": "0123456"}
    shown = Veil(value).value(value)
    assert "0123456789" not in json.dumps(shown)
    assert shown["max_tokens"] == "0123456"


def test_a_long_text_in_a_list_says_how_much_is_cut() -> None:
    assert str(marked.line("x" * 1300)).endswith('<span class="cut">… and 1,060 more characters</span>')


def test_changes_are_told_by_lines_and_what_stays_is_counted() -> None:
    before = {"text": "\n".join(map(str, range(20))), "same": 1, "gone": True}
    after = {"text": "\n".join([*map(str, range(19)), "last"]), "same": 1, "new": None}
    found = {change.name: [(line.kind, line.text) for line in change.lines] for change in changes(before, after)}
    assert found == {
        "text": [
            ("same", "0"), ("same", "1"), ("same", "2"), ("skipped", "13 lines that stay as they are"), ("same", "16"),
            ("same", "17"), ("same", "18"), ("old", "19"), ("new", "last"),
        ],
        "gone": [("old", "true")], "new": [("new", "null")],
    }  # fmt: skip
    assert changes({"a": 1}, {"a": 1}) == []
    assert changes({"a": 1}, {"a": True}) != []
    assert changes(MISSING, "x")[0].lines[0].kind == "new"
