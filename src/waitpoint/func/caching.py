"""Results of tasks from a cache: equal arguments are computed once, over threads and processes.

Rule: as for nodes, an answer is given to one question: what was asked while a task ran is not kept, nor is an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from waitpoint import codec
from waitpoint.cache.base import BaseCache, FullKey, Namespace, key_of, seconds
from waitpoint.errors import CacheWarning
from waitpoint.records import CachePolicy


def namespace(identity: str) -> Namespace:
    """Return where the results of a task are cached."""
    return ("waitpoint", "task", identity)


class CachedCall:
    """The place of one call's result in a cache."""

    def __init__(
        self, cache: BaseCache[Any], policy: CachePolicy, identity: str,
        arguments: tuple[tuple[Any, ...], Mapping[str, Any]], registry: codec.Registry | None,
    ) -> None:  # fmt: skip
        self.cache = cache
        self.registry = registry
        self.ttl = seconds(policy.ttl)
        self.key: FullKey = (namespace(identity), key_of(policy, *arguments, f"task {identity!r}", registry))

    def get(self) -> tuple[Any] | None:
        """Return the cached result as the only item, None if there is none that can be used."""
        try:
            return self._read(self.cache.get([self.key]))
        except Exception as error:  # noqa: BLE001 - a cache that fails holds nothing
            self._warn("read", error)
            return None

    async def aget(self) -> tuple[Any] | None:
        """Do what `get` does, from an event loop."""
        try:
            return self._read(await self.cache.aget([self.key]))
        except Exception as error:  # noqa: BLE001 - as above
            self._warn("read", error)
            return None

    def put(self, result: Any) -> None:
        """Keep a result."""
        try:
            self.cache.set({self.key: (codec.dumps(result, self.registry), self.ttl)})
        except Exception as error:  # noqa: BLE001 - the result is there, only not for others
            self._warn("written", error)

    async def aput(self, result: Any) -> None:
        """Do what `put` does, from an event loop."""
        try:
            await self.cache.aset({self.key: (codec.dumps(result, self.registry), self.ttl)})
        except Exception as error:  # noqa: BLE001 - as above
            self._warn("written", error)

    def _read(self, found: Mapping[FullKey, bytes]) -> tuple[Any] | None:
        if self.key not in found:
            return None
        value = codec.loads(found[self.key], self.registry)
        return None if any(codec.find_unknown(value, "result")) else (value,)

    def _warn(self, what: str, error: Exception) -> None:
        warnings.warn(
            f"A cached result of task {self.key[0][2]!r} could not be {what} - {error!r}; the task runs without it",
            CacheWarning,
            stacklevel=2,
        )
