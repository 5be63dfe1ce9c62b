"""Statements about assistants, inside a transaction of their caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from waitpoint.checkpoint.sqlite.rows import Cursor
from waitpoint.ledger.base import AssistantRow
from waitpoint.ledger.sqlite import columns

_SELECT = f"SELECT {columns.ASSISTANT} FROM assistant"
_INSERT = f"INSERT INTO assistant ({columns.ASSISTANT}, in_force) VALUES ({columns.marks(10)}, 1)"


def one(cursor: Cursor, assistant_id: str) -> AssistantRow | None:
    """Return the version in force."""
    found = cursor.execute(f"{_SELECT} WHERE id = ? AND in_force", (assistant_id,)).fetchone()
    return None if found is None else columns.assistant(found)


def add(cursor: Cursor, row: AssistantRow) -> AssistantRow | None:
    """Insert a new one, or return the one that is there."""
    there = one(cursor, row.id)
    if there is None:
        cursor.execute(_INSERT, columns.assistant_values(row))
    return there


def change(cursor: Cursor, row: AssistantRow) -> AssistantRow:
    """Insert a further version."""
    (last,) = cursor.execute("SELECT max(version) FROM assistant WHERE id = ?", (row.id,)).fetchone()
    row.version = (last or 0) + 1
    cursor.execute("UPDATE assistant SET in_force = 0 WHERE id = ?", (row.id,))
    cursor.execute(_INSERT, columns.assistant_values(row))
    return row


def choose(cursor: Cursor, wanted: tuple[str, int]) -> AssistantRow | None:
    """Put a version in force."""
    found = cursor.execute(f"{_SELECT} WHERE id = ? AND version = ?", wanted).fetchone()
    if found is None:
        return None
    id_, version = wanted
    cursor.execute("UPDATE assistant SET in_force = (version = ?) WHERE id = ?", (version, id_))
    return columns.assistant(found)


def listed(cursor: Cursor, ids: Sequence[str] | None, metadata: Mapping[str, Any] | None) -> list[AssistantRow]:
    """Return the versions in force, newest first."""
    if ids is None:
        found = cursor.execute(f"{_SELECT} WHERE in_force ORDER BY created_at DESC, id")
    else:
        found = cursor.execute(f"{_SELECT} WHERE in_force AND id IN ({columns.marks(len(ids))})", tuple(ids))
    rows = [columns.assistant(each) for each in found.fetchall()]
    return [row for row in rows if columns.is_contained(metadata or {}, row.metadata)]


def versions(cursor: Cursor, assistant_id: str) -> list[AssistantRow]:
    """Return all versions, newest first."""
    found = cursor.execute(f"{_SELECT} WHERE id = ? ORDER BY version DESC", (assistant_id,)).fetchall()
    return [columns.assistant(each) for each in found]


def delete(cursor: Cursor, assistant_id: str) -> bool:
    """Remove all versions."""
    cursor.execute("DELETE FROM assistant WHERE id = ?", (assistant_id,))
    return cursor.rowcount > 0
