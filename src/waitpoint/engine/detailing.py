"""The parts of a run that tell its steps in detail: modes `tasks`, `checkpoints` and `debug`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from waitpoint import clock
from waitpoint.checkpoint.base import ThreadKey
from waitpoint.engine import outcomes
from waitpoint.engine.commands import Emit
from waitpoint.engine.heads import Head
from waitpoint.engine.inner import graph_in
from waitpoint.engine.questions import interrupt_of
from waitpoint.engine.run import Run
from waitpoint.engine.scope import in_envelope
from waitpoint.engine.tasks import Task, read
from waitpoint.errors import ParentCommand
from waitpoint.records import START, CheckpointMetadata, Interrupt

Kind = Literal["checkpoint", "task", "task_result"]

# What configs name checkpoints by, what a node is told of itself, and what each checkpoint says anyway.
_OURS = frozenset({
    "thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map", "langgraph_step", "langgraph_node",
    "langgraph_triggers", "langgraph_path", "langgraph_checkpoint_ns", "source", "step", "parents",
})  # fmt: skip


def config_of(key: ThreadKey, head: Head) -> dict[str, Any]:
    """Return the config that names a checkpoint; inside another graph, with the checkpoints of those around it."""
    return _config(key, head.ns, head.id, head.origin.parents)


def parent_config_of(key: ThreadKey, head: Head, parent_id: str | None) -> dict[str, Any] | None:
    """Return the config of the checkpoint before this one."""
    if parent_id is None:
        return None
    if head.parent_ns is not None:  # it belongs to another call, which has its own checkpoints around it
        return _config(key, head.parent_ns, parent_id, {})
    return _config(key, head.ns, parent_id, head.origin.parents)


def _config(key: ThreadKey, ns: str, checkpoint_id: str, parents: Mapping[str, str]) -> dict[str, Any]:
    where: dict[str, Any] = {"thread_id": key.thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}
    if parents:
        where["checkpoint_map"] = {**parents, ns: checkpoint_id}
    return {"configurable": where}


def metadata_of(head: Head) -> CheckpointMetadata:
    """Return a checkpoint's metadata, as snapshots show it."""
    own = {"source": head.source, "step": head.step, "parents": dict(head.origin.parents)}
    return {**own, **head.metadata, **own}  # type: ignore[typeddict-item]


def metadata_from(config: Mapping[str, Any]) -> dict[str, Any]:
    """Take from a config what goes into the metadata of every checkpoint of its run: the user's own plain values."""
    given = {**config.get("configurable", {}), **config.get("metadata", {})}
    return {
        k: v
        for k, v in given.items()
        if k not in _OURS and not k.startswith("__") and isinstance(v, str | int | float | bool)
    }


# --- checkpoints ------------------------------------------------------------------------------------------------------


def entered(run: Run) -> Iterable[Emit]:
    """Show the checkpoint of the input, if the run began past it."""
    if run.entry is not None and run.segment is not None and _is_shown(run, "checkpoints"):
        head, task_id = run.entry
        yield from _told(run, "checkpoint", _checkpoint(run, head, [_task(task_id, START, ())]), head.step)


def reached(run: Run) -> Iterable[Emit]:
    """Show the checkpoint at which the run stands, with the record of its step so far."""
    if run.segment is not None and _is_shown(run, "checkpoints"):
        under = run.questions_by_task()
        asked = {
            task_id: tuple(
                interrupt_of(q, run.registry) for q in sorted(found, key=lambda q: (q.asked_at, q.ns, q.seq))
            )
            for task_id, found in under.items()
        }
        tasks = [_task_of(run, task, asked.get(task.id, ())) for task in run.tasks]
        yield from _told(run, "checkpoint", _checkpoint(run, run.head, tasks), run.head.step)


def resting(run: Run) -> Iterable[Emit]:
    """Show the checkpoint again at which the run rests, with the questions that are open."""
    if run.segment is not None and _is_shown(run, "checkpoints"):
        tasks = [_task_of(run, task, task.interrupts if task.state == "waiting" else ()) for task in run.tasks]
        yield from _told(run, "checkpoint", _checkpoint(run, run.head, tasks), run.head.step)


def _checkpoint(run: Run, head: Head, tasks: list[dict[str, Any]]) -> dict[str, Any]:
    assert run.segment is not None
    key = run.segment.key
    return {
        "config": config_of(key, head),
        "parent_config": parent_config_of(key, head, run.segment.parent_id(head)),
        "values": run.shown(head.values),
        "metadata": metadata_of(head),
        "next": [task["name"] for task in tasks],
        "tasks": tasks,
    }


def _task_of(run: Run, task: Task, interrupts: Sequence[Interrupt[Any]]) -> dict[str, Any]:
    assert run.segment is not None
    state = None
    inside = graph_in(task.node)
    if inside is not None and inside.checkpointer is not False:
        where = {"thread_id": run.segment.key.thread_id, "checkpoint_ns": run.child_ns(task)}
        state = {"configurable": where}
    told = _task(task.id, task.name, interrupts, state)
    if task.state == "done" and (result := outcomes.shown(run.spec, task.result)):
        told["result"] = result
    elif task.state != "done" and (error := _error_of(run, task)) is not None:
        told["error"] = error
        if not interrupts:
            del told["interrupts"]  # as LangGraph has it
    return told


def _error_of(run: Run, task: Task) -> str | None:
    """Return what a task failed with, in this run or in an earlier one."""
    if task.error is not None:
        return _text(task.error)
    row = run.segment.outcomes.get(task.id) if run.segment is not None else None
    return outcomes.read_error(row) if row is not None and row.status == "failed" else None


def _task(task_id: str, name: str, interrupts: Sequence[Interrupt[Any]], state: Any = None) -> dict[str, Any]:
    return {"id": task_id, "name": name, "interrupts": tuple(map(_interrupt, interrupts)), "state": state}


# --- tasks ------------------------------------------------------------------------------------------------------------


def started(run: Run, task: Task) -> Iterable[Emit]:
    """Show that a task starts."""
    if task.name != START and _is_shown(run, "tasks"):
        told = {"id": task.id, "name": task.name, "input": _input(run, task), "triggers": task.due.triggers}
        yield from _told(run, "task", told, run.head.step + 1)


def ended(run: Run, task: Task) -> Iterable[Emit]:
    """Show how a task ended."""
    if task.name != START and _is_shown(run, "tasks"):
        told = {
            "id": task.id,
            "name": task.name,
            "error": None if task.error is None or isinstance(task.error, ParentCommand) else _text(task.error),
            "result": outcomes.written(run.spec, task.result),
            "interrupts": list(map(_interrupt, task.interrupts)),
        }
        yield from _told(run, "task_result", told, run.head.step + 1)


def paused(run: Run) -> Iterable[Emit]:
    """Show how those tasks ended that wait; whoever sees their questions may answer them, so they are on record now."""
    while run.paused:
        yield from ended(run, run.paused.pop(0))


def _input(run: Run, task: Task) -> Any:
    try:
        return task.due.send.arg if task.due.send is not None else read(task.node.reader, run.values, run.steps_left)
    except Exception:  # noqa: BLE001 - the node is going to fail on its input by itself
        return run.shown(run.values)


# --- both -------------------------------------------------------------------------------------------------------------


def _is_shown(run: Run, mode: str) -> bool:
    return mode in run.modes or "debug" in run.modes


def _told(run: Run, kind: Kind, told: Mapping[str, Any], step: int) -> Iterator[Emit]:
    mode = "checkpoints" if kind == "checkpoint" else "tasks"
    if mode in run.modes:
        yield Emit(run.shown_ns, mode, told)
    if "debug" in run.modes:
        yield Emit(run.shown_ns, "debug", in_envelope(kind, told, step, clock.now()))


def _interrupt(interrupt: Interrupt[Any]) -> dict[str, Any]:
    return {"value": interrupt.value, "id": interrupt.id, "response_schema": interrupt.response_schema}


def _text(error: BaseException | str) -> str:
    return error if isinstance(error, str) else repr(error)
