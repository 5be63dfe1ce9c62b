"""Answers as plain data: what a person or another program would have sent."""

from __future__ import annotations

import base64
import dataclasses
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from waitpoint.codec import is_model


def plain_answer(answer: Any) -> Any:
    """Return an answer with models and dataclasses turned into plain data; all else stays what it is."""
    cls = type(answer)
    if cls is dict:
        return {key: plain_answer(item) for key, item in answer.items()}
    if cls is list or cls is tuple:
        return cls(plain_answer(item) for item in answer)
    if is_model(cls):
        return plain_answer(answer.model_dump(serialize_as_any=True, warnings=False))
    if dataclasses.is_dataclass(cls):
        return {field.name: plain_answer(getattr(answer, field.name)) for field in dataclasses.fields(cls)}
    return answer


def json_form(value: Any) -> Any:
    """Return what the value would be if it had come as JSON."""
    if isinstance(value, Enum):
        return json_form(value.value)
    if value is None or isinstance(value, (bool, int, float, str, Decimal)):
        return value
    if isinstance(value, dict):
        return {str(key.value) if isinstance(key, Enum) else key: json_form(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [json_form(item) for item in value]
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return f"{'-' if value.days < 0 else ''}PT{abs(value).total_seconds()}S"
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    raise ValueError(f"no JSON form for {type(value)!r}")
