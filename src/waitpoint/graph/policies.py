"""What nodes and tasks are declared with: retries, timeouts and caching, checked where they are given."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from waitpoint.errors import GraphValidationError
from waitpoint.records import CachePolicy, RetryPolicy, TimeoutPolicy

Retry = RetryPolicy | Sequence[RetryPolicy]
Timeout = float | timedelta | TimeoutPolicy


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


def timeout_of(given: Timeout | None) -> TimeoutPolicy | None:
    """Return a timeout as a policy in seconds. Raises `GraphValidationError` for none that can be kept."""
    try:
        return TimeoutPolicy.coerce(given)
    except ValueError as error:
        raise GraphValidationError(f"timeout cannot be kept: {error}") from None
