"""What new input leaves behind on a thread: results that are kept, and what closes the tasks that never finish."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from waitpoint.checkpoint.base import BaseCheckpointSaver, Loaded
from waitpoint.core.apply import Result, apply_writes
from waitpoint.core.spec import GraphSpec, Unfinished
from waitpoint.engine import outcomes
from waitpoint.engine.heads import Head
from waitpoint.engine.invocation import Invocation
from waitpoint.engine.resuming import looked
from waitpoint.engine.run import Run
from waitpoint.engine.tasks import Task
from waitpoint.records import START

Writes = list[tuple[str, Any]]


def left_behind(
    call: Invocation, saver: BaseCheckpointSaver, base: Loaded, before: Head | None, *, forking: bool
) -> Generator[Any, Any, Writes]:
    """Return what is to be written before the input: results of the unfinished step, then what `spec.settle` closes.

    A fork leaves nothing behind but calls that were never made on its branch. `before` is the checkpoint of `base`.
    """
    spec = call.spec
    if spec.settle is None or before is None or (before.control.finished and not base.outcomes):
        return []
    run: Run = yield from looked(call, saver, base)
    tasks = [t for t in run.tasks if t.name != START]
    if not tasks:
        return []
    kept = [] if forking else [t.result for t in tasks if t.state == "done" and t.result is not None]
    values, _ = apply_writes(spec, run.values, kept)
    open_tasks = [t for t in tasks if forking or t.state != "done"]
    update = spec.settle(values, [_unfinished(run, t, base, forking=forking) for t in open_tasks])
    closing = [] if update is None else spec.to_writes(update)
    return [*(write for result in kept for write in result.writes), *closing]


def before_input(spec: GraphSpec, left: Writes, result: Result) -> Result:
    """Return the input's writes after those; a key without a reducer keeps the input's, or the last one's."""
    once = {key: n for n, (key, _) in enumerate(left)}
    taken = {key for key, _ in result.writes}
    kept = [
        (key, value)
        for n, (key, value) in enumerate(left)
        if spec.channels[key].kind != "last" or (once[key] == n and key not in taken)
    ]
    return Result(result.node, [*kept, *result.writes], result.gotos)


def _unfinished(run: Run, task: Task, base: Loaded, *, forking: bool) -> Unfinished:
    arg = None if task.due.send is None else task.due.send.arg
    if forking:
        return Unfinished(task.name, arg, "due")
    if any(e.task_id == task.id and e.kind == "step" and e.state == "executing" for e in base.journal):
        return Unfinished(task.name, arg, "in_doubt")
    if any(q.can_answer for q in run.questions_by_task().get(task.id, ())):
        return Unfinished(task.name, arg, "waiting")
    error = next((outcomes.read_error(r) for r in base.outcomes if r.task_id == task.id and r.status == "failed"), None)
    return Unfinished(task.name, arg, "due" if error is None else "failed", error)
