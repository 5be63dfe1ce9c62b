"""Threads of LangGraph: carried over while they wait."""

from waitpoint.checkpoint.langgraph.importing import Imported, aimport_thread, import_thread

__all__ = ["Imported", "aimport_thread", "import_thread"]
