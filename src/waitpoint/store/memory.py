"""Keeps items in this process's memory: the model that every other store must equal."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from operator import attrgetter

from waitpoint import clock
from waitpoint.store.base import IndexConfig, Result, TTLConfig
from waitpoint.store.batches import Batch, BatchStore, Namespace, Put, Row
from waitpoint.store.embedding import Vector


class InMemoryStore(BatchStore):
    """Keeps items while the process lives; values as bytes, so who changes what it got changes nothing here.

    `index` makes items searchable by meaning (see `IndexConfig`), `ttl` says how they expire (see `TTLConfig`).
    """

    blocking = False

    def __init__(self, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None) -> None:
        self._configure(index, ttl)
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._rows: dict[Namespace, dict[str, Row]] = {}
        self._ends: list[tuple[float, int, Namespace, str]] = []  # when rows may expire, the next first
        self._vectors: dict[int, list[Vector]] = {}  # by the row's `seq`

    def sweep_ttl(self) -> int:
        """Remove what has expired, and return how much it was; the next write does it anyway."""
        with self._lock:
            return self._sweep(clock.now())

    def _apply(self, batch: Batch) -> list[Result]:
        with self._lock:
            results, touched = batch.read(_View(self._rows, self._vectors, batch.at))
            for row in touched:
                kept = self._rows[row.namespace][row.key]
                kept.expires_at = batch.at + (kept.ttl or 0) * 60
            if batch.puts:
                self._sweep(batch.at)
            for put in batch.puts.values():
                self._write(put, batch.at)
        return results

    def _write(self, put: Put, at: float) -> None:
        old = self._rows.get(put.namespace, {}).get(put.key)
        if put.data is None:
            if old is not None:
                self._drop(old)
            return
        seq, created_at = (next(self._numbers), at) if old is None else (old.seq, old.created_at)
        ends = None if put.ttl is None else at + put.ttl * 60
        row = Row(seq, put.namespace, put.key, put.data, created_at, at, put.ttl, ends)
        self._rows.setdefault(put.namespace, {})[put.key] = row
        self._vectors[seq] = list(put.vectors.values())
        if ends is not None:
            heapq.heappush(self._ends, (ends, seq, put.namespace, put.key))

    def _sweep(self, at: float) -> int:
        swept = 0
        while self._ends and self._ends[0][0] <= at:
            _, seq, namespace, key = heapq.heappop(self._ends)
            row = self._rows.get(namespace, {}).get(key)
            if row is None or row.seq != seq or row.expires_at is None:
                continue
            if row.is_there(at):  # it was read or put since, and so is noted for later
                heapq.heappush(self._ends, (row.expires_at, seq, namespace, key))
            else:
                self._drop(row)
                swept += 1
        return swept

    def _drop(self, row: Row) -> None:
        del self._rows[row.namespace][row.key]
        self._vectors.pop(row.seq, None)
        if not self._rows[row.namespace]:
            del self._rows[row.namespace]


class _View:
    """The rows as a batch sees them; each is copied, since the value is decoded in it."""

    def __init__(self, rows: dict[Namespace, dict[str, Row]], vectors: dict[int, list[Vector]], at: float) -> None:
        self._rows = rows
        self._vectors = vectors
        self._at = at

    def find(self, namespace: Namespace, key: str) -> Row | None:
        row = self._rows.get(namespace, {}).get(key)
        return None if row is None or not row.is_there(self._at) else _copy(row)

    def below(self, prefix: Namespace, limit: int | None) -> Iterator[Row]:  # noqa: ARG002 - the reader stops by itself
        found = [r for ns, rows in self._rows.items() if ns[: len(prefix)] == prefix for r in rows.values()]
        return (_copy(row) for row in sorted(found, key=attrgetter("seq")) if row.is_there(self._at))

    def vectors(self, row: Row) -> Sequence[Vector]:
        return self._vectors.get(row.seq, ())

    def namespaces(self) -> Iterable[Namespace]:
        return [ns for ns, rows in self._rows.items() if any(row.is_there(self._at) for row in rows.values())]


def _copy(row: Row) -> Row:
    return Row(row.seq, row.namespace, row.key, row.data, row.created_at, row.updated_at, row.ttl, row.expires_at)
