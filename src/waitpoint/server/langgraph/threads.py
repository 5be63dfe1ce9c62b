"""Threads: made, found, changed, copied, pruned, deleted."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response

from waitpoint import clock
from waitpoint.checkpoint.base import PendingFilter, offload
from waitpoint.engine.questions import interrupt_of
from waitpoint.engine.runner import Runner
from waitpoint.errors import ConflictError, NotFoundError, UsageError
from waitpoint.hosting import encoding
from waitpoint.hosting.host import Host, new_thread_id
from waitpoint.ledger.base import SeenThread, ThreadFilter, ThreadRecord
from waitpoint.records import StateUpdate
from waitpoint.server.callers import TheHost, needs
from waitpoint.server.langgraph import models, paging
from waitpoint.server.langgraph.bodies import PruneBody, ThreadBody, ThreadPatch, ThreadSearch
from waitpoint.server.langgraph.run_answers import REFUSALS

router = APIRouter(prefix="/threads", tags=["threads"], responses=REFUSALS)
READ, RUN, ADMIN = needs("read"), needs("run"), needs("admin")
_THREAD: dict[str, Any] = {"response_model": models.ThreadAnswer, "response_model_exclude_unset": True}


@router.post("", **_THREAD, dependencies=[RUN])
async def create(host: TheHost, body: ThreadBody) -> dict[str, Any]:
    """Make a thread; with `supersteps`, one that has a history already."""
    at = clock.now()
    metadata = {**(body.metadata or {}), **({"graph_id": body.graph_id} if body.graph_id else {})}
    record = ThreadRecord(body.thread_id or new_thread_id(), metadata, at, at)
    if body.ttl is not None:
        record.ttl, record.ttl_strategy = body.ttl.ttl, body.ttl.strategy
    graph = _named(host, metadata) if body.supersteps else None
    there = await offload(host.ledger, host.ledger.add_thread, record)
    if there is not None and body.if_exists != "do_nothing":
        raise ConflictError(f"Thread '{record.id}' exists already; take another id, or say if_exists: \"do_nothing\"")
    if there is None and graph is not None:
        await _begun(host, graph, record.id, body)
    return await _shown(host, await found(host, record.id))


@router.post(
    "/search", response_model=list[models.ThreadAnswer], response_model_exclude_unset=True, dependencies=[READ]
)
async def search(host: TheHost, body: ThreadSearch, response: Response) -> list[dict[str, Any]]:
    """List threads."""
    if body.values:  # what a thread holds is known only once it is read
        fitting = [
            each
            for seen in await host.threads(_filter(body, paged=False))
            if _is_within(body.values, (each := await _shown(host, seen))["values"])
        ]
        shown, total = fitting[body.offset : body.offset + body.limit], len(fitting)
    else:
        wanted = _filter(body, paged=True)
        shown = [await _shown(host, seen, body.select) for seen in await host.threads(wanted)]
        total = await offload(host.ledger, host.ledger.count_threads, wanted)
    paging.tell(response, total, body.offset, len(shown))
    if body.extract:
        shown = [{**each, "extracted": paging.extracted(each, body.extract)} for each in shown]
        return [paging.selected(each, [*body.select, "extracted"] if body.select else None) for each in shown]
    return [paging.selected(each, body.select) for each in shown]


@router.post("/count", response_model=int, dependencies=[READ])
async def count(host: TheHost, body: ThreadSearch) -> int:
    """Count threads."""
    if body.values:
        seen = await host.threads(_filter(body, paged=False))
        return sum([_is_within(body.values, (await _shown(host, each))["values"]) for each in seen])
    number: int = await offload(host.ledger, host.ledger.count_threads, _filter(body, paged=False))
    return number


@router.post("/prune", response_model=models.PrunedAnswer, dependencies=[ADMIN])
async def prune(host: TheHost, body: PruneBody) -> dict[str, int]:
    """Delete threads, or take away what their latest state does not need; what open questions need stays."""
    call = functools.partial(host.saver.prune, body.thread_ids, strategy=body.strategy)
    done = await offload(host.saver, call)
    for thread_id in body.thread_ids if body.strategy == "delete" else ():
        if not await offload(host.saver, functools.partial(host.saver.threads, thread_id=thread_id)):
            await offload(host.ledger, host.ledger.forget_thread, thread_id)
    return {"pruned_count": done.threads}


@router.get("/{thread_id}", **_THREAD, dependencies=[READ])
async def read(host: TheHost, thread_id: str, include: Annotated[str | None, Query()] = None) -> dict[str, Any]:
    """Return a thread; with `include=ttl` how long it is kept."""
    seen = await found(host, thread_id)
    shown = await _shown(host, seen)
    if include == "ttl" and seen.record.ttl is not None:
        ends = max(seen.record.updated_at, seen.row.updated_at if seen.row else 0.0) + seen.record.ttl * 60
        shown["ttl"] = {
            "ttl": seen.record.ttl,
            "strategy": seen.record.ttl_strategy,
            "ttl_minutes": seen.record.ttl,
            "expires_at": clock.iso(min(ends, 253402300799.0)),
        }
    return shown


@router.patch("/{thread_id}", **_THREAD, dependencies=[RUN])
async def change(
    host: TheHost, thread_id: str, body: ThreadPatch, prefer: Annotated[str | None, Header()] = None
) -> Any:
    """Merge metadata into a thread's, or set how long it is kept."""
    await found(host, thread_id)
    ttl = (None, None) if body.ttl is None else (body.ttl.ttl, body.ttl.strategy)
    call = functools.partial(
        host.ledger.change_thread, thread_id, clock.now(), metadata=body.metadata, ttl=ttl[0], ttl_strategy=ttl[1]
    )
    await offload(host.ledger, call)
    if prefer == "return=minimal":
        return Response(status_code=204)
    return await _shown(host, await found(host, thread_id))


@router.delete("/{thread_id}", status_code=204, dependencies=[ADMIN])
async def delete(host: TheHost, thread_id: str) -> Response:
    """Stop what runs in a thread and remove all of it."""
    await found(host, thread_id)
    await host.delete_thread(thread_id)
    return Response(status_code=204)


@router.post("/{thread_id}/copy", **_THREAD, dependencies=[RUN])
async def copy(host: TheHost, thread_id: str) -> dict[str, Any]:
    """Copy a thread under a new id: what is asked in it is asked in the copy too, under ids of its own."""
    seen = await found(host, thread_id)
    at, new = clock.now(), new_thread_id()
    if seen.row is not None:
        await offload(host.saver, host.saver.copy_thread, thread_id, new)
    await offload(host.ledger, host.ledger.add_thread, ThreadRecord(new, {}, at, at))
    key = None if seen.record.key is None else seen.record.key._replace(thread_id=new)
    call = functools.partial(host.ledger.change_thread, new, at, metadata=seen.record.metadata, key=key)
    await offload(host.ledger, call)
    return await _shown(host, await found(host, new))


async def found(host: Host, thread_id: str) -> SeenThread:
    """Return a thread that there is. Raises `NotFoundError`."""
    seen: SeenThread | None = await offload(host.ledger, host.ledger.thread, thread_id)
    if seen is None:
        raise NotFoundError(f"Thread with ID '{thread_id}' not found; make it with POST /threads")
    return seen


def graph_of(host: Host, seen: SeenThread) -> Runner | None:
    """Return the graph that a thread belongs to, if it is served here; of one that never ran, the one it names."""
    key = seen.record.key
    name = seen.record.metadata.get("graph_id") if key is None else host.graphs.name_of(key)
    return host.graphs[name] if isinstance(name, str) and name in host.graphs else None


# --- what clients get -------------------------------------------------------------------------------------------------


async def _shown(host: Host, seen: SeenThread, select: Sequence[str] | None = None) -> dict[str, Any]:
    shown: dict[str, Any] = await offload(host.saver, _thread_json, host, seen, select)
    return shown


def _thread_json(host: Host, seen: SeenThread, select: Sequence[str] | None) -> dict[str, Any]:
    """Return a thread as clients have it. Values and questions are read only if they are wanted."""
    record, row = seen.record, seen.row
    changed = max(record.updated_at, row.updated_at if row else 0.0)
    shown: dict[str, Any] = {
        "thread_id": record.id,
        "created_at": clock.iso(record.created_at),
        "updated_at": clock.iso(changed),
        "state_updated_at": clock.iso(row.updated_at if row else changed),
        "metadata": record.metadata,
        "status": seen.status,
        "config": {"configurable": {}},
        "values": None,
        "interrupts": {},
    }
    wants: Callable[[str], bool] = lambda name: not select or name in select  # noqa: E731
    graph = graph_of(host, seen)
    if graph is None or row is None:
        return shown
    if wants("values"):
        shown["values"] = encoding.jsonable(graph.get_state({"configurable": {"thread_id": record.id}}).values)
    if wants("interrupts") and seen.status == "interrupted":
        for each in host.saver.questions(PendingFilter(row.key.thread_id, row.key.graph)):
            told = encoding.interrupt_json(interrupt_of(each, graph.registry))
            shown["interrupts"].setdefault(each.task_id, []).append(told)
    if seen.status == "error":
        kind, _, text = (row.error or "").partition(": ")
        shown["error"] = {"error": kind, "message": text or kind}
    return shown


def _filter(body: ThreadSearch, *, paged: bool) -> ThreadFilter:
    by: Any = "updated_at" if body.sort_by in (None, "state_updated_at") else body.sort_by
    metadata, ascending = body.metadata or {}, body.sort_order == "asc"
    if not paged:
        return ThreadFilter(body.ids, metadata, body.status, by, ascending)
    return ThreadFilter(body.ids, metadata, body.status, by, ascending, body.limit, body.offset)


def _is_within(part: Any, whole: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(k in whole and _is_within(v, whole[k]) for k, v in part.items())
    return bool(part == whole)


def _named(host: Host, metadata: dict[str, Any]) -> Runner:
    name = metadata.get("graph_id")
    if not isinstance(name, str):
        raise UsageError("`supersteps` are written by a graph's nodes, and none is named; give `graph_id`")
    return host.graphs[name]


async def _begun(host: Host, graph: Runner, thread_id: str, body: ThreadBody) -> None:
    config = {"configurable": {"thread_id": thread_id}}
    steps = [
        [StateUpdate((u.command or {}).get("update") if u.command else u.values, u.as_node) for u in step.updates]
        for step in body.supersteps or ()
    ]
    await graph.abulk_update_state(config, steps)
    call = functools.partial(host.ledger.change_thread, thread_id, clock.now(), key=graph.key_of(config))
    await offload(host.ledger, call)
