"""LangChain beside us: runnables called in a node find the node's config where LangChain looks for it."""

from __future__ import annotations

import sys
from contextvars import Context

from waitpoint.engine.scope import TaskScope


def lend_config(context: Context, scope: TaskScope) -> None:
    """Put the node's config into LangChain's own context variable, if LangChain is loaded at all."""
    if "langchain_core.runnables.config" not in sys.modules:
        return
    from langchain_core.runnables.config import var_child_runnable_config

    context.run(var_child_runnable_config.set, scope.config)  # type: ignore[arg-type]
