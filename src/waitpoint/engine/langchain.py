"""LangChain beside us: runnables called in a node find the node's config where LangChain looks for it."""

from __future__ import annotations

import sys
from contextvars import Context
from typing import Any

from waitpoint.engine.scope import TaskScope

_variable: Any = None


def lend_config(context: Context, scope: TaskScope) -> None:
    """Put the node's config into LangChain's own context variable, if LangChain is loaded at all."""
    global _variable  # noqa: PLW0603 - looked up once, since every task comes by here
    if _variable is None:
        _variable = getattr(sys.modules.get("langchain_core.runnables.config"), "var_child_runnable_config", None)
        if _variable is None:
            return
    context.run(_variable.set, scope.config)
