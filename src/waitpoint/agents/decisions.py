"""What a decision comes to: the texts that a reviewer and the model read, and the verdict of a policy's predicate."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, NamedTuple

from langchain_core.messages import ToolCall, ToolMessage
from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from waitpoint.agents.policy import Policy
from waitpoint.agents.tool_node.failures import without_inputs

DEFAULT_PREFIX: Final = "Tool execution requires approval"
EDIT_NOTICE: Final = (
    "Note: a human reviewer replaced this tool call before it ran. The call recorded in your message is the one you produced, "
    "not the one that executed. This was intentional and authorized. Do not re-issue your original call."
)
REJECTED: Final = (
    "User rejected the tool call for `{tool}` with id {id}. The tool was not executed. Do not retry this tool call unless the "
    "user explicitly requests it."
)
DENIED: Final = (
    "Tool `{tool}` may not be used here: its calls are refused without asking anyone. The tool was not executed. Do not retry "
    "this tool call."
)

WITHDRAWN: Final = "The call of `{tool}` was not run, because the question about it was withdrawn{reason}"
WITHDRAWAL: Final = "withdrawn"
DECIDED: Final = "hitl_interrupt_decision"
"""Marks an answer that took the place of a result."""


class Raised(NamedTuple):
    """What came of a predicate that raised."""

    error: Exception


class Verdict(NamedTuple):
    """What a policy says of one call, and why if that is not plain."""

    asks: bool
    why: str = ""


def apart(call: ToolCall) -> ToolCall:
    """Return a call with arguments of its own, for those who may look at them or use them up, and not change the call."""
    return {**call, "args": _copied(call["args"])}


def _copied(value: Any) -> Any:
    if type(value) is dict:
        return {key: _copied(part) for key, part in value.items()}
    return [_copied(part) for part in value] if type(value) is list else value


def verdict(policy: Policy, request: Any) -> Generator[Callable[[], Any], Any, Verdict]:
    """Evaluate `when`: only an explicit False lets a call pass; anything unclear is asked about."""
    when = policy.when
    if when is None:
        return Verdict(asks=True)

    def evaluated() -> Any:
        try:
            return when(request.override(tool_call=apart(request.tool_call)))
        except Exception as error:  # noqa: BLE001 - a predicate that fails must not open the gate
            return Raised(error)

    found = yield evaluated
    if isinstance(found, Raised):
        return Verdict(asks=True, why=f"`when` raised {type(found.error).__name__}")
    if found is False:
        return Verdict(asks=False)
    return Verdict(asks=True, why="" if found is True else f"`when` returned {type(found).__name__}, not True or False")


def described(
    given: str | Callable[..., Any] | None, prefix: str, call: ToolCall, state: Any, runtime: Any
) -> Generator[Callable[[], Any], Any, str]:
    """Return what the question says: the text or function of the config, or prefix, tool and arguments."""
    if given is None:
        shown = json.dumps(call["args"], indent=2, ensure_ascii=False, default=str)
        return f"{prefix}\n\nTool: {call['name']}\nArgs: {shown}"
    if isinstance(given, str):
        return given
    found = yield lambda: given(apart(call), state, runtime)
    if isinstance(found, Raised):
        raise found.error
    return str(found)


def answer(call: ToolCall, decision: Mapping[str, Any]) -> ToolMessage:
    """Return what takes the place of a result: the person's words, as an error (reject) or as the result (respond)."""
    kind, text = decision["type"], decision.get("message")
    if text is None:
        text = REJECTED.format(tool=call["name"], id=call["id"])
    return ToolMessage(
        content=text,
        name=call["name"],
        tool_call_id=call["id"] or "",
        status="success" if kind == "respond" else "error",
        additional_kwargs={} if kind == WITHDRAWAL else {"lc_source": DECIDED, "lc_data": {"decision": kind}},
    )


def withdrawal(tool: str, reason: str) -> dict[str, str]:
    """Return what stands for a decision where the question was withdrawn: nobody allowed the call, so it is not run."""
    return {"type": WITHDRAWAL, "message": WITHDRAWN.format(tool=tool, reason=f": {reason}" if reason else "")}


def with_notice(message: ToolMessage, executed: Mapping[str, Any], notice: str | None) -> ToolMessage:
    """Return a result that tells the model first that a person changed the call. Never adds the notice twice.

    What a person said in a result's place stays as it is: nothing was executed.
    """
    if notice is None or message.additional_kwargs.get("lc_source") == DECIDED:
        return message
    args = json.dumps(executed["args"], ensure_ascii=False, separators=(",", ":"), default=str)
    told = f"{notice} Executed instead: {executed['name']} with arguments {args}."
    content: Any = message.content
    if isinstance(content, str):
        if content.startswith(told):
            return message
        content = f"{told}\n\nTool response:\n{content}" if content else told
    else:
        first = content[0] if content else {}
        if str(first.get("text", "") if isinstance(first, dict) else first).startswith(told):
            return message
        text = f"{told}\n\nTool response:" if content else told
        content = [{"type": "text", "text": text} if isinstance(first, dict) else text, *content]
    return message.model_copy(update={"content": content})


def refused_edit(tool: str, problem: Exception) -> ValidationError:
    """Return the error for edited arguments that the tool's own validators refuse, told at their places in the answer."""
    place = ("edit", "edited_action", "args")
    title = f"decision on {tool!r}"
    if isinstance(problem, ValidationError):
        return without_inputs(problem, title, place)
    text = PydanticCustomError("value_error", "{text}", {"text": f"{type(problem).__name__}: {problem}"})
    return ValidationError.from_exception_data(title, [{"type": text, "loc": place, "input": None}], hide_input=True)
