"""What a tool call is, while it is on its way to the tool: the request that middleware sees, and the tool's runtime."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic

from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolArg
from langchain_core.tools.base import _DirectlyInjectedToolArg
from typing_extensions import TypeVar

from waitpoint.records import Command
from waitpoint.runtime import ExecutionInfo, StreamWriter

ContextT = TypeVar("ContextT", default=None)
StateT = TypeVar("StateT", default=Any)


def _silent(_: Any) -> None:
    """Nobody listens."""


@dataclass
class ToolRuntime(_DirectlyInjectedToolArg, Generic[ContextT, StateT]):
    """What a tool can reach; injected into a parameter annotated with this class.

    `state` is the agent's state when the tools of the turn began. `idempotency_key` is the same for this call in every
    retry, resume and restart, and another one in a fork: pass it on to whoever performs the effect.
    """

    state: StateT
    context: ContextT
    config: Mapping[str, Any]
    stream_writer: StreamWriter
    tool_call_id: str | None
    store: Any = None
    tools: list[BaseTool] = field(default_factory=list)
    execution_info: ExecutionInfo | None = None
    server_info: Any = None
    idempotency_key: str | None = None
    emit: Callable[[Any], None] = field(default=_silent, repr=False)

    def emit_output_delta(self, delta: Any) -> None:
        """Show a part of the result in stream mode `tools`; does nothing when nobody listens."""
        self.emit(delta)


class InjectedState(InjectedToolArg):
    """Marks a tool's parameter that gets the state, or one key of it: `Annotated[str, InjectedState("user")]`."""

    def __init__(self, field: str | None = None) -> None:
        self.field = field


class InjectedStore(InjectedToolArg):
    """Marks a tool's parameter that gets the store the graph was compiled with."""


@dataclass
class ToolCallRequest:
    """A tool call on its way: the call, the tool (None: unknown), the state and the tool's runtime."""

    tool_call: ToolCall
    tool: BaseTool | None
    state: Any
    runtime: ToolRuntime[Any, Any]

    def override(self, **changes: Any) -> ToolCallRequest:
        """Return a request with other parts: `tool_call`, `tool`, `state` or `runtime`."""
        return replace(self, **changes)


class ByIdentity:
    """A tool as a key of caches: tools are models, and those have no hash."""

    __slots__ = ("tool",)

    def __init__(self, tool: BaseTool) -> None:
        self.tool = tool

    def __hash__(self) -> int:
        return id(self.tool)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and other.tool is self.tool


ToolResult = ToolMessage | Command[Any]
ToolHandler = Callable[[ToolCallRequest], Any]
ToolCallWrapper = Callable[[ToolCallRequest, ToolHandler], Any]
AsyncToolHandler = Callable[[ToolCallRequest], Awaitable[Any]]
AsyncToolCallWrapper = Callable[[ToolCallRequest, AsyncToolHandler], Awaitable[Any]]
