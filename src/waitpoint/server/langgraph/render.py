"""Renders entries of the log as events of a run's stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waitpoint.hosting import encoding
from waitpoint.ledger.base import LogEntry
from waitpoint.server import sse

_AS_THEY_ARE = ("updates", "tasks", "custom", "tools", "checkpoints", "debug", "events")


class RunEvents:
    """The events of one reader: in the modes it asked for, from inside subgraphs only if it did."""

    def __init__(self, modes: Sequence[str], *, subgraphs: bool) -> None:
        self._modes, self._subgraphs = frozenset(modes), subgraphs

    def of(self, entry: LogEntry) -> Iterator[bytes]:
        """Yield what an entry comes to: often one event."""
        if entry.ns and not self._subgraphs:
            return
        suffix = f"|{entry.ns}" if entry.ns else ""
        if entry.kind in ("metadata", "error", "end"):
            yield sse.event(entry.kind, entry.data, entry.seq)
        elif entry.kind == "values" and "values" in self._modes:
            told = encoding.loads(entry.data)
            values = {**(told["values"] or {}), **({"__interrupt__": told["interrupts"]} if told["interrupts"] else {})}
            yield sse.event(f"values{suffix}", encoding.dumps(values), entry.seq)
        elif entry.kind == "message" and "messages-tuple" in self._modes:
            yield sse.event(f"messages{suffix}", entry.data, entry.seq)
        elif entry.kind in _AS_THEY_ARE and entry.kind in self._modes:
            yield sse.event(f"{entry.kind}{suffix}", entry.data, entry.seq)
