"""Opening a graph that runs inside a task: at its input, where it was left, or on what it remembers."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from waitpoint import canonical, ids
from waitpoint.checkpoint.base import Loaded
from waitpoint.engine import heads
from waitpoint.engine.commands import Store
from waitpoint.engine.descent import in_past
from waitpoint.engine.heads import Head, ItemReader, ItemWriter, Origin
from waitpoint.engine.invocation import Invocation, Opened, Opening, run_at
from waitpoint.engine.leaving import left_behind
from waitpoint.engine.resuming import lay_over, open_journals, prior_of
from waitpoint.engine.run import Run
from waitpoint.engine.segment import Segment, below, within
from waitpoint.engine.starting import first_step
from waitpoint.errors import ReplayMismatch, UsageError
from waitpoint.interrupts.journal import Journal


@dataclass(slots=True, eq=False, repr=False)
class Parent:
    """The task in which a nested graph runs. `ns` is where the graph's state is, `origin` the call."""

    segment: Segment | None
    ns: str
    path: tuple[str, ...]
    journal: Journal
    origin: Origin
    input_may_vary: bool = False  # the graph is the node itself, or a command changed the state while it waited
    remembers: bool = False  # the graph has a memory of its own


def open_child(call: Invocation, parent: Parent) -> Opening:
    """Open a graph that runs inside a task: at its input, or where an earlier attempt of the task left it.

    Its input may have been changed from outside while it waited (`Command(resume=..., update=...)`), which is no fault of
    the program: then it goes on where it was.
    """
    segment = parent.segment
    assert segment is not None
    call.origin = parent.origin
    if parent.remembers:
        run = yield from _remembering(call, segment, parent)
    else:
        loaded: Loaded = yield Store(segment.saver.load, (segment.key, parent.ns))
        if loaded.checkpoint is None:
            run = yield from _begun(call, segment, parent, None, ())
        else:
            head = yield Store(heads.read, (segment.saver, segment.key, loaded.checkpoint, call.registry))
            run = yield from _gone_on(call, segment, parent, loaded, head)
    run.is_root, run.path = False, parent.path
    return Opened(run)


def _begun(
    call: Invocation, segment: Segment, parent: Parent, before: Head | None, left: Sequence[tuple[str, Any]]
) -> Generator[Store, Any, Run]:
    """Begin on the input of the call; `before` is the end of an earlier one."""
    writer = ItemWriter(segment.numbers, call.registry)
    started = first_step(call, before, writer, parent.ns, left)
    yield Store(segment.start_child, (started.rows, writer.taken(), started.outcomes))
    return started.run(call, segment)


def _gone_on(
    call: Invocation, segment: Segment, parent: Parent, loaded: Loaded, head: Head
) -> Generator[Store, Any, Run]:
    """Go on where an earlier attempt of the task left this call."""
    path = parent.path
    digest = None if parent.input_may_vary or call.input is None else canonical.args_digest((call.input,), {})
    if digest is not None and head.input_digest != digest:
        raise ReplayMismatch(
            f"Graph {call.spec.name!r}, called in node {path[-1]!r}, was called with another input before the node ran "
            f"again; make the input the same on every run (record what varies with step())",
            node=path[-1],
        )
    prior = yield Store(prior_of, (loaded.outcomes, ItemReader(segment.saver, segment.key, call.registry)))
    run = run_at(call, head, segment)
    lay_over(run, head, prior)
    open_journals(run, loaded)
    run.resumed, run.is_fresh = True, head.moved_at == segment.fence
    return run


# --- a memory of its own ----------------------------------------------------------------------------------------------


def _remembering(call: Invocation, segment: Segment, parent: Parent) -> Generator[Any, Any, Run]:
    """Go on with this call, or begin on what the call before it, on this branch of the thread, ended with."""
    saver, key, ns = segment.saver, segment.key, parent.ns
    segment.hold(ns, parent.origin, lambda other, runs: _check_alone(call, parent, other, runs=runs))
    kept = segment.memories.get(ns)
    loaded: Loaded = yield Store(saver.load, (key, ns))
    newest = kept
    if newest is None and loaded.checkpoint is not None:
        newest = yield Store(heads.read, (saver, key, loaded.checkpoint, call.registry))
    if newest is None:
        return (yield from _begun(call, segment, parent, None, ()))
    if newest.origin.at == parent.origin.at:
        at = loaded if kept is None else Loaded(None, None, (), (), ())
        return (yield from _gone_on(call, segment, parent, at, newest))
    _check_alone(call, parent, newest.origin, runs=segment.asks_within(newest.origin.at))
    ids.checkpoint_id(newest.id)  # what is made now sorts after it, though it may continue an older one
    if kept is not None:
        return (yield from _begun(call, segment, parent, kept, ()))
    base: Loaded = yield Store(in_past, (saver, key, ns, loaded, parent.origin))
    if base.checkpoint is None:
        return (yield from _begun(call, segment, parent, None, ()))
    before = yield Store(heads.read, (saver, key, base.checkpoint, call.registry))
    call.key = key
    left = yield from left_behind(call, saver, base, before, forking=base is not loaded)
    return (yield from _begun(call, segment, parent, before, left))


def _check_alone(call: Invocation, parent: Parent, other: Origin, *, runs: bool) -> None:
    """Refuse two calls that would write to one memory side by side: which comes first would be chance.

    Calls of one task follow one another, unless the other one `runs` still or waits for an answer.
    """
    task = parent.journal.task
    is_ours = within(other.at, below(task.at or task.ns, f"{task.node}:{task.task_id}"))
    if other.at != parent.origin.at and (runs if is_ours else _are_beside(other, parent.origin)):
        raise UsageError(
            f"Graph {call.spec.name!r}, compiled with checkpointer=True, is called twice at once as {parent.ns!r}, and both "
            f"calls would write to one memory; give each a node of its own, call one after the other, or compile it without "
            f"a checkpointer (then each call starts empty)"
        )


def _are_beside(one: Origin, other: Origin) -> bool:
    """Whether two calls belong to tasks of one superstep, of the graph that calls or of one around it."""
    for (ns, checkpoint), (other_ns, other_checkpoint) in zip(one.parents.items(), other.parents.items(), strict=False):
        if ns != other_ns:
            return True
        if checkpoint != other_checkpoint:
            return False
    return one.at != other.at
