"""More scenarios of the section "resume-semantics": breakpoints, first-day mistakes, schemas, and one id everywhere."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, Literal, TypedDict

import pytest
from pydantic import BaseModel, Field, ValidationError

from tests.scenarios.conftest import Call
from tests.scenarios.world import Shelf, State, asked, run, texts, the_id, thread
from waitpoint.checkpoint.base import PendingFilter
from waitpoint.errors import (
    CheckpointerRequiredError,
    GraphValidationError,
    OutsideGraphError,
    UnknownInterruptError,
)
from waitpoint.graph import END, START, StateGraph
from waitpoint.types import Command, Interrupt, Send, interrupt

# --- S010 -------------------------------------------------------------------------------------------------------------


class WithNote(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    note: str
    notes: Annotated[list[str], operator.add]


class WithoutNote(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def deployed(schema: Any, shelf: Shelf, **options: Any) -> Any:
    """Compile one release of the program: the older one notes something."""
    notes: dict[str, Any] = {"note": "noted", "notes": ["noted"]} if schema is WithNote else {}

    def first(state: Any) -> Any:
        return {"log": ["first"], **notes}

    def last(state: Any) -> Any:
        return {"log": ["last"]}

    graph = StateGraph(schema).add_node("first", first).add_node("last", last)
    graph.add_edge(START, "first").add_edge("first", "last").add_edge("last", END)
    return graph.compile(checkpointer=shelf.open(), **options)


@pytest.mark.parametrize(
    "stop", [{"interrupt_before": ["last"]}, {"interrupt_after": ["first"]}], ids=["before", "after"]
)
def test_s010_a_breakpoint_lets_go_after_a_deploy(shelf: Shelf, call: Call, stop: Any) -> None:
    config = thread()
    assert call(deployed(WithNote, shelf, **stop), {"log": []}, config)["log"] == ["first"]
    for _ in range(4):
        done = call(deployed(WithoutNote, shelf, **stop), None, config)
        assert done == {"log": ["first", "last"]}
    kept = deployed(WithNote, shelf).get_state(config).values  # a key that this release does not know is kept
    assert kept == {"log": ["first", "last"], "note": "noted", "notes": ["noted"]}


def test_s010_a_question_is_answered_after_a_deploy_that_removed_a_key(shelf: Shelf, call: Call) -> None:
    def build(schema: Any) -> Any:
        def ask(state: Any) -> Any:
            return {"log": [interrupt("go?")]}

        def sibling(state: Any) -> Any:
            return {"log": ["sibling"], "note": "noted", "notes": ["noted"]}

        graph = StateGraph(schema).add_node("ask", ask).add_node("sibling", sibling)
        return graph.add_edge(START, "ask").add_edge(START, "sibling").compile(checkpointer=shelf.open())

    config = thread()
    question = the_id(call(build(WithNote), {"log": []}, config))
    state = build(WithoutNote).get_state(config)
    assert (state.next, [i.id for i in state.interrupts]) == (("ask",), [question])
    assert call(build(WithoutNote), Command(resume="yes"), config) == {"log": ["yes", "sibling"]}


def test_s010_a_thread_is_read_after_a_deploy_that_removed_a_node(shelf: Shelf, call: Call) -> None:
    config = thread()
    call(deployed(WithNote, shelf, interrupt_before=["last"]), {"log": []}, config)

    def other(state: Any) -> Any:
        return {"log": ["other"]}

    graph = StateGraph(WithoutNote).add_node("other", other).add_edge(START, "other").compile(checkpointer=shelf.open())
    assert graph.get_state(config).values == {"log": ["first"]}
    assert call(graph, {"log": ["again"]}, config)["log"] == ["first", "again", "other"]


# --- S011 -------------------------------------------------------------------------------------------------------------


def steps(shelf: Shelf, **options: Any) -> Any:
    graph = StateGraph(State)
    for before, name in ((START, "a"), ("a", "b"), ("b", "c")):

        def node(state: State, name: str = name) -> State:
            return {"log": [name]}

        graph.add_node(name, node).add_edge(before, name)
    return graph.compile(checkpointer=shelf.open(), **options)


BREAKPOINTS = [
    ({"interrupt_before": "*"}, [[], ["a"], ["a", "b"], ["a", "b", "c"]]),
    ({"interrupt_before": ["a", "b", "c"]}, [[], ["a"], ["a", "b"], ["a", "b", "c"]]),
    ({"interrupt_after": "*"}, [["a"], ["a", "b"], ["a", "b", "c"]]),
    ({"interrupt_after": ["a", "b", "c"]}, [["a"], ["a", "b"], ["a", "b", "c"]]),
    ({"interrupt_before": ["b"], "interrupt_after": ["b"]}, [["a"], ["a", "b"], ["a", "b", "c"]]),
    ({"interrupt_before": "*", "interrupt_after": "*"}, [[], ["a"], ["a", "b"], ["a", "b", "c"]]),
]


@pytest.mark.parametrize("per_call", [False, True], ids=["compiled", "per call"])
@pytest.mark.parametrize(("stops", "logs"), BREAKPOINTS, ids=lambda v: "" if isinstance(v, list) else " ".join(v))
def test_s011_every_static_breakpoint_works(shelf: Shelf, call: Call, stops: Any, logs: Any, per_call: bool) -> None:
    config = thread()
    compiled, called = ({}, stops) if per_call else (stops, {})
    given: Any = {"log": []}
    for number, log in enumerate(logs):
        assert call(steps(shelf, **compiled), given, config, **called)["log"] == log
        assert bool(steps(shelf).get_state(config).next) == (number < len(logs) - 1)
        given = None


def test_s011_an_update_as_a_node_does_not_run_through_the_next_breakpoint(shelf: Shelf, call: Call) -> None:
    config = thread()
    graph = steps(shelf, interrupt_before=["b", "c"])
    call(graph, {"log": []}, config)
    graph.update_state(config, {"log": ["b by hand"]}, as_node="b")
    assert graph.get_state(config).next == ("c",)
    assert call(graph, None, config)["log"] == ["a", "b by hand"]  # c has a breakpoint that was not stopped at yet
    assert call(graph, None, config)["log"] == ["a", "b by hand", "c"]


@pytest.mark.parametrize("when", ["interrupt_before", "interrupt_after"])
def test_s011_an_unknown_node_is_an_error_when_compiled_and_when_called(shelf: Shelf, call: Call, when: str) -> None:
    with pytest.raises(GraphValidationError, match="serach"):
        steps(shelf, **{when: ["serach"]})
    config = thread()
    with pytest.raises(ValueError, match="serach"):
        call(steps(shelf), {"log": []}, config, **{when: ["serach"]})
    assert steps(shelf).get_state(config).values == {}


# --- S013 -------------------------------------------------------------------------------------------------------------


class Routed:
    """draft, then a router to send or drop; with a pause after draft."""

    def __init__(self) -> None:
        self.routed: list[Any] = []

    def compile(self, shelf: Shelf) -> Any:
        def draft(state: State) -> State:
            return {"value": "send"}

        def router(state: State) -> Literal["send", "drop"]:
            self.routed.append(state["value"])
            return state["value"]

        def send(state: State) -> State:
            return {"log": ["sent"]}

        def drop(state: State) -> State:
            return {"log": ["dropped"]}

        graph = StateGraph(State).add_node(draft).add_node(send).add_node(drop)
        graph.add_edge(START, "draft").add_conditional_edges("draft", router)
        return graph.compile(checkpointer=shelf.open(), interrupt_after=["draft"])


@pytest.mark.parametrize("as_node", [None, "draft"])
def test_s013_pause_after_a_node_the_corrected_state_decides(shelf: Shelf, call: Call, as_node: Any) -> None:
    routed, config = Routed(), thread()
    call(routed.compile(shelf), {"log": []}, config)
    graph = routed.compile(shelf)
    graph.update_state(config, {"value": "drop"}, as_node=as_node)
    assert graph.get_state(config).next == ("drop",)
    assert call(graph, None, config) == {"log": ["dropped"], "value": "drop"}
    assert routed.routed == ["send", "drop"]  # it runs with the node, and again when the state is corrected


def test_s013_pause_after_a_node_without_a_correction_the_router_runs_once(shelf: Shelf, call: Call) -> None:
    routed, config = Routed(), thread()
    call(routed.compile(shelf), {"log": []}, config)
    assert call(routed.compile(shelf), None, config) == {"log": ["sent"], "value": "send"}
    assert routed.routed == ["send"]


# --- S015 -------------------------------------------------------------------------------------------------------------


def ask(state: State) -> State:
    return {"value": interrupt("go?")}


def one_node(saver: Any, node: Any = ask) -> Any:
    return StateGraph(State).add_node("ask", node).add_edge(START, "ask").compile(checkpointer=saver)


def test_s015_first_day_mistakes_asking_without_a_checkpointer(call: Call) -> None:
    for config in (None, thread()):
        with pytest.raises(CheckpointerRequiredError, match=r"compile\(checkpointer="):
            call(one_node(None), {"log": []}, config)
    inner = StateGraph(State).add_node(ask).add_edge(START, "ask").compile()
    outer = StateGraph(State).add_node("inner", inner).add_edge(START, "inner").compile()
    with pytest.raises(CheckpointerRequiredError, match=r"compile\(checkpointer="):
        call(outer, {"log": []})


def test_s015_first_day_mistakes_resuming_without_a_checkpointer(call: Call) -> None:
    with pytest.raises(UnknownInterruptError, match=r"compile\(checkpointer=|compile it with one"):
        call(one_node(None), Command(resume=True), thread())


@pytest.mark.parametrize("config", [None, {}, {"configurable": {}}, {"configurable": {"thread_id": None}}], ids=repr)
@pytest.mark.parametrize("given", [{"log": []}, None, Command(resume=1)], ids=repr)
def test_s015_first_day_mistakes_no_thread_id(shelf: Shelf, call: Call, given: Any, config: Any) -> None:
    with pytest.raises(ValueError, match="thread_id"):
        call(one_node(shelf.open()), given, config)
    with pytest.raises(ValueError, match="thread_id"):
        one_node(shelf.open()).get_state(config or {})


def test_s015_first_day_mistakes_asking_outside_of_a_graph() -> None:
    with pytest.raises(OutsideGraphError, match="inside a node"):
        interrupt("go?")


def test_s015_first_day_mistakes_an_empty_command(shelf: Shelf, call: Call) -> None:
    config = thread()
    for _ in range(2):  # on a thread that never ran, and on one that waits
        with pytest.raises(UnknownInterruptError, match="empty"):
            call(one_node(shelf.open()), Command(), config)
        if not shelf.open().pending():
            call(one_node(shelf.open()), {"log": []}, config)


def test_s015_first_day_mistakes_a_number_as_thread_id(shelf: Shelf, call: Call) -> None:
    graph = one_node(shelf.open())
    call(graph, {"log": []}, {"configurable": {"thread_id": 7}})
    assert [q.thread_id for q in shelf.open().pending()] == ["7"]
    assert call(graph, Command(resume=True), {"configurable": {"thread_id": "7"}}) == {"log": [], "value": True}
    for bad in (True, 1.5, ["7"], b"7", ""):
        with pytest.raises(ValueError, match="thread_id"):
            call(graph, {"log": []}, {"configurable": {"thread_id": bad}})


def test_s015_first_day_mistakes_asking_in_a_router_works(shelf: Shelf, call: Call) -> None:
    runs: list[str] = []

    def work(state: State) -> State:
        runs.append("work")
        return {"log": ["work"]}

    def router(state: State) -> str:
        return str(interrupt("where to?"))

    def there(state: State) -> State:
        return {"log": ["there"]}

    def build() -> Any:
        graph = StateGraph(State).add_node(work).add_node(there).add_edge(START, "work")
        return graph.add_conditional_edges("work", router, ["there", END]).compile(checkpointer=shelf.open())

    config = thread()
    assert texts(call(build(), {"log": []}, config)) == ["where to?"]
    assert call(build(), Command(resume="there"), config)["log"] == ["work", "there"]
    assert runs == ["work"]


# --- S018 -------------------------------------------------------------------------------------------------------------


class Form(BaseModel):
    name: str
    age: int = Field(ge=0)


class FormDict(TypedDict):
    name: str
    age: int


JSON_SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
}
GOOD = {"name": "Ana", "age": 7}


@pytest.mark.parametrize("schema", [Form, FormDict, JSON_SCHEMA], ids=["pydantic", "typeddict", "json schema"])
def test_s018_say_what_a_good_answer_looks_like(shelf: Shelf, call: Call, schema: Any) -> None:
    runs: list[int] = []

    def form(state: State) -> State:
        runs.append(1)
        answer = interrupt("Who?", response_schema=schema)
        assert isinstance(answer, Form) == (schema is Form)
        return {"value": dict(answer)}

    config = thread()
    (question,) = asked(call(one_node(shelf.open(), form), {"log": []}, config))
    assert question.response_schema is not None
    assert set(question.response_schema["properties"]) == {"name", "age"}
    for bad, place in (({"name": "Ana", "age": "old"}, ("age",)), ({"age": 7}, ("name",)), ("Ana", ())):
        for resume in (bad, {question.id: bad}):
            with pytest.raises(ValidationError) as refused:
                call(one_node(shelf.open(), form), Command(resume=resume), config)
            assert [e["loc"] for e in refused.value.errors()] == [place]
            if place:
                assert place[0] in str(refused.value)
    (still,) = shelf.open().pending()
    assert (still.id, still.value, still.answer) == (question.id, "Who?", None)
    assert still.response_schema == question.response_schema
    assert one_node(shelf.open(), form).get_state(config).interrupts == (question,)
    assert runs == [1]
    assert call(one_node(shelf.open(), form), Command(resume=GOOD), config)["value"] == GOOD


# --- S020 -------------------------------------------------------------------------------------------------------------


def nested(saver: Any) -> Any:
    def inner_ask(state: State) -> State:
        return {"log": [interrupt("inner")]}

    def outer_ask(state: State) -> State:
        return {"log": [interrupt("outer")]}

    def sent_ask(state: Any) -> State:
        return {"log": [interrupt({"sent": state["n"]})]}

    inner = StateGraph(State).add_node(inner_ask).add_edge(START, "inner_ask").compile()
    graph = StateGraph(State).add_node("inner", inner).add_node(outer_ask).add_node(sent_ask)
    graph.add_edge(START, "inner").add_edge(START, "outer_ask")
    graph.add_conditional_edges(START, lambda _: [Send("sent_ask", {"n": n}) for n in range(2)], ["sent_ask"])
    return graph.compile(checkpointer=saver)


def ids_of(interrupts: Any) -> dict[str, str]:
    """Return the ids of questions by their payload."""
    found = [Interrupt(**i) if isinstance(i, dict) else i for i in interrupts]  # mode `tasks` has them as dicts
    return {str(i.value): i.id for i in found}


def test_s020_the_id_in_the_live_event_is_the_id_in_the_store(shelf: Shelf) -> None:
    config = thread()
    modes = ["updates", "values", "tasks"]
    parts = list(nested(shelf.open()).stream({"log": []}, config, stream_mode=modes))
    views = [
        ids_of(next(p for m, p in parts if m == "updates" and "__interrupt__" in p)["__interrupt__"]),
        ids_of(parts[-1][1]["__interrupt__"]),
        ids_of(i for m, p in parts if m == "tasks" for i in p.get("interrupts", ())),
        ids_of(asked(nested(shelf.open()).invoke(None, config))),
    ]
    for graph in (nested(shelf.open()), nested(shelf.open())):
        state = graph.get_state(config)
        views.append(ids_of(state.interrupts))
        views.append(ids_of(i for t in state.tasks for i in t.interrupts))
        views.append(ids_of(graph.get_state(config, subgraphs=True).interrupts))
        views.append(ids_of(next(graph.get_state_history(config)).interrupts))
        views.append(ids_of(graph.get_state(state.config).interrupts))
    deep = nested(shelf.open()).get_state(config, subgraphs=True)
    (child,) = (t.state for t in deep.tasks if t.name == "inner")
    assert ids_of(child.interrupts) == {"inner": views[0]["inner"]}
    views.append({str(q.value): q.id for q in shelf.open().pending()})
    assert len(views[0]) == 4
    for number, view in enumerate(views):
        assert view == views[0], number


def test_s020_the_id_stays_for_the_life_of_the_question(shelf: Shelf, call: Call) -> None:
    config = thread()
    ids = ids_of(asked(call(nested(shelf.open()), {"log": []}, config)))
    for text in list(ids)[:3]:
        left = call(nested(shelf.open()), Command(resume={ids.pop(text): text}), config)
        assert ids_of(asked(left)) == ids
        assert ids_of(nested(shelf.open()).get_state(config).interrupts) == ids
    call(nested(shelf.open()), Command(resume=next(iter(ids))), config)
    assert shelf.open().pending() == []
    settled = shelf.open().pending(PendingFilter(answerable=False))
    assert {q.status for q in settled} == {"answered"}
    assert all(str(q.value) == q.answer for q in settled)


def test_s020_the_id_is_the_same_in_another_process(disk: Shelf) -> None:
    config = thread("paper")
    started = run("two_questions.py", disk.path, "paper", "start")
    assert [q.id for q in disk.open().pending()] == started["ids"]
    again = run("two_questions.py", disk.path, "paper", "look")
    assert again["ids"] == started["ids"]
    answered = run("two_questions.py", disk.path, "paper", "answer", started["ids"][0], "yes")
    assert answered["ids"] == started["ids"][1:]
    assert [q.thread_id for q in disk.open().pending()] == [config["configurable"]["thread_id"]]


async def test_s020_the_id_is_the_same_in_an_async_stream(shelf: Shelf) -> None:
    config = thread()
    graph = nested(shelf.open())
    parts = [p async for p in graph.astream({"log": []}, config, stream_mode="updates")]
    live = ids_of(parts[-1]["__interrupt__"])
    assert live == ids_of((await graph.aget_state(config)).interrupts)
    assert live == {str(q.value): q.id for q in await asyncio.to_thread(shelf.open().pending)}
