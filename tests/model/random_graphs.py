"""Graphs drawn at random, as plain descriptions, and two ways to build one.

In one way its questions are `interrupt()` and its effects are steps, in the other both are plain function calls. A body
is a list of actions; a graph is a row of stages, each of which is wired to the next.
"""

from __future__ import annotations

import asyncio
import operator
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from hypothesis import strategies as st

from waitpoint.graph import END, START, StateGraph
from waitpoint.types import Send, interrupt, step

Kind = Literal["ask", "twins", "loop", "both", "step", "step_ask", "fail", "call"]
MOST_QUESTIONS = 10


@dataclass(frozen=True)
class Action:
    """One thing that a body does. `tries`: how many answers a validation loop refuses; `inner`: the graph it calls."""

    kind: Kind
    tries: int = 0
    inner: Graph | None = None


@dataclass(frozen=True)
class Stage:
    """Nodes that run beside each other. `count`: rounds of a loop, or how many times a worker is sent to."""

    kind: Literal["nodes", "send", "loop", "graph"]
    bodies: tuple[tuple[Action, ...], ...] = ()
    count: int = 1
    inner: Graph | None = None


@dataclass(frozen=True)
class Graph:
    """A row of stages."""

    stages: tuple[Stage, ...]


# --- drawing ----------------------------------------------------------------------------------------------------------


def graphs(depth: int = 2) -> st.SearchStrategy[Graph]:
    """Draw a graph that holds graphs down to a depth, and asks a few times in all."""
    return _graphs(depth).filter(lambda graph: _asks(graph) <= MOST_QUESTIONS)


# Composites, not `builds`: hypothesis takes minutes to print a failing example of nested ones.


@st.composite
def _graphs(draw: st.DrawFn, depth: int) -> Graph:
    return Graph(tuple(draw(_stages(depth)) for _ in range(draw(st.integers(1, 1 + depth)))))


@st.composite
def _stages(draw: st.DrawFn, depth: int) -> Stage:
    kind: Any = draw(st.sampled_from(["nodes", "nodes", "send", "loop", *(["graph"] if depth > 1 else [])]))
    if kind == "graph":
        return Stage(kind, inner=draw(_graphs(depth - 1)))
    width = draw(st.integers(1, 1 + depth)) if kind == "nodes" else 1
    count = 1 if kind == "nodes" else draw(st.integers(1, 3))
    bodies = [[draw(_actions(depth)) for _ in range(draw(st.integers(0, 1 + depth)))] for _ in range(width)]
    return Stage(kind, tuple(map(tuple, bodies)), count)


@st.composite
def _actions(draw: st.DrawFn, depth: int) -> Action:
    kinds = ["ask", "ask", "twins", "both", "loop", "step", "step_ask", "fail", *(["call"] if depth > 1 else [])]
    kind: Any = draw(st.sampled_from(kinds))
    if kind == "call":
        return Action(kind, inner=draw(_graphs(depth - 1)))
    return Action(kind, tries=draw(st.integers(0, 2)) if kind == "loop" else 0)


def _asks(graph: Graph) -> int:
    """Count the questions that a graph asks."""
    return sum(
        (_asks(stage.inner) if stage.inner is not None else 0)
        + stage.count * sum(_asked_by(action) for body in stage.bodies for action in body)
        for stage in graph.stages
    )


def _asked_by(action: Action) -> int:
    inner = 0 if action.inner is None else _asks(action.inner)
    return inner + {"ask": 1, "twins": 2, "both": 2, "loop": action.tries + 1}.get(action.kind, 0)


# --- answers ----------------------------------------------------------------------------------------------------------

ODD_ANSWERS: list[Any] = ["yes", None, False, True, "", 0, {}, [], {"type": "approve"}, ["a", {"b": 1.5}], "again"]


def answer_to(value: dict[str, Any]) -> Any:
    """Answer a question: always the same to the same."""
    if "try" in value:
        return "good" if value["try"] >= value["tries"] else "again"
    return ODD_ANSWERS[zlib.crc32(value["ask"].encode()) % len(ODD_ANSWERS)]


# --- worlds -----------------------------------------------------------------------------------------------------------


@dataclass
class PlainWorld:
    """Where questions and steps are plain function calls."""

    asked: list[dict[str, Any]] = field(default_factory=list)
    effects: list[str] = field(default_factory=list)
    marks: Counter[str] = field(default_factory=Counter)

    def ask(self, value: dict[str, Any], key: str | None = None) -> Any:
        self.asked.append(value)
        return answer_to(value)

    def effect(self, label: str) -> str:
        self.effects.append(label)
        return f"did {label}"

    def step(self, label: str, in_doubt: Any) -> str:
        return self.effect(label)

    def fail(self, label: str) -> None:
        """Nothing fails here."""

    def mark(self, label: str) -> None:
        self.marks[label] += 1


class Flaw(Exception):
    """What a body raises once."""


@dataclass
class RealWorld(PlainWorld):
    """Where they are `interrupt()` and `step()`."""

    failed: set[str] = field(default_factory=set)

    def ask(self, value: dict[str, Any], key: str | None = None) -> Any:
        return interrupt(value, key=key)

    def step(self, label: str, in_doubt: Any) -> str:
        return step(self.effect, label, in_doubt=in_doubt)

    def fail(self, label: str) -> None:
        if label not in self.failed:
            self.failed.add(label)
            raise Flaw(label)


# --- building ---------------------------------------------------------------------------------------------------------


class State(TypedDict):
    log: Annotated[list[Any], operator.add]
    item: NotRequired[int]


class Builder:
    """Builds a graph for a world. `is_async`: nodes are coroutines. Labels begin with `prefix`."""

    def __init__(self, world: PlainWorld, prefix: str, *, is_async: bool) -> None:
        self.world, self.prefix, self.is_async = world, prefix, is_async

    def build(self, graph: Graph, saver: Any = None) -> Any:
        """Return the compiled graph."""
        builder = StateGraph(State)
        rows = [self._stage(builder, f"{self.prefix}s{i}", stage) for i, stage in enumerate(graph.stages)]
        for name in rows[0].entries:
            builder.add_edge(START, name)
        for row, following in zip(rows, [*rows[1:], None], strict=True):
            row.wire(following.entries if following is not None else [END])
        return builder.compile(checkpointer=saver, name=f"graph {self.prefix}")

    def _stage(self, builder: Any, name: str, stage: Stage) -> _Row:
        if stage.kind == "graph":
            assert stage.inner is not None
            inner = Builder(self.world, f"{name}/", is_async=self.is_async)
            builder.add_node(name, inner.build(stage.inner))
            return _Row(builder, [name])
        if stage.kind == "send":
            builder.add_node(f"{name}n0", lambda state: {})
            sends = [Send(f"{name}n1", {"log": [], "item": i}) for i in range(stage.count)]
            builder.add_conditional_edges(f"{name}n0", lambda state: sends)
            builder.add_node(f"{name}n1", self._body(f"{name}n1", stage.bodies[0]))
            return _Row(builder, [f"{name}n0"], [f"{name}n1"])
        names = [f"{name}n{i}" for i in range(len(stage.bodies))]
        for node, body in zip(names, stage.bodies, strict=True):
            builder.add_node(node, self._body(node, body))
        return _Row(builder, names, loops=stage.count if stage.kind == "loop" else 0)

    def _body(self, name: str, actions: tuple[Action, ...]) -> Callable[..., Any]:
        def begin(state: State) -> tuple[str, list[Any]]:
            return f"{name}@{state['log'].count(f'visit {name}')}#{state.get('item', '')}", [f"visit {name}"]

        def body(state: State) -> dict[str, Any]:
            tag, log = begin(state)
            for i, action in enumerate(actions):
                self.world.mark(f"{tag}.{i}")
                log += self._act(action, f"{tag}.{i}")
            return {"log": log}

        async def body_async(state: State) -> dict[str, Any]:
            tag, log = begin(state)
            for i, action in enumerate(actions):
                self.world.mark(f"{tag}.{i}")
                log += await self._act_async(action, f"{tag}.{i}")
            return {"log": log}

        return body_async if self.is_async else body

    def _act(self, action: Action, label: str) -> list[Any]:
        world = self.world
        match action.kind:
            case "ask":
                return [world.ask({"ask": label})]
            case "twins":
                return [world.ask({"ask": label[:-1]}, key=f"{label} {i}") for i in range(2)]
            case "both":
                return [world.ask({"ask": f"{label}{letter}"}) for letter in "ab"]
            case "loop":
                answers = [world.ask({"ask": label, "try": 0, "tries": action.tries})]
                while answers[-1] != "good":
                    answers.append(world.ask({"ask": label, "try": len(answers), "tries": action.tries}))
                return answers
            case "step" | "step_ask":
                return [world.step(label, "ask" if action.kind == "step_ask" else "rerun")]
            case "fail":
                world.fail(label)
                return []
            case "call":
                return list(self._inner(action, label).invoke({"log": []})["log"])

    async def _act_async(self, action: Action, label: str) -> list[Any]:
        if action.kind == "both":

            async def ask(letter: str) -> Any:
                return self.world.ask({"ask": f"{label}{letter}"})

            return list(await asyncio.gather(ask("a"), ask("b")))
        if action.kind == "call":
            return list((await self._inner(action, label).ainvoke({"log": []}))["log"])
        return self._act(action, label)

    def _inner(self, action: Action, label: str) -> Any:
        assert action.inner is not None
        return Builder(self.world, f"{label}/".replace(":", ""), is_async=self.is_async).build(action.inner)


class _Row:
    """The nodes of a stage: where it is entered, and how it leads on."""

    def __init__(self, builder: Any, entries: list[str], exits: list[str] | None = None, *, loops: int = 0) -> None:
        self.builder, self.entries, self.loops = builder, entries, loops
        self.exits = exits or entries

    def wire(self, targets: list[str]) -> None:
        """Lead on to these nodes."""
        if self.loops:
            (name,) = self.exits

            def again(state: State) -> list[str]:
                return [name] if state["log"].count(f"visit {name}") < self.loops else targets

            self.builder.add_conditional_edges(name, again)
            return
        for target in targets:
            if len(self.exits) > 1 and target != END:
                self.builder.add_edge(self.exits, target)
            else:
                for name in self.exits:
                    self.builder.add_edge(name, target)
