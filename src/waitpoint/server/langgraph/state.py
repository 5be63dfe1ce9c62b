"""A thread's state: as it is, as it was, and changed from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from waitpoint import clock
from waitpoint.checkpoint.base import PendingFilter, QuestionRow, offload
from waitpoint.engine.runner import Runner
from waitpoint.errors import ThreadBusyError, UsageError
from waitpoint.hosting.host import Host
from waitpoint.records import END, StateSnapshot, StateUpdate
from waitpoint.server.callers import TheCaller, TheHost, needs
from waitpoint.server.langgraph import models, paging
from waitpoint.server.langgraph.bodies import CheckpointBody, HistoryBody, MetadataBody, StateBody, StatePlace
from waitpoint.server.langgraph.run_answers import REFUSALS
from waitpoint.server.langgraph.snapshots import checkpoint_json, state_json
from waitpoint.server.langgraph.threads import found, graph_of

router = APIRouter(prefix="/threads/{thread_id}", tags=["state"], responses=REFUSALS)
READ, RUN = needs("read"), needs("run")

Select = Annotated[list[str] | None, Query(description="The keys to return; all if none are named.")]
_STATE: dict[str, Any] = {
    "response_model": models.StateAnswer,
    "response_model_exclude_unset": True,
    "dependencies": [READ],
}
_STATES: dict[str, Any] = {**_STATE, "response_model": list[models.StateAnswer]}


@router.get("/state", **_STATE)
async def read(host: TheHost, thread_id: str, subgraphs: bool = False, select: Select = None) -> dict[str, Any]:
    """Return the state as it is, with what is asked in it."""
    return await _state(host, thread_id, CheckpointBody(), select, subgraphs=subgraphs)


@router.get("/state/{checkpoint_id}", **_STATE)
async def read_at(
    host: TheHost, thread_id: str, checkpoint_id: str, subgraphs: bool = False, select: Select = None
) -> dict[str, Any]:
    """Return the state at a checkpoint."""
    return await _state(host, thread_id, CheckpointBody(checkpoint_id=checkpoint_id), select, subgraphs=subgraphs)


@router.post("/state/checkpoint", **_STATE)
async def read_place(host: TheHost, thread_id: str, body: StatePlace) -> dict[str, Any]:
    """Return the state at a checkpoint of the graph, or of one inside it."""
    return await _state(host, thread_id, body.checkpoint, body.select, subgraphs=bool(body.subgraphs))


@router.post("/state", response_model=models.UpdatedAnswer, dependencies=[RUN])
async def update(host: TheHost, caller: TheCaller, thread_id: str, body: StateBody) -> dict[str, Any]:
    """Write to the state as if a node had returned the values; what is asked in the present step is withdrawn by that."""
    seen = await found(host, thread_id)
    graph = graph_of(host, seen)
    if graph is None:
        raise _no_graph(thread_id)
    if seen.is_active:
        raise ThreadBusyError(
            f"Thread '{thread_id}' has an active run, so its state cannot be changed; wait for it, or cancel it",
            thread_id=thread_id,
            status=seen.status,
        )
    if seen.status == "interrupted":
        caller.require("answer")  # what is asked would be withdrawn, and that decides too
    config = _config(thread_id, body.checkpoint or CheckpointBody(checkpoint_id=body.checkpoint_id))
    if isinstance(body.values, list):
        steps = [[StateUpdate(values, body.as_node)] for values in body.values]
        made = await graph.abulk_update_state(config, steps)
    else:
        made = await graph.aupdate_state(config, body.values, END if body.as_node == "__end__" else body.as_node)
    await _rested(host, graph, thread_id)
    checkpoint = checkpoint_json(made) or {}
    return {"checkpoint": checkpoint, "configurable": checkpoint, "checkpoint_id": checkpoint.get("checkpoint_id")}


@router.patch("/state", status_code=204, dependencies=[RUN])
async def merge_metadata(host: TheHost, thread_id: str, body: MetadataBody) -> Response:
    """Merge metadata into the thread's."""
    await found(host, thread_id)
    change = host.ledger.change_thread
    await offload(host.ledger, lambda: change(thread_id, clock.now(), metadata=body.metadata))
    return Response(status_code=204)


@router.post("/history", **_STATES)
async def history(host: TheHost, thread_id: str, body: HistoryBody) -> list[dict[str, Any]]:
    """List the thread's checkpoints, newest first."""
    before = body.before
    if isinstance(before, dict):
        before = (before.get("configurable") or before).get("checkpoint_id")
    place = body.checkpoint or CheckpointBody()
    return await _history(host, thread_id, place, str(before) if before else None, body)


@router.get("/history", **_STATES)
async def history_of(
    host: TheHost, thread_id: str, limit: Annotated[int, Query(ge=1, le=1000)] = 10, before: str | None = None,
    select: Select = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """List the thread's checkpoints, newest first."""
    body = HistoryBody(limit=limit, select=select)
    return await _history(host, thread_id, CheckpointBody(), before, body)


async def _history(
    host: Host, thread_id: str, place: CheckpointBody, before: str | None, body: HistoryBody
) -> list[dict[str, Any]]:
    graph = graph_of(host, await found(host, thread_id))
    if graph is None:
        return []
    config = _config(thread_id, place)
    bound = None if before is None else {"configurable": {"thread_id": thread_id, "checkpoint_id": before}}

    def listed() -> list[StateSnapshot]:
        return list(graph.get_state_history(config, filter=body.metadata, before=bound, limit=body.limit))

    states = await offload(host.saver, listed)
    return [paging.selected(state_json(state), body.select) for state in states]


async def _state(
    host: Host, thread_id: str, place: CheckpointBody, select: Sequence[str] | None, *, subgraphs: bool
) -> dict[str, Any]:
    seen = await found(host, thread_id)
    graph = graph_of(host, seen)
    if graph is None:
        return paging.selected(state_json(StateSnapshot({}, (), {}, None, None, None, (), ())), select)
    config = _config(thread_id, place)
    state = await graph.aget_state(config, subgraphs=subgraphs)
    rows: list[QuestionRow] = []
    if place.checkpoint_id is None and seen.record.key is not None:
        key = seen.record.key
        rows = await offload(host.saver, host.saver.questions, PendingFilter(key.thread_id, key.graph))
    return paging.selected(state_json(state, rows), select)


async def _rested(host: Host, graph: Runner, thread_id: str) -> None:
    """Note that a thread waits although nothing is asked, if the update left something to do."""
    state = await graph.aget_state(_config(thread_id, CheckpointBody()))
    key = graph.key_of(_config(thread_id, CheckpointBody()))

    def noted() -> None:
        row = host.saver.thread(key)
        halted = row.fence if row is not None and state.next else None
        host.ledger.change_thread(thread_id, clock.now(), key=key, halted=halted)

    await offload(host.ledger, noted)
    host.hub.changed([thread_id])


def _config(thread_id: str, place: CheckpointBody) -> dict[str, Any]:
    named: dict[str, Any] = {"thread_id": thread_id}
    if place.checkpoint_id:
        named["checkpoint_id"] = place.checkpoint_id
    if place.checkpoint_ns:
        named["checkpoint_ns"] = place.checkpoint_ns
    return {"configurable": named}


def _no_graph(thread_id: str) -> UsageError:
    return UsageError(
        f"Thread '{thread_id}' has no graph yet, so it has no state to change; run a graph in it, or make it with metadata "
        f'{{"graph_id": "..."}}'
    )
