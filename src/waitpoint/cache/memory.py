"""Caches results in this process's memory."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Mapping, Sequence
from math import inf

from waitpoint import clock, codec
from waitpoint.cache.base import BaseCache, FullKey, Namespace, ValueT, seconds


class InMemoryCache(BaseCache[ValueT]):
    """Caches while the process lives. Values are kept as bytes: who changes what it got changes nothing here."""

    blocking = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[Namespace, dict[str, tuple[bytes, float]]] = {}
        self._ends: list[tuple[float, Namespace, str]] = []  # what expires, the next first; may name what is gone

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """Return what is cached under these keys; those that are missing or expired are left out."""
        at = clock.now()
        found: dict[FullKey, ValueT] = {}
        with self._lock:
            rows = [(tuple(ns), key, self._found.get(tuple(ns), {}).get(key)) for ns, key in keys]
        for ns, key, row in rows:
            if row is not None and at < row[1]:
                found[ns, key] = codec.loads(row[0])
        return found

    def set(self, pairs: Mapping[FullKey, tuple[ValueT, float | None]]) -> None:
        """Cache values, each with the seconds it may be used, or None for no end."""
        at = clock.now()
        rows = [
            (tuple(ns), key, codec.dumps(value), inf if seconds(ttl) is None else at + (ttl or 0))
            for (ns, key), (value, ttl) in pairs.items()
        ]
        with self._lock:
            self._forget_expired(at)
            for ns, key, data, ends in rows:
                self._found.setdefault(ns, {})[key] = (data, ends)
                if ends < inf:
                    heapq.heappush(self._ends, (ends, ns, key))

    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget what is cached in these namespaces, or everything."""
        with self._lock:
            if namespaces is None:
                self._found.clear()
                self._ends.clear()
            for ns in namespaces or ():
                self._found.pop(tuple(ns), None)

    def _forget_expired(self, at: float) -> None:
        while self._ends and self._ends[0][0] <= at:
            _, ns, key = heapq.heappop(self._ends)
            row = self._found.get(ns, {}).get(key)
            if row is not None and row[1] <= at:
                del self._found[ns][key]
