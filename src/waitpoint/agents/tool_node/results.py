"""What tools return: messages and commands as they are, everything else as the text that langchain-core makes of it."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from langchain_core.messages import BaseMessage, RemoveMessage, ToolCall, ToolMessage, convert_to_messages
from langchain_core.messages.tool import ToolOutputMixin
from langchain_core.tools import BaseTool

from waitpoint.agents.errors import UnansweredCallError
from waitpoint.graph.message import REMOVE_ALL_MESSAGES
from waitpoint.records import Command

RESULT_UNKNOWN: Final = "The tool was executed; what it returned is not known."


class ToolCommand(Command[Any], ToolOutputMixin):
    """A command on its way out of a tool; langchain-core would make a text of any other."""


def passing(tool: BaseTool) -> BaseTool:
    """Return a tool whose commands come out as such. It runs the body of the given one, with what that one holds."""
    other = tool.model_copy()
    vars(other)["_run"] = _marking(tool._run)  # noqa: SLF001 - what `run` calls, before it makes a text of the result
    vars(other)["_arun"] = _marking_later(tool._arun)  # noqa: SLF001
    return other


def _marking(body: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(body)
    def run(*args: Any, **options: Any) -> Any:
        return _marked(body(*args, **options))

    return run


def _marking_later(body: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(body)
    async def run(*args: Any, **options: Any) -> Any:
        return _marked(await body(*args, **options))

    return run


def _marked(result: Any) -> Any:
    if isinstance(result, list):
        return [_marked(part) for part in result] if any(isinstance(part, Command) for part in result) else result
    if isinstance(result, Command) and not isinstance(result, ToolCommand):
        return ToolCommand(graph=result.graph, update=result.update, resume=result.resume, goto=result.goto)
    return result


def normal(result: Any, call: ToolCall) -> Any:
    """Return what a tool gave as messages and commands, the answer to its call with the tool's name.

    A list of texts is no content that all providers take, and becomes JSON like any other list.
    """
    if isinstance(result, list) and _is_answer(result):
        return [normal(part, call) for part in result]
    if isinstance(result, Command):
        command: Command[Any] = Command(
            graph=result.graph, update=result.update, resume=result.resume, goto=result.goto
        )
        return _named(command, call)
    if isinstance(result, ToolMessage):
        if isinstance(result.content, list) and any(isinstance(part, str) for part in result.content):
            return result.model_copy(update={"content": json.dumps(result.content, ensure_ascii=False, default=str)})
        return result
    return ToolMessage(content=str(result), name=call["name"], tool_call_id=call["id"] or "")


def settled(result: Any, call: ToolCall) -> Any:
    """Return a result on record as an answer: of a call that was in doubt, a probe or a person told it in plain values."""
    if _is_answer(result):
        return result
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    text = RESULT_UNKNOWN if result is None else text
    return ToolMessage(content=text, name=call["name"], tool_call_id=call["id"] or "")


def _is_answer(result: Any) -> bool:
    if isinstance(result, list):
        return any(isinstance(part, ToolMessage | Command) for part in result)
    return isinstance(result, ToolMessage | Command)


def _named(command: Command[Any], call: ToolCall) -> Command[Any]:
    def named(message: Any) -> Any:
        if isinstance(message, ToolMessage) and message.tool_call_id == call["id"] and message.name is None:
            return message.model_copy(update={"name": call["name"]})
        return message

    if isinstance(command.update, list):
        return replace(command, update=[named(part) for part in command.update])
    if not isinstance(command.update, Mapping):
        return command
    update = {
        key: [named(part) for part in value] if isinstance(value, list) else value
        for key, value in command.update.items()
    }
    return replace(command, update=update)


def check_answers(parts: list[Any], call: ToolCall, key: str) -> None:
    """Refuse a result that does not answer the call, once: no model could go on from that history.

    Raises `UnansweredCallError`.
    """
    for part in parts:
        if not isinstance(part, BaseMessage | Command):
            raise UnansweredCallError(
                f"A wrap_tool_call hook around {call['name']!r} returned a {type(part).__name__}, which answers no call; "
                f"return what handler(request) gives, a ToolMessage or a Command"
            )
    if len(parts) == 1 and not isinstance(parts[0], Command):
        return
    if any(isinstance(part, Command) and (part.graph is not None or part.update is None) for part in parts):
        return  # another graph or node takes over; a model that is called after all is told that there is no result
    written = [message for part in parts for message in _messages(part, key)]
    if any(isinstance(m, RemoveMessage) and m.id == REMOVE_ALL_MESSAGES for m in written):
        return  # the call is gone too
    answers = [m for m in written if isinstance(m, ToolMessage) and m.tool_call_id == call["id"]]
    if not answers:
        raise UnansweredCallError(
            f"Tool {call['name']!r} returned no answer to its call, and every call needs one; put "
            f"ToolMessage(..., tool_call_id={call['id']!r}) into the update's {key!r}, or beside the Command"
        )
    if len(answers) > 1:
        raise UnansweredCallError(
            f"Tool {call['name']!r} returned {len(answers)} answers to its call {call['id']!r}, and a call has exactly one; "
            f"join them"
        )


def _messages(part: Any, key: str) -> list[Any]:
    if isinstance(part, ToolMessage):
        return [part]
    if not isinstance(part, Command) or part.update is None:
        return []
    found = part.update.get(key, []) if isinstance(part.update, Mapping) else part.update
    return convert_to_messages(found if isinstance(found, list) else [found])
