"""Keeps a server's ledger in the SQLite file of its threads."""

from waitpoint.ledger.sqlite.ledger import SqliteLedger

__all__ = ["SqliteLedger"]
