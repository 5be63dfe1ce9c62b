"""Approval once per call: the schema of its answer, what is refused and where, answers in any order."""

from __future__ import annotations

import itertools
from enum import Enum
from typing import Any, Literal

import jsonschema_rs
import pytest
from langchain_core.tools import StructuredTool, tool
from pydantic import BaseModel, Field, ValidationError

from tests.agents.posting import APPROVE, REJECT, START, Post, agent_with, answered, edit, results
from tests.agents.scripted import Scripted, calls
from tests.behaviours.conftest import Call
from tests.behaviours.graphs import thread
from waitpoint.agents.middleware import ToolErrorMiddleware, ToolRetryMiddleware
from waitpoint.types import Command

ONE = calls(("send", "c1", {"to": "ann"}))
TWO_ALLOWED: Any = {"send": {"allowed_decisions": ["approve", "reject"]}}


def waiting(saver: Any, call: Call, post: Post, interrupt_on: Any, *inside: Any) -> tuple[Any, Any, Any]:
    """Return an agent, its thread, and the only question it rests with."""
    agent = post.agent(saver, Scripted(ONE, "done"), interrupt_on, *inside, interrupt_mode="per_call")
    config = thread()
    (question,) = call(agent, START, config)["__interrupt__"]
    return agent, config, question


# --- the schema -------------------------------------------------------------------------------------------------------

NAMES = {
    "approve": "ApproveDecision",
    "edit": "EditDecision",
    "reject": "RejectDecision",
    "respond": "RespondDecision",
}


@pytest.mark.parametrize(
    "allowed", [list(c) for n in (2, 3, 4) for c in itertools.combinations(NAMES, n)], ids=",".join
)
def test_a_schema_refers_to_a_definition_for_each_allowed_decision(saver: Any, allowed: Any) -> None:
    """B259"""
    agent = Post().agent(saver, Scripted(ONE), {"send": {"allowed_decisions": allowed}}, interrupt_mode="per_call")
    schema = agent.invoke(START, thread())["__interrupt__"][0].response_schema
    assert schema["oneOf"] == [{"$ref": f"#/$defs/{NAMES[kind]}"} for kind in allowed]
    assert set(schema["$defs"]) == {NAMES[kind] for kind in allowed}
    required = {
        "approve": ["type"],
        "edit": ["type", "edited_action"],
        "reject": ["type"],
        "respond": ["type", "message"],
    }
    assert {kind: schema["$defs"][NAMES[kind]]["required"] for kind in allowed} == {k: required[k] for k in allowed}


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class EditDecision(BaseModel):
    """Bears the name of a definition that the schema has already."""

    x: int = Field(ge=0, description="across")
    title: str = "none"


def test_the_branch_of_an_edit_has_the_tools_own_schema_with_all_it_refers_to(saver: Any, call: Call) -> None:
    """B259, B260"""
    drawn: list[Any] = []

    @tool
    def draw(at: EditDecision, colour: Colour, style: Literal["thin", "bold"] = "thin") -> str:
        """Draw a point."""
        drawn.append((at.x, at.title, colour, style))
        return "drawn"

    args = {"at": {"x": 1}, "colour": "red"}
    config = thread()
    agent = agent_with(
        saver, Scripted(calls(("draw", "c1", args)), "done"), [draw], {"draw": True}, interrupt_mode="per_call"
    )
    result = call(agent, START, config)
    schema = result["__interrupt__"][0].response_schema
    valid = jsonschema_rs.Draft202012Validator(schema).is_valid
    good = edit("draw", at={"x": 2, "title": "t"}, colour="blue", style="bold")
    assert valid(good)
    assert valid(APPROVE)
    wrong = [
        edit("draw", at={"x": -1}, colour="blue"),
        edit("draw", at={}, colour="blue"),
        edit("draw", at={"x": 2}, colour="green"),
        edit("draw", at={"x": 2}, colour="blue", style="wavy"),
        edit("draw", at={"x": 2}),
    ]
    for answer in wrong:
        assert not valid(answer)
        with pytest.raises(ValidationError):
            call(agent, answered(result, answer), config)
    call(agent, answered(result, good), config)
    assert drawn == [(2, "t", Colour.BLUE, "bold")]


@pytest.mark.parametrize(
    "declared",
    [
        {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]},
        {
            "type": "object",
            "properties": {"n": {"$ref": "#/$defs/Positive"}},
            "required": ["n"],
            "$defs": {"Positive": {"type": "integer", "minimum": 1}},
        },
    ],
    ids=["plain", "with-definitions"],
)
def test_the_schema_of_a_tool_that_declares_json_schema_is_shown_and_enforced(
    saver: Any, call: Call, declared: Any
) -> None:
    """B260, and the table of differences"""
    ran: list[Any] = []
    count = StructuredTool(
        name="count", description="Count.", args_schema=declared, func=lambda **args: ran.append(args) or "counted"
    )
    config = thread()
    agent = agent_with(
        saver, Scripted(calls(("count", "c1", {"n": 1})), "done"), [count], {"count": True}, interrupt_mode="per_call"
    )
    result = call(agent, START, config)
    for wrong in ({}, {"n": 0}, {"n": "1"}):
        with pytest.raises(ValidationError) as refused:
            call(agent, answered(result, edit("count", **wrong)), config)
        assert [e["loc"][:4] for e in refused.value.errors()] == [("edit", "edited_action", "args", "n")]
    call(agent, answered(result, edit("count", n=2)), config)
    assert ran == [{"n": 2}]


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "place", "text"),
    [
        ({"type": "edit"}, ("edit", "edited_action"), "Field required"),
        (edit("send"), ("edit", "edited_action", "args", "to"), "Field required"),
        (edit("send", to=5), ("edit", "edited_action", "args", "to"), "string"),
        (edit("draft", to="bob"), ("edit", "edited_action", "name"), "send"),
        (edit("draft", box="in"), ("edit", "edited_action", "name"), "send"),
        ({"type": "edit", "edited_action": {"name": "send"}}, ("edit", "edited_action", "args"), "Field required"),
        (
            {"type": "edit", "edited_action": {"name": "send", "args": {"to": "bob"}, "nmae": 1}},
            ("edit", "edited_action", "nmae"),
            "not permitted",
        ),
        ({"type": "edit", "edited_action": "send"}, ("edit", "edited_action"), "object"),
        ({"type": "respond"}, ("respond", "message"), "Field required"),
        ({"type": "respond", "message": 5}, ("respond", "message"), "string"),
        ({"type": "reject", "message": ["no"]}, ("reject", "message"), "string"),
        ({"type": "approve", "mesage": "no"}, ("approve", "mesage"), "not permitted"),
        ({"type": "aprove"}, (), "expected tags: 'approve', 'edit', 'reject', 'respond'"),
        ({"type": None}, (), "expected tags"),
        ({"type": ["approve"]}, (), "expected tags"),
        ({}, (), "discriminator 'type'"),
        ("approve", (), "text"),
        (True, (), "a boolean"),
        (None, (), "null"),
        ([APPROVE], (), "a list"),
        ({"decisions": [APPROVE]}, (), "discriminator 'type'"),
    ],
    ids=lambda value: str(value)[:60] if not isinstance(value, tuple | str) else "",
)
def test_a_malformed_answer_has_one_error_at_its_place_and_is_not_kept(
    saver: Any, call: Call, answer: Any, place: tuple[str, ...], text: str
) -> None:
    """B262"""
    post = Post()
    agent, config, question = waiting(saver, call, post, {"send": True})
    before = agent.get_state(config)
    with pytest.raises(ValidationError) as refused:
        call(agent, Command(resume={question.id: answer}), config)
    assert [e["loc"] for e in refused.value.errors()] == [place]
    assert text in refused.value.errors()[0]["msg"]
    assert post.did == []
    assert agent.get_state(config) == before
    state = call(agent, Command(resume={question.id: edit("send", to="bob")}), config)
    assert post.did == ["send bob None"]
    assert "__interrupt__" not in state


@pytest.mark.parametrize(
    "inside", [ToolRetryMiddleware(initial_delay=0), ToolErrorMiddleware(lambda e, r: "x")], ids=lambda m: m.name
)
def test_middleware_that_handles_errors_of_tools_does_not_swallow_it(saver: Any, call: Call, inside: Any) -> None:
    """B262"""
    post = Post()
    agent, config, question = waiting(saver, call, post, {"send": True}, inside)
    with pytest.raises(ValidationError) as refused:
        call(agent, Command(resume={question.id: {"type": "edit"}}), config)
    assert [e["loc"] for e in refused.value.errors()] == [("edit", "edited_action")]
    assert post.did == []
    call(agent, Command(resume={question.id: APPROVE}), config)
    assert post.did == ["send ann None"]


@pytest.mark.parametrize(
    "answer", [edit("send", to="bob"), {"type": "respond", "message": "x"}], ids=lambda a: a["type"]
)
def test_a_decision_that_is_not_allowed_is_refused_with_those_that_are(saver: Any, call: Call, answer: Any) -> None:
    """B262"""
    post = Post()
    agent, config, question = waiting(saver, call, post, TWO_ALLOWED)
    with pytest.raises(ValidationError, match="expected tags: 'approve', 'reject'"):
        call(agent, Command(resume={question.id: answer}), config)
    call(agent, Command(resume=APPROVE), config)
    assert post.did == ["send ann None"]


# --- several questions ------------------------------------------------------------------------------------------------

FOUR = calls(
    ("send", "mail", {"to": "ann", "cc": "carol"}),
    ("draft", "draft", {"to": "x"}),
    ("draft", "pass", {"to": "free"}),
    ("read", "read", {"box": "in"}),
)
SOME: Any = {
    "send": True,
    "draft": {
        "allowed_decisions": ["approve", "reject"],
        "when": lambda request: request.tool_call["args"]["to"] != "free",
    },
}


def test_each_gated_call_asks_and_all_others_run_meanwhile(saver: Any, call: Call) -> None:
    """B258, B261"""
    post, model, config = Post(), Scripted(FOUR, "done"), thread()
    agent = post.agent(saver, model, SOME, interrupt_mode="per_call")
    questions = {q.value["tool_call_id"]: q for q in call(agent, START, config)["__interrupt__"]}
    assert set(questions) == {"mail", "draft"}
    assert sorted(post.did) == ["draft free", "read in"]
    assert agent.get_state(config).next == ("tools", "tools")
    changed = Command(resume={questions["mail"].id: edit("send", to="bob")})
    (left,) = call(agent, changed, config)["__interrupt__"]
    assert left == questions["draft"]
    state = call(agent, Command(resume={left.id: REJECT}), config)
    assert sorted(post.did) == ["draft free", "read in", "send bob None"]
    assert list(results(state)) == ["mail", "draft", "pass", "read"]
    assert results(state)["draft"] == ("error", "no")
    assert len(model.shown) == 2


@pytest.mark.parametrize("order", list(itertools.permutations("abc")), ids="".join)
def test_same_calls_are_answered_in_any_order_each_by_its_own_id(saver: Any, order: tuple[str, ...]) -> None:
    post, config = Post(), thread()
    proposed = calls(*(("send", i, {"to": "ann"}) for i in "abc"))
    agent = post.agent(saver, Scripted(proposed, "done"), {"send": True}, interrupt_mode="per_call")
    questions = {q.value["tool_call_id"]: q.id for q in agent.invoke(START, config)["__interrupt__"]}
    given = {"a": APPROVE, "b": REJECT, "c": edit("send", to="bob")}
    for each in order:
        state = agent.invoke(Command(resume={questions[each]: given[each]}), config)
    told = results(state)
    assert list(told) == ["a", "b", "c"]
    assert (told["a"], told["b"]) == (("success", "sent to ann"), ("error", "no"))
    assert told["c"][1].endswith("sent to bob")
    assert sorted(post.did) == ["send ann None", "send bob None"]


def test_one_bare_decision_for_several_questions_is_refused(saver: Any, call: Call) -> None:
    post, config = Post(), thread()
    agent = post.agent(saver, Scripted(FOUR, "done"), SOME, interrupt_mode="per_call")
    result = call(agent, START, config)
    with pytest.raises(RuntimeError, match="When there are multiple pending interrupts"):
        call(agent, Command(resume=APPROVE), config)
    call(agent, answered(result, mail=APPROVE, draft=APPROVE), config)
    assert sorted(post.did) == ["draft free", "draft x", "read in", "send ann carol"]


def test_a_retried_tool_is_not_asked_about_again(saver: Any, call: Call) -> None:
    """B263"""
    tries: list[str] = []

    @tool
    def send(to: str) -> str:
        """Send a mail."""
        tries.append(to)
        if len(tries) == 1:
            raise TimeoutError("slow")
        return f"sent to {to}"

    config, retries = thread(), ToolRetryMiddleware(initial_delay=0)
    agent = agent_with(saver, Scripted(ONE, "done"), [send], {"send": True}, retries, interrupt_mode="per_call")
    state = call(agent, answered(call(agent, START, config), APPROVE), config)
    assert "__interrupt__" not in state
    assert tries == ["ann", "ann"]
    assert results(state) == {"c1": ("success", "sent to ann")}
