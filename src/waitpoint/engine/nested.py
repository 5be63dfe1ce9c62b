"""Graphs that run inside a node: as the node itself, or called by its function. They share the thread and its fence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from waitpoint import runtime as runtimes
from waitpoint.config import checked_config
from waitpoint.engine import saying
from waitpoint.engine.children import Parent
from waitpoint.engine.commands import Emit
from waitpoint.engine.declared import Declared
from waitpoint.engine.heads import Origin
from waitpoint.engine.invocation import Invocation
from waitpoint.engine.segment import Segment, below, memory_ns
from waitpoint.engine.session import Session
from waitpoint.errors import UsageError
from waitpoint.interrupts.journal import Journal
from waitpoint.records import Command


def belongs(graph: Declared, scope: runtimes.Scope, config: Mapping[str, Any] | None) -> bool:
    """Whether a call from inside a node runs as part of that node's thread.

    A graph with a saver of its own may run on another thread, then independently. Raises for combinations that cannot work.
    """
    own = graph.checkpointer
    if own is None or isinstance(own, bool):
        return True
    journal = runtimes.attempt.get()
    given = (checked_config(config).get("configurable") or {}).get("thread_id")
    here = journal.task.key.thread_id
    segment: Segment | None = journal.recorder
    if given is not None and str(given) != here:
        return False
    if segment is None and given is None:
        raise UsageError(
            f"Graph {graph.name!r}, called in node {journal.task.node!r}, has a checkpointer, but the calling graph has none; "
            f"give the call a `thread_id`, or compile the calling graph with the checkpointer and this one without"
        )
    if segment is None:
        return False
    if segment.saver.identity != own.identity:
        raise UsageError(
            f"Graph {graph.name!r}, called in node {journal.task.node!r} on the same thread {here!r}, has another "
            f"checkpointer than the graph that calls it, so its questions could not reach the caller; compile it without one "
            f"(it inherits), or give the call a `thread_id` of its own"
        )
    callers = (scope.run.spec, *scope.run.around.callers)
    if journal.task.key.graph == graph.name and any(graph.spec.nodes is c.nodes for c in callers):
        raise UsageError(
            f"Node {journal.task.node!r} invokes its own thread {here!r}: a thread has one run at a time; return a Command "
            f"with `goto`, or give the call a `thread_id` of its own"
        )
    return True


def session(graph: Declared, call: Invocation, scope: runtimes.Scope) -> Session:
    """Return the session of a graph inside the task that runs here."""
    journal, run = runtimes.attempt.get(), scope.run
    if isinstance(call.input, Command) and call.input.has_resume:
        raise UsageError(
            f"Graph {graph.name!r} was resumed from inside node {journal.task.node!r}; questions of nested graphs are "
            f"answered at the outermost graph"
        )
    remembers = graph.checkpointer is True
    if remembers and journal.recorder is None:
        raise UsageError(
            f"Graph {graph.name!r} was compiled with checkpointer=True, a memory of its own, but the graph that calls it in "
            f"node {journal.task.node!r} has no checkpointer to keep it in; compile the outermost one with a saver"
        )
    with journal.lock:
        journal.check_open(f"call graph {graph.name!r}")
        number, lasting = _number(journal)
        journal.called.add(number)
    task = journal.task
    own = below(f"{task.node}:{task.task_id}", number) if number else f"{task.node}:{task.task_id}"
    name = f"{task.node}|{lasting}" if lasting else task.node
    ns = memory_ns(task.ns, name) if remembers else below(task.ns, own)
    at = below(task.at or task.ns, own)
    segment = None if graph.checkpointer is False else journal.recorder
    origin = Origin({**run.head.origin.parents, run.head.ns: run.head.id}, at if at != ns else "", run.head.origin.gaps)
    call.shown_ns = _shown(run.shown_ns, name) if remembers else (*run.shown_ns, *own.split("|"))
    around = run.around
    if "run_id" in around.config:
        call.around.config.setdefault("run_id", around.config["run_id"])
    control = call.around.control or around.control
    call.around = replace(call.around, store=call.around.store or around.store, control=control, pulse=scope.alive)
    call.around.cache = call.around.cache or around.cache
    call.around.within, call.around.callers = journal, (*around.callers, run.spec)
    call.live = around.live
    call.around.live, call.around.live_modes = around.live, around.live_modes
    call.around.emit_custom = _writer(around.live, call.shown_ns) if "custom" in around.live_modes else None
    saying.hear(call.around, around.live_modes, around.live, call.shown_ns)
    call.modes = call.modes | around.live_modes
    is_node = not number and run.spec.nodes[task.node].call.kind == "graph"
    may_vary = is_node or bool(run.patched)
    return Session(call, Parent(segment, ns, (*task.path,), journal, origin, may_vary, remembers))


def _shown(around: tuple[str, ...], part: str) -> tuple[str, ...]:
    return tuple(memory_ns("|".join(around), part).split("|"))


def _number(journal: Journal) -> tuple[str, str]:
    """Return which call of a graph this is in its task: "" for the first, "1", ...; within an effect "effect.0", ...

    And the same as it is in every run of the node, for what the graph remembers.
    """
    effect = runtimes.inside.get()
    if effect is not None and effect.journal is journal:
        effect.calls += 1
        which = f".{effect.calls - 1}" if effect.calls > 1 else ""
        return f"{effect.name}.{effect.calls - 1}", f"{effect.lasting}{which}"
    journal.children += 1
    number = str(journal.children - 1) if journal.children > 1 else ""
    return number, number


def go_live(session: Session, parts: Any, subgraphs: bool) -> None:
    """Let tasks of this session show parts while they run."""
    around, call = session.call.around, session.call
    around.live = parts
    around.show = _shower(parts, call.shown_ns)
    if "custom" in call.modes:
        around.emit_custom = _writer(parts, call.shown_ns)
    saying.hear(around, call.modes, parts, call.shown_ns)
    if subgraphs:
        around.live_modes = call.modes


def through(session: Session) -> Any:
    """Let what tasks of a nested graph show go out with what the graph around it shows; return who takes that, if any."""
    live = session.call.live
    if live is not None:
        session.call.around.show = _shower(live, session.call.shown_ns)
        session.call.around.shows_output = True
    return live


def _shower(live: Any, ns: tuple[str, ...]) -> Any:
    return lambda mode, payload: live.put(Emit(ns, mode, payload))


def _writer(live: Any, ns: tuple[str, ...]) -> Any:
    return lambda value: live.put(Emit(ns, "custom", value))


def concluded(session: Session) -> Any:
    """Return the result of a session; a nested one that rests stops its node too."""
    run = session.run
    assert run is not None
    scope = runtimes.current.get()
    if session.parent is not None and run.end != "finished":
        raise session.parent.journal.pause(list(run.interrupts()), f"graph {run.spec.name!r}")
    if session.parent is None and scope is not None and run.end == "waiting":
        listed = ", ".join(repr(i.id) for i in run.interrupts())
        raise UsageError(
            f"Graph {run.spec.name!r} paused on thread {run.segment.key.thread_id!r} inside node "  # type: ignore[union-attr]
            f"{scope.journal.task.node!r}, and a pause must not look like a result; its questions {listed} stay open: answer "
            f"them on that thread, or compile the graph without a checkpointer so that they reach the caller"
        )
    return session.result()
