"""How much a caller may ask: so many requests a minute, each of so many bytes."""

from __future__ import annotations

import time
from collections import OrderedDict

from starlette.types import Message, Receive

from waitpoint.server.refusals import TooLargeError, TooManyError

_MOST_CALLERS = 10_000  # that are remembered


class Rate:
    """A bucket for each caller, which fills with time: `a_minute` requests, all of them at once if need be."""

    def __init__(self, a_minute: int) -> None:
        self._a_minute = a_minute
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, who: str) -> None:
        """Count a request. Raises `TooManyError`."""
        now, most = time.monotonic(), float(self._a_minute)
        left, at = self._buckets.pop(who, (most, now))
        left = min(most, left + (now - at) * most / 60)
        self._buckets[who] = (max(left - 1, 0.0) if left >= 1 else left, now)
        if len(self._buckets) > _MOST_CALLERS:
            self._buckets.popitem(last=False)
        if left < 1:
            wait = (1 - left) * 60 / most
            raise TooManyError(
                f"More than {self._a_minute} requests came in a minute; wait {wait:.0f} seconds",
                retry_after=max(1, round(wait)),
            )


def too_large(limit: int) -> TooLargeError:
    """Return the refusal of a body."""
    return TooLargeError(f"The body is larger than {limit} bytes; send less, or have `max_body` raised")


class Counted:
    """Receives a body, and refuses it once it is too large, whatever its headers said.

    Whoever reads the body may make another error of the refusal, so `is_too_large` says whether there was one.
    """

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive, self._limit, self._size = receive, limit, 0

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            if self.is_too_large:
                raise too_large(self._limit)
        return message

    @property
    def is_too_large(self) -> bool:
        """Whether too much came."""
        return self._size > self._limit
