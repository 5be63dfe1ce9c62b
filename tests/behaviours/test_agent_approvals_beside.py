"""Approval beside the other parts of an agent: tools that fail or ask themselves, typed results, breakpoints, streams."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from pydantic import BaseModel

from tests.agents.posting import APPROVE, REJECT, START, Post, agent_with, answered, edit, results
from tests.agents.scripted import Scripted, calls
from tests.behaviours.conftest import Call
from tests.behaviours.graphs import thread
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, ToolErrorMiddleware
from waitpoint.agents.structured_output import ToolStrategy
from waitpoint.errors import UnknownInterruptError
from waitpoint.types import Command, interrupt

modes = pytest.mark.parametrize("mode", ["batched", "per_call"])
ONE = calls(("send", "s", {"to": "ann"}))


class Failing:
    """A tool that fails so many times, beside one that does not."""

    def __init__(self, times: int) -> None:
        self.did: list[str] = []

        @tool
        def send(to: str) -> str:
            """Send a mail."""
            self.did.append(to)
            if self.did.count(to) <= times:
                raise TimeoutError("slow")
            return f"sent to {to}"

        @tool
        def read(box: str) -> str:
            """Read a mail box."""
            self.did.append(box)
            return f"mails in {box}"

        self.tools = [send, read]


# --- tools that fail --------------------------------------------------------------------------------------------------


@modes
@pytest.mark.parametrize("decision", [APPROVE, edit("send", to="bob")], ids=lambda d: d["type"])
def test_a_tool_that_failed_is_run_again_under_the_same_decision(
    saver: Any, call: Call, mode: Any, decision: Any
) -> None:
    failing, config = Failing(1), thread()
    proposed = calls(("send", "s", {"to": "ann"}), ("read", "r", {"box": "in"}))
    agent = agent_with(
        saver, Scripted(proposed, "done"), failing.tools, {"send": True, "read": True}, interrupt_mode=mode
    )
    result = call(agent, START, config)
    with pytest.raises(TimeoutError):
        call(agent, answered(result, decision, APPROVE), config)
    state = call(agent, None, config)
    assert "__interrupt__" not in state
    whom = "ann" if decision is APPROVE else "bob"
    assert sorted(failing.did) == sorted([whom, whom, "in"])
    assert results(state)["s"][1].endswith(f"sent to {whom}")


class Around(AgentMiddleware[Any, Any, Any]):
    """Has no async form, so that it runs in a thread of its own."""

    def __init__(self) -> None:
        self.saw: list[str] = []

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except Exception as error:
            self.saw.append(repr(error))
            raise


@modes
@pytest.mark.parametrize("around", [[], [Around()]], ids=["plain", "wrapped"])
def test_what_a_tool_does_in_its_thread_is_recorded_though_a_call_beside_it_fails(
    saver: Any, mode: Any, around: list[Any]
) -> None:
    begun, go, did = threading.Event(), threading.Event(), list[str]()

    @tool
    async def send(to: str) -> str:
        """Send a mail."""
        await asyncio.to_thread(begun.wait, 10)
        if len(did) < 2:
            raise TimeoutError("slow")
        return f"sent to {to}"

    @tool
    def read(box: str) -> str:
        """Read a mail box."""
        begun.set()
        assert go.wait(10)
        did.append(box)
        return f"mails in {box}"

    async def failing() -> None:
        run = asyncio.create_task(agent.ainvoke(answered(result, APPROVE, APPROVE), config))
        await asyncio.to_thread(begun.wait, 10)
        for _ in range(500):  # so that the failure is known, and the call beside it cancelled
            await asyncio.sleep(0)
        go.set()
        with pytest.raises(TimeoutError):
            await run

    proposed = calls(("send", "s", {"to": "ann"}), ("read", "r", {"box": "in"}))
    config, model = thread(), Scripted(proposed, "done")
    agent = agent_with(saver, model, [send, read], {"send": True, "read": True}, *around, interrupt_mode=mode)
    result = asyncio.run(agent.ainvoke(START, config))
    asyncio.run(failing())
    assert did == ["in"]
    did.append("and now it works")
    state = asyncio.run(agent.ainvoke(None, config))
    assert "__interrupt__" not in state
    assert did == ["in", "and now it works"]
    assert results(state) == {"s": ("success", "sent to ann"), "r": ("success", "mails in in")}


@pytest.mark.parametrize("wrapped", [False, True])
def test_cancelling_a_run_cancels_its_tools_and_leaves_the_gated_ones_in_doubt(saver: Any, wrapped: bool) -> None:
    """B122: what middleware has no async form waits for is cancelled as well"""
    begun, ends = threading.Event(), list[str]()

    @tool
    async def send(to: str) -> str:
        """Send a mail."""
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise
        return "sent"

    async def cancelled() -> None:
        run = asyncio.create_task(agent.ainvoke(answered(result, APPROVE), config))
        await asyncio.to_thread(begun.wait, 10)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert ends == ["cancelled"]

    config, around = thread(), Around()
    agent = agent_with(
        saver, Scripted(ONE, "done"), [send], {"send": True}, *([around] if wrapped else []), interrupt_mode="per_call"
    )
    result = asyncio.run(agent.ainvoke(START, config))
    asyncio.run(cancelled())
    assert around.saw == []
    (question,) = asyncio.run(agent.ainvoke(None, config))["__interrupt__"]
    assert (question.value["type"], question.value["name"]) == ("in_doubt", "send")
    state = asyncio.run(agent.ainvoke(Command(resume={"type": "happened", "result": "sent"}), config))
    assert results(state) == {"s": ("success", "sent")}


@modes
def test_an_edited_call_whose_error_is_handled_tells_the_model_what_ran(saver: Any, call: Call, mode: Any) -> None:
    """B244"""
    failing, config = Failing(9), thread()
    handled = ToolErrorMiddleware(lambda error, request: f"failed for {request.tool_call['args']['to']}")
    agent = agent_with(saver, Scripted(ONE, "done"), failing.tools, {"send": True}, handled, interrupt_mode=mode)
    state = call(agent, answered(call(agent, START, config), edit("send", to="bob")), config)
    status, text = results(state)["s"]
    assert status == "error"
    assert text.endswith('Executed instead: send with arguments {"to":"bob"}.\n\nTool response:\nfailed for bob')


# --- tools that ask themselves ----------------------------------------------------------------------------------------


@modes
@pytest.mark.parametrize("decision", [APPROVE, edit("send", to="bob")], ids=lambda d: d["type"])
def test_an_approved_tool_may_ask_on_without_being_asked_about_again(
    saver: Any, call: Call, mode: Any, decision: Any
) -> None:
    asked: list[str] = []

    @tool
    def send(to: str) -> str:
        """Send a mail."""
        asked.append(to)
        return f"sent {interrupt(f'what to {to}?')} to {to}"

    config = thread()
    agent = agent_with(saver, Scripted(ONE, "done"), [send], {"send": True}, interrupt_mode=mode)
    result = call(agent, START, config)
    whom = "ann" if decision is APPROVE else "bob"
    (question,) = call(agent, answered(result, decision), config)["__interrupt__"]
    assert question.value == f"what to {whom}?"
    state = call(agent, Command(resume={question.id: "greetings"}), config)
    assert results(state)["s"][1].endswith(f"sent greetings to {whom}")
    assert asked == [whom, whom]
    assert "__interrupt__" not in state


def test_calls_that_ask_themselves_and_calls_that_are_asked_about_wait_together(saver: Any, call: Call) -> None:
    @tool
    def ask(what: str) -> str:
        """Ask."""
        return f"answer {interrupt(what)}"

    post, config = Post(), thread()
    proposed = calls(("ask", "a", {"what": "colour?"}), ("send", "s", {"to": "ann"}))
    approval = HumanInTheLoopMiddleware({"send": True}, interrupt_mode="per_call")
    agent = create_agent(Scripted(proposed, "done"), [*post.tools, ask], middleware=[approval], checkpointer=saver)
    own, gated = call(agent, START, config)["__interrupt__"]
    assert (own.value, gated.value["tool_call_id"]) == ("colour?", "s")
    state = call(agent, Command(resume={own.id: "blue", gated.id: REJECT}), config)
    assert results(state) == {"a": ("success", "answer blue"), "s": ("error", "no")}


# --- typed results ----------------------------------------------------------------------------------------------------


class Summary(BaseModel):
    """What came of it."""

    count: int


@modes
def test_the_tool_that_stands_for_a_typed_result_is_never_asked_about(saver: Any, call: Call, mode: Any) -> None:
    post, config = Post(), thread()
    proposed = calls(("send", "s", {"to": "ann"}), ("Summary", "x", {"count": 1}))
    agent = create_agent(
        Scripted(proposed),
        post.tools,
        middleware=[HumanInTheLoopMiddleware({"*": True}, interrupt_mode=mode)],
        checkpointer=saver,
        response_format=ToolStrategy(Summary),
    )
    result = call(agent, START, config)
    assert len(result["__interrupt__"]) == 1
    assert post.did == []
    state = call(agent, answered(result, APPROVE), config)
    assert post.did == ["send ann None"]
    assert state["structured_response"] == Summary(count=1)


# --- calls that cannot be read ----------------------------------------------------------------------------------------


@modes
def test_malformed_calls_of_a_turn_are_answered_beside_those_that_are_decided(
    saver: Any, call: Call, mode: Any
) -> None:
    broken = {"name": "send", "args": '{"to": "b', "id": "bad", "error": "cut off", "type": "invalid_tool_call"}
    proposed = AIMessage("", tool_calls=ONE.tool_calls, invalid_tool_calls=[broken])  # type: ignore[list-item]
    post, model, config = Post(), Scripted(proposed, "done"), thread()
    agent = post.agent(saver, model, {"send": True}, interrupt_mode=mode)
    result = call(agent, START, config)
    call(agent, answered(result, APPROVE), config)
    told = results(model.shown[1])  # type: ignore[arg-type]
    assert told["s"] == ("success", "sent to ann")
    assert told["bad"][0] == "error"
    assert "malformed or truncated" in told["bad"][1]
    assert post.did == ["send ann None"]


# --- what changes meanwhile -------------------------------------------------------------------------------------------


@modes
def test_an_answer_may_come_with_an_update_of_the_state(saver: Any, call: Call, mode: Any) -> None:
    post, model, config = Post(), Scripted(ONE, "done"), thread()
    agent = post.agent(saver, model, {"send": True}, interrupt_mode=mode)
    given = answered(call(agent, START, config), APPROVE)
    call(agent, Command(resume=given.resume, update={"messages": [HumanMessage("and hurry")]}), config)
    assert post.did == ["send ann None"]
    assert [m.type for m in model.shown[1]] == ["human", "ai", "tool", "human"]


@modes
def test_a_tool_that_is_gone_when_its_call_is_approved_is_told_to_the_model(saver: Any, call: Call, mode: Any) -> None:
    post, config = Post(), thread()
    result = call(post.agent(saver, Scripted(ONE), {"send": True}, interrupt_mode=mode), START, config)
    agent = agent_with(saver, Scripted("done"), post.tools[1:], {"draft": True}, interrupt_mode=mode)
    state = call(agent, answered(result, APPROVE), config)
    assert results(state) == {"s": ("error", "Error: send is not a valid tool, try one of [draft, read].")}
    assert post.did == []


@modes
def test_a_description_that_raises_fails_the_run_and_nothing_passes(saver: Any, call: Call, mode: Any) -> None:
    texts: list[str] = []
    post, config = Post(), thread()
    asks = {"allowed_decisions": ["approve"], "description": lambda *_: texts[0]}
    agent = post.agent(saver, Scripted(ONE, "done"), {"send": asks}, interrupt_mode=mode)
    with pytest.raises(IndexError):
        call(agent, START, config)
    assert post.did == []
    texts.append("send it?")
    result = call(agent, None, config)
    assert "send it?" in str(result["__interrupt__"][0].value)
    call(agent, answered(result, APPROVE), config)
    assert post.did == ["send ann None"]


# --- breakpoints and streams ------------------------------------------------------------------------------------------


@modes
def test_a_static_breakpoint_before_the_tools_stops_beside_the_question(saver: Any, call: Call, mode: Any) -> None:
    post, config = Post(), thread()
    agent = create_agent(
        Scripted(ONE, "done"),
        post.tools,
        middleware=[HumanInTheLoopMiddleware({"send": True}, interrupt_mode=mode)],
        checkpointer=saver,
        interrupt_before=["tools"],
    )
    state = call(agent, START, config)
    stops = []
    for _ in range(2):
        asked = "__interrupt__" in state
        stops.append("question" if asked else "breakpoint")
        state = call(agent, answered(state, APPROVE) if asked else None, config)
    assert stops == (["question", "breakpoint"] if mode == "batched" else ["breakpoint", "question"])
    assert post.did == ["send ann None"]
    assert state["messages"][-1].text == "done"


@modes
def test_a_stream_of_updates_ends_with_all_questions_and_goes_on_with_the_results(
    saver: Any, streamed: Call, mode: Any
) -> None:
    post, config = Post(), thread()
    proposed = calls(("send", "s", {"to": "ann"}), ("draft", "d", {"to": "bob"}))
    agent = post.agent(saver, Scripted(proposed, "done"), {"send": True, "draft": True}, interrupt_mode=mode)
    parts = streamed(agent, START, config, stream_mode="updates")
    assert [list(part) for part in parts] == [["model"], ["__interrupt__"]]
    questions = parts[-1]["__interrupt__"]
    assert isinstance(questions, tuple)
    assert questions == agent.get_state(config).interrupts
    assert len(questions) == (1 if mode == "batched" else 2)
    parts = streamed(agent, answered({"__interrupt__": questions}, REJECT, APPROVE), config, stream_mode="updates")
    told = [m for part in parts for m in (part.get("tools") or {}).get("messages", ())]
    assert sorted(m.tool_call_id for m in told) == ["d", "s"]
    assert [list(part) for part in parts if "model" in part] == [["model"]]


@modes
def test_a_stream_of_values_shows_the_questions_last(saver: Any, streamed: Call, mode: Any) -> None:
    post, config = Post(), thread()
    agent = post.agent(saver, Scripted(ONE, "done"), {"send": True}, interrupt_mode=mode)
    parts = streamed(agent, START, config, stream_mode="values")
    assert ["__interrupt__" in part for part in parts].count(True) == 1
    assert len(parts[-1]["__interrupt__"]) == 1


@modes
def test_an_output_has_the_questions_beside_the_state(saver: Any, call: Call, mode: Any) -> None:
    """B184"""
    post, config = Post(), thread()
    agent = post.agent(saver, Scripted(ONE, "done"), {"send": True}, interrupt_mode=mode)
    output = call(agent, START, config, version="v2")
    assert output.interrupts == agent.get_state(config).interrupts
    assert set(output.value) == {"messages"}
    output = call(agent, answered({"__interrupt__": output.interrupts}, APPROVE), config, version="v2")
    assert output.interrupts == ()
    assert results(output.value) == {"s": ("success", "sent to ann")}


# --- threads ----------------------------------------------------------------------------------------------------------


@modes
def test_questions_of_one_thread_are_not_answered_on_another(saver: Any, call: Call, mode: Any) -> None:
    post, model = Post(), Scripted(ONE, ONE, "done", "done")
    agent = post.agent(saver, model, {"send": True}, interrupt_mode=mode)
    first, second = thread(), thread()
    results_of = [call(agent, START, config) for config in (first, second)]
    ids = [state["__interrupt__"][0].id for state in results_of]
    assert ids[0] != ids[1]
    given = APPROVE if mode == "per_call" else {"decisions": [APPROVE]}
    with pytest.raises(UnknownInterruptError):
        call(agent, Command(resume={ids[0]: given}), second)
    assert post.did == []
    for question, config in zip(ids, (first, second), strict=True):
        assert call(agent, Command(resume={question: given}), config)["messages"][-1].text == "done"
    assert len(post.did) == 2
