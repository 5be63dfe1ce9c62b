"""Graphs for the tests of runs: they ask, wait to be let on, fail, say things, and note what they did."""

from __future__ import annotations

import asyncio
import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

from waitpoint.graph import START, MessagesState, StateGraph
from waitpoint.types import Send, interrupt


class Log(TypedDict):
    log: Annotated[list[Any], operator.add]


class Gate:
    """Holds a node until it is opened; tells when the node came to it."""

    def __init__(self) -> None:
        self.reached, self.opened = asyncio.Event(), asyncio.Event()
        self.passes = 0

    async def through(self) -> None:
        self.reached.set()
        await self.opened.wait()
        self.passes += 1


def held(gate: Gate, name: str = "held") -> Any:
    """Return a graph of three steps, the second of which waits at a gate."""

    def first(state: Log) -> Any:
        return {"log": ["first"]}

    async def second(state: Log) -> Any:
        await gate.through()
        return {"log": ["second"]}

    def third(state: Log) -> Any:
        return {"log": ["third"]}

    graph = StateGraph(Log).add_node(first).add_node(second).add_node(third)
    return graph.add_edge(START, "first").add_edge("first", "second").add_edge("second", "third").compile(name=name)


def failing() -> Any:
    """Return a graph that fails."""

    def kaboom(state: Log) -> Any:
        raise ValueError("kaboom")

    return StateGraph(Log).add_node(kaboom).add_edge(START, "kaboom").compile(name="failing")


def two_questions() -> Any:
    """Return a graph that asks two things at once."""

    def begin(state: Log) -> list[Send]:
        return [Send("ask", {"log": [n]}) for n in ("a", "b")]

    def ask(state: Log) -> Any:
        (name,) = state["log"]
        return {"log": [(name, interrupt({"text": name}))]}

    graph = StateGraph(Log).add_node(ask)
    return graph.add_conditional_edges(START, begin, ["ask"]).compile(name="two")


def asking_inside() -> Any:
    """Return a graph whose node is a graph that asks."""

    def ask(state: Log) -> Any:
        return {"log": [interrupt({"text": "inside"})]}

    child = StateGraph(Log).add_node(ask).add_edge(START, "ask").compile(name="child")
    return StateGraph(Log).add_node("child", child).add_edge(START, "child").compile(name="nested")


def speaking() -> Any:
    """Return a graph with a model that says its words one by one."""
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    async def say(state: MessagesState) -> Any:
        model = GenericFakeChatModel(messages=iter([AIMessage("good day to you", id="m1")]))
        return {"messages": [await model.ainvoke(state["messages"])]}

    return StateGraph(MessagesState).add_node(say).add_edge(START, "say").compile(name="speaking")


def meet(pipe: Path, mode: str) -> None:
    """Wait at a pipe until another process comes to its other end."""
    with pipe.open(mode):
        pass


def asking_later(gate: Gate) -> Any:
    """Return a graph that asks once it is let through a gate."""

    async def plan(state: Log) -> Any:
        await gate.through()
        return {"log": ["plan"]}

    def review(state: Log) -> Any:
        return {"log": [interrupt({"text": "Go on?"})]}

    graph = StateGraph(Log).add_node(plan).add_node(review)
    return graph.add_edge(START, "plan").add_edge("plan", "review").compile(name="later")


def asking_beside(gate: Gate) -> Any:
    """Return a graph that asks in one step beside one that waits at a gate."""

    async def slow(state: Log) -> Any:
        await gate.through()
        return {"log": ["slow"]}

    async def ask(state: Log) -> Any:
        return {"log": [interrupt("go on?")]}

    graph = StateGraph(Log).add_node(ask).add_node(slow).add_edge(START, "ask").add_edge(START, "slow")
    return graph.compile(name="beside")


def counted(folder: Path) -> Any:
    """Return a graph whose steps leave a line each in a file of their thread, before and after a question."""

    def note(state: Any, word: str) -> None:
        with (folder / f"counted-{state['name']}").open("a", encoding="utf-8") as file:
            file.write(f"{word}\n")

    class Named(TypedDict):
        name: str
        log: Annotated[list[Any], operator.add]

    def plan(state: Named) -> Any:
        note(state, "plan")
        return {"log": ["plan"]}

    def review(state: Named) -> Any:
        return {"log": [interrupt({"text": "Go on?"})]}

    def act(state: Named) -> Any:
        note(state, "act")
        return {"log": ["act"]}

    graph = StateGraph(Named).add_node(plan).add_node(review).add_node(act).add_edge(START, "plan")
    return graph.add_edge("plan", "review").add_edge("review", "act").compile(name="counted")


def noting(folder: Path) -> Any:
    """Return a graph that notes each step in a file, meets the test at two pipes, and asks; for a server that is killed."""

    def note(word: str) -> None:
        with (folder / "notes").open("a", encoding="utf-8") as file:
            file.write(f"{word}\n")

    def plan(state: Log) -> Any:
        note("plan")
        return {"log": ["plan"]}

    def work(state: Log) -> Any:
        note("work")
        meet(folder / "reached", "w")
        meet(folder / "go", "r")
        return {"log": ["work"]}

    def review(state: Log) -> Any:
        answer = interrupt({"text": "Go on?"})
        note("answered")
        return {"log": [answer]}

    def act(state: Log) -> Any:
        note("act")
        return {"log": ["act"]}

    graph = StateGraph(Log).add_node(plan).add_node(work).add_node(review).add_node(act).add_edge(START, "plan")
    return graph.add_edge("plan", "work").add_edge("work", "review").add_edge("review", "act").compile(name="noting")
