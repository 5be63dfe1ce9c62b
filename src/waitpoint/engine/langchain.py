"""LangChain beside us: runnables called in a node find its config where they look for it, and graphs are runnables."""

from __future__ import annotations

import sys
from collections.abc import Mapping
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


# --- graphs as runnables ----------------------------------------------------------------------------------------------


def introduce(graphs: type[Any]) -> None:
    """Let LangChain take graphs for runnables, if its runnables are loaded: they test for their own class."""
    base = getattr(sys.modules.get("langchain_core.runnables.base"), "Runnable", None)
    if base is not None and not issubclass(graphs, base):
        base.register(graphs)


def lent(graphs: type[Any], graph: Any, name: str) -> Any:
    """Return a method or property of LangChain's runnables, for a graph."""
    from langchain_core.runnables.base import Runnable

    introduce(graphs)
    found = getattr(Runnable, name)
    return found.__get__(graph)


def chained(graphs: type[Any], first: Any, second: Any) -> Any:
    """Return a chain of two, of which one at least is a graph."""
    from langchain_core.runnables.base import RunnableSequence, coerce_to_runnable

    introduce(graphs)
    return RunnableSequence(coerce_to_runnable(first), coerce_to_runnable(second))


def tool_of(
    graph: Any, args_schema: Any, name: str, description: str | None, arg_types: Mapping[str, type] | None
) -> Any:
    """Return a tool that invokes a graph."""
    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import StructuredTool, Tool

    schema = graph.get_input_jsonschema() if args_schema is None else args_schema
    is_one_value = args_schema is None and schema.get("type") != "object" and not arg_types
    if arg_types:
        schema = _model_of(name, arg_types)
    elif is_one_value:
        schema = {"type": "object", "title": name, "properties": {"input": schema}, "required": ["input"]}

    def run(*given: Any, config: RunnableConfig, **args: Any) -> Any:
        return graph.invoke(given[0] if given else args["input"] if is_one_value else args, config)

    async def arun(*given: Any, config: RunnableConfig, **args: Any) -> Any:
        return await graph.ainvoke(given[0] if given else args["input"] if is_one_value else args, config)

    for function in (run, arun):
        function.__annotations__["config"] = RunnableConfig  # as an object: that is where langchain-core looks
    told = description or f"Run {name!r}."
    if is_one_value and schema["properties"]["input"].get("type") == "string":
        return Tool(name=name, func=run, coroutine=arun, description=told)
    return StructuredTool(name=name, func=run, coroutine=arun, description=told, args_schema=schema)


def _model_of(name: str, arg_types: Mapping[str, type]) -> Any:
    from pydantic import create_model

    fields: dict[str, Any] = {key: (kind, ...) for key, kind in arg_types.items()}
    return create_model(name, **fields)
