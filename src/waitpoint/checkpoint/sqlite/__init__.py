"""Keeps threads in one SQLite file that several threads and processes share."""

from waitpoint.checkpoint.sqlite.saver import SqliteSaver

__all__ = ["SqliteSaver"]
