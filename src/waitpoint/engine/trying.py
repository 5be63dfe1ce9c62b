"""Trying a body: for how many seconds, and how long after a failure once more."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any

from waitpoint.errors import NodeTimeoutError
from waitpoint.records import RetryPolicy, TimeoutPolicy


class Pulse:
    """When a body last gave a sign of life. What runs inside it gives signs for it too.

    Any thread may give one: it is a single write, and who reads it late by a little cancels late by a little.
    """

    __slots__ = ("_beats_alone", "_outer", "at")

    def __init__(self, policy: TimeoutPolicy, outer: Pulse | None) -> None:
        self.at = time.monotonic()
        self._beats_alone = policy.refresh_on == "heartbeat"
        self._outer = outer

    def beat(self) -> None:
        """Say so expressly."""
        self.at = time.monotonic()
        if self._outer is not None:
            self._outer.beat()

    def stir(self) -> None:
        """Show it by what the body does, if that counts."""
        if not self._beats_alone:
            self.at = time.monotonic()
        if self._outer is not None:
            self._outer.stir()


async def within_time(policy: TimeoutPolicy, pulse: Pulse, work: Awaitable[Any], node: str, what: str = "Node") -> Any:
    """Await a body for so long. Raises `NodeTimeoutError` after it was cancelled."""
    import asyncio

    run, idle = policy.seconds()
    begun = pulse.at = time.monotonic()
    limit = asyncio.timeout(run)
    watch = None if idle is None else _Watch(asyncio.get_running_loop(), pulse, idle, limit)
    try:
        async with limit:
            return await work
    except TimeoutError as error:
        if not limit.expired():
            raise
        was_idle = watch is not None and watch.was_idle
        how = (
            f"made no progress for its idle timeout of {idle:g}"
            if was_idle
            else f"took longer than its timeout of {run:g}"
        )
        raise NodeTimeoutError(
            f"{what} {node!r} {how} seconds and was cancelled; raise the timeout, or continue the thread to try again",
            node=node,
            kind="idle" if was_idle else "run",
            run_timeout=run,
            idle_timeout=idle,
            elapsed=time.monotonic() - begun,
        ) from error
    finally:
        if watch is not None:
            watch.next.cancel()


class _Watch:
    """Lets a limit expire when the pulse was silent for too long; looks when that may be so for the first time."""

    def __init__(self, loop: Any, pulse: Pulse, idle: float, limit: Any) -> None:
        self.loop, self.pulse, self.idle, self.limit = loop, pulse, idle, limit
        self.was_idle = False
        self.next = loop.call_later(idle, self.look)

    def look(self) -> None:
        left = self.pulse.at + self.idle - time.monotonic()
        if left > 0:
            self.next = self.loop.call_later(left, self.look)
        elif not self.limit.expired():
            self.was_idle = True
            self.limit.reschedule(self.loop.time())


def seconds_to_retry(policies: Iterable[RetryPolicy], error: Exception, tries: int) -> float | None:
    """Return how long to wait before a body that failed is tried again; None if it is not."""
    policy = _policy_for(policies, error)
    if policy is None or tries >= policy.max_attempts:
        return None
    wait = policy.initial_interval * policy.backoff_factor ** (tries - 1)
    return float(min(wait, policy.max_interval) + (os.urandom(1)[0] / 255 if policy.jitter else 0))


def _policy_for(policies: Iterable[RetryPolicy], error: Exception) -> RetryPolicy | None:
    for policy in policies:
        on = policy.retry_on
        if isinstance(on, type):
            fits = isinstance(error, on)
        else:
            fits = isinstance(error, tuple(on)) if isinstance(on, Sequence) else on(error)
        if fits:
            return policy
    return None
