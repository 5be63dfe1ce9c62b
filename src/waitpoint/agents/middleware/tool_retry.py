"""Tries a tool call again after it failed, and tells the model when it failed for good."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar, Literal

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool

from waitpoint.agents.middleware.retrying import (
    OnFailure,
    RetryingMiddleware,
    RetryOn,
    atried,
    default_retry_on,
    names_of,
    tried,
)
from waitpoint.agents.middleware.types import ToolCallRequest
from waitpoint.agents.tool_node.failures import error_message


class ToolRetryMiddleware(RetryingMiddleware):
    """Try a failed tool call again, after waits that grow.

    `tools` (tools or names) are those it is for; None means all. `retry_on` says which exceptions count; others pass at
    once. After the last attempt `on_failure` decides: "continue" gives the model an error message that names the tool,
    the number of attempts and the exception; "error" raises the exception; a function makes the message's text of it.

    A question that the tool asks is never retried and never becomes a message; nor does an answer that was refused. All
    attempts of a call share its `ToolRuntime.idempotency_key`. It must lie inside the middleware that asks for
    approval: one approval then covers all attempts.

    Raises `ConfigError` (a `ValueError`) for negative numbers and an `on_failure` that does not exist.
    """

    approval_order: ClassVar[Literal["inside"] | None] = "inside"

    def __init__(
        self,
        *,
        max_retries: int = 2,
        tools: Sequence[BaseTool | str] | None = None,
        retry_on: RetryOn = default_retry_on,
        on_failure: OnFailure = "continue",
        backoff_factor: float = 2.0,
        initial_delay: float = 1.0,
        max_delay: float = 60.0,
        jitter: bool = True,
    ) -> None:
        super().__init__(max_retries, retry_on, on_failure, backoff_factor, initial_delay, max_delay, jitter)
        self.tool_names = names_of(tools)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Call the tool until it succeeds or no attempt is left."""
        if not self._is_for(request):
            return handler(request)
        return tried(self, lambda: handler(request), lambda *end: self._failed(request, *end))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Do what `wrap_tool_call` does, from an event loop."""
        if not self._is_for(request):
            return await handler(request)
        return await atried(self, lambda: handler(request), lambda *end: self._failed(request, *end))

    def _is_for(self, request: ToolCallRequest) -> bool:
        return self.tool_names is None or request.tool_call["name"] in self.tool_names

    def _failed(self, request: ToolCallRequest, error: Exception, attempts: int) -> ToolMessage:
        call = request.tool_call
        return error_message(self.failure_text(f"Tool {call['name']!r}", error, attempts), call)
