"""Stream mode `messages`: what models and nodes say, once, as they say it, and with which metadata."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackHandler, CallbackManager
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel

from tests.behaviours.conftest import Call
from tests.behaviours.graphs import builder, thread
from tests.behaviours.speaking import TOOL_CALL, Speaker, Whole
from waitpoint.config import get_config
from waitpoint.constants import TAG_NOSTREAM
from waitpoint.graph import START, MessagesState, StateGraph
from waitpoint.graph.message import add_messages, push_message
from waitpoint.types import Command, Overwrite, RetryPolicy, Send, interrupt


@dataclass
class AsDataclass:
    messages: Annotated[list[Any], add_messages] = field(default_factory=list)


class AsModel(BaseModel):
    messages: Annotated[list[Any], add_messages] = []


def chain(saver: Any, *nodes: Any, schema: Any = MessagesState) -> Any:
    return builder(*nodes, schema=schema).compile(checkpointer=saver)


def outer(saver: Any, **nodes: Any) -> Any:
    graph: Any = StateGraph(MessagesState)
    before = START
    for name, node in nodes.items():
        graph.add_node(name, node).add_edge(before, name)
        before = name
    return graph.compile(checkpointer=saver)


def speaks(model: Any) -> Any:
    """Return a node that asks a model and returns its message."""

    def speaks(state: Any) -> Any:
        return {"messages": [model.invoke("say")]}

    return speaks


def texts(parts: list[Any]) -> list[str]:
    return [message.content for message, _ in parts if message.content]


def whole(state: Any) -> Any:
    return {"messages": [HumanMessage("one", id="1"), AIMessage("two", id="2"), ToolMessage("three", tool_call_id="c")]}


# --- tokens -----------------------------------------------------------------------------------------------------------


def test_a_model_that_a_node_invokes_is_shown_token_by_token_and_not_again(saver: Any, streamed: Call) -> None:
    """B173"""
    graph, config = chain(saver, speaks(Speaker(texts=["hello big world"]))), thread()
    parts = streamed(graph, {"messages": []}, config, stream_mode="messages")
    assert texts(parts) == ["hello ", "big ", "world "]
    assert all(isinstance(message, AIMessageChunk) for message, _ in parts)
    (stored,) = graph.get_state(config).values["messages"]
    assert {message.id for message, _ in parts} == {stored.id}


def test_streaming_changes_nothing_of_what_is_stored(saver: Any, streamed: Call, call: Call) -> None:
    """B173: the message is the one that `invoke` gives"""
    graph = chain(saver, speaks(Speaker(texts=["hello big world"], named="m")))
    once, twice = thread(), thread()
    streamed(graph, {"messages": []}, once, stream_mode="messages")
    call(chain(saver, speaks(Speaker(texts=["hello big world"], named="m"))), {"messages": []}, twice)
    assert graph.get_state(once).values == graph.get_state(twice).values


def test_tool_calls_are_shown_as_chunks(saver: Any, streamed: Call) -> None:
    """B173"""
    graph, config = chain(saver, speaks(Speaker(texts=[TOOL_CALL]))), thread()
    parts = streamed(graph, {"messages": []}, config, stream_mode="messages")
    chunks = [chunk for message, _ in parts for chunk in message.tool_call_chunks]
    assert "".join(chunk["args"] for chunk in chunks) == '{"at": "sky"}'
    assert graph.get_state(config).values["messages"][0].tool_calls[0]["args"] == {"at": "sky"}


def test_a_model_that_cannot_stream_is_shown_whole_and_once(saver: Any, streamed: Call) -> None:
    """B173"""
    parts = streamed(chain(saver, speaks(Whole())), {"messages": []}, thread(), stream_mode="messages")
    assert texts(parts) == ["all at once"]


def test_a_model_is_heard_in_a_coroutine(saver: Any) -> None:
    """B173"""
    model = Speaker(texts=["hello world"])

    async def node(state: Any) -> Any:
        return {"messages": [await model.ainvoke("say")]}

    async def main() -> list[Any]:
        graph = chain(saver, node)
        return [p async for p in graph.astream({"messages": []}, thread(), stream_mode="messages")]

    assert texts(asyncio.run(main())) == ["hello ", "world "]


def test_tokens_are_shown_as_they_are_said(saver: Any) -> None:
    """B173, B179: the model goes on only after its token was seen"""
    seen = threading.Semaphore(0)
    model = Speaker(texts=["hello big world"], gate=lambda _: seen.acquire(timeout=10) or pytest.fail("not shown"))
    parts = []
    for part in chain(saver, speaks(model)).stream({"messages": []}, thread(), stream_mode="messages"):
        parts.append(part)
        seen.release()
    assert texts(parts) == ["hello ", "big ", "world "]


def test_a_model_that_a_node_streams_itself_is_heard(saver: Any, streamed: Call) -> None:
    """B173"""
    model = Speaker(texts=["hello world"])

    def node(state: Any) -> Any:
        return {"messages": [AIMessage("".join(chunk.text for chunk in model.stream("say")), id="joined")]}

    parts = streamed(chain(saver, node), {"messages": []}, thread(), stream_mode="messages")
    assert texts(parts) == ["hello ", "world ", "hello world "]


def test_a_model_asked_for_events_is_shown_as_chunks(saver: Any, streamed: Call) -> None:
    """B207"""
    model = Speaker(texts=["hello world", TOOL_CALL], named="m")

    def node(state: Any) -> Any:
        return {"messages": [model.stream_events("say", version="v3").output for _ in range(2)]}

    parts = streamed(chain(saver, node), {"messages": []}, thread(), stream_mode="messages")
    assert texts(parts) == ["hello ", "world "]
    assert all(isinstance(message, AIMessageChunk) for message, _ in parts)
    assert "".join(c["args"] for message, _ in parts for c in message.tool_call_chunks) == '{"at": "sky"}'


def test_a_model_with_the_tag_nostream_is_not_heard(saver: Any, streamed: Call) -> None:
    """B173: its message, if the node returns it, is a message that a node returns"""
    model = Speaker(texts=["hello world"]).with_config(tags=[TAG_NOSTREAM])

    def silent(state: Any) -> Any:
        model.invoke("say")
        return {}

    graph = chain(saver, silent)
    assert streamed(graph, {"messages": []}, thread(), stream_mode="messages") == []
    (part,) = streamed(chain(saver, speaks(model)), {"messages": []}, thread(), stream_mode="messages")
    assert type(part[0]) is AIMessage


def test_an_error_of_a_model_ends_its_message_and_the_node_may_go_on(saver: Any, streamed: Call) -> None:
    """B173"""
    model = Speaker(texts=[["never", "mind", OSError("cut off")], "hello"])

    def node(state: Any) -> Any:
        try:
            model.invoke("say")
        except OSError:
            return {"messages": [model.invoke("say")]}
        pytest.fail("the model did not fail")

    parts = streamed(chain(saver, node), {"messages": []}, thread(), stream_mode="messages")
    assert texts(parts) == ["never ", "mind ", "hello "]


def test_a_runnable_as_a_node_is_heard(saver: Any, streamed: Call) -> None:
    """B173"""
    node = RunnableLambda(lambda state: "say") | Speaker(texts=["hello world"]) | (lambda m: {"messages": [m]})
    parts = streamed(outer(saver, node=node), {"messages": []}, thread(), stream_mode="messages")
    assert texts(parts) == ["hello ", "world "]
    assert all("tags" not in metadata for _, metadata in parts)


# --- whole messages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [MessagesState, AsDataclass, AsModel])
def test_messages_that_nodes_return_are_shown_once(saver: Any, streamed: Call, schema: Any) -> None:
    """B173"""

    def again(state: Any) -> Any:
        before = state["messages"] if isinstance(state, dict) else state.messages
        return {"messages": [*before, AIMessage("four", id="4")]}

    graph = chain(saver, whole, again, schema=schema)
    parts = streamed(graph, {"messages": [HumanMessage("zero", id="0")]}, thread(), stream_mode="messages")
    assert texts(parts) == ["one", "two", "three", "four"]


@pytest.mark.parametrize("schema", [AsDataclass, AsModel])
def test_a_state_object_that_a_node_returns_is_searched(saver: Any, streamed: Call, schema: Any) -> None:
    """B173"""

    def node(state: Any) -> Any:
        return schema(messages=[AIMessage("one", id="1")])

    assert texts(streamed(chain(saver, node, schema=schema), {}, thread(), stream_mode="messages")) == ["one"]


def test_a_single_message_under_any_key_is_shown(saver: Any, streamed: Call) -> None:
    """B173"""

    class Other(TypedDict, total=False):
        last: Any
        lists: Any

    def node(state: Any) -> Any:
        return {"last": AIMessage("one"), "lists": ["no message", AIMessage("two")]}

    parts = streamed(chain(saver, node, schema=Other), {"last": None}, thread(), stream_mode="messages")
    assert texts(parts) == ["one", "two"]


def test_commands_and_overwrites_are_searched_and_removals_not_shown(saver: Any, streamed: Call) -> None:
    """B173"""

    def commands(state: Any) -> Any:
        return Command(update={"messages": [AIMessage("one", id="1")]})

    def removes(state: Any) -> Any:
        return {"messages": [RemoveMessage(id="1")]}

    def overwrites(state: Any) -> Any:
        return {"messages": Overwrite([AIMessage("two", id="2")])}

    graph = chain(saver, commands, removes, overwrites)
    assert texts(streamed(graph, {"messages": []}, thread(), stream_mode="messages")) == ["one", "two"]


def test_messages_of_an_input_or_a_send_are_not_shown(saver: Any, streamed: Call) -> None:
    """B173"""
    graph: Any = StateGraph(MessagesState).add_node("echo", lambda s: {"messages": s["messages"]})
    sent = HumanMessage("sent", id="s")
    graph.add_conditional_edges(START, lambda s: [Send("echo", {"messages": [*s["messages"], sent]})])
    given = {"messages": [HumanMessage("given", id="g")]}
    assert streamed(graph.compile(checkpointer=saver), given, thread(), stream_mode="messages") == []


def test_after_a_resume_only_new_messages_are_shown(saver: Any, streamed: Call) -> None:
    """B173"""

    def one(state: Any) -> Any:
        return {"messages": [AIMessage("one", id="1")]}

    def asks(state: Any) -> Any:
        return {"messages": [HumanMessage(interrupt("ok?"), id="2")]}

    def repeats(state: Any) -> Any:
        return {"messages": [*state["messages"], AIMessage("three", id="3")]}

    graph: Any = builder(one, asks, edges="parallel", schema=MessagesState)
    graph = graph.add_node("repeats", repeats).add_edge(["one", "asks"], "repeats").compile(checkpointer=saver)
    config = thread()
    given = {"messages": [HumanMessage("zero", id="0")]}
    assert texts(streamed(graph, given, config, stream_mode="messages")) == ["one"]
    assert texts(streamed(graph, Command(resume="yes"), config, stream_mode="messages")) == ["yes", "three"]


def test_a_question_is_in_the_result_and_in_other_modes_beside(saver: Any, streamed: Call) -> None:
    """architecture 3"""

    def asks(state: Any) -> Any:
        push_message(AIMessage("asking", id="a"), state_key=None)
        return {"messages": [HumanMessage(interrupt("ok?"))]}

    graph, config = chain(saver, asks), thread()
    assert texts(streamed(graph, {"messages": []}, config, stream_mode="messages")) == ["asking"]
    (question,) = graph.get_state(config).interrupts
    parts = streamed(graph, None, config, stream_mode=["messages", "updates"])
    assert parts == [("updates", {"__interrupt__": (question,)})]


# --- pushed messages --------------------------------------------------------------------------------------------------


def test_a_pushed_message_is_shown_at_once_and_written_first(saver: Any) -> None:
    """B190"""
    seen = threading.Event()

    def node(state: Any) -> Any:
        push_message(AIMessage("shown", id="1"), state_key=None)
        pushed = push_message({"role": "ai", "content": "written", "id": "2"})
        assert seen.wait(10)
        return {"messages": [pushed, AIMessage("returned", id="3")]}

    graph, config = chain(saver, node), thread()
    parts = []
    for part in graph.stream({"messages": []}, config, stream_mode="messages"):
        parts.append(part)
        seen.set()
    assert texts(parts) == ["shown", "written", "returned"]
    assert parts[0][1]["langgraph_node"] == "node"
    assert [m.id for m in graph.get_state(config).values["messages"]] == ["2", "3"]


def test_a_pushed_message_is_written_without_a_listener_and_once_over_retries(saver: Any, call: Call) -> None:
    """B190"""
    tries: list[int] = []

    def node(state: Any) -> Any:
        push_message(AIMessage("pushed", id=f"p{len(tries)}"))
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionError("again")
        return {}

    graph: Any = StateGraph(MessagesState).add_node("node", node, retry_policy=RetryPolicy(0, jitter=False))
    graph = graph.add_edge(START, "node").compile(checkpointer=saver)
    assert [m.id for m in call(graph, {"messages": []}, thread())["messages"]] == ["p1"]


def test_a_pushed_message_needs_an_id(saver: Any, call: Call) -> None:
    """B190"""
    graph = chain(saver, lambda s: push_message(AIMessage("nameless")) and {})
    with pytest.raises(ValueError, match="Message ID is required"):
        call(graph, {"messages": []}, thread())


# --- subgraphs --------------------------------------------------------------------------------------------------------


def test_without_subgraphs_a_nested_message_is_shown_whole_when_its_node_ends(saver: Any, streamed: Call) -> None:
    """B173"""
    inner = chain(None, speaks(Speaker(texts=["hello world"])))
    parts = streamed(outer(saver, inner=inner), {"messages": []}, thread(), stream_mode="messages")
    assert [(type(m), metadata["langgraph_node"]) for m, metadata in parts] == [(AIMessage, "inner")]


def test_with_subgraphs_a_nested_message_is_shown_there_and_not_again(saver: Any, streamed: Call) -> None:
    """B173, B180"""
    inner = chain(None, speaks(Speaker(texts=["hello world"])), whole)
    graph = outer(saver, inner=inner, function=lambda s: inner.invoke(s, get_config()))
    parts = streamed(graph, {"messages": []}, thread(), stream_mode="messages", subgraphs=True)
    told = [(ns[0].split(":")[0], m.content) for ns, (m, _) in parts if m.content]
    assert told[:5] == [("inner", t) for t in ("hello ", "world ", "one", "two", "three")]
    assert told[5:7] == [("function", "hello "), ("function", "world ")]
    assert set(told[7:]) <= {("function", "three")}  # the one without an id, made anew


def test_a_nested_pause_does_not_repeat_messages_on_resume(saver: Any, streamed: Call) -> None:
    """B173"""

    def asks(state: Any) -> Any:
        return {"messages": [HumanMessage(interrupt("ok?"), id="yes")]}

    inner = chain(None, speaks(Speaker(texts=["hello"])), asks)
    graph, config = outer(saver, inner=inner), thread()
    options = {"stream_mode": "messages", "subgraphs": True}
    assert [m.content for _, (m, _) in streamed(graph, {"messages": []}, config, **options) if m.content] == ["hello "]
    assert [m.content for _, (m, _) in streamed(graph, Command(resume="y"), config, **options)] == ["y"]


def test_a_graph_that_a_node_streams_itself_speaks_to_that_node_only(saver: Any, streamed: Call) -> None:
    """B188"""
    inner = chain(None, speaks(Speaker(texts=["hello world"])))
    heard: list[Any] = []

    def relays(state: Any) -> Any:
        heard.extend(inner.stream({"messages": []}, stream_mode="messages"))
        return {}

    graph = outer(saver, relays=relays)
    assert streamed(graph, {"messages": []}, thread(), stream_mode="messages") == []
    assert texts(heard) == ["hello ", "world "]


def test_such_a_graph_speaks_to_both_if_subgraphs_are_asked_for(saver: Any, streamed: Call) -> None:
    """B188"""
    deepest = chain(None, speaks(Speaker(texts=["hello world"])))
    inner = outer(None, deepest=deepest)
    heard: list[Any] = []

    def relays(state: Any) -> Any:
        heard.extend(inner.stream({"messages": []}, stream_mode="messages"))
        return {}

    parts = streamed(outer(saver, relays=relays), {"messages": []}, thread(), stream_mode="messages", subgraphs=True)
    assert [m.content for _, (m, _) in parts if m.content] == ["hello ", "world "]
    assert {len(ns) for ns, (m, _) in parts if type(m) is AIMessageChunk} == {2}
    assert texts(heard) == ["hello world "]


# --- metadata ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("node", [speaks(Speaker(texts=["hello"])), whole])
def test_metadata_say_where_a_message_comes_from(saver: Any, streamed: Call, node: Any) -> None:
    """B174"""
    graph: Any = StateGraph(MessagesState).add_node("node", node, metadata={"of": "node"}).add_edge(START, "node")
    config = {
        "configurable": {"thread_id": f"t-{node.__name__}", "assistant_id": "a", "api_key": "secret", "model": "m"},
        "metadata": {"mine": 1},
        "tags": ["tagged"],
    }
    parts = streamed(graph.compile(checkpointer=saver), {"messages": []}, config, stream_mode="messages")
    for _, metadata in parts:
        assert metadata["langgraph_step"] == 1
        assert metadata["langgraph_node"] == "node"
        assert metadata["langgraph_triggers"] == ("branch:to:node",)
        assert metadata["langgraph_path"] == ("__pregel_pull", "node")
        assert metadata["langgraph_checkpoint_ns"].startswith("node:")
        assert (metadata["thread_id"], metadata["assistant_id"]) == (f"t-{node.__name__}", "a")
        assert (metadata["mine"], metadata["of"]) == (1, "node")
        assert not {"api_key", "model"} & metadata.keys()
    if node is not whole:
        assert parts[0][1]["ls_provider"] == "speaker"
        assert parts[0][1]["tags"] == ["tagged"]


def test_changing_the_metadata_of_one_part_changes_no_other(saver: Any) -> None:
    """B174"""
    parts = chain(saver, whole).stream({"messages": []}, thread(), stream_mode="messages")
    next(parts)[1].clear()
    assert next(parts)[1]["langgraph_node"] == "whole"
    parts.close()


# --- callbacks of the user's ------------------------------------------------------------------------------------------


class Ears(BaseCallbackHandler):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_llm_new_token(self, token: Any, **_: Any) -> None:
        self.heard.append(token)


@pytest.mark.parametrize("form", ["list", "manager", "async manager"])
def test_callbacks_of_the_config_keep_working_and_are_not_changed(saver: Any, form: str) -> None:
    """B173"""
    ears = Ears()
    callbacks: Any = [ears]
    if form != "list":
        callbacks = CallbackManager([ears], [ears]) if form == "manager" else AsyncCallbackManager([ears], [ears])
    config = {**thread(), "callbacks": callbacks}
    graph = chain(saver, speaks(Speaker(texts=["hello world"])))
    if form == "async manager":

        async def node(state: Any) -> Any:
            return {"messages": [await Speaker(texts=["hello world"]).ainvoke("say")]}

        async def main() -> list[Any]:
            parts = chain(saver, node).astream({"messages": []}, config, stream_mode="messages")
            return [part async for part in parts]

        parts = asyncio.run(main())
    else:
        parts = list(graph.stream({"messages": []}, config, stream_mode="messages"))
    assert texts(parts) == ["hello ", "world "]
    assert [t for t in ears.heard if t] == ["hello ", "world "]
    if form == "list":
        assert callbacks == [ears]
    else:
        assert callbacks.handlers == [ears]
        assert callbacks.inheritable_handlers == [ears]


def test_without_a_listener_models_do_not_stream(saver: Any, call: Call) -> None:
    """B173"""
    ears = Ears()
    call(chain(saver, speaks(Speaker(texts=["hello world"]))), {"messages": []}, {**thread(), "callbacks": [ears]})
    assert ears.heard == []


# --- with other modes -------------------------------------------------------------------------------------------------


def test_messages_come_before_the_update_that_holds_them(saver: Any, streamed: Call) -> None:
    """B168, B173"""
    graph = chain(saver, speaks(Speaker(texts=["hello"])), whole)
    parts = streamed(graph, {"messages": []}, thread(), stream_mode=["messages", "updates"])
    modes = [mode for mode, part in parts if mode == "updates" or part[0].content]
    assert modes == ["messages", "updates", "messages", "messages", "messages", "updates"]


def test_leaving_the_stream_leaves_the_thread_ready(saver: Any) -> None:
    """B173: the model's call ends, and what it came to is recorded"""
    graph, config = chain(saver, speaks(Speaker(texts=["hello big world"]))), thread()
    for _ in graph.stream({"messages": []}, config, stream_mode="messages"):
        break
    assert [len(m.content.split()) for m in graph.invoke(None, config)["messages"]] == [3]
