"""Answers that come wrong, twice, or from several people at once: one decision counts, and nothing runs without it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic import ValidationError

from tests.agents.gated import (
    APPROVE,
    ASKED,
    REJECT,
    RESPOND,
    THREAD,
    Call,
    Effects,
    actions,
    agent_of,
    answered,
    approval,
    edit,
    ids,
    results,
    resume,
    shown,
)
from tests.agents.scripted import Scripted, calls
from waitpoint.errors import AlreadyAnsweredError, ConflictError, UnknownInterruptError, WaitpointError
from waitpoint.types import Answer, Command

ANA = ("pay", "c1", {"to": "ana", "amount": 5})
BOB = ("pay", "c2", {"to": "bob", "amount": 6})
WIPE = ("wipe", "c3", {"path": "a"})

WRONG: dict[str, Any] = {
    "an unknown type": {"type": "aprove"},
    "no type": {},
    "a text": "approve",
    "nothing": None,
    "an edit without an action": {"type": "edit"},
    "an edit with a wrong type": edit("pay", to="ana", amount="much"),
    "an edit with a missing argument": edit("pay", to="ana"),
    "an edit into no tool": edit("pey", to="ana", amount=5),
    "a response without a text": {"type": "respond"},
    "a reason that is no text": {"type": "reject", "message": 7},
    "a list": [APPROVE],
    "true": True,
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_one_good_and_one_malformed_answer_sent_together_are_both_refused(
    wrong: Any, mode: Any, effects: Effects, stored: Any
) -> None:
    model = Scripted(calls(ANA, BOB), "done")
    agent = agent_of(effects, model, stored, approval(mode))
    state = agent.invoke(ASKED, THREAD)
    for pair in ((APPROVE, wrong), (wrong, APPROVE)):
        with pytest.raises((ValidationError, WaitpointError)):
            agent.invoke(resume(state, *pair), THREAD)
        assert effects.lines() == []
        assert ids(agent.invoke(None, THREAD)) == ids(state)
    done = agent.invoke(resume(state, APPROVE, REJECT), THREAD)
    assert effects.lines() == ["paid 5 to ana"]
    assert results(done) == shown(model) == [("c1", "success", "paid ana"), ("c2", "error", "no")]


def test_five_kinds_of_wrong_answer_one_after_the_other_then_the_right_one(
    mode: Any, call: Call, effects: Effects, reopened: Any
) -> None:
    model = Scripted(calls(ANA), "done")
    state = call(agent_of(effects, model, reopened(), approval(mode)), ASKED, THREAD)
    for wrong in WRONG.values():
        agent = agent_of(effects, model, reopened(), approval(mode))
        with pytest.raises((ValidationError, WaitpointError)):
            call(agent, resume(state, wrong), THREAD)
        with pytest.raises((ValidationError, WaitpointError)):
            call(agent, answered(state, wrong), THREAD)
        assert agent.get_state(THREAD).interrupts == tuple(state["__interrupt__"])
    assert effects.lines() == []
    done = call(agent_of(effects, model, reopened(), approval(mode)), resume(state, APPROVE), THREAD)
    assert effects.lines() == ["paid 5 to ana"]
    assert [m.text for m in done["messages"][-1:]] == ["done"]


@pytest.mark.parametrize("first", [APPROVE, REJECT, RESPOND, edit("pay", to="cy", amount=1)], ids=lambda d: d["type"])
def test_an_answer_given_again_is_refused_and_does_nothing(
    first: Any, mode: Any, call: Call, effects: Effects, reopened: Any
) -> None:
    model = Scripted(calls(ANA), "done")
    agent = agent_of(effects, model, reopened(), approval(mode))
    command = resume(call(agent, ASKED, THREAD), first)
    done = call(agent, command, THREAD)
    before = effects.lines()
    assert len(before) == (first["type"] in ("approve", "edit"))
    for _ in range(2):
        with pytest.raises(AlreadyAnsweredError):
            call(agent_of(effects, model, reopened(), approval(mode)), command, THREAD)
    assert effects.lines() == before
    assert agent.get_state(THREAD).values["messages"] == done["messages"]


def test_an_answer_that_was_used_is_refused_while_another_call_waits(call: Call, effects: Effects, stored: Any) -> None:
    model = Scripted(calls(ANA, BOB), "done")
    agent = agent_of(effects, model, stored, approval("per_call"))
    first, second = ids(call(agent, ASKED, THREAD))
    state = call(agent, Command(resume={first: APPROVE}), THREAD)
    assert effects.lines() == ["paid 5 to ana"]
    for again in ({first: APPROVE}, {first: REJECT}, {first: APPROVE, second: APPROVE}):
        with pytest.raises(AlreadyAnsweredError):
            call(agent, Command(resume=again), THREAD)
    assert effects.lines() == ["paid 5 to ana"]
    call(agent, resume(state, REJECT), THREAD)
    assert effects.lines() == ["paid 5 to ana"]
    assert shown(model) == [("c1", "success", "paid ana"), ("c2", "error", "no")]


def at_once(reopened: Any, effects: Effects, model: Scripted, mode: Any, answers: list[Command[Any]]) -> list[Any]:
    """Let as many people answer at one moment, each with an agent of their own; return what each got."""
    barrier = threading.Barrier(len(answers))

    def answer(command: Command[Any]) -> Any:
        agent = agent_of(effects, model, reopened(), approval(mode))
        agent.get_state(THREAD)
        barrier.wait(10)
        try:
            return agent.invoke(command, THREAD)
        except WaitpointError as error:
            return error

    with ThreadPoolExecutor(len(answers)) as pool:
        return list(pool.map(answer, answers))


def test_the_same_answer_twice_at_once_is_taken_once(mode: Any, effects: Effects, reopened: Any) -> None:
    model = Scripted(calls(ANA), "done")
    state = agent_of(effects, model, reopened(), approval(mode)).invoke(ASKED, THREAD)
    got = at_once(reopened, effects, model, mode, [resume(state, APPROVE)] * 2)
    assert sorted(type(each) is AlreadyAnsweredError for each in got) == [False, True]
    assert effects.lines() == ["paid 5 to ana"]


@pytest.mark.parametrize("turn", range(5))
def test_of_three_reviewers_at_once_one_decides_and_the_others_are_told_who(
    turn: int, mode: Any, effects: Effects, reopened: Any
) -> None:
    model = Scripted(calls(ANA), "done")
    state = agent_of(effects, model, reopened(), approval(mode)).invoke(ASKED, THREAD)
    people = {"ana": APPROVE, "bob": APPROVE, "cy": REJECT}
    (question,) = ids(state)

    def by(name: str) -> Command[Any]:
        value = people[name] if mode == "per_call" else {"decisions": [people[name]]}
        return Command(resume={question: Answer(value, by=name)})

    order = [*people][turn % 3 :] + [*people][: turn % 3]
    got = dict(zip(order, at_once(reopened, effects, model, mode, [by(name) for name in order]), strict=True))
    (winner,) = [name for name, each in got.items() if not isinstance(each, WaitpointError)]
    for name, each in got.items():
        if name != winner:
            assert isinstance(each, AlreadyAnsweredError)
            assert each.answered_by == winner
    assert effects.lines() == ([] if winner == "cy" else ["paid 5 to ana"])
    assert shown(model) == [("c1", "error", "no") if winner == "cy" else ("c1", "success", "paid ana")]


def test_reviewers_of_different_calls_at_once_all_decide(effects: Effects, reopened: Any) -> None:
    model = Scripted(calls(ANA, BOB, WIPE), "done")
    state = agent_of(effects, model, reopened(), approval("per_call")).invoke(ASKED, THREAD)
    answers = [Command(resume={i: d}) for i, d in zip(ids(state), (APPROVE, REJECT, REJECT), strict=True)]
    got = at_once(reopened, effects, model, "per_call", answers)
    assert not [each for each in got if isinstance(each, WaitpointError)]
    assert effects.lines() == ["paid 5 to ana"]
    assert [status for _, status, _ in shown(model)] == ["success", "error", "error"]


def test_an_edit_into_a_tool_that_only_allows_a_no_is_refused(
    mode: Any, call: Call, effects: Effects, stored: Any
) -> None:
    model = Scripted(calls(ANA), "done")
    agent = agent_of(effects, model, stored, approval(mode))
    state = call(agent, ASKED, THREAD)
    with pytest.raises(ValueError):
        call(agent, resume(state, edit("wipe", path="a")), THREAD)
    assert effects.lines() == []
    call(agent, resume(state, edit("pay", to="ana", amount=4)), THREAD)
    assert effects.lines() == ["paid 4 to ana"]


def test_an_edit_into_a_denied_tool_is_refused(mode: Any, effects: Effects, stored: Any) -> None:
    model = Scripted(calls(ANA), "done")
    agent = agent_of(effects, model, stored, approval(mode, pay=True, wipe="deny"))
    state = agent.invoke(ASKED, THREAD)
    with pytest.raises(ValueError):
        agent.invoke(resume(state, edit("wipe", path="a")), THREAD)
    agent.invoke(resume(state, REJECT), THREAD)
    assert effects.lines() == []


def test_a_decision_that_its_tool_does_not_allow_is_refused(mode: Any, effects: Effects, stored: Any) -> None:
    model = Scripted(calls(WIPE), "done")
    agent = agent_of(effects, model, stored, approval(mode))
    state = agent.invoke(ASKED, THREAD)
    for decision in (APPROVE, RESPOND, edit("wipe", path="b"), edit("read", path="b")):
        with pytest.raises(ValueError, match=r"not allowed|expected tags"):
            agent.invoke(resume(state, decision), THREAD)
    agent.invoke(resume(state, REJECT), THREAD)
    assert effects.lines() == []


def test_decisions_of_the_wrong_number_are_refused(effects: Effects, stored: Any) -> None:
    model = Scripted(calls(ANA, BOB), "done")
    agent = agent_of(effects, model, stored, approval("batched"))
    state = agent.invoke(ASKED, THREAD)
    for decisions in ([], [APPROVE], [APPROVE] * 3):
        with pytest.raises(ValueError, match=rf"\({len(decisions)}\) does not match .* \(2\)"):
            agent.invoke(Command(resume={"decisions": decisions}), THREAD)
    assert actions(agent.invoke(None, THREAD)) == actions(state)
    agent.invoke(Command(resume={"decisions": [REJECT, APPROVE]}), THREAD)
    assert effects.lines() == ["paid 6 to bob"]


def test_labelled_decisions_go_to_their_calls_in_any_order(effects: Effects, stored: Any) -> None:
    model = Scripted(calls(ANA, BOB), "done")
    agent = agent_of(effects, model, stored, approval("batched"))
    agent.invoke(ASKED, THREAD)
    labelled = [{**REJECT, "tool_call_id": "c2"}, {**APPROVE, "tool_call_id": "c1"}]
    for wrong in ([labelled[0]] * 2, [labelled[0], APPROVE], [{**APPROVE, "tool_call_id": "c9"}, labelled[0]]):
        with pytest.raises(ValueError):
            agent.invoke(Command(resume={"decisions": wrong}), THREAD)
    agent.invoke(Command(resume={"decisions": labelled}), THREAD)
    assert effects.lines() == ["paid 5 to ana"]
    assert shown(model) == [("c1", "success", "paid ana"), ("c2", "error", "no")]


def test_a_bare_answer_to_several_questions_is_refused(effects: Effects, stored: Any) -> None:
    model = Scripted(calls(ANA, BOB), "done")
    agent = agent_of(effects, model, stored, approval("per_call"))
    state = agent.invoke(ASKED, THREAD)
    with pytest.raises(RuntimeError):
        agent.invoke(Command(resume=APPROVE), THREAD)
    with pytest.raises(UnknownInterruptError):
        agent.invoke(Command(resume={ids(state)[0]: APPROVE, "0" * 32: APPROVE}), THREAD)
    with pytest.raises(ConflictError):
        agent.invoke({"messages": [("user", "hello?")]}, THREAD)
    assert effects.lines() == []
    agent.invoke(resume(state, APPROVE, APPROVE), THREAD)
    assert sorted(effects.lines()) == ["paid 5 to ana", "paid 6 to bob"]
