"""Items as SQLite holds them, and the statements that read and write them inside a transaction of their caller.

A namespace is its labels, each with a '.' after it; labels hold none, so that the texts of all namespaces below one
begin with its own, and lie between it and the same text with a '/' (the next character) in place of its last '.'.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence

from waitpoint.checkpoint.sqlite.rows import Cursor
from waitpoint.store.base import Result
from waitpoint.store.batches import Batch, Namespace, Put, Row
from waitpoint.store.embedding import Vector

_COLUMNS = "SELECT seq, ns, key, value, created_at, updated_at, ttl, expires_at FROM store_item"
_IS_THERE = "(expires_at IS NULL OR expires_at > ?)"
_FIND = f"{_COLUMNS} WHERE ns = ? AND key = ? AND {_IS_THERE}"
_ALL = f"{_COLUMNS} WHERE {_IS_THERE} ORDER BY seq LIMIT ?"
_BELOW = f"{_COLUMNS} WHERE ns >= ? AND ns < ? AND {_IS_THERE} ORDER BY seq LIMIT ?"
_NAMESPACES = "SELECT DISTINCT ns FROM store_item WHERE expires_at IS NULL OR expires_at > ?"
_VECTORS = "SELECT vector FROM store_vector WHERE seq = ?"
_PUT = """
    INSERT INTO store_item (ns, key, value, created_at, updated_at, ttl, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (ns, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at, ttl = excluded.ttl,
        expires_at = excluded.expires_at"""
_SEQ = "SELECT seq FROM store_item WHERE ns = ? AND key = ?"
_PUT_VECTOR = "INSERT INTO store_vector (seq, path, vector) VALUES (?, ?, ?)"
_DELETE = "DELETE FROM store_item WHERE seq = ?"
_DELETE_VECTORS = "DELETE FROM store_vector WHERE seq = ?"
_EXPIRED = "SELECT seq FROM store_item WHERE expires_at <= ?"
_REFRESH = "UPDATE store_item SET expires_at = ? + ttl * 60 WHERE seq = ? AND ttl IS NOT NULL AND expires_at > ?"


def read(cursor: Cursor, batch: Batch) -> tuple[list[Result], list[int]]:
    """Return the results of a batch, and which items' times to live start anew by that."""
    results, touched = batch.read(_View(cursor, batch.at))
    return results, [row.seq for row in touched]


def refresh(cursor: Cursor, change: tuple[Sequence[int], float]) -> None:
    """Start the times to live of items anew, where they have not expired meanwhile."""
    touched, at = change
    cursor.executemany(_REFRESH, [(at, seq, at) for seq in touched])


def apply(cursor: Cursor, batch: Batch) -> list[Result]:
    """Do a batch that writes."""
    results, touched = read(cursor, batch)
    refresh(cursor, (touched, batch.at))
    sweep(cursor, batch.at)
    for put in batch.puts.values():
        _write(cursor, put, batch.at)
    return results


def sweep(cursor: Cursor, at: float) -> int:
    """Remove what has expired, and return how much it was."""
    return _delete(cursor, cursor.execute(_EXPIRED, (at,)).fetchall())


def _delete(cursor: Cursor, numbers: list[tuple[int]]) -> int:
    cursor.executemany(_DELETE_VECTORS, numbers)
    cursor.executemany(_DELETE, numbers)
    return len(numbers)


def _write(cursor: Cursor, put: Put, at: float) -> None:
    ns = _text(put.namespace)
    if put.data is None:
        _delete(cursor, cursor.execute(_SEQ, (ns, put.key)).fetchall())
        return
    ends = None if put.ttl is None else at + put.ttl * 60
    cursor.execute(_PUT, (ns, put.key, put.data, at, at, put.ttl, ends))
    (seq,) = cursor.execute(_SEQ, (ns, put.key)).fetchone()
    cursor.execute(_DELETE_VECTORS, (seq,))
    cursor.executemany(_PUT_VECTOR, [(seq, path, _packed(vector)) for path, vector in put.vectors.items()])


class _View:
    """The rows as a batch sees them."""

    def __init__(self, cursor: Cursor, at: float) -> None:
        self._cursor = cursor
        self._at = at

    def find(self, namespace: Namespace, key: str) -> Row | None:
        found = self._cursor.execute(_FIND, (_text(namespace), key, self._at)).fetchone()
        return None if found is None else _row(found)

    def below(self, prefix: Namespace, limit: int | None) -> Iterator[Row]:
        at_most = -1 if limit is None else limit
        if prefix:
            first = _text(prefix)
            found = self._cursor.execute(_BELOW, (first, f"{first[:-1]}/", self._at, at_most))
        else:
            found = self._cursor.execute(_ALL, (self._at, at_most))
        return map(_row, found.fetchall())

    def vectors(self, row: Row) -> Sequence[Vector]:
        return [_unpacked(data) for (data,) in self._cursor.execute(_VECTORS, (row.seq,)).fetchall()]

    def namespaces(self) -> Iterable[Namespace]:
        return [_namespace(ns) for (ns,) in self._cursor.execute(_NAMESPACES, (self._at,)).fetchall()]


def _row(found: Sequence[object]) -> Row:
    seq, ns, key, *rest = found
    text = key.decode("utf-8", "surrogatepass") if isinstance(key, bytes) else key  # a text that is not valid Unicode
    return Row(seq, _namespace(ns), text, *rest)  # type: ignore[arg-type]


def _text(namespace: Namespace) -> str:
    return "".join(f"{label}." for label in namespace)


def _namespace(text: object) -> Namespace:
    return tuple(str(text).split(".")[:-1])


def _packed(vector: Vector) -> bytes:
    if sys.byteorder == "big":
        vector = vector[:]
        vector.byteswap()
    return vector.tobytes()


def _unpacked(data: bytes) -> Vector:
    numbers = array("f", data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
