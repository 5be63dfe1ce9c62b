"""Graphs as data, and how such data are drawn: what the nodes do, what leads where, which graphs lie inside others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hypothesis import strategies as st


class Edge(NamedTuple):
    """What follows a node. `kind`: edge, router, sends, loop, join; `number` is its limit or count."""

    kind: str
    source: str
    target: str
    number: int = 0


class Act(NamedTuple):
    """What a node does, in order: ask, say (a custom part), fail `number` times, or call a graph."""

    kind: str
    number: int = 0
    graph: Any = None


@dataclass(frozen=True)
class Node:
    """A node: what it does, the keys it writes, where its command goes, and the policies around it."""

    name: str
    acts: tuple[Act, ...] = ()
    writes: tuple[str, ...] = ("log",)
    goto: tuple[str, ...] = ()
    graph: Graph | None = None
    attempts: int = 1
    deferred: bool = False
    cached: bool = False
    handled: bool = False


@dataclass(frozen=True)
class Graph:
    """A graph. `memory` is what is given to `compile` as its checkpointer, `own` whether its state has keys of its own."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    memory: bool | None = None
    own: bool = False


@dataclass(frozen=True)
class Flavour:
    """Which features the drawn graphs have, so that each test can dwell on some."""

    asks: bool = True
    fails: bool = False
    depth: int = 0
    memories: tuple[bool | None, ...] = (None,)
    stops: bool = False
    joins: bool = False
    upward: bool = False
    linear: bool = False
    defers: bool = False  # without fan-outs: there a deferred node runs beside them, here after them


NAMES = ("abcde", "pqr", "xyz", "uvw")
SENT = "sent"  # the node that fan-outs run; none of its graphs has a memory, since its tasks run side by side
KEYS = ("total", "last", "messages")


def inner_graphs(graph: Graph) -> Iterator[Graph]:
    """Yield the graphs that lie in a graph, at any depth."""
    for inner in [n.graph for n in graph.nodes] + [act.graph for node in graph.nodes for act in node.acts]:
        if inner is not None:
            yield inner
            yield from inner_graphs(inner)


def is_linear(graph: Graph) -> bool:
    """Return whether no two tasks of a step can run side by side, here or inside."""
    sources = [edge.source for edge in graph.edges] + [node.name for node in graph.nodes if node.goto]
    alone = len(sources) == len(set(sources)) and all(edge.kind in {"edge", "router", "loop"} for edge in graph.edges)
    return alone and all(len(n.goto) < 2 for n in graph.nodes) and all(is_linear(g) for g in inner_graphs(graph))


@st.composite
def graphs(draw: Any, flavour: Flavour, level: int = 0, *, side_by_side: bool = False) -> Graph:
    """Draw a graph; those inside it are smaller, down to the flavour's depth."""
    names = list(NAMES[level][: draw(st.integers(1 + (level == 0), 4 if level == 0 else 2))])
    memory = None if level == 0 else draw(st.sampled_from([None] if side_by_side else flavour.memories))
    # Without any saver nobody can be asked, and a graph in there has none to inherit.
    here = replace(flavour, asks=False, depth=0) if memory is False else flavour
    nodes = [draw(nodes_named(n, names, here, level, side_by_side)) for n in names]
    edges = [Edge("edge", "__start__", names[0])]
    for i, name in enumerate(names[:-1]):
        edges += [] if flavour.linear and nodes[i].goto else draw(leads(name, names[i + 1 :], flavour))
    if level == 0:
        nodes.append(draw(nodes_named(SENT, [], here, level, True)))
        if draw(st.booleans()) and not (flavour.linear and nodes[-2].goto):
            edges.append(Edge("loop", names[-1], draw(st.sampled_from(names)), draw(st.integers(2, 6))))
    if flavour.joins and len(names) > 2 and draw(st.booleans()):
        edges.append(Edge("join", f"{names[0]}+{names[1]}", names[2]))
    stops = [(), ()]
    if flavour.stops:
        stops = [tuple(draw(st.lists(st.sampled_from(names), max_size=1))) for _ in range(2)]
    return Graph(tuple(nodes), tuple(edges), *stops, memory, own=level > 0 and draw(st.booleans()))


@st.composite
def nodes_named(draw: Any, name: str, names: list[str], flavour: Flavour, level: int, side_by_side: bool) -> Node:
    """Draw a node: one that is a graph, or one that does and writes this and that."""
    inner = graphs(flavour, level + 1, side_by_side=side_by_side)
    deferred = flavour.defers and level == 0 and draw(st.sampled_from([False] * 5 + [True]))
    if level < flavour.depth and draw(st.sampled_from([False, False, True])):
        return Node(name, graph=draw(inner), deferred=deferred)
    kinds = ["say"] + ["ask", "ask"] * flavour.asks + ["fail"] * flavour.fails + ["call"] * (level < flavour.depth)
    acts = []
    for kind in draw(st.lists(st.sampled_from(kinds), max_size=2)):
        number = draw(st.integers(1, 3)) if kind == "fail" else 0
        acts.append(Act(kind, number, draw(inner) if kind == "call" else None))
    writes = tuple(draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=2)))
    # Where one task asks while others contradict each other, the thread there cannot even be read.
    once = [("over",), ("note", "log")] if flavour.linear or not flavour.asks else []
    log = draw(st.sampled_from([("log",), ("log",), ("log",), ("log",), (), *once]))
    after = names[names.index(name) + 1 :] if names else []
    goto: tuple[str, ...] = ()
    if draw(st.sampled_from([False, False, False, True])):
        goto = tuple(
            draw(
                st.lists(
                    st.sampled_from(
                        [*after, *[SENT] * (level == 0 and bool(names) and not flavour.defers)] or ["__end__"]
                    ),
                    max_size=1 if flavour.linear else 2,
                )
            )
        )
    if level > 0 and flavour.upward and draw(st.sampled_from([False, False, True])):
        goto = (draw(st.sampled_from(["^", f"^{SENT}" if level == 1 else "^"])),)
    plain = not acts and not goto and "messages" not in writes  # messages from a cache are not shown there
    return Node(
        name, tuple(acts), (*log, *writes), goto,
        attempts=draw(st.integers(1, 3)) if flavour.linear else 1 + sum(act.number for act in acts),
        deferred=deferred,
        cached=plain and draw(st.sampled_from([False, False, False, True])),
        handled=flavour.fails and draw(st.sampled_from([False, False, True])),
    )  # fmt: skip


@st.composite
def leads(draw: Any, name: str, later: list[str], flavour: Flavour) -> list[Edge]:
    """Draw what follows a node."""
    kind = draw(st.sampled_from(["edge", "edge", "edges", "router", "sends", "none"]))
    target = draw(st.sampled_from(later))
    if kind == "edges" and not flavour.linear:
        return [Edge("edge", name, other) for other in later[:2]]
    if kind == "none":
        return []
    if kind == "sends" and (name not in NAMES[0] or flavour.linear or flavour.defers):
        kind = "router"
    kind = "edge" if kind == "edges" else kind
    return [Edge(kind, name, target, draw(st.integers(0, 3)) if kind == "sends" else 0)]
