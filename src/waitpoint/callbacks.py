"""Callbacks about a graph's own life, at the path users of LangGraph know."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import BaseCallbackHandler

from waitpoint.engine.lifecycle import (
    GraphInterruptEvent,
    GraphLifecycleEvent,
    GraphLifecycleStatus,
    GraphResumeEvent,
)

__all__ = [
    "GraphCallbackHandler",
    "GraphInterruptEvent",
    "GraphLifecycleEvent",
    "GraphLifecycleStatus",
    "GraphResumeEvent",
]


class GraphCallbackHandler(BaseCallbackHandler):
    """A handler for `config["callbacks"]` that is told of pauses; both methods may be coroutine functions.

    What it raises is logged and changes nothing, unless it has `raise_error = True`.
    """

    def on_interrupt(self, event: GraphInterruptEvent) -> Any:
        """Hear that the graph paused; the pause is stored."""

    def on_resume(self, event: GraphResumeEvent) -> Any:
        """Hear that a graph goes on from a pause."""
