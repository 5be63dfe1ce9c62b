"""Turns the parts of a run into entries of the log. One entry serves all faces; each renders what it knows.

Kinds: metadata, values, updates, tasks, custom, tools, checkpoints, debug and events as stream modes have them; `message`
is a chunk or whole message with its metadata, `speech` the same as an event of content blocks; `lifecycle`,
`input.requested`, `input.answered`; `error` and `end` come last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from waitpoint import clock
from waitpoint.hosting import encoding
from waitpoint.ledger.base import LogEntry
from waitpoint.records import INTERRUPT, Interrupt
from waitpoint.stream.said import Chunks
from waitpoint.stream.translate import Translator

ALWAYS = ("values", "updates", "tasks", "custom", "tools", "checkpoints", "lifecycle")
SPEECH = "messages"
# What fills a log and is of no use long after: who comes later reads the thread's state.
BULK = (
    "values", "updates", "tasks", "custom", "tools", "checkpoints", "checkpoint", "debug", "events", "message", "speech",
)  # fmt: skip


class Recorder:
    """Makes the entries of one run; remembers which messages were shown."""

    def __init__(self, thread_id: str, run_id: str, modes: Sequence[str], graph: str) -> None:
        self._thread_id, self._run_id, self._modes, self._graph = thread_id, run_id, frozenset(modes), graph
        self._chunks, self._translator = Chunks(), Translator()
        self._asked: set[str] = set()
        self._resting: dict[str, Any] | None = None  # the values that were shown with questions

    def note(self, kind: str, data: Any, ns: Sequence[str] = ()) -> LogEntry:
        """Return an entry for something that happens now."""
        body = encoding.dumps(encoding.jsonable(data))
        return LogEntry(self._thread_id, self._run_id, kind, "|".join(ns), clock.now(), body)

    def lifecycle(self, event: str, ns: Sequence[str] = (), **more: Any) -> LogEntry:
        """Return an entry that says how a graph fares."""
        return self.note("lifecycle", {"event": event, "graph_name": self._graph, **more}, ns)

    def taken(self, ns: tuple[str, ...], mode: str, payload: Any) -> Iterator[LogEntry]:
        """Yield the entries that a part comes to."""
        if mode == SPEECH:
            yield from self._said(ns, payload)
        elif mode == "values":
            yield from self._values(ns, payload)
        elif mode == "updates" and INTERRUPT in payload:
            yield self.note(mode, {INTERRUPT: [encoding.interrupt_json(i) for i in payload[INTERRUPT]]}, ns)
            if self._resting is not None and not ns:  # the state with its questions is what is shown last
                yield self.note("values", self._resting)
        elif mode == "lifecycle":
            yield self.note(mode, payload, ns)
        elif mode == "checkpoints":
            yield self._checkpoint(ns, payload)
        else:
            yield self.note(mode, payload, ns)

    def _checkpoint(self, ns: tuple[str, ...], payload: Any) -> LogEntry:
        """Return a checkpoint whole if it was asked for; else its place, since each has the whole state in it."""
        if "checkpoints" in self._modes:
            return self.note("checkpoints", payload, ns)
        parent = payload.get("parent_config") or {}
        told = {
            "id": payload["config"]["configurable"]["checkpoint_id"],
            "parent_id": parent.get("configurable", {}).get("checkpoint_id"),
            "step": payload["metadata"]["step"],
            "source": payload["metadata"]["source"],
        }
        return self.note("checkpoint", told, ns)

    def _values(self, ns: tuple[str, ...], payload: Any) -> Iterator[LogEntry]:
        interrupts: list[Interrupt[Any]] = []
        if isinstance(payload, dict) and INTERRUPT in payload:
            interrupts = list(payload[INTERRUPT])
            payload = {name: value for name, value in payload.items() if name != INTERRUPT}
        told = [encoding.interrupt_json(i) for i in interrupts]
        shown = {"values": payload, "interrupts": told}
        if not ns:
            self._resting = shown if told else None
        yield self.note("values", shown, ns)
        for interrupt in told:
            if interrupt["id"] not in self._asked:
                self._asked.add(interrupt["id"])
                asked = {"interrupt_id": interrupt["id"], "payload": interrupt["value"], "value": interrupt["value"]}
                yield self.note("input.requested", {**asked, "response_schema": interrupt["response_schema"]}, ns)

    def _said(self, ns: tuple[str, ...], said: Any) -> Iterator[LogEntry]:
        for message, metadata in self._chunks.shown(said):
            yield self.note("message", [message, metadata], ns)
        for event in self._translator.events(ns, SPEECH, said):
            yield self.note("speech", event["params"]["data"], ns)
