"""An agent that lets another one pay, built anew in this process: pauses, or answers what waits. Arguments: file, what.

Prints what waits, what the last message says, and how often each model was asked, as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from pydantic import Field

from waitpoint.agents import create_agent
from waitpoint.agents.middleware import HumanInTheLoopMiddleware
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.types import Command

THREAD: Any = {"configurable": {"thread_id": "1"}}
ODD = "call|1:ä/№ '\"{}"  # ids are made by models


class Calls(BaseChatModel):
    """Makes one call, and repeats its result."""

    name: str
    args: dict[str, Any]
    asked: list[int] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "calls"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.asked.append(len(messages))
        call: Any = {"name": self.name, "args": self.args, "id": ODD, "type": "tool_call"}
        last = messages[-1]
        reply = AIMessage(last.text) if isinstance(last, ToolMessage) else AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=reply)])


def main(path: str, what: str) -> None:
    """Ask, or say yes to all that waits."""
    inner, outer = Calls(name="pay", args={"to": "ana"}), Calls(name="clerk", args={"task": "pay"})

    @tool
    def pay(to: str) -> str:
        """Pay somebody."""
        return f"paid {to}"

    approval = HumanInTheLoopMiddleware({"pay": True}, interrupt_mode="per_call")
    hired = create_agent(inner, [pay], middleware=[approval], name="clerk")

    @tool
    def clerk(task: str) -> str:
        """Let the clerk do it."""
        return str(hired.invoke({"messages": [("user", task)]})["messages"][-1].text)

    with SqliteSaver.from_conn_string(path) as saver:
        boss = create_agent(outer, [clerk], checkpointer=saver)
        given: Any = {"messages": [("user", "pay")]}
        if what == "answer":
            given = Command(resume={q.id: {"type": "approve"} for q in boss.get_state(THREAD).interrupts})
        state = boss.invoke(given, THREAD)
        waits = [[q.id, q.value] for q in state.get("__interrupt__", ())]
    print(
        json.dumps({"waits": waits, "last": state["messages"][-1].text, "asked": [len(inner.asked), len(outer.asked)]})
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
