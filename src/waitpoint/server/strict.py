"""What a body may hold beside its form: JSON as the standard has it (RFC 8259, 6), nested no deeper than can be stored."""

from __future__ import annotations

import math
from typing import Any

MOST_LEVELS = 100


def strict(value: Any) -> Any:
    """Return a value as it is. Raises `ValueError` if it holds a number that JSON has not, or nests too deep."""
    level, layer = 0, [value]
    while layer:
        if level > MOST_LEVELS:
            raise ValueError(f"it nests deeper than {MOST_LEVELS} levels; give ids that refer to the parts")
        level += 1
        if any(isinstance(each, float) and not math.isfinite(each) for each in layer):
            raise ValueError("NaN and Infinity are no JSON; send null or text")
        layer = [
            item
            for each in layer
            if isinstance(each, dict | list)
            for item in (each.values() if isinstance(each, dict) else each)
        ]
    return value
