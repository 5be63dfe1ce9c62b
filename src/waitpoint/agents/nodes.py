"""Nodes of an agent that have a blocking and an async form, and what they may reach."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from waitpoint import runtime as runtimes
from waitpoint.agents.tool_node.bridge import in_own_thread
from waitpoint.errors import AsyncOnlyError
from waitpoint.runtime import Runtime

Body = Callable[[Any, Runtime[Any]], Any]
AsyncBody = Callable[[Any, Runtime[Any]], Awaitable[Any]]


class TwoForms:
    """A node made of `(state, runtime)` functions: the async one under `ainvoke` if there is one, else the other."""

    def __init__(self, name: str, body: Body | None, abody: AsyncBody | None = None) -> None:
        self.name = name
        self.body = body
        self.abody = abody

    def invoke(self, state: Any, config: Any = None, /) -> Any:  # noqa: ARG002 - the scope has it
        """Run it."""
        if self.body is None:
            raise AsyncOnlyError(
                f"Node {self.name!r} has only an async form, which cannot run under invoke() or stream(); use ainvoke() or "
                f"astream(), or give it a blocking form too"
            )
        return self.body(state, runtimes.scope(self.name).runtime)

    async def ainvoke(self, state: Any, config: Any = None, /) -> Any:  # noqa: ARG002 - as above
        """Run it without blocking the loop."""
        runtime = runtimes.scope(self.name).runtime
        if self.abody is not None:
            return await self.abody(state, runtime)
        assert self.body is not None
        return await in_own_thread(self.body, state, runtime)
