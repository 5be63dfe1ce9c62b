"""Event streams of agents: the loop of the founding document, with decisions in both modes, and subagents."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool

from tests.behaviours.graphs import thread
from tests.behaviours.speaking import TOOL_CALL, Speaker
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import HumanInTheLoopMiddleware
from waitpoint.types import Command


class Caller(Speaker):
    """A speaker that may be given tools."""

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"{at}: blue"


def watcher(saver: Any, mode: Any) -> Any:
    gate = HumanInTheLoopMiddleware({"look": True}, interrupt_mode=mode)
    model = Caller(texts=[TOOL_CALL, "it is blue"])
    return create_agent(model, [look], middleware=[gate], checkpointer=saver, name="watcher")


def answers(questions: Any, mode: str) -> dict[str, Any]:
    decision = {"type": "approve"}
    return {q.interrupt_id: decision if mode == "per_call" else {"decisions": [decision]} for q in questions}


@pytest.mark.parametrize("mode", ["batched", "per_call"])
def test_an_agent_is_followed_over_its_decisions(saver: Any, mode: str) -> None:
    """founding document: streaming"""
    agent, config, said = watcher(saver, mode), thread(), []
    given: Any = {"messages": [("user", "what colour is the sky?")]}
    while True:
        run = agent.stream_events(given, config, version="v3")
        said += [(list(message.text), message.tool_calls.get()) for message in run.messages]
        if not run.interrupted:
            break
        given = Command(resume=answers(run.interrupts, mode))
    called = {"type": "tool_call", "id": "call-1", "name": "look", "args": {"at": "sky"}}
    assert said == [([], [called]), (["it ", "is ", "blue "], [])]
    assert [m.content for m in run.output["messages"] if isinstance(m, ToolMessage)] == ["sky: blue"]


@pytest.mark.parametrize("mode", ["batched", "per_call"])
async def test_an_agent_is_followed_on_an_event_loop(saver: Any, mode: str) -> None:
    """founding document: streaming"""
    agent, config, said = watcher(saver, mode), thread(), []
    given: Any = {"messages": [("user", "what colour is the sky?")]}
    while True:
        run = await agent.astream_events(given, config, version="v3")
        async for message in run.messages:
            said += [token async for token in message.text]
        if not await run.interrupted():
            break
        given = Command(resume=answers(await run.interrupts(), mode))
    assert said == ["it ", "is ", "blue "]
    assert (await run.output())["messages"][-1].content == "it is blue "


def test_mode_messages_names_the_agent(saver: Any) -> None:
    """B173, B272"""
    parts = list(watcher(saver, "batched").stream({"messages": [("user", "?")]}, thread(), stream_mode="messages"))
    assert {metadata["lc_agent_name"] for _, metadata in parts} == {"watcher"}


def test_a_subagent_has_a_handle_and_its_question_is_the_runs(saver: Any) -> None:
    """B198"""
    inner = watcher(None, "per_call")

    @tool("look")
    def delegate(at: str) -> str:
        """Have somebody look."""
        return str(inner.invoke({"messages": [("user", at)]})["messages"][-1].content)

    agent = create_agent(Caller(texts=[TOOL_CALL, "they say blue"]), [delegate], checkpointer=saver)
    config = thread()
    run = agent.stream_events({"messages": [("user", "?")]}, config, version="v3")
    (handle,) = run.subgraphs
    assert (handle.graph_name, handle.status) == ("watcher", "interrupted")
    assert handle.interrupts == run.interrupts
    run = agent.stream_events(Command(resume=answers(run.interrupts, "per_call")), config, version="v3")
    told = [(h.graph_name, [list(message.text) for message in h.messages]) for h in run.subgraphs]
    assert told == [("watcher", [["it ", "is ", "blue "]])]
    assert [list(message.text) for message in run.messages] == [["they ", "say ", "blue "]]
