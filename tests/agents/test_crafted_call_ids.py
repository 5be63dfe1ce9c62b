"""Ids are the model's: whatever it calls its calls and messages, a yes to one is no yes to another, and none is lost."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, InvalidToolCall, ToolMessage

from tests.agents.gated import (
    APPROVE,
    ASKED,
    REJECT,
    THREAD,
    Call,
    Effects,
    actions,
    agent_of,
    approval,
    edit,
    results,
    resume,
)
from tests.agents.scripted import Scripted, calls
from waitpoint.agents import create_agent, history
from waitpoint.agents.gate import POLICIES
from waitpoint.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, after_model
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.graph import MessagesState, StateGraph
from waitpoint.prebuilt import ToolNode
from waitpoint.types import Command, interrupt

CONFIG: Any = {"configurable": {"thread_id": "1"}}


@pytest.mark.parametrize("crafted", ["a#0.5", "a#0", "a#0.0", "a#1.0", "#", "tool:a"])
def test_a_yes_to_a_call_whose_id_looks_like_a_key_of_another_is_for_it_alone(crafted: str) -> None:
    sent: list[str] = []

    def send(to: str) -> str:
        """Send something."""
        sent.append(to)
        return "sent"

    proposed = [{"name": "send", "args": {"to": "bob"}, "id": i} for i in (crafted, "a")]
    gate = HumanInTheLoopMiddleware({"send": True}, interrupt_mode="per_call")
    agent = create_agent(Scripted("hi"), [send], middleware=[gate])
    # All calls in one task, so that their records lie in one journal.
    built = StateGraph(MessagesState).add_node("tools", ToolNode([send])).add_edge("__start__", "tools")
    graph = built.compile(checkpointer=InMemorySaver())
    graph.spec = graph.spec._replace(extras={POLICIES: agent.spec.extras[POLICIES]})
    asked = graph.invoke({"messages": [AIMessage("", tool_calls=proposed)]}, CONFIG)
    by_call = {i.value["tool_call_id"]: i.id for i in asked["__interrupt__"]}
    assert set(by_call) == {crafted, "a"}
    asked = graph.invoke(Command(resume={by_call[crafted]: {"type": "approve"}}), CONFIG)
    assert [i.value["tool_call_id"] for i in asked["__interrupt__"]] == ["a"]
    assert sent == ["bob"]
    done = graph.invoke(Command(resume={by_call["a"]: {"type": "reject"}}), CONFIG)
    assert sent == ["bob"]
    assert [m.status for m in done["messages"][1:]] == ["success", "error"]


def test_messages_of_one_id_are_two_turns_whose_calls_all_run(call: Call, effects: Effects, stored: Any) -> None:
    turns = [calls(("read", "c1", {"path": path})) for path in ("a", "b")]
    for turn in turns:
        turn.id = "m1"
    agent = agent_of(effects, Scripted(*turns, "done"), stored)
    state = call(agent, ASKED, THREAD)
    assert effects.lines() == ["read a", "read b"]
    assert [text for _, _, text in results(state)] == ["contents of a", "contents of b"]
    assert [m.id for m in state["messages"] if isinstance(m, AIMessage)].count("m1") == 1


def test_an_edit_is_for_its_own_turn_even_if_a_later_call_has_the_same_id(
    call: Call, effects: Effects, stored: Any
) -> None:
    @after_model(can_jump_to=["tools"])
    def jumps_in_the_second_turn(state: Any, runtime: Any) -> Any:
        return {"jump_to": "tools"} if len(state["messages"]) > 3 else None

    turns = [calls(("pay", "c1", {"to": to, "amount": 5})) for to in ("ana", "bob")]
    agent = agent_of(effects, Scripted(*turns, "done"), stored, approval("batched"), jumps_in_the_second_turn)
    state = call(agent, ASKED, THREAD)
    state = call(agent, resume(state, edit("read", path="a")), THREAD)
    assert actions(state) == [("pay", {"to": "bob", "amount": 5})]
    assert effects.lines() == ["read a"]


def test_a_draft_keeps_the_ids_it_was_given_while_it_waits(call: Call, effects: Effects, stored: Any) -> None:
    class Shows(AgentMiddleware[Any, Any, Any]):
        """Shows each draft to a person."""

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            """Ask."""
            response = handler(request)
            interrupt({"calls": [dict(each) for each in response.result[0].tool_calls]})
            return response

    draft = AIMessage("", tool_calls=[{"name": "read", "args": {"path": "a"}, "id": None}])
    agent = agent_of(effects, Scripted(draft, "done"), stored, Shows())
    (asked,) = call(agent, ASKED, THREAD)["__interrupt__"]
    state = call(agent, Command(resume={asked.id: "fine"}), THREAD)
    assert effects.lines() == ["read a"]
    assert state["messages"][1].tool_calls == asked.value["calls"]


def test_an_answer_is_shown_with_its_own_call_only() -> None:
    twice = [AIMessage("", tool_calls=[{"name": "pay", "args": {}, "id": "c1"}]) for _ in range(2)]
    paid = ToolMessage("paid", tool_call_id="c1")
    shown = history.valid([twice[0], HumanMessage("once more"), twice[1], paid])
    assert [m.type for m in shown] == ["ai", "tool", "human", "ai", "tool"]
    assert "no result" in shown[1].text
    assert shown[4] is paid
    late = history.valid([twice[0], HumanMessage("well?"), AIMessage("soon"), paid])
    assert [m.type for m in late] == ["ai", "tool", "human", "ai"]
    assert late[1] is paid


@pytest.mark.parametrize("own", [None, "", "\ud800"], ids=["none", "empty", "half a character"])
def test_calls_and_messages_without_a_usable_id_are_given_one(
    own: str | None, mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    pay = {"name": "pay", "args": {"to": "ana", "amount": 5}, "id": own}
    message = AIMessage("", tool_calls=[pay, pay], id=own)
    agent = agent_of(effects, Scripted(message, "done"), stored, approval(mode))
    state = call(agent, ASKED, THREAD)
    state = call(agent, resume(state, APPROVE, REJECT), THREAD)
    assert effects.lines() == ["paid 5 to ana"]
    assert len({call_id for call_id, _, _ in results(state)} - {own, ""}) == 2


def test_a_malformed_call_with_the_id_of_another_does_not_answer_it(call: Call, effects: Effects, stored: Any) -> None:
    broken = {"name": "read", "args": "{", "id": "c1", "error": None, "type": "invalid_tool_call"}
    message = calls(("read", "c1", {"path": "a"}))
    message.invalid_tool_calls = [InvalidToolCall(**broken)]
    agent = agent_of(effects, Scripted(message, "done"), stored)
    state = call(agent, ASKED, THREAD)
    assert effects.lines() == ["read a"]
    assert [status for _, status, _ in results(state)] == ["success", "error"]
