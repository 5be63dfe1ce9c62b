"""Calling a tool that the gate let through: as a recorded effect, with what it wants injected."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, Tool
from pydantic import ValidationError

from waitpoint import runtime as runtimes
from waitpoint.agents import decisions
from waitpoint.agents.gate import Admission, Trail
from waitpoint.agents.tool_node.failures import invalid_arguments, without_inputs
from waitpoint.agents.tool_node.inject import fill, injected_of
from waitpoint.agents.tool_node.request import ToolCallRequest
from waitpoint.agents.tool_node.results import normal, passing, settled
from waitpoint.interrupts import effects
from waitpoint.interrupts.journal import Journal
from waitpoint.records import Command
from waitpoint.stream.tools import announce

_IN_A_THREAD: Final = (BaseTool._arun, StructuredTool._arun, Tool._arun)  # noqa: SLF001
"""The async forms of tools that have only a plain one."""


def run(admitted: Admission, tool: BaseTool, config: Any) -> Any:
    """Call the tool and return its message or command, or what is on record of this call."""
    request = _with_key(admitted)

    def called() -> Any:
        return normal(passing(tool).invoke(_input(tool, request), config), request.tool_call)

    if admitted.effect is None:
        return _told(admitted, _explained(tool, request, called))
    journal: Journal = runtimes.attempt.get()
    effect = admitted.effect
    trail = Trail.of(journal, request.tool_call, effect.key)
    with trail.going_on(may_run_again=effect.in_doubt == "rerun"):
        result = _explained(tool, request, lambda: effects.perform(journal, effect, called))
        result = settled(result, request.tool_call)
    return _told(admitted, result)


async def arun(admitted: Admission, tool: BaseTool, config: Any) -> Any:
    """Do what `run` does, from an event loop."""
    request = _with_key(admitted)

    async def called() -> Any:
        return normal(await _awaited(passing(tool), _input(tool, request), config), request.tool_call)

    try:
        if admitted.effect is None:
            return _told(admitted, await called())
        journal: Journal = runtimes.attempt.get()
        effect = admitted.effect
        trail = Trail.of(journal, request.tool_call, effect.key)
        with trail.going_on(may_run_again=effect.in_doubt == "rerun"):
            result = await effects.run_async(journal, effect, called)
            result = settled(result, request.tool_call)
    except ValidationError as error:
        raise _explanation(tool, request, error) from None
    return _told(admitted, result)


async def _awaited(tool: BaseTool, given: dict[str, Any], config: Any) -> Any:
    """Call a tool; where its function runs in a thread, a cancellation waits for what it did, so that it is recorded."""
    if getattr(tool, "coroutine", None) is not None or type(tool)._arun not in _IN_A_THREAD:  # noqa: SLF001
        return await tool.ainvoke(given, config)
    work = asyncio.ensure_future(tool.ainvoke(given, config))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        journal: Journal | None = runtimes.attempt.get()
        if journal is None or journal.sealed:
            work.cancel()
            raise
        await asyncio.wait([work])
        return work.result()


def _with_key(admitted: Admission) -> ToolCallRequest:
    if admitted.effect is None:
        return admitted.request
    request = admitted.request
    return replace(request, runtime=replace(request.runtime, idempotency_key=admitted.effect.idempotency_key))


def _input(tool: BaseTool, request: ToolCallRequest) -> dict[str, Any]:
    call, runtime = request.tool_call, request.runtime
    if runtime.state is not request.state:  # middleware gave the tool another state
        runtime = replace(runtime, state=request.state)
    announce(call["id"], call["args"])
    return {**call, "args": fill(tool, call["args"], request.state, runtime), "type": "tool_call"}


def _explained(tool: BaseTool, request: ToolCallRequest, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except ValidationError as error:
        raise _explanation(tool, request, error) from None


def _explanation(tool: BaseTool, request: ToolCallRequest, error: ValidationError) -> Exception:
    """Return the model's mistake as such; an error about what the model does not set as one that keeps it to itself.

    Middleware may tell the model of either.
    """
    journal: Journal | None = runtimes.attempt.get()
    if journal is not None and journal.misfit is not None:
        return error
    if not _is_of_arguments(tool, error):
        return error
    call = request.tool_call
    found = invalid_arguments(call["name"], error, call["args"], injected_of(tool).hidden)
    return found or without_inputs(error, error.title)


def _is_of_arguments(tool: BaseTool, error: ValidationError) -> bool:
    """Whether a validation error is about this tool's arguments, not about something in its body."""
    return error.title == getattr(tool.args_schema, "__name__", tool.name)


def _told(admitted: Admission, result: Any) -> Any:
    """Put the edit notice before the result of a call that a person changed at the gate."""
    if admitted.edited is None:
        return result
    return annotated(result, admitted.request.tool_call["id"] or "", admitted.edited, admitted.notice)


def annotated(result: Any, call_id: str, executed: Mapping[str, Any], notice: str | None) -> Any:
    """Put the edit notice before the answer to this call, wherever in the result it is; leave all else as it is."""
    if isinstance(result, ToolMessage):
        return decisions.with_notice(result, executed, notice) if result.tool_call_id == call_id else result
    if isinstance(result, list):
        return [annotated(part, call_id, executed, notice) for part in result]
    if isinstance(result, Command) and isinstance(result.update, Mapping):
        update = {
            key: [annotated(m, call_id, executed, notice) if isinstance(m, ToolMessage) else m for m in value]
            if isinstance(value, list)
            else value
            for key, value in result.update.items()
        }
        return replace(result, update=update)
    return result
