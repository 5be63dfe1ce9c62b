"""What a deploy changes while a call waits: the mode of asking, the schema of the tool."""

from __future__ import annotations

from typing import Any

from tests.agents.scripted import Scripted, calls
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import HumanInTheLoopMiddleware
from waitpoint.types import Command

CONFIG: Any = {"configurable": {"thread_id": "1"}}
GO: Any = {"messages": [("user", "go")]}
OTHER = {"batched": "per_call", "per_call": "batched"}


class Sender:
    def __init__(self) -> None:
        self.sent: list[Any] = []

    def first(self) -> Any:
        def send(to: str) -> str:
            """Send something."""
            self.sent.append(to)
            return f"sent to {to}"

        return send

    def second(self) -> Any:
        def send(to: str, urgent: bool = False) -> str:
            """Send something."""
            self.sent.append((to, urgent))
            return f"sent to {to}"

        return send


def agent(saver: Any, model: Scripted, tool: Any, mode: Any) -> Any:
    return create_agent(
        model, [tool], middleware=[HumanInTheLoopMiddleware({"send": True}, interrupt_mode=mode)], checkpointer=saver
    )


def answered(state: Any, *decisions: Any) -> Command[Any]:
    questions = state["__interrupt__"]
    if "action_requests" in questions[0].value:
        return Command(resume={questions[0].id: {"decisions": list(decisions)}})
    by_call = sorted(questions, key=lambda q: q.value["tool_call_id"])
    return Command(resume={q.id: decision for q, decision in zip(by_call, decisions, strict=True)})


TWO = calls(("send", "a", {"to": "ann"}), ("send", "b", {"to": "bob"}))


def test_a_thread_that_waits_is_answered_by_an_agent_that_asks_in_the_other_mode(stored: Any, mode: str) -> None:
    sender = Sender()
    state = agent(stored, Scripted(TWO), sender.first(), mode).invoke(GO, CONFIG)
    other = agent(stored, Scripted("done"), sender.first(), OTHER[mode])
    edit = {"type": "edit", "edited_action": {"name": "send", "args": {"to": "carl"}}}
    done = other.invoke(answered(state, {"type": "reject", "message": "not ann"}, edit), CONFIG)
    assert sender.sent == ["carl"]
    assert [m.type for m in done["messages"]] == ["human", "ai", "tool", "tool", "ai"]
    assert done["messages"][2].content == "not ann"
    assert done["messages"][3].content.endswith("Tool response:\nsent to carl")


def test_an_approval_is_not_one_of_a_tool_whose_arguments_mean_something_else_now(stored: Any, mode: str) -> None:
    sender = Sender()
    state = agent(stored, Scripted(TWO), sender.first(), mode).invoke(GO, CONFIG)
    deployed = agent(stored, Scripted("done"), sender.second(), mode)
    yes = {"type": "approve"}
    again = deployed.invoke(answered(state, yes, yes), CONFIG)
    assert sender.sent == []
    old = {q.id for q in state["__interrupt__"]}
    assert again["__interrupt__"]
    assert old.isdisjoint(q.id for q in again["__interrupt__"])
    done = deployed.invoke(answered(again, yes, yes), CONFIG)
    assert sorted(sender.sent) == [("ann", False), ("bob", False)]
    assert done["messages"][-1].content == "done"
