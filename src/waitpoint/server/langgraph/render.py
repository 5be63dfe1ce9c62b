"""Renders entries of the log as events of a run's stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waitpoint.hosting import encoding
from waitpoint.ledger.base import LogEntry
from waitpoint.server import sse
from waitpoint.stream.growing import Growing

_AS_THEY_ARE = ("updates", "tasks", "custom", "tools", "checkpoints", "debug", "events")
_ALWAYS = ("metadata", "error", "end")


class RunEvents:
    """The events of one reader: in the modes it asked for, from inside subgraphs only if it did.

    What came up to entry number `after` is only remembered: a message that grows has the words that were said before.
    """

    def __init__(self, modes: Sequence[str], *, subgraphs: bool, after: int = 0) -> None:
        self._modes, self._subgraphs, self._after = frozenset(modes), subgraphs, after
        self._growing = Growing()

    @property
    def start(self) -> int:
        """The number of the entry after which the reader has to begin."""
        return 0 if "messages" in self._modes else self._after

    def of(self, entry: LogEntry) -> Iterator[bytes]:
        """Yield what an entry comes to: often one event."""
        if entry.ns and not self._subgraphs:
            return
        suffix = f"|{entry.ns}" if entry.ns and self._subgraphs else ""
        for name, data in self._named(entry):
            if entry.seq > self._after:
                yield sse.event(name if name in _ALWAYS else f"{name}{suffix}", data, entry.seq)

    def _named(self, entry: LogEntry) -> Iterator[tuple[str, bytes]]:
        kind, modes = entry.kind, self._modes
        if kind in _ALWAYS or (kind in _AS_THEY_ARE and kind in modes):
            yield kind, entry.data
        elif kind == "values" and "values" in modes:
            told = encoding.loads(entry.data)
            if not told["interrupts"]:
                yield kind, encoding.dumps(told["values"])
                return
            values = told["values"] if isinstance(told["values"], dict) else {}
            yield kind, encoding.dumps({**values, "__interrupt__": told["interrupts"]})
        elif kind == "message":
            if "messages-tuple" in modes:
                yield "messages", entry.data
            if "messages" in modes:
                yield from self._grown(entry)

    def _grown(self, entry: LogEntry) -> Iterator[tuple[str, bytes]]:
        message, metadata = encoding.loads(entry.data)
        is_chunk = str(message.get("type", "")).endswith("Chunk")
        whole, is_new = self._growing.whole(message) if is_chunk else (message, True)
        if is_new:
            yield "messages/metadata", encoding.dumps({str(message.get("id")): {"metadata": metadata}})
        yield f"messages/{'partial' if is_chunk else 'complete'}", encoding.dumps([whole])


def run_done(entry: LogEntry) -> bytes:
    """Return the event that tells the readers of a thread that a run of it is over."""
    return sse.event("metadata", encoding.dumps({"status": "run_done", "run_id": entry.run_id}), entry.seq)
