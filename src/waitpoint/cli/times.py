"""Times as people read them: the local clock, and how long ago."""

from __future__ import annotations

import re
from datetime import datetime

from waitpoint import clock
from waitpoint.errors import UsageError

_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))


def age(at: float) -> str:
    """Return how long ago a time (UTC seconds) was, in its largest unit: "3 h"."""
    seconds = max(0.0, clock.now() - at)
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "now"


def seconds(text: str) -> float:
    """Return a length of time, written with its unit, in seconds."""
    found = re.fullmatch(r"(\d+) ?(s|min|h|d|w)", text)
    if found is None:
        raise UsageError(f"'{text}' is no length of time; write a number and a unit: 90s, 30min, 12h, 30d or 8w")
    sizes = {unit: size for size, unit in _UNITS} | {"w": 604_800.0}
    return int(found[1]) * sizes[found[2]]


def local(at: float) -> str:
    """Return a time (UTC seconds) by the local clock."""
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def with_age(at: float) -> str:
    """Return the local time and how long ago it was."""
    ago = age(at)
    return f"{local(at)} ({ago if ago == 'now' else f'{ago} ago'})"
