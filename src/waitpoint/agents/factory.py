"""`create_agent`: a model that calls tools in a loop, as a graph whose steps can all stop and wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import SystemMessage
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as make_tool
from pydantic import BaseModel

from waitpoint.agents import history
from waitpoint.agents.gate import POLICIES, TOOLS
from waitpoint.agents.middleware.human_in_the_loop import HumanInTheLoopMiddleware
from waitpoint.agents.middleware.types import AgentMiddleware, overrides
from waitpoint.agents.model_call import ModelCall
from waitpoint.agents.models import init_chat_model
from waitpoint.agents.nodes import TwoForms
from waitpoint.agents.routes import Routes, hook_node
from waitpoint.agents.state import AgentSchemas, AgentState, merged_schemas
from waitpoint.agents.structured_output import as_strategy, state_of, structured_names
from waitpoint.agents.tool_calls import AgentTools
from waitpoint.errors import ConfigError
from waitpoint.graph.state import CompiledStateGraph, StateGraph
from waitpoint.records import START


def create_agent(
    model: str | BaseChatModel,
    tools: Sequence[BaseTool | Callable[..., Any] | type[BaseModel] | dict[str, Any]] | None = None,
    *,
    system_prompt: str | SystemMessage | None = None,
    middleware: Sequence[AgentMiddleware[Any, Any, Any]] = (),
    response_format: Any | None = None,
    state_schema: type[Any] | None = None,
    context_schema: type[Any] | None = None,
    checkpointer: Any = None,
    store: Any = None,
    interrupt_before: Sequence[str] | None = None,
    interrupt_after: Sequence[str] | None = None,
    debug: bool = False,
    name: str | None = None,
    cache: Any = None,
    transformers: Sequence[Callable[[tuple[str, ...]], Any]] | None = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return an agent: it calls the model, runs the tool calls of its answer (each a task of its own), and so on until
    the model calls none.

    `model` is a chat model or a name such as "openai:gpt-5.5". `tools` are LangChain tools, functions (their signature and
    docstring are the schema), pydantic classes, or a provider's own tools as dicts. `middleware` lies around the steps, the
    first outermost. `response_format` asks for a typed result under "structured_response". The rest is as in
    `StateGraph.compile`.

    Raises:
        ConfigError, GraphValidationError: it could not work, or would not gate what it is to gate; the text says which.
    """
    chat = init_chat_model(model)
    label = name or "agent"
    _check_middleware(middleware, label)
    own, provided = _sorted_tools(chain((t for m in middleware for t in m.tools), tools or ()))
    approvals = [m for m in middleware if isinstance(m, HumanInTheLoopMiddleware)]
    for approval in approvals:
        approval.policies.check_names(tool.name for tool in own)
    strategy = as_strategy(response_format)
    _check_results(structured_names(strategy), own)
    calls = ModelCall(
        chat,
        [*own, *provided],
        system_message=SystemMessage(content=system_prompt) if isinstance(system_prompt, str) else system_prompt,
        response_format=strategy,
        middleware=middleware,
        name=name,
    )
    schemas = [AgentState, *(m.state_schema for m in middleware), *([state_schema] if state_schema else ())]
    graph = _built(merged_schemas(label, [*schemas, *state_of(strategy)]), context_schema, calls, own, middleware)
    stops = {"interrupt_before": _names(interrupt_before), "interrupt_after": _names(interrupt_after)}
    streams = list(
        {id(t): t for t in [*(t for m in middleware for t in m.transformers), *(transformers or ())]}.values()
    )
    compiled = graph.compile(
        checkpointer, cache=cache, store=store, debug=debug, name=name, transformers=streams, **stops
    )
    asking = next((m for m in approvals if m.policies.asking()), None)
    compiled.spec = compiled.spec._replace(
        nodes={key: node._replace(goto_instead=True) for key, node in compiled.spec.nodes.items()},
        settle=history.settle,
        asker=None if asking is None else asking.name,
        extras={TOOLS: {tool.name: tool for tool in own}} | ({POLICIES: approvals[0].gated} if approvals else {}),
    )
    return compiled


def _built(
    schemas: AgentSchemas, context_schema: Any, calls: ModelCall, own: list[BaseTool],
    middleware: Sequence[AgentMiddleware[Any, Any, Any]],
) -> StateGraph[Any, Any, Any, Any]:  # fmt: skip
    """Return the agent as a graph: the model, the tools, and a node for each hook."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(
        schemas["state"], context_schema, input_schema=schemas["input"], output_schema=schemas["output"]
    )
    has_tools = bool(own) or _wraps_tools(middleware)
    routes = Routes.of(middleware, has_tools=has_tools, structured=structured_names(calls.response_format))
    metadata = {"lc_agent_name": calls.name} if calls.name else {}
    graph.add_node("model", TwoForms("model", calls.run, calls.arun), metadata=metadata)
    if routes.model_then is not None:
        graph.add_edge("model", routes.model_then)
    else:
        graph.add_conditional_edges("model", lambda state: routes.after_turn(state["messages"]), routes.from_model_turn)
    if has_tools:
        runner = AgentTools(own, middleware, routes)
        graph.add_node("tools", runner, metadata=metadata)
        graph.add_conditional_edges("tools", runner.route, routes.from_tools)
    for hook in routes.hooks:
        graph.add_node(hook.node, hook_node(hook, routes), metadata=metadata, destinations=hook.destinations)
        if hook.then is not None and not hook.jumps:
            graph.add_edge(hook.node, hook.then)
        else:
            graph.add_conditional_edges(hook.node, routes.after(hook), hook.destinations)
    return graph.add_edge(START, routes.entry)


def _names(given: Sequence[str] | None) -> Any:
    return None if given is None else given if isinstance(given, str) else list(given)


def _sorted_tools(given: Iterable[Any]) -> tuple[list[BaseTool], list[dict[str, Any]]]:
    """Return the tools that run here, and those that the provider runs."""
    own: dict[str, BaseTool] = {}
    provided: list[dict[str, Any]] = []
    for each in given:
        if isinstance(each, dict):
            provided.append(each)
            continue
        tool = _as_tool(each)
        if own.get(tool.name, tool) is not tool:
            raise ConfigError(f"Two tools are called {tool.name!r}, and a call could mean either; rename one")
        own[tool.name] = tool
    return list(own.values()), provided


def _check_results(results: Iterable[str], own: Iterable[BaseTool]) -> None:
    """Refuse a result of a tool's name: a call of the tool would be taken for the result, and never be run or asked about."""
    for both in sorted({*results} & {tool.name for tool in own}):
        raise ConfigError(
            f"A schema of `response_format` is called {both!r}, as a tool is, and a call could mean either; rename one"
        )


def _as_tool(given: Any) -> BaseTool:
    if isinstance(given, BaseTool):
        return given
    if not callable(given):
        raise ConfigError(f"`tools` has a {type(given).__name__}; give a tool, a function, a pydantic class or a dict")
    made: BaseTool = make_tool(given)
    return made


def _wraps_tools(middleware: Sequence[AgentMiddleware[Any, Any, Any]]) -> bool:
    return any(overrides(m, hook) for m in middleware for hook in ("wrap_tool_call", "awrap_tool_call"))


def _check_middleware(middleware: Sequence[Any], label: str) -> None:
    """Refuse what cannot work together. Raises `ConfigError`."""
    seen: set[str] = set()
    for each in middleware:
        if not isinstance(each, AgentMiddleware):
            raise ConfigError(
                f"`middleware` of agent {label!r} has a {type(each).__name__}; give instances of AgentMiddleware"
            )
        if each.name in seen:
            raise ConfigError(
                f"Two middlewares of agent {label!r} are called {each.name!r}, and their steps could not be told apart; give "
                f"one another `name`"
            )
        seen.add(each.name)
    approvals = [n for n, each in enumerate(middleware) if isinstance(each, HumanInTheLoopMiddleware)]
    if len(approvals) > 1:
        raise ConfigError(
            f"Agent {label!r} has two approval middlewares; join their `interrupt_on`, so that one rule holds"
        )
    if not approvals:
        return
    for outer in middleware[: approvals[0]]:
        if outer.approval_order == "inside":
            approval = middleware[approvals[0]]
            raise ConfigError(
                f"Middleware {outer.name!r} lies outside {approval.name!r} and would retry or swallow its questions; list "
                f"{approval.name!r} before {outer.name!r}"
            )
