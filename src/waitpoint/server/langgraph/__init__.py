"""The LangGraph Server protocol: assistants, threads, state, runs, store."""

from waitpoint.server.langgraph.router import router

__all__ = ["router"]
