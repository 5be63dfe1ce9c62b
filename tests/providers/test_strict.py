"""The checker of requests finds each fault it is there for, and lets through what is valid."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from tests.providers import strict

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def call(id: str, arguments: Any = "{}") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "read", "arguments": arguments}}


VALID: dict[str, dict[str, Any]] = {
    "openai": {
        "model": "m",
        "tools": [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}],
        "messages": [
            {"role": "system", "content": "be"},
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, "tool_calls": [call("1"), call("2")]},
            {"role": "tool", "tool_call_id": "2", "content": "b"},
            {"role": "tool", "tool_call_id": "1", "content": ""},
            {"role": "user", "content": "and?"},
        ],
    },
    "anthropic": {
        "model": "m",
        "max_tokens": 9,
        "tools": [{"name": "read", "input_schema": SCHEMA}, {"type": "web_search_20250305", "name": "web_search"}],
        "messages": [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I read"},
                    {"type": "tool_use", "id": "1", "name": "read", "input": {}},
                    {"type": "tool_use", "id": "2", "name": "read", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "1", "content": "a"},
                    {"type": "tool_result", "tool_use_id": "2", "content": "b"},
                    {"type": "text", "text": "and?"},
                ],
            },
        ],
    },
    "gemini": {
        "tools": [{"functionDeclarations": [{"name": "read"}]}],
        "contents": [
            {"role": "user", "parts": [{"text": "go"}]},
            {
                "role": "model",
                "parts": [
                    {"functionCall": {"name": "read", "args": {}}, "thoughtSignature": "x"},
                    {"functionCall": {"name": "read", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "read", "response": {"output": n}}} for n in "ab"],
            },
        ],
    },
    "ollama": {
        "model": "m",
        "tools": [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}],
        "messages": [
            {"role": "system", "content": "be"},
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "", "tool_calls": [call("", {}), call("", {})]},
            {"role": "tool", "content": "a"},
            {"role": "tool", "content": "b"},
        ],
    },
}


def messages(request: dict[str, Any]) -> list[Any]:
    return request["contents"] if "contents" in request else request["messages"]


def results(request: dict[str, Any]) -> tuple[list[Any], int]:
    """Find the list that holds the results, and the place of the first."""
    for at, message in enumerate(messages(request)):
        parts = message.get("parts") or message.get("content")
        if message["role"] == "tool":
            return messages(request), at
        if isinstance(parts, list) and ("tool_use_id" in parts[0] or "functionResponse" in parts[0]):
            return parts, 0
    raise AssertionError("there is no result")


def drop_a_result(request: dict[str, Any]) -> None:
    holder, at = results(request)
    del holder[at]


def repeat_a_result(request: dict[str, Any]) -> None:
    holder, at = results(request)
    holder.insert(at, copy.deepcopy(holder[at]))


def put_something_between(request: dict[str, Any]) -> None:
    said = {"parts": [{"text": "wait"}]} if "contents" in request else {"content": "wait"}
    at = next(n for n, m in enumerate(messages(request)) if m["role"] in {"assistant", "model"})
    messages(request).insert(at + 1, {"role": "user", **said})


def drop_the_call(request: dict[str, Any]) -> None:
    messages(request)[:] = [m for m in messages(request) if m["role"] not in {"assistant", "model"}]


def drop_the_tools(request: dict[str, Any]) -> None:
    request["tools"] = []


def break_a_role(request: dict[str, Any]) -> None:
    messages(request)[-1]["role"] = "function"


def drop_all(request: dict[str, Any]) -> None:
    messages(request).clear()


def end_with_the_model(request: dict[str, Any]) -> None:
    said = (
        {"role": "model", "parts": [{"text": "hi"}]}
        if "contents" in request
        else {"role": "assistant", "content": "hi"}
    )
    messages(request).append(said)


def declare_a_tool_twice(request: dict[str, Any]) -> None:
    tools = request["tools"]
    declared = tools[0].get("functionDeclarations", tools)
    declared.append(copy.deepcopy(declared[0]))


def name_a_tool_badly(request: dict[str, Any]) -> None:
    tool = request["tools"][0]
    (tool.get("functionDeclarations") or [tool.get("function") or tool])[0]["name"] = "read file"


SHARED = {
    drop_a_result: "no result right after it",
    repeat_a_result: "results for no tool call",
    put_something_between: "no result right after it",
    drop_the_call: "results for no tool call",
    drop_the_tools: "no tools are declared",
    break_a_role: "unknown role|neither 'user' nor|belong to the user",
    drop_all: "there are no messages",
    end_with_the_model: "nothing to answer",
    declare_a_tool_twice: "tools appear twice",
    name_a_tool_badly: "no name of a tool",
}


@pytest.mark.parametrize("wire", VALID)
def test_a_valid_request_has_no_faults(wire: str) -> None:
    assert getattr(strict, wire)(VALID[wire]) == []


@pytest.mark.parametrize("wire", VALID)
@pytest.mark.parametrize("breaking", SHARED, ids=lambda f: f.__name__)
def test_what_every_provider_refuses_is_found_in_every_format(
    wire: str, breaking: Callable[[dict[str, Any]], None]
) -> None:
    request = copy.deepcopy(VALID[wire])
    breaking(request)
    faults = getattr(strict, wire)(request)
    assert [fault for fault in faults if any(text in fault for text in SHARED[breaking].split("|"))], faults


# wire, the fault as a path into the valid request with its new value, what is said of it
SINGLE: list[tuple[str, list[Any], Any, str]] = [
    ("openai", ["model"], "", "'model' is missing"),
    ("openai", ["messages", 2, "tool_calls", 0, "id"], "2", "ids of tool calls appear twice"),
    ("openai", ["messages", 2, "tool_calls", 0, "id"], "", "a tool call without id"),
    ("openai", ["messages", 2, "tool_calls", 0, "type"], "tool", "names no function"),
    ("openai", ["messages", 2, "tool_calls", 0, "function", "arguments"], {}, "not the JSON text of an object"),
    ("openai", ["messages", 2, "tool_calls", 0, "function", "arguments"], "[]", "not the JSON text of an object"),
    ("openai", ["messages", 2, "role"], "user", "someone who is no assistant"),
    ("openai", ["messages", 1, "content"], "", "is empty"),
    ("openai", ["messages", 1, "content"], 7, "neither text nor parts"),
    ("openai", ["messages", 1, "content"], [{"text": "go"}], "a part without a type"),
    ("openai", ["messages", 1, "content"], [{"type": "tool_use"}], "belongs to another provider"),
    ("openai", ["messages", 3, "content"], None, "a tool's result without content"),
    ("openai", ["messages", 5, "role"], "system", "a system message stands among the others"),
    ("openai", ["tools", 0, "function", "parameters"], {}, "the parameters of tool 'read' are no object"),
    ("anthropic", ["max_tokens"], 0, "'max_tokens' is missing"),
    ("anthropic", ["messages", 0, "role"], "system", "neither 'user' nor 'assistant'"),
    ("anthropic", ["messages", 0, "role"], "assistant", "the first message is of role 'assistant'"),
    ("anthropic", ["messages", 0, "content"], [], "is empty"),
    ("anthropic", ["messages", 0, "content"], " ", "a text without text"),
    ("anthropic", ["messages", 1, "content", 1, "id"], "2", "tool_use ids appear twice"),
    ("anthropic", ["messages", 1, "content", 1, "id"], "a.b", "'a.b' is no id of a tool_use"),
    ("anthropic", ["messages", 1, "content", 1, "input"], "{}", "the input of a tool_use is no object"),
    ("anthropic", ["messages", 1, "role"], "user", "a tool_use of someone who is no assistant"),
    ("anthropic", ["messages", 2, "role"], "assistant", "does not come from the user"),
    (
        "anthropic",
        ["messages", 2, "content", 0],
        {"type": "text", "text": "a"},
        "something stands before a tool_result",
    ),
    ("anthropic", ["tools", 0, "input_schema"], None, "the input_schema of tool 'read' are no object"),
    ("gemini", ["contents", 0, "role"], "model", "the first message is of role 'assistant'"),
    ("gemini", ["contents", 0, "parts"], [], "has no parts"),
    ("gemini", ["contents", 0, "parts", 0], {}, "a part without data"),
    ("gemini", ["contents", 1, "parts", 0, "thoughtSignature"], None, "lacks its thoughtSignature"),
    ("gemini", ["contents", 1, "parts", 0, "functionCall", "args"], "{}", "the args of a functionCall are no object"),
    ("gemini", ["contents", 1, "role"], "user", "does not come from the model"),
    ("gemini", ["contents", 2, "parts", 0], {"text": "a"}, "stand alone"),
    ("gemini", ["contents", 2, "parts", 0, "functionResponse", "response"], "a", "is no object"),
    ("ollama", ["model"], None, "'model' is missing"),
    ("ollama", ["messages", 2, "tool_calls", 0, "function", "arguments"], "{}", "are no object"),
    ("ollama", ["messages", 2, "tool_calls"], [], "is empty"),
]


@pytest.mark.parametrize(("wire", "path", "value", "said"), SINGLE)
def test_what_one_provider_refuses_is_found(wire: str, path: list[Any], value: Any, said: str) -> None:
    request = copy.deepcopy(VALID[wire])
    inner: Any = request
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    faults = getattr(strict, wire)(request)
    assert [fault for fault in faults if said in fault], faults


CALLS = AIMessage("", tool_calls=[{"id": n, "name": "read", "args": {"path": n}} for n in ("1", "2")])
RESULTS = [ToolMessage("a", tool_call_id="1"), ToolMessage("b", tool_call_id="2", status="error")]


def test_langchain_messages_are_checked_without_a_wire() -> None:
    assert strict.langchain([SystemMessage("be"), HumanMessage("go"), CALLS, *RESULTS]) == []
    assert strict.langchain([HumanMessage("go"), CALLS, *RESULTS, HumanMessage("and?")]) == []


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ([HumanMessage("go"), CALLS, RESULTS[0]], "no result right after it for the tool calls ['2']"),
        ([HumanMessage("go"), CALLS, *RESULTS, RESULTS[0]], "results for no tool call right before it ['1']"),
        ([HumanMessage("go"), CALLS, RESULTS[0], HumanMessage("no"), RESULTS[1]], "no result right after it"),
        ([HumanMessage("go"), RESULTS[0]], "results for no tool call right before it ['1']"),
        ([HumanMessage("go"), CALLS, *RESULTS, AIMessage("done")], "there is nothing to answer"),
        ([HumanMessage("go"), AIMessage(""), HumanMessage("and?")], "is empty"),
        ([], "there are no messages"),
    ],
)
def test_an_invalid_history_of_langchain_messages_is_found(history: list[Any], said: str) -> None:
    faults = strict.langchain(history)
    assert [fault for fault in faults if said in fault], faults


def test_langchain_messages_are_checked_against_the_tools_if_they_are_given() -> None:
    assert strict.langchain([HumanMessage("go"), CALLS, *RESULTS], []) == [
        "there are tool calls or results, and no tools are declared"
    ]
