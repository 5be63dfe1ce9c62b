"""The store: items by namespace and key, for clients of the protocol."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from waitpoint import clock
from waitpoint.errors import UsageError
from waitpoint.hosting import encoding
from waitpoint.hosting.host import Host
from waitpoint.server.callers import TheHost, needs
from waitpoint.server.langgraph import models
from waitpoint.server.langgraph.bodies import ItemBody, ItemPlace, ItemSearch, NamespaceSearch
from waitpoint.server.langgraph.run_answers import REFUSALS
from waitpoint.store.base import NOT_PROVIDED, Item

router = APIRouter(prefix="/store", tags=["store"], responses=REFUSALS)
READ, RUN = needs("read"), needs("run")


@router.put("/items", status_code=204, dependencies=[RUN])
async def put(host: TheHost, body: ItemBody) -> Response:
    """Put an item, in place of the one that is there."""
    ttl = NOT_PROVIDED if body.ttl is None else body.ttl
    await _store(host).aput(tuple(body.namespace), body.key, body.value, body.index, ttl=ttl)
    return Response(status_code=204)


@router.get("/items", response_model=models.ItemAnswer | None, dependencies=[READ])
async def get(
    host: TheHost, key: str, namespace: Annotated[str, Query(description="Its labels, joined by dots.")] = "",
    refresh_ttl: bool | None = None,
) -> dict[str, Any] | None:  # fmt: skip
    """Return an item, null if there is none."""
    labels = tuple(namespace.split("."))
    if not all(labels):
        raise UsageError(f"The namespace '{namespace}' has an empty label; join labels that are not empty by dots")
    item = await _store(host).aget(labels, key, refresh_ttl=refresh_ttl)
    return None if item is None else _item_json(item)


@router.delete("/items", status_code=204, dependencies=[RUN])
async def delete(host: TheHost, body: ItemPlace) -> Response:
    """Delete an item, if it is there."""
    await _store(host).adelete(tuple(body.namespace), body.key)
    return Response(status_code=204)


@router.post("/items/search", response_model=models.ItemsAnswer, dependencies=[READ])
async def search(host: TheHost, body: ItemSearch) -> dict[str, Any]:
    """Find items in a namespace and below it."""
    items = await _store(host).asearch(
        tuple(body.namespace_prefix), query=body.query, filter=body.filter, limit=body.limit, offset=body.offset,
        refresh_ttl=body.refresh_ttl,
    )  # fmt: skip
    return {"items": [{**_item_json(item), "score": item.score} for item in items]}


@router.post("/namespaces", response_model=models.NamespacesAnswer, dependencies=[READ])
async def namespaces(host: TheHost, body: NamespaceSearch) -> dict[str, Any]:
    """List the namespaces that hold items."""
    listed = await _store(host).alist_namespaces(
        prefix=tuple(body.prefix) if body.prefix else None, suffix=tuple(body.suffix) if body.suffix else None,
        max_depth=body.max_depth, limit=body.limit, offset=body.offset,
    )  # fmt: skip
    return {"namespaces": [list(each) for each in listed]}


def _store(host: Host) -> Any:
    if host.store is None:
        raise UsageError("This server has no store; give create_app() one")
    return host.store


def _item_json(item: Item) -> dict[str, Any]:
    return {
        "namespace": list(item.namespace),
        "key": item.key,
        "value": encoding.jsonable(item.value),
        "created_at": _time(item.created_at),
        "updated_at": _time(item.updated_at),
    }


def _time(at: Any) -> str:
    return at.isoformat() if hasattr(at, "isoformat") else clock.iso(float(at))
