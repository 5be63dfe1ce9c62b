"""Assistants: graphs with settings of their own, in versions; each graph has one by itself."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from waitpoint import clock
from waitpoint.checkpoint.base import offload
from waitpoint.errors import ConflictError, NotFoundError
from waitpoint.hosting.graphs import builtin_id
from waitpoint.hosting.host import Host
from waitpoint.ledger.base import AssistantRow, ThreadFilter
from waitpoint.server.callers import TheHost, needs
from waitpoint.server.langgraph import models, paging
from waitpoint.server.langgraph.bodies import (
    AssistantBody,
    AssistantPatch,
    AssistantSearch,
    VersionBody,
    VersionsBody,
)
from waitpoint.server.langgraph.run_answers import REFUSALS

router = APIRouter(prefix="/assistants", tags=["assistants"], responses=REFUSALS)
READ, ADMIN = needs("read"), needs("admin")


@router.post("", response_model=models.AssistantAnswer, dependencies=[ADMIN])
async def create(host: TheHost, body: AssistantBody) -> dict[str, Any]:
    """Make an assistant of a graph."""
    if body.graph_id not in host.graphs:
        host.graphs[body.graph_id]  # raises, with what is known
    at = clock.now()
    id_ = body.assistant_id or str(uuid.uuid4())
    name, description = body.name or body.graph_id, body.description
    documents = body.config or {}, body.context or {}, body.metadata or {}
    row = AssistantRow(id_, body.graph_id, name, description, *documents, 1, at, at)
    there = await offload(host.ledger, host.ledger.add_assistant, row)
    if there is not None and body.if_exists != "do_nothing":
        raise ConflictError(f"Assistant '{id_}' exists already; take another id, or say if_exists: \"do_nothing\"")
    return assistant_json(there or row)


@router.post("/search", response_model=list[models.AssistantAnswer], dependencies=[READ])
async def search(host: TheHost, body: AssistantSearch, response: Response) -> list[dict[str, Any]]:
    """List assistants."""
    rows = await _found(host, body)
    page = rows[body.offset : body.offset + body.limit]
    paging.tell(response, len(rows), body.offset, len(page))
    return [paging.selected(assistant_json(row), body.select) for row in page]


@router.post("/count", response_model=int, dependencies=[READ])
async def count(host: TheHost, body: AssistantSearch) -> int:
    """Count assistants."""
    return len(await _found(host, body))


@router.get("/{assistant_id}", response_model=models.AssistantAnswer, dependencies=[READ])
async def read(host: TheHost, assistant_id: str) -> dict[str, Any]:
    """Return an assistant, by its id or its graph's name."""
    return assistant_json(await host.find_assistant(assistant_id))


@router.patch("/{assistant_id}", response_model=models.AssistantAnswer, dependencies=[ADMIN])
async def change(host: TheHost, assistant_id: str, body: AssistantPatch) -> dict[str, Any]:
    """Change an assistant: a new version, which is in force from now."""
    row = await host.find_assistant(assistant_id)
    if body.graph_id is not None:
        host.graphs[body.graph_id]
        row.graph = body.graph_id
    row.name = row.name if body.name is None else body.name
    row.description = row.description if body.description is None else body.description
    row.config = row.config if body.config is None else body.config
    row.context = row.context if body.context is None else body.context
    row.metadata = {**row.metadata, **(body.metadata or {})}
    row.updated_at = clock.now()
    return assistant_json(await offload(host.ledger, host.ledger.change_assistant, row))


@router.delete("/{assistant_id}", status_code=204, dependencies=[ADMIN])
async def delete(host: TheHost, assistant_id: str, delete_threads: bool = False) -> Response:
    """Remove an assistant; with `delete_threads` the threads it was used in, too."""
    row = await host.find_assistant(assistant_id)
    if row.id == builtin_id(row.graph):
        raise ConflictError(f"Assistant '{row.id}' is the one that graph '{row.graph}' has by itself; it stays")
    if delete_threads:
        wanted = ThreadFilter(metadata={"assistant_id": row.id})
        for seen in await host.threads(wanted):
            await host.delete_thread(seen.record.id)
    await offload(host.ledger, host.ledger.delete_assistant, row.id)
    return Response(status_code=204)


@router.get("/{assistant_id}/graph", response_model=models.GraphAnswer, dependencies=[READ])
async def graph(host: TheHost, assistant_id: str, xray: Annotated[str | None, Query()] = None) -> dict[str, Any]:
    """Return the nodes and edges; `xray` shows those of graphs inside, a number that many levels deep."""
    row = await host.find_assistant(assistant_id)
    text = (xray or "false").lower()
    depth: int | bool = int(text) if text.isdigit() and len(text) < 4 else text == "true"
    drawing = await host.graphs[row.graph].aget_graph(xray=depth)
    told = drawing.to_json()
    return {"nodes": told["nodes"], "edges": told["edges"]}


@router.get("/{assistant_id}/schemas", response_model=models.SchemasAnswer, dependencies=[READ])
async def schemas(host: TheHost, assistant_id: str) -> dict[str, Any]:
    """Return the JSON Schemas of the graph."""
    row = await host.find_assistant(assistant_id)
    return {"graph_id": row.graph, **await offload(host.ledger, _schemas, host.graphs[row.graph])}


@router.get("/{assistant_id}/subgraphs", response_model=dict[str, models.SchemasAnswer], dependencies=[READ])
async def subgraphs(host: TheHost, assistant_id: str, recurse: bool = False) -> dict[str, Any]:
    """Return the graphs inside the graph."""
    return await _subgraphs(host, assistant_id, None, recurse=recurse)


@router.get(
    "/{assistant_id}/subgraphs/{namespace}", response_model=dict[str, models.SchemasAnswer], dependencies=[READ]
)
async def subgraph(host: TheHost, assistant_id: str, namespace: str, recurse: bool = False) -> dict[str, Any]:
    """Return the graph inside the graph that has this name."""
    return await _subgraphs(host, assistant_id, namespace, recurse=recurse)


@router.post("/{assistant_id}/versions", response_model=list[models.AssistantAnswer], dependencies=[READ])
async def versions(host: TheHost, assistant_id: str, body: VersionsBody) -> list[dict[str, Any]]:
    """List the versions of an assistant, newest first."""
    row = await host.find_assistant(assistant_id)
    rows = await offload(host.ledger, host.ledger.versions, row.id)
    rows = [each for each in rows if (body.metadata or {}).items() <= each.metadata.items()]
    return [assistant_json(each) for each in rows[body.offset : body.offset + body.limit]]


@router.post("/{assistant_id}/latest", response_model=models.AssistantAnswer, dependencies=[ADMIN])
async def latest(host: TheHost, assistant_id: str, body: VersionBody) -> dict[str, Any]:
    """Put a version in force."""
    row = await host.find_assistant(assistant_id)
    chosen = await offload(host.ledger, host.ledger.choose_version, row.id, body.version)
    if chosen is None:
        raise NotFoundError(f"Assistant '{row.id}' has no version {body.version}; list them with POST .../versions")
    return assistant_json(chosen)


async def _found(host: Host, body: AssistantSearch) -> list[AssistantRow]:
    rows = await offload(host.ledger, lambda: host.ledger.assistants(metadata=body.metadata))
    rows = [row for row in rows if row.graph in host.graphs]
    if body.graph_id is not None:
        rows = [row for row in rows if row.graph == body.graph_id]
    if body.name is not None:
        rows = [row for row in rows if body.name.lower() in row.name.lower()]
    by = {"assistant_id": "id", "graph_id": "graph"}.get(body.sort_by or "created_at", body.sort_by or "created_at")
    return sorted(rows, key=lambda row: (getattr(row, by), row.id), reverse=(body.sort_order or "desc") == "desc")


async def _subgraphs(host: Host, assistant_id: str, namespace: str | None, *, recurse: bool) -> dict[str, Any]:
    row = await host.find_assistant(assistant_id)
    top = host.graphs[row.graph]

    def listed() -> dict[str, Any]:
        inside = top.get_subgraphs(namespace=namespace, recurse=recurse)
        return {name: {"graph_id": graph.name, **_schemas(graph)} for name, graph in inside}

    found: dict[str, Any] = await offload(host.ledger, listed)
    return found


def _schemas(graph: Any) -> dict[str, Any]:
    """Return what schemas a graph can tell; one that holds what JSON Schema cannot say tells none."""
    ways = {
        "input_schema": "get_input_jsonschema",
        "output_schema": "get_output_jsonschema",
        "state_schema": "get_output_jsonschema",
        "config_schema": "get_config_jsonschema",
        "context_schema": "get_context_jsonschema",
    }
    found: dict[str, Any] = {}
    for name, way in ways.items():
        try:
            found[name] = getattr(graph, way)()
        except Exception:  # noqa: BLE001 - a user's own types may refuse in any way
            found[name] = None
    return found


def assistant_json(row: AssistantRow) -> dict[str, Any]:
    """Return an assistant as clients have it."""
    return {
        "assistant_id": row.id,
        "graph_id": row.graph,
        "config": row.config,
        "context": row.context,
        "metadata": row.metadata,
        "name": row.name,
        "description": row.description,
        "version": row.version,
        "created_at": clock.iso(row.created_at),
        "updated_at": clock.iso(row.updated_at),
    }
