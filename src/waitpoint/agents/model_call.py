"""The model node: what the model is shown, the middleware around its call, and what its answer writes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    message_chunk_to_message,
)
from langchain_core.tools import BaseTool

from waitpoint import ids
from waitpoint import runtime as runtimes
from waitpoint.agents import history
from waitpoint.agents.middleware.types import (
    AgentMiddleware,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    overrides,
)
from waitpoint.agents.structured_output import (
    AutoStrategy,
    ProviderStrategy,
    ToolStrategy,
    as_strategy,
    structured_names,
)
from waitpoint.agents.tool_node.bridge import in_own_thread, sync_as_async
from waitpoint.errors import AsyncOnlyError, ConfigError, UsageError
from waitpoint.graph.message import REMOVE_ALL_MESSAGES
from waitpoint.interrupts import effects
from waitpoint.interrupts.effects import Effect
from waitpoint.interrupts.journal import Journal
from waitpoint.records import Command, Overwrite
from waitpoint.runtime import Runtime

Commands = list[Command[Any]]


class ModelCall:
    """Calls a model for an agent. Holds no state of any thread."""

    def __init__(
        self,
        model: BaseChatModel,
        tools: Sequence[BaseTool | dict[str, Any]],
        *,
        system_message: SystemMessage | None,
        response_format: Any,
        middleware: Sequence[AgentMiddleware[Any, Any, Any]],
        name: str | None,
    ) -> None:
        self.model = model
        self.tools = list(tools)
        self.system_message = system_message
        self.response_format = response_format
        self.wrappers = [m for m in middleware if overrides(m, "wrap_model_call") or overrides(m, "awrap_model_call")]
        self.runs_others = any(overrides(m, h) for m in middleware for h in ("wrap_tool_call", "awrap_tool_call"))
        self.name = name

    # --- the node -----------------------------------------------------------------------------------------------------

    def run(self, state: Any, runtime: Runtime[Any]) -> list[Any]:
        """Call the model once, in a blocking run; return the updates."""
        commands: Commands = []
        handler: Callable[[Any], ModelResponse[Any]] = self._called
        for middleware in reversed(self.wrappers):
            handler = self._around(middleware, handler, commands)
        request = self._request(state, runtime)
        shown, count = request.messages, len(request.messages)
        response = handler(request)
        return self._updates(response, commands, state, shown[count:])

    async def arun(self, state: Any, runtime: Runtime[Any]) -> list[Any]:
        """Call the model once, from an event loop."""
        commands: Commands = []
        handler: Callable[[Any], Any] = self._acalled
        for middleware in reversed(self.wrappers):
            handler = self._aaround(middleware, handler, commands)
        request = self._request(state, runtime)
        shown, count = request.messages, len(request.messages)
        response = await handler(request)
        return self._updates(response, commands, state, shown[count:])

    def _request(self, state: Any, runtime: Runtime[Any]) -> ModelRequest[Any]:
        return ModelRequest(
            model=self.model,
            messages=history.valid([*state["messages"], *remarks(state)]),
            system_message=self.system_message,
            tools=list(self.tools),
            response_format=self.response_format,
            state=state,
            runtime=runtime,
        )

    # --- middleware around it -----------------------------------------------------------------------------------------

    def _around(self, middleware: Any, handler: Any, commands: Commands) -> Callable[[Any], ModelResponse[Any]]:
        if not overrides(middleware, "wrap_model_call"):

            def refused(_: Any) -> ModelResponse[Any]:
                raise AsyncOnlyError(
                    f"Middleware {middleware.name!r} has only `awrap_model_call`, which cannot run under invoke() or stream(); "
                    f"use ainvoke() or astream(), or give it `wrap_model_call` too"
                )

            return refused
        inner = _started_anew(handler, commands)
        return lambda request: _response(middleware.wrap_model_call(request, inner), commands)

    def _aaround(self, middleware: Any, handler: Any, commands: Commands) -> Callable[[Any], Any]:
        inner = _started_anew_later(handler, commands)

        async def around(request: Any) -> ModelResponse[Any]:
            if overrides(middleware, "awrap_model_call"):
                found = await middleware.awrap_model_call(request, inner)
            else:
                found = await in_own_thread(middleware.wrap_model_call, request, sync_as_async(inner))
            return _response(found, commands)

        return around

    # --- the call itself ----------------------------------------------------------------------------------------------

    def _called(self, request: ModelRequest[Any]) -> ModelResponse[Any]:
        bound, strategy, shown = self._bound(request)

        def call() -> Any:
            return _identified(bound.invoke(shown), request.state)

        journal, effect = self._recorded()
        message = call() if effect is None else effects.perform(journal, effect, call)
        return self._read(message, strategy)

    async def _acalled(self, request: ModelRequest[Any]) -> ModelResponse[Any]:
        bound, strategy, shown = self._bound(request)

        async def call() -> Any:
            return _identified(await bound.ainvoke(shown), request.state)

        journal, effect = self._recorded()
        message = await call() if effect is None else await effects.run_async(journal, effect, call)
        return self._read(message, strategy)

    def _recorded(self) -> tuple[Any, Effect | None]:
        """Return the effect that the call is recorded as: where middleware around it may stop, a draft must not change."""
        journal: Journal | None = runtimes.attempt.get()
        if not self.wrappers or journal is None or journal.recorder is None:
            return None, None
        with journal.lock:
            number = journal.notes["model calls"] = journal.notes.get("model calls", -1) + 1
        key = f"model:{number}"
        return journal, Effect("model", None, "", key, number, {}, "rerun", ids.hashed(key, journal.task.task_id))

    def _bound(self, request: ModelRequest[Any]) -> tuple[Any, Any, list[BaseMessage]]:
        """Return the model with its tools, the strategy of a structured result, and what the model is shown."""
        strategy = as_strategy(request.response_format)
        if isinstance(strategy, AutoStrategy):
            strategy = strategy.chosen(request.model, with_tools=bool(request.tools))
        tools, settings, choice = list(request.tools), dict(request.model_settings), request.tool_choice
        self._check_known(tools, strategy)
        if isinstance(strategy, ToolStrategy):
            tools += [spec.tool() for spec in strategy.schema_specs]
            choice = choice or "any"
        elif isinstance(strategy, ProviderStrategy):
            settings = strategy.model_settings() | settings
        if tools or isinstance(strategy, ProviderStrategy):  # providers translate a result's schema in `bind_tools`
            chosen = {} if choice is None else {"tool_choice": choice}
            bound: Any = request.model.bind_tools(tools, **chosen, **settings)
        else:
            bound = request.model.bind(**settings) if settings else request.model
        system = [] if request.system_message is None else [request.system_message]
        return bound, strategy, [*system, *history.shown(request.messages)]

    def _check_known(self, tools: Sequence[Any], strategy: Any) -> None:
        """Refuse tools and results that the agent could not run or recognise when the model calls them.

        Raises `ConfigError`.
        """
        known = {tool.name for tool in self.tools if isinstance(tool, BaseTool)}
        unknown = sorted({t.name for t in tools if isinstance(t, BaseTool)} - known)
        if unknown and not self.runs_others:
            raise ConfigError(
                f"Middleware added tools that the agent does not have and could not run. Unknown tools: {unknown}; pass them "
                f"to create_agent as `tools`, or give a middleware `wrap_tool_call` that runs them"
            )
        if not isinstance(strategy, ToolStrategy):
            return
        undeclared = sorted({spec.name for spec in strategy.schema_specs} - structured_names(self.response_format))
        if undeclared:
            raise ConfigError(
                f"Middleware asked for results {undeclared}, which wasn't declared in the agent's `response_format`, so they "
                f"would not be recognised; give create_agent a union that has them"
            )

    def _read(self, message: Any, strategy: Any) -> ModelResponse[Any]:
        """Return the response, its message ready to be stored under the agent's name."""
        if self.name is not None:
            message.name = self.name
        if isinstance(strategy, ToolStrategy):
            found = strategy.read(message)
            if found is not None:
                value, told = found
                return ModelResponse([message, *told], value[0] if value else None)
        elif isinstance(strategy, ProviderStrategy) and not message.tool_calls and not message.invalid_tool_calls:
            return ModelResponse([message], strategy.read(message))
        return ModelResponse([message])

    def _updates(self, response: ModelResponse[Any], commands: Commands, state: Any, added: list[Any]) -> list[Any]:
        """Return what is written. `added` are messages that middleware put into the request's own list: they are kept."""
        # Middleware may have made up or changed a message after the model: its calls need ids of their own as well.
        given = [_identified(m) if isinstance(m, AIMessage) else m for m in response.result]
        update: dict[str, Any] = {"messages": [*remarks(state), *added, *given]}
        if (repaired := history.repaired(state["messages"])) is not None:
            update["messages"] = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *repaired, *update["messages"]]
        if state.get("hitl_remarks"):
            update["hitl_remarks"] = Overwrite([])
        if state.get("hitl_edited_tool_calls"):
            update["hitl_edited_tool_calls"] = {}  # of another turn, whose calls may have had the same ids
        if response.structured_response is not None:
            update["structured_response"] = response.structured_response
        elif self.response_format is not None:
            update["structured_response"] = None  # that of an earlier turn is not this one's
        return [Command(update=update), *(Command(update=c.update) for c in commands if c.update is not None)]


def _started_anew(handler: Any, commands: Commands) -> Callable[[Any], Any]:
    """Return a handler which drops what an earlier call of it, or one that failed, would have written beside its answer."""

    def called(request: Any) -> Any:
        commands.clear()
        try:
            return handler(request)
        except BaseException:
            commands.clear()
            raise

    return called


def _started_anew_later(handler: Any, commands: Commands) -> Callable[[Any], Any]:
    async def called(request: Any) -> Any:
        commands.clear()
        try:
            return await handler(request)
        except BaseException:
            commands.clear()
            raise

    return called


def remarks(state: Any) -> list[HumanMessage]:
    """Return what people remarked beside their decisions of the turn before, as their words."""
    found = state.get("hitl_remarks") or ()
    return [HumanMessage(content=text, id=ids.hashed("remark", question)) for question, text in found]


def _response(found: Any, commands: Commands) -> ModelResponse[Any]:
    if isinstance(found, ExtendedModelResponse):
        if found.command is not None:
            for what in ("goto", "graph"):
                if getattr(found.command, what):
                    raise NotImplementedError(
                        f"Command {what} is not yet supported in wrap_model_call; return an update"
                    )
            if found.command.has_resume:
                raise NotImplementedError("Command resume is not yet supported in wrap_model_call; return an update")
            commands.append(found.command)
        found = found.model_response
    if isinstance(found, AIMessage):
        return ModelResponse([found])
    if isinstance(found, ModelResponse):
        return found
    raise UsageError(
        f"A wrap_model_call hook returned a {type(found).__name__}; return what handler(request) gives, or an AIMessage"
    )


def _identified(message: Any, state: Any = None) -> AIMessage:
    """Return the model's message as a whole one, its calls with ids that no two share.

    An id that a message of the state has already is not its own: it would take that message's place, with the answers.
    """
    if not isinstance(message, AIMessage):
        raise UsageError(f"The model returned a {type(message).__name__}; a chat model returns an AIMessage")
    if isinstance(message, AIMessageChunk):
        message = message_chunk_to_message(message)
    seen: set[str] = set()
    calls = [_with_own_id(call, seen) for call in message.tool_calls]
    broken = [call if call["id"] is None else _with_own_id(call, seen) for call in message.invalid_tool_calls]
    changes: dict[str, Any] = {} if calls == message.tool_calls else {"tool_calls": calls}
    if broken != message.invalid_tool_calls:
        changes["invalid_tool_calls"] = broken
    if not _is_text(message.id) or (state is not None and history.has_id(state.get("messages", ()), message.id)):
        changes["id"] = str(uuid.uuid4())
    whole: AIMessage = message.model_copy(update=changes)
    return whole  # never the model's own object, which it may give again


def _with_own_id(call: Any, seen: set[str]) -> Any:
    call_id = call["id"] if _is_text(call["id"]) else f"call_{uuid.uuid4().hex}"
    while call_id in seen:
        call_id = f"{call_id}_again"
    seen.add(call_id)
    return call if call_id == call["id"] else {**call, "id": call_id}


def _is_text(given: str | None) -> bool:
    """Whether an id is one that stores and providers take: half a surrogate pair is a character to JSON alone."""
    return bool(given) and not any("\ud800" <= each <= "\udfff" for each in given or "")
