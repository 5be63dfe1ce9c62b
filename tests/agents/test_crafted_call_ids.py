"""Call ids are the model's: whatever it calls its calls, a yes to one is no yes to another."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from tests.agents.scripted import Scripted
from waitpoint.agents import create_agent
from waitpoint.agents.gate import POLICIES
from waitpoint.agents.middleware import HumanInTheLoopMiddleware
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.graph import MessagesState, StateGraph
from waitpoint.prebuilt import ToolNode
from waitpoint.types import Command

CONFIG: Any = {"configurable": {"thread_id": "1"}}


@pytest.mark.parametrize("crafted", ["a#0.5", "a#0", "a#0.0", "a#1.0", "#", "tool:a"])
def test_a_yes_to_a_call_whose_id_looks_like_a_key_of_another_is_for_it_alone(crafted: str) -> None:
    sent: list[str] = []

    def send(to: str) -> str:
        """Send something."""
        sent.append(to)
        return "sent"

    calls = [{"name": "send", "args": {"to": "bob"}, "id": i} for i in (crafted, "a")]
    gate = HumanInTheLoopMiddleware({"send": True}, interrupt_mode="per_call")
    agent = create_agent(Scripted("hi"), [send], middleware=[gate])
    # All calls in one task, so that their records lie in one journal.
    built = StateGraph(MessagesState).add_node("tools", ToolNode([send])).add_edge("__start__", "tools")
    graph = built.compile(checkpointer=InMemorySaver())
    graph.spec = graph.spec._replace(extras={POLICIES: agent.spec.extras[POLICIES]})
    asked = graph.invoke({"messages": [AIMessage("", tool_calls=calls)]}, CONFIG)
    by_call = {i.value["tool_call_id"]: i.id for i in asked["__interrupt__"]}
    assert set(by_call) == {crafted, "a"}
    asked = graph.invoke(Command(resume={by_call[crafted]: {"type": "approve"}}), CONFIG)
    assert [i.value["tool_call_id"] for i in asked["__interrupt__"]] == ["a"]
    assert sent == ["bob"]
    done = graph.invoke(Command(resume={by_call["a"]: {"type": "reject"}}), CONFIG)
    assert sent == ["bob"]
    assert [m.status for m in done["messages"][1:]] == ["success", "error"]
