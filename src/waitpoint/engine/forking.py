"""Running again from an old checkpoint: a new one beside its first continuation, whose tasks ask anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from waitpoint import clock, ids
from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    Loaded,
    Move,
    OutcomeRow,
    ThreadKey,
    Writes,
)
from waitpoint.core.plan import due_tasks
from waitpoint.engine import heads, outcomes, owner
from waitpoint.engine.commands import Store
from waitpoint.engine.descent import Level, again
from waitpoint.engine.heads import Head, ItemReader, ItemWriter, Numbers
from waitpoint.engine.invocation import Invocation, Opened, Opening, claimed, thread_key
from waitpoint.engine.questions import unused_answers
from waitpoint.engine.resuming import resumed
from waitpoint.engine.segment import event, withdrawals
from waitpoint.engine.starting import WITHDRAWN_BY_MOVE, start_row
from waitpoint.engine.tasks import Body, Task
from waitpoint.errors import (
    ThreadBusyError,
)
from waitpoint.records import START


def forked(
    call: Invocation, saver: BaseCheckpointSaver, loaded: Loaded, base: Loaded,
    patch: Callable[[Head], Sequence[OutcomeRow]] = lambda _: (), levels: Sequence[Level] = (),
) -> Opening:  # fmt: skip
    """Run again from an old checkpoint: a new one beside its first continuation, whose tasks ask anew.

    `patch` makes the rows of a command's update, which is laid over the new checkpoint. With `levels` the run goes on
    inside, at the last of these nested checkpoints; `base` is then the first.
    """
    thread, key = loaded.thread, thread_key(call)
    assert thread is not None
    assert base.checkpoint is not None
    if thread.status == "running" and not owner.is_dead(thread):
        raise ThreadBusyError(
            f"Thread {key.thread_id!r} of graph {key.graph!r} is running; wait for it to rest before going back",
            thread_id=key.thread_id,
            status="running",
        )
    old = yield Store(heads.read, (saver, key, base.checkpoint, call.registry))
    writer = ItemWriter(Numbers(thread.next_item), call.registry)
    head = replace(old, id=ids.checkpoint_id(thread.head), parent_id=old.id, step=old.step + 1, source="fork",
                   created_at=clock.now(), metadata=call.metadata, passed=(), moved_at=0)  # fmt: skip
    inside = []
    head.origin = old.origin.branched(old.id, head.id)
    closed = [(q.id, WITHDRAWN_BY_MOVE) for q in loaded.questions if q.status == "open"]
    row = heads.to_row(head, writer)
    entry = Level(call.spec, call.registry, base, head)
    if levels:
        inside = again(levels, head)
        inside[-1].moved_at = thread.fence + 1  # the fence of the run that comes to it now
        entry = replace(levels[-1], head=inside[-1])
    outcome_rows = [*(yield Store(entry_again, (saver, key, entry, writer))), *patch(head)]
    rows = [row, *(heads.to_row(nested, writer) for nested in inside)]
    writes = Writes(checkpoints=rows, items=writer.taken(), outcomes=outcome_rows, withdrawn=closed)
    writes.final = [q.id for q in loaded.questions if q.replaceable]
    writes.events = [*unused_answers(loaded), *withdrawals(closed), event("forked", head.id, base=old.id)]
    then = claimed(call, thread, head.id, writer.numbers.next)
    yield Store(saver.move, (Move(key, thread, then, writes),))
    after = Loaded(then, row, outcome_rows, (), ())
    run = yield from resumed(call, saver, after, head, then)
    run.segment.claim(then)
    for task in run.tasks:
        task.is_new = not levels  # nobody has been at a new checkpoint, but for the graphs inside that it goes on in
    run.resumed = bool(levels)  # breakpoints before the nested graph were passed to get inside
    return Opened(run)


def entry_again(saver: BaseCheckpointSaver, key: ThreadKey, at: Level, writer: ItemWriter) -> list[OutcomeRow]:
    """Give a fork of an input checkpoint the same input to begin with."""
    head, spec = at.head, at.spec
    if head.control.due != (START,):
        return []
    reader = ItemReader(saver, key, at.registry)
    (due,) = due_tasks(head.id, head.ns, head.control)
    for row in at.loaded.outcomes:
        if row.node == START:
            ((result, body),) = outcomes.read_all([row], reader)
            result = result or body.result
            task = Task(due, spec.nodes[START], body=Body(result), result=result)
            return [start_row(spec, head, task, "waiting", writer)]
    return []
