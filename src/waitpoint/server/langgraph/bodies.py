"""Bodies of requests. Clients send fields that are not known here, and nulls: both are taken as not given."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from waitpoint.server.strict import strict


def _text_of_number(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


# An id is text; a number becomes text, all else is refused at the door.
ThreadId = Annotated[str, BeforeValidator(_text_of_number), Field(min_length=1, max_length=256)]


class Body(BaseModel):
    """A request's body."""

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _is_strict(cls, body: Any) -> Any:
        return strict(body)


class CheckpointBody(Body):
    """A checkpoint as clients echo it."""

    thread_id: str | None = None
    checkpoint_ns: str | None = None
    checkpoint_id: str | None = None
    checkpoint_map: dict[str, Any] | None = None


Number = Annotated[int, Field(ge=0, le=2**31)]
Limit = Annotated[int, Field(ge=1, le=1000)]


class Page(Body):
    """Which part of a list is wanted."""

    limit: Limit = 10
    offset: Number = 0
    select: list[str] | None = None
    sort_order: Literal["asc", "desc"] | None = None


class TtlBody(Body):
    """How long a thread is kept after its last change."""

    ttl: Annotated[float, Field(gt=0, le=1e9, description="Minutes.")]
    strategy: Literal["delete", "keep_latest"] = "delete"


class UpdateBody(Body):
    """One update of a superstep."""

    values: Any = None
    command: dict[str, Any] | None = None
    as_node: str | None = None


class SuperstepBody(Body):
    """Updates that make one checkpoint."""

    updates: list[UpdateBody]


class ThreadBody(Body):
    """A new thread. `graph_id` (or the same in `metadata`) names the graph that `supersteps` are for."""

    thread_id: ThreadId | None = None
    metadata: dict[str, Any] | None = None
    if_exists: Literal["raise", "do_nothing"] | None = None
    ttl: TtlBody | None = None
    graph_id: str | None = None
    supersteps: list[SuperstepBody] | None = None


class ThreadSearch(Page):
    """Which threads are wanted; `metadata` and `values` are contained in a thread's own."""

    metadata: dict[str, Any] | None = None
    values: dict[str, Any] | None = None
    ids: list[str] | None = None
    status: Literal["idle", "busy", "interrupted", "error"] | None = None
    sort_by: Literal["thread_id", "status", "created_at", "updated_at", "state_updated_at"] | None = None
    extract: dict[str, str] | None = None


class ThreadPatch(Body):
    """What changes of a thread; `metadata` is merged."""

    metadata: dict[str, Any] | None = None
    ttl: TtlBody | None = None


class PruneBody(Body):
    """Which threads are pruned: deleted, or cut down to what their latest state needs."""

    thread_ids: list[str]
    strategy: Literal["delete", "keep_latest"] = "delete"


class StateBody(Body):
    """An update of a thread's state."""

    values: Any = None
    as_node: str | None = None
    checkpoint: CheckpointBody | None = None
    checkpoint_id: str | None = None


class StatePlace(Body):
    """Which state is wanted."""

    checkpoint: CheckpointBody
    subgraphs: bool | None = None
    select: list[str] | None = None


class HistoryBody(Body):
    """Which checkpoints are wanted. `before` is an id, a checkpoint, or a config."""

    limit: Limit = 10
    before: str | dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    checkpoint: CheckpointBody | None = None
    select: list[str] | None = None


class MetadataBody(Body):
    """Metadata to merge."""

    metadata: dict[str, Any]


class AssistantBody(Body):
    """A new assistant."""

    graph_id: str
    assistant_id: str | None = None
    config: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    name: str | None = None
    description: str | None = None
    if_exists: Literal["raise", "do_nothing"] | None = None


class AssistantPatch(Body):
    """What changes of an assistant."""

    graph_id: str | None = None
    config: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    name: str | None = None
    description: str | None = None


class AssistantSearch(Page):
    """Which assistants are wanted."""

    metadata: dict[str, Any] | None = None
    graph_id: str | None = None
    name: str | None = None
    sort_by: Literal["assistant_id", "graph_id", "name", "created_at", "updated_at"] | None = None


class VersionsBody(Page):
    """Which versions are wanted."""

    metadata: dict[str, Any] | None = None


class VersionBody(Body):
    """The version to put in force."""

    version: int = Field(ge=1, le=2**31)


Label = Annotated[str, Field(min_length=1, pattern=r"^[^.]+$")]


class ItemPlace(Body):
    """Where an item lies."""

    namespace: list[Label] = Field(min_length=1)
    key: str = Field(min_length=1)


class ItemBody(ItemPlace):
    """An item to put; `index` names the fields to embed, false for none; `ttl` is in minutes."""

    value: dict[str, Any]
    index: list[str] | Literal[False] | None = None
    ttl: float | None = Field(default=None, gt=0, le=1e9)


class ItemSearch(Body):
    """Which items are wanted."""

    namespace_prefix: list[Label] = Field(default_factory=list)
    filter: dict[str, Any] | None = None
    limit: Limit = 10
    offset: Number = 0
    query: str | None = None
    refresh_ttl: bool | None = None


class NamespaceSearch(Body):
    """Which namespaces are wanted."""

    prefix: list[str] | None = None
    suffix: list[str] | None = None
    max_depth: int | None = Field(default=None, ge=1, le=1000)
    limit: Limit = 100
    offset: Number = 0
