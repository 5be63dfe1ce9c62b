"""Agents called as tools: their questions surface at the top, once, and the rules of the outer agent hold inside."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool

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
    edit,
    ids,
    resume,
    shown,
)
from tests.agents.scripted import Scripted, calls
from waitpoint.agents import create_agent
from waitpoint.errors import AlreadyAnsweredError
from waitpoint.types import Command

PAY = ("pay", "p1", {"to": "ana", "amount": 5})
DELEGATE = ("clerk", "c1", {"task": "pay ana"})
PAID = "paid 5 to ana"


def as_tool(name: str, agent: Any) -> BaseTool:
    """Return a tool that runs an agent and gives its last words."""

    @tool(name)
    def delegated(task: str) -> str:
        """Let another agent do it."""
        return str(agent.invoke({"messages": [("user", task)]})["messages"][-1].text)

    return delegated


def as_async_tool(name: str, agent: Any) -> BaseTool:
    """Return a tool that awaits an agent and gives its last words."""

    @tool(name)
    async def delegated(task: str) -> str:
        """Let another agent do it."""
        return str((await agent.ainvoke({"messages": [("user", task)]}))["messages"][-1].text)

    return delegated


def hired(effects: Effects, model: Scripted, *middleware: Any, name: str = "clerk") -> Any:
    """Return an inner agent, which inherits the saver."""
    return create_agent(model, effects.tools, middleware=middleware, name=name)


@pytest.mark.parametrize("inner_mode", ["batched", "per_call", None])
def test_the_rules_of_the_outer_agent_hold_inside_for_tools_of_the_same_name(
    inner_mode: Any, mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    inner_model, outer_model = Scripted(calls(PAY), "paid"), Scripted(calls(DELEGATE), "done")
    inner = [approval(inner_mode, read=True)] if inner_mode else []
    clerk = as_tool("clerk", hired(effects, inner_model, *inner))
    boss = agent_of(effects, outer_model, stored, approval(mode, pay=True), tools=[clerk, effects.pay])
    state = call(boss, ASKED, THREAD)
    assert actions(state) == [("pay", PAY[2])]
    assert effects.lines() == []
    state = call(boss, resume(state, REJECT), THREAD)
    assert actions(state) == []
    assert effects.lines() == []
    assert shown(inner_model) == [("p1", "error", "no")]
    assert shown(outer_model) == [("c1", "success", "paid")]


INNER_RULES: dict[str, Any] = {
    "free": {"pay": False},
    "all free": {"*": False},
    "a predicate that lets all pass": {"pay": {"allowed_decisions": ["approve"], "when": lambda request: False}},
    "everything allowed": {"pay": True},
}


@pytest.mark.parametrize("outer", ["pay", "*"])
@pytest.mark.parametrize("rule", INNER_RULES)
def test_the_strictest_rule_holds_for_a_tool_that_inner_and_outer_agents_have(
    rule: str, outer: str, mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    policies = {outer: {"allowed_decisions": ["reject", "approve"]}, "clerk": False}
    inner_model, outer_model = Scripted(calls(PAY), "settled"), Scripted(calls(DELEGATE), "done")
    clerk = as_tool("clerk", hired(effects, inner_model, approval(mode, **INNER_RULES[rule])))
    boss = agent_of(effects, outer_model, stored, approval(mode, **policies), tools=[clerk, effects.pay])
    state = call(boss, ASKED, THREAD)
    assert actions(state) == [("pay", PAY[2])]
    assert effects.lines() == []
    call(boss, resume(state, REJECT), THREAD)
    assert effects.lines() == []
    assert shown(inner_model) == [("p1", "error", "no")]


@pytest.mark.parametrize("inner_first", [True, False])
def test_of_two_rules_that_ask_the_one_that_lets_nothing_run_holds(
    inner_first: bool, mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    only_a_no, anything = {"allowed_decisions": ["reject"]}, True
    inner, outer = (only_a_no, anything) if inner_first else (anything, only_a_no)
    inner_model, outer_model = Scripted(calls(PAY), "settled"), Scripted(calls(DELEGATE), "done")
    clerk = as_tool("clerk", hired(effects, inner_model, approval(mode, pay=inner)))
    boss = agent_of(effects, outer_model, stored, approval(mode, pay=outer), tools=[clerk, effects.pay])
    state = call(boss, ASKED, THREAD)
    for wish in (APPROVE, edit("pay", to="ana", amount=1)):
        with pytest.raises(ValueError):
            call(boss, resume(state, wish), THREAD)
    call(boss, resume(state, REJECT), THREAD)
    assert effects.lines() == []
    assert shown(inner_model) == [("p1", "error", "no")]


def test_what_an_outer_agent_says_of_every_tool_is_not_about_tools_that_only_the_inner_one_has(
    mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    inner_model, outer_model = Scripted(calls(PAY), "settled"), Scripted(calls(DELEGATE), "done")
    clerk = as_tool("clerk", hired(effects, inner_model))
    boss = agent_of(
        effects, outer_model, stored, approval(mode, **{"*": True, "clerk": False}), tools=[clerk, effects.read]
    )
    assert actions(call(boss, ASKED, THREAD)) == []
    assert effects.lines() == [PAID]


def test_an_edit_in_an_inner_agent_does_not_reach_a_tool_that_the_outer_one_keeps(
    mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    inner_model, outer_model = (
        Scripted(calls(("read", "p1", {"path": "a"})), "settled"),
        Scripted(calls(DELEGATE), "done"),
    )
    clerk = as_tool("clerk", hired(effects, inner_model, approval(mode, read=True)))
    only_a_no = approval(mode, pay={"allowed_decisions": ["reject"]})
    boss = agent_of(effects, outer_model, stored, only_a_no, tools=[clerk, effects.pay])
    state = call(boss, ASKED, THREAD)
    with pytest.raises(ValueError):
        call(boss, resume(state, edit("pay", to="ana", amount=5)), THREAD)
    assert effects.lines() == []
    call(boss, resume(state, APPROVE), THREAD)
    assert effects.lines() == ["read a"]


def test_what_the_outer_agent_denies_is_denied_inside(mode: Any, call: Call, effects: Effects, stored: Any) -> None:
    inner_model, outer_model = Scripted(calls(PAY), "could not"), Scripted(calls(DELEGATE), "done")
    clerk = as_tool("clerk", hired(effects, inner_model))
    boss = agent_of(effects, outer_model, stored, approval(mode, pay="deny"), tools=[clerk, effects.pay])
    state = call(boss, ASKED, THREAD)
    assert actions(state) == []
    assert effects.lines() == []
    assert [status for _, status, _ in shown(inner_model)] == ["error"]


@pytest.mark.parametrize("decision", [APPROVE, REJECT, edit("pay", to="ana", amount=4)], ids=lambda d: d["type"])
def test_a_subagents_question_surfaces_once_and_its_answer_reaches_it(
    decision: Any, mode: Any, call: Call, effects: Effects, reopened: Any
) -> None:
    inner_model, outer_model = Scripted(calls(PAY), "settled"), Scripted(calls(DELEGATE), "done")

    def boss() -> Any:
        clerk = as_tool("clerk", hired(effects, inner_model, approval(mode)))
        return agent_of(effects, outer_model, reopened(), tools=[clerk])

    state = call(boss(), ASKED, THREAD)
    assert actions(state) == [("pay", PAY[2])]
    (question,) = state["__interrupt__"]
    assert [q.id for q in reopened().pending()] == [question.id]
    for wrong in ({"type": "aprove"}, edit("wipe", path="a")):
        with pytest.raises(ValueError):
            call(boss(), resume(state, wrong), THREAD)
    state = call(boss(), resume(state, decision), THREAD)
    assert actions(state) == []
    assert effects.lines() == {"approve": [PAID], "reject": [], "edit": ["paid 4 to ana"]}[decision["type"]]
    assert shown(outer_model) == [("c1", "success", "settled")]
    assert (len(inner_model.shown), len(outer_model.shown)) == (2, 2)
    with pytest.raises(AlreadyAnsweredError):
        call(boss(), Command(resume={question.id: APPROVE if mode == "per_call" else {"decisions": [APPROVE]}}), THREAD)


def test_an_awaited_subagent_asks_too(mode: Any, effects: Effects, stored: Any) -> None:
    import asyncio

    inner_model, outer_model = Scripted(calls(PAY), "settled"), Scripted(calls(DELEGATE), "done")
    clerk = as_async_tool("clerk", hired(effects, inner_model, approval(mode)))
    boss = agent_of(effects, outer_model, stored, tools=[clerk])

    async def conversation() -> Any:
        state = await boss.ainvoke(ASKED, THREAD)
        assert actions(state) == [("pay", PAY[2])]
        return await boss.ainvoke(resume(state, APPROVE), THREAD)

    state = asyncio.run(conversation())
    assert effects.lines() == [PAID]
    assert state["messages"][-1].text == "done"


def test_a_gated_subagent_is_asked_about_and_then_asks_itself(
    mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    inner_model, outer_model = Scripted(calls(PAY), "settled"), Scripted(calls(DELEGATE), "done")
    clerk = as_tool("clerk", hired(effects, inner_model, approval(mode)))
    boss = agent_of(effects, outer_model, stored, approval(mode, clerk=True), tools=[clerk])
    state = call(boss, ASKED, THREAD)
    assert actions(state) == [("clerk", DELEGATE[2])]
    assert inner_model.shown == []
    state = call(boss, resume(state, APPROVE), THREAD)
    assert actions(state) == [("pay", PAY[2])]
    assert effects.lines() == []
    state = call(boss, resume(state, APPROVE), THREAD)
    assert actions(state) == []
    assert effects.lines() == [PAID]
    assert (len(inner_model.shown), len(outer_model.shown)) == (2, 2)


def test_two_subagents_and_a_plain_tool_in_a_turn_go_on_each_by_itself(
    mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    models = {
        name: Scripted(calls(("pay", "p1", {"to": name, "amount": 1})), f"{name} is paid") for name in ("ana", "bob")
    }
    members = [as_tool(name, hired(effects, model, approval(mode), name=name)) for name, model in models.items()]
    outer_model = Scripted(
        calls(("ana", "c1", {"task": "pay"}), ("read", "c2", {"path": "notes"}), ("bob", "c3", {"task": "pay"})), "done"
    )
    boss = agent_of(effects, outer_model, stored, tools=[*members, effects.read])
    state = call(boss, ASKED, THREAD)
    assert sorted(args["to"] for _, args in actions(state)) == ["ana", "bob"]
    assert effects.lines() == ["read notes"]
    for name in ("bob", "ana"):
        (question,) = [q for q in state["__interrupt__"] if name in str(q.value)]
        answer = APPROVE if mode == "per_call" else {"decisions": [APPROVE]}
        state = call(boss, Command(resume={question.id: answer}), THREAD)
    assert effects.lines() == ["read notes", "paid 1 to bob", "paid 1 to ana"]
    assert [text for _, _, text in shown(outer_model)] == ["ana is paid", "contents of notes", "bob is paid"]
    assert [len(model.shown) for model in models.values()] == [2, 2]
    assert len(outer_model.shown) == 2


def test_a_subagent_in_a_subagent_is_under_the_rules_of_all_around_it(
    mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    innermost, middle = Scripted(calls(PAY), "paid"), Scripted(calls(("clerk", "m1", {"task": "pay"})), "delegated")
    outer_model = Scripted(calls(("head", "c1", {"task": "pay"})), "done")
    clerk = as_tool("clerk", hired(effects, innermost))
    head = as_tool("head", create_agent(middle, [clerk], name="head"))
    boss = agent_of(
        effects, outer_model, stored, approval(mode, pay={"allowed_decisions": ["reject"]}), tools=[head, effects.pay]
    )
    state = call(boss, ASKED, THREAD)
    assert actions(state) == [("pay", PAY[2])]
    with pytest.raises(ValueError):
        call(boss, resume(state, APPROVE), THREAD)
    state = call(boss, resume(state, REJECT), THREAD)
    assert effects.lines() == []
    assert state["messages"][-1].text == "done"


def test_a_withdrawn_subagents_question_leaves_histories_that_models_take(
    mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    inner_model = Scripted(calls(PAY), calls(PAY), "paid")
    outer_model = Scripted(calls(DELEGATE), calls(("clerk", "c2", {"task": "again"})), "done")
    clerk = as_tool("clerk", hired(effects, inner_model, approval(mode)))
    boss = agent_of(effects, outer_model, stored, tools=[clerk])
    first = call(boss, ASKED, THREAD)
    state = call(boss, {"messages": [("user", "once more")]}, THREAD, on_pending="withdraw")
    assert actions(state) == [("pay", PAY[2])]
    assert not set(ids(first)) & set(ids(state))
    with pytest.raises(Exception, match="Unknown or already-consumed"):
        call(boss, resume(first, APPROVE), THREAD)
    assert effects.lines() == []
    call(boss, resume(state, APPROVE), THREAD)
    assert effects.lines() == [PAID]
    assert [(i, s) for i, s, _ in shown(outer_model)] == [("c1", "error"), ("c2", "success")]
