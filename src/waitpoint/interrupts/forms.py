"""The forms that answers come in: how each is brought into one shape, and refused, before its schema is checked.

A question names its form; a process that never registered that form checks the answer by its JSON Schema alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Read = Callable[[Any, Mapping[str, Any], Mapping[str, Any], Any], Any]
"""From payload, JSON Schema, the question's own `form_data` and an answer as plain data to the answer that is stored.

Raises pydantic.ValidationError for an answer that cannot be one. What it returned once it must return unchanged.
"""

_FORMS: dict[str, Read] = {}


def register(name: str, read: Read) -> None:
    """Let answers to questions of this form be read by `read`, in this process."""
    _FORMS[name] = read


def read(name: str) -> Read | None:
    """Return what reads answers of this form, or None if it is not known here."""
    return _FORMS.get(name)
