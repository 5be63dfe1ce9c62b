"""Keeps items in a SQLite file that several threads and processes share."""

from waitpoint.store.sqlite.aio import AsyncSqliteStore
from waitpoint.store.sqlite.store import SqliteStore

__all__ = ["AsyncSqliteStore", "SqliteStore"]
