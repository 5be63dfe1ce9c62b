"""The one clock: every time in the system comes from here, so that tests can hold it in the hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

_source: Callable[[], float] = time.time


def now() -> float:
    """Seconds since 1970 (UTC)."""
    return _source()


def iso(at: float) -> str:
    """Return an ISO 8601 text (UTC, microseconds) for a time in seconds."""
    return datetime.fromtimestamp(at, UTC).isoformat()


@contextmanager
def fixed(source: Callable[[], float]) -> Iterator[None]:
    """Replace the clock while the block runs; for tests."""
    global _source  # noqa: PLW0603 - the one clock is the point
    before, _source = _source, source
    try:
        yield
    finally:
        _source = before
