"""A graph as something to draw: nodes and edges as LangChain has them, and what waits in a thread."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from waitpoint.core.spec import Node
from waitpoint.engine import letters
from waitpoint.engine.declared import Declared
from waitpoint.engine.inner import graph_in
from waitpoint.records import END, START, StateSnapshot

if TYPE_CHECKING:
    from langchain_core.runnables.graph import Graph

    Drawing: TypeAlias = Graph

WAITS = "waits for"
"""The key of a node's metadata under which its open questions are."""
LONGEST = 60  # characters of a question that are shown
WAITING_STYLE = "fill:#ffe0a3,stroke:#b26a00"


def drawn(graph: Declared, xray: int | bool, snapshot: StateSnapshot | None) -> Drawing:
    """Return the drawing of a graph. `xray`: how many levels of graphs in nodes are drawn too, True for all."""
    found = _drawing_class()()
    nodes = graph.spec.nodes
    questions = _questions(snapshot)
    for name, node in nodes.items():
        found.add_node(_data(node), name, metadata=_metadata(graph, node, questions.get(name, [])) or None)
    for source, target, label, conditional in _edges(graph):
        if target == END and END not in found.nodes:
            found.add_node(None, END)
        found.add_edge(found.nodes[source], found.nodes[target], label, conditional)
    for name, node in nodes.items() if xray else ():
        inside = graph_in(node)
        if inside is not None:
            deeper = xray if isinstance(xray, bool) else xray - 1
            _put_inside(found, name, drawn(inside, deeper, _standing_in(snapshot, name)))
    return found  # type: ignore[no-any-return]


def _edges(graph: Declared) -> Iterator[tuple[str, str, str | None, bool]]:
    """Yield source, target, label and whether it depends; the first way from one to another counts."""
    spec, seen = graph.spec, set()
    for source, node in spec.nodes.items():
        ways: list[tuple[str, str | None, bool]] = [(target, None, False) for target in node.edges]
        ways += [(join.target, None, False) for join in spec.joins if source in join.sources]
        for branch in node.branches:
            ways += [(target, _label(result, target), True) for result, target in (branch.ends or {}).items()]
        to = node.destinations or ()
        ways += [(target, to[target] if isinstance(to, Mapping) else None, True) for target in to]
        # Without any way that is declared it is an end; a router that tells no ends may lead anywhere.
        for target, label, conditional in ways or [(END, None, bool(node.branches))]:
            if (source, target) not in seen:
                seen.add((source, target))
                yield source, target, label, conditional


def _label(result: Any, target: str) -> str | None:
    return None if result == target else str(result)


def _data(node: Node) -> Any:
    """Return what a node runs, as a Runnable."""
    from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

    fn = node.call.fn
    if fn is None:
        return RunnablePassthrough(name=node.name)
    if isinstance(fn, Runnable):
        return fn
    return RunnableLambda(fn if callable(fn) else fn.invoke, name=node.name)


def _metadata(graph: Declared, node: Node, questions: list[str]) -> dict[str, Any]:
    told: dict[str, Any] = dict(node.metadata)
    if node.defer:
        told["defer"] = True
    stops = graph.stops_at(node.name)
    if stops:
        told["__interrupt"] = ",".join(stops)
    tools = getattr(node.call.fn, "tools_by_name", None)
    if isinstance(tools, Mapping) and tools:
        told["__tools"] = list(tools)
    if questions:
        told[WAITS] = questions
    return told


# --- what waits -------------------------------------------------------------------------------------------------------


def _questions(snapshot: StateSnapshot | None) -> dict[str, list[str]]:
    """Return the open questions of each node, as short texts."""
    found: dict[str, list[str]] = {}
    for task in snapshot.tasks if snapshot is not None else ():
        if task.interrupts:
            found.setdefault(task.name, []).extend(_short(i.value) for i in task.interrupts)
    return found


def _short(value: Any) -> str:
    parts = [f"{k}: {_text(v)}" for k, v in value.items()] if isinstance(value, Mapping) else [_text(value)]
    text = " ".join(", ".join(parts).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}\u2026"


def _text(value: Any) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def _standing_in(snapshot: StateSnapshot | None, name: str) -> StateSnapshot | None:
    """Return how the graph in a node stands, if it waits."""
    states = (t.state for t in snapshot.tasks if t.name == name) if snapshot is not None else ()
    return next((s for s in states if isinstance(s, StateSnapshot)), None)


# --- graphs in nodes --------------------------------------------------------------------------------------------------


def _put_inside(around: Drawing, name: str, inside: Drawing) -> None:
    """Put a graph in the place of the node that it is in; one with no single start and end stays a node."""
    if len(inside.nodes) < 2 or inside.first_node() is None or inside.last_node() is None:
        return
    inside.trim_first_node()
    inside.trim_last_node()
    around.nodes.pop(name)
    first, last = around.extend(inside, prefix=name)
    if first is None or last is None:
        return
    moved = [edge.copy(source=last.id) if edge.source == name else edge for edge in around.edges]
    around.edges[:] = [edge.copy(target=first.id) if edge.target == name else edge for edge in moved]


@functools.cache
def _drawing_class() -> Any:
    from langchain_core.runnables.graph import Graph

    class Drawing(Graph):
        """LangChain's graph; nodes that wait stand out, and letters need no further package."""

        def draw_mermaid(self, **options: Any) -> str:
            text = Graph.draw_mermaid(self if _escapes_labels() else _escaped(self), **options)
            waiting = [name for name, node in self.reid().nodes.items() if WAITS in (node.metadata or {})]
            if not waiting or not options.get("with_styles", True):
                return text
            names = ",".join(_safe_id(name) for name in waiting)
            return f"{text}\tclassDef waiting {WAITING_STYLE}\n\tclass {names} waiting\n"

        def draw_ascii(self) -> str:
            notes = {name: (node.metadata or {}).get(WAITS, ()) for name, node in self.nodes.items()}
            edges = [(edge.source, edge.target, edge.conditional) for edge in self.edges]
            return letters.drawn(notes, edges, first=START, last=END)

    return Drawing


def _safe_id(name: str) -> str:
    """Return an id as the text above has it: letters, digits, "_" and "-" stay, others become their numbers."""
    from langchain_core.runnables.graph_mermaid import _to_safe_id

    return _to_safe_id(name)


def _escapes_labels() -> bool:
    """Whether the installed langchain-core escapes what Mermaid takes for its own signs; older ones do not."""
    from langchain_core.runnables import graph_mermaid

    return hasattr(graph_mermaid, "_escape_mermaid_label")


def _escaped(drawing: Drawing) -> Drawing:
    """Return a drawing whose questions, which may hold anything, are safe in a label."""
    nodes = {}
    for name, node in drawing.nodes.items():
        told = dict(node.metadata or {})
        if WAITS in told:
            told[WAITS] = re.sub(r"[^\w .,:?!-]", lambda sign: f"#{ord(sign[0])};", ", ".join(told[WAITS]))
        nodes[name] = node._replace(metadata=told or None)
    found: Drawing = type(drawing)(nodes=nodes, edges=drawing.edges)
    return found
