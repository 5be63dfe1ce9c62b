"""Values as JSON bytes, for the log and for callers over a network."""

from __future__ import annotations

import json
import math
from typing import Any

from waitpoint import codec
from waitpoint.records import Interrupt


def jsonable(value: Any) -> Any:
    """Return a value of a thread's state as JSON values; questions as objects with id, value and schema."""
    return _finite(codec.to_json(value))


def interrupt_json(interrupt: Interrupt[Any]) -> dict[str, Any]:
    """Return a question as it is shown over a network."""
    schema = interrupt.response_schema
    return {"id": interrupt.id, "value": jsonable(interrupt.value), "response_schema": schema}


def dumps(value: Any) -> bytes:
    """Return JSON values as bytes."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def loads(data: bytes) -> Any:
    """Return the JSON values in bytes."""
    return json.loads(data)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None  # as JavaScript writes them
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value
