"""Outcomes as rows: what a task wrote, by reference, and where it went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from waitpoint import clock, codec
from waitpoint.checkpoint.base import OutcomeRow
from waitpoint.codec import Registry
from waitpoint.core.apply import Result
from waitpoint.core.spec import GraphSpec
from waitpoint.engine.heads import Head, ItemReader, ItemWriter, Ref
from waitpoint.engine.tasks import Body, Outcome, Task
from waitpoint.interrupts import raised
from waitpoint.records import Send

PATCH: Literal["patch"] = "patch"


def to_row(
    spec: GraphSpec, head: Head, task: Task, outcome: Outcome, status: Literal["done", "waiting", "failed"],
    writer: ItemWriter,
) -> OutcomeRow:  # fmt: skip
    """Encode what an attempt came to."""
    body: dict[str, Any] = {}
    if outcome.result is not None:
        body["r"] = _result(spec, outcome.result, writer)
    if status != "done":
        if outcome.body.result is not None:
            body["b"] = _result(spec, outcome.body.result, writer)
        if outcome.body.error is not None:
            body["h"] = repr(outcome.body.error)
            if isinstance(outcome.body.error, Exception):
                body["x"] = raised.kept(outcome.body.error, writer.registry)
        if outcome.error is not None:
            body["e"] = repr(outcome.error)
    data = codec.dumps_plain(body)
    return OutcomeRow(head.ns, head.id, task.id, task.name, status, task.answer_seq, outcome.attempt, clock.now(), data)


def patch_row(spec: GraphSpec, head: Head, task_id: str, result: Result, seq: int, writer: ItemWriter) -> OutcomeRow:
    """Encode an update that a command lays over a checkpoint."""
    body = {"r": _result(spec, result, writer)}
    return OutcomeRow(head.ns, head.id, task_id, result.node, PATCH, seq, 0, clock.now(), codec.dumps_plain(body))


def read_all(rows: Sequence[OutcomeRow], reader: ItemReader) -> list[tuple[Result | None, Body]]:
    """Decode what tasks wrote, and the finished part of those whose routers or error handler have not finished."""
    bodies = [codec.loads(row.body) for row in rows]
    reader.fetch(ref for body in bodies for part in ("r", "b") if part in body for ref in _refs(body[part]))
    return [_read(row.node, body, reader) for row, body in zip(rows, bodies, strict=True)]


def _read(node: str, body: Mapping[str, Any], reader: ItemReader) -> tuple[Result | None, Body]:
    if not body:
        return None, Body()
    result = _decoded(node, body["r"], reader) if "r" in body else None
    finished = _decoded(node, body["b"], reader) if "b" in body else None
    return result, Body(finished, _error(body, reader.registry) if "h" in body else None)


def _error(body: Mapping[str, Any], registry: Registry) -> Exception:
    """Return the exception for an error handler that runs again, as it was raised if that can be had."""
    if "x" in body:
        found = raised.again(body["x"], codec.loads, registry)
        if isinstance(found, Exception):
            return found
    return RuntimeError(body["h"])


def _refs(stored: Sequence[Any]) -> list[Ref]:
    refs: list[Ref] = [write[1] for write in stored[0]]
    if stored[1]:
        refs += [goto[1] for goto in stored[1] if not isinstance(goto, str)]
    return refs


def read_error(row: OutcomeRow) -> str | None:
    """Return the text of the error that a failed task ended with."""
    error: str | None = codec.loads(row.body).get("e")
    return error


def shown(spec: GraphSpec, result: Result | None, only: Sequence[str] | None = None) -> Any:
    """Return a task's update as stream mode `updates` shows it: None, one dict, or a dict per write if a key repeats.

    `only` are the keys that are shown, if not all of the state are.
    """
    if result is None:
        return None
    keys = spec.shown_keys if only is None else only
    writes = [(k, v) for k, v in result.writes if k in keys]
    if not writes:
        return None
    if spec.whole or spec.is_bare:
        return writes[0][1] if len(writes) == 1 else [v for _, v in writes]
    merged = dict(writes)
    return merged if len(merged) == len(writes) else [{k: v} for k, v in writes]


def written(spec: GraphSpec, result: Result | None) -> Any:
    """Return a task's update as stream mode `tasks` shows it: by key, also where the state is one value."""
    if result is not None and spec.is_function:
        return {k: v for k, v in result.writes if k in spec.shown_keys}
    return shown(spec, result) or {}


def _result(spec: GraphSpec, result: Result, writer: ItemWriter) -> list[Any]:
    writes = []
    for key, value in result.writes:
        itemised = spec.channels[key].kind in ("append", "messages")
        writes.append([key, writer.written(value, f"{result.node}.{key}", itemised=itemised)])
    gotos: list[Any] = [writer.sent(goto) if isinstance(goto, Send) else goto for goto in result.gotos]
    return [writes, gotos] if result.is_own else [writes, gotos, False]


def _decoded(node: str, stored: Sequence[Any], reader: ItemReader) -> Result:
    writes = [(key, reader.value(ref)) for key, ref in stored[0]]
    gotos = [g if isinstance(g, str) else Send(g[0], reader.value(g[1]), timeout=g[2]) for g in stored[1]]
    return Result(node, writes, gotos, is_own=len(stored) == 2)
