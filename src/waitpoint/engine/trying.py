"""Trying a body: for how many seconds, and how long after a failure once more."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any

from waitpoint.errors import NodeTimeoutError
from waitpoint.records import RetryPolicy


async def within_seconds(seconds: float, work: Awaitable[Any], node: str, what: str = "Node") -> Any:
    """Await a body for so long. Raises `NodeTimeoutError` after it was cancelled."""
    import asyncio

    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await work
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise NodeTimeoutError(
            f"{what} {node!r} took longer than its timeout of {seconds:g} seconds and was cancelled; raise the timeout, or "
            f"continue the thread to try again",
            node=node,
            run_timeout=seconds,
        ) from error


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
