"""Tools that note what they did, an agent that asks about them, and short ways to decide and to read the outcome."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import BaseTool, tool

from waitpoint.agents import create_agent
from waitpoint.agents.middleware import HumanInTheLoopMiddleware
from waitpoint.types import Command

START = {"messages": [("user", "go")]}
APPROVE: dict[str, Any] = {"type": "approve"}
REJECT: dict[str, Any] = {"type": "reject", "message": "no"}


class Post:
    """The tools `send`, `draft` and `read`."""

    def __init__(self) -> None:
        self.did: list[str] = []

        @tool
        def send(to: str, cc: str | None = None) -> str:
            """Send a mail."""
            self.did.append(f"send {to} {cc}")
            return f"sent to {to}"

        @tool
        def draft(to: str) -> str:
            """Draft a mail."""
            self.did.append(f"draft {to}")
            return f"drafted to {to}"

        @tool
        def read(box: str) -> str:
            """Read a mail box."""
            self.did.append(f"read {box}")
            return f"mails in {box}"

        self.tools: list[BaseTool] = [send, draft, read]

    def agent(self, saver: Any, model: Any, interrupt_on: Any, *inside: Any, **options: Any) -> Any:
        """Make an agent; options are those of the approval middleware."""
        return agent_with(saver, model, self.tools, interrupt_on, *inside, **options)


def agent_with(saver: Any, model: Any, tools: Any, interrupt_on: Any, *inside: Any, **options: Any) -> Any:
    approval = HumanInTheLoopMiddleware(interrupt_on, **options)
    return create_agent(model, tools, middleware=[approval, *inside], checkpointer=saver)


def edit(name: str, **args: Any) -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


def answered(result: Any, *decisions: Any, **by_call: Any) -> Command[Any]:
    """Return the answer to a pause in either mode: decisions in the order of the calls, or by their ids."""
    questions = result["__interrupt__"]
    if "action_requests" in questions[0].value:
        return Command(resume={"decisions": list(decisions)})
    if by_call:
        return Command(resume={q.id: by_call[q.value["tool_call_id"]] for q in questions})
    return Command(resume={q.id: d for q, d in zip(questions, decisions, strict=True)})


def results(state: Any) -> dict[str, tuple[str, str]]:
    """Return status and text of each call's answer."""
    messages: list[BaseMessage] = state["messages"] if isinstance(state, dict) else state
    return {m.tool_call_id: (m.status, m.text) for m in messages if isinstance(m, ToolMessage)}
