"""Rows as SQLite holds them: the columns of each table, and the way into and out of tuples.

Rule: values are bound, never written into a statement. Text that is not valid Unicode (a lone surrogate, from a file
name for instance) cannot be bound as text; it goes in as a blob of its UTF-8 with surrogates and comes out as it was.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import Any, Protocol

from waitpoint.checkpoint.base import (
    CheckpointRow,
    EventRow,
    JournalRow,
    OutcomeRow,
    QuestionRow,
    ThreadKey,
    ThreadRow,
)

Values = tuple[Any, ...]


class Cursor(Protocol):
    """What statements run on: a cursor of sqlite3, or the careful one below."""

    @property
    def rowcount(self) -> int:
        """Rows that the last statement changed."""

    @property
    def lastrowid(self) -> int | None:
        """Number of the row that the last statement inserted."""

    def execute(self, sql: str, values: Sequence[Any] = ..., /) -> Any:
        """Run a statement with these values."""

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Any:
        """Run a statement once for each row."""

    def fetchone(self) -> Any:
        """Return the next row of the result, or None."""

    def fetchall(self) -> list[Any]:
        """Return the rest of the result."""


class CarefulCursor:
    """Binds any text: slower, so used only once a statement met text that is not valid Unicode."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor

    @property
    def rowcount(self) -> int:
        """Rows that the last statement changed."""
        return self._cursor.rowcount

    @property
    def lastrowid(self) -> int | None:
        """Number of the row that the last statement inserted."""
        return self._cursor.lastrowid

    def execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Run a statement with these values."""
        return self._cursor.execute(sql, _bindable(values))

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> sqlite3.Cursor:
        """Run a statement once for each row."""
        return self._cursor.executemany(sql, [_bindable(row) for row in rows])

    def fetchone(self) -> Any:
        """Return the next row of the result, or None."""
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        """Return the rest of the result."""
        return self._cursor.fetchall()


def _bindable(values: Sequence[Any]) -> Values:
    return tuple(
        value.encode("utf-8", "surrogatepass") if isinstance(value, str) and not _is_unicode(value) else value
        for value in values
    )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Columns:
    """The columns of a result in the order of a row class's fields, `thread_id` and `graph` in the place of `key`."""

    def __init__(self, table: str, row: type[Any], blobs: Iterable[str] = ()) -> None:
        fields: list[str] = []
        for name in row.__slots__:
            fields += ThreadKey._fields if name == "key" else [name]
        blob_names = set(blobs)
        self._table = table
        self._sql = ", ".join(f'{"thread" if name in ThreadKey._fields else table}."{name}"' for name in fields)
        self._texts = [n for n, name in enumerate(fields) if name not in blob_names]
        self._text_of = itemgetter(*self._texts)

    def select(self, rest: str, tables: str | None = None, first: str = "") -> str:
        """Return a statement that reads these columns, after `first`; all parts of it are fixed, values are bound."""
        return f"SELECT {first}{self._sql} FROM {tables or self._table} {rest}"  # noqa: S608

    def repaired(self, values: Values) -> Values:
        """Return the values with text that was kept as a blob turned back."""
        if bytes not in map(type, self._text_of(values)):
            return values
        fixed = list(values)
        for n in self._texts:
            if isinstance(fixed[n], bytes):
                fixed[n] = fixed[n].decode("utf-8", "surrogatepass")
        return tuple(fixed)


THREAD = Columns("thread", ThreadRow)
CHECKPOINT = Columns("checkpoint", CheckpointRow, ["body"])
OUTCOME = Columns("outcome", OutcomeRow, ["body"])
JOURNAL = Columns("journal", JournalRow, ["body"])
QUESTION = Columns("question", QuestionRow, ["value", "schema", "site", "extra", "answer"])

of_checkpoint = attrgetter(*CheckpointRow.__slots__)
of_outcome = attrgetter(*OutcomeRow.__slots__)
of_journal = attrgetter(*JournalRow.__slots__)
of_question = attrgetter(*(name for name in QuestionRow.__slots__ if name != "key"))


def thread_row(values: Values) -> ThreadRow:
    """Make a thread's row of `THREAD` columns."""
    thread_id, graph, *rest = THREAD.repaired(values)
    return ThreadRow(ThreadKey(thread_id, graph), *rest)


def checkpoint_row(values: Values) -> CheckpointRow:
    """Make a checkpoint of `CHECKPOINT` columns."""
    return CheckpointRow(*CHECKPOINT.repaired(values))


def outcome_row(values: Values) -> OutcomeRow:
    """Make an outcome of `OUTCOME` columns."""
    return OutcomeRow(*OUTCOME.repaired(values))


def journal_row(values: Values) -> JournalRow:
    """Make a journal entry of `JOURNAL` columns."""
    return JournalRow(*JOURNAL.repaired(values))


def question_row(values: Values) -> QuestionRow:
    """Make a question of `QUESTION` columns."""
    name, thread_id, graph, *rest = QUESTION.repaired(values)
    row = QuestionRow(name, ThreadKey(thread_id, graph), *rest)
    row.replaceable = bool(row.replaceable)
    return row


def event_row(values: Values) -> EventRow:
    """Make an event of the columns kind, at, ref, data, seq."""
    kind, at, ref, data, seq = values
    return EventRow(_text(kind), at, _text(ref), data, seq)


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value
