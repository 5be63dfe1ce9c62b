"""LangChain beside us: runnables called in a node find its config where they look for it, and graphs are runnables."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextvars import Context
from typing import Any

from waitpoint.engine.scope import TaskScope

_variable: Any = None


def lend_config(context: Context | None, scope: TaskScope) -> None:
    """Put the node's config into LangChain's own context variable, if LangChain is loaded at all; None: right here."""
    global _variable  # noqa: PLW0603 - looked up once, since every task comes by here
    if _variable is None:
        _variable = getattr(sys.modules.get("langchain_core.runnables.config"), "var_child_runnable_config", None)
        if _variable is None:
            return
    if context is None:
        _variable.set(scope.config)
    else:
        context.run(_variable.set, scope.config)


# --- graphs as runnables ----------------------------------------------------------------------------------------------


RUNNABLES = "langchain_core.runnables.base"


def introduce(graphs: type[Any]) -> None:
    """Let LangChain take graphs for runnables: it tests for a class of its own, and may be loaded only later."""
    base = getattr(sys.modules.get(RUNNABLES), "Runnable", None)
    if base is not None:
        if not issubclass(graphs, base):
            base.register(graphs)
    elif not any(isinstance(finder, _Introduction) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Introduction(graphs))


class _Introduction:
    """Waits in the import system until LangChain's runnables are loaded, and then introduces graphs to them."""

    def __init__(self, graphs: type[Any]) -> None:
        self._graphs = graphs

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return what the other finders say, for that one module; its loader makes the introduction."""
        if name != RUNNABLES:
            return None
        sys.meta_path.remove(self)
        finders = [finder for finder in sys.meta_path if hasattr(finder, "find_spec")]
        found = (finder.find_spec(name, path, target) for finder in finders)
        spec = next((spec for spec in found if spec is not None), None)
        loader: Any = getattr(spec, "loader", None)
        if not hasattr(loader, "__dict__"):
            return spec

        def exec_module(module: Any) -> None:
            del loader.exec_module  # what this one stands before
            loader.exec_module(module)
            introduce(self._graphs)

        loader.exec_module = exec_module
        return spec


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
    elif isinstance(schema, Mapping):
        schema = {"properties": {}, **schema}  # an input of any keys names none

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
