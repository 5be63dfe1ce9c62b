"""Tools whose effects a witness counts, decisions about their calls, and what the model is told of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, tool

from tests.agents.scripted import Scripted
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from waitpoint.testing.witness import Witness
from waitpoint.types import Command

Call = Callable[..., Any]

ASKED = {"messages": [("user", "go on")]}
APPROVE = {"type": "approve"}
REJECT = {"type": "reject", "message": "no"}
RESPOND = {"type": "respond", "message": "done by hand"}


def thread(name: str = "1") -> dict[str, Any]:
    """Return the config of a thread."""
    return {"configurable": {"thread_id": name}}


THREAD = thread()


def edit(name: str, **args: Any) -> dict[str, Any]:
    """Return the decision that another action runs."""
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


class Effects:
    """Tools that leave a line for each effect: `pay` and `wipe` are dangerous, `read` is not."""

    def __init__(self, witness: Witness) -> None:
        self.witness = witness

        @tool
        def pay(to: str, amount: int) -> str:
            """Pay somebody."""
            witness.append(f"paid {amount} to {to}")
            return f"paid {to}"

        @tool
        def wipe(path: str) -> str:
            """Delete a file."""
            witness.append(f"wiped {path}")
            return f"wiped {path}"

        @tool
        def read(path: str) -> str:
            """Read a file."""
            witness.append(f"read {path}")
            return f"contents of {path}"

        self.pay, self.wipe, self.read = pay, wipe, read
        self.tools: list[BaseTool] = [pay, wipe, read]

    def lines(self) -> list[str]:
        """Return what happened, in order."""
        return self.witness.lines()


GATED: dict[str, Any] = {
    "pay": True,
    "wipe": {"allowed_decisions": ["reject"]},
    "read": False,
}


def approval(mode: Any, **policies: Any) -> HumanInTheLoopMiddleware:
    """Return the approval middleware, by default with everything allowed for `pay` and only a no for `wipe`."""
    return HumanInTheLoopMiddleware(policies or GATED, interrupt_mode=mode)


def agent_of(
    effects: Effects, model: Scripted, saver: Any, *middleware: AgentMiddleware[Any, Any, Any], **options: Any
) -> Any:
    """Return an agent with the tools of `effects`."""
    tools = options.pop("tools", effects.tools)
    return create_agent(model, tools, middleware=middleware, checkpointer=saver, **options)


def resume(state: Any, *decisions: Any) -> Command[Any]:
    """Return the command that answers all open questions with these decisions, each to its call, in the order shown."""
    left = list(decisions)
    answers: dict[str, Any] = {}
    for question in state["__interrupt__"]:
        if "action_requests" in question.value:
            taken = [left.pop(0) for _ in question.value["action_requests"]]
            answers[question.id] = {"decisions": taken}
        else:
            answers[question.id] = left.pop(0)
    assert not left, f"{len(left)} decisions too many"
    return Command(resume=answers)


def answered(state: Any, answer: Any) -> Command[Any]:
    """Return the command that gives this very answer to the one open question."""
    (question,) = state["__interrupt__"]
    return Command(resume={question.id: answer})


def actions(state: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls that a pause asks about: name and arguments; none if it is the end."""
    found: list[tuple[str, dict[str, Any]]] = []
    for question in state.get("__interrupt__", ()):
        for action in question.value.get("action_requests", [question.value]):
            found.append((action["name"], action["args"]))
    return found


def results(state: Any) -> list[tuple[str, str, str]]:
    """Return the answers to calls: call id, status, text."""
    return [(m.tool_call_id, m.status, m.text) for m in state["messages"] if isinstance(m, ToolMessage)]


def shown(model: Scripted) -> list[tuple[str, str, str]]:
    """Return the answers to calls that the model was shown last."""
    return results({"messages": model.shown[-1]})


def ids(state: Any) -> Sequence[str]:
    """Return the ids of the open questions."""
    return [question.id for question in state["__interrupt__"]]
