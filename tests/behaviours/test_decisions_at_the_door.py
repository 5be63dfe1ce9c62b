"""Answers of a form: read into one shape, and refused, before anything is stored; whoever sends them, and however."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, chain, parallel, the_id, thread
from waitpoint import canonical
from waitpoint.engine.answers import answer as record_answer
from waitpoint.errors import AlreadyAnsweredError
from waitpoint.interrupts import forms
from waitpoint.interrupts.journal import Question, running
from waitpoint.protocol import HITL_REQUEST, TOOL_APPROVAL, BatchCall, batch_schema, decision_schema
from waitpoint.types import Answer, Command

ARGS: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
ALLOWED = ("approve", "edit", "reject")
CAMEL = {"type": "edit", "editedAction": {"name": "delete", "args": {"path": "b", "editedAction": 1}}}
SNAKE = {"type": "edit", "edited_action": {"name": "delete", "args": {"path": "b", "editedAction": 1}}}
WRONG = [
    {"type": "edit"},
    {"type": "edit", "edited_action": {"name": "delete", "args": {}}},
    {"type": "respond", "message": "secret"},
    {},
    True,
]


def decide(path: str, form: str | None = TOOL_APPROVAL) -> Any:
    """Ask for a decision on one call, as the agent's gate does."""
    args = {"path": path}
    payload = {"type": "tool_approval", "tool_call_id": path, "name": "delete", "args": args, "description": "d"}
    schema = canonical.payload(decision_schema(ALLOWED, "delete", ARGS))
    return _asked(Question(payload, None, (), schema, form, {}))


def _asked(question: Question) -> Any:
    journal = running("decide")
    row = journal.ask(question).row
    assert row.answer is not None
    return journal.read(row.answer, "answer")


def one(state: State) -> State:
    return {"log": [decide("a")]}


def other(state: State) -> State:
    return {"log": [decide("b")]}


def unknown(state: State) -> State:
    return {"log": [decide("a", "a form of another program")]}


def batched(state: State) -> State:
    calls = [BatchCall(i, "delete", ALLOWED, {"delete": ARGS}) for i in ("c1", "c2")]
    payload = {
        "action_requests": [{"name": "delete", "args": {"path": i}, "description": "d"} for i in ("c1", "c2")],
        "review_configs": [{"action_name": "delete", "allowed_decisions": list(ALLOWED)}],
    }
    schema = canonical.payload(batch_schema(calls))
    return {"log": [_asked(Question(payload, None, (), schema, HITL_REQUEST, {"tool_call_ids": ["c1", "c2"]}))]}


@pytest.mark.parametrize("by_id", [False, True], ids=["bare", "by-id"])
@pytest.mark.parametrize("wrapped", [False, True], ids=["value", "answer"])
def test_answer_is_stored_in_the_shape_of_its_form(store: Store, call: Call, by_id: bool, wrapped: bool) -> None:
    graph, config = chain(store.saver, one), thread()
    question = the_id(call(graph, {"log": []}, config))
    answer: Any = Answer(CAMEL, by="ana") if wrapped else CAMEL
    assert call(graph, Command(resume={question: answer} if by_id else answer), config) == {"log": [SNAKE]}
    (row,) = store.again().pending(answerable=False)
    assert row.answer == SNAKE


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_wrong_decision_is_refused_with_one_error_and_a_good_one_follows(store: Store, call: Call, wrong: Any) -> None:
    graph, config = chain(store.saver, one), thread()
    question = the_id(call(graph, {"log": []}, config))
    for answer in (wrong, {question: wrong}, Answer(wrong)):
        with pytest.raises(ValidationError) as caught:
            call(graph, Command(resume=answer), config)
        assert caught.value.error_count() == 1
        assert "secret" not in str(caught.value)
    with pytest.raises(ValidationError):
        record_answer(store.again(), question, wrong)
    assert [q.id for q in store.again().pending()] == [question]
    assert call(graph, Command(resume={"type": "approve"}), config) == {"log": [{"type": "approve"}]}


def test_one_wrong_decision_among_several_answers_stores_none(store: Store, call: Call) -> None:
    graph, config = parallel(store.saver, one, other), thread()
    asked = {i.value["tool_call_id"]: i.id for i in call(graph, {"log": []}, config)["__interrupt__"]}
    with pytest.raises(ValidationError):
        call(graph, Command(resume={asked["a"]: {"type": "approve"}, asked["b"]: {"type": "respond"}}), config)
    assert {q.id for q in store.again().pending()} == set(asked.values())
    done = call(graph, Command(resume={asked["a"]: CAMEL, asked["b"]: {"type": "reject"}}), config)
    assert sorted(done["log"], key=str) == sorted([SNAKE, {"type": "reject"}], key=str)


def test_repetition_under_a_token_is_known_by_the_shape_that_is_stored(store: Store, call: Call) -> None:
    graph, config = chain(store.saver, one), thread()
    question = the_id(call(graph, {"log": []}, config))
    first = Answer(CAMEL, token="t")
    assert call(graph, Command(resume={question: first}), config) == {"log": [SNAKE]}
    for again in (first, Answer(SNAKE, token="t")):
        record_answer(store.again(), question, again)
    for changed in ({"type": "approve"}, {"type": "nonsense"}):
        with pytest.raises(AlreadyAnsweredError):
            record_answer(store.again(), question, Answer(changed, token="t"))


def test_answer_may_be_an_instance_of_a_class(store: Store, call: Call) -> None:
    class Approve(BaseModel):
        type: str = "approve"

    graph, config = chain(store.saver, one), thread()
    call(graph, {"log": []}, config)
    assert call(graph, Command(resume=Approve()), config) == {"log": [{"type": "approve"}]}


def test_form_that_this_process_does_not_know_leaves_the_schema_to_speak(store: Store, call: Call) -> None:
    graph, config = chain(store.saver, unknown), thread()
    call(graph, {"log": []}, config)
    for wrong in (CAMEL, *WRONG):
        with pytest.raises(ValidationError):
            call(graph, Command(resume=wrong), config)
    assert call(graph, Command(resume=SNAKE), config) == {"log": [SNAKE]}


def test_batched_answer_is_stored_in_the_order_of_the_calls(store: Store, call: Call) -> None:
    graph, config = chain(store.saver, batched), thread()
    call(graph, {"log": []}, config)
    with pytest.raises(ValueError, match=r"Number of human decisions \(1\)"):
        call(graph, Command(resume={"decisions": [{"type": "approve"}]}), config)
    sent = [CAMEL | {"toolCallId": "c2"}, {"type": "reject", "tool_call_id": "c1"}]
    done = call(graph, Command(resume={"decisions": sent}), config)
    stored = {"decisions": [{"type": "reject", "tool_call_id": "c1"}, SNAKE | {"tool_call_id": "c2"}]}
    assert done == {"log": [stored]}


def test_answer_given_to_an_old_checkpoint_is_read_too(store: Store, call: Call) -> None:
    graph, config = chain(store.saver, one), thread()
    question = the_id(call(graph, {"log": []}, config))
    old = graph.get_state(config).config
    assert call(graph, Command(resume={"type": "approve"}), config) == {"log": [{"type": "approve"}]}
    with pytest.raises(ValidationError):
        call(graph, Command(resume={question: {"type": "respond"}}), old)
    assert call(graph, Command(resume={question: CAMEL}), old) == {"log": [SNAKE]}


def test_what_a_form_returned_it_returns_again(store: Store) -> None:
    assert forms.read("never registered") is None
    read = forms.read(TOOL_APPROVAL)
    assert read is not None
    schema = decision_schema(ALLOWED, "delete", ARGS)
    assert read({"name": "delete"}, schema, {}, CAMEL) == read({"name": "delete"}, schema, {}, SNAKE) == SNAKE
