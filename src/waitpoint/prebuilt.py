"""Ready parts of graphs, at the path users of LangGraph know."""

from waitpoint.agents.tool_node.node import ToolNode, tools_condition
from waitpoint.agents.tool_node.request import InjectedState, InjectedStore, ToolCallRequest, ToolRuntime

__all__ = [
    "InjectedState",
    "InjectedStore",
    "ToolCallRequest",
    "ToolNode",
    "ToolRuntime",
    "tools_condition",
]
