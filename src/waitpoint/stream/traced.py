"""Event streams in LangChain's own form (version "v2"): the graph and its nodes as chains, and what runs in them."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from waitpoint.stream.owned import Owned

Parts = Callable[[Any, dict[str, Any]], AsyncGenerator[tuple[str, Any]]]

FILTERS = tuple(f"{how}_{what}" for how in ("include", "exclude") for what in ("names", "types", "tags"))


def chain_events(name: str, parts: Parts, given: Any, config: Any, filters: Mapping[str, Any]) -> AsyncIterator[Any]:
    """Return the events of a run whose parts, in modes `updates`, `values` and `tasks`, come from `parts`."""
    events: AsyncIterator[Any] = _runnable_class()(name, parts).astream_events(given, config, version="v2", **filters)
    return events


class _Traced:
    """The part of the runnable that is ours: it tells LangChain's callbacks where graph and nodes start and end."""

    def __init__(self, name: str, parts: Parts) -> None:
        self.name, self._parts = name, parts

    async def astream(self, given: Any, config: Any = None, **_: Any) -> AsyncGenerator[Any]:
        from langchain_core.runnables.config import get_async_callback_manager_for_config

        manager = get_async_callback_manager_for_config(config)
        name = config.get("run_name") or self.name
        run = await manager.on_chain_start(None, given, name=name, run_id=config.get("run_id"))
        tracing = _Tracing(run)
        own = {k: v for k, v in config.items() if k not in ("run_id", "run_name")}  # those are the graph's alone
        own["callbacks"] = run.get_child()
        try:
            async with aclosing(Owned(self._updates(tracing, given, own))) as updates:
                async for part in tracing.shown(run.run_id, updates):
                    yield part
        except BaseException as error:
            await run.on_chain_error(error)
            raise
        await run.on_chain_end(tracing.values)

    async def _updates(self, tracing: _Tracing, given: Any, config: dict[str, Any]) -> AsyncGenerator[Any]:
        async with aclosing(Owned(self._parts(given, config))) as parts:
            async for mode, payload in parts:
                if mode == "updates":
                    yield payload
                elif mode == "values":
                    tracing.values = payload
                elif "triggers" in payload:
                    await tracing.started(payload)
                else:
                    await tracing.ended(payload)

    def invoke(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError  # a Runnable must have it; event streams use `astream` only


@functools.cache
def _runnable_class() -> type[Any]:
    from langchain_core.runnables.base import Runnable

    return type("Traced", (_Traced, Runnable), {})


class _Tracing:
    """The chains of one run: the graph's, and those of the nodes that are at work."""

    def __init__(self, run: Any) -> None:
        self.run = run
        self.values: Any = None  # the newest
        self._nodes: dict[str, Any] = {}

    async def started(self, told: Mapping[str, Any]) -> None:
        manager = self.run.get_child()
        manager.add_metadata({"langgraph_node": told["name"], "langgraph_triggers": told["triggers"]}, inherit=False)
        self._nodes[told["id"]] = await manager.on_chain_start(None, told["input"], name=told["name"])

    async def ended(self, told: Mapping[str, Any]) -> None:
        run = self._nodes.pop(told["id"], None)
        if run is None:
            return
        if told["error"] is not None:
            await run.on_chain_error(RuntimeError(told["error"]))
            return
        async for _ in self.shown(run.run_id, Owned(_one(told["result"]))):
            pass
        await run.on_chain_end(told["result"])

    def shown(self, run_id: Any, parts: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Return the parts; each is an event of the run too."""
        taps = (h for h in self.run.handlers if type(h).__name__ == "_AstreamEventsCallbackHandler")
        tap = next(taps, None)
        return parts if tap is None else tap.tap_output_aiter(run_id, parts)


async def _one(item: Any) -> AsyncGenerator[Any]:
    yield item
