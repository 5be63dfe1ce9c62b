"""Turns the exceptions of tools that one chooses into messages which the model can act on."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar, Literal

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool

from waitpoint.agents.middleware.retrying import names_of
from waitpoint.agents.middleware.types import AgentMiddleware, ToolCallRequest
from waitpoint.agents.passing import must_pass
from waitpoint.errors import AsyncOnlyError, ConfigError

Content = str | list[Any] | None
OnError = Callable[[Exception, ToolCallRequest], Content]
AOnError = Callable[[Exception, ToolCallRequest], Awaitable[Content]]


class ToolErrorMiddleware(AgentMiddleware[Any, Any, Any]):
    """Ask `on_error(exception, request)` what the model is told of a failed tool call.

    It returns a text or content blocks, which become an error message, or None: then the exception goes on its way.
    `aon_error` is its coroutine form, preferred by `ainvoke`; with it alone the agent cannot run under `invoke`. `tools`
    (tools or names) are those it is for; None means all.

    Pauses, refused answers and other things that the engine must see never reach `on_error`. It must lie inside the
    middleware that asks for approval. To retry as well, put `ToolRetryMiddleware(on_failure="error")` inside this one.

    Raises `ConfigError` (a `ValueError`) if neither function is given.
    """

    approval_order: ClassVar[Literal["inside"] | None] = "inside"

    def __init__(
        self,
        on_error: OnError | None = None,
        *,
        aon_error: AOnError | None = None,
        tools: Sequence[BaseTool | str] | None = None,
    ) -> None:
        if on_error is None and aon_error is None:
            raise ConfigError("ToolErrorMiddleware has nothing to ask; give `on_error`, `aon_error` or both")
        if inspect.iscoroutinefunction(on_error):
            raise ConfigError("`on_error` of ToolErrorMiddleware is a coroutine function; give it as `aon_error`")
        self.on_error = on_error
        self.aon_error = aon_error
        self.tool_names = names_of(tools)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Call the tool; an exception becomes what `on_error` says of it."""
        if self.on_error is None:  # before the tool runs: afterwards its exception would be lost in this one
            raise AsyncOnlyError(
                f"Middleware {self.name!r} has only `aon_error`, which cannot run under invoke() or stream(); use ainvoke() "
                f"or astream(), or give it `on_error` too"
            )
        try:
            return handler(request)
        except Exception as error:
            if not self._is_for(request, error) or (content := self.on_error(error, request)) is None:
                raise
            return _message(request, content)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Do what `wrap_tool_call` does, from an event loop, with `aon_error` if there is one."""
        try:
            return await handler(request)
        except Exception as error:
            if not self._is_for(request, error) or (content := await self._asked(error, request)) is None:
                raise
            return _message(request, content)

    async def _asked(self, error: Exception, request: ToolCallRequest) -> Content:
        if self.aon_error is not None:
            return await self.aon_error(error, request)
        assert self.on_error is not None
        return self.on_error(error, request)

    def _is_for(self, request: ToolCallRequest, error: Exception) -> bool:
        chosen = self.tool_names is None or request.tool_call["name"] in self.tool_names
        return chosen and not must_pass(error)


def _message(request: ToolCallRequest, content: str | list[Any]) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(content=content, tool_call_id=call["id"], name=call["name"], status="error")
