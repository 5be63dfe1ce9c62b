"""Streams: what each mode shows, in which order, and that it is shown as it happens."""

from __future__ import annotations

import asyncio
import operator
import threading
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, builder, chain, ids, parallel, thread
from waitpoint.errors import ConfigError
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, Interrupt, Send, interrupt


def a(state: State) -> State:
    return {"log": ["a"]}


def b(state: State) -> State:
    return {"log": ["b"]}


def ask(state: State) -> State:
    return {"log": [interrupt("ok?")]}


def silent(state: State) -> None:
    return None


def outer(saver: Any, **nodes: Any) -> Any:
    graph: Any = StateGraph(State)
    before = START
    for name, node in nodes.items():
        graph.add_node(name, node).add_edge(before, name)
        before = name
    return graph.compile(checkpointer=saver)


# --- shapes -----------------------------------------------------------------------------------------------------------


def test_the_default_mode_is_updates_and_one_mode_gives_bare_payloads(saver: Any, streamed: Call) -> None:
    """B168"""
    graph = chain(saver, a, b)
    bare = [{"a": {"log": ["a"]}}, {"b": {"log": ["b"]}}]
    assert streamed(graph, {"log": []}, thread()) == bare
    assert streamed(graph, {"log": []}, thread(), stream_mode="updates") == bare


def test_a_list_of_modes_gives_pairs(saver: Any, streamed: Call) -> None:
    """B168"""
    graph = chain(saver, a)
    assert streamed(graph, {"log": []}, thread(), stream_mode=["values", "updates"]) == [
        ("values", {"log": []}),
        ("updates", {"a": {"log": ["a"]}}),
        ("values", {"log": ["a"]}),
    ]
    assert streamed(graph, {"log": []}, thread(), stream_mode=["updates"]) == [("updates", {"a": {"log": ["a"]}})]


def test_subgraphs_put_the_namespace_in_front(saver: Any, streamed: Call) -> None:
    """B168, B180"""
    graph = outer(saver, inner=chain(None, a))
    inside, root = streamed(graph, {"log": []}, thread(), subgraphs=True)
    assert inside[1:] == ({"a": {"log": ["a"]}},)
    assert root == ((), {"inner": {"log": ["a"]}})
    (namespace,) = inside[0]
    assert namespace.startswith("inner:")
    parts = streamed(graph, {"log": []}, thread(), subgraphs=True, stream_mode=["updates"])
    assert [(len(ns), mode) for ns, mode, _ in parts] == [(1, "updates"), (0, "updates")]


@pytest.mark.parametrize("mode", ["valeus", ["updates", "nothing"]])
def test_an_unknown_mode_is_refused_before_anything_runs(saver: Any, streamed: Call, mode: Any) -> None:
    config = thread()
    with pytest.raises(ConfigError, match="Unknown stream mode"):
        streamed(chain(saver, a), {"log": []}, config, stream_mode=mode)
    assert saver.threads() == []


def test_invoke_with_another_mode_returns_the_parts(saver: Any, call: Call) -> None:
    """B168"""
    graph = chain(saver, a)
    assert call(graph, {"log": []}, thread(), stream_mode="updates") == [{"a": {"log": ["a"]}}]
    assert call(graph, {"log": []}, thread(), stream_mode=["values"])[-1] == ("values", {"log": ["a"]})


# --- updates ----------------------------------------------------------------------------------------------------------


def test_updates_show_none_for_a_node_that_returned_none(saver: Any, streamed: Call) -> None:
    """B169"""
    assert streamed(chain(saver, silent, a), {"log": []}, thread()) == [{"silent": None}, {"a": {"log": ["a"]}}]


def test_updates_come_in_the_order_of_completion(saver: Any, streamed: Call) -> None:
    """B169, B179"""
    second_seen = threading.Event()

    def first(state: State) -> State:
        assert second_seen.wait(10)
        return {"log": ["first"]}

    def second(state: State) -> State:
        return {"log": ["second"]}

    graph = parallel(saver, first, second)
    parts: list[Any] = []
    for part in graph.stream({"log": []}, thread(), stream_mode=["updates", "values"]):
        parts.append(part)
        if part[0] == "updates":
            second_seen.set()
    updates = [p for m, p in parts if m == "updates"]
    assert updates == [{"second": {"log": ["second"]}}, {"first": {"log": ["first"]}}]
    assert parts[-1] == ("values", {"log": ["first", "second"]})


def test_the_first_of_two_tasks_is_shown_before_the_other_ends(saver: Any) -> None:
    """B179: the other ends only after its part was seen"""
    seen = threading.Event()

    def quick(state: State) -> State:
        return {"log": ["quick"]}

    def waits(state: State) -> State:
        assert seen.wait(10)
        return {"log": ["waits"]}

    for part in parallel(saver, quick, waits).stream({"log": []}, thread()):
        if "quick" in part:
            seen.set()
    assert part == {"waits": {"log": ["waits"]}}


def test_the_first_of_two_coroutines_is_shown_before_the_other_ends(saver: Any) -> None:
    """B179"""

    async def main() -> list[Any]:
        seen = asyncio.Event()

        async def quick(state: State) -> State:
            return {"log": ["quick"]}

        async def waits(state: State) -> State:
            await seen.wait()
            return {"log": ["waits"]}

        parts = []
        async for part in parallel(saver, quick, waits).astream({"log": []}, thread()):
            parts.append(part)
            seen.set()
        return parts

    assert asyncio.run(main()) == [{"quick": {"log": ["quick"]}}, {"waits": {"log": ["waits"]}}]


def test_sent_tasks_are_shown_one_by_one(saver: Any, streamed: Call) -> None:
    """B169"""
    graph: Any = StateGraph(State).add_node("work", lambda n: {"log": [n]})
    graph.add_conditional_edges(START, lambda s: [Send("work", 1), Send("work", 2)])
    parts = streamed(graph.compile(checkpointer=saver), {"log": []}, thread())
    assert sorted(p["work"]["log"] for p in parts) == [[1], [2]]


# --- values -----------------------------------------------------------------------------------------------------------


def test_values_begin_with_the_input_and_follow_each_step(saver: Any, streamed: Call) -> None:
    """B170"""
    assert streamed(chain(saver, a, silent, b), {"log": ["in"]}, thread(), stream_mode="values") == [
        {"log": ["in"]},
        {"log": ["in", "a"]},
        {"log": ["in", "a", "b"]},
    ]


def test_an_input_that_writes_no_key_is_not_shown(saver: Any, streamed: Call) -> None:
    """B170"""
    graph, config = chain(saver, a), thread()
    assert streamed(graph, {"unknown": 1}, config, stream_mode="values") == [{"log": ["a"]}]
    assert streamed(graph, {"unknown": 1}, config, stream_mode="values") == [{"log": ["a", "a"]}]


def test_a_pause_repeats_the_values_with_the_questions_as_a_tuple(saver: Any, streamed: Call) -> None:
    """B170"""
    graph, config = chain(saver, a, ask), thread()
    *before, last = streamed(graph, {"log": []}, config, stream_mode="values")
    assert before == [{"log": []}, {"log": ["a"]}]
    questions = last.pop("__interrupt__")
    assert (last, type(questions)) == ({"log": ["a"]}, tuple)
    assert questions == graph.get_state(config).interrupts
    assert streamed(graph, Command(resume="yes"), config, stream_mode="values") == [
        {"log": ["a"]},
        {"log": ["a", "yes"]},
    ]


def test_the_values_that_were_shown_do_not_change_afterwards(saver: Any, streamed: Call) -> None:
    """B170"""
    graph, config = chain(saver, a, b), thread()
    parts = streamed(graph, {"log": []}, config, stream_mode="values")
    parts[0]["log"].append("meddled")
    assert parts[1] == {"log": ["a"]}
    assert graph.get_state(config).values == {"log": ["a", "b"]}


# --- questions in streams ---------------------------------------------------------------------------------------------


def test_questions_come_once_last_and_together(saver: Any, streamed: Call) -> None:
    """B6, architecture 3"""

    def other(state: State) -> State:
        return {"log": [interrupt("other?")]}

    graph, config = parallel(saver, ask, a, other), thread()
    parts = streamed(graph, {"log": []}, config, stream_mode=["updates", "values"])
    (mode, last), (last_mode, values) = parts[-2:]
    assert (mode, last_mode) == ("updates", "values")
    assert [i.value for i in last["__interrupt__"]] == ["ok?", "other?"]
    assert values == {"log": ["a"], "__interrupt__": last["__interrupt__"]}
    assert not any("__interrupt__" in p for _, p in parts[:-2])


@pytest.mark.parametrize("nesting", ["a node", "a function"])
def test_a_question_inside_is_shown_once_by_the_root(saver: Any, streamed: Call, nesting: str) -> None:
    """B6, B180"""
    inner = chain(None, a, ask)
    node = inner if nesting == "a node" else lambda s: {"log": inner.invoke({"log": []})["log"]}
    graph, config = outer(saver, inner=node), thread()
    parts = streamed(graph, {"log": []}, config, subgraphs=True)
    (question,) = graph.get_state(config).interrupts
    assert [(len(ns), p) for ns, p in parts] == [(1, {"a": {"log": ["a"]}}), (0, {"__interrupt__": (question,)})]


def test_leaving_the_stream_at_the_question_loses_nothing(store: Store) -> None:
    """B6: the pause is stored before it is shown"""
    config = thread()
    for part in chain(store.saver, a, ask, b).stream({"log": []}, config):
        if "__interrupt__" in part:
            break
    assert chain(store.again(), a, ask, b).invoke(Command(resume="yes"), config)["log"] == ["a", "yes", "b"]


def test_results_of_an_earlier_run_are_marked_as_cached(saver: Any, streamed: Call) -> None:
    """B181, close to B44"""

    def other(state: State) -> State:
        return {"log": [interrupt("other?")]}

    graph, config = parallel(saver, a, ask, other), thread()
    streamed(graph, {"log": []}, config)
    found = ids({"__interrupt__": list(graph.get_state(config).interrupts)})
    cached = {"a": {"log": ["a"]}, "__metadata__": {"cached": True}}
    parts = streamed(graph, Command(resume={found["ok?"]: "yes"}), config)
    assert parts == [cached, {"ask": {"log": ["yes"]}}, {"__interrupt__": graph.get_state(config).interrupts}]
    parts = streamed(graph, Command(resume="no"), config)
    assert parts == [cached, {"ask": {"log": ["yes"]}, "__metadata__": {"cached": True}}, {"other": {"log": ["no"]}}]


def test_a_thread_that_only_waits_shows_its_questions_again(saver: Any, streamed: Call) -> None:
    """table: invoke(None) on a waiting thread"""
    graph, config = chain(saver, ask), thread()
    (first,) = streamed(graph, {"log": []}, config)
    assert streamed(graph, None, config) == [first]


# --- tasks ------------------------------------------------------------------------------------------------------------


def test_tasks_show_each_start_and_end(saver: Any, streamed: Call) -> None:
    """B175"""
    graph, config = chain(saver, a, ask), thread()
    started, ended, asking, paused = streamed(graph, {"log": ["in"]}, config, stream_mode="tasks")
    assert started == {"id": started["id"], "name": "a", "input": {"log": ["in"]}, "triggers": ("branch:to:a",)}
    assert ended == {"id": started["id"], "name": "a", "error": None, "result": {"log": ["a"]}, "interrupts": []}
    assert (asking["name"], asking["id"], paused["id"]) == ("ask", paused["id"], asking["id"])
    assert [Interrupt(**i) for i in paused["interrupts"]] == list(graph.get_state(config).interrupts)


def test_tasks_show_the_input_that_each_node_gets(saver: Any, streamed: Call) -> None:
    """B175"""

    class Model(BaseModel):
        log: Annotated[list[Any], operator.add] = []
        value: int = 0

    class Part(TypedDict):
        value: int

    def whole(state: Model) -> Any:
        return {"value": 1}

    graph: Any = StateGraph(Model).add_node("whole", whole).add_node("part", lambda s: {}, input_schema=Part)
    graph.add_node("sent", lambda s: {}).add_edge(START, "whole").add_edge("whole", "part")
    graph.add_conditional_edges("part", lambda s: [Send("sent", 7)])
    parts = streamed(graph.compile(checkpointer=saver), {"log": ["in"]}, thread(), stream_mode="tasks")
    assert [p["input"] for p in parts if "input" in p] == [Model(log=["in"]), {"value": 1}, 7]


def test_tasks_show_errors(saver: Any) -> None:
    """B175"""

    def fails(state: State) -> State:
        raise KeyError("broken")

    parts = []
    with pytest.raises(KeyError):
        for part in chain(saver, fails).stream({"log": []}, thread(), stream_mode="tasks"):
            parts.append(part)  # noqa: PERF402 - what came before the error counts
    assert [p.get("error") for p in parts] == [None, "KeyError('broken')"]


# --- nested namespaces ------------------------------------------------------------------------------------------------


def test_namespaces_append_at_each_level(saver: Any, streamed: Call) -> None:
    """B180"""
    graph = outer(saver, top=outer(None, middle=chain(None, a)))
    parts = streamed(graph, {"log": []}, thread(), subgraphs=True)
    told = [([part.split(":")[0] for part in ns], next(iter(p))) for ns, p in parts]
    assert told == [(["top", "middle"], "a"), (["top"], "middle"), ([], "top")]
    assert parts[0][0][:1] == parts[1][0]


def test_parts_of_a_subgraph_arrive_before_it_ends(saver: Any) -> None:
    """B179"""
    seen = threading.Event()

    def waits(state: State) -> State:
        assert seen.wait(10)
        return {"log": ["waits"]}

    graph = outer(saver, inner=chain(None, a, waits))
    parts = []
    for ns, part in graph.stream({"log": []}, thread(), subgraphs=True):
        parts.append((len(ns), next(iter(part))))
        seen.set()
    assert parts == [(1, "a"), (1, "waits"), (0, "inner")]


def test_streams_work_without_a_checkpointer(streamed: Call) -> None:
    """B168"""
    assert streamed(builder(a, b).compile(), {"log": []}) == [{"a": {"log": ["a"]}}, {"b": {"log": ["b"]}}]


def test_an_error_ends_the_stream_after_what_was_shown(saver: Any) -> None:
    """B169"""

    def fails(state: State) -> State:
        raise KeyError("broken")

    graph, config = chain(saver, a, fails), thread()
    parts = graph.stream({"log": []}, config)
    assert next(parts) == {"a": {"log": ["a"]}}
    with pytest.raises(KeyError):
        next(parts)
    assert list(parts) == []
    assert graph.get_state(config).next == ("fails",)


def test_nothing_runs_before_the_stream_is_read(saver: Any) -> None:
    """B179"""
    runs: list[str] = []

    def node(state: State) -> State:
        runs.append("node")
        return {}

    parts = chain(saver, node).stream({"log": []}, thread())
    assert runs == []
    assert list(parts) == [{"node": None}]
