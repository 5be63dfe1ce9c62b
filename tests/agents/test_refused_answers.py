"""An answer that what asked could not take is never a tool's failure: it is raised, and the next answer counts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from pydantic import AfterValidator, ValidationError

from tests.agents.scripted import Scripted, calls
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import HumanInTheLoopMiddleware, ToolErrorMiddleware, ToolRetryMiddleware
from waitpoint.agents.tool_node.node import ToolNode
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.graph import START, MessagesState, StateGraph
from waitpoint.types import Command, interrupt

THREAD = {"configurable": {"thread_id": "1"}}
both = pytest.mark.parametrize("how", ["invoke", "ainvoke"])


def small(number: int) -> int:
    if number > 10:
        raise ValueError("at most 10")
    return number


Small = Annotated[int, AfterValidator(small)]
"""A number whose JSON Schema takes what its validator refuses."""


@pytest.fixture
def saver(tmp_path: Path) -> Any:
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as opened:
        yield opened


async def run(graph: Any, how: str, given: Any) -> Any:
    return graph.invoke(given, THREAD) if how == "invoke" else await graph.ainvoke(given, THREAD)


def results(state: Any) -> list[tuple[str, str]]:
    return [(m.status, m.text) for m in state["messages"] if isinstance(m, ToolMessage)]


def child_that_asks() -> Any:
    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [f"paid {interrupt('how much?', response_schema=Small)}"]}

    return StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask").compile()


@both
@pytest.mark.parametrize(
    "handled",
    [True, False, "it failed", (Exception,), lambda e: "it failed"],
    ids=["all", "none", "text", "types", "function"],
)
@pytest.mark.parametrize("place", ["tool", "graph"])
async def test_a_tool_node_raises_it_whatever_errors_it_handles(place: str, handled: Any, how: str, saver: Any) -> None:
    child = child_that_asks()

    @tool
    def pay() -> str:
        """Pay."""
        if place == "tool":
            return f"paid {interrupt('how much?', response_schema=Small)}"
        return str(child.invoke({"messages": []})["messages"][-1].text)

    node = ToolNode([pay], handle_tool_errors=handled)
    graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile(saver)
    await run(graph, how, {"messages": [calls(("pay", "c1", {}))]})
    for wrong in (11, 12):
        with pytest.raises(ValidationError, match="at most 10"):
            await run(graph, how, Command(resume=wrong))
    assert results(await run(graph, how, Command(resume=3))) == [("success", "paid 3")]


@both
@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize(
    "around",
    [ToolRetryMiddleware(initial_delay=0), ToolErrorMiddleware(lambda e, r: "it failed")],
    ids=lambda m: m.name,
)
async def test_an_edit_that_a_subagent_could_not_take_is_raised_and_can_be_corrected(
    around: Any, mode: Any, how: str, saver: Any
) -> None:
    paid: list[int] = []

    @tool
    def pay(amount: Small) -> str:
        """Pay."""
        paid.append(amount)
        return f"paid {amount}"

    approval = HumanInTheLoopMiddleware({"pay": True}, interrupt_mode=mode)
    clerk = create_agent(Scripted(calls(("pay", "p1", {"amount": 5})), "all paid"), [pay], middleware=[approval])

    @tool
    def ask_clerk() -> str:
        """Let the clerk pay."""
        return str(clerk.invoke({"messages": [("user", "pay")]})["messages"][-1].text)

    boss = create_agent(
        Scripted(calls(("ask_clerk", "c1", {})), "done"), [ask_clerk], middleware=[around], checkpointer=saver
    )
    state = await run(boss, how, {"messages": [("user", "pay")]})
    (question,) = state["__interrupt__"]

    def edited(amount: int) -> Any:
        decision = {"type": "edit", "edited_action": {"name": "pay", "args": {"amount": amount}}}
        return Command(resume={question.id: {"decisions": [decision]} if mode == "batched" else decision})

    for wrong in (11, 12):
        with pytest.raises(ValidationError):
            await run(boss, how, edited(wrong))
    assert paid == []
    assert results(await run(boss, how, edited(7))) == [("success", "all paid")]
    assert paid == [7]
