"""`ToolNode`: runs the tool calls of a message and answers each of them."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as make_tool

from waitpoint import runtime as runtimes
from waitpoint.agents import gate, history
from waitpoint.agents.passing import must_pass
from waitpoint.agents.tool_node import execute, failures
from waitpoint.agents.tool_node.bridge import aat_home, at_home, in_own_thread, sync_as_async
from waitpoint.agents.tool_node.failures import HandleErrors, invalid_only
from waitpoint.agents.tool_node.request import AsyncToolCallWrapper, ToolCallRequest, ToolCallWrapper, ToolRuntime
from waitpoint.agents.tool_node.results import check_answers
from waitpoint.errors import ConfigError, GraphBubbleUp, GraphInterrupt, PermitUsedError, UsageError
from waitpoint.interrupts.journal import Journal
from waitpoint.records import Command, Send
from waitpoint.stream.tools import delta

TOOL_CALL = "tool_call"
WITH_CONTEXT = "tool_call_with_context"


class ToolNode(Runnable[Any, Any]):
    """Runs tool calls, several at once, and returns a `ToolMessage` for each in the order of the calls.

    As a node it takes a state with `messages` (the calls of the last AI message are run), a list of messages, a list of
    tool calls, or one call that was sent to it. `handle_tool_errors` says which errors the model is told of: by default
    those of its own arguments; True: all; a text, exception types, or a function that gives the text; False: none.
    `wrap_tool_call` goes around each call.
    """

    def __init__(
        self,
        tools: Sequence[BaseTool | Callable[..., Any]],
        *,
        name: str = "tools",
        tags: list[str] | None = None,
        handle_tool_errors: HandleErrors = invalid_only,
        messages_key: str = "messages",
        wrap_tool_call: ToolCallWrapper | None = None,
        awrap_tool_call: AsyncToolCallWrapper | None = None,
    ) -> None:
        self.name = name
        self.tags = tags or []
        self.messages_key = messages_key
        self.handle_errors = handle_tool_errors
        self.wrapper = wrap_tool_call
        self.awrapper = awrap_tool_call
        self._tools = _by_name(tools)

    @property
    def tools_by_name(self) -> dict[str, BaseTool]:
        """The tools."""
        return self._tools

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        """Run the calls and return their answers in the form of the input."""
        calls, state, shape = self._read(input)
        requests = [self._request(call, state, config) for call in calls]
        if len(requests) == 1:
            return _shaped(self._one(requests[0], config), shape, self.messages_key)
        with ThreadPoolExecutor(max_workers=min(32, len(requests) or 1)) as pool:
            copies = [contextvars.copy_context() for _ in requests]
            work = [pool.submit(c.run, self._caught, r, config) for c, r in zip(copies, requests, strict=True)]
            found = [w.result() for w in work]
        return _shaped(_joined(found), shape, self.messages_key)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        """Do what `invoke` does, from an event loop."""
        calls, state, shape = self._read(input)
        requests = [self._request(call, state, config) for call in calls]
        if len(requests) == 1:
            return _shaped(await self._aone(requests[0], config), shape, self.messages_key)
        found = await asyncio.gather(*(self._acaught(request, config) for request in requests))
        return _shaped(_joined(found), shape, self.messages_key)

    # --- one call -----------------------------------------------------------------------------------------------------

    def _one(self, request: ToolCallRequest, config: Any) -> list[Any]:
        def handler(asked: ToolCallRequest) -> Any:
            return self._execute(asked, config)

        if self.wrapper is None and self.awrapper is not None:
            raise UsageError(
                f"ToolNode {self.name!r} has only an async wrapper around its calls, which cannot run under invoke() or "
                f"stream(); use ainvoke() or astream(), or give it `wrap_tool_call` too"
            )
        try:
            result = handler(request) if self.wrapper is None else self.wrapper(request, at_home(handler))
        except Exception as error:  # noqa: BLE001 - a wrapper's error is handled as the tool's own is
            result = self._answered(error, request.tool_call)
        return self._finished(result, request)

    async def _aone(self, request: ToolCallRequest, config: Any) -> list[Any]:
        async def handler(asked: ToolCallRequest) -> Any:
            return await self._aexecute(asked, config)

        try:
            if self.awrapper is not None:
                result = await self.awrapper(request, aat_home(handler))
            elif self.wrapper is not None:
                result = await in_own_thread(self.wrapper, request, sync_as_async(aat_home(handler)))
            else:
                result = await handler(request)
        except Exception as error:  # noqa: BLE001 - as above
            result = self._answered(error, request.tool_call)
        return self._finished(result, request)

    def _caught(self, request: ToolCallRequest, config: Any) -> Any:
        try:
            return self._one(request, config)
        except (Exception, GraphBubbleUp) as error:  # noqa: BLE001 - all calls come to their end or their question first
            return error

    async def _acaught(self, request: ToolCallRequest, config: Any) -> Any:
        try:
            return await self._aone(request, config)
        except (Exception, GraphBubbleUp) as error:  # noqa: BLE001 - as above
            return error

    def _execute(self, request: ToolCallRequest, config: Any) -> Any:
        tool = self._tool(request)
        if isinstance(tool, ToolMessage):
            return tool
        try:
            while True:
                admitted = gate.admit(request, tool)
                if isinstance(admitted, ToolMessage):
                    return admitted
                try:
                    return execute.run(admitted, tool, config)
                except PermitUsedError:  # by another call at the same moment: this one needs a decision of its own
                    continue
        except Exception as error:  # noqa: BLE001 - what is handled is decided in one place
            return self._answered(error, request.tool_call)

    async def _aexecute(self, request: ToolCallRequest, config: Any) -> Any:
        tool = self._tool(request)
        if isinstance(tool, ToolMessage):
            return tool
        try:
            while True:
                admitted = await gate.aadmit(request, tool)
                if isinstance(admitted, ToolMessage):
                    return admitted
                try:
                    return await execute.arun(admitted, tool, config)
                except PermitUsedError:  # by another call at the same moment: this one needs a decision of its own
                    continue
        except Exception as error:  # noqa: BLE001 - as above
            return self._answered(error, request.tool_call)

    def _answered(self, error: Exception, call: ToolCall) -> ToolMessage:
        if must_pass(error):
            raise error
        return failures.answer_to(error, call, self.handle_errors)

    def _tool(self, request: ToolCallRequest) -> BaseTool | ToolMessage:
        """Return the tool that a request means, or the answer that there is none."""
        name, tool = request.tool_call["name"], request.tool
        known = self._tools.get(name)
        if tool is None:
            if known is None:
                listed = ", ".join(self._tools)
                return failures.error_message(
                    failures.INVALID_TOOL_NAME.format(name=name, known=listed), request.tool_call
                )
            return known
        if tool.name != name and known is not None:
            raise UsageError(
                f"A request names tool {name!r} and carries tool {tool.name!r}, so it is not clear which is meant; override "
                f"`tool` together with `tool_call`"
            )
        return tool

    def _finished(self, result: Any, request: ToolCallRequest) -> list[Any]:
        """Return what a call writes: its answer, checked, and what a person remarked beside the decision."""
        parts = result if isinstance(result, list) else [result]
        check_answers(parts, request.tool_call, self.messages_key)
        journal: Journal | None = runtimes.attempt.get()
        remarks = {} if journal is None else journal.notes.get("remarks", {})
        remark = remarks.get(request.tool_call["id"])
        return [*parts, Command(update={"hitl_remarks": [list(remark)]})] if remark else parts

    # --- what comes in ------------------------------------------------------------------------------------------------

    def _read(self, given: Any) -> tuple[list[ToolCall], Any, str]:
        """Return the calls, the state, and the form that the result has: "list" or "dict"."""
        scope = runtimes.current.get()
        if isinstance(given, Mapping) and given.get("__type") == WITH_CONTEXT:
            return [given["tool_call"]], given.get("state", {} if scope is None else scope.values), "dict"
        if isinstance(given, Mapping) and given.get("__type") == TOOL_CALL and scope is not None:
            state = scope.values
            return [self._named(given, state[self.messages_key])], state, "dict"
        if isinstance(given, list):
            if given and isinstance(given[-1], Mapping) and given[-1].get("type") == TOOL_CALL:
                return given, {} if scope is None else scope.values, "dict"
            return self._calls(given), given, "list"
        messages = (
            given.get(self.messages_key) if isinstance(given, Mapping) else getattr(given, self.messages_key, None)
        )
        if messages is None:
            raise ConfigError(
                f"ToolNode {self.name!r} got a {type(given).__name__} without {self.messages_key!r}; give it a state that has "
                f"messages, a list of messages, or a list of tool calls"
            )
        return self._calls(messages), given, "dict"

    def _named(self, given: Mapping[str, Any], messages: Sequence[AnyMessage]) -> ToolCall:
        """Return the call that was sent here by its name."""
        for message in reversed(messages):
            if isinstance(message, AIMessage) and message.id == given["message_id"]:
                for call in message.tool_calls:
                    if call["id"] == given["tool_call_id"]:
                        return call
        raise ConfigError(
            f"ToolNode {self.name!r} was to run call {given['tool_call_id']!r} of message {given['message_id']!r}, and the "
            f"state has it no more; it was removed after the call was due - update the state with `as_node` to say what comes "
            f"next"
        )

    def _calls(self, messages: Sequence[AnyMessage]) -> list[ToolCall]:
        last, _ = history.last_call(messages)
        if last is None:
            raise ConfigError(
                f"ToolNode {self.name!r} found no AIMessage, so there are no calls to run; call a model first"
            )
        return history.pending_calls(messages)

    def _request(self, call: ToolCall, state: Any, config: Any) -> ToolCallRequest:
        tool = self._tools.get(call["name"])
        return ToolCallRequest(call, tool, state, tool_runtime(call, state, config, list(self._tools.values())))


def tool_runtime(call: ToolCall, state: Any, config: Any, tools: Iterable[BaseTool]) -> ToolRuntime[Any, Any]:
    """Return what a tool can reach in the node that runs here; outside of a graph there is little."""
    scope = runtimes.current.get()
    found = runtimes.Runtime[Any]() if scope is None else scope.runtime
    runtime = ToolRuntime[Any, Any](
        state=state,
        context=found.context,
        config=config or ({} if scope is None else scope.config),
        stream_writer=found.stream_writer,
        tool_call_id=call["id"],
        store=found.store,
        tools=list(tools),
        execution_info=found.execution_info,
    )
    if scope is not None and "tools" in scope.run.modes:
        runtime.emit = lambda part: scope.show("tools", delta(call["id"], part))
    return runtime


def _by_name(tools: Sequence[BaseTool | Callable[..., Any]]) -> dict[str, BaseTool]:
    found: dict[str, BaseTool] = {}
    for given in tools:
        tool = given if isinstance(given, BaseTool) else make_tool(given)
        if found.get(tool.name, tool) is not tool:
            raise ConfigError(f"Two tools are called {tool.name!r}, and a call could mean either; rename one")
        found[tool.name] = tool
    return found


def _joined(found: Sequence[Any]) -> list[Any]:
    """Return all results, or stop the node: errors come before questions, and all questions come together."""
    for each in found:
        if isinstance(each, BaseException) and not isinstance(each, GraphInterrupt):
            raise each
    pauses = [each for each in found if isinstance(each, GraphInterrupt)]
    if pauses:
        raise GraphInterrupt([i for pause in pauses for i in pause.args[0]])
    return [part for each in found for part in each]


def _shaped(parts: list[Any], shape: str, key: str) -> Any:
    commands = [p for p in parts if isinstance(p, Command)]
    if not commands:
        return parts if shape == "list" else {key: parts}
    merged = _merged(commands)
    kept = [p for p in parts if not isinstance(p, Command) or any(p is c for c in merged)]
    out: list[Any] = []
    for is_command, group in itertools.groupby(kept, lambda p: isinstance(p, Command)):
        together = list(group)
        out += together if is_command else [together if shape == "list" else {key: together}]
    return [*out, *(c for c in merged if not any(c is p for p in kept))]


def _merged(commands: list[Command[Any]]) -> list[Command[Any]]:
    """Join commands to the parent graph that only send, so that the parent gets one."""
    sent = {id(c): c.goto for c in commands if c.graph == Command.PARENT and isinstance(c.goto, list | tuple)}
    sends = [c for c in commands if id(c) in sent and all(isinstance(g, Send) for g in sent[id(c)])]
    if len(sends) < 2:
        return commands
    joined: Command[Any] = Command(graph=Command.PARENT, goto=[g for c in sends for g in sent[id(c)]])
    return [*(c for c in commands if c not in sends), joined]


def tools_condition(state: Any, messages_key: str = "messages") -> str:
    """Route to "tools" if the last message calls any, else to the end."""
    messages = (
        state
        if isinstance(state, list)
        else state.get(messages_key)
        if isinstance(state, Mapping)
        else getattr(state, messages_key)
    )
    if not messages:
        raise ConfigError(f"tools_condition found no messages under {messages_key!r}; call a model first")
    return "tools" if getattr(messages[-1], "tool_calls", None) else "__end__"
