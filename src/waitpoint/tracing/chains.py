"""Graphs, nodes and tasks as LangChain's callbacks hear of them: as chains, one inside the other.

langchain-core is loaded only if a handler was given, or a variable such as `LANGSMITH_TRACING` asks for one. A pause is
not an error: what paused ends with its output, or with what it asks.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping
from typing import Any, Self
from uuid import UUID

from waitpoint.records import INTERRUPT

# What of `configurable` a graph's chain tells in its metadata; other keys may be secrets.
TOLD = ("thread_id", "run_id", "checkpoint_id", "checkpoint_ns", "task_id", "assistant_id", "graph_id")

_SWITCHES = ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2", "LANGCHAIN_TRACING")


def are_heard(config: Mapping[str, Any]) -> bool:
    """Whether anybody may listen to a run: a handler of its config, or one that LangChain would add by itself."""
    if config.get("callbacks"):
        return True
    context = sys.modules.get("langchain_core.tracers.context")
    if context is None:
        return _is_switched_on()
    langsmith = sys.modules.get("langsmith.utils")
    if langsmith is not None and langsmith.tracing_is_enabled():
        return True
    kept = (getattr(context, "tracing_v2_callback_var", None), *(h[0] for h in _hooks(context)))
    if any(variable is not None and variable.get() is not None for variable in kept):
        return True
    if any(hook[3] is not None and os.environ.get(hook[3]) for hook in _hooks(context)):
        return True
    settings = sys.modules.get("langchain_core.globals")
    return settings is not None and bool(settings.get_debug())


@functools.cache
def _is_switched_on() -> bool:
    """Whether the environment asks for LangSmith. Read once, as LangSmith itself reads it."""
    return any(os.environ.get(name) == "true" for name in _SWITCHES)


def _hooks(context: Any) -> tuple[Any, ...]:
    """Return LangChain's handlers that lie in context variables: (variable, inheritable, class, environment variable)."""
    return tuple(getattr(context, "_configure_hooks", ()))


class Chain:
    """One chain. Each call has a form for event loops, since handlers may be coroutine functions."""

    __slots__ = ("_id", "_manager", "_name", "_run")

    def __init__(self, manager: Any, name: str, run_id: UUID | None = None) -> None:
        self._manager, self._name, self._id = manager, name, run_id
        self._run: Any = None

    @classmethod
    def of_graph(cls, config: Mapping[str, Any], name: str, run_id: Any) -> Self | None:
        """Return the chain of a graph's run; None if nobody listens."""
        from langchain_core.callbacks import CallbackManager

        configurable = config.get("configurable", {})
        told = {key: configurable[key] for key in TOLD if key in configurable}
        manager = CallbackManager.configure(
            inheritable_callbacks=config.get("callbacks"),
            inheritable_tags=list(config.get("tags") or ()),
            inheritable_metadata={**told, "ls_integration": "waitpoint", **(config.get("metadata") or {})},
        )
        return cls(manager, config.get("run_name") or name, _uuid(run_id)) if manager.handlers else None

    @classmethod
    def in_callbacks(cls, callbacks: Any, name: str, metadata: Mapping[str, Any]) -> Self:
        """Return a chain in what these callbacks are of, that is told with this metadata."""
        manager = callbacks.copy()
        manager.add_metadata(dict(metadata))
        return cls(manager, name)

    def inside(self, name: str, tag: str, metadata: Mapping[str, Any] | None = None) -> Chain:
        """Return a chain inside this one. The metadata is also that of whatever runs in it."""
        manager = self.callbacks()
        manager.tags = [tag, *manager.tags]  # its own first, as LangGraph has it
        if metadata:
            manager.add_metadata(dict(metadata))
        return Chain(manager, name)

    def callbacks(self, tag: str | None = None) -> Any:
        """Return the callbacks of what runs in this chain; the tag is that of its immediate parts."""
        return self._run.get_child(tag)

    # --- what is told -------------------------------------------------------------------------------------------------

    def start(self, given: Any) -> None:
        """Tell that it starts."""
        from langchain_core.callbacks import CallbackManager

        manager = _as(CallbackManager, self._manager)
        self._run = manager.on_chain_start(None, given, name=self._name, run_id=self._id)

    async def start_later(self, given: Any) -> None:
        """Do the same from an event loop."""
        from langchain_core.callbacks import AsyncCallbackManager

        manager = _as(AsyncCallbackManager, self._manager)
        self._run = await manager.on_chain_start(None, given, name=self._name, run_id=self._id)

    def end(self, output: Any) -> None:
        """Tell that it ended, if it has started: a handler may have refused that."""
        if self._run is not None:
            self._run.on_chain_end(output)

    async def end_later(self, output: Any, *, shown: bool = False) -> None:
        """Do the same from an event loop; `shown`: what it put out is an event of its own, too."""
        if self._run is None:
            return
        tap = self._tap() if shown else None
        if tap is not None:
            async for _ in tap.tap_output_aiter(self._run.run_id, _one(output)):
                pass
        await self._run.on_chain_end(output)

    def fail(self, error: BaseException) -> None:
        """Tell that it failed, if it has started."""
        if self._run is not None:
            self._run.on_chain_error(error)

    async def fail_later(self, error: BaseException) -> None:
        """Do the same from an event loop."""
        if self._run is not None:
            await self._run.on_chain_error(error)

    def _tap(self) -> Any:
        """Return LangChain's handler that makes events of what is put out, if events are asked for."""
        return next((h for h in self._run.handlers if type(h).__name__ == "_AstreamEventsCallbackHandler"), None)


def asks(interrupts: Any) -> dict[str, Any]:
    """Return what a chain puts out that waits for answers."""
    return {INTERRUPT: tuple(interrupts)}


def _as(wanted: type[Any], manager: Any) -> Any:
    """Return a manager of the other kind, with the same handlers: a task in a thread tells without an event loop."""
    if isinstance(manager, wanted):
        return manager
    return wanted(
        handlers=manager.handlers,
        inheritable_handlers=manager.inheritable_handlers,
        parent_run_id=manager.parent_run_id,
        tags=manager.tags,
        inheritable_tags=manager.inheritable_tags,
        metadata=manager.metadata,
        inheritable_metadata=manager.inheritable_metadata,
    )


def _uuid(run_id: Any) -> UUID | None:
    """Return a run's id as LangChain has them; any other text names no run there."""
    if run_id is None or isinstance(run_id, UUID):
        return run_id
    try:
        return UUID(str(run_id))
    except ValueError:
        return None


async def _one(item: Any) -> Any:
    yield item
