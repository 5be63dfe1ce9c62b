"""Streams: tokens of a model in mode `messages`, and updates of a chain of nodes, one by one to whoever iterates."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from itertools import count
from time import perf_counter
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from typing_extensions import TypedDict

from benchmarks.measure import Row, Work, compare, main
from benchmarks.sides import STORES, Side, config

TOKENS = 2000
NODES = 20
THREADS = 20
HELLO = {"messages": [("user", "hello")]}


class Speaker(BaseChatModel):
    """Says many words, one at a time and at once."""

    @property
    def _llm_type(self) -> str:
        return "speaker"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("word " * TOKENS))])

    def _stream(self, *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        for _n in range(TOKENS):
            yield ChatGenerationChunk(message=AIMessageChunk("word "))

    async def _astream(self, *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream():
            yield chunk


class State(TypedDict):
    """What the chain keeps."""

    x: int


def add_one(state: State) -> dict[str, int]:
    """Do next to nothing."""
    return {"x": state["x"] + 1}


def speaking(side: Side, saver: Any, *, is_async: bool) -> Any:
    """Return a graph of one node that lets the model speak."""
    model = Speaker()

    def speak(state: Any) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    async def aspeak(state: Any) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder = side.graph.StateGraph(side.graph.MessagesState)
    builder.add_node("speak", aspeak if is_async else speak)
    builder.add_edge("__start__", "speak")
    return builder.compile(checkpointer=saver)


def tokens(side: Side, saver: Any) -> Work:
    """Stream what a model says in a node; return the seconds for each token."""
    graph, numbers = speaking(side, saver, is_async=False), count()

    def talk() -> float:
        start = perf_counter()
        heard = 0
        for part, _ in graph.stream(HELLO, config(next(numbers)), stream_mode="messages"):
            heard += len(part.content)
        took = perf_counter() - start
        assert heard == len("word ") * TOKENS
        return took / TOKENS

    return talk


def tokens_on_a_loop(side: Side, saver: Any, *, is_async: bool) -> Work:
    """Do the same from an event loop, with the node on the loop or in a thread."""
    graph, numbers = speaking(side, saver, is_async=is_async), count()

    async def talk() -> float:
        start = perf_counter()
        heard = 0
        async for part, _ in graph.astream(HELLO, config(next(numbers)), stream_mode="messages"):
            heard += len(part.content)
        took = perf_counter() - start
        assert heard == len("word ") * TOKENS
        return took / TOKENS

    return lambda: asyncio.run(talk())


def updates(side: Side, saver: Any) -> Work:
    """Stream the updates of a chain of nodes; return the seconds for each update."""
    chain = side.graph.StateGraph(State)
    chain.add_sequence([(f"node_{n}", add_one) for n in range(NODES)])
    chain.add_edge("__start__", "node_0")
    graph, numbers = chain.compile(checkpointer=saver), count()

    def some_threads() -> float:
        start = perf_counter()
        seen = 0
        for _ in range(THREADS):
            seen += sum(1 for _ in graph.stream({"x": 0}, config(next(numbers)), stream_mode="updates"))
        took = perf_counter() - start
        assert seen == NODES * THREADS
        return took / (NODES * THREADS)

    return some_threads


def measure(quick: bool) -> Iterator[Row]:
    """Measure tokens, which no store takes part in, and updates on each store."""
    times = 3 if quick else 10
    on_loop, in_thread = partial(tokens_on_a_loop, is_async=True), partial(tokens_on_a_loop, is_async=False)
    for how, make in (("stream", tokens), ("astream", on_loop), ("astream, plain node", in_thread)):
        yield compare(f"a token in mode messages: {how}", "memory", make, times=times, at_least=None)
    for store in STORES:
        yield compare("a superstep in mode updates", store, updates, times=times, at_least=None)


if __name__ == "__main__":
    main({"streaming": measure})
