"""Agents whose tool calls wait for a decision."""

from waitpoint.agents.factory import create_agent
from waitpoint.agents.middleware.human_in_the_loop import is_tool_approval_interrupt
from waitpoint.agents.state import AgentState

__all__ = ["AgentState", "create_agent", "is_tool_approval_interrupt"]
