"""The run objects of `stream_events` and `astream_events`, and the handles of graphs nested in a run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import MappingProxyType, TracebackType
from typing import Any, Self

from waitpoint.records import Interrupt
from waitpoint.stream.builtin import LifecyclePayload, SubgraphStatus
from waitpoint.stream.channel import StreamChannel
from waitpoint.stream.mux import Mux
from waitpoint.stream.transformer import ProtocolEvent


class _Projected:
    """What runs and handles have in common: projections as attributes and in a mapping."""

    def __init__(self, mux: Mux) -> None:
        self.mux = mux
        self.extensions = MappingProxyType(mux.projections)

    def __getattr__(self, name: str) -> Any:
        if name == "extensions":  # not there yet: a copy that is being made
            raise AttributeError(name)
        try:
            return self.extensions[name]
        except KeyError:
            known = ", ".join(sorted(self.extensions))
            raise AttributeError(f"{type(self).__name__!r} has no {name!r}; its projections are {known}") from None

    def _channels(self, names: tuple[str, ...]) -> dict[str, StreamChannel[Any]]:
        found = {}
        for name in names:
            channel = self.extensions.get(name)
            if not isinstance(channel, StreamChannel):
                known = ", ".join(sorted(n for n, c in self.extensions.items() if isinstance(c, StreamChannel)))
                raise KeyError(f"No projection {name!r} to interleave; there are {known}")
            found[name] = channel
        return found

    def _next_of(self, channels: dict[str, StreamChannel[Any]], at: dict[str, int]) -> tuple[str, Any] | None:
        """Return the item that arrived first of those not read yet."""
        ready = [(found[1], name, found) for name, c in channels.items() if (found := c.at(at[name])) is not None]
        if not ready:
            return None
        _, name, (at[name], _, item) = min(ready, key=lambda r: r[0])
        return name, item

    def _result(self) -> Any:
        if self.mux.error is not None:
            raise self.mux.error
        return self.mux.values


class GraphRunStream(_Projected):
    """A run that goes on as far as it is consumed.

    Consume it by its projections (`values`, `messages`, `lifecycle`, `subgraphs`, and those of other transformers), by
    `output`, `interrupted` and `interrupts`, or by iterating the raw events. Reading one drives the run; what the others
    have to show meanwhile is kept for them. An error of the run is raised by each of them. Leaving the run as a context
    manager, or `abort()`, stops it.
    """

    @property
    def output(self) -> Any:
        """The state at the end, or so far if the run rests with questions."""
        self._drain()
        return self._result()

    @property
    def interrupted(self) -> bool:
        """Whether the run rests with questions."""
        return bool(self.interrupts)

    @property
    def interrupts(self) -> list[Interrupt[Any]]:
        """The questions that the run rests with."""
        self._drain()
        self._result()
        return list(self.mux.interrupts)

    def __iter__(self) -> Iterator[ProtocolEvent]:
        return iter(self.mux.events)

    def interleave(self, *names: str) -> Iterator[tuple[str, Any]]:
        """Yield (name, item) of several projections in the order of their arrival. Raises KeyError for an unknown name."""
        channels = self._channels(names)
        at = dict.fromkeys(names, 0)
        while True:
            while (found := self._next_of(channels, at)) is not None:
                yield found
            if (self.mux.ended or not self.mux.root.pump()) and self._next_of(channels, dict(at)) is None:
                self._result()
                return

    def abort(self) -> None:
        """Stop the run; what was recorded stays, and the thread can be continued. May be called twice."""
        self.mux.root.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    def _drain(self) -> None:
        while not self.mux.ended and self.mux.root.pump():
            pass


class AsyncGraphRunStream(_Projected):
    """The same for an event loop: `async for` over projections, `await run.output()`, `await run.interrupts()`."""

    async def output(self) -> Any:
        """Return the state at the end, or so far if the run rests with questions."""
        await self._drain()
        return self._result()

    async def interrupted(self) -> bool:
        """Return whether the run rests with questions."""
        return bool(await self.interrupts())

    async def interrupts(self) -> list[Interrupt[Any]]:
        """Return the questions that the run rests with."""
        await self._drain()
        self._result()
        return list(self.mux.interrupts)

    def __aiter__(self) -> AsyncIterator[ProtocolEvent]:
        return aiter(self.mux.events)

    async def interleave(self, *names: str) -> AsyncIterator[tuple[str, Any]]:
        """Yield (name, item) of several projections in the order of their arrival. Raises KeyError for an unknown name."""
        channels = self._channels(names)
        at = dict.fromkeys(names, 0)
        while True:
            while (found := self._next_of(channels, at)) is not None:
                yield found
            if (self.mux.ended or not await self.mux.root.pump()) and self._next_of(channels, dict(at)) is None:
                self._result()
                return

    async def abort(self) -> None:
        """Stop the run and cancel what runs in it; what was recorded stays. May be called twice."""
        await self.mux.root.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.abort()

    async def _drain(self) -> None:
        while not self.mux.ended and await self.mux.root.pump():
            pass


class _Nested:
    """What handles have beside a run's projections: where the graph runs, and how it is doing."""

    mux: Mux

    def __init__(self, mux: Mux, started: LifecyclePayload) -> None:
        super().__init__(mux)  # type: ignore[call-arg]
        self.path = tuple(started["namespace"])
        self.graph_name = started.get("graph_name")
        self.trigger_call_id = started.get("trigger_call_id")
        self.status: SubgraphStatus = "started"
        self.error: str | None = None

    def settled(self, told: LifecyclePayload) -> RuntimeError | None:
        """Take in how the graph ended; return the error that its consumers get."""
        self.status, self.error = told["event"], told.get("error")
        self.mux.interrupts = tuple(told.get("interrupts", ()))
        return RuntimeError(self.error) if self.status == "failed" else None


class SubgraphRunStream(_Nested, GraphRunStream):
    """A graph nested in a run. Consuming it drives the run, to the end of that graph and no further.

    `status` is "started" until it has "completed", "failed" (`error` has the text, and consumers get a `RuntimeError` with
    it), "interrupted" or "drained". `abort()` stops the whole run.
    """


class AsyncSubgraphRunStream(_Nested, AsyncGraphRunStream):
    """The same for an event loop."""
