"""Turns parts of a run into events of the protocol; what models and nodes say becomes events of content blocks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterator
from typing import Any, cast

from waitpoint.records import INTERRUPT
from waitpoint.stream.mux import envelope
from waitpoint.stream.owned import Owned
from waitpoint.stream.said import Once, Said
from waitpoint.stream.transformer import ProtocolEvent


class Translator:
    """Of one run; it remembers which messages have been shown."""

    def __init__(self) -> None:
        self._once = Once()
        self._bridges: dict[Any, Bridge | None] = {}  # of model calls that speak in chunks; None: in events
        self._values: Any = {}

    def events(self, ns: tuple[str, ...], mode: str, payload: Any) -> Iterator[ProtocolEvent]:
        """Yield the events that a part comes to; often one."""
        if mode == "values":
            yield self._of_values(ns, payload)
        elif mode == "messages":
            for said in self._of_messages(payload):
                yield envelope("messages", ns, said)
        elif mode == "lifecycle":
            yield envelope("lifecycle", (), {"event": payload["event"], "namespace": list(ns), **payload})
        else:
            yield envelope(mode, ns, payload)

    def _of_values(self, ns: tuple[str, ...], payload: Any) -> ProtocolEvent:
        interrupts: tuple[Any, ...] = ()
        if isinstance(payload, dict) and INTERRUPT in payload:
            interrupts = tuple(payload[INTERRUPT])
            payload = {k: v for k, v in payload.items() if k != INTERRUPT}
            if not payload and not isinstance(self._values, dict):
                payload = self._values  # a state that is one bare value, with no place for questions
        if not ns:
            self._values = payload
        event = envelope("values", ns, payload)
        event["params"]["interrupts"] = interrupts
        return event

    def _of_messages(self, said: Said) -> list[tuple[Any, dict[str, Any]]]:
        """Return pairs of an event or a whole message, and its metadata."""
        if said.kind == "known":
            self._once.know(said.what)
            return []
        metadata = dict(said.metadata)
        if said.kind in ("token", "event") or said.call in self._bridges:
            metadata["run_id"] = str(said.call)
        if said.kind == "token":
            self._once.know([said.what])
            bridge = self._bridges.get(said.call)
            if bridge is None:
                bridge = self._bridges[said.call] = Bridge(said.what.id)
            return [(event, metadata) for event in bridge.fed(said.what)]
        if said.kind == "event":
            self._bridges[said.call] = None
            return [(said.what, metadata)]
        if said.call in self._bridges:
            bridge = self._bridges.pop(said.call)
            if said.kind == "error":
                return [({"event": "error", "message": str(said.what)}, metadata)]
            if said.what is not None:
                self._once.know([said.what])
            elif bridge is None:
                return [({"event": "message-finish"}, metadata)]
            return [(event, metadata) for event in bridge.finished()] if bridge is not None else []
        if said.kind == "error" or said.what is None or said.what.type == "tool" or not self._once.first(said.what):
            return []  # what tools return is no speech: it is in the values
        return [(said.what, metadata)]


class Bridge:
    """Turns the chunks of a model's message into events, one after the other.

    langchain-core does that for an iterator of chunks. Here chunks come one by one, from another thread at that, so its
    asynchronous form is run by hand, without an event loop: it comes to a stop wherever the next chunk is not there yet.
    """

    def __init__(self, name: str | None) -> None:
        from langchain_core.language_models._compat_bridge import achunks_to_events

        self._chunks: list[Any] = []
        self._is_finished = False
        self._events = Owned(cast("Any", achunks_to_events(Owned(self._fed()), message_id=name)))
        self._step: Any = None

    def fed(self, message: Any) -> list[Any]:
        """Return the events of a chunk."""
        from langchain_core.outputs import ChatGenerationChunk

        if type(message).__name__.endswith("Chunk"):
            self._chunks.append(ChatGenerationChunk(message=message))
        return list(self._ready())

    def finished(self) -> list[Any]:
        """Return the events that end the message."""
        self._is_finished = True
        return list(self._ready())

    async def _fed(self) -> AsyncGenerator[Any]:
        while self._chunks or not self._is_finished:
            if self._chunks:
                yield self._chunks.pop(0)
            else:
                await _Stop()

    def _ready(self) -> Iterator[Any]:
        while True:
            if self._step is None:
                self._step = self._events.__anext__()
            try:
                self._step.send(None)
            except StopIteration as made:
                self._step = None
                yield made.value
            except StopAsyncIteration:
                return
            else:
                return  # it waits for the next chunk


class _Stop:
    def __await__(self) -> Generator[None, None, None]:
        yield
