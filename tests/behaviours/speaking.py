"""Chat models that say what a test tells them to, token by token, and graphs of nodes that speak."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from waitpoint.graph import START, MessagesState, StateGraph
from waitpoint.types import interrupt


class Speaker(BaseChatModel):
    """Says the tokens of the next text; a text that is a list of dicts is one of tool call chunks.

    `gate` is called with each token after it was said. An exception among the tokens is raised there.
    """

    texts: list[Any]
    named: str | None = None  # the id of its messages; without one LangChain names them
    gate: Any = None
    said: int = 0

    @property
    def _llm_type(self) -> str:
        return "speaker"

    def _next(self) -> Any:
        self.said += 1
        return self.texts[(self.said - 1) % len(self.texts)]

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any
    ) -> Iterator[ChatGenerationChunk]:
        text = self._next()
        for token in text.split(" ") if isinstance(text, str) else text:
            if isinstance(token, Exception):
                raise token
            calls = [] if isinstance(token, str) else [token]
            content = f"{token} " if isinstance(token, str) else ""
            name = None if self.named is None else f"{self.named}-{self.said}"
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=content, tool_call_chunks=calls, id=name))
            if run_manager is not None:
                run_manager.on_llm_new_token(content, chunk=chunk)
            yield chunk
            if self.gate is not None:
                self.gate(token)

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        name = None if self.named is None else f"{self.named}-{self.said + 1}"
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"{self._next()} ", id=name))])


class Whole(BaseChatModel):
    """A model that cannot stream."""

    text: str = "all at once"

    @property
    def _llm_type(self) -> str:
        return "whole"

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.text))])


TOOL_CALL = [
    {"name": "look", "args": "", "id": "call-1", "index": 0},
    {"name": None, "args": '{"at":', "id": None, "index": 0},
    {"name": None, "args": ' "sky"}', "id": None, "index": 0},
]


# --- graphs that speak ------------------------------------------------------------------------------------------------


def chain(saver: Any, *nodes: Any, **named: Any) -> Any:
    graph: Any = StateGraph(MessagesState)
    before = START
    for name, node in [*((n.__name__, n) for n in nodes), *named.items()]:
        graph.add_node(name, node).add_edge(before, name)
        before = name
    return graph.compile(checkpointer=saver)


def speaks(model: Any) -> Any:
    def speaks(state: Any) -> Any:
        return {"messages": [model.invoke("say")]}

    return speaks


def whole(state: Any) -> Any:
    return {"messages": [AIMessage("two words", id="a"), ToolMessage("tool", tool_call_id="c", id="t")]}


def asks(state: Any) -> Any:
    return {"messages": [HumanMessage(interrupt("ok?"), id="answer")]}


def fails(state: Any) -> Any:
    raise KeyError("broken")


EMPTY: dict[str, Any] = {"messages": []}


def nested(saver: Any, runs: list[str]) -> Any:
    def node(name: str) -> Any:
        def node(state: Any) -> Any:
            runs.append(name)
            return {"messages": [AIMessage(name, id=name)]}

        return node

    deepest = chain(None, c=node("c"))
    return chain(saver, one=chain(None, a=node("a")), two=chain(None, b=node("b"), deep=deepest), last=node("last"))
