"""Questions that are closed without an answer: by a person, by new input, or because the node no longer asks them."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, builder, chain, ids, parallel, the_id, thread
from waitpoint.engine.answers import answer, withdraw
from waitpoint.errors import AlreadyAnsweredError, NotFoundError, QuestionWithdrawn, UnknownInterruptError
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, RetryPolicy, interrupt, step


def ask(state: State) -> State:
    return {"log": [interrupt("name?")]}


def ask_or_go_on(state: State) -> State:
    try:
        return {"log": [interrupt("name?")]}
    except QuestionWithdrawn as gone:
        return {"log": [f"without: {gone.reason}"]}


async def aask_or_go_on(state: State) -> State:
    return ask_or_go_on(state)


def test_a_withdrawn_question_makes_its_task_ready_and_raises_there(store: Store, call: Call) -> None:
    """Section 5"""
    graph, config = chain(store.saver, ask_or_go_on), thread()
    question = the_id(call(graph, {"log": []}, config))
    row = withdraw(store.again(), question, "not needed any more", by="ana")
    assert row.status == "ready"
    (listed,) = store.saver.pending(answerable=False)
    assert (listed.status, listed.reason, listed.by, listed.can_answer) == (
        "withdrawn", "not needed any more", "ana", False,
    )  # fmt: skip
    assert store.saver.pending() == []
    assert graph.get_state(config).interrupts == ()
    assert call(chain(store.again(), ask_or_go_on), None, config) == {"log": ["without: not needed any more"]}


def test_it_raises_in_a_coroutine_too(saver: Any) -> None:
    """Section 5, async"""
    graph, config = chain(saver, aask_or_go_on), thread()

    async def talk() -> Any:
        question = the_id(await graph.ainvoke({"log": []}, config))
        withdraw(saver, question, "why not")
        return await graph.ainvoke(None, config)

    assert asyncio.run(talk()) == {"log": ["without: why not"]}


def test_a_node_that_does_not_catch_it_fails_by_name(saver: Any, call: Call) -> None:
    """Section 5"""
    runs: list[int] = []

    def node(state: State) -> State:
        runs.append(1)
        return {"log": [interrupt("name?")]}

    graph = builder()
    policy = RetryPolicy(max_attempts=2, initial_interval=0, jitter=False)
    compiled = graph.add_node("node", node, retry_policy=policy).add_edge(START, "node").compile(checkpointer=saver)
    config = thread()
    question = the_id(call(compiled, {"log": []}, config))
    withdraw(saver, question, "gone")
    for _ in range(2):
        with pytest.raises(QuestionWithdrawn, match=f"{question}.*gone.*catch QuestionWithdrawn") as caught:
            call(compiled, None, config)
        assert (caught.value.interrupt_id, caught.value.reason) == (question, "gone")
    assert compiled.get_state(config).next == ("node",)


def test_a_withdrawn_question_takes_no_answer(saver: Any, call: Call) -> None:
    """Section 5: refused by name"""
    graph, config = chain(saver, ask_or_go_on), thread()
    question = the_id(call(graph, {"log": []}, config))
    withdraw(saver, question, "gone")
    with pytest.raises(UnknownInterruptError, match="withdrawn: gone"):
        call(graph, Command(resume={question: "ana"}), config)
    with pytest.raises(UnknownInterruptError):
        call(graph, Command(resume="ana"), config)
    with pytest.raises(UnknownInterruptError, match="withdrawn: gone"):
        answer(saver, question, "ana")
    assert call(graph, None, config) == {"log": ["without: gone"]}


def test_only_an_open_question_can_be_withdrawn(saver: Any) -> None:
    """Section 5"""
    graph, config = chain(saver, ask), thread()
    question = the_id(graph.invoke({"log": []}, config))
    with pytest.raises(NotFoundError, match="0" * 32):
        withdraw(saver, "0" * 32, "x")
    answer(saver, question, "ana")
    with pytest.raises(AlreadyAnsweredError, match=question):
        withdraw(saver, question, "too late")
    assert graph.invoke(None, config) == {"log": ["ana"]}


def test_a_question_is_withdrawn_once(saver: Any) -> None:
    """Section 5"""
    question = the_id(chain(saver, ask).invoke({"log": []}, thread()))
    withdraw(saver, question, "first")
    with pytest.raises(UnknownInterruptError, match="withdrawn: first"):
        withdraw(saver, question, "second")


def test_withdrawing_one_of_several_runs_only_its_task(saver: Any, call: Call) -> None:
    """Section 5"""
    runs: Counter[str] = Counter()

    def a(state: State) -> State:
        runs["a"] += 1
        return ask_or_go_on(state)

    def b(state: State) -> State:
        runs["b"] += 1
        return {"log": [interrupt("b?")]}

    graph, config = parallel(saver, a, b), thread()
    open_ids = ids(call(graph, {"log": []}, config))
    withdraw(saver, open_ids["name?"], "gone")
    result = call(graph, None, config)
    assert (result["log"], ids(result)) == (["without: gone"], {"b?": open_ids["b?"]})
    assert runs == {"a": 2, "b": 1}
    assert call(graph, Command(resume="B"), config) == {"log": ["without: gone", "B"]}


@pytest.mark.parametrize("how", ["as a node", "called"])
def test_a_withdrawn_question_of_a_nested_graph_raises_there(saver: Any, call: Call, how: str) -> None:
    """Section 5, nested"""
    inner = chain(None, ask_or_go_on)

    def calls(state: State) -> Any:
        return inner.invoke({"log": []})

    graph: Any = StateGraph(State).add_node("inner", inner if how == "as a node" else calls).add_edge(START, "inner")
    compiled, config = graph.compile(checkpointer=saver), thread()
    question = the_id(call(compiled, {"log": []}, config))
    withdraw(saver, question, "gone")
    assert call(compiled, None, config) == {"log": ["without: gone"]}


def test_a_node_may_ask_something_else_after_a_withdrawal(saver: Any, call: Call) -> None:
    """Section 5: what was withdrawn stays so on every later attempt"""

    def node(state: State) -> State:
        try:
            first = interrupt("first?")
        except QuestionWithdrawn:
            first = "none"
        return {"log": [first, interrupt("second?")]}

    graph, config = chain(saver, node), thread()
    withdraw(saver, the_id(call(graph, {"log": []}, config)), "gone")
    assert [i.value for i in asked(call(graph, None, config))] == ["second?"]
    assert call(graph, Command(resume=2), config) == {"log": ["none", 2]}


# --- questions that an attempt did not reach ---


class Wanted:
    """Nodes that ask what the test wants at the moment."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)

    def node(self, state: State) -> State:
        answers, pause = [], None
        for name in self.names:
            try:
                answers.append((name, interrupt({"about": name})))
            except BaseException as error:
                pause = error
        if pause is not None:
            raise pause
        return {"log": answers}


def by_name(saver: Any, status: str) -> dict[str, str]:
    rows = saver.pending(answerable=False)
    return {row.value["about"]: row.id for row in rows if row.status == status}


def test_an_open_question_that_was_not_reached_is_withdrawn_when_the_task_returns(saver: Any, call: Call) -> None:
    """Section 5"""
    wanted, config = Wanted("a", "b"), thread()
    graph = chain(saver, wanted.node)
    call(graph, {"log": []}, config)
    open_ids = by_name(saver, "open")
    wanted.names = ["a"]
    assert call(graph, Command(resume={open_ids["a"]: 1}), config) == {"log": [("a", 1)]}
    assert by_name(saver, "open") == {}
    assert by_name(saver, "withdrawn") == {"b": open_ids["b"]}
    with pytest.raises(UnknownInterruptError, match="did not ask it"):
        call(graph, Command(resume={open_ids["b"]: 2}), config)


def test_an_open_question_that_was_not_reached_is_withdrawn_when_the_task_pauses(saver: Any, call: Call) -> None:
    """Section 5"""
    wanted, config = Wanted("a", "b"), thread()
    graph = chain(saver, wanted.node)
    call(graph, {"log": []}, config)
    open_ids = by_name(saver, "open")
    wanted.names = ["a", "c"]
    result = call(graph, Command(resume={open_ids["a"]: 1}), config)
    assert [i.value["about"] for i in asked(result)] == ["c"]
    assert set(by_name(saver, "open")) == {"c"}
    assert by_name(saver, "withdrawn") == {"b": open_ids["b"]}
    (key,) = (row.key for row in saver.threads())
    assert [e.kind for e in saver.events(key) if e.ref == open_ids["b"]] == ["asked", "withdrawn"]


def test_an_open_question_survives_an_attempt_that_failed_before_it(saver: Any, call: Call) -> None:
    """Section 5: only if its task paused or returned"""
    broken = [False]
    wanted, config = Wanted("a", "b"), thread()

    def node(state: State) -> State:
        if broken[0]:
            raise ValueError("broken")
        return wanted.node(state)

    graph = chain(saver, node)
    call(graph, {"log": []}, config)
    open_ids = by_name(saver, "open")
    broken[0] = True
    with pytest.raises(ValueError, match="broken"):
        call(graph, Command(resume={open_ids["a"]: 1}), config)
    assert by_name(saver, "open") == {"b": open_ids["b"]}
    assert [i.id for i in graph.get_state(config).interrupts] == [open_ids["b"]]
    broken[0] = False
    assert call(graph, Command(resume={open_ids["b"]: 2}), config) == {"log": [("a", 1), ("b", 2)]}


def test_a_question_that_was_left_out_once_is_asked_anew(saver: Any, call: Call) -> None:
    """Section 5: nobody withdrew it, so the node is not told that somebody did"""
    wanted, config = Wanted("a", "b"), thread()
    graph = chain(saver, wanted.node)
    call(graph, {"log": []}, config)
    first = by_name(saver, "open")
    wanted.names = ["a", "c"]
    call(graph, Command(resume={first["a"]: 1}), config)
    wanted.names = ["a", "c", "b"]
    second = by_name(saver, "open")
    result = call(graph, Command(resume={second["c"]: 3}), config)
    (question,) = asked(result)
    assert question.value == {"about": "b"}
    assert question.id != first["b"]
    assert call(graph, Command(resume=2), config) == {"log": [("a", 1), ("c", 3), ("b", 2)]}


def test_what_a_called_graph_asked_is_withdrawn_when_it_is_not_called_again(saver: Any, call: Call) -> None:
    """Section 5, nested: no question of a graph that is gone stays in the list"""

    def inner(state: State) -> State:
        return {"log": [interrupt({"about": state["value"]})]}

    child = chain(None, inner)
    wanted, config = ["a", "b"], thread()

    def node(state: State) -> State:
        found, pause = [], None
        for name in wanted:
            try:
                found += child.invoke({"log": [], "value": name})["log"]
            except BaseException as error:
                pause = error
        if pause is not None:
            raise pause
        return {"log": found}

    graph = chain(saver, node)
    assert sorted(i.value["about"] for i in asked(call(graph, {"log": []}, config))) == ["a", "b"]
    open_ids = by_name(saver, "open")
    wanted.remove("b")
    assert call(graph, Command(resume={open_ids["a"]: 1}), config) == {"log": [1]}
    assert by_name(saver, "open") == {}
    assert by_name(saver, "withdrawn") == {"b": open_ids["b"]}


def test_a_called_graph_that_was_left_out_once_asks_anew(saver: Any, call: Call) -> None:
    """Section 5, nested: the same at a pause, and the graph asks anew when it is called again"""
    child, config = chain(None, ask), thread()
    rounds = [["first?", child], ["first?", "second?"], ["first?", "second?", child]]

    def node(state: State) -> State:
        found, pause = [], None
        for what in rounds[0]:
            try:
                found.append(interrupt(what) if isinstance(what, str) else child.invoke({"log": []})["log"][0])
            except BaseException as error:
                pause = error
        if pause is not None:
            raise pause
        return {"log": found}

    graph = chain(saver, node)
    open_ids = ids(call(graph, {"log": []}, config))
    assert set(open_ids) == {"first?", "name?"}
    rounds.pop(0)
    result = call(graph, Command(resume={open_ids["first?"]: 1}), config)
    assert set(ids(result)) == {"second?"}
    assert [q.value for q in saver.pending()] == ["second?"]
    rounds.pop(0)
    again = ids(call(graph, Command(resume=2), config))
    assert set(again) == {"name?"}
    assert again["name?"] != open_ids["name?"]
    assert call(graph, Command(resume="ana"), config) == {"log": [1, 2, "ana"]}


def test_a_step_beside_a_withdrawn_question_is_not_run_again(saver: Any, call: Call) -> None:
    """Section 5 with 6"""
    effects: list[int] = []

    def node(state: State) -> State:
        step(effects.append, 1)
        return ask_or_go_on(state)

    graph, config = chain(saver, node), thread()
    withdraw(saver, the_id(call(graph, {"log": []}, config)), "gone")
    assert call(graph, None, config) == {"log": ["without: gone"]}
    assert effects == [1]
