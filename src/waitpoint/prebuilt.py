"""Ready parts of graphs, at the path users of LangGraph know."""

from waitpoint.agents.errors import ToolInvocationError
from waitpoint.agents.tool_node.node import ToolNode, tools_condition
from waitpoint.agents.tool_node.request import (
    AsyncToolCallWrapper,
    InjectedState,
    InjectedStore,
    ToolCallRequest,
    ToolCallWrapper,
    ToolRuntime,
)

__all__ = [
    "AsyncToolCallWrapper",
    "InjectedState",
    "InjectedStore",
    "ToolCallRequest",
    "ToolCallWrapper",
    "ToolInvocationError",
    "ToolNode",
    "ToolRuntime",
    "tools_condition",
]
