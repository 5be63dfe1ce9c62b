"""What callers get that ask for version "v2": parts that say what they are, and the output of a run with its questions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, NotRequired, TypedDict

from typing_extensions import TypeVar

from waitpoint.records import INTERRUPT, CheckpointMetadata, Interrupt, Value

StateT = TypeVar("StateT", default=Any)
OutputT = TypeVar("OutputT", default=Any)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class GraphOutput(Value, Generic[OutputT]):
    """What a run came to: the output, the questions it rests with, and the nodes that are due next.

    `next` is empty when the run has finished; with no `interrupts` it rests at a static breakpoint, or another run has it.
    """

    value: OutputT
    interrupts: tuple[Interrupt[Any], ...] = ()
    next: tuple[str, ...] = ()

    def __getitem__(self, key: str) -> Any:
        """Return a key of the output, as if it were a dict; kept for code that was written for version "v1"."""
        _warn("output[key]")
        if key == INTERRUPT:
            return self.interrupts
        if isinstance(self.value, Mapping):
            return self.value[key]
        if not hasattr(self.value, key):
            raise KeyError(key)
        return getattr(self.value, key)

    def __contains__(self, key: object) -> bool:
        """Whether the output has a key, as if it were a dict; kept for code that was written for version "v1"."""
        _warn("key in output")
        if key == INTERRUPT:
            return bool(self.interrupts)
        if isinstance(self.value, Mapping):
            return key in self.value
        return isinstance(key, str) and hasattr(self.value, key)


def _warn(what: str) -> None:
    warnings.warn(
        f"`{what}` of a GraphOutput is deprecated, since it has its parts by name; use `.value`, `.interrupts` or `.next`",
        DeprecationWarning,
        stacklevel=3,
    )


class TaskPayload(TypedDict):
    """That a task starts."""

    id: str
    name: str
    input: Any
    triggers: tuple[str, ...]


class TaskResultPayload(TypedDict):
    """How a task ended; `interrupts` are questions as dicts with `id`, `value` and `response_schema`."""

    id: str
    name: str
    error: str | None
    result: Any
    interrupts: list[dict[str, Any]]


class CheckpointTask(TypedDict):
    """A task of a checkpoint, as far as it came; `state` is the config of the graph in it."""

    id: str
    name: str
    interrupts: NotRequired[tuple[dict[str, Any], ...]]
    state: Any
    error: NotRequired[str]
    result: NotRequired[Any]


class CheckpointPayload(TypedDict, Generic[StateT]):
    """A checkpoint; the configs name it and the one before it."""

    config: dict[str, Any]
    parent_config: dict[str, Any] | None
    values: StateT
    metadata: CheckpointMetadata
    next: list[str]
    tasks: list[CheckpointTask]


class DebugPayload(TypedDict, Generic[StateT]):
    """A checkpoint or the start or end of a task, in its step; `timestamp` is ISO 8601 in UTC."""

    step: int
    timestamp: str
    type: Literal["checkpoint", "task", "task_result"]
    payload: CheckpointPayload[StateT] | TaskPayload | TaskResultPayload


class ValuesStreamPart(TypedDict, Generic[OutputT]):
    """The state; `interrupts` are the questions that the run rests with, in the last one."""

    type: Literal["values"]
    ns: tuple[str, ...]
    data: OutputT
    interrupts: tuple[Interrupt[Any], ...]


class UpdatesStreamPart(TypedDict):
    """What a task returned, by its node's name."""

    type: Literal["updates"]
    ns: tuple[str, ...]
    data: dict[str, Any]


class MessagesStreamPart(TypedDict):
    """A message or a chunk of one, and its metadata."""

    type: Literal["messages"]
    ns: tuple[str, ...]
    data: tuple[Any, dict[str, Any]]


class CustomStreamPart(TypedDict):
    """What a node wrote."""

    type: Literal["custom"]
    ns: tuple[str, ...]
    data: Any


class CheckpointStreamPart(TypedDict, Generic[StateT]):
    """A checkpoint."""

    type: Literal["checkpoints"]
    ns: tuple[str, ...]
    data: CheckpointPayload[StateT]


class TasksStreamPart(TypedDict):
    """The start or the end of a task."""

    type: Literal["tasks"]
    ns: tuple[str, ...]
    data: TaskPayload | TaskResultPayload


class ToolsStreamPart(TypedDict):
    """What a tool does; `data["event"]` says which it is."""

    type: Literal["tools"]
    ns: tuple[str, ...]
    data: dict[str, Any]


class DebugStreamPart(TypedDict, Generic[StateT]):
    """A checkpoint or a task in its envelope."""

    type: Literal["debug"]
    ns: tuple[str, ...]
    data: DebugPayload[StateT]


StreamPart = (
    CheckpointStreamPart[StateT]
    | DebugStreamPart[StateT]
    | ValuesStreamPart[OutputT]
    | UpdatesStreamPart
    | MessagesStreamPart
    | CustomStreamPart
    | TasksStreamPart
    | ToolsStreamPart
)
