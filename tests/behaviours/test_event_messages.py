"""Event streams: the messages of a run, each a stream of its own."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from langchain_core.language_models.chat_model_stream import AsyncChatModelStream, ChatModelStream
from langchain_core.messages import AIMessage

from tests.behaviours.conftest import Consumed
from tests.behaviours.graphs import thread
from tests.behaviours.speaking import EMPTY, TOOL_CALL, Speaker, Whole, chain, speaks, whole
from waitpoint.graph import START, MessagesState, StateGraph

# --- messages ---------------------------------------------------------------------------------------------------------


def test_messages_are_streams_of_tokens(saver: Any, consumed: Consumed) -> None:
    """B202"""
    graph = chain(saver, speaks(Speaker(texts=["hello big world"])), whole)
    assert consumed(graph, "texts", EMPTY, thread()) == [["hello ", "big ", "world "], ["two words"]]


def test_a_message_is_handed_out_while_its_model_still_speaks(saver: Any) -> None:
    """B202, B179: the model goes on only after its token was seen"""
    seen = threading.Semaphore(0)
    model = Speaker(texts=["hello big world"], gate=lambda _: seen.acquire(timeout=10) or pytest.fail("not shown"))
    run = chain(saver, speaks(model)).stream_events(EMPTY, thread(), version="v3")
    tokens = []
    for message in run.messages:
        assert isinstance(message, ChatModelStream)
        assert (message.node, message.done) == ("speaks", False)
        for token in message.text:
            tokens.append(token)
            seen.release()
    assert tokens == ["hello ", "big ", "world "]


async def test_a_message_is_handed_out_while_its_model_still_speaks_on_an_event_loop(saver: Any) -> None:
    """B202, B179"""
    seen = threading.Semaphore(0)
    model = Speaker(texts=["hello big world"], gate=lambda _: seen.acquire(timeout=10) or pytest.fail("not shown"))
    run = await chain(saver, speaks(model)).astream_events(EMPTY, thread(), version="v3")
    tokens = []
    async for message in run.messages:
        assert isinstance(message, AsyncChatModelStream)
        async for token in message.text:
            tokens.append(token)
            seen.release()
        assert (await message.output).text == "hello big world "
    assert tokens == ["hello ", "big ", "world "]


def test_a_message_has_tool_calls_and_an_output(saver: Any) -> None:
    """B202"""
    graph, config = chain(saver, speaks(Speaker(texts=[TOOL_CALL]))), thread()
    run = graph.stream_events(EMPTY, config, version="v3")
    (message,) = run.messages
    assert "".join(chunk["args"] for chunk in message.tool_calls) == '{"at": "sky"}'
    (call,) = message.tool_calls.get()
    assert (call["name"], call["args"], call["id"]) == ("look", {"at": "sky"}, "call-1")
    assert message.output.tool_calls[0]["args"] == {"at": "sky"}
    assert message.message_id == graph.get_state(config).values["messages"][0].id


def test_a_message_has_reasoning(saver: Any) -> None:
    """B202"""

    def thinks(state: Any) -> Any:
        return {"messages": [AIMessage([{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "yes"}])]}

    (message,) = chain(saver, thinks).stream_events(EMPTY, thread(), version="v3").messages
    assert (str(message.reasoning), str(message.text)) == ("hm", "yes")


def test_a_model_that_cannot_stream_gives_a_complete_message_once(saver: Any, consumed: Consumed) -> None:
    """B202"""
    assert consumed(chain(saver, speaks(Whole())), "texts", EMPTY, thread()) == [["all at once"]]


def test_a_model_asked_for_events_gives_one_message(saver: Any, consumed: Consumed) -> None:
    """B202"""
    model = Speaker(texts=["hello world"], named="m")

    def node(state: Any) -> Any:
        return {"messages": [model.stream_events("say", version="v3").output]}

    assert consumed(chain(saver, node), "texts", EMPTY, thread()) == [["hello ", "world "]]


def test_two_models_that_speak_at_once_have_a_message_each(saver: Any) -> None:
    """B202"""
    both = threading.Barrier(2)
    models = [Speaker(texts=[f"{n} {n} {n}"], gate=lambda _: both.wait(10)) for n in "ab"]
    graph: Any = StateGraph(MessagesState)
    for i, model in enumerate(models):
        graph.add_node(f"n{i}", speaks(model)).add_edge(START, f"n{i}")
    run = graph.compile(checkpointer=saver).stream_events(EMPTY, thread(), version="v3")
    assert sorted(str(message.text) for message in run.messages) == ["a a a ", "b b b "]


def test_an_error_of_a_model_ends_its_message_and_the_node_may_go_on(saver: Any) -> None:
    """B202"""
    model = Speaker(texts=[["never", "mind", OSError("cut off")], "hello"])

    def node(state: Any) -> Any:
        try:
            return {"messages": [model.invoke("say")]}
        except OSError:
            return {"messages": [model.invoke("say")]}

    broken, good = chain(saver, node).stream_events(EMPTY, thread(), version="v3").messages
    with pytest.raises(RuntimeError, match="cut off"):
        _ = broken.output
    assert list(good.text) == ["hello "]


def test_a_message_that_is_cut_off_with_its_run_fails(saver: Any) -> None:
    """B196, B202"""
    run = chain(saver, speaks(Speaker(texts=[["one", OSError("cut off")]]))).stream_events(
        EMPTY, thread(), version="v3"
    )
    messages = iter(run.messages)
    with pytest.raises(RuntimeError, match="cut off"):
        list(next(messages).text)
    with pytest.raises(OSError, match="cut off"):
        next(messages)


@pytest.mark.parametrize("form", ["chunks", "events"])
def test_a_message_that_a_node_stops_reading_ends_where_it_stopped(saver: Any, consumed: Consumed, form: str) -> None:
    """B202"""
    model = Speaker(texts=["enough is enough"])

    def node(state: Any) -> Any:
        parts = model.stream("say") if form == "chunks" else iter(model.stream_events("say", version="v3"))
        for part in parts:
            if "enough" in str(part):
                break
        return {}

    (texts,) = consumed(chain(saver, node), "texts", EMPTY, thread())
    assert texts in (["enough "], ["enough ", "is ", "enough "])
