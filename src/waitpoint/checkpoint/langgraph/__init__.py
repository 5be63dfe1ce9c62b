"""Threads and LangGraph: those that wait there are carried over, and its savers can keep those of here."""

from waitpoint.checkpoint.langgraph.importing import Imported, aimport_thread, import_thread
from waitpoint.checkpoint.langgraph.saver import LangGraphSaver

__all__ = ["Imported", "LangGraphSaver", "aimport_thread", "import_thread"]
