"""A graph with effects before, between and after its questions: in plain nodes, in steps of each kind, in a fan-out, in
subgraphs as a node and called by a function."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from tests.crash.programs.world import effect, effect_async, here, probe
from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.graph import START, StateGraph
from waitpoint.types import interrupt, step

# Effects that stand in a step, and what each step does about doubt.
STEPS = {
    "pay.rerun": "rerun", "pay.ask": "ask", "pay.probe": "probe", "pay.rerun2": "rerun", "pay.ask2": "ask",
    "left.rerun": "rerun", "right.ask": "ask", "right.probe": "probe",
    "inner.ask": "ask", "inner.rerun": "rerun", "inner2.probe": "probe",
    "caller.ask": "ask", "caller.probe": "probe", "helper.rerun": "rerun", "helper.ask": "ask",
}  # fmt: skip
# Effects that stand plainly in a node, behind all of its questions: done once unless the node's end was not recorded.
PLAIN = {"prepare.after": "prepare", "left.plain": "left", "third.after": "third", "helper2.plain": "helper2"}


class Order(TypedDict):
    log: Annotated[list[str], operator.add]


def prepare(state: Order) -> dict[str, Any]:
    effect("prepare.before")
    first = interrupt("first?")
    effect("prepare.between")
    second = interrupt("second?")
    effect("prepare.after")
    return {"log": [first, second]}


def pay(state: Order) -> dict[str, Any]:
    one = step(effect, "pay.rerun")
    two = step(effect, "pay.ask", in_doubt="ask")
    yes = interrupt(f"{one} and {two}?")
    three = step(effect, "pay.probe", in_doubt=probe)
    again = interrupt("really?")
    four = step(effect, "pay.rerun2", key="second")
    five = step(effect, "pay.ask2", in_doubt="ask")
    return {"log": [one, two, yes, three, again, four, five]}


def left(state: Order) -> dict[str, Any]:
    effect("left.plain")
    return {"log": [step(effect, "left.rerun")]}


def right(state: Order) -> dict[str, Any]:
    _await_left()
    one = step(effect, "right.ask", in_doubt="ask")
    yes = interrupt("right?")
    return {"log": [one, yes, step(effect, "right.probe", in_doubt=probe)]}


def third(state: Order) -> dict[str, Any]:
    yes = interrupt("third?")
    effect("third.after")
    return {"log": [yes]}


def _await_left() -> None:
    """Keep the order of points the same in every run: the sibling is on record before this one does anything."""
    world = here()
    if not world.is_ordered:
        return
    (thread,) = world.store.threads()
    if not any(row.node == "left" and row.status == "done" for row in world.store.load(thread.key).outcomes):
        world.await_point("after commit (left done)")


def inner(state: Order) -> dict[str, Any]:
    one = step(effect, "inner.ask", in_doubt="ask")
    yes = interrupt("inner?")
    return {"log": [one, yes, step(effect, "inner.rerun")]}


def inner2(state: Order) -> dict[str, Any]:
    return {"log": [step(effect, "inner2.probe", in_doubt=probe)]}


def helper(state: Order) -> dict[str, Any]:
    one = step(effect, "helper.rerun")
    yes = interrupt("helper?")
    return {"log": [one, yes, step(effect, "helper.ask", in_doubt="ask")]}


def helper2(state: Order) -> dict[str, Any]:
    return {"log": [effect("helper2.plain")]}


def caller(state: Order) -> dict[str, Any]:
    one = step(effect, "caller.ask", in_doubt="ask")
    inside = _chain(helper, helper2).compile(name="helpers").invoke({"log": []})
    return {"log": [one, *inside["log"], step(effect, "caller.probe", in_doubt=probe)]}


def _chain(*nodes: Any) -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(Order)
    graph.add_sequence(list(nodes))
    graph.add_edge(START, nodes[0].__name__)
    return graph


def build(saver: BaseCheckpointSaver) -> Any:
    """Build the graph."""
    graph = _chain(prepare, pay)
    for node in (left, right, third, caller):
        graph.add_node(node)
    graph.add_node("child", _chain(inner, inner2).compile(name="child"))
    for name in ("left", "right", "third"):
        graph.add_edge("pay", name)
    graph.add_edge(["left", "right", "third"], "child")
    graph.add_edge("child", "caller")
    return graph.compile(checkpointer=saver, name="order")


# --- the same under asyncio, without the fan-out ----------------------------------------------------------------------


async def pay_async(state: Order) -> dict[str, Any]:
    one = await step(effect_async, "pay.rerun")
    two = await step(effect_async, "pay.ask", in_doubt="ask")
    yes = interrupt(f"{one} and {two}?")
    three = await step(effect_async, "pay.probe", in_doubt=probe)
    again = interrupt("really?")
    four = step(effect, "pay.rerun2", key="second")
    five = await step(effect_async, "pay.ask2", in_doubt="ask")
    return {"log": [one, two, yes, three, again, four, five]}


async def inner_async(state: Order) -> dict[str, Any]:
    one = await step(effect_async, "inner.ask", in_doubt="ask")
    yes = interrupt("inner?")
    return {"log": [one, yes, await step(effect_async, "inner.rerun")]}


async def caller_async(state: Order) -> dict[str, Any]:
    one = await step(effect_async, "caller.ask", in_doubt="ask")
    inside = await _chain(helper, helper2).compile(name="helpers").ainvoke({"log": []})
    return {"log": [one, *inside["log"], await step(effect_async, "caller.probe", in_doubt=probe)]}


def build_async(saver: BaseCheckpointSaver) -> Any:
    """Build the graph for an event loop."""
    graph = _chain(prepare, pay_async)
    graph.add_node("child", _chain(inner_async, inner2).compile(name="child"))
    graph.add_node(caller_async)
    graph.add_edge("pay_async", "child")
    graph.add_edge("child", "caller_async")
    return graph.compile(checkpointer=saver, name="order")
