"""Retries, told errors and limits beside the middleware that asks for approval, in both of its modes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool

from tests.agents.scripted import Scripted, calls
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    ModelRetryMiddleware,
    ToolCallLimitMiddleware,
    ToolErrorMiddleware,
    ToolRetryMiddleware,
)
from waitpoint.agents.tool_node.request import ToolRuntime
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.errors import ConfigError
from waitpoint.types import Command

THREAD = {"configurable": {"thread_id": "1"}}
START = {"messages": [("user", "mail them")]}
both = pytest.mark.parametrize("how", ["invoke", "ainvoke"])
modes = pytest.mark.parametrize("mode", ["batched", "per_call"])

APPROVE = {"type": "approve"}
REJECT = {"type": "reject", "message": "not now"}


@pytest.fixture
def saver(tmp_path: Path) -> Any:
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as opened:
        yield opened


class Mail:
    """A tool that fails so many times, and the idempotency keys of its attempts."""

    def __init__(self, failures: int = 0) -> None:
        self.sent: list[tuple[str, str | None]] = []

        @tool
        def send(to: str, runtime: ToolRuntime) -> str:
            """Send a mail."""
            self.sent.append((to, runtime.idempotency_key))
            if len(self.sent) <= failures:
                raise TimeoutError("slow")
            return f"sent to {to}"

        self.tools = [send]


def to(*names: str) -> Any:
    return calls(*(("send", f"c-{name}", {"to": name}) for name in names))


async def run(agent: Any, how: str, given: Any) -> Any:
    return agent.invoke(given, THREAD) if how == "invoke" else await agent.ainvoke(given, THREAD)


async def decided(agent: Any, how: str, state: Any, mode: str, *decisions: Any) -> Any:
    """Answer what waits: one batch of decisions, or each question by its id."""
    questions = state["__interrupt__"]
    if mode == "batched":
        return await run(agent, how, Command(resume={"decisions": list(decisions)}))
    by_id = {question.id: decision for question, decision in zip(questions, decisions, strict=True)}
    return await run(agent, how, Command(resume=by_id))


def asked(state: Any, mode: str) -> list[str]:
    """Return whom the questions are about."""
    if mode == "batched":
        return [action["args"]["to"] for q in state["__interrupt__"] for action in q.value["action_requests"]]
    return [question.value["args"]["to"] for question in state["__interrupt__"]]


def results(state: Any) -> list[tuple[str, str]]:
    return [(m.status, m.text) for m in state["messages"] if isinstance(m, ToolMessage)]


def approval(mode: Any) -> HumanInTheLoopMiddleware:
    return HumanInTheLoopMiddleware({"send": True}, interrupt_mode=mode)


@both
@modes
async def test_one_approval_covers_all_attempts_of_a_call(mode: str, how: str, saver: Any) -> None:
    mail, model = Mail(failures=2), Scripted(to("ana"), "done")
    middleware = [approval(mode), ToolRetryMiddleware(initial_delay=0)]
    agent = create_agent(model, mail.tools, middleware=middleware, checkpointer=saver)
    state = await run(agent, how, START)
    assert mail.sent == []
    state = await decided(agent, how, state, mode, APPROVE)
    assert "__interrupt__" not in state
    assert results(state) == [("success", "sent to ana")]
    assert len(mail.sent) == 3
    assert len({key for _, key in mail.sent}) == 1
    assert mail.sent[0][1]


@both
@modes
async def test_a_rejected_call_is_neither_run_nor_retried(mode: str, how: str, saver: Any) -> None:
    mail, model = Mail(), Scripted(to("ana"), "done")
    middleware = [approval(mode), ToolErrorMiddleware(lambda e, r: "down"), ToolRetryMiddleware(initial_delay=0)]
    agent = create_agent(model, mail.tools, middleware=middleware, checkpointer=saver)
    state = await decided(agent, how, await run(agent, how, START), mode, REJECT)
    assert results(state) == [("error", "not now")]
    assert mail.sent == []


@both
@modes
async def test_a_wrong_decision_is_raised_and_can_be_corrected(mode: str, how: str, saver: Any) -> None:
    mail, model = Mail(failures=1), Scripted(to("ana"), "done")
    middleware = [approval(mode), ToolErrorMiddleware(lambda e, r: "down"), ToolRetryMiddleware(initial_delay=0)]
    agent = create_agent(model, mail.tools, middleware=middleware, checkpointer=saver)
    state = await run(agent, how, START)
    edit = {"type": "edit", "edited_action": {"name": "send", "args": {"to": ["no", "name"]}}}
    for wrong in ({"type": "aprove"}, edit):
        with pytest.raises(ValueError):
            await decided(agent, how, state, mode, wrong)
    assert mail.sent == []
    assert results(await decided(agent, how, state, mode, APPROVE)) == [("success", "sent to ana")]


@pytest.mark.parametrize("outer", [ToolRetryMiddleware(), ToolErrorMiddleware(lambda e, r: None)], ids=lambda m: m.name)
def test_what_must_lie_inside_the_approval_is_refused_outside_of_it(outer: Any) -> None:
    with pytest.raises(ConfigError, match=outer.name) as refused:
        create_agent(Scripted(), Mail().tools, middleware=[outer, approval("per_call")])
    assert "HumanInTheLoopMiddleware" in str(refused.value)


@both
@modes
async def test_nobody_is_asked_about_calls_that_a_limit_refuses(mode: str, how: str, saver: Any) -> None:
    mail, model = Mail(), Scripted(to("ana", "bob", "cy"), "done")
    middleware = [approval(mode), ToolCallLimitMiddleware(tool_name="send", run_limit=2)]
    agent = create_agent(model, mail.tools, middleware=middleware, checkpointer=saver)
    state = await run(agent, how, START)
    assert asked(state, mode) == ["ana", "bob"]
    state = await decided(agent, how, state, mode, APPROVE, REJECT)
    assert [name for name, _ in mail.sent] == ["ana"]
    assert sorted(status for status, _ in results(state)) == ["error", "error", "success"]
    assert state["messages"][-1].text == "done"


@both
@modes
async def test_a_limit_outside_the_approval_holds_for_approved_calls_too(mode: str, how: str, saver: Any) -> None:
    mail, model = Mail(), Scripted(to("ana", "bob"), "done")
    middleware = [ToolCallLimitMiddleware(run_limit=1), approval(mode)]
    agent = create_agent(model, mail.tools, middleware=middleware, checkpointer=saver)
    state = await run(agent, how, START)
    state = await decided(agent, how, state, mode, *[APPROVE for _ in asked(state, mode)])
    assert [name for name, _ in mail.sent] == ["ana"]
    assert sorted(status for status, _ in results(state)) == ["error", "success"]


@both
@modes
async def test_an_end_by_a_limit_asks_nothing_and_leaves_a_valid_history(mode: str, how: str, saver: Any) -> None:
    mail, model = Mail(), Scripted(to("ana", "bob"), "hello")
    middleware = [approval(mode), ToolCallLimitMiddleware(run_limit=1, exit_behavior="end")]
    agent = create_agent(model, mail.tools, middleware=middleware, checkpointer=saver)
    state = await run(agent, how, START)
    assert "__interrupt__" not in state
    assert state["messages"][-1].text == "Tool calls are limited to 1 in a run."
    assert (await run(agent, how, {"messages": [("user", "hi")]}))["messages"][-1].text == "hello"
    assert mail.sent == []


@both
@modes
async def test_retries_and_a_limit_of_the_model_do_not_ask_or_call_again_on_resume(
    mode: str, how: str, saver: Any
) -> None:
    mail, model = Mail(), Scripted(TimeoutError("slow"), to("ana"), "done")
    middleware = [ModelCallLimitMiddleware(run_limit=2), approval(mode), ModelRetryMiddleware(initial_delay=0)]
    agent = create_agent(model, mail.tools, middleware=middleware, checkpointer=saver)
    state = await decided(agent, how, await run(agent, how, START), mode, APPROVE)
    assert state["messages"][-1].text == "done"  # a turn counts once, however often its call was repeated
    assert len(model.shown) == 3
    assert [name for name, _ in mail.sent] == ["ana"]
