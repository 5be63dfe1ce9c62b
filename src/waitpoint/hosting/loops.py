"""What a host does again and again: a failure is logged, and the next round tries once more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

_log = logging.getLogger("waitpoint.hosting")


async def again(step: Callable[[], Awaitable[None]], seconds: float, what: str) -> None:
    """Do something, pause, and so on until cancelled; a store that is away for a while ends nothing."""
    while True:
        try:
            await step()
        except Exception:  # noqa: BLE001 - whatever it was, the next round may succeed
            _log.exception("%s failed; it is tried again", what)
        await asyncio.sleep(seconds)
