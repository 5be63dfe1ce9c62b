"""Approval once per turn: decisions by place or by label, edits into other tools, what is refused and where."""

from __future__ import annotations

import itertools
from typing import Any

import jsonschema_rs
import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import ValidationError

from tests.agents.posting import APPROVE, REJECT, START, Post, agent_with, answered, edit, results
from tests.agents.scripted import Scripted, calls
from tests.behaviours.conftest import Call
from tests.behaviours.graphs import thread
from waitpoint.agents.tool_node.request import ToolRuntime
from waitpoint.types import Command

THREE = calls(
    ("send", "a", {"to": "ann"}),
    ("read", "free", {"box": "in"}),
    ("send", "b", {"to": "bob"}),
    ("draft", "c", {"to": "cy"}),
)
POLICY: Any = {"send": True, "draft": {"allowed_decisions": ["approve", "reject"]}}


def decide(*decisions: Any) -> Command[Any]:
    return Command(resume={"decisions": list(decisions)})


# --- the question -----------------------------------------------------------------------------------------------------


def test_one_question_lists_the_gated_calls_in_their_order(saver: Any, call: Call) -> None:
    """B238"""
    post, config = Post(), thread()
    agent = post.agent(saver, Scripted(THREE), POLICY)
    (question,) = call(agent, START, config)["__interrupt__"]
    assert [(a["name"], a["args"]) for a in question.value["action_requests"]] == [
        ("send", {"to": "ann"}),
        ("send", {"to": "bob"}),
        ("draft", {"to": "cy"}),
    ]
    assert set(question.value) == {"action_requests", "review_configs"}
    assert [c["action_name"] for c in question.value["review_configs"]] == ["send", "send", "draft"]
    assert post.did == []


@pytest.mark.parametrize(
    ("decisions", "fits"),
    [
        ([APPROVE, APPROVE, APPROVE], True),
        ([edit("send", to="x"), REJECT, REJECT], True),
        ([edit("read", box="x"), APPROVE, APPROVE], True),
        ([{**APPROVE, "tool_call_id": "a"}, APPROVE, APPROVE], True),
        ([APPROVE, APPROVE], False),
        ([APPROVE, APPROVE, APPROVE, APPROVE], False),
        ([APPROVE, APPROVE, edit("draft", to="x")], False),
        ([APPROVE, APPROVE, {"type": "respond", "message": "x"}], False),
        ([edit("send"), APPROVE, APPROVE], False),
        ([edit("draft", to="x"), APPROVE, APPROVE], False),
        ([{**APPROVE, "tool_call_id": "b"}, APPROVE, APPROVE], False),
    ],
)
def test_the_schema_of_the_answer_says_what_is_taken(saver: Any, call: Call, decisions: Any, fits: bool) -> None:
    post, config = Post(), thread()
    agent = post.agent(saver, Scripted(THREE, "done"), POLICY)
    (question,) = call(agent, START, config)["__interrupt__"]
    assert jsonschema_rs.Draft202012Validator(question.response_schema).is_valid({"decisions": decisions}) is fits
    if fits:
        assert "__interrupt__" not in call(agent, decide(*decisions), config)
    else:
        with pytest.raises(ValueError):
            call(agent, decide(*decisions), config)
        assert post.did == []


# --- by place and by label --------------------------------------------------------------------------------------------

LABELLED = [
    {**APPROVE, "tool_call_id": "a"},
    {**REJECT, "tool_call_id": "b"},
    {**REJECT, "message": "later", "tool_call_id": "c"},
]


@pytest.mark.parametrize(
    "given", list(itertools.permutations(LABELLED)), ids=lambda g: "".join(d["tool_call_id"] for d in g)
)
def test_labelled_decisions_may_come_in_any_order(saver: Any, given: Any) -> None:
    post, config = Post(), thread()
    agent = post.agent(saver, Scripted(THREE, "done"), POLICY)
    agent.invoke(START, config)
    state = agent.invoke(decide(*given), config)
    assert results(state) == {
        "a": ("success", "sent to ann"),
        "free": ("success", "mails in in"),
        "b": ("error", "no"),
        "c": ("error", "later"),
    }
    assert list(results(state)) == ["a", "free", "b", "c"]
    assert sorted(post.did) == ["read in", "send ann None"]


@pytest.mark.parametrize(
    "labels", [("a", "a", "c"), ("a", "b", "z"), ("b", "free", "c"), (None, "a", "a")], ids=lambda labels: str(labels)
)
def test_labels_that_do_not_each_name_a_call_are_refused(saver: Any, call: Call, labels: Any) -> None:
    post, config = Post(), thread()
    agent = post.agent(saver, Scripted(THREE, "done"), POLICY)
    call(agent, START, config)
    with pytest.raises(ValidationError) as refused:
        call(agent, decide(*({**APPROVE, **({"tool_call_id": i} if i else {})} for i in labels)), config)
    assert refused.value.errors()[0]["loc"][0::2] == ("decisions", "tool_call_id")
    assert post.did == []
    call(agent, decide(APPROVE, APPROVE, APPROVE), config)
    assert len(post.did) == 4


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        (APPROVE, ("decisions",)),
        ([APPROVE, APPROVE, APPROVE], ()),
        ("approve", ()),
        (None, ()),
        ({}, ("decisions",)),
        ({"decisions": "approve"}, ("decisions",)),
        ({"decisions": [APPROVE]}, ("decisions",)),
        ({"decisions": [APPROVE, "approve", APPROVE]}, ("decisions", 1)),
        ({"decisions": [APPROVE, {}, APPROVE]}, ("decisions", 1)),
        ({"decisions": [APPROVE, APPROVE, {"type": "aprove"}]}, ("decisions", 2)),
        ({"decisions": [APPROVE, APPROVE, edit("draft", to="x")]}, ("decisions", 2)),
        ({"decisions": [APPROVE, edit("send"), APPROVE]}, ("decisions", 1, "edit", "edited_action", "args", "to")),
        ({"decisions": [APPROVE, edit("draft", to="x"), APPROVE]}, ("decisions", 1, "edit", "edited_action", "name")),
        ({"decisions": [APPROVE, edit("nope", to="x"), APPROVE]}, ("decisions", 1, "edit", "edited_action", "name")),
        ({"decisions": [{"type": "edit"}, APPROVE, APPROVE]}, ("decisions", 0, "edit", "edited_action")),
        ({"decisions": [{"type": "respond"}, APPROVE, APPROVE]}, ("decisions", 0, "respond", "message")),
        ({"decisions": [{**REJECT, "why": 1}, APPROVE, APPROVE]}, ("decisions", 0, "reject", "why")),
    ],
)
def test_a_malformed_answer_has_one_error_at_its_place_and_blocks_nothing(
    saver: Any, call: Call, answer: Any, place: tuple[Any, ...]
) -> None:
    """B240, B256, and the table of differences"""
    post, config = Post(), thread()
    agent = post.agent(saver, Scripted(THREE, "done"), POLICY)
    call(agent, START, config)
    before = agent.get_state(config)
    with pytest.raises(ValidationError) as refused:
        call(agent, Command(resume=answer), config)
    assert [e["loc"] for e in refused.value.errors()] == [place]
    assert post.did == []
    assert agent.get_state(config) == before
    call(agent, decide(APPROVE, REJECT, APPROVE), config)
    assert sorted(post.did) == ["draft cy", "read in", "send ann None"]


def test_a_decision_that_is_not_allowed_is_told_with_those_that_are(saver: Any, call: Call) -> None:
    """B256"""
    config = thread()
    agent = Post().agent(saver, Scripted(THREE), POLICY)
    call(agent, START, config)
    given = {"type": "respond", "message": "x"}
    with pytest.raises(ValueError) as refused:
        call(agent, decide(APPROVE, APPROVE, given), config)
    assert (
        f"Unexpected human decision: {given}. Decision type 'respond' is not allowed for tool 'draft'. Expected one of "
        f"['approve', 'reject'] based on the tool's configuration."
    ) in str(refused.value)


@pytest.mark.parametrize(("name", "text"), [("nope", "not an available tool"), ("draft", "policy does not let")])
def test_an_edit_may_not_name_a_tool_that_is_not_there_or_guarded_otherwise(
    saver: Any, call: Call, name: str, text: str
) -> None:
    """B248, and the table of differences"""
    config = thread()
    agent = Post().agent(saver, Scripted(THREE), POLICY)
    call(agent, START, config)
    with pytest.raises(ValueError, match=text):
        call(agent, decide(edit(name, to="x"), APPROVE, APPROVE), config)


# --- edits ------------------------------------------------------------------------------------------------------------


def test_an_edit_is_kept_in_private_state_until_the_next_turn(saver: Any, call: Call) -> None:
    """B243, B250"""
    seen: list[Any] = []

    @tool
    def send(to: str, runtime: ToolRuntime) -> str:
        """Send a mail."""
        seen.append(runtime.state.get("hitl_edited_tool_calls"))
        return f"sent to {to}"

    config = thread()
    model = Scripted(calls(("send", "a", {"to": "ann"})), "done")
    agent = agent_with(saver, model, [send], {"send": True})
    given = START | {"hitl_edited_tool_calls": {"a": {"name": "send", "args": {"to": "eve"}}}}
    result = call(agent, given, config)
    state = call(agent, answered(result, edit("send", to="bob")), config)
    assert seen == [{"a": {"name": "send", "args": {"to": "bob"}}}]
    assert set(state) == {"messages"}
    assert agent.get_state(config).values["hitl_edited_tool_calls"] == {}


def test_an_edit_into_another_tool_runs_that_tool_under_the_calls_id(saver: Any, call: Call) -> None:
    """B248"""
    post, config = Post(), thread()
    agent = post.agent(saver, Scripted(calls(("send", "a", {"to": "ann"})), "done"), {"send": True})
    state = call(agent, answered(call(agent, START, config), edit("draft", to="ann")), config)
    assert post.did == ["draft ann"]
    (message,) = [m for m in state["messages"] if isinstance(m, ToolMessage)]
    assert message.tool_call_id == "a"
    assert message.text.endswith(
        'Executed instead: draft with arguments {"to":"ann"}.\n\nTool response:\ndrafted to ann'
    )
    assert state["messages"][1].tool_calls[0]["name"] == "send"


@pytest.mark.parametrize(("proposed", "put"), [("direct", "normal"), ("normal", "direct")])
@pytest.mark.parametrize("changed", [True, False])
def test_whether_a_result_is_returned_directly_follows_the_tool_that_ran(
    saver: Any, call: Call, proposed: str, put: str, changed: bool
) -> None:
    """B248"""

    @tool(return_direct=True)
    def direct(x: str) -> str:
        """Return directly."""
        return f"direct {x}"

    @tool
    def normal(x: str) -> str:
        """Return to the model."""
        return f"normal {x}"

    config, model = thread(), Scripted(calls((proposed, "a", {"x": "1"})), "done")
    agent = agent_with(saver, model, [direct, normal], {proposed: True})
    result = call(agent, START, config)
    state = call(agent, answered(result, edit(put, x="2") if changed else APPROVE), config)
    ran = put if changed else proposed
    assert isinstance(state["messages"][-1], ToolMessage if ran == "direct" else AIMessage)
    assert len(model.shown) == (1 if ran == "direct" else 2)


@pytest.mark.parametrize("decision", [REJECT, {"type": "respond", "message": "x"}], ids=lambda d: d["type"])
def test_what_a_person_says_in_the_place_of_a_direct_result_goes_to_the_model(
    saver: Any, call: Call, decision: Any
) -> None:
    """B255: the agent goes on to its next turn"""

    @tool(return_direct=True)
    def direct(x: str) -> str:
        """Return directly."""
        return f"direct {x}"

    config, model = thread(), Scripted(calls(("direct", "a", {"x": "1"})), "done")
    agent = agent_with(saver, model, [direct], {"direct": True})
    state = call(agent, answered(call(agent, START, config), decision), config)
    assert state["messages"][-1].text == "done"
