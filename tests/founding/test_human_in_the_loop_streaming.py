"""Human-in-the-loop while the model speaks: tokens up to the question, and on from the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk

from tests.agents.scripted import Scripted, calls
from tests.founding.reviewed import ARCHIVE, DELETE, TASK, Office, agent_of
from tests.founding.saving import CONFIG, Saver
from waitpoint.types import Command

INPUT = {"messages": [{"role": "user", "content": "Delete old records from the database"}]}
APPROVE = {"type": "approve"}
LOOKING = calls(("execute_sql", "call_sql", DELETE), text="Let me delete them.")
BOTH = calls(("write_file", "call_write", ARCHIVE), ("execute_sql", "call_sql", DELETE), text="One moment.")


class Speaking(Scripted):
    """Says each reply word by word, its tool calls last."""

    def _stream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        reply = self._generate(messages).generations[0].message
        for word in reply.text.split():
            yield ChatGenerationChunk(message=AIMessageChunk(f"{word} "))
        chunks: Any = [
            {"name": c["name"], "args": json.dumps(c["args"]), "id": c["id"], "index": n}
            for n, c in enumerate(reply.tool_calls)  # type: ignore[attr-defined]
        ]
        yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=chunks))


class Seen:
    """What a consumer saw of a run: tokens by message, then the questions it rests with, and the state."""

    def __init__(self, tokens: list[list[str]], interrupted: bool, interrupts: Any, output: Any) -> None:
        self.tokens = [said for said in tokens if said]  # the results of tools are messages too
        self.interrupted = interrupted
        self.interrupts = interrupts
        self.output = output


def blocking(agent: Any, given: Any) -> Seen:
    stream = agent.stream_events(given, CONFIG, version="v3")
    tokens = [list(message.text) for message in stream.messages]
    return Seen(tokens, stream.interrupted, stream.interrupts, stream.output)


def asynchronous(agent: Any, given: Any) -> Seen:
    async def consumed() -> Seen:
        stream = await agent.astream_events(given, CONFIG, version="v3")
        tokens = [[token async for token in message.text] async for message in stream.messages]
        return Seen(tokens, await stream.interrupted(), await stream.interrupts(), await stream.output())

    return asyncio.run(consumed())


ways = pytest.mark.parametrize("way", [blocking, asynchronous])


@ways
def test_tokens_come_up_to_the_interrupt_and_on_from_the_decision(saver: Saver, way: Any) -> None:
    office = Office()
    agent = agent_of(saver, office, Speaking(LOOKING, "All old records are gone."))
    seen = way(agent, INPUT)
    assert seen.tokens == [["Let ", "me ", "delete ", "them. "]]
    assert seen.interrupted
    (asked,) = seen.interrupts
    assert [a["name"] for a in asked.payload["action_requests"]] == ["execute_sql"]
    assert asked.interrupt_id == agent.get_state(CONFIG).interrupts[0].id
    assert office.did == []

    seen = way(agent, Command(resume={"decisions": [APPROVE]}))
    assert seen.tokens[-1] == ["All ", "old ", "records ", "are ", "gone. "]
    assert not seen.interrupted
    assert seen.interrupts == []
    assert office.did == [("execute_sql", DELETE)]
    assert seen.output["messages"][-1].text == "All old records are gone. "


@ways
def test_each_gated_call_is_an_entry_to_be_answered_by_its_id(saver: Saver, way: Any) -> None:
    office = Office()
    agent = agent_of(saver, office, Speaking(BOTH, "Archived and deleted."), interrupt_mode="per_call")
    seen = way(agent, TASK)
    assert seen.tokens == [["One ", "moment. "]]
    assert sorted(i.payload["name"] for i in seen.interrupts) == ["execute_sql", "write_file"]
    assert {i.payload["type"] for i in seen.interrupts} == {"tool_approval"}
    decisions = {interrupt.interrupt_id: APPROVE for interrupt in seen.interrupts}
    seen = way(agent, Command(resume=decisions))
    assert seen.tokens[-1] == ["Archived ", "and ", "deleted. "]
    assert not seen.interrupted
    assert sorted(office.names) == ["execute_sql", "write_file"]


@ways
def test_entries_of_a_stream_are_the_interrupts_themselves(saver: Saver, way: Any) -> None:
    """There they lack the response schema; here a client can draw its form from either."""
    agent = agent_of(saver, Office(), Speaking(BOTH), interrupt_mode="per_call")
    seen = way(agent, TASK)
    assert tuple(seen.interrupts) == agent.get_state(CONFIG).interrupts
    assert all(i.response_schema["oneOf"] for i in seen.interrupts)


@ways
def test_snapshots_of_the_state_show_the_interrupt(saver: Saver, way: Any) -> None:
    agent = agent_of(saver, Office(), Speaking(LOOKING))
    if way is blocking:
        run = agent.stream_events(INPUT, CONFIG, version="v3")
        values, interrupts = list(run.values), run.interrupts
    else:

        async def consumed() -> Any:
            run = await agent.astream_events(INPUT, CONFIG, version="v3")
            return [snapshot async for snapshot in run.values], await run.interrupts()

        values, interrupts = asyncio.run(consumed())
    assert [m.type for m in values[-1]["messages"]] == ["human", "ai"]
    assert values[-1]["messages"][-1].tool_calls[0]["args"] == DELETE
    assert len(interrupts) == 1
