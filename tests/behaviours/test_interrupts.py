"""Questions asked by nodes: what a caller sees at a pause, and how the node goes on from an answer."""

from __future__ import annotations

import asyncio
import re
import threading
from typing import Any

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, builder, chain, parallel, the_id, thread
from waitpoint.errors import CheckpointerRequiredError, NodeError, WaitpointError
from waitpoint.graph import END, START, StateGraph
from waitpoint.types import Command, Interrupt, RetryPolicy, Send, interrupt


def ask(state: State) -> State:
    return {"log": [interrupt("name?")]}


def test_a_pause_is_a_result_with_a_list_of_questions_beside_the_state(saver: Any, call: Call) -> None:
    """B1"""
    result = call(chain(saver, ask), {"log": ["in"]}, thread())
    assert result["log"] == ["in"]
    (question,) = asked(result)
    assert question.value == "name?"


def test_a_question_has_value_id_and_no_schema_and_equals_by_its_fields(saver: Any) -> None:
    """B2"""
    (question,) = asked(chain(saver, ask).invoke({"log": []}, thread()))
    assert re.fullmatch("[0-9a-f]{32}", question.id)
    assert question.response_schema is None
    assert question == Interrupt("name?", question.id)
    assert question != Interrupt("name?", "0" * 32)
    assert question != Interrupt("other?", question.id)
    assert question != Interrupt("name?", question.id, response_schema={})


async def aask(state: State) -> State:
    return {"log": [interrupt("name?")]}


def test_asking_without_a_checkpointer_is_an_error_with_its_cure(call: Call) -> None:
    """B3, table: a question that nobody could answer is refused where it is asked"""
    with pytest.raises(CheckpointerRequiredError, match=r"interrupt\(\).*'ask'.*compile\(checkpointer="):
        call(chain(None, ask), {"log": []})


def test_asking_without_a_checkpointer_is_an_error_in_a_coroutine_a_subgraph_and_a_called_graph() -> None:
    """B3"""
    with pytest.raises(CheckpointerRequiredError, match="'aask'"):
        asyncio.run(chain(None, aask).ainvoke({"log": []}))
    outer = StateGraph(State).add_node("inner", chain(None, ask)).add_edge(START, "inner")
    with pytest.raises(CheckpointerRequiredError, match="'ask'"):
        outer.compile().invoke({"log": []})

    def calls(state: State) -> Any:
        return chain(None, ask).invoke({"log": []})

    with pytest.raises(CheckpointerRequiredError, match="'ask'"):
        chain(None, calls).invoke({"log": []})


def test_a_subgraph_asks_with_the_checkpointer_of_its_parent(saver: Any, call: Call) -> None:
    """B3: a subgraph inherits its saver"""
    outer = StateGraph(State).add_node("inner", chain(None, ask)).add_edge(START, "inner").compile(checkpointer=saver)
    config = thread()
    assert asked(call(outer, {"log": []}, config))[0].value == "name?"
    assert call(outer, Command(resume="ana"), config) == {"log": ["ana"]}


def test_a_subgraph_that_keeps_nothing_cannot_ask(saver: Any) -> None:
    """B3: checkpointer=False is no persistence at all, also inside a parent that has one"""
    inner = builder(ask).compile(checkpointer=False)
    outer = StateGraph(State).add_node("inner", inner).add_edge(START, "inner").compile(checkpointer=saver)
    with pytest.raises(CheckpointerRequiredError, match="'ask'"):
        outer.invoke({"log": []}, thread())


@pytest.mark.parametrize("config", [None, {}, {"configurable": {}}, {"configurable": {"thread_id": None}}])
def test_a_run_with_a_checkpointer_needs_a_thread_id(saver: Any, call: Call, config: Any) -> None:
    """B4"""
    with pytest.raises(ValueError, match="thread_id") as caught:
        call(chain(saver, ask), {"log": []}, config)
    assert isinstance(caught.value, WaitpointError)


def test_the_same_holds_for_streams_and_for_the_state(saver: Any, streamed: Call) -> None:
    """B4"""
    graph = chain(saver, ask)
    with pytest.raises(ValueError, match="thread_id"):
        streamed(graph, {"log": []}, {})
    for ask_for in (graph.get_state, lambda c: list(graph.get_state_history(c)), lambda c: graph.update_state(c, None)):
        with pytest.raises(ValueError, match="thread_id"):
            ask_for({})


def test_a_pause_is_no_failure_and_is_not_tried_again(saver: Any, call: Call) -> None:
    """B5"""
    calls = []

    def node(state: State) -> State:
        calls.append(1)
        return {"log": [interrupt("name?")]}

    graph = builder()
    graph.add_node("node", node, retry_policy=RetryPolicy(max_attempts=5, initial_interval=0, retry_on=BaseException))
    graph.add_edge(START, "node")
    compiled = graph.compile(checkpointer=saver)
    config = thread()
    call(compiled, {"log": []}, config)
    assert len(calls) == 1
    assert call(compiled, Command(resume="ana"), config) == {"log": ["ana"]}
    assert len(calls) == 2


def test_mode_updates_shows_a_pause_as_one_last_tuple(saver: Any, streamed: Call) -> None:
    """B6"""

    def first(state: State) -> State:
        return {"log": ["first"]}

    parts = streamed(chain(saver, first, ask), {"log": []}, thread())
    assert parts[0] == {"first": {"log": ["first"]}}
    assert list(parts[-1]) == ["__interrupt__"]
    assert len(parts) == 2
    (question,) = parts[-1]["__interrupt__"]
    assert isinstance(parts[-1]["__interrupt__"], tuple)
    assert question.value == "name?"


def test_mode_values_repeats_the_state_with_the_question_in_it(saver: Any, streamed: Call) -> None:
    """B6 with B170"""
    parts = streamed(chain(saver, ask), {"log": ["in"]}, thread(), stream_mode="values")
    assert parts[0] == {"log": ["in"]}
    (question,) = parts[-1].pop("__interrupt__")
    assert (parts[-1], question.value, len(parts)) == ({"log": ["in"]}, "name?", 2)


def test_an_answer_makes_the_node_run_again_from_its_first_line(saver: Any, call: Call) -> None:
    """B7"""
    lines = []

    def node(state: State) -> State:
        lines.append("before")
        answer = interrupt("name?")
        lines.append("after")
        return {"log": [answer]}

    graph, config = chain(saver, node), thread()
    call(graph, {"log": []}, config)
    assert lines == ["before"]
    assert call(graph, Command(resume="ana"), config) == {"log": ["ana"]}
    assert lines == ["before", "before", "after"]


def three_questions(state: State) -> State:
    return {"log": [interrupt("one?"), interrupt("two?"), interrupt("three?")]}


async def athree_questions(state: State) -> State:
    return {"log": [interrupt("one?"), interrupt("two?"), interrupt("three?")]}


def test_several_questions_of_a_node_are_answered_one_after_the_other(store: Store, call: Call) -> None:
    """B8; the store is opened again before each answer"""
    config = thread()
    seen = [the_id(call(chain(store.saver, three_questions), {"log": []}, config))]
    seen += [
        the_id(call(chain(store.again(), three_questions), Command(resume=answer), config)) for answer in ("a", "b")
    ]
    assert len(set(seen)) == 3
    assert call(chain(store.again(), three_questions), Command(resume="c"), config) == {"log": ["a", "b", "c"]}


def test_several_questions_of_a_coroutine_are_answered_one_after_the_other(store: Store) -> None:
    """B8"""
    graph, config = chain(store.saver, athree_questions), thread()

    async def talk() -> Any:
        await graph.ainvoke({"log": []}, config)
        await graph.ainvoke(Command(resume="a"), config)
        await graph.ainvoke(Command(resume="b"), config)
        return await graph.ainvoke(Command(resume="c"), config)

    assert asyncio.run(talk()) == {"log": ["a", "b", "c"]}


FALSY: list[Any] = [None, False, True, 0, 0.0, "", [], {}, b""]


@pytest.mark.parametrize("value", FALSY, ids=repr)
def test_every_value_is_an_answer(saver: Any, call: Call, value: Any) -> None:
    """B11, table: {} answers the single open question as every other value does"""
    graph, config = chain(saver, ask), thread()
    call(graph, {"log": []}, config)
    (answer,) = call(graph, Command(resume=value), config)["log"]
    assert answer == value
    assert type(answer) is type(value)


@pytest.mark.parametrize("value", FALSY, ids=repr)
def test_every_value_is_an_answer_by_id_too(saver: Any, value: Any) -> None:
    """B11"""
    graph, config = chain(saver, ask), thread()
    question = the_id(graph.invoke({"log": []}, config))
    (answer,) = graph.invoke(Command(resume={question: value}), config)["log"]
    assert answer == value
    assert type(answer) is type(value)


def done(state: State) -> State:
    return {"log": ["done"]}


def test_a_pause_shows_what_finished_siblings_wrote(saver: Any, call: Call, streamed: Call) -> None:
    """B16"""
    graph = parallel(saver, ask, done)
    assert call(graph, {"log": []}, thread())["log"] == ["done"]
    assert streamed(graph, {"log": []}, thread(), stream_mode="values")[-1]["log"] == ["done"]


def test_the_state_at_a_pause_lists_every_task_of_the_step(saver: Any) -> None:
    """B17"""

    def ask_more(state: State) -> State:
        return {"log": [interrupt("more?")]}

    graph, config = parallel(saver, ask, ask_more, done), thread()
    result = graph.invoke({"log": ["in"]}, config)
    state = graph.get_state(config)
    assert state.next == ("ask", "ask_more")
    tasks = {task.name: task for task in state.tasks}
    assert set(tasks) == {"ask", "ask_more", "done"}
    assert tasks["done"].result == {"log": ["done"]}
    assert tasks["done"].interrupts == ()
    for name, value in (("ask", "name?"), ("ask_more", "more?")):
        assert tasks[name].result is None
        assert isinstance(tasks[name].interrupts, tuple)
        assert [i.value for i in tasks[name].interrupts] == [value]
    assert isinstance(state.interrupts, tuple)
    assert list(state.interrupts) == asked(result)
    assert state.values == {"log": ["in", "done"]}


def test_an_update_as_the_end_clears_what_is_pending_and_keeps_what_finished(saver: Any) -> None:
    """B18"""
    graph, config = parallel(saver, ask, done), thread()
    question = the_id(graph.invoke({"log": ["in"]}, config))
    graph.update_state(config, None, as_node=END)
    state = graph.get_state(config)
    assert (state.next, state.tasks, state.interrupts) == ((), (), ())
    assert state.metadata["source"] == "update"
    assert state.values == {"log": ["in", "done"]}
    assert saver.pending() == []
    with pytest.raises(ValueError, match=question):
        graph.invoke(Command(resume={question: "late"}), config)


def test_an_error_handler_never_sees_a_pause(saver: Any, call: Call) -> None:
    """B20"""
    handled = []

    def handler(state: State, error: NodeError) -> State:
        handled.append(error)
        return {"log": ["handled"]}

    graph = builder(done, edges="parallel")
    graph.add_node("ask", ask, error_handler=handler)
    graph.add_edge(START, "ask")
    compiled, config = graph.compile(checkpointer=saver), thread()
    assert asked(call(compiled, {"log": []}, config))[0].value == "name?"
    assert sorted(call(compiled, Command(resume="ana"), config)["log"]) == ["ana", "done"]
    assert handled == []


def test_only_the_send_task_that_asked_runs_again(saver: Any, call: Call) -> None:
    """B29"""
    runs: list[int] = []
    lock = threading.Lock()

    def work(given: Any) -> State:
        with lock:
            runs.append(given)
        return {"log": [interrupt("sure?") if given == 1 else given]}

    graph = builder()
    graph.add_node("work", work)
    graph.add_conditional_edges(START, lambda _: [Send("work", n) for n in range(3)], ["work"])
    compiled, config = graph.compile(checkpointer=saver), thread()
    call(compiled, {"log": []}, config)
    assert sorted(runs) == [0, 1, 2]
    assert call(compiled, Command(resume="yes"), config) == {"log": [0, "yes", 2]}
    assert sorted(runs) == [0, 1, 1, 2]


@pytest.mark.parametrize("before", [0, 1, 5])
def test_the_number_of_nodes_before_does_not_matter_to_an_answer(saver: Any, call: Call, before: int) -> None:
    """B30"""
    graph: Any = StateGraph(State)
    names = [f"n{i}" for i in range(before)]
    for name in names:
        graph.add_node(name, done)
    graph.add_node("three_questions", three_questions)
    for a, b in zip([START, *names], [*names, "three_questions"], strict=True):
        graph.add_edge(a, b)
    compiled, config = graph.compile(checkpointer=saver), thread()
    call(compiled, {"log": []}, config)
    for answer in ("a", "b", "c"):
        result = call(compiled, Command(resume=answer), config)
    assert result == {"log": ["done"] * before + ["a", "b", "c"]}


def test_questions_of_one_node_in_a_loop_are_asked_anew_each_time_round(saver: Any, call: Call) -> None:
    """B30: the same question at the same place in another step is another question"""
    graph = builder(ask)
    graph.add_conditional_edges("ask", lambda state: "ask" if len(state["log"]) < 3 else END)
    compiled, config = graph.compile(checkpointer=saver), thread()
    seen = {the_id(call(compiled, {"log": []}, config))}
    for answer in ("a", "b"):
        seen.add(the_id(call(compiled, Command(resume=answer), config)))
    assert len(seen) == 3
    assert call(compiled, Command(resume="c"), config) == {"log": ["a", "b", "c"]}
