"""Says what a strict provider would refuse in a request, for each wire format and for LangChain's own messages.

Each function returns a list of faults, empty if the request is valid. The rule that matters most is the same
everywhere: right after a message with tool calls comes exactly one result for each call, and no result comes elsewhere.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TOOL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}")
ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")


@dataclass(frozen=True)
class Said:
    """One message, whatever its wire format: who speaks, which calls it makes, which results it brings."""

    role: str  # "system", "user", "assistant" or "results"
    calls: tuple[str, ...] = ()
    results: tuple[str, ...] = ()


def openai(request: Mapping[str, Any]) -> list[str]:
    """Check a request to chat completions, as OpenAI, OpenRouter, Fireworks and Baseten take it."""
    faults = [f for f in [_missing(request, "model")] if f]
    said = []
    for at, message in enumerate(request.get("messages") or []):
        said.append(_openai_said(message))
        faults += [f"messages[{at}]: {fault}" for fault in _openai_message(message)]
    tools = [_function(tool) for tool in request.get("tools") or []]
    return [*faults, *_tools(tools, "parameters", said), *_order(_grouped(said))]


def anthropic(request: Mapping[str, Any]) -> list[str]:
    """Check a request to Anthropic's messages."""
    faults = [f for f in (_missing(request, "model"), _missing(request, "max_tokens")) if f]
    said: list[Said] = []
    for at, message in enumerate(request.get("messages") or []):
        said.append(_anthropic_said(message))
        faults += [f"messages[{at}]: {fault}" for fault in _anthropic_message(message)]
    faults += _repeated("tool_use ids", [call for one in said for call in one.calls])
    tools = [tool for tool in request.get("tools") or [] if "input_schema" in tool or "type" not in tool]
    return [*faults, *_tools(tools, "input_schema", said), *_order(said, first="user")]


def gemini(request: Mapping[str, Any]) -> list[str]:
    """Check a request to Google's generateContent."""
    faults, said = [], []
    for at, content in enumerate(request.get("contents") or []):
        parts = content.get("parts") or []
        role = {"user": "user", "model": "assistant"}.get(content.get("role"), str(content.get("role")))
        calls = tuple(part["functionCall"].get("name", "") for part in parts if "functionCall" in part)
        results = tuple(part["functionResponse"].get("name", "") for part in parts if "functionResponse" in part)
        said.append(Said("results" if results else role, calls, results))
        faults += [f"contents[{at}]: {fault}" for fault in _gemini_content(role, parts, calls, results)]
    tools = [one for tool in request.get("tools") or [] for one in tool.get("functionDeclarations") or []]
    return [*faults, *_tools(tools, None, said), *_order(said, first="user")]


def ollama(request: Mapping[str, Any]) -> list[str]:
    """Check a request to Ollama's /api/chat. Its messages bear no call ids, so results are counted and go in order."""
    faults = [f for f in [_missing(request, "model")] if f]
    said = []
    waiting: list[str] = []
    for at, message in enumerate(request.get("messages") or []):
        role, calls = message.get("role"), message.get("tool_calls") or []
        if role == "tool":
            said.append(Said("results", results=(waiting.pop(0) if waiting else f"of messages[{at}]",)))
            continue
        waiting = [f"{at}.{n}" for n in range(len(calls))]
        said.append(Said(str(role), calls=tuple(waiting)))
        if role == "assistant" and not calls and not message.get("content"):
            faults.append(f"messages[{at}]: is empty")
        for call in calls:
            if not isinstance(call.get("function", {}).get("arguments"), dict):
                faults.append(f"messages[{at}]: the arguments of a tool call are no object")
    tools = [_function(tool) for tool in request.get("tools") or []]
    return [*faults, *_tools(tools, "parameters", said), *_order(_grouped(said))]


def langchain(messages: Sequence[Any], tools: Sequence[Mapping[str, Any]] | None = None) -> list[str]:
    """Check LangChain messages as a strict provider of OpenAI's form would, without a wire.

    `tools` are in OpenAI's form; None stands for tools that declare whatever is called.
    """
    from langchain_core.messages import convert_to_openai_messages

    converted = convert_to_openai_messages(list(messages))
    names = dict.fromkeys(call["function"]["name"] for m in converted for call in m.get("tool_calls") or [])
    declared = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
        for name in names
    ]
    return openai({"model": "any", "messages": converted, "tools": declared if tools is None else list(tools)})


def _order(said: Sequence[Said], first: str | None = None) -> Iterator[str]:
    """Give what is wrong with who speaks when: the rule that all providers share."""
    if not said:
        yield "there are no messages"
        return
    roles = [one.role for one in said]
    for at, role in enumerate(roles):
        if role not in {"system", "user", "assistant", "results"}:
            yield f"unknown role '{role}'"
        if role == "system" and set(roles[:at]) - {"system"}:
            yield "a system message stands among the others"
    spoken = [role for role in roles if role != "system"]
    if first is not None and spoken and spoken[0] != first:
        yield f"the first message is of role '{spoken[0]}', not '{first}'"
    if roles[-1] not in {"user", "results"}:
        yield f"the last message is of role '{roles[-1]}': there is nothing to answer"
    for before, after in zip([Said(""), *said], [*said, Said("")], strict=True):
        wanted, given = Counter(before.calls), Counter(after.results)
        if missing := wanted - given:
            yield f"no result right after it for the tool calls {sorted(missing.elements())}"
        if extra := given - wanted:
            yield f"results for no tool call right before it {sorted(extra.elements())}"


def _grouped(said: Iterable[Said]) -> list[Said]:
    """Join results that follow each other: in some formats each is a message of its own."""
    joined: list[Said] = []
    for one in said:
        if one.role == "results" and joined and joined[-1].role == "results":
            joined[-1] = Said("results", results=joined[-1].results + one.results)
        else:
            joined.append(one)
    return joined


def _tools(tools: Sequence[Mapping[str, Any]], schema: str | None, said: Sequence[Said]) -> Iterator[str]:
    if not tools and any(one.calls or one.results for one in said):
        yield "there are tool calls or results, and no tools are declared"
    for tool in tools:
        name = str(tool.get("name"))
        if not TOOL_NAME.fullmatch(name):
            yield f"'{name}' is no name of a tool"
        if schema is not None and (tool.get(schema) or {}).get("type") != "object":
            yield f"the {schema} of tool '{name}' are no object"
    yield from _repeated("tools", [str(tool.get("name")) for tool in tools])


def _repeated(what: str, names: Iterable[str]) -> list[str]:
    twice = [name for name, count in Counter(names).items() if count > 1]
    return [f"{what} appear twice: {twice}"] if twice else []


def _missing(request: Mapping[str, Any], key: str) -> str | None:
    return None if request.get(key) else f"'{key}' is missing"


def _function(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    inner: Mapping[str, Any] = tool.get("function") or {}
    return inner if tool.get("type") == "function" else {}


def _openai_said(message: Mapping[str, Any]) -> Said:
    role = {"developer": "system", "tool": "results"}.get(str(message.get("role")), str(message.get("role")))
    calls = tuple(str(call.get("id")) for call in message.get("tool_calls") or [])
    return Said(role, calls, (str(message.get("tool_call_id")),) if role == "results" else ())


def _openai_message(message: Mapping[str, Any]) -> Iterator[str]:
    calls, content = message.get("tool_calls") or [], message.get("content")
    if calls and message.get("role") != "assistant":
        yield "tool calls of someone who is no assistant"
    if not calls and not content and message.get("role") != "tool":
        yield "is empty"
    if content is not None and not isinstance(content, str | list):
        yield "its content is neither text nor parts"
    if message.get("role") == "tool" and content is None:
        yield "a tool's result without content"
    for part in content if isinstance(content, list) else []:
        if not isinstance(part, Mapping) or "type" not in part:
            yield "a part without a type"
        elif part["type"] in {"tool_use", "tool_result", "tool_call", "function_call"}:
            yield f"a part of type '{part['type']}', which belongs to another provider"
    yield from _repeated("ids of tool calls", [str(call.get("id")) for call in calls])
    for call in calls:
        if not call.get("id"):
            yield "a tool call without id"
        if call.get("type") != "function" or not TOOL_NAME.fullmatch(str(call.get("function", {}).get("name"))):
            yield "a tool call that names no function"
        if not _is_object(call.get("function", {}).get("arguments")):
            yield "the arguments of a tool call are not the JSON text of an object"


def _is_object(text: Any) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError):
        return False


def _blocks(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])


def _anthropic_said(message: Mapping[str, Any]) -> Said:
    blocks = _blocks(message)
    calls = tuple(str(b.get("id")) for b in blocks if b.get("type") == "tool_use")
    results = tuple(str(b.get("tool_use_id")) for b in blocks if b.get("type") == "tool_result")
    return Said("results" if results else str(message.get("role")), calls, results)


def _anthropic_message(message: Mapping[str, Any]) -> Iterator[str]:
    blocks, role = _blocks(message), message.get("role")
    kinds = [str(block.get("type")) for block in blocks]
    if role not in {"user", "assistant"}:
        yield f"role '{role}' is neither 'user' nor 'assistant'"
    if not blocks:
        yield "is empty"
    if "tool_use" in kinds and role != "assistant":
        yield "a tool_use of someone who is no assistant"
    if "tool_result" in kinds and role != "user":
        yield "a tool_result that does not come from the user"
    if kinds != sorted(kinds, key=lambda kind: kind != "tool_result") and "tool_result" in kinds:
        yield "something stands before a tool_result"
    for block in blocks:
        if block.get("type") == "text" and not str(block.get("text", "")).strip():
            yield "a text without text"
        if block.get("type") == "tool_use" and not isinstance(block.get("input"), dict):
            yield "the input of a tool_use is no object"
        if block.get("type") == "tool_use" and not ANTHROPIC_ID.fullmatch(str(block.get("id"))):
            yield f"'{block.get('id')}' is no id of a tool_use"


def _gemini_content(
    role: str, parts: Sequence[Mapping[str, Any]], calls: Sequence[str], results: Sequence[str]
) -> Iterator[str]:
    if not parts:
        yield "has no parts"
    if any(not set(part) & {"text", "functionCall", "functionResponse", "inlineData", "fileData"} for part in parts):
        yield "a part without data"
    if calls and role != "assistant":
        yield "a functionCall that does not come from the model"
    if results and (role != "user" or len(results) != len(parts)):
        yield "functionResponses belong to the user and stand alone"
    first = next((part for part in parts if "functionCall" in part), None)
    if first is not None and not first.get("thoughtSignature"):
        yield "the first functionCall lacks its thoughtSignature"
    for part in parts:
        if "functionCall" in part and not isinstance(part["functionCall"].get("args", {}), dict):
            yield "the args of a functionCall are no object"
        if "functionResponse" in part and not isinstance(part["functionResponse"].get("response"), dict):
            yield "the response of a functionResponse is no object"
