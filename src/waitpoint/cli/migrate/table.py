"""What stands where: the modules of LangGraph and LangChain, and where Waitpoint has their names."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Final

PACKAGES: Final = ("langgraph", "langchain")

# The modules in which a name is looked for, the first that exports it counts. Waitpoint works with langchain-core's own
# messages, tools and embeddings, so names that LangChain only passes on may come from there.
MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "langgraph.cache.base": ("waitpoint.cache.base",),
    "langgraph.cache.memory": ("waitpoint.cache.memory",),
    "langgraph.cache.redis": ("waitpoint.cache.redis",),
    "langgraph.cache.sqlite": ("waitpoint.cache.sqlite",),
    "langgraph.callbacks": ("waitpoint.callbacks",),
    "langgraph.checkpoint.memory": ("waitpoint.checkpoint.memory",),
    "langgraph.checkpoint.sqlite": ("waitpoint.checkpoint.sqlite",),
    "langgraph.checkpoint.sqlite.aio": ("waitpoint.checkpoint.sqlite.aio",),
    "langgraph.config": ("waitpoint.config",),
    "langgraph.constants": ("waitpoint.constants",),
    "langgraph.errors": ("waitpoint.errors",),
    "langgraph.func": ("waitpoint.func",),
    "langgraph.graph": ("waitpoint.graph",),
    "langgraph.graph.message": ("waitpoint.graph.message",),
    "langgraph.graph.state": ("waitpoint.graph.state",),
    "langgraph.managed": ("waitpoint.managed",),
    "langgraph.managed.is_last_step": ("waitpoint.managed",),
    "langgraph.prebuilt": ("waitpoint.prebuilt",),
    "langgraph.prebuilt.tool_node": ("waitpoint.prebuilt",),
    "langgraph.pregel.types": ("waitpoint.types",),
    "langgraph.runtime": ("waitpoint.runtime",),
    "langgraph.store.base": ("waitpoint.store.base", "langchain_core.embeddings"),
    "langgraph.store.memory": ("waitpoint.store.memory",),
    "langgraph.store.sqlite": ("waitpoint.store.sqlite",),
    "langgraph.store.sqlite.base": ("waitpoint.store.sqlite",),
    "langgraph.store.sqlite.aio": ("waitpoint.store.sqlite.aio",),
    "langgraph.stream": ("waitpoint.stream",),
    "langgraph.stream.run_stream": ("waitpoint.stream",),
    "langgraph.stream.stream_channel": ("waitpoint.stream",),
    "langgraph.stream.transformers": ("waitpoint.stream",),
    "langgraph.types": ("waitpoint.types",),
    "langchain.agents": ("waitpoint.agents",),
    "langchain.agents.factory": ("waitpoint.agents",),
    "langchain.agents.middleware": ("waitpoint.agents.middleware",),
    "langchain.agents.middleware.human_in_the_loop": ("waitpoint.agents.middleware", "waitpoint.protocol"),
    "langchain.agents.middleware.model_call_limit": ("waitpoint.agents.middleware.model_call_limit",),
    "langchain.agents.middleware.model_fallback": ("waitpoint.agents.middleware.model_fallback",),
    "langchain.agents.middleware.model_retry": ("waitpoint.agents.middleware.model_retry",),
    "langchain.agents.middleware.tool_call_limit": ("waitpoint.agents.middleware.tool_call_limit",),
    "langchain.agents.middleware.tool_error": ("waitpoint.agents.middleware.tool_error",),
    "langchain.agents.middleware.tool_retry": ("waitpoint.agents.middleware.tool_retry",),
    "langchain.agents.middleware.types": ("waitpoint.agents.middleware", "waitpoint.agents.middleware.types"),
    "langchain.agents.structured_output": ("waitpoint.agents.structured_output",),
    "langchain.chat_models": ("waitpoint.chat_models",),
    "langchain.chat_models.base": ("waitpoint.chat_models",),
    "langchain.embeddings": ("langchain_core.embeddings",),
    "langchain.embeddings.base": ("langchain_core.embeddings",),
    "langchain.messages": ("waitpoint.messages", "langchain_core.messages"),
    "langchain.rate_limiters": ("langchain_core.rate_limiters",),
    "langchain.tools": ("waitpoint.tools",),
    "langchain.tools.tool_node": ("waitpoint.tools", "waitpoint.prebuilt"),
}

_WRAP: Final = "keep the import and wrap the saver: `LangGraphSaver(saver)` of waitpoint.checkpoint.langgraph"
_TRACES: Final = "traces are shortened for all nodes at once, by `hide_inputs` and `hide_outputs` of LangSmith's client"
_PREBUILT: Final = "`create_agent` of waitpoint.agents takes its place (`prompt` is `system_prompt` there)"

# Why a module or name has no counterpart, and what to do; the longest name that fits counts.
REASONS: Final[Mapping[str, str]] = {
    "langgraph": "Waitpoint has no counterpart of it",
    "langgraph.channels": "keys of a state are declared by their types and reducers alone; annotate the key",
    "langgraph.callbacks": "handlers are found in the config by Waitpoint itself; derive from GraphCallbackHandler",
    "langgraph.checkpoint": _WRAP,
    "langgraph.checkpoint.base": "savers have another port here (waitpoint.checkpoint.base); for a saver of your own, "
    + _WRAP,
    "langgraph.checkpoint.serde": "values are stored by waitpoint.codec; register your classes there",
    "langgraph.checkpoint.memory": "values in memory are kept by InMemorySaver; for some in a file, take SqliteSaver",
    "langgraph.checkpoint.sqlite": "the savers in SQLite are SqliteSaver and AsyncSqliteSaver",
    "langgraph.constants": "it is the inside of LangGraph; nodes find what is theirs in config and runtime",
    "langgraph.errors.ErrorCode": "each error here has a `code` of its own; see docs/errors.md",
    "langgraph.errors.is_invalid_resume": "a refused answer never reaches the code that asked: invoke() raises, the "
    "question stays open",
    "langgraph.errors.NodeCancelledError": "a node that raises CancelledError ends its run as cancelled",
    "langgraph.errors.NodeInterrupt": "call `interrupt(...)` of waitpoint.types in its place",
    "langgraph.graph.MessageGraph": "write StateGraph(MessagesState) in its place",
    "langgraph.graph.message.MessageGraph": "write StateGraph(MessagesState) in its place",
    "langgraph.graph.ui": "Waitpoint has no messages that are parts of a page",
    "langgraph.managed": "nodes annotate RemainingSteps and IsLastStep; other values that are managed there are none",
    "langgraph.prebuilt.ToolCallTransformer": "tool calls are shown by stream mode `tools`",
    "langgraph.prebuilt.ValidationNode": "ToolNode checks the arguments of calls itself",
    "langgraph.prebuilt.chat_agent_executor": _PREBUILT,
    "langgraph.prebuilt.create_react_agent": _PREBUILT,
    "langgraph.prebuilt.interrupt": "these are types of plain dicts; a payload of interrupt() may be any, and "
    "waitpoint.protocol has types of its own",
    "langgraph.prebuilt.tool_node": "it is the inside of their ToolNode",
    "langgraph.prebuilt.tool_validator": "ToolNode checks the arguments of calls itself",
    "langgraph.pregel": "it is the inside of LangGraph's engine; compile a StateGraph or an entrypoint",
    "langgraph.store": "there is no such store here yet; waitpoint.store.memory and .sqlite are there",
    "langgraph.store.base": "it is the inside of their stores; those here find and embed texts by `index=` alone",
    "langgraph.store.sqlite": "the stores in SQLite are SqliteStore and AsyncSqliteStore",
    "langgraph.stream": "it is the inside of their event streams",
    "langgraph.types.PregelExecutableTask": "it is the inside of LangGraph's engine",
    "langgraph.types.TracePolicy": _TRACES,
    "langgraph.types.omit_payload": _TRACES,
    "langgraph.types.ensure_valid_checkpointer": "it is the inside of LangGraph; compile() checks what it is given",
    "langgraph.typing": "type variables of their classes; declare your own with TypeVar",
    "langgraph.utils": "it is the inside of LangGraph",
    "langgraph.version": "Waitpoint has a version of its own: waitpoint.version",
    "langgraph.warnings": "Waitpoint has nothing that is deprecated there",
    "langchain": "Waitpoint has no counterpart of it",
    "langchain.agents.middleware": "this middleware does not come with Waitpoint; write it as an AgentMiddleware",
    "langchain.agents.middleware.TracePolicy": _TRACES,
    "langchain.agents.middleware.configure_trace_policy": _TRACES,
    "langchain.agents.middleware.omit_payload": _TRACES,
    "langchain.agents.middleware.types.TracePolicy": _TRACES,
    "langchain.agents.middleware.types.omit_payload": _TRACES,
    "langchain.agents.middleware.types": "type variables of their classes; declare your own with TypeVar",
    "langchain.agents.structured_output": "it is the inside of their create_agent; ToolStrategy and ProviderStrategy are there",
    "langchain.mcp": "Waitpoint has no client of that protocol; langchain-mcp-adapters gives tools that agents here take",
    "langchain.embeddings": "give the store an embedding object or function of the provider's package",
    "langchain.tools": "it is the inside of their ToolNode",
}

# Packages of their own that bring LangGraph along: what they build are its graphs, not Waitpoint's.
BESIDE: Final = (
    "langgraph_supervisor",
    "langgraph_swarm",
    "langgraph_bigtool",
    "langgraph_codeact",
    "langmem",
    "deepagents",
)


def counterpart(module: str, name: str) -> str | None:
    """Return the module from which a name is imported here, or None."""
    for ours in MODULES.get(module, ()):
        if hasattr(importlib.import_module(ours), name):
            return ours
    return None


def reason(name: str) -> str:
    """Return why a dotted name has no counterpart."""
    parts = name.split(".")
    known = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next(REASONS[each] for each in known if each in REASONS)


def is_theirs(module: str) -> bool:
    """Whether a module is of LangGraph or LangChain (langchain-core and the providers' packages are not meant)."""
    return module.partition(".")[0] in PACKAGES


def same_place(module: str) -> bool:
    """Whether Waitpoint's module has the same path but for its first part, so that dotted uses can be renamed."""
    ours = MODULES.get(module, ())
    return len(ours) == 1 and ours[0].partition(".") == ("waitpoint", ".", module.partition(".")[2])
