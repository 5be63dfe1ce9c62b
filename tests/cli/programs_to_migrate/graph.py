"""A graph that asks, loops and fans out."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import (
    END,
    START,  # where it begins
    StateGraph,
)
from langgraph.types import Command, RetryPolicy, Send, interrupt

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


class Order(TypedDict, total=False):
    items: list[str]
    log: Annotated[list[str], operator.add]


def plan(state: Order) -> Order:
    return {"log": [f"plan {len(state['items'])}"]}


def spread(state: Order) -> list[Send]:
    return [Send("check", {"items": [item]}) for item in state["items"]]


def check(state: Order) -> Order:
    (item,) = state["items"]
    return {"log": [f"checked {item}"]}


def approve(state: Order) -> Command[str]:
    answer = interrupt({"question": "Order?", "items": state["items"]})
    return Command(update={"log": [f"answer {answer}"]}, goto="buy" if answer == "yes" else END)


def buy(state: Order) -> Order:
    return {"log": ["bought"]}


def build() -> CompiledStateGraph:
    builder = StateGraph(Order)
    builder.add_node("plan", plan, retry_policy=RetryPolicy(max_attempts=2))
    builder.add_node("check", check)
    builder.add_node("approve", approve, destinations=("buy", END))
    builder.add_node("buy", buy)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", spread, ["check"])
    builder.add_edge("check", "approve")
    builder.add_edge("buy", END)
    return builder.compile(checkpointer=MemorySaver())


def main() -> list[Any]:
    graph, seen = build(), []
    for thread, answer in (("1", "yes"), ("2", "no")):
        config = {"configurable": {"thread_id": thread}}
        paused = graph.invoke({"items": ["tea", "rice"]}, config)
        seen.append([i.value for i in paused["__interrupt__"]])
        seen.append(graph.get_state(config).next)
        seen.append(graph.invoke(Command(resume=answer), config))
        seen.append([s.metadata["step"] for s in graph.get_state_history(config)])
    return seen
