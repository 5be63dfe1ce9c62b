"""Agents called as tools that remember what they did in earlier turns (`checkpointer=True`)."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool

from tests.agents.gated import APPROVE, ASKED, THREAD, Call, Effects, actions, agent_of, approval, resume
from tests.agents.scripted import Scripted, calls
from waitpoint.agents import create_agent
from waitpoint.errors import UsageError


def as_tool(name: str, agent: Any) -> BaseTool:
    """Return a tool that runs an agent and gives its last words."""

    @tool(name)
    def delegated(task: str) -> str:
        """Let another agent do it."""
        return str(agent.invoke({"messages": [("user", task)]})["messages"][-1].text)

    return delegated


def remembering(effects: Effects, *replies: Any) -> tuple[Scripted, Any]:
    """Return an agent with a memory, and its model."""
    model = Scripted(*replies)
    return model, create_agent(model, effects.tools, checkpointer=True, name="clerk")


def pay(number: int) -> tuple[str, str, dict[str, Any]]:
    return ("pay", f"p{number}", {"to": "ana", "amount": number})


def delegate(number: int) -> tuple[str, str, dict[str, Any]]:
    return ("clerk", f"c{number}", {"task": f"pay ana {number}"})


def texts(messages: Any) -> list[str]:
    return [m.text for m in messages if m.text]


def test_it_is_shown_what_it_did_in_earlier_turns(mode: Any, call: Call, effects: Effects, stored: Any) -> None:
    model, clerk = remembering(effects, calls(pay(1)), "paid 1", calls(pay(2)), "paid 2")
    outer = Scripted(calls(delegate(1)), "done 1", calls(delegate(2)), "done 2")
    boss = agent_of(effects, outer, stored, approval(mode, pay=True), tools=[as_tool("clerk", clerk), effects.pay])
    for number in (1, 2):
        state = call(boss, ASKED, THREAD)
        assert actions(state) == [("pay", pay(number)[2])]
        call(boss, resume(state, APPROVE), THREAD)
    assert len(effects.lines()) == 2
    assert [len(shown) for shown in model.shown] == [1, 3, 5, 7]
    assert texts(model.shown[2])[0] == "pay ana 1"
    assert texts(model.shown[2])[-1] == "pay ana 2"
    inside = boss.get_state({"configurable": {**THREAD["configurable"], "checkpoint_ns": "tools|clerk"}})
    assert [m.type for m in inside.values["messages"]] == ["human", "ai", "tool", "ai"] * 2


def test_new_input_settles_the_call_that_its_memory_left_open(
    mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    """The history that the model sees stays one that providers take (Guarantee: history-valid)."""
    model, clerk = remembering(effects, calls(pay(1)), calls(pay(2)), "paid 2")
    outer = Scripted(calls(delegate(1)), calls(delegate(2)), "done 2")
    boss = agent_of(effects, outer, stored, approval(mode, pay=True), tools=[as_tool("clerk", clerk), effects.pay])
    assert actions(call(boss, ASKED, THREAD)) == [("pay", pay(1)[2])]
    state = call(boss, ASKED, THREAD, on_pending="withdraw")
    assert actions(state) == [("pay", pay(2)[2])]
    call(boss, resume(state, APPROVE), THREAD)
    assert len(effects.lines()) == 1
    types = [m.type for m in model.shown[1]]
    assert types == ["human", "ai", "tool", "human"]


def test_after_going_back_it_remembers_what_it_knew_then(call: Call, effects: Effects, stored: Any) -> None:
    model, clerk = remembering(effects, "one", "two", "three")
    outer = Scripted(calls(delegate(1)), "done 1", calls(delegate(2)), "done 2", calls(delegate(3)), "done 3")
    boss = agent_of(effects, outer, stored, tools=[as_tool("clerk", clerk)])
    call(boss, ASKED, THREAD)
    first = boss.get_state(THREAD).config
    call(boss, ASKED, THREAD)
    call(boss, ASKED, first)
    assert [texts(shown) for shown in model.shown] == [
        ["pay ana 1"],
        ["pay ana 1", "one", "pay ana 2"],
        ["pay ana 1", "one", "pay ana 3"],
    ]


def test_two_calls_of_it_in_one_turn_are_refused(call: Call, effects: Effects, stored: Any) -> None:
    _, clerk = remembering(effects, "one", "two")
    outer = Scripted(calls(delegate(1), delegate(2)), "done")
    boss = agent_of(effects, outer, stored, tools=[as_tool("clerk", clerk)])
    with pytest.raises(UsageError, match=r"'clerk', compiled with checkpointer=True, is called twice at once"):
        call(boss, ASKED, THREAD)
