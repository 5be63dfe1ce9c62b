"""Middleware that goes on in a thread of its own, which does not know the graph: the gate holds there as well."""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.tools import tool

from tests.agents.gated import APPROVE, ASKED, REJECT, THREAD, Call, Effects, actions, agent_of, approval, resume, shown
from tests.agents.scripted import Scripted, calls
from waitpoint.agents.middleware import AgentMiddleware

PAY = ("pay", "c1", {"to": "ana", "amount": 5})
PAID = "paid 5 to ana"


class InThread(AgentMiddleware[Any, Any, Any]):
    """Gives each call a thread, as one would to limit its time."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Go on in a thread that was not told of anything."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(handler, request).result(20)


class InLoop(AgentMiddleware[Any, Any, Any]):
    """Gives each call an event loop of its own."""

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Go on in the loop of another thread."""
        with ThreadPoolExecutor(1) as pool:
            return await asyncio.wrap_future(pool.submit(lambda: asyncio.run(handler(request))))


@pytest.mark.parametrize("is_outside", [True, False], ids=["outside", "inside"])
@pytest.mark.parametrize("decision", [APPROVE, REJECT], ids=lambda d: d["type"])
def test_a_call_in_another_thread_waits_for_its_decision(
    decision: Any, is_outside: bool, mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    order = [InThread(), approval(mode)] if is_outside else [approval(mode), InThread()]
    model = Scripted(calls(PAY, ("read", "c2", {"path": "a"})), "done")
    agent = agent_of(effects, model, stored, *order)
    state = call(agent, ASKED, THREAD)
    assert actions(state) == [("pay", PAY[2])]
    assert PAID not in effects.lines()
    call(agent, resume(state, decision), THREAD)
    assert effects.lines().count(PAID) == (decision is APPROVE)
    assert effects.lines().count("read a") == 1
    assert [call_id for call_id, _, _ in shown(model)] == ["c1", "c2"]


@pytest.mark.parametrize("is_outside", [True, False], ids=["outside", "inside"])
@pytest.mark.parametrize("decision", [APPROVE, REJECT], ids=lambda d: d["type"])
def test_a_call_in_another_loop_waits_for_its_decision(
    decision: Any, is_outside: bool, mode: Any, effects: Effects, stored: Any
) -> None:
    order = [InLoop(), approval(mode)] if is_outside else [approval(mode), InLoop()]
    model = Scripted(calls(PAY), "done")
    agent = agent_of(effects, model, stored, *order)

    async def conversation() -> None:
        state = await agent.ainvoke(ASKED, THREAD)
        assert actions(state) == [("pay", PAY[2])]
        assert effects.lines() == []
        await agent.ainvoke(resume(state, decision), THREAD)

    asyncio.run(conversation())
    assert effects.lines() == ([PAID] if decision is APPROVE else [])
    assert [call_id for call_id, _, _ in shown(model)] == ["c1"]


class TwiceAtOnce(AgentMiddleware[Any, Any, Any]):
    """Runs each call twice at one moment."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Go on in two threads."""
        with ThreadPoolExecutor(2) as pool:
            first, second = pool.submit(handler, request), pool.submit(handler, request)
            return [first.result(20), second.result(20)][0]

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Go on in two tasks."""
        both = await asyncio.gather(handler(request), handler(request), return_exceptions=True)
        for each in both:
            if isinstance(each, BaseException):
                raise each
        return both[0]


@pytest.mark.parametrize("policy", [True, {"allowed_decisions": ["approve", "reject"], "idempotent": True}], ids=str)
def test_a_yes_counts_for_one_of_two_executions_that_begin_at_one_moment(
    policy: Any, mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    model = Scripted(calls(PAY), "done")
    agent = agent_of(effects, model, stored, approval(mode, pay=policy), TwiceAtOnce())
    state = call(agent, ASKED, THREAD)
    assert effects.lines() == []
    state = call(agent, resume(state, APPROVE), THREAD)
    assert effects.lines() == [PAID]
    assert actions(state) == [("pay", PAY[2])]
    call(agent, resume(state, REJECT), THREAD)
    assert effects.lines() == [PAID]


class Impatient(AgentMiddleware[Any, Any, Any]):
    """Breaks a call off and tries again."""

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Try, cancel, try again."""
        first = asyncio.ensure_future(handler(request))
        await BEGUN.pop().wait()
        first.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await first
        return await handler(request)


BEGUN: list[asyncio.Event] = []


def test_a_call_that_was_broken_off_is_not_run_again_under_its_one_approval(
    mode: Any, effects: Effects, stored: Any
) -> None:
    @tool
    async def mail(to: str) -> str:
        """Send a mail."""
        effects.witness.append(f"mailed {to}")
        begun.set()
        await asyncio.Event().wait()
        return "sent"

    begun = asyncio.Event()
    BEGUN[:] = [begun, begun]
    model = Scripted(calls(("mail", "c1", {"to": "ana"})), "done")
    agent = agent_of(effects, model, stored, approval(mode, mail=True), Impatient(), tools=[mail])

    async def conversation() -> Any:
        state = await agent.ainvoke(ASKED, THREAD)
        return await agent.ainvoke(resume(state, APPROVE), THREAD)

    state = asyncio.run(conversation())
    assert effects.lines() == ["mailed ana"]
    assert len(state["__interrupt__"]) == 1
