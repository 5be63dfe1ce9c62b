"""Scenarios of the section "middleware/decisions": what a decision allows, how often, and what it leaves as it is."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.tools import tool

from tests.agents.gated import (
    APPROVE,
    ASKED,
    REJECT,
    THREAD,
    Effects,
    actions,
    agent_of,
    approval,
    edit,
    results,
    resume,
)
from tests.agents.scripted import Scripted, calls
from tests.scenarios.conftest import Call
from tests.scenarios.world import Shelf

PAY = ("pay", "c1", {"to": "ana", "amount": 5})
PAID = "paid 5 to ana"


# --- S125, S188, S193 -------------------------------------------------------------------------------------------------


def test_s125_the_body_of_a_tool_begins_after_the_yes_and_never_after_a_no(
    mode: Any, call: Call, effects: Effects, saver: Any
) -> None:
    model = Scripted(calls(PAY), calls(("pay", "c2", {"to": "bob", "amount": 6})), "done")
    agent = agent_of(effects, model, saver, approval(mode))
    state = call(agent, ASKED, THREAD)
    call(agent, None, THREAD)
    assert effects.lines() == []
    state = call(agent, resume(state, REJECT), THREAD)
    assert effects.lines() == []
    call(agent, resume(state, APPROVE), THREAD)
    assert effects.lines() == ["paid 6 to bob"]


@pytest.mark.parametrize("again", [PAY, ("pay", "c1", {"to": "ana", "amount": 6}), ("pay", "c2", PAY[2])], ids=str)
def test_s188_an_approval_counts_for_its_call_and_arguments_once(
    again: Any, mode: Any, call: Call, effects: Effects, saver: Any
) -> None:
    agent = agent_of(effects, Scripted(calls(PAY), calls(again), "done"), saver, approval(mode))
    state = call(agent, resume(call(agent, ASKED, THREAD), APPROVE), THREAD)
    assert effects.lines() == [PAID]
    assert actions(state) == [("pay", again[2])]
    call(agent, resume(state, REJECT), THREAD)
    assert effects.lines() == [PAID]


def test_s188_a_retry_of_the_same_call_needs_no_second_approval(
    mode: Any, call: Call, effects: Effects, shelf: Shelf
) -> None:
    tries: list[dict[str, Any]] = []

    @tool
    def mail(to: str, cc: list[str]) -> str:
        """Send a mail."""
        tries.append({"to": to, "cc": cc})
        if len(tries) == 1:
            raise ConnectionError("no route")
        return "sent"

    model = Scripted(calls(("mail", "c1", {"to": "ana", "cc": ["bob"]})), "done")

    def agent() -> Any:
        return agent_of(effects, model, shelf.open(), approval(mode, mail=True), tools=[mail])

    state = call(agent(), ASKED, THREAD)
    with pytest.raises(ConnectionError):
        call(agent(), resume(state, APPROVE), THREAD)
    state = call(agent(), None, THREAD)
    assert actions(state) == []
    assert tries == [{"to": "ana", "cc": ["bob"]}] * 2
    assert results(state) == [("c1", "success", "sent")]


@pytest.mark.parametrize("decision", [APPROVE, edit("fetch", key="b")], ids=lambda d: d["type"])
def test_s193_a_tool_whose_result_is_final_is_final_after_an_approval_too(
    decision: Any, mode: Any, call: Call, effects: Effects, saver: Any
) -> None:
    @tool(return_direct=True)
    def fetch(key: str) -> str:
        """Fetch a record."""
        return f"record {key}"

    model = Scripted(calls(("fetch", "c1", {"key": "a"})))
    agent = agent_of(effects, model, saver, approval(mode, fetch=True), tools=[fetch])
    state = call(agent, resume(call(agent, ASKED, THREAD), decision), THREAD)
    assert len(model.shown) == 1
    assert state["messages"][-1].type == "tool"
    assert "record" in state["messages"][-1].text


def test_s193_a_no_to_such_a_call_goes_back_to_the_model(mode: Any, call: Call, effects: Effects, saver: Any) -> None:
    @tool(return_direct=True)
    def fetch(key: str) -> str:
        """Fetch a record."""
        return f"record {key}"

    model = Scripted(calls(("fetch", "c1", {"key": "a"})), "then not")
    agent = agent_of(effects, model, saver, approval(mode, fetch=True), tools=[fetch])
    state = call(agent, resume(call(agent, ASKED, THREAD), REJECT), THREAD)
    assert state["messages"][-1].text == "then not"
