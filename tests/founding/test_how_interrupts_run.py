"""How interrupts run: what is run again, in which order answers are replayed, streams, design rules, breakpoints."""

import asyncio
import operator
from collections.abc import Callable
from typing import Annotated, Any, Literal, NotRequired

import pytest
from pydantic import ValidationError
from typing_extensions import TypedDict

from tests.founding.saving import CONFIG, Saver, run
from waitpoint.errors import PayloadError, SwallowedInterruptError
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt, step


class State(TypedDict, total=False):
    answer: Any
    log: Annotated[list[str], operator.add]


def one_node(body: Callable[[State], Any], saver: Saver, name: str = "node") -> Any:
    return StateGraph(State).add_node(name, body).add_edge(START, name).compile(checkpointer=saver)


def test_what_stands_before_the_question_runs_on_both_runs_and_what_follows_once(saver: Saver) -> None:
    printed: list[Any] = []

    def node(state: State) -> State:
        printed.append("before")
        answer = interrupt("continue?")
        printed.append(("after", answer))
        return {"answer": answer}

    graph = one_node(node, saver)
    assert run(graph, {})["__interrupt__"][0].value == "continue?"
    assert printed == ["before"]
    assert run(graph, Command(resume="yes"))["answer"] == "yes"
    assert printed == ["before", "before", ("after", "yes")]


def test_several_questions_of_a_node_are_replayed_row_by_row(saver: Saver) -> None:
    rows: list[list[str]] = []

    def profile(state: State) -> State:
        row: list[str] = []
        rows.append(row)
        answers = []
        for question in ("Your name?", "Your age?", "Your city?"):
            row.append(f"asks {question}")
            answers.append(interrupt(question))
            row[-1] = f"replays {question} {answers[-1]}"
        return {"answer": answers}

    graph = one_node(profile, saver)
    values = [run(graph, {})["__interrupt__"][0].value]
    for answer in ("Ann", 31):
        values.append(run(graph, Command(resume=answer))["__interrupt__"][0].value)
    last = run(graph, Command(resume="Rome"))
    assert values == ["Your name?", "Your age?", "Your city?"]
    assert last["answer"] == ["Ann", 31, "Rome"]
    assert rows == [
        ["asks Your name?"],
        ["replays Your name? Ann", "asks Your age?"],
        ["replays Your name? Ann", "replays Your age? 31", "asks Your city?"],
        ["replays Your name? Ann", "replays Your age? 31", "replays Your city? Rome"],
    ]


def test_parallel_branches_are_answered_at_once_by_a_map_of_ids(saver: Saver) -> None:
    graph = (
        StateGraph(State)
        .add_node("a", lambda s: {"log": [f"a: {interrupt('ask a')}"]})
        .add_node("b", lambda s: {"log": [f"b: {interrupt('ask b')}"]})
        .add_edge(START, "a")
        .add_edge(START, "b")
        .compile(checkpointer=saver)
    )
    ids = {i.value: i.id for i in run(graph, {})["__interrupt__"]}
    answers = {ids["ask a"]: "answer for a", ids["ask b"]: "answer for b"}
    assert run(graph, Command(resume=answers))["log"] == ["a: answer for a", "b: answer for b"]


def asking_twice(saver: Saver) -> Any:
    def first(state: State) -> State:
        return {"log": [f"first: {interrupt('one')}"]}

    def second(state: State) -> State:
        return {"log": [f"second: {interrupt('two')}"]}

    return (
        StateGraph(State)
        .add_node("plan", lambda s: {"log": ["plan"]})
        .add_node(first)
        .add_node(second)
        .add_edge(START, "plan")
        .add_edge("plan", "first")
        .add_edge("first", "second")
        .compile(checkpointer=saver)
    )


def test_a_streaming_loop_leaves_at_the_question_and_comes_back_with_the_answer(saver: Saver) -> None:
    graph = asking_twice(saver)
    rendered: list[Any] = []
    waiting = iter(["A1", "A2"])
    given: Any = {}
    payloads = []
    while True:
        payload = None
        for chunk in graph.stream(given, CONFIG):
            if "__interrupt__" in chunk:
                payload = chunk["__interrupt__"][0].value
                break
            rendered.append(chunk)
        if payload is None:
            break
        payloads.append(payload)
        given = Command(resume=next(waiting))
    assert payloads == ["one", "two"]
    assert rendered == [
        {"plan": {"log": ["plan"]}},
        {"first": {"log": ["first: A1"]}},
        {"second": {"log": ["second: A2"]}},
    ]
    assert graph.get_state(CONFIG).values["log"] == ["plan", "first: A1", "second: A2"]


def test_the_same_streaming_loop_works_under_asyncio(saver: Saver) -> None:
    async def talk() -> list[Any]:
        graph = asking_twice(saver)
        given: Any = {}
        payloads: list[Any] = []
        while True:
            payload = None
            async for chunk in graph.astream(given, CONFIG):
                if "__interrupt__" in chunk:
                    payload = chunk["__interrupt__"][0].value
                    break
            if payload is None:
                return [*payloads, (await graph.aget_state(CONFIG)).values["log"]]
            payloads.append(payload)
            given = Command(resume=f"answer {payload}")

    assert asyncio.run(talk()) == ["one", "two", ["plan", "first: answer one", "second: answer two"]]


def test_rule_1_catching_exceptions_does_not_catch_the_pause(saver: Saver) -> None:
    def careful(state: State) -> State:
        try:
            return {"answer": interrupt("go on?")}
        except Exception as error:
            return {"answer": repr(error)}

    graph = one_node(careful, saver)
    assert run(graph, {})["__interrupt__"][0].value == "go on?"
    assert run(graph, Command(resume=1))["answer"] == 1


def test_rule_1_a_bare_except_that_swallows_the_pause_is_noticed_and_named(saver: Saver) -> None:
    def bad_node(state: State) -> State:
        try:
            return {"answer": interrupt("go on?")}
        except:  # noqa: E722 - the mistake under test
            return {"answer": "swallowed"}

    with pytest.raises(SwallowedInterruptError, match="bad_node"):
        run(one_node(bad_node, saver, "bad_node"), {})


def test_rule_2_an_effect_before_the_question_repeats_unless_it_is_a_step(saver: Saver) -> None:
    plain: list[str] = []
    recorded: list[str] = []

    def node(state: State) -> State:
        plain.append("created")
        step(recorded.append, "created")
        return {"answer": interrupt("approve?")}

    graph = one_node(node, saver)
    run(graph, {})
    run(graph, Command(resume=True))
    assert plain == ["created", "created"]
    assert recorded == ["created"]


def test_rule_3_a_question_that_is_skipped_on_resume_never_takes_anothers_answer(saver: Saver) -> None:
    asks_first = [True]

    def node(state: State) -> State:
        if asks_first[0]:
            interrupt("May I read?")
        return {"answer": interrupt("May I delete?")}

    graph = one_node(node, saver)
    run(graph, {})
    asks_first[0] = False
    again = run(graph, Command(resume="yes"))
    assert [i.value for i in again["__interrupt__"]] == ["May I delete?"]
    assert run(graph, Command(resume="no"))["answer"] == "no"


@pytest.mark.parametrize("culprit", [lambda: 1, object(), open], ids=["function", "instance", "builtin"])
def test_rule_4_a_payload_holds_protocol_data_only(saver: Saver, culprit: Any) -> None:
    graph = one_node(lambda s: {"answer": interrupt({"type": "x", "items": [1, culprit]})}, saver)
    with pytest.raises(PayloadError, match=r"items\[1\]"):
        run(graph, {})


class Approval(TypedDict):
    type: Literal["approval"]
    question: str
    details: NotRequired[Any]


class Decision(TypedDict):
    action: Literal["approve", "reject"]


def test_payload_and_answer_are_a_typed_protocol(saver: Saver) -> None:
    def node(state: State) -> State:
        payload: Approval = {"type": "approval", "question": "Really?"}
        decision = interrupt(payload, response_schema=Decision)
        return {"answer": decision["action"]}

    graph = one_node(node, saver)
    (asked,) = run(graph, {})["__interrupt__"]
    assert asked.response_schema["properties"]["action"]["enum"] == ["approve", "reject"]
    with pytest.raises(ValidationError) as refused:
        run(graph, Command(resume={"action": "maybe"}))
    assert refused.value.errors()[0]["loc"] == ("action",)
    assert run(graph, Command(resume={"action": "reject"}))["answer"] == "reject"


def three_nodes(saver: Saver, **options: Any) -> Any:
    graph = StateGraph(State)
    for name in ("node_a", "node_b", "node_c"):
        graph.add_node(name, lambda s, name=name: {"log": [name]})
    graph.add_edge(START, "node_a").add_edge("node_a", "node_b").add_edge("node_b", "node_c")
    return graph.compile(checkpointer=saver, **options)


STOPS = {"interrupt_before": ["node_a"], "interrupt_after": ["node_b", "node_c"]}


@pytest.mark.parametrize("where", ["compile", "call"])
def test_breakpoints_are_set_when_compiling_or_for_one_call_and_stepped_with_none(saver: Saver, where: str) -> None:
    graph = three_nodes(saver, **(STOPS if where == "compile" else {}))
    options = STOPS if where == "call" else {}
    seen = [run(graph, {}, **options)]
    for _ in range(3):
        seen.append(run(graph, None, **options))
    assert [s.get("log", []) for s in seen] == [
        [],
        ["node_a", "node_b"],
        ["node_a", "node_b", "node_c"],
        ["node_a", "node_b", "node_c"],
    ]
    assert all("__interrupt__" not in s for s in seen)


def test_the_two_kinds_of_interrupt_compared(saver: Saver) -> None:
    """The table: purpose, granularity, how to go on, whether new data comes in, whether the code changes."""
    static = three_nodes(saver, interrupt_before=["node_b"])
    run(static, {}, {"configurable": {"thread_id": "static"}})
    state = static.get_state({"configurable": {"thread_id": "static"}})
    assert (state.next, state.interrupts) == (("node_b",), ())  # at a node's edge, with nothing to answer
    after = run(static, None, {"configurable": {"thread_id": "static"}})
    assert after["log"] == ["node_a", "node_b", "node_c"]  # goes on with None, on the old input

    def inside(state: State) -> State:
        before = ["before"]
        return {"log": [*before, interrupt("in the middle")]}

    dynamic = one_node(inside, saver, "inside")
    asked = run(dynamic, {}, {"configurable": {"thread_id": "dynamic"}})
    assert [i.value for i in asked["__interrupt__"]] == ["in the middle"]
    same = run(dynamic, None, {"configurable": {"thread_id": "dynamic"}})
    assert [i.id for i in same["__interrupt__"]] == [i.id for i in asked["__interrupt__"]]  # None answers nothing
    after = run(dynamic, Command(resume="new data"), {"configurable": {"thread_id": "dynamic"}})
    assert after["log"] == ["before", "new data"]


def test_the_checkpointer_keeps_the_thread_and_needs_no_store(saver: Saver) -> None:
    graph = one_node(lambda s: {"answer": interrupt("?")}, saver)
    run(graph, {})
    assert graph.store is None
    assert graph.get_state(CONFIG).next == ("node",)
    assert [q.thread_id for q in saver.pending()] == ["thread-1"]
