"""Models made by name chat with a strict provider: tool calls and texts, whole and streamed, blocking and async."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from tests.providers.server import KEY, Call, Turn
from tests.providers.seven import Served

ASKED = [SystemMessage("Keep files in order."), HumanMessage("Write two files.")]
WRITE = Turn(
    texts=("I wr", "ite both."),
    calls=(
        Call("call_1", "write_file", {"path": "a.txt", "text": 'für "a"\n'}),
        Call("call_2", "read_file", {"path": "b.txt"}),
    ),
)
SAID = Turn(texts=("Both are ", "wri", "tten: ü."))
WAYS = ["invoke", "ainvoke", "stream", "astream"]


@tool
def write_file(path: str, text: str) -> str:
    """Write a file."""
    return f"wrote {path}: {text}"


@tool
def read_file(path: str) -> str:
    """Read a file."""
    return f"read {path}"


async def ask(model: Any, messages: list[Any], way: str) -> tuple[AIMessage, list[AIMessageChunk]]:
    """Ask in one of four ways; give the whole message and, of a stream, its chunks."""
    if way == "invoke":
        return model.invoke(messages), []
    if way == "ainvoke":
        return await model.ainvoke(messages), []
    chunks = list(model.stream(messages)) if way == "stream" else [chunk async for chunk in model.astream(messages)]
    merged = chunks[0]
    for chunk in chunks[1:]:
        merged = merged + chunk
    return merged, chunks


@pytest.mark.parametrize("way", WAYS)
async def test_tool_calls_come_with_their_arguments_and_their_results_get_a_text(served: Served, way: str) -> None:
    with served.serve(WRITE, SAID) as (provider, model):
        with_tools = model.bind_tools([write_file, read_file])
        proposed, chunks = await ask(with_tools, ASKED, way)

        assert [(c["name"], c["args"]) for c in proposed.tool_calls] == [(c.name, c.args) for c in WRITE.calls]
        assert proposed.text == WRITE.text
        assert len({call["id"] for call in proposed.tool_calls} - {None}) == 2
        if served.has_call_ids:
            assert [call["id"] for call in proposed.tool_calls] == ["call_1", "call_2"]
        if chunks:
            assert [c for chunk in chunks for c in chunk.tool_call_chunks]
            assert not proposed.invalid_tool_calls

        results = [
            ToolMessage(f"done: {call['name']}", tool_call_id=call["id"], name=call["name"])
            for call in proposed.tool_calls
        ]
        said, chunks = await ask(with_tools, [*ASKED, proposed, *results], way)

        assert said.text == SAID.text
        assert not said.tool_calls
        assert said.usage_metadata is not None
        assert said.usage_metadata["input_tokens"] >= 11
        if chunks:
            assert [chunk.text for chunk in chunks if chunk.text] == list(SAID.texts)
        assert provider.refused == []
        sent = str(provider.requests[1].body)
        assert sent.index("done: write_file") < sent.index("done: read_file")


@pytest.mark.parametrize("way", ["stream", "astream"])
async def test_a_token_arrives_while_the_provider_still_speaks(served: Served, way: str) -> None:
    with served.serve(SAID) as (provider, model):
        provider.may_finish.clear()
        texts = []
        if way == "stream":
            for chunk in model.stream(ASKED):
                _take(chunk, texts, provider)
        else:
            async for chunk in model.astream(ASKED):
                _take(chunk, texts, provider)
        assert texts == list(SAID.texts)
        assert await asyncio.to_thread(provider.finished.wait, 10)


def _take(chunk: AIMessageChunk, texts: list[str], provider: Any) -> None:
    if chunk.text:
        texts.append(chunk.text)
        if texts == [SAID.texts[0]]:
            assert not provider.finished.is_set()
            provider.may_finish.set()


@pytest.mark.parametrize("way", WAYS)
async def test_a_history_with_a_call_that_has_no_result_is_refused(served: Served, way: str) -> None:
    calls = [{"id": f"call_{n}", "name": "read_file", "args": {"path": "a"}} for n in (1, 2)]
    history = [*ASKED, AIMessage("", tool_calls=calls), ToolMessage("done", tool_call_id="call_1", name="read_file")]
    with served.serve(SAID) as (provider, model):
        with pytest.raises(Exception, match="no result right after it"):
            await ask(model.bind_tools([read_file]), history, way)
        assert len(provider.requests) == 1
        assert len(provider.turns) == 1


def test_the_model_and_the_tools_are_named_in_the_request_and_the_key_in_a_header(served: Served) -> None:
    with served.serve(SAID) as (provider, model):
        model.bind_tools([write_file]).invoke(ASKED)
        (request,) = provider.requests
        assert served.name in request.path or request.body["model"] == served.name
        assert "write_file" in str(request.body["tools"])
        assert KEY not in request.path + str(request.body)
        assert KEY in str(request.headers)


def test_a_wrong_key_is_refused(served: Served) -> None:
    with served.serve(SAID) as (provider, _):
        from waitpoint.chat_models import init_chat_model

        model = init_chat_model(served.model, base_url=provider.url + served.base, api_key="another")
        with pytest.raises(Exception, match="the key is missing"):
            model.invoke(ASKED)


def test_nothing_is_sent_before_the_model_is_used(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def reached(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", reached)
    monkeypatch.setattr(socket, "getaddrinfo", reached)
    served.make("http://127.0.0.1:9").bind_tools([write_file])
    with pytest.raises(Exception):  # noqa: B017 - each package has an error of its own
        served.make("http://127.0.0.1:9", **({} if str(served) == "ollama" else {"max_retries": 0})).invoke(ASKED)
