"""Where events of a run are given to its transformers: one for the run, and one for each graph nested in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from waitpoint import clock
from waitpoint.errors import ConfigError
from waitpoint.stream.channel import StreamChannel
from waitpoint.stream.transformer import ProtocolEvent, StreamTransformer

Factory = Callable[[tuple[str, ...]], StreamTransformer]


def envelope(method: str, ns: Iterable[str], data: Any) -> ProtocolEvent:
    """Return an event that happens now."""
    at = int(clock.now() * 1000)
    return {"type": "event", "method": method, "params": {"namespace": list(ns), "timestamp": at, "data": data}}


class Mux:
    """The transformers of one graph's events, what they project, and the events themselves."""

    # Of the outermost, set by what drives it. In an asynchronous run they are awaited.
    pump: Callable[[], Any]  # drives the run by one part; False when there is none
    abort: Callable[[], Any]  # stops the run

    def __init__(
        self, factories: Sequence[Factory], *, scope: tuple[str, ...] = (), parent: Mux | None = None,
        is_async: bool = False,
    ) -> None:  # fmt: skip
        self.root: Mux = self if parent is None else parent.root
        self.factories, self.scope, self.parent, self.is_async = factories, scope, parent, is_async
        self.projections: dict[str, Any] = {}
        self.events: StreamChannel[ProtocolEvent] = StreamChannel()
        self.events.bind(self)
        self.values: Any = None  # the newest
        self.interrupts: tuple[Any, ...] = ()
        self.ended = False
        self._is_ending = False
        self.is_aborted = False
        self.error: BaseException | None = None
        self.stamps = self.seq = 0
        made = [factory(scope) for factory in factories]
        self.transformers = sorted(made, key=lambda t: not t.before_builtins)
        for transformer in self.transformers:
            self._register(transformer)

    @property
    def modes(self) -> tuple[str, ...]:
        """The stream modes that the transformers need."""
        return tuple(dict.fromkeys(m for t in self.transformers for m in t.required_stream_modes))

    def _register(self, transformer: StreamTransformer) -> None:
        kind = type(transformer).__name__
        if not self.is_async and transformer.is_asynchronous():
            raise ConfigError(f"Transformer {kind!r} works in asynchronous runs only; use astream_events()")
        for name, projection in transformer.init().items():
            if name in self.projections:
                raise ConfigError(f"Transformer {kind!r} has a projection {name!r}, which another one has; rename it")
            self.projections[name] = projection
            if isinstance(projection, StreamChannel):
                projection.bind(self, self._forwarder(projection, is_native=transformer.is_native))
        transformer.bound(self)

    def _forwarder(self, channel: StreamChannel[Any], *, is_native: bool) -> Callable[[Any], None] | None:
        if channel.name is None:
            return None
        method = channel.name if is_native else f"custom:{channel.name}"
        return lambda item: self._log_here_and_above(envelope(method, self.scope, item))

    def _log_here_and_above(self, event: ProtocolEvent) -> None:
        mux: Mux | None = self
        while mux is not None:
            mux.log(event)
            mux = mux.parent

    # --- events ---

    def stamp(self) -> int:
        """Return the next number of an arrival, whatever arrives."""
        self.root.stamps += 1
        return self.root.stamps

    def log(self, event: ProtocolEvent) -> None:
        """Put an event among the raw ones."""
        if "seq" not in event:
            self.root.seq += 1
            event["seq"] = self.root.seq
        self.events.push(event)

    def push(self, event: ProtocolEvent) -> None:
        """Give an event to all transformers."""
        kept = [transformer.process(event) is not False for transformer in self.transformers]
        if all(kept):
            self.log(event)

    async def apush(self, event: ProtocolEvent) -> None:
        """Do the same in an asynchronous run."""
        kept = [await transformer.aprocess(event) is not False for transformer in self.transformers]
        if all(kept):
            self.log(event)

    # --- the end ---

    def end(self, error: BaseException | None = None) -> None:
        """End it, with an error or without."""
        if self._is_ending:
            return
        self._is_ending, self.error = True, error
        for transformer in self.transformers:
            try:
                if self.error is None:
                    transformer.finalize()
                else:
                    transformer.fail(self.error)
            except Exception as failed:  # noqa: BLE001 - told to every consumer
                self.error = self.error or failed
        self._close()

    async def aend(self, error: BaseException | None = None) -> None:
        """Do the same in an asynchronous run, after what transformers have scheduled."""
        if self._is_ending:
            return
        self._is_ending, self.error = True, error
        for transformer in self.transformers:
            try:
                await transformer.scheduled(is_over=self.root.is_aborted or self.error is not None)
                await (transformer.afinalize() if self.error is None else transformer.afail(self.error))
            except Exception as failed:  # noqa: BLE001 - told to every consumer
                self.error = self.error or failed
        self._close()

    def _close(self) -> None:
        self.ended = True
        for channel in self._channels():
            if self.error is None:
                channel.close()
            else:
                channel.fail(self.error)

    def _channels(self) -> Iterator[StreamChannel[Any]]:
        yield from (p for p in self.projections.values() if isinstance(p, StreamChannel))
        yield self.events
