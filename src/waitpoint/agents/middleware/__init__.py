"""Middleware of agents: what is asked, retried, limited and refused around their steps."""

from waitpoint.agents.middleware.decorators import (
    after_agent,
    after_model,
    before_agent,
    before_model,
    dynamic_prompt,
    wrap_model_call,
    wrap_tool_call,
)
from waitpoint.agents.middleware.human_in_the_loop import (
    HumanInTheLoopMiddleware,
    is_tool_approval_interrupt,
)
from waitpoint.agents.middleware.model_call_limit import ModelCallLimitMiddleware
from waitpoint.agents.middleware.model_fallback import ModelFallbackMiddleware
from waitpoint.agents.middleware.model_retry import ModelRetryMiddleware
from waitpoint.agents.middleware.tool_call_limit import ToolCallLimitMiddleware
from waitpoint.agents.middleware.tool_error import ToolErrorMiddleware
from waitpoint.agents.middleware.tool_retry import ToolRetryMiddleware
from waitpoint.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    InputAgentState,
    ModelCallResult,
    ModelRequest,
    ModelResponse,
    OutputAgentState,
    ToolCallRequest,
    hook_config,
)
from waitpoint.agents.policy import InterruptOnConfig
from waitpoint.runtime import Runtime

__all__ = [
    "AgentMiddleware",
    "AgentState",
    "ExtendedModelResponse",
    "HumanInTheLoopMiddleware",
    "InputAgentState",
    "InterruptOnConfig",
    "ModelCallLimitMiddleware",
    "ModelCallResult",
    "ModelFallbackMiddleware",
    "ModelRequest",
    "ModelResponse",
    "ModelRetryMiddleware",
    "OutputAgentState",
    "Runtime",
    "ToolCallLimitMiddleware",
    "ToolCallRequest",
    "ToolErrorMiddleware",
    "ToolRetryMiddleware",
    "after_agent",
    "after_model",
    "before_agent",
    "before_model",
    "dynamic_prompt",
    "hook_config",
    "is_tool_approval_interrupt",
    "wrap_model_call",
    "wrap_tool_call",
]
