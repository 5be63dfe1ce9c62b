"""The transformer that gives each graph nested in a run a handle of its own."""

from __future__ import annotations

from typing import Any

from waitpoint.stream.builtin import LifecyclePayload, NativeTransformer
from waitpoint.stream.mux import Mux
from waitpoint.stream.run import AsyncSubgraphRunStream, SubgraphRunStream
from waitpoint.stream.transformer import ProtocolEvent


class SubgraphTransformer(NativeTransformer):
    """A handle for each graph called in this one, which is given the events of that graph."""

    name = "subgraphs"
    supports_sync = True

    def init(self) -> dict[str, Any]:
        self._handles: dict[tuple[str, ...], SubgraphRunStream | AsyncSubgraphRunStream] = {}
        return super().init()

    def process(self, event: ProtocolEvent) -> bool:
        handle, told = self._owner(event)
        if handle is not None and told is None:
            handle.mux.push(event)
        elif handle is not None:
            handle.mux.end(handle.settled(told))
        return True

    async def aprocess(self, event: ProtocolEvent) -> bool:
        handle, told = self._owner(event)
        if handle is not None and told is None:
            await handle.mux.apush(event)
        elif handle is not None:
            await handle.mux.aend(handle.settled(told))
        return True

    def _owner(self, event: ProtocolEvent) -> tuple[Any, LifecyclePayload | None]:
        """Return the handle that an event is for, and how that graph ended if the event tells it."""
        is_lifecycle = event["method"] == "lifecycle"
        ns = tuple(event["params"]["data"]["namespace"] if is_lifecycle else event["params"]["namespace"])
        if is_lifecycle and self._is_direct(ns):
            told: LifecyclePayload = event["params"]["data"]
            if told["event"] != "started":
                return self._handles.get(ns), told
            mux = Mux(self.mux.factories, scope=ns, parent=self.mux, is_async=self.mux.is_async)
            handle = self._handles[ns] = (AsyncSubgraphRunStream if mux.is_async else SubgraphRunStream)(mux, told)
            self.channel.push(handle)
            return None, None
        # Further graphs that a task calls lie at `(..., "node:id", "1")`: the longest path that fits is the owner.
        paths = (ns[:n] for n in range(len(ns), len(self.scope), -1))
        return next((self._handles[p] for p in paths if p in self._handles), None), None

    def _is_direct(self, ns: tuple[str, ...]) -> bool:
        below = ns[len(self.scope) :]
        is_inside = ns[: len(self.scope)] == self.scope
        return is_inside and (len(below) == 1 or (len(below) == 2 and ":" not in below[1]))

    def finalize(self) -> None:
        for handle in self._open():
            handle.mux.end()

    def fail(self, error: BaseException) -> None:
        for handle in self._open():
            handle.mux.end(handle.settled(_failed(handle, error)))

    async def afinalize(self) -> None:
        for handle in self._open():
            await handle.mux.aend()

    async def afail(self, error: BaseException) -> None:
        for handle in self._open():
            await handle.mux.aend(handle.settled(_failed(handle, error)))

    def _open(self) -> list[Any]:
        return [handle for handle in self._handles.values() if not handle.mux.ended]


def _failed(handle: Any, error: BaseException) -> LifecyclePayload:
    """Return how a graph ended that went down with the run around it."""
    return {"event": "failed", "namespace": list(handle.path), "error": str(error)}
