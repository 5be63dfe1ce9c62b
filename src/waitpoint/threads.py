"""Threads for what must never wait for a thread of the event loop's own pool, where bodies may wait for each other."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def carried(what: str, call: Callable[..., T], *args: Any) -> T:
    """Make a call of a user's whose end is handed on, to a generator or an event loop: neither can carry StopIteration.

    `what` names what is called. Raises `RuntimeError` in its place, as Python does for generators (PEP 479).
    """
    try:
        return call(*args)
    except StopIteration as error:
        raise RuntimeError(
            f"{what} raised StopIteration - it would end an iteration of whoever called it; give next() a default, or catch it"
        ) from error


@functools.cache
def for_bodies() -> Any:
    """Return threads, as many as there are bodies: each may wait for tasks that need others to go on."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(10_000, thread_name_prefix="waitpoint-body")


@functools.cache
def for_records() -> Any:
    """Return threads that put on record what tasks came to; nothing in them waits for a body."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(8, thread_name_prefix="waitpoint-record")


def _forget() -> None:
    for_bodies.cache_clear()
    for_records.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # the threads stay with the parent
