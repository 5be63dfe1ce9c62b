"""`waitpoint migrate`: programs written for LangGraph and LangChain come over by their imports."""

from waitpoint.cli.migrate.command import migrate

__all__ = ["migrate"]
