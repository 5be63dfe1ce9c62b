"""Scenarios of the section "message-history validity": what the model is shown is what a strict provider takes."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from tests.agents.gated import (
    APPROVE,
    ASKED,
    REJECT,
    RESPOND,
    THREAD,
    Effects,
    actions,
    agent_of,
    approval,
    edit,
    resume,
    shown,
)
from tests.agents.scripted import Scripted, calls, refuse_what_strict_providers_refuse
from tests.scenarios.conftest import Call
from tests.scenarios.world import Shelf
from waitpoint.errors import PendingQuestionsError, UnknownInterruptError, WaitpointError

PAY = ("pay", "c1", {"to": "ana", "amount": 5})
READ = ("read", "c2", {"path": "notes"})
PAID = "paid 5 to ana"
DECISIONS = [APPROVE, REJECT, RESPOND, edit("pay", to="bob", amount=1)]
NEW = {"messages": [("user", "never mind")]}


# --- S108 -------------------------------------------------------------------------------------------------------------


def test_s108_a_new_message_while_a_call_is_open_is_refused(
    mode: Any, call: Call, effects: Effects, shelf: Shelf
) -> None:
    model = Scripted(calls(PAY, READ), "done")
    agent = agent_of(effects, model, shelf.open(), approval(mode))
    state = call(agent, ASKED, THREAD)
    with pytest.raises(PendingQuestionsError):
        call(agent_of(effects, model, shelf.open(), approval(mode)), NEW, THREAD)
    state = call(agent, resume(state, APPROVE), THREAD)
    assert PAID in effects.lines()
    assert [m.text for m in state["messages"] if isinstance(m, HumanMessage)] == ["go on"]


def test_s108_or_the_open_call_gets_a_result_and_the_late_approval_is_refused(
    mode: Any, call: Call, effects: Effects, shelf: Shelf
) -> None:
    model = Scripted(calls(PAY, READ), "all right", "later")
    agent = agent_of(effects, model, shelf.open(), approval(mode))
    waiting = call(agent, ASKED, THREAD)
    state = call(agent_of(effects, model, shelf.open(), approval(mode)), NEW, THREAD, on_pending="withdraw")
    assert actions(state) == []
    assert [m.type for m in model.shown[-1]] == ["human", "ai", "tool", "tool", "human"]
    assert "the user went on" in shown(model)[0][2]
    with pytest.raises(UnknownInterruptError, match="withdrawn"):
        call(agent, resume(waiting, APPROVE), THREAD)
    assert PAID not in effects.lines()
    call(agent, {"messages": [("user", "and now?")]}, THREAD)
    refuse_what_strict_providers_refuse(agent.get_state(THREAD).values["messages"])


# --- S110 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "decisions", list(itertools.product(DECISIONS, repeat=2)), ids=lambda pair: "-".join(d["type"] for d in pair)
)
def test_s110_each_combination_of_decisions_leaves_a_valid_history(
    decisions: Any, mode: Any, effects: Effects, saver: Any
) -> None:
    model = Scripted(calls(PAY, READ, ("pay", "c3", {"to": "cy", "amount": 6})), "done", "later")
    agent = agent_of(effects, model, saver, approval(mode))
    agent.invoke(resume(agent.invoke(ASKED, THREAD), *decisions), THREAD)
    assert [call_id for call_id, _, _ in shown(model)] == ["c1", "c2", "c3"]
    state = agent.invoke(NEW, THREAD)
    refuse_what_strict_providers_refuse(state["messages"])
    ran = sum(d["type"] in ("approve", "edit") for d in decisions)
    assert sum(line.startswith("paid") for line in effects.lines()) == ran


# --- S111 -------------------------------------------------------------------------------------------------------------


def broken(*good: tuple[str, str, dict[str, Any]]) -> AIMessage:
    """Return a message with a call whose arguments are cut off, beside good ones."""
    cut = {"name": "pay", "args": '{"to": "ana", "amou', "id": "c9", "error": "cut off", "type": "invalid_tool_call"}
    return calls(*good).model_copy(update={"invalid_tool_calls": [cut]})


def test_s111_the_model_is_told_of_a_call_with_broken_json_and_may_try_again(
    mode: Any, call: Call, effects: Effects, saver: Any
) -> None:
    model = Scripted(broken(), calls(PAY), "done")
    agent = agent_of(effects, model, saver, approval(mode))
    state = call(agent, ASKED, THREAD)
    (told,) = shown(model)
    assert told[:2] == ("c9", "error")
    assert "malformed or truncated" in told[2]
    assert actions(state) == [("pay", PAY[2])]
    call(agent, resume(state, APPROVE), THREAD)
    assert effects.lines() == [PAID]


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda d: d["type"])
def test_s111_beside_a_gated_call_the_reviewer_sees_only_what_can_run(
    decision: Any, mode: Any, call: Call, effects: Effects, saver: Any
) -> None:
    model = Scripted(broken(PAY), "done")
    agent = agent_of(effects, model, saver, approval(mode))
    state = call(agent, ASKED, THREAD)
    assert actions(state) == [("pay", PAY[2])]
    call(agent, resume(state, decision), THREAD)
    assert [call_id for call_id, _, _ in shown(model)] == ["c1", "c9"]
    assert len(effects.lines()) == (decision["type"] in ("approve", "edit"))


def test_s111_a_withdrawn_call_beside_a_broken_one_is_settled_too(
    mode: Any, call: Call, effects: Effects, saver: Any
) -> None:
    model = Scripted(broken(PAY), "all right")
    agent = agent_of(effects, model, saver, approval(mode))
    call(agent, ASKED, THREAD)
    call(agent, NEW, THREAD, on_pending="withdraw")
    assert [(i, status) for i, status, _ in shown(model)] == [("c1", "error"), ("c9", "error")]


# --- S113 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda d: d["type"])
def test_s113_a_resume_adds_no_message_by_itself(
    decision: Any, mode: Any, call: Call, effects: Effects, saver: Any
) -> None:
    model = Scripted(calls(PAY), "done")
    agent = agent_of(effects, model, saver, approval(mode))
    state = call(agent, ASKED, THREAD)
    before = [m.id for m in state["messages"]]
    with pytest.raises(WaitpointError):
        call(agent, {"messages": []}, THREAD)
    state = call(agent, resume(state, decision), THREAD)
    assert [m.type for m in state["messages"]] == ["human", "ai", "tool", "ai"]
    assert [m.id for m in state["messages"]][: len(before)] == before
    assert [m.text for m in state["messages"] if isinstance(m, HumanMessage)] == ["go on"]
