"""Static breakpoints: where a run stops without a question, how that looks, and how it goes on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, builder, chain, parallel, thread
from waitpoint.errors import GraphValidationError, UnknownInterruptError
from waitpoint.graph import START, StateGraph
from waitpoint.runtime import RunControl
from waitpoint.types import Command, Send, interrupt


def a(state: State) -> State:
    return {"log": ["a"]}


def b(state: State) -> State:
    return {"log": ["b"]}


def c(state: State) -> State:
    return {"log": ["c"]}


def silent(state: State) -> None:
    return None


# --- where it stops ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "names", "stops"),
    [
        ("interrupt_before", ["b"], [["a"]]),
        ("interrupt_before", "*", [[], ["a"], ["a", "b"]]),
        ("interrupt_before", ["a", "c"], [[], ["a", "b"]]),
        ("interrupt_after", ["b"], [["a", "b"]]),
        ("interrupt_after", ["a", "b"], [["a"], ["a", "b"]]),
        ("interrupt_after", "*", [["a"], ["a", "b"], ["a", "b", "c"]]),
    ],
)
@pytest.mark.parametrize("given", ["at compile", "at the call"])
def test_a_run_stops_before_or_after_the_named_nodes(
    saver: Any, call: Call, option: str, names: Any, stops: list[Any], given: str
) -> None:
    """B65"""
    graph = chain(saver, a, b, c, **({option: names} if given == "at compile" else {}))
    options = {option: names} if given == "at the call" else {}
    config = thread()
    assert call(graph, {"log": []}, config, **options)["log"] == stops[0]
    for stop in stops[1:]:
        assert call(graph, None, config, **options)["log"] == stop
    assert call(graph, None, config, **options)["log"] == ["a", "b", "c"]
    assert graph.get_state(config).next == ()


def test_names_of_a_call_take_the_place_of_those_of_compile(saver: Any, call: Call) -> None:
    """B65"""
    graph = chain(saver, a, b, c, interrupt_before=["b"])
    config = thread()
    assert call(graph, {"log": []}, config, interrupt_before=["c"])["log"] == ["a", "b"]
    assert call(graph, {"log": []}, thread(), interrupt_before=[])["log"] == ["a", "b", "c"]


@pytest.mark.parametrize("option", ["interrupt_before", "interrupt_after"])
def test_a_name_that_is_no_node_is_refused_with_a_suggestion(saver: Any, call: Call, option: str) -> None:
    with pytest.raises(GraphValidationError, match=r"approval.*did you mean 'approve'"):
        builder_with("approve").compile(checkpointer=saver, **{option: ["approval"]})
    graph = builder_with("approve").compile(checkpointer=saver)
    with pytest.raises(GraphValidationError, match=r"approval.*did you mean 'approve'"):
        call(graph, {"log": []}, thread(), **{option: ["approval"]})


def builder_with(name: str) -> Any:
    return StateGraph(State).add_node(name, a).add_edge(START, name)


def test_breakpoints_fire_even_if_nodes_write_nothing(saver: Any, call: Call) -> None:
    """B68"""
    builder: Any = StateGraph(State)
    builder.add_node("one", silent).add_node("two", silent).add_node("three", silent)
    builder.add_edge(START, "one").add_edge("one", "two").add_edge("two", "three")
    graph = builder.compile(checkpointer=saver, interrupt_before=["two"], interrupt_after=["two"])
    config = thread()
    call(graph, {"log": ["in"]}, config)
    assert graph.get_state(config).next == ("two",)
    call(graph, None, config)
    assert graph.get_state(config).next == ("three",)
    call(graph, None, config)
    assert graph.get_state(config).next == ()


def test_a_breakpoint_works_without_a_checkpointer_but_ends_the_run(call: Call) -> None:
    """B65"""
    assert call(chain(None, a, b), {"log": []}, interrupt_before=["b"])["log"] == ["a"]


def test_a_breakpoint_before_a_node_reached_by_send_stops_all_its_tasks(saver: Any, call: Call) -> None:
    """B65"""

    def work(item: str) -> State:
        return {"log": [item]}

    graph: Any = StateGraph(State).add_node("work", work)
    graph.add_conditional_edges(START, lambda s: [Send("work", "x"), Send("work", "y")])
    graph = graph.compile(checkpointer=saver, interrupt_before=["work"])
    config = thread()
    assert call(graph, {"log": []}, config)["log"] == []
    assert graph.get_state(config).next == ("work", "work")
    assert call(graph, None, config)["log"] == ["x", "y"]


def test_a_breakpoint_in_a_loop_holds_in_every_round(saver: Any, call: Call) -> None:
    """B65, B67"""

    def count(state: State) -> State:
        return {"value": state["value"] + 1}

    graph: Any = builder(count).add_conditional_edges("count", lambda s: "count" if s["value"] < 3 else "__end__")
    graph = graph.compile(checkpointer=saver, interrupt_before=["count"])
    config = thread()
    assert [call(graph, given, config)["value"] for given in ({"value": 0}, None, None, None)] == [0, 1, 2, 3]
    assert graph.get_state(config).next == ()


# --- how it looks -----------------------------------------------------------------------------------------------------


def test_a_stopped_run_returns_the_values_without_a_question(saver: Any, call: Call, streamed: Call) -> None:
    """B66"""
    graph = chain(saver, a, b, interrupt_before=["b"])
    assert call(graph, {"log": []}, thread()) == {"log": ["a"]}
    assert streamed(graph, {"log": []}, thread(), stream_mode="updates") == [
        {"a": {"log": ["a"]}},
        {"__interrupt__": ()},
    ]
    assert streamed(graph, {"log": []}, thread(), stream_mode="values") == [{"log": []}, {"log": ["a"]}]


def test_a_stop_after_the_last_node_is_shown_as_a_stop(saver: Any, streamed: Call) -> None:
    """B66"""
    graph = chain(saver, a, interrupt_after="*")
    assert streamed(graph, {"log": []}, thread()) == [{"a": {"log": ["a"]}}, {"__interrupt__": ()}]


def test_get_state_at_a_stop_names_what_is_next_and_has_no_questions(saver: Any, call: Call) -> None:
    """B66"""
    graph = chain(saver, a, b, interrupt_before=["b"])
    config = thread()
    call(graph, {"log": []}, config)
    state = graph.get_state(config)
    assert (state.next, state.interrupts, state.values) == (("b",), (), {"log": ["a"]})
    (task,) = state.tasks
    assert (task.name, task.interrupts, task.result, task.error) == ("b", (), None, None)
    assert saver.pending() == []


def test_on_resume_values_begin_with_the_values_at_the_pause_without_unapplied_writes(
    saver: Any, streamed: Call
) -> None:
    """B73"""

    def ask(state: State) -> State:
        return {"log": [interrupt("ok?")]}

    graph = parallel(saver, a, ask)
    config = thread()
    streamed(graph, {"log": ["in"]}, config)
    assert streamed(graph, Command(resume="yes"), config, stream_mode="values") == [
        {"log": ["in"]},
        {"log": ["in", "a", "yes"]},
    ]
    stopped = chain(saver, a, b, interrupt_before=["b"])
    config = thread()
    streamed(stopped, {"log": ["in"]}, config)
    assert streamed(stopped, None, config, stream_mode="values") == [{"log": ["in", "a"]}, {"log": ["in", "a", "b"]}]


def test_a_stop_after_one_of_two_parallel_nodes_holds_the_whole_step(saver: Any, call: Call) -> None:
    """B74"""
    graph: Any = builder(a, b, edges="parallel").add_node("c", c).add_edge(["a", "b"], "c")
    graph = graph.compile(checkpointer=saver, interrupt_after=["a"])
    config = thread()
    assert call(graph, {"log": []}, config)["log"] == ["a", "b"]
    assert graph.get_state(config).next == ("c",)
    assert call(graph, None, config)["log"] == ["a", "b", "c"]


@pytest.mark.parametrize(("durability", "counts"), [("sync", [3, 4, 5]), ("async", [3, 4, 5]), ("exit", [1, 2, 3])])
def test_history_after_one_two_and_three_stops(saver: Any, call: Call, durability: str, counts: list[int]) -> None:
    """B71"""
    graph = chain(saver, a, b, c, interrupt_after="*")
    config = thread()
    for given, count in zip(({"log": []}, None, None), counts, strict=True):
        call(graph, given, config, durability=durability)
        assert len(list(graph.get_state_history(config))) == count


# --- how it goes on ---------------------------------------------------------------------------------------------------


def test_another_process_goes_on_past_a_stop(store: Store, call: Call) -> None:
    """B67"""
    config = thread()
    call(chain(store.saver, a, b, c, interrupt_before="*"), {"log": []}, config)
    logs = [call(chain(store.again(), a, b, c, interrupt_before="*"), None, config)["log"] for _ in range(3)]
    assert logs == [["a"], ["a", "b"], ["a", "b", "c"]]


def test_a_resume_goes_on_and_its_value_is_dropped(saver: Any, call: Call) -> None:
    """B69, table: at a static breakpoint the value of a resume is dropped"""

    def ask(state: State) -> State:
        return {"log": [interrupt("ok?")]}

    graph = chain(saver, a, ask, interrupt_before=["ask"])
    config = thread()
    call(graph, {"log": []}, config)
    (question,) = asked(call(graph, Command(resume="early"), config))
    assert question.value == "ok?"
    assert call(graph, Command(resume="late"), config)["log"] == ["a", "late"]


@pytest.mark.parametrize("value", [None, False, "", {}, 0])
def test_a_resume_with_an_empty_value_goes_on_too(saver: Any, call: Call, value: Any) -> None:
    """B69"""
    graph = chain(saver, a, b, interrupt_before=["b"])
    config = thread()
    call(graph, {"log": []}, config)
    assert call(graph, Command(resume=value), config)["log"] == ["a", "b"]


def test_a_goto_goes_on_and_runs_the_given_nodes_too(saver: Any, call: Call) -> None:
    """B69"""
    graph: Any = builder(a, b).add_node("c", c)
    graph = graph.compile(checkpointer=saver, interrupt_before=["b"])
    config = thread()
    call(graph, {"log": []}, config)
    assert call(graph, Command(goto=["c"]), config)["log"] == ["a", "b", "c"]


def test_a_resume_after_the_end_is_refused_and_changes_nothing(saver: Any, call: Call) -> None:
    """B69, table: a resume with neither a question nor a breakpoint"""
    graph = chain(saver, a, b, interrupt_before=["b"])
    config = thread()
    call(graph, {"log": []}, config)
    call(graph, Command(resume="go"), config)
    before = list(graph.get_state_history(config))
    with pytest.raises(UnknownInterruptError) as refused:
        call(graph, Command(resume="again"), config)
    assert refused.value.reason == "not_pending"
    assert list(graph.get_state_history(config)) == before


def test_going_on_after_the_end_changes_nothing(saver: Any, call: Call) -> None:
    """B67"""
    graph = chain(saver, a, interrupt_after=["a"])
    config = thread()
    call(graph, {"log": []}, config)
    before = list(graph.get_state_history(config))
    assert call(graph, None, config) == {"log": ["a"]}
    assert list(graph.get_state_history(config)) == before


def test_new_input_at_a_stop_starts_anew(saver: Any, call: Call) -> None:
    """B66: a stop holds no question, so input is welcome"""
    graph = chain(saver, a, b, interrupt_before=["b"])
    config = thread()
    call(graph, {"log": []}, config)
    assert call(graph, {"log": ["more"]}, config)["log"] == ["a", "more", "a"]
    assert call(graph, None, config)["log"] == ["a", "more", "a", "b"]


# --- in subgraphs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"interrupt_before": ["b"]}, {"interrupt_after": ["a"]}])
@pytest.mark.parametrize("nesting", ["a node", "a function"])
def test_a_stop_in_a_subgraph_pauses_the_parent_and_siblings_finish(
    saver: Any, call: Call, options: dict[str, Any], nesting: str
) -> None:
    """B72"""
    runs: list[str] = []

    def sibling(state: State) -> State:
        runs.append("sibling")
        return {"log": ["sibling"]}

    inner = chain(None, a, b, **options)

    def calls(state: State) -> Any:
        runs.append("calls")
        return {"log": inner.invoke({"log": []})["log"]}

    graph: Any = StateGraph(State).add_node("sibling", sibling).add_node("last", c)
    graph.add_node("inner", inner if nesting == "a node" else calls)
    graph.add_edge(START, "inner").add_edge(START, "sibling").add_edge(["inner", "sibling"], "last")
    graph = graph.compile(checkpointer=saver)
    config = thread()
    result = call(graph, {"log": []}, config)
    assert "__interrupt__" not in result
    assert result["log"] == ["sibling"]
    assert graph.get_state(config).next == ("inner",)
    assert call(graph, None, config)["log"] == ["a", "b", "sibling", "c"]
    assert runs.count("sibling") == 1


def test_a_stop_after_a_subgraphs_last_node_pauses_the_parent_once(saver: Any, call: Call) -> None:
    """B72"""
    inner = chain(None, a, interrupt_after=["a"])
    graph = builder_of(("inner", inner), ("c", c)).compile(checkpointer=saver)
    config = thread()
    assert call(graph, {"log": []}, config)["log"] == []
    assert graph.get_state(config).next == ("inner",)
    assert call(graph, None, config)["log"] == ["a", "c"]


def builder_of(*nodes: tuple[str, Any]) -> Any:
    graph: Any = StateGraph(State)
    before = START
    for name, node in nodes:
        graph.add_node(name, node).add_edge(before, name)
        before = name
    return graph


def test_a_stop_next_to_a_question_shows_the_question_and_goes_on_after_its_answer(saver: Any, call: Call) -> None:
    """B72"""

    def ask(state: State) -> State:
        return {"log": [interrupt("ok?")]}

    inner = chain(None, a, b, interrupt_before=["b"])
    graph: Any = StateGraph(State).add_node("inner", inner).add_node("ask", ask)
    graph = graph.add_edge(START, "inner").add_edge(START, "ask").compile(checkpointer=saver)
    config = thread()
    (question,) = asked(call(graph, {"log": []}, config))
    assert question.value == "ok?"
    assert call(graph, Command(resume="yes"), config)["log"] == ["yes", "a", "b"]


def test_a_drain_right_before_a_stop_stops_as_usual(saver: Any, call: Call) -> None:
    """B78"""
    control = RunControl()

    def drains(state: State) -> State:
        control.request_drain()
        return {"log": ["drains"]}

    graph = chain(saver, drains, b, interrupt_before=["b"])
    config = thread()
    assert call(graph, {"log": []}, config, control=control)["log"] == ["drains"]
    assert graph.get_state(config).next == ("b",)
    assert call(graph, None, config)["log"] == ["drains", "b"]
