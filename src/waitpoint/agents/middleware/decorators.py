"""Middleware from functions: `@before_model`, `@wrap_tool_call`, `@dynamic_prompt` and the like."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import SystemMessage
from langchain_core.tools import BaseTool

from waitpoint.agents.middleware.types import AgentMiddleware, AgentState, JumpTo, hook_config

Decorated = Any
"""An instance of `AgentMiddleware`, or a decorator that makes one."""


def before_agent(
    func: Callable[..., Any] | None = None, *, state_schema: type[Any] | None = None,
    tools: Sequence[BaseTool] | None = None, can_jump_to: Sequence[JumpTo] | None = None, name: str | None = None,
) -> Decorated:  # fmt: skip
    """Make middleware of a function `(state, runtime)` that runs once, when a new input comes."""
    return _decorated("before_agent", func, state_schema, tools, can_jump_to, name)


def before_model(
    func: Callable[..., Any] | None = None, *, state_schema: type[Any] | None = None,
    tools: Sequence[BaseTool] | None = None, can_jump_to: Sequence[JumpTo] | None = None, name: str | None = None,
) -> Decorated:  # fmt: skip
    """Make middleware of a function `(state, runtime)` that runs before each call of the model."""
    return _decorated("before_model", func, state_schema, tools, can_jump_to, name)


def after_model(
    func: Callable[..., Any] | None = None, *, state_schema: type[Any] | None = None,
    tools: Sequence[BaseTool] | None = None, can_jump_to: Sequence[JumpTo] | None = None, name: str | None = None,
) -> Decorated:  # fmt: skip
    """Make middleware of a function `(state, runtime)` that runs after each call of the model."""
    return _decorated("after_model", func, state_schema, tools, can_jump_to, name)


def after_agent(
    func: Callable[..., Any] | None = None, *, state_schema: type[Any] | None = None,
    tools: Sequence[BaseTool] | None = None, can_jump_to: Sequence[JumpTo] | None = None, name: str | None = None,
) -> Decorated:  # fmt: skip
    """Make middleware of a function `(state, runtime)` that runs once, when the agent is done."""
    return _decorated("after_agent", func, state_schema, tools, can_jump_to, name)


def wrap_model_call(
    func: Callable[..., Any] | None = None, *, state_schema: type[Any] | None = None,
    tools: Sequence[BaseTool] | None = None, name: str | None = None,
) -> Decorated:  # fmt: skip
    """Make middleware of a function `(request, handler)` around each call of the model."""
    return _decorated("wrap_model_call", func, state_schema, tools, None, name)


def wrap_tool_call(
    func: Callable[..., Any] | None = None, *, state_schema: type[Any] | None = None,
    tools: Sequence[BaseTool] | None = None, name: str | None = None,
) -> Decorated:  # fmt: skip
    """Make middleware of a function `(request, handler)` around each tool call."""
    return _decorated("wrap_tool_call", func, state_schema, tools, None, name)


def dynamic_prompt(func: Callable[..., Any] | None = None) -> Decorated:
    """Make middleware of a function `(request)` that returns the system prompt of each call of the model."""

    def made(function: Callable[..., Any]) -> AgentMiddleware[Any, Any, Any]:
        if inspect.iscoroutinefunction(function):

            async def around_later(request: Any, handler: Any) -> Any:
                return await handler(request.override(system_message=_message(await function(request))))

            return _middleware("wrap_model_call", around_later, function.__name__)

        def around(request: Any, handler: Any) -> Any:
            return handler(request.override(system_message=_message(function(request))))

        async def around_it(request: Any, handler: Any) -> Any:
            return await handler(request.override(system_message=_message(function(request))))

        both = _middleware("wrap_model_call", around, function.__name__)
        type(both).awrap_model_call = _method(around_it)  # type: ignore[method-assign]
        return both

    return made if func is None else made(func)


def _message(prompt: Any) -> SystemMessage:
    return prompt if isinstance(prompt, SystemMessage) else SystemMessage(content=prompt)


def _decorated(
    hook: str, func: Callable[..., Any] | None, state_schema: type[Any] | None, tools: Sequence[BaseTool] | None,
    can_jump_to: Sequence[JumpTo] | None, name: str | None,
) -> Decorated:  # fmt: skip
    mark = hook_config(can_jump_to=can_jump_to)

    def made(function: Callable[..., Any]) -> AgentMiddleware[Any, Any, Any]:
        inherited = getattr(function, "__can_jump_to__", None)
        instance = _middleware(hook, function, str(name or getattr(function, "__name__", type(function).__name__)))
        for each in (hook, f"a{hook}"):
            own = vars(type(instance)).get(each)
            if own is not None:
                mark(own)
                if inherited is not None and can_jump_to is None:
                    own.__can_jump_to__ = inherited
        instance.state_schema = AgentState if state_schema is None else state_schema
        instance.tools = list(tools or ())
        return instance

    return made if func is None else made(func)


def _middleware(hook: str, function: Callable[..., Any], name: str) -> AgentMiddleware[Any, Any, Any]:
    """Return an instance of a new class with this one hook; a coroutine function gives the async form."""
    form = f"a{hook}" if inspect.iscoroutinefunction(function) else hook
    cls = type(
        name, (AgentMiddleware,), {form: _method(function), "__module__": getattr(function, "__module__", __name__)}
    )
    instance: AgentMiddleware[Any, Any, Any] = cls()
    instance.tools = []
    return instance


def _method(function: Callable[..., Any]) -> Any:
    if inspect.iscoroutinefunction(function):

        async def awaiting(_: Any, one: Any, other: Any) -> Any:
            return await function(one, other)

        return awaiting

    def calling(_: Any, one: Any, other: Any) -> Any:
        return function(one, other)

    return calling
