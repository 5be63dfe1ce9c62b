"""Pruned and copied threads of agents: a decision counts in the thread it was given in, and pruning loses none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agents.gated import (
    APPROVE,
    ASKED,
    REJECT,
    THREAD,
    Call,
    Effects,
    agent_of,
    approval,
    ids,
    results,
    resume,
    thread,
)
from tests.agents.scripted import Scripted, calls
from waitpoint.engine import answers

PAY = ("pay", "c1", {"to": "ana", "amount": 5})
READ = ("read", "c2", {"path": "notes"})
PAID = "paid 5 to ana"
MODES = ["per_call", "batched"]


@pytest.mark.parametrize("mode", MODES)
def test_an_approval_of_a_call_is_none_of_the_same_call_in_a_copy(
    mode: str, stored: Any, effects: Effects, call: Call
) -> None:
    agent = agent_of(effects, Scripted(calls(PAY), "done", "done"), stored, approval(mode))
    asked = call(agent, ASKED, THREAD)
    stored.copy_thread("1", "2")
    done = call(agent, resume(asked, APPROVE), THREAD)
    assert effects.lines() == [PAID]
    copy = agent.get_state(thread("2"))
    assert not set(ids({"__interrupt__": copy.interrupts})) & set(ids(asked))
    refused = call(agent, resume({"__interrupt__": copy.interrupts}, REJECT), thread("2"))
    assert effects.lines() == [PAID]
    assert [status for _, status, _ in results(done)] == ["success"]
    assert [status for _, status, _ in results(refused)] == ["error"]


@pytest.mark.parametrize("mode", MODES)
def test_an_approval_that_no_run_has_acted_on_is_asked_for_again_in_a_copy(
    mode: str, stored: Any, effects: Effects, call: Call
) -> None:
    """Guarantee gate-before-effect."""
    agent = agent_of(effects, Scripted(calls(PAY), "done", "done"), stored, approval(mode))
    asked = call(agent, ASKED, THREAD)
    for question, answer in resume(asked, APPROVE).resume.items():
        assert answers.answer(stored, question, answer).status == "ready"
    stored.copy_thread("1", "2")
    again = call(agent, None, thread("2"))
    assert effects.lines() == []
    call(agent, None, THREAD)
    assert effects.lines() == [PAID]
    call(agent, resume(again, APPROVE), thread("2"))
    assert effects.lines() == [PAID, PAID]


@pytest.mark.parametrize("mode", MODES)
def test_a_copy_made_between_approval_and_tool_asks_again(mode: str, stored: Any, effects: Effects, call: Call) -> None:
    """Guarantee gate-before-effect: a permit is not copied."""
    agent = agent_of(effects, Scripted(calls(PAY), "done", "done"), stored, approval(mode), interrupt_before=["tools"])
    state = call(agent, ASKED, THREAD)
    while state.get("__interrupt__"):
        state = call(agent, resume(state, APPROVE), THREAD)
    stored.copy_thread("1", "2")
    copied = call(agent, None, thread("2"))
    assert effects.lines() == []
    assert copied["__interrupt__"]
    while not effects.lines():
        state = call(agent, resume(state, APPROVE) if state.get("__interrupt__") else None, THREAD)
    assert effects.lines() == [PAID]


@pytest.mark.parametrize("mode", MODES)
def test_pruning_at_every_rest_changes_nothing(mode: str, stored: Any, effects: Effects, call: Call) -> None:
    agent = agent_of(
        effects, Scripted(calls(READ, PAY), "between", calls(("pay", "c3", {"to": "bob", "amount": 7})), "done"),
        stored, approval(mode),
    )  # fmt: skip
    for paid in (5, 7):
        state = call(agent, ASKED, THREAD)
        while state.get("__interrupt__"):
            before = agent.get_state(THREAD)
            stored.prune(["1"])
            assert agent.get_state(THREAD) == before
            state = call(agent, resume(state, APPROVE), THREAD)
        stored.prune(["1"])
        assert any(line.startswith(f"paid {paid} ") for line in effects.lines())  # the calls of a turn run side by side
    assert len([line for line in effects.lines() if line.startswith("paid")]) == 2
    assert [text for _, _, text in results(agent.get_state(THREAD).values)] == [
        "contents of notes",
        "paid ana",
        "paid bob",
    ]
    (row,) = stored.threads()
    whole = stored.whole(row.key)
    assert len(whole.checkpoints) == 1
    assert len(whole.journal) <= 1  # of the permits only what was used last may be left
    assert whole.questions == []
