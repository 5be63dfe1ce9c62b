"""What is known of an approved call that did not come to a plain result: a failure, a pause, or nothing at all."""

from __future__ import annotations

import asyncio
import threading
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from pydantic import BaseModel

from tests.agents.gated import (
    APPROVE,
    ASKED,
    REJECT,
    THREAD,
    Call,
    Effects,
    actions,
    agent_of,
    approval,
    ids,
    results,
    resume,
    shown,
)
from tests.agents.scripted import Scripted, calls, refuse_what_strict_providers_refuse
from waitpoint.agents import history
from waitpoint.agents.middleware import AgentMiddleware
from waitpoint.agents.structured_output import ToolStrategy
from waitpoint.errors import UnstorableValueError
from waitpoint.testing.faults import FaultySaver, Points
from waitpoint.types import Command, interrupt

PAY = ("pay", "c1", {"to": "ana", "amount": 5})
PAID = "paid 5 to ana"
MAIL = ("mail", "c1", {"to": "ana"})


def doubt(state: Any) -> dict[str, Any]:
    """Return the question of a call in doubt."""
    (question,) = state["__interrupt__"]
    assert question.value["type"] == "in_doubt"
    assert question.value["kind"] == "tool"
    found: dict[str, Any] = question.value
    return found


DOUBTS = {"happened": 1, "not_happened": 2, "run_again": 2}


@pytest.mark.parametrize("said", DOUBTS)
def test_a_call_that_was_broken_off_is_in_doubt(said: str, mode: Any, effects: Effects, stored: Any) -> None:
    broken: list[bool] = []

    @tool
    def mail(to: str) -> str:
        """Send a mail."""
        effects.witness.append(f"mailed {to}")
        if not broken:
            broken.append(True)
            raise KeyboardInterrupt
        return "sent"

    model = Scripted(calls(MAIL), "done")
    agent = agent_of(effects, model, stored, approval(mode, mail=True), tools=[mail])
    state = agent.invoke(ASKED, THREAD)
    with pytest.raises(KeyboardInterrupt):
        agent.invoke(resume(state, APPROVE), THREAD)
    state = agent.invoke(None, THREAD)
    assert doubt(state)["args"] == {"to": "ana"}
    assert effects.lines() == ["mailed ana"]
    with pytest.raises(ValueError):
        agent.invoke(Command(resume=APPROVE), THREAD)
    answer = {"type": said, "result": "sent, says the log"} if said == "happened" else {"type": said}
    state = agent.invoke(Command(resume=answer), THREAD)
    assert len(effects.lines()) == DOUBTS[said]
    assert shown(model) == [("c1", "success", "sent, says the log" if said == "happened" else "sent")]


def test_a_call_that_was_cancelled_is_in_doubt(mode: Any, effects: Effects, stored: Any) -> None:
    begun = asyncio.Event()

    @tool
    async def mail(to: str) -> str:
        """Send a mail."""
        effects.witness.append(f"mailed {to}")
        begun.set()
        await asyncio.Event().wait()
        return "never"

    model = Scripted(calls(MAIL), "done")
    agent = agent_of(effects, model, stored, approval(mode, mail=True), tools=[mail])

    async def cancelled() -> Any:
        state = await agent.ainvoke(ASKED, THREAD)
        running = asyncio.create_task(agent.ainvoke(resume(state, APPROVE), THREAD))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        state = await agent.ainvoke(None, THREAD)
        assert doubt(state)["name"] == "mail"
        return await agent.ainvoke(Command(resume={"type": "happened", "result": "sent"}), THREAD)

    assert results(asyncio.run(cancelled())) == [("c1", "success", "sent")]
    assert effects.lines() == ["mailed ana"]


def test_new_input_after_a_doubt_says_that_nothing_is_known(mode: Any, effects: Effects, stored: Any) -> None:
    @tool
    def mail(to: str) -> str:
        """Send a mail."""
        effects.witness.append(f"mailed {to}")
        raise KeyboardInterrupt

    model = Scripted(calls(MAIL), "all right")
    agent = agent_of(effects, model, stored, approval(mode, mail=True), tools=[mail])
    state = agent.invoke(ASKED, THREAD)
    with pytest.raises(KeyboardInterrupt):
        agent.invoke(resume(state, APPROVE), THREAD)
    waiting = agent.invoke(None, THREAD)
    agent.invoke({"messages": [("user", "leave it")]}, THREAD, on_pending="withdraw")
    assert shown(model) == [
        ("c1", "error", "The call of `mail` was interrupted. It is not known whether it took effect.")
    ]
    with pytest.raises(Exception, match="withdrawn"):
        agent.invoke(Command(resume={ids(waiting)[0]: {"type": "run_again"}}), THREAD)
    assert effects.lines() == ["mailed ana"]


def test_a_gated_tool_that_asks_itself_is_approved_once_and_in_no_doubt(
    mode: Any, call: Call, effects: Effects, reopened: Any
) -> None:
    @tool
    def mail(to: str) -> str:
        """Send a mail."""
        subject = interrupt(f"what about, {to}?")
        effects.witness.append(f"mailed {to} about {subject}")
        return "sent"

    model = Scripted(calls(MAIL), "done")

    def agent() -> Any:
        return agent_of(effects, model, reopened(), approval(mode, mail=True), tools=[mail])

    state = call(agent(), resume(call(agent(), ASKED, THREAD), APPROVE), THREAD)
    assert [q.value for q in state["__interrupt__"]] == ["what about, ana?"]
    assert call(agent(), None, THREAD)["__interrupt__"] == state["__interrupt__"]
    state = call(agent(), Command(resume="the feast"), THREAD)
    assert actions(state) == []
    assert effects.lines() == ["mailed ana about the feast"]
    assert shown(model) == [("c1", "success", "sent")]


def test_a_result_that_cannot_be_kept_is_no_reason_to_do_it_again(
    mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    class Handle:
        """Nothing that could be stored."""

    @tool
    def mail(to: str, call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Send a mail."""
        effects.witness.append(f"mailed {to}")
        return Command(update={"messages": [ToolMessage("sent", tool_call_id=call_id, artifact=Handle())]})

    model = Scripted(calls(MAIL), "done")
    agent = agent_of(effects, model, stored, approval(mode, mail=True), tools=[mail])
    given: Any = resume(call(agent, ASKED, THREAD), APPROVE)
    for _ in range(2):
        with pytest.raises(UnstorableValueError):
            call(agent, given, THREAD)
        given = None
    assert effects.lines() == ["mailed ana"]


# --- commands and replies that nobody expects -------------------------------------------------------------------------


def test_a_command_as_input_that_goes_to_the_tools_is_asked_about(
    mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    model = Scripted("hello", "done")
    agent = agent_of(effects, model, stored, approval(mode))
    call(agent, ASKED, THREAD)
    state = call(agent, Command(update={"messages": [calls(PAY)]}, goto="tools"), THREAD)
    assert actions(state) == [("pay", PAY[2])]
    assert effects.lines() == []
    call(agent, resume(state, REJECT), THREAD)
    assert effects.lines() == []


def test_an_answer_that_brings_other_arguments_along_is_no_answer_to_them(
    mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    model = Scripted(calls(PAY), "done")
    agent = agent_of(effects, model, stored, approval(mode))
    state = call(agent, ASKED, THREAD)
    (message,) = (m for m in state["messages"] if m.type == "ai")
    other = message.model_copy(
        update={"tool_calls": calls(("pay", "c1", {"to": "mallory", "amount": 5000})).tool_calls}
    )
    command = resume(state, APPROVE)
    state = call(agent, Command(resume=command.resume, update={"messages": [other]}), THREAD)
    assert effects.lines() == []
    assert actions(state) == [("pay", {"to": "mallory", "amount": 5000})]
    call(agent, resume(state, REJECT), THREAD)
    assert effects.lines() == []


@pytest.mark.parametrize("verdict", [False, True])
def test_an_answer_that_brings_another_call_along_is_no_answer_to_it(
    verdict: bool, mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    more = ("wipe", "c2", {"path": "a"})
    policies: dict[str, Any] = {"pay": True, "wipe": {"allowed_decisions": ["reject"], "when": lambda r: True}}
    if not verdict:
        policies["pay"] = {"allowed_decisions": ["approve"], "when": lambda r: r.tool_call["args"]["amount"] > 4}
        more = ("pay", "c2", {"to": "mallory", "amount": 5000})
    agent = agent_of(effects, Scripted(calls(PAY), "done"), stored, approval(mode, **policies))
    state = call(agent, ASKED, THREAD)
    (message,) = (m for m in state["messages"] if m.type == "ai")
    both = message.model_copy(update={"tool_calls": calls(PAY, more).tool_calls})
    command = resume(state, APPROVE)
    state = call(agent, Command(resume=command.resume, update={"messages": [both]}), THREAD)
    assert not [line for line in effects.lines() if line != PAID]


@pytest.mark.parametrize("policies", [{"pay": True, "read": True}, {"read": True}, {"pay": "deny"}], ids=str)
def test_rules_that_changed_while_a_call_waits_hold_for_what_has_not_run(
    policies: Any, mode: Any, call: Call, effects: Effects, reopened: Any
) -> None:
    model = Scripted(calls(PAY, ("read", "c2", {"path": "a"})), "done")
    before = agent_of(effects, model, reopened(), approval(mode, pay=True))
    state = call(before, ASKED, THREAD)
    ran = effects.lines()
    after = agent_of(effects, model, reopened(), approval(mode, **policies))
    state = call(after, resume(state, APPROVE), THREAD)
    if mode == "batched" and "read" in policies:
        assert "read a" not in effects.lines()
        while actions(state):
            state = call(after, resume(state, *[REJECT] * len(actions(state))), THREAD)
        assert "read a" not in effects.lines()
    if policies.get("pay") == "deny":
        assert PAID not in effects.lines()
    assert actions(state) == []
    assert [call_id for call_id, _, _ in shown(model)] == ["c1", "c2"]
    assert ran in ([], ["read a"])


class Replies(AgentMiddleware[Any, Any, Any]):
    """Answers in the model's place at first."""

    def __init__(self, reply: AIMessage) -> None:
        self.reply = reply

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Reply once."""
        return self.reply if len(request.messages) == 1 else handler(request)


ODD_IDS = {
    "the same twice": [("c1", "ana"), ("c1", "bob")],
    "none": [(None, "ana")],
    "none twice": [(None, "ana"), (None, "bob")],
    "empty": [("", "ana"), ("c2", "bob")],
}


@pytest.mark.parametrize("odd", ODD_IDS.values(), ids=ODD_IDS)
@pytest.mark.parametrize("message_id", [None, "m1"])
def test_calls_that_middleware_made_up_have_ids_of_their_own(
    message_id: Any, odd: Any, mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    made: Any = [{"name": "pay", "args": {"to": to, "amount": 5}, "id": i, "type": "tool_call"} for i, to in odd]
    model = Scripted("done")
    replies = Replies(AIMessage("", tool_calls=made, id=message_id))
    agent = agent_of(effects, model, stored, replies, approval(mode))
    state = call(agent, ASKED, THREAD)
    assert len(actions(state)) == len(odd)
    assert effects.lines() == []
    state = call(agent, resume(state, APPROVE, *[REJECT] * (len(odd) - 1)), THREAD)
    assert actions(state) == []
    assert len(effects.lines()) == 1
    assert len({call_id for call_id, _, _ in shown(model)}) == len(odd)
    refuse_what_strict_providers_refuse(state["messages"])


def test_a_tool_that_is_gone_when_the_answer_comes_leaves_the_other_calls(
    mode: Any, call: Call, effects: Effects, reopened: Any
) -> None:
    model = Scripted(calls(("wipe", "c1", {"path": "a"}), ("pay", "c2", PAY[2])), "done")
    rules = {"w*": True, "p*": True}
    before = agent_of(effects, model, reopened(), approval(mode, **rules))
    state = call(before, ASKED, THREAD)

    @tool
    def write(path: str) -> str:
        """Write a file."""
        return "written"

    after = agent_of(effects, model, reopened(), approval(mode, **rules), tools=[effects.pay, write])
    state = call(after, resume(state, APPROVE, APPROVE), THREAD)
    if mode == "batched":  # another turn is to be decided now
        assert effects.lines() == []
        assert actions(state) == [("pay", PAY[2])]
        state = call(after, resume(state, APPROVE), THREAD)
    assert effects.lines() == [PAID]
    assert [(i, status) for i, status, _ in shown(model)] == [("c1", "error"), ("c2", "success")]


@pytest.mark.parametrize("place", ["tools", "model"])
def test_an_answer_that_also_goes_somewhere_allows_one_execution(
    place: str, mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    model = Scripted(calls(PAY), *["done"] * 3)
    agent = agent_of(effects, model, stored, approval(mode))
    command = resume(call(agent, ASKED, THREAD), APPROVE)
    state = call(agent, Command(resume=command.resume, goto=place), THREAD)
    while actions(state):
        assert len(effects.lines()) <= 1
        state = call(agent, resume(state, *[REJECT] * len(actions(state))), THREAD)
    assert effects.lines() == [PAID]


class Sum(BaseModel):
    """What was paid."""

    amount: int


@pytest.mark.parametrize("decision", [APPROVE, REJECT], ids=lambda d: d["type"])
def test_a_typed_result_beside_a_gated_call_waits_for_the_decision(
    decision: Any, mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    model = Scripted(calls(PAY, ("Sum", "s1", {"amount": 5})), "done")
    agent = agent_of(effects, model, stored, approval(mode), response_format=ToolStrategy(Sum))
    state = call(agent, ASKED, THREAD)
    assert actions(state) == [("pay", PAY[2])]
    state = call(agent, resume(state, decision), THREAD)
    assert effects.lines() == ([PAID] if decision is APPROVE else [])
    assert state["structured_response"] == Sum(amount=5)
    refuse_what_strict_providers_refuse(history.valid(state["messages"]))


def test_the_late_result_of_a_call_that_took_too_long_closes_its_doubt(
    mode: Any, effects: Effects, stored: Any
) -> None:
    free, recorded = threading.Event(), threading.Event()

    @tool
    def mail(to: str) -> str:
        """Send a mail."""
        effects.witness.append(f"mailed {to}")
        assert free.wait(20)
        return "sent"

    points = Points(told=lambda name: recorded.set() if name == "after record done" else None)
    model = Scripted(calls(MAIL), "done")
    agent = agent_of(effects, model, FaultySaver(stored, points), approval(mode, mail=True), tools=[mail])
    state = agent.invoke(ASKED, THREAD)
    agent.step_timeout = 0.1
    with pytest.raises(TimeoutError):
        agent.invoke(resume(state, APPROVE), THREAD)
    agent.step_timeout = None
    assert doubt(agent.invoke(None, THREAD))["name"] == "mail"
    free.set()
    assert recorded.wait(20)
    state = agent.invoke(None, THREAD)
    while state.get("__interrupt__"):  # the question may be closed a moment after the record
        state = agent.invoke(None, THREAD)
    assert effects.lines() == ["mailed ana"]
    assert shown(model) == [("c1", "success", "sent")]
