"""A policy's predicate is asked once about a call: whatever it would say later, what was shown is what is decided."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain_core.tools import tool

from tests.agents.gated import (
    APPROVE,
    ASKED,
    REJECT,
    THREAD,
    Call,
    Effects,
    actions,
    agent_of,
    answered,
    approval,
    results,
    resume,
)
from tests.agents.scripted import Scripted, calls
from waitpoint.agents import AgentState
from waitpoint.agents.middleware import AgentMiddleware
from waitpoint.prebuilt import InjectedState
from waitpoint.types import interrupt

PAY = ("pay", "c1", {"to": "ana", "amount": 5})
PAID = "paid 5 to ana"


class Odd:
    """A predicate that says another thing each time, from a list, and counts how often it was asked."""

    def __init__(self, *says: Any) -> None:
        self.says = says
        self.times = 0

    def __call__(self, request: Any) -> Any:
        self.times += 1
        says = self.says[min(self.times, len(self.says)) - 1]
        if isinstance(says, Exception):
            raise says
        return says


def by_the_clock() -> Callable[[Any], bool]:
    """Ask only while less than a moment has passed since the first look."""
    first: list[int] = []

    def when(request: Any) -> bool:
        first.append(time.perf_counter_ns())
        return first[-1] == first[0]

    return when


FLIPPING = {
    "flips": lambda: Odd(True, False),
    "raises later": lambda: Odd(True, ValueError("later")),
    "raises at first": lambda: Odd(ValueError("at first"), False),
    "nothing at first": lambda: Odd(None, False),
    "nothing later": lambda: Odd(True, None),
    "zero at first": lambda: Odd(0, False),
    "the clock": by_the_clock,
}


@pytest.mark.parametrize("made", FLIPPING.values(), ids=FLIPPING)
def test_what_was_asked_waits_for_its_answer_whatever_the_predicate_says_later(
    made: Any, mode: Any, call: Call, effects: Effects, reopened: Any
) -> None:
    when, model = made(), Scripted(calls(PAY), "done")
    policies = {"pay": {"allowed_decisions": ["approve", "reject"], "when": when}}

    def agent() -> Any:  # built anew for every call, as in another process
        return agent_of(effects, model, reopened(), approval(mode, **policies))

    state = call(agent(), ASKED, THREAD)
    assert actions(state) == [("pay", PAY[2])]
    assert call(agent(), None, THREAD)["__interrupt__"] == state["__interrupt__"]
    assert effects.lines() == []
    state = call(agent(), resume(state, REJECT), THREAD)
    assert results(state) == [("c1", "error", "no")]
    assert effects.lines() == []
    assert not isinstance(when, Odd) or when.times == 1


@pytest.mark.parametrize("made", FLIPPING.values(), ids=FLIPPING)
def test_an_approval_runs_the_call_once_whatever_the_predicate_says_later(
    made: Any, mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    when, model = made(), Scripted(calls(PAY), "done")
    policies = {"pay": {"allowed_decisions": ["approve", "reject"], "when": when}}
    agent = agent_of(effects, model, stored, approval(mode, **policies))
    state = call(agent, resume(call(agent, ASKED, THREAD), APPROVE), THREAD)
    assert "__interrupt__" not in state
    assert effects.lines() == [PAID]
    assert not isinstance(when, Odd) or when.times == 1


def test_a_call_that_passed_is_not_asked_about_when_another_one_waits(
    mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    when, model = Odd(False, True), Scripted(calls(PAY, ("wipe", "c2", {"path": "a"})), "done")
    policies = {"pay": {"allowed_decisions": ["approve"], "when": when}, "wipe": True}
    agent = agent_of(effects, model, stored, approval(mode, **policies))
    state = call(agent, ASKED, THREAD)
    assert actions(state) == [("wipe", {"path": "a"})]
    assert effects.lines() == ([] if mode == "batched" else [PAID])
    state = call(agent, resume(state, REJECT), THREAD)
    assert results(state) == [("c1", "success", "paid ana"), ("c2", "error", "no")]
    assert effects.lines() == [PAID]
    assert when.times == 1


class AsksInside(AgentMiddleware[Any, Any, Any]):
    """Has a question of its own about each call, behind the approval."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Ask, then go on."""
        interrupt(f"really {request.tool_call['name']}?")
        return handler(request)


def test_a_verdict_is_kept_while_somebody_else_asks_about_the_call(
    mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    when, model = Odd(False, True), Scripted(calls(PAY), "done")
    policies = {"pay": {"allowed_decisions": ["approve"], "when": when}}
    agent = agent_of(effects, model, stored, approval(mode, **policies), AsksInside())
    state = call(agent, ASKED, THREAD)
    assert [question.value for question in state["__interrupt__"]] == ["really pay?"]
    state = call(agent, answered(state, "yes"), THREAD)
    assert "__interrupt__" not in state
    assert effects.lines() == [PAID]
    assert when.times == 1


@pytest.mark.parametrize("says", [None, 0, "", [], "no", ValueError("broken")], ids=repr)
def test_only_an_explicit_false_lets_a_call_pass(says: Any, mode: Any, effects: Effects, stored: Any) -> None:
    model = Scripted(calls(PAY), "done")
    policies = {"pay": {"allowed_decisions": ["approve", "reject"], "when": Odd(says)}}
    agent = agent_of(effects, model, stored, approval(mode, **policies))
    assert actions(agent.invoke(ASKED, THREAD)) == [("pay", PAY[2])]
    assert effects.lines() == []


def test_what_a_predicate_or_a_description_does_to_the_arguments_it_sees_changes_no_call(
    mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    def only_large(request: Any) -> bool:
        return bool(request.tool_call["args"].pop("amount") > 5)

    def in_words(tool_call: Any, state: Any, runtime: Any) -> str:
        return f"Pay {tool_call['args'].pop('to')}?"

    policy = {"allowed_decisions": ["approve"], "when": only_large, "description": in_words}
    large = ("pay", "c2", {"to": "bob", "amount": 6})
    model = Scripted(calls(PAY, large), "done")
    agent = agent_of(effects, model, stored, approval(mode, pay=policy))
    state = call(agent, ASKED, THREAD)
    assert actions(state) == [("pay", large[2])]
    call(agent, resume(state, APPROVE), THREAD)
    assert sorted(effects.lines()) == [PAID, "paid 6 to bob"]
    assert [c["args"] for m in model.shown[-1] for c in getattr(m, "tool_calls", ())] == [PAY[2], large[2]]


def test_a_person_is_not_shown_arguments_that_the_tool_gets_from_elsewhere(
    mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    @tool
    def pay(to: str, payer: Annotated[str, InjectedState("payer")]) -> str:
        """Pay somebody."""
        effects.witness.append(f"{payer} paid {to}")
        return "paid"

    class State(AgentState[Any]):
        payer: str

    model = Scripted(calls(("pay", "c1", {"to": "ana", "payer": "somebody else"})), "done")
    agent = agent_of(effects, model, stored, approval(mode, pay=True), tools=[pay], state_schema=State)
    state = call(agent, {**ASKED, "payer": "eve"}, THREAD)
    assert actions(state) == [("pay", {"to": "ana"})]
    assert "somebody else" not in repr(state["__interrupt__"])
    call(agent, resume(state, APPROVE), THREAD)
    assert effects.lines() == ["eve paid ana"]
