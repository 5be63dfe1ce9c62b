"""A compiled graph as declared: its spec, its saver and its breakpoints. What reads and runs it builds on this."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Self

from waitpoint import runtime as runtimes
from waitpoint.cache.base import BaseCache, Namespace
from waitpoint.checkpoint.base import BaseCheckpointSaver, ThreadKey
from waitpoint.codec import Registry
from waitpoint.config import checked_config, merged, text_id
from waitpoint.core.names import suggestion
from waitpoint.core.spec import GraphSpec
from waitpoint.engine.breakpoints import checked
from waitpoint.engine.caching import namespace
from waitpoint.errors import ConfigError, UsageError


class Declared:
    """A graph with its saver, store and breakpoints. Holds no state of any thread, so one object serves all."""

    def __init__(
        self,
        spec: GraphSpec,
        *,
        checkpointer: BaseCheckpointSaver | bool | None = None,
        store: Any = None,
        cache: BaseCache[Any] | None = None,
        interrupt_before: Sequence[str] | str | None = None,
        interrupt_after: Sequence[str] | str | None = None,
        debug: bool = False,
        context_schema: type[Any] | None = None,
    ) -> None:
        self.spec = spec
        self.name = spec.name
        self.checkpointer = _checked_saver(checkpointer)
        self.store = store
        self.cache = _checked_cache(cache)
        self.debug = debug
        self.context_schema = context_schema
        self.step_timeout: float | None = None
        self.config: dict[str, Any] = {}  # what the config of each call begins with
        self.transformers: tuple[Any, ...] = ()  # of every event stream of this graph
        self.registry = Registry.from_schemas(*spec.types)
        self._nodes = [n for n in spec.nodes if n != "__start__"]
        self._before = checked(interrupt_before, self._nodes, "interrupt_before")
        self._after = checked(interrupt_after, self._nodes, "interrupt_after")

    def bound(self, checkpointer: BaseCheckpointSaver) -> Self:
        """Return this graph with another checkpointer: a copy that shares the declaration."""
        other = copy.copy(self)
        other.checkpointer = checkpointer
        return other

    def clear_cache(self, nodes: Sequence[str] | None = None) -> None:
        """Forget the cached results of these nodes, or of all. Raises where the graph has no cache or no such node."""
        cache, namespaces = self._cached(nodes)
        cache.clear(namespaces)

    async def aclear_cache(self, nodes: Sequence[str] | None = None) -> None:
        """Do what `clear_cache` does, from an event loop."""
        cache, namespaces = self._cached(nodes)
        await cache.aclear(namespaces)

    def _cached(self, nodes: Sequence[str] | None) -> tuple[BaseCache[Any], list[Namespace]]:
        if self.cache is None:
            raise ConfigError(
                f"Graph {self.name!r} has no cache, so there is nothing to clear; compile it with one (compile(cache=...))"
            )
        for name in nodes or ():
            if name not in self._nodes:
                raise ConfigError(f"Graph {self.name!r} has no node {name!r}{suggestion(name, self._nodes)}")
        return self.cache, [namespace(self.spec, name) for name in nodes or self._nodes]

    def own(self, config: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Return the config of a call with what this graph's own adds to it."""
        return merged(self.config, config) if self.config else config or {}

    def stops_at(self, name: str) -> list[str]:
        """Return when a node's static breakpoints stop a run: "before" it, "after" it, or both."""
        stops = (("before", self._before), ("after", self._after))
        return [when for when, names in stops if name in self._nodes and (names == "*" or name in names)]

    def saver_of(self, config: Mapping[str, Any]) -> tuple[BaseCheckpointSaver, ThreadKey]:
        """Return the saver and thread that a config speaks of. Raises where there is none."""
        saver = self.saver()
        if saver is None:
            raise UsageError(f"Graph {self.name!r} has no checkpointer, so it keeps no state; compile it with one")
        return saver, self.key_of(config)

    def key_of(self, config: Mapping[str, Any]) -> ThreadKey:
        """Return the thread of this graph that a config names. Raises `ConfigError` where it names none."""
        thread_id = text_id((checked_config(config).get("configurable") or {}).get("thread_id"), "thread_id")
        if thread_id is None:
            raise ConfigError(
                f"Graph {self.name!r} has a checkpointer, so each run needs a `thread_id`; pass "
                f'config={{"configurable": {{"thread_id": "..."}}}}'
            )
        return ThreadKey(thread_id, self.name)

    def saver(self) -> BaseCheckpointSaver | None:
        """Return the saver that this graph's state is in: its own, or that of the run it is called in."""
        if isinstance(self.checkpointer, BaseCheckpointSaver):
            return self.checkpointer
        scope = runtimes.current.get()
        if scope is None or scope.journal.recorder is None:
            return None
        found: BaseCheckpointSaver = scope.journal.recorder.saver
        return found


def _checked_saver(checkpointer: Any) -> BaseCheckpointSaver | bool | None:
    if checkpointer is None or isinstance(checkpointer, bool | BaseCheckpointSaver):
        return checkpointer
    raise UsageError(
        f"`checkpointer` is a {type(checkpointer).__name__}; give a saver of waitpoint.checkpoint (InMemorySaver, "
        f"SqliteSaver, ...), True, False or None"
    )


def _checked_cache(cache: Any) -> BaseCache[Any] | None:
    if cache is None or isinstance(cache, BaseCache):
        return cache
    raise UsageError(
        f"`cache` is a {type(cache).__name__}; give a cache of waitpoint.cache (InMemoryCache, SqliteCache, ...) or None"
    )
