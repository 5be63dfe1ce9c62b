"""The graphs inside a graph, as declared: those that are nodes, and those that a node's function refers to."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from waitpoint.codec import Registry
from waitpoint.core.spec import GraphSpec, Node
from waitpoint.engine.declared import Declared


def subgraphs(graph: Declared, namespace: str | None, *, recurse: bool) -> Iterator[tuple[str, Declared]]:
    """Yield graphs inside this one with their names, joined by "|"; with `namespace` the one of that name alone."""
    wanted = None if namespace is None else names(namespace)
    if wanted is None:
        yield from _all(graph, recurse=recurse)
    elif wanted and (recurse or len(wanted) == 1):
        found = _down(graph, wanted)
        if found is not None:
            yield "|".join(wanted), found


def names(namespace: str) -> list[str]:
    """Return the nodes that a namespace leads through, without the ids of tasks and the numbers of calls."""
    return [part.partition(":")[0] for part in namespace.split("|") if not part.isdigit()] if namespace else []


def declared_at(graph: Declared, namespace: str) -> Declared | None:
    """Return the graph that is declared at a namespace, by whole segments."""
    return _down(graph, names(namespace))


def reader_at(spec: GraphSpec, registry: Registry, namespace: str) -> tuple[GraphSpec, Registry]:
    """Return what a namespace is read with; a graph that is not declared, with what the graph around it knows."""
    for name in names(namespace):
        node = spec.nodes.get(name)
        inside = None if node is None else graph_in(node)
        if inside is not None:
            spec, registry = inside.spec, inside.registry
    return spec, registry


def _all(graph: Declared, *, recurse: bool) -> Iterator[tuple[str, Declared]]:
    for name, node in graph.spec.nodes.items():
        inside = graph_in(node)
        if inside is not None:
            yield name, inside
            if recurse:
                yield from ((f"{name}|{more}", found) for more, found in _all(inside, recurse=True))


def _down(graph: Declared, wanted: list[str]) -> Declared | None:
    found: Declared | None = graph
    for name in wanted:
        node = found.spec.nodes.get(name) if found is not None else None
        found = None if node is None else graph_in(node)
    return found


def graph_in(node: Node) -> Declared | None:
    """Return the graph that a node is, or the one that its function refers to, if that is only one."""
    if node.call.kind == "graph":
        found: Declared = node.call.fn
        return found
    called = {id(value): value for value in _referred(node.call.fn) if isinstance(value, Declared)}
    return next(iter(called.values())) if len(called) == 1 else None


def _referred(fn: Any) -> Iterator[Any]:
    """Yield what a function refers to: what it closes over, and the globals that its body names."""
    while isinstance(fn, functools.partial):
        yield from (*fn.args, *fn.keywords.values())
        fn = fn.func
    fn = getattr(fn, "__func__", fn)
    code = getattr(fn, "__code__", None)
    if code is None:
        return
    for cell in fn.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue  # not bound yet
    yield from (fn.__globals__[name] for name in code.co_names if name in fn.__globals__)
