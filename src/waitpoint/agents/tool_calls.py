"""An agent's tool calls: each a task of its own, with the middleware around it, and where it leads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool

from waitpoint.agents import history
from waitpoint.agents.middleware.types import AgentMiddleware, overrides
from waitpoint.agents.routes import Routes
from waitpoint.agents.tool_node.bridge import aat_home, at_home, in_own_thread, sync_as_async
from waitpoint.agents.tool_node.node import ToolNode
from waitpoint.errors import AsyncOnlyError


class AgentTools:
    """The tools of an agent as a node."""

    def __init__(
        self, tools: Sequence[BaseTool], middleware: Sequence[AgentMiddleware[Any, Any, Any]], routes: Routes
    ) -> None:
        self.name = "tools"
        self.routes = routes
        around = [m for m in middleware if overrides(m, "wrap_tool_call") or overrides(m, "awrap_tool_call")]
        self.node = ToolNode(
            tools,
            wrap_tool_call=_composed(around) if around else None,
            awrap_tool_call=_acomposed(around) if around else None,
        )

    @property
    def tools_by_name(self) -> dict[str, Any]:
        """The tools, as drawings show them."""
        return dict(self.node.tools_by_name)

    def invoke(self, given: Any, config: Any = None, /) -> Any:
        """Run a call."""
        return self.node.invoke(given, config)

    async def ainvoke(self, given: Any, config: Any = None, /) -> Any:
        """Do the same from an event loop."""
        return await self.node.ainvoke(given, config)

    def route(self, state: Any) -> str:
        """Return where a call leads: to the end only if all calls of the turn go straight to it; each says so for itself."""
        message, after = history.last_call(state["messages"])
        if message is None:
            return self.routes.loop
        if self.routes.is_structured(after):
            return self.routes.exit
        edited = state.get("hitl_edited_tool_calls") or {}
        names = [edited.get(call["id"], call)["name"] for call in message.tool_calls]
        if not all(self._is_direct(name) for name in names):
            return self.routes.loop
        answers = [m for m in after if isinstance(m, ToolMessage)]
        undone = any(m.status == "error" or "lc_data" in m.additional_kwargs for m in answers)
        return self.routes.loop if undone else self.routes.exit

    def _is_direct(self, name: str) -> bool:
        tool = self.node.tools_by_name.get(name)
        return tool is not None and tool.return_direct


def _composed(around: Sequence[Any]) -> Callable[[Any, Any], Any]:
    """Put wrappers around each other, the first outermost."""

    def wrapped(request: Any, handler: Any) -> Any:
        for middleware in reversed(around):
            if not overrides(middleware, "wrap_tool_call"):
                raise AsyncOnlyError(
                    f"Middleware {middleware.name!r} has only `awrap_tool_call`, which cannot run under invoke() or stream(); "
                    f"use ainvoke() or astream(), or give it `wrap_tool_call` too"
                )
            handler = at_home(_bound(middleware.wrap_tool_call, handler))
        return handler(request)

    return wrapped


def _acomposed(around: Sequence[Any]) -> Callable[[Any, Any], Any]:
    async def wrapped(request: Any, handler: Any) -> Any:
        for middleware in reversed(around):
            if overrides(middleware, "awrap_tool_call"):
                handler = aat_home(_bound(middleware.awrap_tool_call, handler))
            else:
                handler = aat_home(_threaded(middleware.wrap_tool_call, handler))
        return await handler(request)

    return wrapped


def _bound(wrapper: Any, handler: Any) -> Callable[[Any], Any]:
    return lambda request: wrapper(request, handler)


def _threaded(wrapper: Any, handler: Any) -> Callable[[Any], Any]:
    async def around(request: Any) -> Any:
        return await in_own_thread(wrapper, request, sync_as_async(handler))

    return around
