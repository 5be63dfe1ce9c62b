"""Caches results in a SQLite file that several processes share."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from waitpoint import clock, codec
from waitpoint.cache.base import BaseCache, FullKey, Namespace, ValueT, seconds
from waitpoint.checkpoint.sqlite.holder import Holder
from waitpoint.checkpoint.sqlite.rows import Cursor

_FIND = "SELECT value FROM cache_entry WHERE ns = ? AND key = ? AND (expires_at IS NULL OR expires_at > ?)"
_PUT = """
    INSERT INTO cache_entry (ns, key, value, expires_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (ns, key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at"""
_FORGET_EXPIRED = "DELETE FROM cache_entry WHERE expires_at <= ?"
_CLEAR = "DELETE FROM cache_entry WHERE ns = ?"
_CLEAR_ALL = "DELETE FROM cache_entry"

_Row = tuple[str, str, bytes, float | None]


class SqliteCache(Holder, BaseCache[ValueT]):
    """Caches in a SQLite file: one of its own, or that of a saver or store.

    `path` is a path, ":memory:" or an open connection; `busy_timeout` is in seconds. Writes do not wait for the disk:
    after a power failure the last of them may be computed once more.
    """

    def __init__(self, path: sqlite3.Connection | str | Path, *, busy_timeout: float = 30.0) -> None:
        self._hold(path, busy_timeout, "cache")

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """Return what is cached under these keys; those that are missing or expired are left out."""
        wanted = [(tuple(ns), key) for ns, key in keys]
        if not wanted:
            return {}
        found = self._database.read(_find, wanted, clock.now())
        return {full: codec.loads(data) for full, data in found.items()}

    def set(self, pairs: Mapping[FullKey, tuple[ValueT, float | None]]) -> None:
        """Cache values, each with the seconds it may be used, or None for no end."""
        at = clock.now()
        rows = [
            (_text(ns), key, codec.dumps(value), None if seconds(ttl) is None else at + (ttl or 0))
            for (ns, key), (value, ttl) in pairs.items()
        ]
        if rows:
            self._database.write(_put, (rows, at), durable=False)

    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget what is cached in these namespaces, or everything."""
        self._database.write(_clear, None if namespaces is None else [_text(ns) for ns in namespaces], durable=False)


def _text(ns: Iterable[str]) -> str:
    return json.dumps(list(ns))


def _find(cursor: Cursor, keys: Sequence[FullKey], at: float) -> dict[FullKey, bytes]:
    found: dict[FullKey, bytes] = {}
    for ns, key in keys:
        row = cursor.execute(_FIND, (_text(ns), key, at)).fetchone()
        if row is not None:
            found[ns, key] = row[0]
    return found


def _put(cursor: Cursor, change: tuple[list[_Row], float]) -> None:
    rows, at = change
    cursor.execute(_FORGET_EXPIRED, (at,))
    cursor.executemany(_PUT, rows)


def _clear(cursor: Cursor, namespaces: list[str] | None) -> None:
    if namespaces is None:
        cursor.execute(_CLEAR_ALL)
    else:
        cursor.executemany(_CLEAR, [(ns,) for ns in namespaces])
