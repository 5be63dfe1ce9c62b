"""Tools and what is injected into them, at the path users of LangChain know."""

from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool, ToolException, tool

from waitpoint.agents.tool_node.request import InjectedState, InjectedStore, ToolRuntime

__all__ = [
    "BaseTool",
    "InjectedState",
    "InjectedStore",
    "InjectedToolArg",
    "InjectedToolCallId",
    "StructuredTool",
    "ToolException",
    "ToolRuntime",
    "tool",
]
