"""The extension point of event streams: what looks at each event of a run and makes projections of them."""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import Any, ClassVar, Literal, NotRequired, TypedDict

logger = logging.getLogger("waitpoint.stream")


class EventParams(TypedDict):
    """Where and when an event happened, and what it says; `timestamp` is in UTC milliseconds."""

    namespace: list[str]
    timestamp: int
    data: Any
    interrupts: NotRequired[tuple[Any, ...]]  # of method `values`: the questions that are open


class ProtocolEvent(TypedDict):
    """An event of a run; `seq` grows with each event, `method` is a stream mode, `lifecycle` or `custom:<name>`."""

    type: Literal["event"]
    method: str
    params: EventParams
    seq: NotRequired[int]


class StreamTransformer:
    """Derive from it and return projections from `init`: a dict of names and `StreamChannel`s (or other objects).

    One is made for the run and for each graph nested in it, with its namespace as `scope`. It sees the events of that
    namespace and of those below. `required_stream_modes` are the modes it needs beside `values` and `messages`;
    `before_builtins` lets it see events before the transformers that every run has, to change them.

    Those that override `aprocess`, `afinalize` or `afail`, or set `requires_async`, work in asynchronous runs only,
    unless they set `supports_sync`.
    """

    requires_async: ClassVar[bool] = False
    supports_sync: ClassVar[bool] = False
    required_stream_modes: ClassVar[tuple[str, ...]] = ()
    before_builtins: ClassVar[bool] = False
    is_native: ClassVar[bool] = False  # of every run: a named channel's method is its name alone

    _scheduled: frozenset[Any] = frozenset()

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        self.scope = scope

    def init(self) -> dict[str, Any]:
        """Return the projections by their names."""
        raise NotImplementedError(f"{type(self).__name__} has no init(); return a dict of projections from it")

    def bound(self, mux: Any) -> None:
        """Learn what it is part of; channels of `init` are bound already."""

    def process(self, event: ProtocolEvent) -> bool:
        """Look at an event; False takes it out of the raw events."""
        del event
        return True

    async def aprocess(self, event: ProtocolEvent) -> bool:
        """Do the same in an asynchronous run; the run waits for it."""
        return self.process(event)

    def finalize(self) -> None:
        """Finish after the last event; channels close by themselves."""

    async def afinalize(self) -> None:
        """Do the same in an asynchronous run."""
        self.finalize()

    def fail(self, error: BaseException) -> None:
        """Finish after the run has failed; channels fail by themselves."""

    async def afail(self, error: BaseException) -> None:
        """Do the same in an asynchronous run."""
        self.fail(error)

    def schedule(self, coroutine: Coroutine[Any, Any, Any], *, on_error: Literal["log", "raise"] = "log") -> Any:
        """Start a coroutine beside an asynchronous run, which awaits it before it ends; return its task.

        An error of it is logged, or with `on_error="raise"` is an error of the run. If the run fails, it is cancelled.
        """
        import asyncio

        task = asyncio.ensure_future(coroutine if on_error == "raise" else self._logged(coroutine))
        self._scheduled |= {task}
        return task

    async def _logged(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await coroutine
        except Exception:
            logger.exception("What transformer %r scheduled has failed; the run goes on", type(self).__name__)

    async def scheduled(self, *, is_over: bool) -> None:
        """Await what was scheduled, or cancel it if the run has failed or was aborted. Raises the first error of it."""
        import asyncio

        if is_over:
            for task in self._scheduled:
                task.cancel()
            return
        while self._scheduled:
            done, self._scheduled = self._scheduled, frozenset()
            await asyncio.gather(*done)

    @classmethod
    def is_asynchronous(cls) -> bool:
        """Whether it cannot be part of a blocking run."""
        own = (getattr(cls, n) is not getattr(StreamTransformer, n) for n in ("aprocess", "afinalize", "afail"))
        return not cls.supports_sync and (cls.requires_async or any(own))
