"""Nodes with a cache policy: what is computed once, what never comes from a cache, and what a consumer sees of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import pytest

from tests.behaviours.cached import POLICY, Given, State, Work, graph_of
from tests.behaviours.conftest import Call
from tests.behaviours.graphs import asked, thread
from waitpoint import clock
from waitpoint.cache.sqlite import SqliteCache
from waitpoint.errors import ConfigError, NodeError
from waitpoint.graph import END, START, StateGraph
from waitpoint.types import CachePolicy, Command, RetryPolicy, Send, interrupt, step

# --- what is computed once --------------------------------------------------------------------------------------------


def test_an_input_is_computed_once_over_threads(saver: Any, cache: Any, call: Call) -> None:
    work = Work()
    graph = graph_of(work, cache, saver)
    for _ in range(3):
        assert call(graph, {"given": 4}, thread()) == {"given": 4, "found": 8, "log": []}
    assert call(graph, {"given": 5}, thread())["found"] == 10
    assert work.runs == [4, 5]


def test_an_input_is_computed_once_without_a_checkpointer(cache: Any, call: Call) -> None:
    work = Work()
    graph = graph_of(work, cache)
    assert [call(graph, {"given": n})["found"] for n in (1, 1, 2, 1)] == [2, 2, 4, 2]
    assert work.runs == [1, 2]


def test_an_async_node_is_computed_once(cache: Any) -> None:
    runs = []

    async def work(state: Given) -> State:
        runs.append(state["given"])
        return {"found": 1}

    graph = graph_of(work, cache)
    assert [asyncio.run(graph.ainvoke({"given": 1}))["found"] for _ in range(2)] == [1, 1]
    assert runs == [1]


def test_another_process_finds_what_was_computed(tmp_path: Path) -> None:
    work = Work()
    for _ in range(2):
        with SqliteCache[Any](tmp_path / "cache.db") as cache:
            assert graph_of(work, cache).invoke({"given": 4})["found"] == 8
    assert work.runs == [4]


def test_a_replay_finds_what_was_computed(saver: Any, cache: Any, call: Call) -> None:
    work, config = Work(), thread()
    graph = graph_of(work, cache, saver)
    call(graph, {"given": 4}, config)
    old = next(s for s in graph.get_state_history(config) if s.next == ("work",))
    assert call(graph, None, old.config)["found"] == 8
    assert work.runs == [4]


def test_only_what_the_node_reads_counts(cache: Any, call: Call) -> None:
    work = Work()
    graph = graph_of(work, cache)
    for log in (["a"], ["b"]):
        call(graph, {"given": 4, "log": log})
    assert work.runs == [4]


def test_the_key_function_says_which_inputs_are_equal(cache: Any, call: Call) -> None:
    work = Work(str)
    graph = graph_of(work, cache, policy=CachePolicy(key_func=lambda state: state["given"].lower()))
    assert [call(graph, {"given": text})["found"] for text in ("A", "a", "b")] == ["A", "A", "b"]
    assert work.runs == ["A", "b"]


def test_a_result_is_used_for_as_long_as_the_policy_says(cache: Any, call: Call) -> None:
    work, times = Work(), [0.0]
    graph = graph_of(work, cache, policy=CachePolicy(ttl=60))
    with clock.fixed(lambda: times[0]):
        for at in (0.0, 59.0, 60.0, 119.0):
            times[0] = at
            call(graph, {"given": 1})
    assert work.runs == [1, 1]


def test_defaults_of_all_nodes_hold_where_a_node_has_no_policy_of_its_own(cache: Any, call: Call) -> None:
    first, second = Work(), Work(str)
    builder = StateGraph(State).set_node_defaults(cache_policy=POLICY)
    builder.add_node("first", first, input_schema=Given)
    builder.add_node("second", second, input_schema=Given, cache_policy=CachePolicy(key_func=lambda _: b"one"))
    graph = builder.add_edge(START, "first").add_edge("first", "second").compile(cache=cache)
    assert [call(graph, {"given": n})["found"] for n in (1, 1, 2)] == ["1", "1", "1"]
    assert (first.runs, second.runs) == ([1, 2], [1])


def test_without_a_cache_or_a_policy_every_input_is_computed(cache: Any, call: Call) -> None:
    with_policy, with_cache = Work(), Work()
    plain = StateGraph(State).add_node("work", with_cache).add_edge(START, "work").compile(cache=cache)
    for _ in range(2):
        call(graph_of(with_policy, None), {"given": 1})
        call(plain, {"given": 1})
    assert with_policy.runs == with_cache.runs == [1, 1]


def test_nodes_and_graphs_that_share_a_cache_do_not_share_results(cache: Any, call: Call) -> None:
    def other(state: Given) -> State:
        return {"found": "other"}

    builder = StateGraph(State).add_node("one", Work(), cache_policy=POLICY).add_node("two", other, cache_policy=POLICY)
    graph = builder.add_edge(START, "one").add_edge("one", "two").compile(cache=cache)
    named = graph_of(other, cache)
    renamed = StateGraph(State).add_node("work", Work(), cache_policy=POLICY).add_edge(START, "work")
    assert call(graph, {"given": 1})["found"] == "other"
    assert call(named, {"given": 1})["found"] == "other"
    assert call(renamed.compile(cache=cache, name="another"), {"given": 1})["found"] == 2
    assert call(graph_of(lambda state: {"found": "third"}, cache), {"given": 1})["found"] == "third"


def test_packets_are_looked_up_by_what_was_sent(saver: Any, cache: Any, call: Call) -> None:
    runs = []

    def square(number: int) -> State:
        runs.append(number)
        return {"log": [number * number]}

    builder = StateGraph(State).add_node("square", square, cache_policy=POLICY, input_schema=int)
    builder.add_conditional_edges(START, lambda state: [Send("square", n) for n in state["given"]], ["square"])
    graph = builder.compile(saver, cache=cache)
    assert call(graph, {"given": [1, 2, 3]}, thread())["log"] == [1, 4, 9]
    assert call(graph, {"given": [3, 4]}, thread())["log"] == [9, 16]
    assert sorted(runs) == [1, 2, 3, 4]


def test_a_subgraph_is_not_run_again_and_caches_for_its_own_nodes_with_the_cache_of_its_parent(
    saver: Any, cache: Any, call: Call
) -> None:
    outer, inner = Work(), Work()
    child = StateGraph(State).add_node("inner", inner, input_schema=Given, cache_policy=POLICY)
    builder = StateGraph(State).add_node("child", child.add_edge(START, "inner").compile())
    builder.add_node(
        "whole", StateGraph(Given).add_node("outer", outer).add_edge(START, "outer").compile(), cache_policy=POLICY
    )
    outer.does = lambda given: None
    graph = builder.add_edge(START, "child").add_edge("child", "whole").compile(saver, cache=cache)
    for _ in range(2):
        assert call(graph, {"given": 3}, thread())["found"] == 6
    assert (inner.runs, outer.runs) == ([3], [3])


@dataclass
class Money:
    amount: int


class Priced(TypedDict, total=False):
    given: Any
    price: Money


def test_types_of_the_state_come_back_as_they_are(cache: Any, call: Call) -> None:
    runs = []

    def work(state: Priced) -> Priced:
        runs.append(state)
        return {"price": Money(state["price"].amount + 1)}

    graph = StateGraph(Priced).add_node("work", work, cache_policy=POLICY).add_edge(START, "work").compile(cache=cache)
    assert [call(graph, {"price": Money(n)})["price"] for n in (1, 1, 2)] == [Money(2), Money(2), Money(3)]
    assert len(runs) == 2


# --- where a cached node leads ----------------------------------------------------------------------------------------


def test_a_cached_command_leads_where_it_led(saver: Any, cache: Any, call: Call) -> None:
    runs = []

    def choose(state: Given) -> Command[Any]:
        runs.append(state["given"])
        return Command(update={"found": "chosen"}, goto=[state["given"], Send("b", {"given": "sent"})])

    def log(name: str) -> Any:
        return lambda state: {"log": [f"{name} {state.get('given')}"]}

    builder = StateGraph(State).add_node(
        "choose", choose, cache_policy=POLICY, input_schema=Given, destinations=("a", "b")
    )
    graph = (
        builder.add_node("a", log("a")).add_node("b", log("b")).add_edge(START, "choose").compile(saver, cache=cache)
    )
    for _ in range(2):
        found = call(graph, {"given": "a"}, thread())
        assert (found["found"], sorted(found["log"])) == ("chosen", ["a a", "b sent"])
    assert runs == ["a"]


def test_routers_are_asked_each_time_since_they_see_more_than_the_nodes_input(cache: Any, call: Call) -> None:
    work = Work()
    builder = StateGraph(State).add_node("work", work, cache_policy=POLICY, input_schema=Given)
    builder.add_node("more", lambda state: {"found": "more"})

    def route(state: State) -> str:
        return "more" if state["log"] == ["more"] else END

    graph = builder.add_edge(START, "work").add_conditional_edges("work", route, ["more", END]).compile(cache=cache)
    assert call(graph, {"given": 1, "log": []})["found"] == 2
    assert call(graph, {"given": 1, "log": ["more"]})["found"] == "more"
    assert work.runs == [1]


# --- what never comes from a cache ------------------------------------------------------------------------------------


def test_a_node_that_paused_asks_again_for_the_same_input(saver: Any, cache: Any, call: Call) -> None:
    runs = []

    def ask(state: Given) -> State:
        runs.append(state["given"])
        return {"found": interrupt(f"pay {state['given']}?")}

    graph = graph_of(ask, cache, saver)
    first, second = thread(), thread()
    assert asked(call(graph, {"given": 5}, first))[0].value == "pay 5?"
    assert call(graph, Command(resume="yes"), first)["found"] == "yes"
    assert asked(call(graph, {"given": 5}, second))[0].value == "pay 5?"
    assert call(graph, Command(resume="no"), second)["found"] == "no"
    assert len(runs) == 4


def test_an_answer_counts_though_another_thread_needed_none(saver: Any, cache: Any, call: Call) -> None:
    asks = [True]

    def maybe(state: Given) -> State:
        return {"found": interrupt("pay?") if asks[0] else "paid without asking"}

    graph = graph_of(maybe, cache, saver)
    paused = thread()
    call(graph, {"given": 5}, paused)
    asks[0] = False
    assert call(graph, {"given": 5}, thread())["found"] == "paid without asking"
    asks[0] = True
    assert call(graph, Command(resume="no"), paused)["found"] == "no"


@pytest.mark.parametrize("is_node", [True, False], ids=["as a node", "called in a node"])
def test_a_node_whose_graph_paused_asks_again(saver: Any, cache: Any, call: Call, is_node: bool) -> None:
    def ask(state: State) -> State:
        return {"found": interrupt("pay?")}

    child = StateGraph(State).add_node("ask", ask).add_edge(START, "ask").compile()
    if is_node:
        node: Any = child
    elif call.__name__ == "_invoke":

        def node(state: State) -> Any:
            return {"found": child.invoke({"given": state["given"]})["found"]}
    else:

        async def node(state: State) -> Any:
            return {"found": (await child.ainvoke({"given": state["given"]}))["found"]}

    builder = StateGraph(State).add_node("work", node, cache_policy=POLICY)
    graph = builder.add_edge(START, "work").compile(saver, cache=cache)
    for answer in ("yes", "no"):
        config = thread()
        assert asked(call(graph, {"given": 5}, config))[0].value == "pay?"
        assert call(graph, Command(resume=answer), config)["found"] == answer


def test_a_node_that_failed_is_tried_again(saver: Any, cache: Any, call: Call) -> None:
    works = [False]

    def work(state: Given) -> State:
        if not works[0]:
            raise ValueError("down")
        return {"found": "up"}

    graph = graph_of(work, cache, saver)
    config = thread()
    for _ in range(2):
        with pytest.raises(ValueError, match="down"):
            call(graph, {"given": 1}, thread())
    with pytest.raises(ValueError, match="down"):
        call(graph, {"given": 1}, config)
    works[0] = True
    assert call(graph, None, config)["found"] == "up"


def test_what_an_error_handler_said_is_not_kept(cache: Any, call: Call) -> None:
    runs = []

    def work(state: Given) -> State:
        runs.append(1)
        raise ValueError("down")

    def handle(state: State, error: NodeError) -> State:
        return {"found": "handled"}

    graph = graph_of(work, cache, error_handler=handle)
    for _ in range(2):
        assert call(graph, {"given": 1})["found"] == "handled"
    assert len(runs) == 2


def test_a_node_that_was_retried_is_computed_once(cache: Any, call: Call) -> None:
    runs = []

    def work(state: Given) -> State:
        runs.append(1)
        if len(runs) == 1:
            raise ConnectionError("once")
        return {"found": "up"}

    graph = graph_of(work, cache, retry_policy=RetryPolicy(initial_interval=0, jitter=False))
    for _ in range(2):
        assert call(graph, {"given": 1})["found"] == "up"
    assert len(runs) == 2


# --- what a consumer sees ---------------------------------------------------------------------------------------------


def test_updates_say_what_came_from_the_cache(saver: Any, cache: Any, streamed: Call) -> None:
    graph = graph_of(Work(), cache, saver)
    first, again = (streamed(graph, {"given": 1}, thread(), stream_mode="updates") for _ in range(2))
    assert first == [{"work": {"found": 2}}]
    assert again == [{"work": {"found": 2}, "__metadata__": {"cached": True}}]


def test_a_cached_task_is_shown_to_begin_but_not_to_end(cache: Any, streamed: Call) -> None:
    graph = graph_of(Work(), cache)
    first, again = (streamed(graph, {"given": 1}, stream_mode="tasks") for _ in range(2))
    assert ["result" in part for part in first] == [False, True]
    assert ["result" in part for part in again] == [False]


def test_history_shows_cached_results_like_others(saver: Any, cache: Any, call: Call) -> None:
    graph = graph_of(Work(), cache, saver)
    config = thread()
    call(graph, {"given": 1}, thread())
    call(graph, {"given": 1}, config)
    newest, before, _ = graph.get_state_history(config)
    assert newest.values == {"given": 1, "found": 2, "log": []}
    assert before.tasks[0].result == {"found": 2}


# --- clearing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True])
def test_clearing_forgets_all_nodes_or_some(cache: Any, is_async: bool) -> None:
    one, two = Work(), Work()
    builder = StateGraph(State).add_node("one", one, cache_policy=POLICY, input_schema=Given)
    builder.add_node("two", two, cache_policy=POLICY, input_schema=Given)
    graph = builder.add_edge(START, "one").add_edge("one", "two").compile(cache=cache)
    for nodes in (["one"], None, []):
        graph.invoke({"given": 1})
        graph.invoke({"given": 1})
        if is_async:
            asyncio.run(graph.aclear_cache(nodes))
        else:
            graph.clear_cache(nodes)
    graph.invoke({"given": 1})
    assert (len(one.runs), len(two.runs)) == (4, 3)


def test_clearing_what_is_not_there_is_refused(cache: Any) -> None:
    with pytest.raises(ConfigError, match="no cache"):
        graph_of(Work(), None).clear_cache()
    with pytest.raises(ConfigError, match="no node 'wrok'; did you mean 'work'"):
        graph_of(Work(), cache).clear_cache(["wrok"])


class Killed(BaseException):
    """Stands for what ends a process in the middle of an effect."""


@pytest.mark.parametrize("nested", [False, True], ids=["in the node", "in a graph below"])
def test_an_effect_in_doubt_is_asked_about_though_another_thread_computed_the_same(
    saver: Any, cache: Any, call: Call, nested: bool
) -> None:
    ends = [True]

    def effect() -> str:
        if ends[0]:
            raise Killed
        return "sent"

    def send(state: Given) -> State:
        return {"found": step(effect, in_doubt="ask")}

    node: Any = StateGraph(State).add_node("send", send).add_edge(START, "send").compile() if nested else send
    builder = StateGraph(State).add_node("work", node, cache_policy=POLICY)
    graph, config = builder.add_edge(START, "work").compile(saver, cache=cache), thread()
    with pytest.raises(Killed):
        call(graph, {"given": 1}, config)
    ends[0] = False
    assert call(graph, {"given": 1}, thread())["found"] == "sent"
    assert asked(call(graph, None, config))[0].value["type"] == "in_doubt"
    assert call(graph, Command(resume={"type": "happened", "result": "sent before"}), config)["found"] == "sent before"


def test_a_cached_node_behind_a_breakpoint_is_not_run(saver: Any, cache: Any, call: Call) -> None:
    work = Work()
    builder = StateGraph(State).add_node("work", work, cache_policy=POLICY, input_schema=Given).add_edge(START, "work")
    graph = builder.compile(saver, cache=cache, interrupt_before=["work"])
    for config in (thread(), thread()):
        call(graph, {"given": 2}, config)
        assert graph.get_state(config).next == ("work",)
        assert call(graph, None, config)["found"] == 4
    assert work.runs == [2]
