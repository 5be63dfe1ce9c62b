"""Transitions as bytes: what the log of a thread holds, one entry for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

from waitpoint import codec
from waitpoint.checkpoint import base
from waitpoint.checkpoint.base import ThreadKey
from waitpoint.errors import StoreError


@dataclass(slots=True)
class Beat:
    """The lease of a run was extended."""

    owner: str
    lease_until: float


class Entry(NamedTuple):
    """A transition with the mark of its writer, by which that one finds it again."""

    mark: bytes
    change: Any


_CLASSES: Final[Mapping[str, type[Any]]] = {
    cls.__name__: cls
    for cls in (
        Beat, ThreadKey, base.Move, base.Commit, base.Settle, base.Record, base.Cut, base.Rest, base.Settlement, base.Writes,
        base.ThreadRow, base.CheckpointRow, base.ItemRow, base.OutcomeRow, base.JournalRow, base.QuestionRow, base.EventRow,
    )
}  # fmt: skip


def encoded(entry: Entry) -> bytes:
    """Return an entry's bytes."""
    return codec.dumps_plain([entry.mark, _plain(entry.change)])


def decoded(data: Any) -> Entry:
    """Return the entry that these bytes are. Raises `StoreError` for anything else."""
    try:
        mark, change = codec.loads(bytes(data))
        return Entry(mark, _object(change))
    except (TypeError, ValueError, KeyError) as error:
        raise StoreError(
            f"An entry of a thread's log cannot be read - {error} - something else writes where Waitpoint's threads are kept"
        ) from error


def _plain(value: Any) -> Any:
    if type(value).__name__ in _CLASSES:
        names = ThreadKey._fields if isinstance(value, ThreadKey) else [f.name for f in fields(value)]
        return {type(value).__name__: [_plain(getattr(value, name)) for name in names]}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _object(value: Any) -> Any:
    if isinstance(value, dict):
        ((name, parts),) = value.items()
        return _CLASSES[name](*map(_object, parts))
    return [_object(each) for each in value] if isinstance(value, list) else value
