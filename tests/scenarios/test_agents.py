"""Scenarios of several sections in which an agent, its tools or its subagents ask."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, tool

from tests.agents.gated import (
    APPROVE,
    ASKED,
    REJECT,
    THREAD,
    Effects,
    actions,
    agent_of,
    approval,
    ids,
    resume,
    shown,
    thread,
)
from tests.agents.scripted import Scripted, calls
from tests.scenarios.conftest import Call
from tests.scenarios.world import Shelf, run
from waitpoint.agents import create_agent
from waitpoint.agents.tool_node.node import ToolNode
from waitpoint.agents.tool_node.request import ToolRuntime
from waitpoint.engine.answers import withdraw
from waitpoint.errors import AlreadyAnsweredError, WaitpointError
from waitpoint.graph import START, MessagesState, StateGraph
from waitpoint.types import Command, interrupt

PAY = ("pay", "p1", {"to": "ana", "amount": 5})
PAID = "paid 5 to ana"


class Asking:
    """Tools that ask, and how often each body was entered."""

    def __init__(self) -> None:
        self.entered: Counter[str] = Counter()

        @tool
        def book(what: str) -> str:
            """Book something."""
            self.entered[what] += 1
            return f"{what}: {interrupt(f'book {what}?')}"

        @tool
        def twice(what: str) -> str:
            """Ask two things, the second about the first answer."""
            self.entered[what] += 1
            size = interrupt(f"which {what}?")
            return f"{what}: {interrupt(f'really {size}?')}"

        @tool
        def look(what: str) -> str:
            """Look something up."""
            self.entered[what] += 1
            return f"{what}: found"

        self.tools = [book, twice, look]


TURN = calls(("book", "c1", {"what": "train"}), ("look", "c2", {"what": "map"}), ("book", "c3", {"what": "hotel"}))


def told(state: Any) -> list[str]:
    return [m.text for m in state["messages"] if isinstance(m, ToolMessage)]


def questions(state: Any) -> dict[str, str]:
    """Return the ids of the open questions by their texts."""
    return {q.value: q.id for q in state.get("__interrupt__", ())}


def as_tool(name: str, agent: Any) -> BaseTool:
    """Return a tool that runs an agent and gives its last words."""

    @tool(name)
    def delegated(task: str) -> str:
        """Let another agent do it."""
        return str(agent.invoke({"messages": [("user", task)]})["messages"][-1].text)

    return delegated


# --- S023, S195 -------------------------------------------------------------------------------------------------------


def in_one_node(asking: Asking, saver: Any) -> Any:
    node = ToolNode(asking.tools)
    return StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile(saver)


def in_an_agent(asking: Asking, saver: Any) -> Any:
    return create_agent(Scripted(TURN, "done"), asking.tools, checkpointer=saver)


@pytest.mark.parametrize("build", [in_one_node, in_an_agent])
def test_s023_all_questions_of_a_turns_tools_come_at_once_and_finished_tools_are_not_run_again(
    build: Any, call: Call, saver: Any
) -> None:
    asking = Asking()
    graph = build(asking, saver)
    state = call(graph, {"messages": [TURN] if build is in_one_node else [("user", "go")]}, THREAD)
    assert sorted(questions(state)) == ["book hotel?", "book train?"]
    assert asking.entered == {"train": 1, "hotel": 1, "map": 1}
    state = call(graph, Command(resume={i: f"yes, {text}" for text, i in questions(state).items()}), THREAD)
    assert told(state) == ["train: yes, book train?", "map: found", "hotel: yes, book hotel?"]
    assert asking.entered == {"train": 2, "hotel": 2, "map": 1}


def test_s195_a_tools_second_question_pauses_again(call: Call, shelf: Shelf) -> None:
    asking, model = Asking(), Scripted(calls(("twice", "c1", {"what": "room"})), "done")

    def agent() -> Any:
        return create_agent(model, asking.tools, checkpointer=shelf.open())

    state = call(agent(), ASKED, THREAD)
    assert [*questions(state)] == ["which room?"]
    state = call(agent(), Command(resume="double"), THREAD)
    assert [*questions(state)] == ["really double?"]
    assert len(model.shown) == 1
    state = call(agent(), Command(resume="yes"), THREAD)
    assert told(state) == ["room: yes"]
    assert asking.entered == {"room": 3}


# --- S030, S116 -------------------------------------------------------------------------------------------------------


def test_s030_calls_that_need_no_approval_run_at_once_when_each_call_is_asked_about(
    call: Call, effects: Effects, saver: Any
) -> None:
    reads = [("read", f"c{n}", {"path": str(n)}) for n in range(3)]
    agent = agent_of(effects, Scripted(calls(PAY, *reads), "done"), saver, approval("per_call"))
    state = call(agent, ASKED, THREAD)
    assert sorted(effects.lines()) == ["read 0", "read 1", "read 2"]
    call(agent, resume(state, APPROVE), THREAD)
    assert effects.lines()[3:] == [PAID]


def test_s030_in_one_question_for_the_turn_they_wait_with_the_others(call: Call, effects: Effects, saver: Any) -> None:
    agent = agent_of(effects, Scripted(calls(PAY, ("read", "c2", {"path": "a"})), "done"), saver, approval("batched"))
    state = call(agent, ASKED, THREAD)
    assert [name for name, _ in actions(state)] == ["pay"]
    assert effects.lines() == []
    call(agent, resume(state, REJECT), THREAD)
    assert effects.lines() == ["read a"]


def test_s116_answers_are_merged_one_by_one_and_a_used_one_is_refused(
    call: Call, effects: Effects, shelf: Shelf
) -> None:
    turn = calls(*(("pay", f"c{n}", {"to": "ana", "amount": n}) for n in (1, 2)), ("wipe", "c3", {"path": "a"}))
    model = Scripted(turn, "done")

    def agent() -> Any:
        return agent_of(effects, model, shelf.open(), approval("per_call"))

    open_ids = ids(call(agent(), ASKED, THREAD))
    answers = dict(zip(open_ids, (APPROVE, APPROVE, REJECT), strict=True))
    for number, (question, answer) in enumerate(answers.items(), 1):
        state = call(agent(), Command(resume={question: answer}), THREAD)
        assert len(actions(state)) == 3 - number
        with pytest.raises(AlreadyAnsweredError):
            call(agent(), Command(resume={question: answer}), THREAD)
        assert len(effects.lines()) == min(number, 2)
    assert [status for _, status, _ in shown(model)] == ["success", "success", "error"]
    for question, answer in answers.items():
        with pytest.raises(AlreadyAnsweredError):
            call(agent(), Command(resume={question: answer}), THREAD)
    assert effects.lines() == ["paid 1 to ana", "paid 2 to ana"]


# --- S038, S040, S043, S056, S176 -------------------------------------------------------------------------------------


def test_s038_only_the_answered_subagent_goes_on(mode: Any, call: Call, effects: Effects, saver: Any) -> None:
    asking = Asking()
    models = {name: Scripted(calls(("pay", "p1", {"to": name, "amount": 1})), "paid") for name in ("ana", "bob")}
    members = [
        as_tool(name, create_agent(model, effects.tools, middleware=[approval(mode)], name=name))
        for name, model in models.items()
    ]
    turn = calls(("ana", "c1", {"task": "x"}), ("look", "c2", {"what": "map"}), ("bob", "c3", {"task": "y"}))
    outer = Scripted(turn, "done")
    agent = create_agent(outer, [*members, *asking.tools], checkpointer=saver)
    state = call(agent, ASKED, THREAD)
    by_name = {str(args["to"]): q for q in state["__interrupt__"] for _, args in actions({"__interrupt__": [q]})}
    for name, so_far in (("bob", (1, 2)), ("ana", (2, 2))):
        answer = {"decisions": [APPROVE]} if mode == "batched" else APPROVE
        call(agent, Command(resume={by_name[name].id: answer}), THREAD)
        assert (len(models["ana"].shown), len(models["bob"].shown)) == so_far
    assert effects.lines() == ["paid 1 to bob", "paid 1 to ana"]
    assert asking.entered == {"map": 1}
    assert len(outer.shown) == 2


def test_s040_a_subagents_pause_is_seen_at_the_top(mode: Any, call: Call, effects: Effects, saver: Any) -> None:
    outer = Scripted(calls(("clerk", "c1", {"task": "pay"})), "done")
    clerk = as_tool("clerk", create_agent(Scripted(calls(PAY), "paid"), effects.tools, middleware=[approval(mode)]))
    state = call(create_agent(outer, [clerk], checkpointer=saver), ASKED, THREAD)
    assert actions(state) == [("pay", PAY[2])]
    assert told(state) == []
    assert len(outer.shown) == 1


def test_s040_with_a_saver_and_thread_of_its_own_it_raises_and_is_no_result(
    mode: Any, call: Call, effects: Effects, shelf: Shelf
) -> None:
    inner = create_agent(
        Scripted(calls(PAY), "paid"), effects.tools, middleware=[approval(mode)], checkpointer=shelf.open()
    )

    @tool
    def clerk(task: str) -> str:
        """Let the clerk do it."""
        return str(inner.invoke({"messages": [("user", task)]}, thread("own"))["messages"][-1].text)

    outer = Scripted(calls(("clerk", "c1", {"task": "pay"})), "done")
    agent = create_agent(outer, [clerk], checkpointer=shelf.open())
    with pytest.raises(WaitpointError):
        state = call(agent, ASKED, THREAD)
        assert actions(state) != []
        raise WaitpointError("seen at the top")
    assert len(outer.shown) == 1
    assert effects.lines() == []


def test_s040_without_any_saver_it_raises_before_a_model_is_called(mode: Any, call: Call, effects: Effects) -> None:
    inner = Scripted(calls(PAY), "paid")
    clerk = as_tool("clerk", create_agent(inner, effects.tools, middleware=[approval(mode)]))
    outer = Scripted(calls(("clerk", "c1", {"task": "pay"})), "done")
    with pytest.raises(WaitpointError, match="checkpointer"):
        call(create_agent(outer, [clerk]), ASKED, None)
    assert len(outer.shown) == 1
    assert inner.shown == []
    assert effects.lines() == []


def test_s043_nested_agents_are_rebuilt_in_another_process(disk: Shelf) -> None:
    paused = run("nested_agents.py", disk.path, "ask")
    ((question, value),) = paused["waits"]
    assert re.fullmatch("[0-9a-f]{32}", question)
    assert value["args"] == {"to": "ana"}
    done = run("nested_agents.py", disk.path, "answer")
    assert done == {"waits": [], "last": "paid ana", "asked": [1, 1]}  # one call each, to take the result


def test_s056_after_a_members_pause_the_leader_does_not_plan_anew(
    mode: Any, call: Call, effects: Effects, shelf: Shelf
) -> None:
    first = Scripted("looked it up")
    second = Scripted(calls(PAY), "paid")
    leader = Scripted(calls(("scout", "c1", {"task": "look"})), calls(("clerk", "c2", {"task": "pay"})), "all done")

    def agent() -> Any:
        scout = as_tool("scout", create_agent(first, effects.tools, name="scout"))
        clerk = as_tool("clerk", create_agent(second, effects.tools, middleware=[approval(mode)], name="clerk"))
        return create_agent(leader, [scout, clerk], checkpointer=shelf.open())

    state = call(agent(), ASKED, THREAD)
    assert (len(first.shown), len(second.shown), len(leader.shown)) == (1, 1, 2)
    state = call(agent(), resume(state, APPROVE), THREAD)
    assert (len(first.shown), len(second.shown), len(leader.shown)) == (1, 2, 3)
    assert told(state) == ["looked it up", "paid"]
    assert effects.lines() == [PAID]


def test_s176_a_members_question_that_is_gone_is_refused_by_name_and_no_model_is_called(
    mode: Any, call: Call, effects: Effects, saver: Any
) -> None:
    inner, outer = Scripted(calls(PAY), "could not"), Scripted(calls(("clerk", "c1", {"task": "pay"})), "done")
    clerk = as_tool("clerk", create_agent(inner, effects.tools, middleware=[approval(mode)], name="clerk"))
    agent = create_agent(outer, [clerk], checkpointer=saver)
    state = call(agent, ASKED, THREAD)
    (question,) = ids(state)
    withdraw(saver, question, "cancelled", by="ana")
    with pytest.raises(WaitpointError, match=r"cancelled|withdrawn"):
        call(agent, resume(state, APPROVE), THREAD)
    assert (len(inner.shown), len(outer.shown)) == (1, 1)
    assert effects.lines() == []
    state = call(agent, None, THREAD)  # the member goes on without, and says so
    assert told(state) == ["could not"]
    assert effects.lines() == []


# --- S050, S051 -------------------------------------------------------------------------------------------------------


class Keyed:
    """Tools that note their keys; `fail` fails until it is mended."""

    def __init__(self) -> None:
        self.keys: list[tuple[str, str | None]] = []
        self.is_broken = True

        @tool
        def send(to: str, runtime: ToolRuntime) -> str:
            """Send a mail."""
            self.keys.append((to, runtime.idempotency_key))
            return f"sent to {to}"

        @tool
        def fail(to: str, runtime: ToolRuntime) -> str:
            """Send a mail by a server that is down."""
            self.keys.append((to, runtime.idempotency_key))
            if self.is_broken:
                raise ConnectionError("down")
            return f"sent to {to}"

        self.tools = [send, fail]


MAILS = calls(("send", "c1", {"to": "ana"}), ("send", "c2", {"to": "bob"}), ("fail", "c3", {"to": "cy"}))


@pytest.mark.parametrize("gated", [True, False], ids=["gated", "free"])
def test_s050_finished_calls_of_a_turn_are_not_repeated_when_another_one_fails(
    gated: bool, call: Call, effects: Effects, shelf: Shelf
) -> None:
    keyed, model = Keyed(), Scripted(MAILS, "done")

    def agent() -> Any:
        middleware = [approval("per_call", send=True, fail=True)] if gated else []
        return create_agent(model, keyed.tools, middleware=middleware, checkpointer=shelf.open())

    given: Any = ASKED
    if gated:
        given = resume(call(agent(), ASKED, THREAD), APPROVE, APPROVE, APPROVE)
    with pytest.raises(ConnectionError):
        call(agent(), given, THREAD)
    keyed.is_broken = False
    state = call(agent(), None, THREAD)
    assert told(state) == ["sent to ana", "sent to bob", "sent to cy"]
    times = Counter(keyed.keys)
    assert len(times) == 3  # one key for each call, the same in both tries
    assert {to: n for (to, _), n in times.items()} == {"ana": 1, "bob": 1, "cy": 2}


@pytest.mark.parametrize("gated", [True, False], ids=["gated", "free"])
def test_s051_the_key_of_a_call_stays_over_retries_and_resumes_and_differs_in_a_fork(
    gated: bool, mode: Any, call: Call, effects: Effects, shelf: Shelf
) -> None:
    keyed, model = Keyed(), Scripted(calls(("fail", "c1", {"to": "ana"})), "done", "done again")

    def agent() -> Any:  # built by other code, as after a deploy
        middleware = [approval(mode, fail=True)] if gated else []
        return create_agent(model, keyed.tools, middleware=middleware, checkpointer=shelf.open())

    def approved(state: Any) -> Any:
        return resume(state, APPROVE) if actions(state) else None

    given: Any = resume(call(agent(), ASKED, THREAD), APPROVE) if gated else ASKED
    for _ in range(2):
        with pytest.raises(ConnectionError):
            call(agent(), given, THREAD)
        given = None
    keyed.is_broken = False
    call(agent(), None, THREAD)
    assert len(keyed.keys) == 3
    assert len(set(keyed.keys)) == 1
    before_tools = next(s.config for s in agent().get_state_history(THREAD) if s.next == ("tools",))
    state = call(agent(), None, before_tools)
    if gated:
        call(agent(), resume(state, APPROVE), THREAD)
    assert len(keyed.keys) == 4
    assert len(set(keyed.keys)) == 2


# --- S058, S060 -------------------------------------------------------------------------------------------------------


def wrapped(request: Any, handler: Any) -> Any:
    return handler(request)


async def awrapped(request: Any, handler: Any) -> Any:
    return await handler(request)


@pytest.mark.parametrize(
    "handled",
    [None, True, False, "it failed", (Exception,), lambda error: "it failed"],
    ids=["default", "all", "none", "text", "types", "function"],
)
@pytest.mark.parametrize("wrappers", ["none", "sync", "both"])
def test_s058_a_wrapper_and_error_handling_let_the_question_pass(
    wrappers: str, handled: Any, call: Call, saver: Any
) -> None:
    asking = Asking()
    options: dict[str, Any] = {} if handled is None else {"handle_tool_errors": handled}  # S060: the default
    options |= {"wrap_tool_call": wrapped} if wrappers != "none" else {}
    options |= {"awrap_tool_call": awrapped} if wrappers == "both" else {}
    node = ToolNode(asking.tools, **options)
    graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile(saver)
    state = call(graph, {"messages": [TURN]}, THREAD)
    assert sorted(questions(state)) == ["book hotel?", "book train?"]
    assert told(state) == []
    state = call(graph, Command(resume=dict.fromkeys(questions(state).values(), "yes")), THREAD)
    assert told(state) == ["train: yes", "map: found", "hotel: yes"]


# --- S098, S128 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["seven", {"type": "aprove"}, {"decisions": "yes"}, None], ids=repr)
def test_s098_a_wrong_decision_can_be_corrected_bare_by_id_and_at_the_checkpoint(
    wrong: Any, mode: Any, call: Call, effects: Effects, shelf: Shelf
) -> None:
    model = Scripted(calls(PAY), "done")
    agent = agent_of(effects, model, shelf.open(), approval(mode))
    state = call(agent, ASKED, THREAD)
    (question,) = ids(state)
    for given in (wrong, {question: wrong}):
        with pytest.raises(ValueError):
            call(agent, Command(resume=given), THREAD)
    with pytest.raises(ValueError):
        call(agent, Command(resume=wrong), agent.get_state(THREAD).config)
    assert ids(call(agent, None, THREAD)) == [question]
    call(agent, resume(state, APPROVE), agent.get_state(THREAD).config)
    assert effects.lines() == [PAID]


def test_s128_two_threads_through_one_agent_object_do_not_see_each_other(
    mode: Any, call: Call, effects: Effects, saver: Any
) -> None:
    bob = ("pay", "p1", {"to": "bob", "amount": 6})  # the same call id as ana's
    agent = agent_of(effects, Scripted(calls(PAY), calls(bob), "bob is done", "ana is done"), saver, approval(mode))
    of_ana = call(agent, ASKED, thread("ana"))
    of_bob = call(agent, ASKED, thread("bob"))
    assert (actions(of_ana), actions(of_bob)) == ([("pay", PAY[2])], [("pay", bob[2])])
    with pytest.raises(WaitpointError):
        call(agent, resume(of_ana, APPROVE), thread("bob"))
    assert effects.lines() == []
    call(agent, resume(of_bob, APPROVE), thread("bob"))
    assert effects.lines() == ["paid 6 to bob"]
    state = call(agent, resume(of_ana, REJECT), thread("ana"))
    assert effects.lines() == ["paid 6 to bob"]
    assert state["messages"][-1].text == "ana is done"
