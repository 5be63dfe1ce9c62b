"""Waitpoint's own records and errors, under short tags: every process knows them."""

from __future__ import annotations

from typing import Any, Final

from waitpoint import errors, records
from waitpoint.codec.classes import Form
from waitpoint.codec.natives import Kind

PREFIX: Final = "wp."

_RECORDS: Final = {
    "wp.answer": records.Answer,
    "wp.command": records.Command,
    "wp.happened": records.Happened,
    "wp.interrupt": records.Interrupt,
    "wp.node_error": errors.NodeError,
    "wp.not_happened": records.NotHappened,
    "wp.overwrite": records.Overwrite,
    "wp.send": records.Send,
    "wp.timeout": records.TimeoutPolicy,
}
_ERRORS: Final = {
    f"wp.error.{cls.code}": cls
    for cls in vars(errors).values()
    if isinstance(cls, type) and issubclass(cls, errors.WaitpointError)
}

CLASSES: Final[dict[str, type]] = {**_RECORDS, **_ERRORS}

_MISSING_TAG: Final = "wp.missing"


def _encode_missing(_: Any) -> tuple[int, Any]:
    return Kind.TAGGED, [_MISSING_TAG]


def _read_missing(_: list[Any], __: bytes) -> Any:
    return records.MISSING  # the one object: it is compared by identity


SPECIAL: Final[dict[str, tuple[type, Form]]] = {
    _MISSING_TAG: (type(records.MISSING), Form(_encode_missing, _read_missing)),
}
