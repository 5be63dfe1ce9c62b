"""Forks, edited states and new messages: a decision counts for the one call it was about, in the branch it was given in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage

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
    ids,
    results,
    resume,
    shown,
)
from tests.agents.scripted import Scripted, calls, refuse_what_strict_providers_refuse
from waitpoint.engine.answers import withdraw
from waitpoint.errors import ConflictError, UnknownInterruptError, WaitpointError
from waitpoint.graph.message import REMOVE_ALL_MESSAGES
from waitpoint.types import Command

PAY = ("pay", "c1", {"to": "ana", "amount": 5})
READ = ("read", "c2", {"path": "notes"})
PAID = "paid 5 to ana"
NEW = {"messages": [("user", "never mind")]}


def checkpoint(agent: Any, wanted: Callable[[Any], bool]) -> Any:
    """Return the config of the newest checkpoint of which this holds."""
    return next(state.config for state in agent.get_state_history(THREAD) if wanted(state))


def before_the_tools(state: Any) -> bool:
    return bool(state.next) and set(state.next) == {"tools"}


# --- forks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [True, {"allowed_decisions": ["approve", "reject"], "idempotent": True}], ids=str)
def test_a_fork_from_before_the_call_ran_needs_a_decision_of_its_own(
    policy: Any, mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    model = Scripted(calls(PAY), "done", "done again")
    agent = agent_of(effects, model, stored, approval(mode, pay=policy))
    call(agent, resume(call(agent, ASKED, THREAD), APPROVE), THREAD)
    assert effects.lines() == [PAID]
    state = call(agent, None, checkpoint(agent, before_the_tools))
    assert actions(state) == [("pay", PAY[2])]
    assert effects.lines() == [PAID]
    call(agent, resume(state, REJECT), THREAD)
    assert effects.lines() == [PAID]
    assert shown(model) == [("c1", "error", "no")]


def test_of_an_approved_call_and_its_fork_only_the_first_runs_unasked(
    call: Call, effects: Effects, stored: Any
) -> None:
    model = Scripted(calls(PAY), "done", "done again")
    agent = agent_of(effects, model, stored, approval("batched"), interrupt_before=["tools"])
    state = call(agent, resume(call(agent, ASKED, THREAD), APPROVE), THREAD)
    assert effects.lines() == []
    stopped = checkpoint(agent, before_the_tools)
    call(agent, None, stopped)
    assert effects.lines() == [PAID]
    call(agent, None, stopped)  # up to the breakpoint once more, on a branch
    state = call(agent, None, THREAD)
    assert actions(state) == [("pay", PAY[2])]
    assert effects.lines() == [PAID]


def test_a_fork_from_where_the_question_was_asked_asks_again(
    mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    model = Scripted(calls(PAY), "done", "done again")
    agent = agent_of(effects, model, stored, approval(mode))
    first = call(agent, ASKED, THREAD)
    at = agent.get_state(THREAD).config
    call(agent, resume(first, APPROVE), THREAD)
    state = call(agent, None, at)
    assert actions(state) == [("pay", PAY[2])]
    assert ids(state) != ids(first)
    with pytest.raises(WaitpointError):
        call(agent, resume(first, APPROVE), THREAD)
    assert effects.lines() == [PAID]
    call(agent, resume(state, APPROVE), THREAD)  # a second yes, to a second question
    assert effects.lines() == [PAID, PAID]


def test_a_fork_of_a_waiting_call_leaves_one_question(mode: Any, call: Call, effects: Effects, stored: Any) -> None:
    model = Scripted(calls(PAY), "done")
    agent = agent_of(effects, model, stored, approval(mode))
    first = call(agent, ASKED, THREAD)
    state = call(agent, None, checkpoint(agent, lambda s: bool(s.values.get("messages")) and bool(s.interrupts)))
    if ids(state) != ids(first):
        with pytest.raises(WaitpointError):
            call(agent, resume(first, APPROVE), THREAD)
    assert len(stored.pending(thread_id="1")) == 1
    call(agent, resume(state, APPROVE), THREAD)
    assert effects.lines() == [PAID]


# --- update_state -----------------------------------------------------------------------------------------------------


def other_arguments(agent: Any) -> None:
    """Put other arguments into the model's call."""
    message = next(m for m in agent.get_state(THREAD).values["messages"] if m.type == "ai")
    changed = message.model_copy(
        update={"tool_calls": calls(("pay", "c1", {"to": "mallory", "amount": 5000})).tool_calls}
    )
    agent.update_state(THREAD, {"messages": [changed]}, as_node=at_the_tools(agent))


def another_edit(agent: Any) -> None:
    """Say that a person had put another action in the call's place."""
    action = {"name": "pay", "args": {"to": "mallory", "amount": 5000}}
    agent.update_state(THREAD, {"hitl_edited_tool_calls": {"c1": action}}, as_node=at_the_tools(agent))


def another_tool(agent: Any) -> None:
    """Say that a person had put another tool in the call's place."""
    action = {"name": "wipe", "args": {"path": "a"}}
    agent.update_state(THREAD, {"hitl_edited_tool_calls": {"c1": action}}, as_node=at_the_tools(agent))


def at_the_tools(agent: Any) -> str:
    """Return the node after which the tools come."""
    nodes = agent.get_graph().nodes if hasattr(agent, "get_graph") else agent.spec.nodes
    name = "HumanInTheLoopMiddleware.after_model"
    return name if name in nodes else "model"


@pytest.mark.parametrize("change", [other_arguments, another_edit, another_tool])
@pytest.mark.parametrize("moment", ["while it waits", "after it was approved", "after it ran"])
def test_a_call_that_was_changed_in_the_state_is_asked_about(
    moment: str, change: Any, mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    model = Scripted(calls(PAY), "done", "done again")
    stops = {"interrupt_before": ["tools"]} if moment == "after it was approved" else {}
    agent = agent_of(effects, model, stored, approval(mode), **stops)
    state = call(agent, ASKED, THREAD)
    if moment != "while it waits" and actions(state):
        state = call(agent, resume(state, APPROVE), THREAD)
    ran = effects.lines()
    assert ran == ([PAID] if moment == "after it ran" else [])
    if moment == "after it ran":
        undone = [RemoveMessage(id=m.id) for m in state["messages"][-2:]]
        agent.update_state(THREAD, {"messages": undone}, as_node="model")
    change(agent)
    state = call(agent, None, THREAD)
    while not actions(state) and agent.get_state(THREAD).next:
        state = call(agent, None, THREAD)
    assert effects.lines() == ran
    expected = ("wipe", {"path": "a"}) if change is another_tool else ("pay", {"to": "mallory", "amount": 5000})
    assert actions(state) == [expected]
    state = call(agent, resume(state, REJECT), THREAD)
    assert effects.lines() == ran
    assert shown(model) == [("c1", "error", "no")]


def test_an_edited_call_runs_what_the_person_wrote_and_not_what_the_state_was_made_to_say(
    mode: Any, effects: Effects, stored: Any
) -> None:
    model = Scripted(calls(PAY), "done")
    agent = agent_of(effects, model, stored, approval(mode), interrupt_before=["tools"])
    state = agent.invoke(ASKED, THREAD)
    if not actions(state):
        state = agent.invoke(None, THREAD)
    state = agent.invoke(resume(state, edit("pay", to="ana", amount=1)), THREAD)
    if mode == "per_call":
        assert effects.lines() == ["paid 1 to ana"]
        return
    agent.update_state(THREAD, {"hitl_edited_tool_calls": {}}, as_node=at_the_tools(agent))
    state = agent.invoke(None, THREAD)
    while not actions(state) and agent.get_state(THREAD).next:
        state = agent.invoke(None, THREAD)
    assert actions(state) == [("pay", PAY[2])]
    assert effects.lines() == []


@pytest.mark.parametrize("what", ["the call", "everything"])
@pytest.mark.parametrize("moment", ["while it waits", "after it was approved"])
def test_a_call_whose_message_was_removed_never_runs_and_the_thread_goes_on(
    moment: str, what: str, mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    model = Scripted(calls(PAY, READ), "done", "again")
    stops = {"interrupt_before": ["tools"]} if moment == "after it was approved" else {}
    agent = agent_of(effects, model, stored, approval(mode), **stops)
    state = call(agent, ASKED, THREAD)
    if stops and actions(state):
        call(agent, resume(state, APPROVE), THREAD)
    (message,) = (m for m in agent.get_state(THREAD).values["messages"] if m.type == "ai")
    gone = RemoveMessage(id=message.id if what == "the call" else REMOVE_ALL_MESSAGES)
    agent.update_state(THREAD, {"messages": [gone]})
    for _ in range(3):
        if not agent.get_state(THREAD).next:
            break
        call(agent, None, THREAD)
    assert PAID not in effects.lines()
    state = call(agent, {"messages": [("user", "hello")]}, THREAD)
    assert actions(state) == []
    assert PAID not in effects.lines()
    assert state["messages"][-1].text in ("done", "again")


def test_a_call_that_update_state_puts_past_the_approval_is_asked_about(
    mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    model = Scripted("hello", "done")
    agent = agent_of(effects, model, stored, approval(mode))
    call(agent, ASKED, THREAD)
    agent.update_state(THREAD, {"messages": [calls(PAY)]}, as_node=at_the_tools(agent))
    state = call(agent, None, THREAD)
    assert actions(state) == [("pay", PAY[2])]
    assert effects.lines() == []
    call(agent, resume(state, REJECT), THREAD)
    assert effects.lines() == []


# --- new messages -----------------------------------------------------------------------------------------------------


def test_a_new_message_while_a_call_waits_is_refused(mode: Any, call: Call, effects: Effects, stored: Any) -> None:
    model = Scripted(calls(PAY, READ), "done")
    agent = agent_of(effects, model, stored, approval(mode))
    state = call(agent, ASKED, THREAD)
    with pytest.raises(ConflictError):
        call(agent, NEW, THREAD)
    assert PAID not in effects.lines()
    call(agent, resume(state, APPROVE), THREAD)
    assert sorted(effects.lines()) == [PAID, "read notes"]
    assert [call_id for call_id, _, _ in shown(model)] == ["c1", "c2"]


def test_a_message_that_goes_on_without_the_decision_settles_the_call_and_refuses_the_late_yes(
    mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    model = Scripted(calls(PAY, READ), "all right", "and on")
    agent = agent_of(effects, model, stored, approval(mode))
    waiting = call(agent, ASKED, THREAD)
    state = call(agent, NEW, THREAD, on_pending="withdraw")
    assert actions(state) == []
    assert state["messages"][-1].text == "all right"
    (not_run, of_read) = shown(model)
    assert not_run == ("c1", "error", "The call of `pay` was not run: the user went on before it was decided.") or (
        mode == "batched" and not_run[:2] == ("c1", "error")
    )
    assert of_read[0] == "c2"
    for _ in range(2):
        with pytest.raises(UnknownInterruptError) as refused:
            call(agent, resume(waiting, APPROVE), THREAD)
        assert refused.value.reason == "not_pending"
    assert PAID not in effects.lines()
    assert stored.pending() == []
    call(agent, {"messages": [("user", "and?")]}, THREAD)
    refuse_what_strict_providers_refuse(agent.get_state(THREAD).values["messages"])


def test_a_message_after_some_decisions_keeps_what_was_done(call: Call, effects: Effects, stored: Any) -> None:
    bob = ("pay", "c3", {"to": "bob", "amount": 6})
    cy = ("pay", "c4", {"to": "cy", "amount": 7})
    model = Scripted(calls(PAY, READ, bob, cy), "all right")
    agent = agent_of(effects, model, stored, approval("per_call"))
    waiting = call(agent, ASKED, THREAD)
    first, second, third = ids(waiting)
    call(agent, Command(resume={first: APPROVE, second: REJECT}), THREAD)
    call(agent, NEW, THREAD, on_pending="withdraw")
    assert sorted(effects.lines()) == [PAID, "read notes"]
    assert [(i, s) for i, s, _ in shown(model)] == [
        ("c1", "success"),
        ("c2", "success"),
        ("c3", "error"),
        ("c4", "error"),
    ]
    assert [m.text for m in model.shown[-1] if isinstance(m, HumanMessage)] == ["go on", "never mind"]
    with pytest.raises(UnknownInterruptError):
        call(agent, Command(resume={third: APPROVE}), THREAD)
    assert sorted(effects.lines()) == [PAID, "read notes"]


# --- withdrawn questions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("others", [(READ,), ()], ids=["beside another call", "alone"])
def test_a_call_whose_question_was_withdrawn_is_not_run_and_the_model_is_told(
    others: Any, mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    model = Scripted(calls(PAY, *others), "all right")
    agent = agent_of(effects, model, stored, approval(mode))
    (question,) = ids(call(agent, ASKED, THREAD))
    withdraw(stored, question, "no longer needed", by="ana")
    state = call(agent, None, THREAD)
    assert PAID not in effects.lines()
    assert shown(model)[0] == (
        "c1", "error", "The call of `pay` was not run, because the question about it was withdrawn: no longer needed",
    )  # fmt: skip
    assert [status for _, status, _ in shown(model)[1:]] == ["success"] * len(others)
    assert state["messages"][-1].text == "all right"
    with pytest.raises(WaitpointError):
        call(agent, Command(resume={question: APPROVE if mode == "per_call" else {"decisions": [APPROVE]}}), THREAD)
    assert PAID not in effects.lines()


# --- reused ids -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", [PAY[2], {"to": "mallory", "amount": 5000}], ids=["the same", "others"])
def test_a_call_id_that_comes_again_in_a_later_turn_needs_a_decision_of_its_own(
    args: Any, mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    model = Scripted(calls(PAY), calls(("pay", "c1", args)), "done")
    agent = agent_of(effects, model, stored, approval(mode))
    state = call(agent, resume(call(agent, ASKED, THREAD), APPROVE), THREAD)
    assert actions(state) == [("pay", args)]
    assert effects.lines() == [PAID]
    state = call(agent, resume(state, REJECT), THREAD)
    assert effects.lines() == [PAID]
    assert results(state) == [("c1", "success", "paid ana"), ("c1", "error", "no")]


def test_a_no_to_a_call_id_is_no_answer_to_its_next_use(mode: Any, call: Call, effects: Effects, stored: Any) -> None:
    model = Scripted(calls(PAY), calls(PAY), "done")
    agent = agent_of(effects, model, stored, approval(mode))
    state = call(agent, resume(call(agent, ASKED, THREAD), edit("pay", to="bob", amount=1)), THREAD)
    assert effects.lines() == ["paid 1 to bob"]
    assert actions(state) == [("pay", PAY[2])]
    call(agent, resume(state, APPROVE), THREAD)
    assert effects.lines() == ["paid 1 to bob", PAID]


def test_a_call_id_that_comes_twice_in_a_turn_is_two_calls(
    mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    model = Scripted(calls(PAY, ("pay", "c1", {"to": "bob", "amount": 6})), "done")
    agent = agent_of(effects, model, stored, approval(mode))
    state = call(agent, ASKED, THREAD)
    assert len(actions(state)) == 2
    state = call(agent, resume(state, APPROVE, REJECT), THREAD)
    assert actions(state) == []
    assert effects.lines() == [PAID]
    assert len({call_id for call_id, _, _ in shown(model)}) == 2
