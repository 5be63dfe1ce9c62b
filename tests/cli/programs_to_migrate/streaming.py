"""A graph under asyncio with a store, streamed."""

import asyncio
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt


class Talk(TypedDict):
    messages: Annotated[list[Any], add_messages]


async def remember(state: Talk, runtime: Runtime) -> None:
    await runtime.store.aput(("talk",), "last", {"text": state["messages"][-1].text})


async def ask(state: Talk, runtime: Runtime) -> dict[str, Any]:
    item = await runtime.store.aget(("talk",), "last")
    answer = interrupt({"heard": item.value["text"]})
    return {"messages": [("ai", answer)]}


async def talk() -> list[Any]:
    builder = StateGraph(Talk).add_node("remember", remember).add_node("ask", ask)
    builder.set_entry_point("remember")
    builder.add_edge("remember", "ask")
    graph = builder.compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    config = {"configurable": {"thread_id": "1"}}
    seen: list[Any] = []
    async for part in graph.astream({"messages": [("user", "hi")]}, config, stream_mode="updates"):
        seen.append({k: v for k, v in part.items() if k != "__interrupt__"})
    async for part in graph.astream(Command(resume="hello"), config, stream_mode="values"):
        seen.append([m.text for m in part["messages"]])
    return seen


def main() -> list[Any]:
    return asyncio.run(talk())
