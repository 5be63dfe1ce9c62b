"""What the routes answer with, for the description of the API. Clients get more keys than they need, never fewer."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class Answer(BaseModel):
    """Something a route answers with."""

    model_config = ConfigDict(extra="allow")


class InterruptAnswer(Answer):
    """A question that waits for an answer."""

    id: str
    value: Any = None
    response_schema: dict[str, Any] | None = None


class CheckpointAnswer(Answer):
    """A checkpoint, by name."""

    thread_id: str | None
    checkpoint_ns: str
    checkpoint_id: str | None = None
    checkpoint_map: dict[str, Any] | None = None


class TaskAnswer(Answer):
    """A task of a checkpoint."""

    id: str
    name: str
    path: list[Any]
    error: str | None
    interrupts: list[InterruptAnswer]
    checkpoint: CheckpointAnswer | None
    state: dict[str, Any] | None
    result: Any = None


class StateAnswer(Answer):
    """A thread's state at a checkpoint. With `select` it has only the keys asked for."""

    values: Any = None
    next: list[str] | None = None
    tasks: list[TaskAnswer] | None = None
    metadata: dict[str, Any] | None = None
    created_at: str | None = None
    checkpoint: CheckpointAnswer | None = None
    parent_checkpoint: CheckpointAnswer | None = None
    interrupts: list[InterruptAnswer] | None = None
    checkpoint_id: str | None = None
    parent_checkpoint_id: str | None = None


class ThreadAnswer(Answer):
    """A thread. With `select` it has only the keys asked for."""

    thread_id: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    state_updated_at: str | None = None
    metadata: dict[str, Any] | None = None
    status: Literal["idle", "busy", "interrupted", "error"] | None = None
    config: dict[str, Any] | None = None
    values: Any = None
    interrupts: dict[str, list[InterruptAnswer]] | None = None
    error: dict[str, Any] | None = None


class AssistantAnswer(Answer):
    """An assistant: a graph with settings of its own."""

    assistant_id: str | None = None
    graph_id: str | None = None
    config: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    name: str | None = None
    description: str | None = None
    version: int | None = None
    created_at: str | None = None
    updated_at: str | None = None


class GraphAnswer(Answer):
    """A graph's nodes and edges."""

    nodes: list[dict[str, Any]]
    edges: list[dict[str, Any]]


class SchemasAnswer(Answer):
    """JSON Schemas of a graph; null for what it does not declare."""

    graph_id: str | None
    input_schema: dict[str, Any] | None
    output_schema: dict[str, Any] | None
    state_schema: dict[str, Any] | None
    config_schema: dict[str, Any] | None
    context_schema: dict[str, Any] | None


class UpdatedAnswer(Answer):
    """The checkpoint that an update made."""

    checkpoint: CheckpointAnswer
    configurable: dict[str, Any]
    checkpoint_id: str | None


class PrunedAnswer(Answer):
    """How many threads were pruned."""

    pruned_count: int


class ItemAnswer(Answer):
    """An item of the store."""

    namespace: list[str]
    key: str
    value: dict[str, Any]
    created_at: str
    updated_at: str


class ItemsAnswer(Answer):
    """Items that were found, each with its score where a query was given."""

    items: list[ItemAnswer]


class NamespacesAnswer(Answer):
    """Namespaces, as lists of labels."""

    namespaces: list[list[str]]
