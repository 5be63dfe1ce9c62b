"""Where an agent and the one around it both ask about a tool, a person may do what both allow."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.agents.scripted import Scripted, calls
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import HumanInTheLoopMiddleware
from waitpoint.types import Command

CONFIG: Any = {"configurable": {"thread_id": "1"}}
ONLY_NO: Any = {"allowed_decisions": ["reject"], "when": lambda request: True}


@pytest.mark.parametrize(
    ("outer", "inner", "left"),
    [
        (ONLY_NO, True, {"reject", "respond"}),
        (True, ONLY_NO, {"reject", "respond"}),
        ({"allowed_decisions": ["approve", "reject"]}, {"allowed_decisions": ["edit", "reject"]}, {"reject"}),
        ({"allowed_decisions": ["approve"]}, {"allowed_decisions": ["edit"]}, {"reject"}),
        ({"allowed_decisions": ["approve", "reject"]}, True, {"approve", "reject", "respond"}),
    ],
    ids=["outer only no", "inner only no", "one in common", "none in common", "outer narrower"],
)
def test_what_a_person_may_do_is_what_both_rules_allow(
    outer: Any, inner: Any, left: set[str], stored: Any, mode: Any
) -> None:
    paid: list[str] = []

    def pay(to: str) -> str:
        """Pay somebody."""
        paid.append(to)
        return "paid"

    inner_gate = HumanInTheLoopMiddleware({"pay": inner}, interrupt_mode=mode)
    payer = create_agent(Scripted(calls(("pay", "p", {"to": "bob"})), "told"), [pay], middleware=[inner_gate])

    def delegate(task: str) -> str:
        """Let the payer do it."""
        said: str = payer.invoke({"messages": [("user", task)]})["messages"][-1].text
        return said

    outer_gate = HumanInTheLoopMiddleware({"pay": outer}, interrupt_mode=mode)
    agent = create_agent(
        Scripted(calls(("delegate", "d", {"task": "pay bob"})), "done"), [delegate, pay], middleware=[outer_gate],
        checkpointer=stored,
    )  # fmt: skip
    (question,) = agent.invoke({"messages": [("user", "go")]}, CONFIG)["__interrupt__"]

    def answer(decision: dict[str, Any]) -> Any:
        batched = "action_requests" in question.value
        return agent.invoke(Command(resume={question.id: {"decisions": [decision]} if batched else decision}), CONFIG)

    edit = {"type": "edit", "edited_action": {"name": "pay", "args": {"to": "carl"}}}
    for decision in ({"type": "approve"}, edit, {"type": "respond", "message": "paid already"}):
        if decision["type"] not in left:
            with pytest.raises(ValidationError):
                answer(decision)
    assert paid == []
    assert answer({"type": "reject"})["messages"][-1].text == "done"
    assert paid == []
