"""A thread's state as clients have it: checkpoints, tasks, questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from waitpoint import clock
from waitpoint.checkpoint.base import QuestionRow
from waitpoint.hosting import encoding
from waitpoint.records import PregelTask, StateSnapshot


def state_json(snapshot: StateSnapshot, rows: Sequence[QuestionRow] = ()) -> dict[str, Any]:
    """Return a state; `rows` are the questions open in it, of which clients are told where and since when they wait.

    Tasks that ask come last: some clients look only at the last one.
    """
    tasks = sorted(snapshot.tasks, key=lambda task: bool(task.interrupts))
    known = {row.id: row for row in rows}
    checkpoint = checkpoint_json(snapshot.config) if snapshot.created_at else None
    parent = checkpoint_json(snapshot.parent_config)
    interrupts = [
        {**encoding.interrupt_json(each), **_circumstances(known.get(each.id))}
        for task in snapshot.tasks
        for each in task.interrupts
    ]
    return {
        "values": encoding.jsonable(snapshot.values) or {},
        "next": list(snapshot.next),
        "tasks": [_task_json(task) for task in tasks],
        "metadata": encoding.jsonable(snapshot.metadata),
        "created_at": snapshot.created_at,
        "checkpoint": checkpoint,
        "parent_checkpoint": parent,
        "interrupts": interrupts,
        "checkpoint_id": None if checkpoint is None else checkpoint["checkpoint_id"],
        "parent_checkpoint_id": None if parent is None else parent["checkpoint_id"],
    }


def checkpoint_json(config: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the checkpoint that a config names, None if it names none."""
    if config is None:
        return None
    named = config.get("configurable") or {}
    found = {
        "thread_id": named.get("thread_id"),
        "checkpoint_ns": named.get("checkpoint_ns") or "",
        "checkpoint_id": named.get("checkpoint_id"),
    }
    return {**found, "checkpoint_map": named["checkpoint_map"]} if named.get("checkpoint_map") else found


def _task_json(task: PregelTask) -> dict[str, Any]:
    state, checkpoint = None, None
    if isinstance(task.state, StateSnapshot):
        state = state_json(task.state)
    elif task.state is not None:
        checkpoint = checkpoint_json(task.state)
    return {
        "id": task.id,
        "name": task.name,
        "path": encoding.jsonable(task.path),
        "error": None if task.error is None else str(task.error) if isinstance(task.error, str) else repr(task.error),
        "interrupts": [encoding.interrupt_json(each) for each in task.interrupts],
        "checkpoint": checkpoint,
        "state": state,
        "result": encoding.jsonable(task.result),
    }


def _circumstances(row: QuestionRow | None) -> dict[str, Any]:
    """Return where a question was asked and since when it waits."""
    if row is None:
        return {}
    return {
        "node": row.node,
        "ns": row.ns,
        "task_id": row.task_id,
        "asked_at": clock.iso(row.asked_at),
        "digest": row.digest,
    }
