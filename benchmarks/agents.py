"""Agents beside LangChain's: a long conversation whose every turn waits for a yes, and one turn of fifty calls.

The model is a script that answers at once, so that what is measured is the runtime's own share.
"""

from __future__ import annotations

import importlib
import random
import statistics
import string
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from pydantic import Field

from benchmarks.measure import Row, clear_away, compare, main
from benchmarks.sides import OURS, PEER, STORES, Side, config

COMPARED = 20  # turns at either end
TEXT_BYTES = 1000
CALLS = 50
AGENTS = {"waitpoint": "waitpoint", "langgraph": "langchain"}  # whose agents run on which side


class Caller(BaseChatModel):
    """Calls `send` as often as it is told to, then says that it is done."""

    at_once: int = 1
    texts: Any = Field(default_factory=lambda: random.Random(1))
    said: int = 0

    @property
    def _llm_type(self) -> str:
        return "caller"

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        """Need no tools to call them."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        if isinstance(messages[-1], ToolMessage):
            reply = AIMessage("done")
        else:
            named = range(self.said, self.said + self.at_once)
            calls = [{"name": "send", "id": f"call_{n}", "args": {"text": self.text()}} for n in named]
            self.said += self.at_once
            reply = AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def text(self) -> str:
        """Return random letters, which compress little."""
        return "".join(self.texts.choices(string.ascii_lowercase, k=TEXT_BYTES))


@tool
def send(text: str) -> str:
    """Send a text."""
    return f"sent {len(text)} letters"


def agent(side: Side, saver: Any, model: Caller) -> Any:
    """Return an agent whose every call of `send` waits for a decision of its own."""
    name = AGENTS[side.name]
    made = importlib.import_module(f"{name}.agents").create_agent
    approval = importlib.import_module(f"{name}.agents.middleware").HumanInTheLoopMiddleware
    gate = approval(interrupt_on={"send": True}, interrupt_mode="per_call")
    return made(model, [send], middleware=[gate], checkpointer=saver)


@dataclass
class Talk:
    """One side's conversation: its agent, and what each turn took."""

    side: Side
    graph: Any
    model: Caller
    seconds: list[float] = field(default_factory=list)
    payload: int = 0

    def turn(self) -> None:
        """Say something, approve the call that comes of it, and note how long both took."""
        said = self.model.text()
        start = perf_counter()
        asked = self.graph.invoke({"messages": [("user", said)]}, config("talk"))
        answered = self.graph.invoke(self.side.types.Command(resume={"type": "approve"}), config("talk"))
        self.seconds.append(perf_counter() - start)
        self.payload += 2 * TEXT_BYTES + len("sent 1000 letters") + len("done")
        assert asked["__interrupt__"][0].value["name"] == "send"
        assert len(answered["messages"]) == 4 * len(self.seconds)

    @property
    def growth(self) -> float:
        """How many times as long as the first turns the last ones took."""
        return statistics.median(self.seconds[-COMPARED:]) / statistics.median(self.seconds[:COMPARED])


def conversation(quick: bool) -> Iterator[Row]:
    """Measure a conversation on each store: once, since the peer takes minutes."""
    turns = 60 if quick else 300
    for store in STORES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with ExitStack() as stack:
                talks = []
                for side in (OURS, PEER):
                    model = Caller()
                    talks.append(Talk(side, agent(side, stack.enter_context(side.saver(store, folder)), model), model))
                for _ in range(turns):
                    for talk in talks:
                        clear_away()
                        talk.turn()
            ours, peer = talks
            middle = [statistics.median(t.seconds) for t in talks]
            yield Row(f"{turns} gated turns of an agent: one turn", store, *middle)
            yield Row(
                f"{turns} gated turns: last / first {COMPARED}", store, ours.growth, peer.growth, False, at_most=1.3
            )
            if store != "memory":
                sizes = [sum(p.stat().st_size for p in folder.glob(f"{t.side.name}.db*")) / t.payload for t in talks]
                yield Row(f"{turns} gated turns: bytes / payload", store, *sizes, False, at_most=4)


def fifty_calls(quick: bool) -> Iterator[Row]:
    """Measure one turn of fifty calls, each waiting by itself: asked, answered all at once, and run."""

    def make(side: Side, saver: Any) -> Any:
        numbers = iter(range(10_000))

        def turn() -> float:
            graph, thread = agent(side, saver, Caller(at_once=CALLS)), config(next(numbers))
            start = perf_counter()
            asked = graph.invoke({"messages": [("user", "send all")]}, thread)
            answers = {i.id: {"type": "approve"} for i in asked["__interrupt__"]}
            done = graph.invoke(side.types.Command(resume=answers), thread)
            took = perf_counter() - start
            assert len(answers) == CALLS
            assert len(done["messages"]) == CALLS + 3
            return took

        return turn

    for store in STORES:
        yield compare(f"a turn of {CALLS} gated calls", store, make, times=3 if quick else 10, at_least=None, warm=1)


if __name__ == "__main__":
    main({"agent_conversation": conversation, "agent_fifty_calls": fifty_calls})
