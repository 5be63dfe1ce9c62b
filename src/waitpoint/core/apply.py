"""From the results of a superstep to the next checkpoint's values and control: pure arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from waitpoint.core.channels import combine
from waitpoint.core.plan import Control
from waitpoint.core.spec import GraphSpec, Node
from waitpoint.errors import ReplayMismatch
from waitpoint.records import END, MISSING, Send


@dataclass(slots=True, eq=False)
class Result:
    """What a finished task wants: its writes in order, and where to go besides its fixed edges.

    `is_own` is false for the result of an error handler: it leads nowhere but to its gotos, since the node has failed.
    """

    node: str
    writes: list[tuple[str, Any]] = field(default_factory=list)
    gotos: list[str | Send] = field(default_factory=list)
    is_own: bool = True


def apply_writes(
    spec: GraphSpec, values: Mapping[str, Any], results: Iterable[Result]
) -> tuple[dict[str, Any], set[str]]:
    """Combine writes, in task order, into new values; return them with the keys that were written.

    Raises `InvalidUpdateError` where writes contradict each other.
    """
    by_key: dict[str, list[Any]] = {}
    for result in results:
        for key, value in result.writes:
            if key in by_key:
                by_key[key].append(value)
            elif key in spec.channels:  # a key that a deploy took away keeps its old value and takes no new one
                by_key[key] = [value]
    after = dict(values)
    for key, writes in by_key.items():
        after[key] = combine(spec.channels[key], after.get(key, MISSING), writes)
    return after, set(by_key)


def next_control(spec: GraphSpec, control: Control, results: Sequence[Result], ran_deferred: bool) -> Control:
    """Return what is due after these results: fixed edges, places gone to, and joins that became complete."""
    if len(results) == 1 and not spec.joins and not control.deferred:
        only = _after_one(spec, control, results[0])
        if only is not None:
            return only
    due: set[str] = set()
    sends: list[Send] = []
    for result in results:
        if result.is_own:
            due.update(_node(spec, result.node).edges)
        for place in result.gotos:
            if isinstance(place, Send):
                sends.append(place)
            else:
                due.add(place)
    due.discard(END)
    joins = control.joins
    if spec.joins:
        joins = _joined(spec, joins, {r.node for r in results if r.is_own}, due)
    deferred: set[str] = set() if ran_deferred else set(control.deferred)
    for name in tuple(due):
        if spec.nodes[name].defer:
            due.discard(name)
            deferred.add(name)
    return Control(
        tuple(sorted(due)),
        tuple(sends),
        tuple(sorted(deferred)),
        joins,
        tuple(sorted({r.node for r in results})),
    )


def _after_one(spec: GraphSpec, control: Control, result: Result) -> Control | None:
    """Return what is due after the only task of a chain, which most are; None for any other."""
    edges = _node(spec, result.node).edges
    if result.gotos or not result.is_own or len(edges) != 1:
        return None
    due = () if edges[0] == END else edges
    return None if due and spec.nodes[due[0]].defer else Control(due, (), (), control.joins, (result.node,))


def _node(spec: GraphSpec, name: str) -> Node:
    node = spec.nodes.get(name)
    if node is None:
        raise ReplayMismatch(
            f"Node {name!r} finished before graph {spec.name!r} was changed, and the graph no longer has it, so nobody knows "
            f"what follows; bring the node back, or move the thread on with update_state(..., as_node=...)",
            node=name,
        )
    return node


def _joined(
    spec: GraphSpec, before: Mapping[str, tuple[str, ...]], ran: set[str], due: set[str]
) -> dict[str, tuple[str, ...]]:
    joins = dict(before)
    for join in spec.joins:
        seen = join.sources & (ran | set(joins.get(join.name, ())))
        if seen == join.sources:
            due.add(join.target)
            joins.pop(join.name, None)
        elif seen:
            joins[join.name] = tuple(sorted(seen))
    return joins
