"""Threads for what must never wait for a thread of the event loop's own pool, where bodies may wait for each other."""

from __future__ import annotations

import functools
import os
from typing import Any


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
