"""Message histories that a strict provider takes: every tool call answered once, right after the message that made it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolCall, ToolMessage

from waitpoint import ids
from waitpoint.agents import settled
from waitpoint.agents.tool_node.failures import error_message
from waitpoint.core.spec import Unfinished

MALFORMED_TRIES: Final = 3
MALFORMED: Final = (
    "Error: the arguments of this call of `{tool}` are malformed or truncated, so it was not run. Call the tool again with "
    "valid JSON."
)
NO_RESULT: Final = "There is no result on record for this call of `{tool}`."
LEFT: Final = {
    "waiting": "The call of `{tool}` was not run: the user went on before it was decided.",
    "due": "The call of `{tool}` was not run: the user went on before that.",
    "failed": "The call of `{tool}` failed and was not tried again: {error}",
    "in_doubt": "The call of `{tool}` was interrupted. It is not known whether it took effect.",
}


def last_call(messages: Sequence[AnyMessage]) -> tuple[AIMessage | None, list[AnyMessage]]:
    """Return the last AI message and what follows it."""
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if isinstance(message, AIMessage):
            return message, list(messages[at + 1 :])
    return None, []


def pending_calls(messages: Sequence[AnyMessage]) -> list[Any]:
    """Return the tool calls of the last AI message that have no answer yet."""
    message, after = last_call(messages)
    if message is None:
        return []
    done = {m.tool_call_id for m in after if isinstance(m, ToolMessage)}
    return [call for call in message.tool_calls if call["id"] not in done]


def may_try_again(messages: Sequence[AnyMessage]) -> bool:
    """Whether the model is to be told that its calls could not be read: not if it has failed at that often in a row."""
    tries = 0
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            continue
        if not isinstance(message, AIMessage) or message.tool_calls or not message.invalid_tool_calls:
            break
        tries += 1
    return 0 < tries < MALFORMED_TRIES


def malformed_answers(message: AIMessage) -> list[ToolMessage]:
    """Return the answers to calls whose arguments could not be read, so that the model may try again."""
    return [
        ToolMessage(
            content=MALFORMED.format(tool=call["name"] or "unknown"),
            name=call["name"],
            tool_call_id=call["id"],
            status="error",
            id=ids.hashed("malformed", message.id or "", call["id"]),
        )
        for call in message.invalid_tool_calls
        if call["id"] is not None
    ]


def repaired(messages: Sequence[AnyMessage]) -> list[AnyMessage] | None:
    """Return a history in which each malformed call is answered, after the other answers; None if each one is already."""
    begun = settled.of(messages).messages
    new = messages[len(begun) :] if begun else messages
    if not any(isinstance(m, AIMessage) and m.invalid_tool_calls for m in new):
        return None
    answered = {m.tool_call_id for m in new if isinstance(m, ToolMessage)}
    out: list[AnyMessage] = []
    due: list[ToolMessage] = []
    for message in new:
        if due and not isinstance(message, ToolMessage):
            out, due = [*out, *due], []
        out.append(message)
        if isinstance(message, AIMessage) and message.invalid_tool_calls:
            due = [answer for answer in malformed_answers(message) if answer.tool_call_id not in answered]
    out += due
    return [*begun, *out] if len(out) > len(new) else None


def shown(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return a history as the model is shown it."""
    begun = settled.of(messages)
    return [*begun.shown, *map(readable, messages[len(begun.messages) :])]


def has_id(messages: Sequence[Any], message_id: str | None) -> bool:
    """Whether a message of a history has this id."""
    begun = settled.of(messages)
    return message_id in begun.ids or any(getattr(m, "id", None) == message_id for m in messages[len(begun.messages) :])


def readable(message: BaseMessage) -> BaseMessage:
    """Return a message as the model is shown it: malformed calls are calls without arguments.

    Not all providers' packages send malformed calls, and an answer without its call is refused.
    """
    if not isinstance(message, AIMessage) or not message.invalid_tool_calls:
        return message
    broken = [
        ToolCall(name=call["name"] or "unknown", args={}, id=call["id"], type="tool_call")
        for call in message.invalid_tool_calls
        if call["id"] is not None
    ]
    return message.model_copy(update={"tool_calls": [*message.tool_calls, *broken], "invalid_tool_calls": []})


def settle(values: dict[str, Any], unfinished: Sequence[Unfinished]) -> dict[str, Any] | None:
    """Answer the calls that new input leaves behind, each by what is known of it."""
    message, _ = last_call(values.get("messages", ()))
    left = pending_calls(values.get("messages", ()))
    if message is None or not left:
        return None
    known = {u.arg["tool_call_id"]: u for u in unfinished if isinstance(u.arg, dict) and "tool_call_id" in u.arg}
    return {"messages": [_left(message, call, known.get(call["id"])) for call in left]}


def _left(message: AIMessage, call: Any, task: Unfinished | None) -> ToolMessage:
    text = LEFT["due" if task is None else task.state]
    # Its kind only: what an error says may be meant for who runs the agent.
    error = "" if task is None else (task.error or "").partition("(")[0]
    answer_id = ids.hashed("left", message.id or "", call["id"] or "")
    return error_message(text.format(tool=call["name"], error=error), call, id=answer_id)


def valid(messages: Iterable[AnyMessage]) -> list[AnyMessage]:
    """Return a history as providers take it; a valid one comes back as it is.

    The answers to a message's calls follow it, in the order of the calls, each once (the last one given counts). A call
    without an answer gets one that says so, an answer without a call is left out.
    """
    given = list(messages)
    begun = settled.of(given)
    end = settled.end_of_valid(given, len(begun.messages))
    if end is not None:
        settled.keep(given, begun, end, readable)
        return given
    stray = _stray_answers(given)
    out: list[AnyMessage] = []
    for at, message in enumerate(given):
        if isinstance(message, ToolMessage):
            continue
        out.append(message)
        if isinstance(message, AIMessage):
            own = _answers_after(given, at)
            for call in (*message.tool_calls, *message.invalid_tool_calls):
                call_id = call["id"]
                if call_id is None:
                    continue
                out.append(own.get(call_id) or stray.pop(call_id, None) or _missing(message, call))
    return out


def _stray_answers(messages: Sequence[AnyMessage]) -> dict[str, Any]:
    """Return the answers that do not follow the message of their call. Ids come again: what answers another is no one's."""
    found: dict[str, Any] = {}
    called: set[str | None] = set()
    for message in messages:
        if isinstance(message, AIMessage):
            called = {call["id"] for call in (*message.tool_calls, *message.invalid_tool_calls)}
        elif isinstance(message, ToolMessage) and message.tool_call_id not in called:
            found[message.tool_call_id] = message
    return found


def _answers_after(messages: Sequence[AnyMessage], at: int) -> dict[str, Any]:
    """Return the answers between a message and the next AI message, by call."""
    found: dict[str, Any] = {}
    for message in messages[at + 1 :]:
        if isinstance(message, AIMessage):
            break
        if isinstance(message, ToolMessage):
            found[message.tool_call_id] = message
    return found


def _missing(message: AIMessage, call: Any) -> ToolMessage:
    text = NO_RESULT if call.get("type") != "invalid_tool_call" else MALFORMED
    return ToolMessage(
        content=text.format(tool=call["name"]),
        name=call["name"],
        tool_call_id=call["id"],
        status="error",
        id=ids.hashed("missing", message.id or "", call["id"]),
    )
