"""Schemas of answers: shown with the question, enforced before anything is stored, and once more as the class."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from datetime import date
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel, ValidationError, field_validator

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, builder, chain, ids, parallel, the_id, thread
from waitpoint.engine.answers import answer as record_answer
from waitpoint.errors import NodeError, UsageError
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, RetryPolicy, interrupt


class Model(BaseModel):
    ok: bool
    n: int = 3


class Typed(TypedDict, total=False):
    ok: bool
    n: int


@dataclass
class Data:
    ok: bool
    n: int = 3


RAW: dict[str, Any] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "n": {"type": "integer"}},
    "required": ["ok"],
}

KINDS: dict[str, Any] = {"pydantic": Model, "typeddict": Typed, "dataclass": Data, "raw": RAW}

GIVEN: Any = {"ok": True, "n": 4, "more": "?"}

TAKEN: dict[str, Any] = {
    "pydantic": Model(ok=True, n=4),
    "typeddict": {"ok": True, "n": 4},
    "dataclass": Data(ok=True, n=4),
    "raw": GIVEN,
}


class Asking:
    """A node that asks with a schema and keeps what it got."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self.got: list[Any] = []
        self.runs = 0

    def node(self, state: State) -> State:
        self.runs += 1
        self.got.append(interrupt("well?", response_schema=self.schema))
        return {"log": ["answered"]}


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_shown_with_the_question(saver: Any, kind: str) -> None:
    """B21"""
    graph, config = chain(saver, Asking(KINDS[kind]).node), thread()
    (question,) = asked(graph.invoke({"log": []}, config))
    shown = question.response_schema
    assert shown["type"] == "object"
    assert shown["properties"]["ok"]["type"] == "boolean"
    if kind == "raw":
        assert shown == RAW
    assert graph.get_state(config).interrupts == (question,)
    (listed,) = saver.pending()
    assert listed.response_schema == shown


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_that_fits_comes_as_the_class_has_it(store: Store, call: Call, kind: str) -> None:
    """B22"""
    asking, config = Asking(KINDS[kind]), thread()
    call(chain(store.saver, asking.node), {"log": []}, config)
    call(chain(store.again(), asking.node), Command(resume=GIVEN), config)
    assert asking.got == [TAKEN[kind]]
    assert type(asking.got[0]) is type(TAKEN[kind])


@pytest.mark.parametrize("kind", ["pydantic", "dataclass"])
def test_an_instance_is_an_answer_too(saver: Any, kind: str) -> None:
    """B22"""
    asking, config = Asking(KINDS[kind]), thread()
    graph = chain(saver, asking.node)
    graph.invoke({"log": []}, config)
    graph.invoke(Command(resume=TAKEN[kind]), config)
    assert asking.got == [TAKEN[kind]]


@pytest.mark.parametrize("by_id", [False, True], ids=["bare", "by-id"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_misfit_is_refused_before_anything_is_stored(saver: Any, call: Call, kind: str, by_id: bool) -> None:
    """B22, table: raw JSON Schemas are enforced like the others"""
    asking, config = Asking(KINDS[kind]), thread()
    graph = chain(saver, asking.node)
    question = the_id(call(graph, {"log": []}, config))
    state, rows = graph.get_state(config), saver.threads()
    bad = {"ok": "s3cret-maybe"}
    with pytest.raises(ValidationError) as caught:
        call(graph, Command(resume={question: bad} if by_id else bad), config)
    assert [e["loc"] for e in caught.value.errors()] == [("ok",)]
    assert "s3cret" not in str(caught.value)
    assert (graph.get_state(config), saver.threads(), asking.runs) == (state, rows, 1)
    assert call(graph, Command(resume={"ok": True}), config) == {"log": ["answered"]}
    assert asking.runs == 2


@pytest.mark.parametrize("bad", [None, "", [], 0, "x", {}], ids=repr)
@pytest.mark.parametrize("kind", ["pydantic", "dataclass", "raw"])
def test_empty_answers_are_checked_like_others(saver: Any, kind: str, bad: Any) -> None:
    """B22 with B11"""
    asking, config = Asking(KINDS[kind]), thread()
    graph = chain(saver, asking.node)
    graph.invoke({"log": []}, config)
    with pytest.raises(ValidationError):
        graph.invoke(Command(resume=bad), config)
    assert asking.runs == 1


def test_an_answer_recorded_from_elsewhere_is_checked_too(saver: Any) -> None:
    """Section 5: enforced before anything else is stored"""
    asking, config = Asking(Model), thread()
    question = the_id(chain(saver, asking.node).invoke({"log": []}, config))
    with pytest.raises(ValidationError):
        record_answer(saver, question, {"ok": "perhaps"})
    assert [q.status for q in saver.pending()] == ["open"]


def a(state: State) -> State:
    return {"log": [interrupt("a?", response_schema={"type": "integer"})]}


def b(state: State) -> State:
    return {"log": [interrupt("b?", response_schema={"type": "integer"})]}


@pytest.mark.parametrize("bad", ["a?", "b?"])
def test_a_bad_answer_among_several_stores_none(saver: Any, call: Call, bad: str) -> None:
    """B25, table: all or nothing"""
    graph, config = parallel(saver, a, b), thread()
    open_ids = ids(call(graph, {"log": []}, config))
    before = (graph.get_state(config), saver.threads(), saver.pending(answerable=False))
    answers = {i: ("no number" if value == bad else 1) for value, i in open_ids.items()}
    with pytest.raises(ValidationError):
        call(graph, Command(resume=answers), config)
    assert (graph.get_state(config), saver.threads(), saver.pending(answerable=False)) == before
    assert call(graph, Command(resume=dict.fromkeys(answers, 1)), config) == {"log": [1, 1]}


class Even(BaseModel):
    """A rule that JSON Schema does not show."""

    n: int

    @field_validator("n")
    @classmethod
    def is_even(cls, n: int) -> int:
        if n % 2:
            raise ValueError("must be even")
        return n


class Strict:
    """A node whose answer only its class can judge."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()

    def node(self, state: State) -> State:
        self.runs["node"] += 1
        return {"log": [interrupt("even?", response_schema=Even).n]}

    async def anode(self, state: State) -> State:
        self.runs["node"] += 1
        return {"log": [interrupt("even?", response_schema=Even).n]}

    def catching(self, state: State) -> State:
        self.runs["node"] += 1
        try:
            return {"log": [interrupt("even?", response_schema=Even).n]}
        except Exception:
            return {"log": ["caught"]}

    def sibling(self, state: State) -> State:
        self.runs["sibling"] += 1
        return {"log": [interrupt("sibling?")]}


def test_an_answer_that_its_class_refuses_opens_the_question_again(store: Store, call: Call) -> None:
    """Section 5: a class validates once more, and a failure there reopens the question"""
    strict, config = Strict(), thread()
    question = the_id(call(chain(store.saver, strict.node), {"log": []}, config))
    with pytest.raises(ValidationError) as caught:
        call(chain(store.saver, strict.node), Command(resume={"n": 3}), config)
    assert [e["loc"] for e in caught.value.errors()] == [("n",)]
    (row,) = store.again().pending()
    assert (row.id, row.status, row.answer, row.by) == (question, "open", None, None)
    graph = chain(store.again(), strict.node)
    assert [i.id for i in graph.get_state(config).interrupts] == [question]
    assert [t.status for t in store.saver.threads()] == ["waiting"]
    assert asked(call(graph, None, config))[0].id == question
    assert call(graph, Command(resume={question: {"n": 4}}), config) == {"log": [4]}
    assert strict.runs["node"] == 3


def test_the_refused_answer_stays_on_the_record(saver: Any) -> None:
    """Section 5"""
    strict, config = Strict(), thread()
    graph = chain(saver, strict.node)
    question = the_id(graph.invoke({"log": []}, config))
    with pytest.raises(ValidationError):
        graph.invoke(Command(resume={"n": 3}), config)
    (key,) = (row.key for row in saver.threads())
    assert [e.kind for e in saver.events(key) if e.ref == question] == ["asked", "answered", "answer_refused"]


def test_a_node_cannot_swallow_a_refused_answer(saver: Any, call: Call) -> None:
    """Section 5: the caller is told even if the body caught the error"""
    strict, config = Strict(), thread()
    graph = chain(saver, strict.catching)
    question = the_id(call(graph, {"log": []}, config))
    with pytest.raises(ValidationError):
        call(graph, Command(resume={"n": 3}), config)
    assert [i.id for i in graph.get_state(config).interrupts] == [question]
    assert call(graph, Command(resume={"n": 4}), config) == {"log": [4]}


def test_neither_a_retry_nor_an_error_handler_takes_a_refused_answer(saver: Any, call: Call) -> None:
    """Section 5"""
    strict, config, handled = Strict(), thread(), []

    def handler(state: State, error: NodeError) -> State:
        handled.append(error)
        return {}

    graph = builder()
    policy = RetryPolicy(initial_interval=0, jitter=False, retry_on=Exception)
    graph.add_node("node", strict.node, retry_policy=policy, error_handler=handler).add_edge(START, "node")
    compiled = graph.compile(checkpointer=saver)
    call(compiled, {"log": []}, config)
    with pytest.raises(ValidationError):
        call(compiled, Command(resume={"n": 3}), config)
    assert (strict.runs["node"], handled) == (2, [])
    assert call(compiled, Command(resume={"n": 2}), config) == {"log": [2]}


def test_a_coroutine_takes_the_second_answer_after_a_refused_one(saver: Any) -> None:
    """Section 5, async"""
    strict, config = Strict(), thread()
    graph = chain(saver, strict.anode)

    async def talk() -> Any:
        await graph.ainvoke({"log": []}, config)
        with pytest.raises(ValidationError):
            await graph.ainvoke(Command(resume={"n": 3}), config)
        return await graph.ainvoke(Command(resume={"n": 4}), config)

    assert asyncio.run(talk()) == {"log": [4]}


@pytest.mark.parametrize("how", ["as a node", "called"])
def test_a_refused_answer_in_a_nested_graph_is_raised_at_the_root(saver: Any, call: Call, how: str) -> None:
    """Section 5, nested"""
    strict, config = Strict(), thread()
    inner = chain(None, strict.node)

    def calls(state: State) -> Any:
        return inner.invoke({"log": []})

    graph: Any = StateGraph(State)
    graph.add_node("inner", inner if how == "as a node" else calls).add_edge(START, "inner")
    compiled = graph.compile(checkpointer=saver)
    question = the_id(call(compiled, {"log": []}, config))
    with pytest.raises(ValidationError) as caught:
        call(compiled, Command(resume={"n": 3}), config)
    assert [e["loc"] for e in caught.value.errors()] == [("n",)]
    assert [(q.id, q.status) for q in saver.pending()] == [(question, "open")]
    assert [i.id for i in compiled.get_state(config).interrupts] == [question]
    assert call(compiled, Command(resume={question: {"n": 4}}), config) == {"log": [4]}


def test_a_refused_answer_leaves_a_good_sibling_answered(saver: Any, call: Call) -> None:
    """B25: what the class refuses shows only when the node runs; the sibling's answer stands"""
    strict, config = Strict(), thread()
    graph = parallel(saver, strict.node, strict.sibling)
    open_ids = ids(call(graph, {"log": []}, config))
    with pytest.raises(ValidationError):
        call(graph, Command(resume={open_ids["even?"]: {"n": 3}, open_ids["sibling?"]: "S"}), config)
    assert [q.id for q in saver.pending()] == [open_ids["even?"]]
    assert call(graph, Command(resume={"n": 4}), config) == {"log": [4, "S"]}
    assert strict.runs == {"node": 3, "sibling": 2}


def test_a_refused_second_answer_leaves_the_first_taken(saver: Any) -> None:
    """Section 5: only the question that was refused opens again"""

    def node(state: State) -> State:
        return {"log": [interrupt("name?"), interrupt("even?", response_schema=Even).n]}

    graph, config = chain(saver, node), thread()
    graph.invoke({"log": []}, config)
    second = the_id(graph.invoke(Command(resume="ana"), config))
    with pytest.raises(ValidationError):
        graph.invoke(Command(resume={"n": 1}), config)
    assert [q.id for q in saver.pending()] == [second]
    assert graph.invoke(Command(resume={"n": 2}), config) == {"log": ["ana", 2]}


class Dated(BaseModel):
    day: date


@pytest.mark.parametrize("given", ["2026-02-03", date(2026, 2, 3)], ids=["text", "date"])
def test_a_date_may_come_as_text_or_as_a_date(saver: Any, given: Any) -> None:
    """B22: answers come from JSON and from Python"""
    asking, config = Asking(Dated), thread()
    graph = chain(saver, asking.node)
    graph.invoke({"log": []}, config)
    graph.invoke(Command(resume={"day": given}), config)
    assert asking.got == [Dated(day=date(2026, 2, 3))]


def test_a_plain_type_is_a_schema_too(saver: Any) -> None:
    """B22"""
    asking, config = Asking(bool), thread()
    graph = chain(saver, asking.node)
    (question,) = asked(graph.invoke({"log": []}, config))
    assert question.response_schema == {"type": "boolean"}
    with pytest.raises(ValidationError):
        graph.invoke(Command(resume="perhaps"), config)
    graph.invoke(Command(resume=False), config)
    assert asking.got == [False]


@pytest.mark.parametrize("schema", [{"type": "objekt"}, {"$ref": "https://example.org/x"}, {"enum": {1}}], ids=repr)
def test_a_schema_that_is_none_is_refused_at_the_call(saver: Any, schema: Any) -> None:
    """B21"""
    with pytest.raises((UsageError, TypeError)):
        chain(saver, Asking(schema).node).invoke({"log": []}, thread())
    assert saver.pending() == []


def test_a_schema_that_changed_while_waiting_is_the_stored_one_for_the_answer(saver: Any) -> None:
    """Section 5: what was shown is enforced; the class of today judges once more when the node runs"""
    asking, config = Asking({"type": "integer"}), thread()
    graph = chain(saver, asking.node)
    graph.invoke({"log": []}, config)
    asking.schema = {"type": "string"}
    with pytest.raises(ValidationError):
        graph.invoke(Command(resume="seven"), config)
    graph.invoke(Command(resume=7), config)
    assert asking.got == [7]
