"""What nodes and tasks are declared with: retries, timeouts and caching, checked where they are given."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from waitpoint.errors import GraphValidationError
from waitpoint.records import CachePolicy, RetryPolicy

Retry = RetryPolicy | Sequence[RetryPolicy]


def retries_of(given: Retry | None) -> tuple[RetryPolicy, ...] | None:
    """Return retry policies as a tuple. Raises `GraphValidationError` for anything else."""
    if given is None:
        return None
    policies = (given,) if isinstance(given, RetryPolicy) else tuple(given)
    for policy in policies:
        if not isinstance(policy, RetryPolicy):
            raise GraphValidationError(
                f"retry_policy holds a {type(policy).__name__} - it is a RetryPolicy or a list of them; write "
                f"RetryPolicy(max_attempts=3)"
            )
    return policies


def cache_policy_of(given: Any) -> CachePolicy | None:
    """Return a cache policy if it is one. Raises `GraphValidationError`."""
    if given is not None and not isinstance(given, CachePolicy):
        raise GraphValidationError(
            f"cache_policy is a {type(given).__name__}; write CachePolicy(ttl=60) with the class in waitpoint.types"
        )
    return given


def seconds_of(given: float | timedelta | None) -> float | None:
    """Return a timeout in seconds. Raises `GraphValidationError` for none that can be kept."""
    if given is None:
        return None
    seconds = given.total_seconds() if isinstance(given, timedelta) else float(given)
    if not seconds > 0:
        raise GraphValidationError(f"timeout is {seconds:g} s, and must be greater than 0; leave it out for no limit")
    return seconds
