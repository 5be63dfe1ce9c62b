"""Values as JSON bytes, for the log and for callers over a network."""

from __future__ import annotations

import json
import math
from typing import Any

from waitpoint import codec, protocol
from waitpoint.errors import WaitpointError
from waitpoint.records import Interrupt


def jsonable(value: Any) -> Any:
    """Return a value of a thread's state as JSON values; questions as objects with id, value and schema."""
    return _finite(codec.to_json(value))


def interrupt_json(interrupt: Interrupt[Any]) -> dict[str, Any]:
    """Return a question as it is shown over a network."""
    schema = interrupt.response_schema
    value = protocol.with_aliases(jsonable(interrupt.value))
    return {"id": interrupt.id, "value": value, "response_schema": schema}


def error_json(error: BaseException) -> dict[str, Any]:
    """Return an error as it is told over a network; one of ours with its code and the questions it speaks of."""
    told: dict[str, Any] = {"error": type(error).__name__, "message": str(error)}
    if isinstance(error, WaitpointError):
        told["code"] = error.code
        for name in ("pending_ids", "interrupt_ids"):
            if ids := getattr(error, name, ()):
                told[name] = list(ids)
    return told


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
