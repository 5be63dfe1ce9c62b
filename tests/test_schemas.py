"""Answers are checked against the schema that was shown; a misfit names its place and never the answer."""

from __future__ import annotations

import enum
import socket
import threading
import typing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NotRequired
from uuid import UUID

import pytest
from langchain_core.messages import HumanMessage
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from typing_extensions import TypedDict

from waitpoint.errors import UsageError
from waitpoint.schemas import check_answer, convert_answer, plain_answer, to_json_schema


class Color(enum.Enum):
    RED = "red"


class Approval(BaseModel):
    ok: bool
    note: str = Field(default="", max_length=5)


class Even(BaseModel):
    n: int

    @field_validator("n")
    @classmethod
    def _even(cls, n: int) -> int:
        if n % 2:
            raise ValueError("must be even {n}")
        return n


class Reply(TypedDict):
    text: str
    tone: NotRequired[Literal["warm", "cool"]]


class OldReply(typing.TypedDict):
    text: str
    inner: list[OldInner]
    maybe: typing.NotRequired[OldInner | None]


class OldInner(typing.TypedDict, total=False):
    n: int


@dataclass
class Amount:
    value: Decimal
    due: date


class Approve(BaseModel):
    type: Literal["approve"] = "approve"


class Action(BaseModel):
    name: str


class Edit(BaseModel):
    type: Literal["edit"]
    edited_action: Action


TAGGED: dict[str, Any] = {
    "$defs": {
        "Approve": {"type": "object", "properties": {"type": {"const": "approve"}}, "required": ["type"]},
        "Edit": {
            "type": "object",
            "properties": {
                "type": {"const": "edit"},
                "edited_action": {
                    "type": "object",
                    "properties": {"name": {"const": "send"}, "args": {"type": "object"}},
                    "required": ["name"],
                },
            },
            "required": ["type", "edited_action"],
        },
    },
    "oneOf": [{"$ref": "#/$defs/Approve"}, {"$ref": "#/$defs/Edit"}],
}


def misfits(schema: Any, answer: Any) -> list[tuple[tuple[Any, ...], str]]:
    with pytest.raises(ValidationError) as caught:
        check_answer(schema, answer, title="answer to q1")
    assert caught.value.title == "answer to q1"
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(caught.value.errors())
    assert "secret" not in caught.value.json()
    assert "input_value" not in str(caught.value)
    assert all(e["input"] is None for e in caught.value.errors())
    return [(e["loc"], e["msg"]) for e in caught.value.errors()]


def fits(schema: Any, answer: Any) -> None:
    json_schema = to_json_schema(schema)
    assert json_schema is not None
    check_answer(json_schema, answer, title="t")


# --- to_json_schema ---------------------------------------------------------------------------------------------------


def test_class_gives_the_schema_that_pydantic_gives() -> None:
    assert to_json_schema(Approval) == Approval.model_json_schema()
    assert to_json_schema(Reply) == {
        "title": "Reply",
        "type": "object",
        "properties": {
            "text": {"title": "Text", "type": "string"},
            "tone": {"title": "Tone", "type": "string", "enum": ["warm", "cool"]},
        },
        "required": ["text"],
    }
    assert to_json_schema(Amount)["required"] == ["value", "due"]  # type: ignore[index]


@pytest.mark.parametrize("kind", [int, list[int], Literal["a", "b"], Color, bool | None, Annotated[int, Field(gt=1)]])
def test_any_annotation_is_taken(kind: Any) -> None:
    schema = to_json_schema(kind)
    assert schema
    assert to_json_schema(schema) == schema


def test_no_schema_stays_none_and_a_raw_one_stays_itself() -> None:
    assert to_json_schema(None) is None
    raw: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
    made = to_json_schema(raw)
    assert made == raw
    raw["properties"]["b"] = 1
    assert made != raw


def test_schema_given_out_can_be_changed_without_harm() -> None:
    to_json_schema(Approval)["properties"].clear()  # type: ignore[index]
    assert to_json_schema(Approval) == Approval.model_json_schema()


def test_typeddict_of_the_standard_library_works_on_every_python() -> None:
    schema = to_json_schema(OldReply)
    assert schema is not None
    assert schema["required"] == ["text", "inner"]
    answer = {"text": "a", "inner": [{"n": 1, "x": 2}], "maybe": {"n": 3}, "more": 1}
    check_answer(schema, answer, title="t")
    assert convert_answer(OldReply, answer) == {"text": "a", "inner": [{"n": 1}], "maybe": {"n": 3}}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nope"},
        {"properties": 5},
        {"pattern": "("},
        {"$ref": "https://example.com/other.json"},
        {"$ref": "#/$defs/missing"},
        {"$schema": "https://example.com/unknown", "type": "integer"},
        {"const": float("nan")},
        {"enum": [object()]},
        {"enum": [b"bytes"]},
        {"const": Decimal(1)},
    ],
)
def test_illegal_raw_schema_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="not a legal JSON Schema"):
        to_json_schema(schema)


def test_type_without_a_schema_is_refused() -> None:
    for kind in (threading.Lock, socket.socket, "NoSuchName"):
        with pytest.raises(UsageError, match="no JSON Schema can be made"):
            to_json_schema(kind)


def test_references_are_never_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("opened a connection")

    monkeypatch.setattr(socket, "socket", refuse)
    for uri in ("https://example.com/a.json", "http://127.0.0.1:9/x", "file:///etc/passwd"):
        with pytest.raises(UsageError, match="schemas are not fetched"):
            to_json_schema({"properties": {"a": {"$ref": uri}}})


def test_illegal_schema_is_named_by_its_own_fault() -> None:
    with pytest.raises(UsageError, match='"nope"'):
        to_json_schema({"properties": {"a": {"type": "nope"}}})


# --- check_answer -----------------------------------------------------------------------------------------------------


def test_answer_that_fits_passes() -> None:
    fits(Approval, {"ok": True})
    fits(Reply, {"text": "x", "extra": 1})
    fits({"type": "integer"}, 2**70)
    fits({}, None)
    fits({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "integer"}]}, [1, "x"])


def test_every_misfit_is_named_by_its_place() -> None:
    schema = to_json_schema(Approval)
    assert misfits(schema, {"note": "secret text"}) == [
        (("ok",), "Field required"),
        (("note",), "the answer is longer than 5 characters"),
    ]
    assert misfits({"items": {"type": "integer"}}, [1, "secret"]) == [((1,), 'the answer is not of type "integer"')]
    closed = {"additionalProperties": False}
    assert [loc for loc, _ in misfits(closed, {"a": "secret", "b": 1})] == [("a",), ("b",)]


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        ({"enum": ["a", "b"]}, "secret"),
        ({"const": 1}, "secret"),
        ({"type": ["integer", "null"]}, "secret"),
        ({"pattern": "^x"}, "secret"),
        ({"propertyNames": {"maxLength": 2}}, {"secret": 1}),
        ({"not": {"type": "string"}}, "secret"),
        ({"contains": {"const": 1}}, ["secret"]),
        ({"anyOf": [{"type": "integer"}, {"type": "object"}]}, "secret"),
        ({"oneOf": [{"type": "string"}, {"minLength": 1}]}, "secret"),
        ({"uniqueItems": True}, ["secret", "secret"]),
        ({"multipleOf": 2}, 3),
    ],
)
def test_no_message_repeats_the_answer(schema: dict[str, Any], answer: Any) -> None:
    assert len(misfits(schema, answer)) == 1


def test_choice_by_a_tag_reports_the_branch_that_was_chosen() -> None:
    assert misfits(TAGGED, {"type": "edit"}) == [(("edit", "edited_action"), "Field required")]
    place = ("edit", "edited_action", "name")
    assert [loc for loc, _ in misfits(TAGGED, {"type": "edit", "edited_action": {"name": "secret"}})] == [place]
    [(loc, message)] = misfits(TAGGED, {"type": "secret"})
    assert loc == ()
    assert "expected tags: 'approve', 'edit'" in message
    nested = {"$defs": TAGGED["$defs"], "properties": {"decisions": {"items": {"oneOf": TAGGED["oneOf"]}}}}
    assert [loc for loc, _ in misfits(nested, {"decisions": [{"type": "approve"}, {"type": "edit"}]})] == [
        ("decisions", 1, "edit", "edited_action")
    ]
    assert misfits(TAGGED, {}) == [(("type",), "Field required")]
    assert misfits(TAGGED, {"edited_action": {"name": "secret"}}) == [(("type",), "Field required")]
    assert len(misfits(TAGGED, 5)) == 1


def test_choice_inside_a_choice_names_both_tags() -> None:
    def tagged(tag: str, **more: Any) -> dict[str, Any]:
        return {"properties": {"type": {"const": tag}, **more}, "required": ["type", *more]}

    inner = {"oneOf": [tagged("x"), tagged("y", n={"type": "integer"})]}
    outer = {"oneOf": [tagged("a"), tagged("b", part=inner)]}
    assert [loc for loc, _ in misfits(outer, {"type": "b", "part": {"type": "y", "n": "secret"}})] == [
        ("b", "part", "y", "n")
    ]


def test_choice_in_a_pydantic_union_reports_the_branch_that_was_chosen() -> None:
    schema = to_json_schema(Annotated[Approve | Edit, Field(discriminator="type")])
    assert misfits(schema, {"type": "edit", "edited_action": {}}) == [
        (("edit", "edited_action", "name"), "Field required")
    ]


class Paint(BaseModel):
    kind: Literal["wall", "door"]
    color: Literal["red", "blue"]
    layers: Literal[1, 2] = 1


class Paper(BaseModel):
    kind: Literal["paper"]
    pattern: str


@pytest.mark.parametrize(
    "schema",
    [
        to_json_schema(Paint | Paper),
        to_json_schema(Annotated[Paint | Paper, Field(discriminator="kind")]),
        {
            "oneOf": [
                {
                    "properties": {
                        "kind": {"enum": ["wall", "door"]},
                        "color": {"enum": ["red", "blue"]},
                        "layers": {"const": 1},
                    },
                    "required": ["kind", "color"],
                },
                {"$ref": "#/$defs/a~1b%20c"},
            ],
            "$defs": {
                "a/b c": {
                    "properties": {"kind": {"const": "paper"}, "pattern": {"type": "string"}},
                    "required": ["kind", "pattern"],
                }
            },
        },
    ],
    ids=["union", "discriminated", "by-hand"],
)
def test_branch_is_chosen_by_its_tag_whatever_else_is_wrong(schema: Any) -> None:
    assert [loc for loc, _ in misfits(schema, {"kind": "door", "color": "secret"})] == [("door", "color")]
    assert [loc for loc, _ in misfits(schema, {"kind": "wall", "color": "red", "layers": 9})] == [("wall", "layers")]
    assert misfits(schema, {"kind": "paper"}) == [(("paper", "pattern"), "Field required")]
    assert misfits(schema, {"color": "red"}) == [(("kind",), "Field required")]
    for tag in ("secret", None, ["secret"], True):
        [(loc, message)] = misfits(schema, {"kind": tag})
        assert (loc, message) == ((), "'kind' does not match any of the expected tags: 'wall', 'door', 'paper'")


def test_tag_that_may_be_left_out_is_not_asked_for() -> None:
    class Circle(BaseModel):
        model_config = ConfigDict(extra="forbid")
        form: Literal["circle"] = "circle"
        radius: int

    class Square(BaseModel):
        form: Literal["square"] = "square"
        side: list[int]

    schema = to_json_schema(Circle | Square)
    fits(schema, {"radius": 1})
    assert [loc for loc, _ in misfits(schema, {"form": "circle", "radius": "secret"})] == [("circle", "radius")]
    assert [loc for loc, _ in misfits(schema, {"radius": "secret"})] == [()]


def test_tag_is_a_key_whose_values_differ_and_that_all_ask_for() -> None:
    def kinds(*required: str, **consts: str) -> dict[str, Any]:
        return {"properties": {k: {"const": v} for k, v in consts.items()} | {"x": {}}, "required": list(required)}

    shared = {"oneOf": [kinds("b", "x", a="same", b="one"), kinds("b", "x", a="same", b="two")]}
    assert misfits(shared, {"a": "same", "b": "two"}) == [(("two", "x"), "Field required")]
    optional = {"oneOf": [kinds("b", "x", b="one"), kinds("x", b="two")]}
    assert misfits(optional, {}) == [(("x",), "Field required")]


def test_tag_is_told_apart_as_json_does() -> None:
    def numbered(n: Any, **more: Any) -> dict[str, Any]:
        return {"type": "object", "properties": {"n": {"const": n}, **more}, "required": ["n", *more]}

    schema = {"oneOf": [numbered(1, x={}), numbered(True, y={})]}
    assert misfits(schema, {"n": 1.0}) == [(("x",), "Field required")]
    assert misfits(schema, {"n": True}) == [(("y",), "Field required")]
    assert misfits(schema, "secret") == [((), 'the answer is not of type "object"')]


def test_optional_part_reports_what_is_wrong_inside() -> None:
    schema = to_json_schema(Approval | None)
    assert [loc for loc, _ in misfits(schema, {"ok": "secret"})] == [("ok",)]


def test_values_of_python_count_in_their_json_form() -> None:
    fits(Amount, {"value": Decimal("1.5"), "due": date(2024, 1, 1)})
    fits(Amount, Amount(Decimal(1), date(2024, 1, 1)))
    fits(Approval, Approval(ok=True))
    fits({"type": "string"}, datetime(2024, 1, 1, tzinfo=UTC))
    fits({"type": "string", "maxLength": 4}, b"x")
    fits({"type": "string"}, UUID(int=1))
    fits({"type": "string", "pattern": "^PT"}, timedelta(seconds=5))
    fits({"type": "array"}, (1, 2))
    fits(Color, Color.RED)
    fits({"type": "integer"}, Decimal(7))
    assert misfits({"type": "number"}, {"x": Decimal(1)})


@pytest.mark.parametrize("answer", [threading.Lock(), {1: 2}, [object()], 1j, "\ud800", {"\ud800": 1}])
def test_answer_without_a_json_form_is_a_misfit(answer: Any) -> None:
    assert len(misfits({"type": "object", "properties": {"\ud7ff": {}}, "required": ["x"]}, answer)) == 1


def test_answer_that_contains_itself_or_nests_too_deep_is_a_misfit() -> None:
    looped: dict[str, Any] = {}
    looped["a"] = looped
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    for answer in (looped, deep):
        assert misfits({}, answer) == [((), "the answer contains itself, or nests too deep")]


def test_not_a_number_fits_no_number() -> None:
    assert misfits({"type": "number"}, float("nan"))
    assert misfits({"type": "number"}, Decimal("NaN"))


def test_formats_are_not_enforced_but_patterns_are() -> None:
    fits({"type": "string", "format": "date"}, "someday")
    assert misfits({"type": "string", "pattern": "^[0-9]+$"}, "someday")


def test_hostile_pattern_does_not_stall() -> None:
    fits({"type": "string", "pattern": "^(a|a)*$"}, "a" * 40)
    assert misfits({"type": "string", "pattern": "^(a+)+$"}, "a" * 40 + "!")


def test_threads_share_a_validator() -> None:
    schema = to_json_schema(Approval)
    assert schema is not None
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(50):
                check_answer(schema, {"ok": True}, title="t")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


# --- convert_answer ---------------------------------------------------------------------------------------------------


def test_answer_becomes_an_instance_of_the_class() -> None:
    assert convert_answer(Approval, {"ok": True}) == Approval(ok=True)
    assert convert_answer(Approval, Approval(ok=True, note="x")) == Approval(ok=True, note="x")
    assert convert_answer(Amount, {"value": "1.5", "due": "2024-01-01"}) == Amount(Decimal("1.5"), date(2024, 1, 1))
    assert convert_answer(Reply, {"text": "a", "other": 1}) == {"text": "a"}
    assert convert_answer(Color, "red") is Color.RED
    assert convert_answer(list[int], [1]) == [1]


def test_answer_to_a_raw_schema_stays_as_it_is() -> None:
    answer = {"a": (1,), "b": object()}
    assert convert_answer({"type": "object"}, answer) is answer
    assert convert_answer(None, answer) is answer


def test_strict_class_takes_what_came_as_json() -> None:
    class Strict(BaseModel):
        model_config = ConfigDict(strict=True)

        due: date

    assert convert_answer(Strict, {"due": "2024-01-01"}).due == date(2024, 1, 1)
    with pytest.raises(ValidationError):
        convert_answer(Strict, {"due": 5.5})


def test_refusal_of_the_class_names_the_place_and_hides_the_answer() -> None:
    with pytest.raises(ValidationError) as caught:
        convert_answer(Even, {"n": 31337})
    assert [(e["loc"], e["msg"]) for e in caught.value.errors()] == [(("n",), "Value error, must be even {n}")]
    assert caught.value.title == "Even"
    for text in (str(caught.value), repr(caught.value.errors()), caught.value.json()):
        assert "31337" not in text


def test_model_with_a_set_is_a_good_answer() -> None:
    class Tagged(BaseModel):
        tags: set[str]
        amount: Amount

    answer = Tagged(tags={"a"}, amount=Amount(Decimal(1), date(2024, 1, 1)))
    fits(Tagged, answer)
    assert plain_answer([answer]) == [{"tags": {"a"}, "amount": {"value": Decimal(1), "due": date(2024, 1, 1)}}]
    assert convert_answer(Tagged, answer) == answer


def test_models_inside_an_answer_become_plain_and_all_else_stays() -> None:
    mark = object()
    assert plain_answer({"a": [Approval(ok=True)], "b": (1, mark)}) == {"a": [{"ok": True, "note": ""}], "b": (1, mark)}
    assert plain_answer(Amount(Decimal(1), date(2024, 1, 1))) == {"value": Decimal(1), "due": date(2024, 1, 1)}
    assert plain_answer(HumanMessage("hi"))["content"] == "hi"
    assert plain_answer(None) is None
