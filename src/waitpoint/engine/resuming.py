"""Going on: the tasks of a stored checkpoint, in the state that earlier attempts and commands left them in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    Loaded,
    Move,
    OutcomeRow,
    QuestionRow,
    ThreadRow,
    Writes,
)
from waitpoint.core.apply import Result, apply_writes
from waitpoint.core.names import suggestion
from waitpoint.core.plan import due_tasks
from waitpoint.core.spec import Call, GraphSpec, Node, Reader
from waitpoint.engine import heads, outcomes, owner
from waitpoint.engine.commands import Store
from waitpoint.engine.heads import Head, ItemReader
from waitpoint.engine.invocation import Invocation, Opened, Opening, claimed, run_at
from waitpoint.engine.questions import answerable, interrupt_of
from waitpoint.engine.run import Run
from waitpoint.engine.segment import Segment, event
from waitpoint.engine.tasks import Body, Task
from waitpoint.errors import ReplayMismatch
from waitpoint.records import START, Send


def continued(call: Invocation, saver: BaseCheckpointSaver, loaded: Loaded) -> Opening:
    """Run what needs no new answer; nothing if every unfinished task waits.

    A step whose tasks have all finished did not come together: it is tried again.
    """
    thread, checkpoint = loaded.thread, loaded.checkpoint
    assert thread is not None
    assert checkpoint is not None
    if thread.status == "running" and not owner.is_dead(thread):
        return Opened(wait_for=thread)
    head = yield Store(heads.read, (saver, call.key, checkpoint, call.registry))
    run = yield from resumed(call, saver, loaded, head, None)
    only_waits = not run.tasks or any(t.state == "waiting" for t in run.tasks)
    is_due = any(t.state == "due" for t in run.tasks) or bool(run.patched)
    if thread.status in ("idle", "waiting", "failed") and only_waits and not is_due:
        return Opened(at_rest(run), resting=True)
    then = claimed(call, thread, None, None)
    writes = Writes(events=[event("continued", checkpoint.id)])
    writes.final = [q.id for q in loaded.questions if q.replaceable]  # the run acts on what it has read
    yield Store(saver.move, (Move(thread.key, thread, then, writes, durable=False),))
    run.segment.claim(then)
    # Where something of the step ran already, its breakpoint was passed, whoever stopped the thread since.
    has_begun = bool(loaded.questions) or any(row.status != "patch" for row in loaded.outcomes)
    run.resumed = has_begun or thread.status in ("idle", "waiting", "failed")
    run.is_fresh = head.moved_at == thread.fence
    return Opened(run)


def at_rest(run: Run) -> Run:
    """Return a run that is not run: it shows where the thread rests."""
    run.end = "waiting" if run.interrupts() else "finished"
    return run


def resumed(call: Invocation, saver: BaseCheckpointSaver, loaded: Loaded, head: Head, thread: ThreadRow | None) -> Any:
    """Return the run that goes on at a checkpoint, with what its tasks came to so far. It holds no claim yet."""
    row = thread if thread is not None else loaded.thread
    assert row is not None
    assert call.key is not None
    segment = Segment(saver, row, call.durability)
    segment.root_checkpoint = head.id
    segment.outcomes = {o.task_id: o for o in loaded.outcomes}
    segment.is_plain = not loaded.journal
    segment.questions = {q.id: replace(q, replaceable=False) if q.replaceable else q for q in loaded.questions}
    reader = ItemReader(saver, call.key, call.registry)
    prior = yield Store(prior_of, (loaded.outcomes, reader))
    run = run_at(call, head, segment)
    lay_over(run, head, prior)
    open_journals(run, loaded)
    run.resumed = True
    return run


def looked(call: Invocation, saver: BaseCheckpointSaver, loaded: Loaded) -> Any:
    """Return a run that holds no claim, at what was read."""
    assert loaded.checkpoint is not None
    head = yield Store(heads.read, (saver, call.key, loaded.checkpoint, call.registry))
    return (yield from resumed(call, saver, loaded, head, None))


def answered(call: Invocation, saver: BaseCheckpointSaver, claimed_row: ThreadRow) -> Opening:
    """Return the run after answers that were stored together with the claim."""
    loaded = yield Store(saver.load, (call.key,))
    run = yield from looked(call, saver, loaded)
    run.segment.claim(claimed_row)
    return Opened(run)


@dataclass(slots=True, eq=False, repr=False)
class Prior:
    """An outcome row with its decoded parts."""

    row: OutcomeRow
    result: Result | None
    body: Body


def prior_of(rows: Sequence[OutcomeRow], reader: ItemReader) -> list[Prior]:
    """Decode outcome rows."""
    return [Prior(row, *parts) for row, parts in zip(rows, outcomes.read_all(rows, reader), strict=True)]


def lay_over(run: Run, head: Head, prior: Sequence[Prior]) -> None:
    """Put the tasks of a checkpoint into the state that earlier attempts and commands left them in."""
    patches = [p.result for p in prior if p.row.status == outcomes.PATCH and p.result is not None]
    gotos: list[str | Send] = [g for p in patches for g in p.gotos]
    run.values, run.patched = head.values, set()
    if patches:
        run.values, run.patched = apply_writes(run.spec, head.values, patches)
    run.tasks = tasks_of(run.spec, head, gotos)
    by_id = {p.row.task_id: p for p in prior}
    under = run.questions_by_task()
    for task in run.tasks:
        found = by_id.get(task.id)
        if found is not None:
            _restore(run, task, found, under.get(task.id, ()))


def open_journals(run: Run, loaded: Loaded) -> None:
    """Give each task the entries that earlier attempts recorded; in a thread that did not rest it may have begun."""
    if loaded.thread is None or loaded.thread.status != "idle":
        for task in run.tasks:
            task.is_new = False
    if loaded.journal:
        for task in run.tasks:
            task.entries = [entry for entry in loaded.journal if entry.task_id == task.id]


def _restore(run: Run, task: Task, found: Prior, under: Sequence[QuestionRow]) -> None:
    row = found.row
    task.attempt, task.answer_seq, task.body = row.attempt, row.answer_seq, found.body
    if row.status == "done":
        task.state, task.result, task.cached = "done", found.result, task.name != START
    elif row.status == "waiting":
        if any((q.settle_seq or 0) > row.answer_seq for q in under):
            return  # there is news for it
        waits = answerable([q for q in under if q.status == "open"])
        if waits:
            task.state = "waiting"
            task.interrupts = tuple([interrupt_of(q, run.registry) for q in waits])


def tasks_of(spec: GraphSpec, head: Head, gotos: Sequence[str | Send] = ()) -> list[Task]:
    """Return the tasks of a checkpoint, none of them run yet."""
    due = due_tasks(head.id, head.ns, head.control, gotos) if gotos else head.due
    return [Task(d, spec.nodes.get(d.name) or _gone(spec, d.name)) for d in due]


def _gone(spec: GraphSpec, name: str) -> Node:
    """Stand in for a node that the graph no longer has: running it says so, and nothing is lost meanwhile."""

    def refuse() -> None:
        raise ReplayMismatch(
            f"The thread is to go on at node {name!r}, which graph {spec.name!r} no longer has{suggestion(name, spec.nodes)}; "
            f"bring the node back, or move the thread on with update_state(..., as_node=...)",
            node=name,
        )

    return Node(name, Call(refuse, name, takes_input=False), Reader(()))
