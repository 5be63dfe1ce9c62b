"""Failures: what is kept, what runs again, and what a failed thread looks like; what each durability saves."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.flaky import Flaky
from tests.behaviours.graphs import State, asked, builder, chain, parallel, thread
from waitpoint.errors import InvalidUpdateError, NodeTimeoutError
from waitpoint.graph import END, START, StateGraph
from waitpoint.types import Command, Send, interrupt

DURABILITIES = ["sync", "async", "exit"]


def limited(left: int, right: int) -> int:
    if left + right > 9:
        raise ValueError("too much")
    return left + right


class Limited(TypedDict, total=False):
    n: Annotated[int, limited]


class Unlimited(TypedDict, total=False):
    n: Annotated[int, operator.add]


def history(graph: Any, config: Any) -> list[Any]:
    return list(graph.get_state_history(config))


# --- what a failure leaves --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("durability", DURABILITIES)
def test_only_what_failed_runs_again(store: Store, call: Call, durability: str) -> None:
    """B115, B117: in all durabilities, and in another process"""
    nodes, config = Flaky(), thread()
    with pytest.raises(ValueError, match="not yet"):
        call(parallel(store.saver, nodes.flaky, nodes.steady), {"log": []}, config, durability=durability)
    graph = parallel(store.again(), nodes.flaky, nodes.steady)
    assert call(graph, None, config, durability=durability)["log"] == ["flaky", "steady"]
    assert sorted(nodes.runs) == ["flaky", "flaky", "steady"]


def test_only_what_failed_runs_again_for_coroutines(saver: Any) -> None:
    """B115"""
    nodes, config = Flaky(), thread()
    graph = parallel(saver, nodes.aflaky, nodes.asteady)
    with pytest.raises(ValueError, match="not yet"):
        asyncio.run(graph.ainvoke({"log": []}, config))
    assert asyncio.run(graph.ainvoke(None, config))["log"] == ["flaky", "steady"]
    assert sorted(nodes.runs) == ["flaky", "flaky", "steady"]


def test_finished_sends_do_not_run_again(saver: Any, call: Call) -> None:
    """B115"""
    runs: list[int] = []

    def work(item: int) -> State:
        runs.append(item)
        if item == 2 and runs.count(2) == 1:
            raise ValueError("not yet")
        return {"log": [item]}

    graph: Any = StateGraph(State).add_node("work", work)
    graph.add_conditional_edges(START, lambda s: [Send("work", i) for i in (1, 2)])
    graph, config = graph.compile(checkpointer=saver), thread()
    with pytest.raises(ValueError, match="not yet"):
        call(graph, {"log": []}, config, durability="sync")
    assert call(graph, None, config)["log"] == [1, 2]
    assert runs.count(2) == 2


def test_finished_nodes_of_a_subgraph_do_not_run_again(saver: Any, call: Call) -> None:
    """B115, B126"""
    nodes, config = Flaky(), thread()
    graph: Any = StateGraph(State).add_node("inner", chain(None, nodes.steady, nodes.flaky)).add_edge(START, "inner")
    graph = graph.compile(checkpointer=saver)
    with pytest.raises(ValueError, match="not yet"):
        call(graph, {"log": []}, config)
    assert call(graph, None, config)["log"] == ["steady", "flaky"]
    assert nodes.runs == ["steady", "flaky", "flaky"]


def test_a_failed_thread_shows_results_and_errors(saver: Any, call: Call) -> None:
    """B116"""
    nodes, config = Flaky(failures=5), thread()
    graph = parallel(saver, nodes.flaky, nodes.steady)
    with pytest.raises(ValueError, match="not yet"):
        call(graph, {"log": ["in"]}, config)
    state = graph.get_state(config)
    assert state.next == ("flaky",)
    assert {t.name: (t.error, t.result) for t in state.tasks} == {
        "flaky": ("ValueError('not yet')", None),
        "steady": (None, {"log": ["steady"]}),
    }
    count = len(history(graph, config))
    with pytest.raises(ValueError, match="not yet"):
        call(graph, None, config)
    assert len(history(graph, config)) == count
    assert graph.get_state(config).next == ("flaky",)


def test_new_input_on_a_failed_thread_starts_anew(saver: Any, call: Call) -> None:
    """B116: a failed thread is not wedged"""
    nodes, config = Flaky(), thread()
    graph = chain(saver, nodes.steady, nodes.flaky)
    with pytest.raises(ValueError, match="not yet"):
        call(graph, {"log": []}, config)
    assert call(graph, {"log": ["in"]}, config)["log"] == ["steady", "in", "steady", "flaky"]


def test_a_failure_beside_a_question_keeps_the_question(saver: Any, call: Call) -> None:
    """B115, B116"""
    nodes, config = Flaky(), thread()

    def ask(state: State) -> State:
        nodes.sibling_done.set()
        return {"log": [interrupt("ok?")]}

    graph = parallel(saver, ask, nodes.flaky)
    with pytest.raises(ValueError, match="not yet"):
        call(graph, {"log": []}, config)
    assert [q.value for q in saver.pending()] == ["ok?"]
    assert set(graph.get_state(config).next) == {"ask", "flaky"}
    result = call(graph, None, config)
    assert [i.value for i in asked(result)] == ["ok?"]
    assert nodes.runs == ["flaky", "flaky"]
    assert call(graph, Command(resume="yes"), config)["log"] == ["yes", "flaky"]


def test_writes_that_contradict_each_other_fail_the_step_and_nothing_runs_twice(saver: Any, call: Call) -> None:
    """B115, B157: once the graph is mended the thread goes on"""
    runs: list[str] = []

    def one(state: State) -> State:
        runs.append("one")
        return {"value": 1}

    def two(state: State) -> State:
        runs.append("two")
        return {"value": 2}

    graph, config = parallel(saver, one, two), thread()
    for given in ({"log": []}, None):
        with pytest.raises(InvalidUpdateError, match="At key 'value'"):
            call(graph, given, config)
        state = graph.get_state(config)
        assert state.next == ("one", "two")
        assert [t.result for t in state.tasks] == [{"value": 1}, {"value": 2}]
        assert "value" not in state.values

    class Mended(TypedDict, total=False):
        log: Annotated[list[Any], operator.add]
        value: Annotated[int, operator.add]

    mended = builder(one, two, edges="parallel", schema=Mended).compile(checkpointer=saver)
    assert call(mended, None, config)["value"] == 3
    assert sorted(runs) == ["one", "two"]


def test_a_thread_whose_writes_contradict_each_other_can_be_moved_on(saver: Any, call: Call) -> None:
    """B157"""

    def one(state: State) -> State:
        return {"value": 1}

    def two(state: State) -> State:
        return {"value": 2}

    graph, config = parallel(saver, one, two), thread()
    with pytest.raises(InvalidUpdateError, match="At key 'value'"):
        call(graph, {"log": []}, config)
    graph.update_state(config, {"value": 3}, as_node="one")
    assert graph.get_state(config).values == {"log": [], "value": 3}
    assert graph.get_state(config).next == ()


def test_a_reducer_that_raises_fails_the_step_and_can_be_mended(saver: Any, call: Call) -> None:
    """B115"""

    def one(state: Any) -> Any:
        return {"n": 1}

    graph, config = builder(one, schema=Limited).compile(checkpointer=saver), thread()
    with pytest.raises(ValueError, match="too much"):
        call(graph, {"n": 9}, config)
    assert graph.get_state(config).values == {"n": 9}
    assert graph.get_state(config).next == ("one",)
    mended = builder(one, schema=Unlimited).compile(checkpointer=saver)
    assert call(mended, None, config) == {"n": 10}


def test_a_router_that_raises_does_not_run_its_node_again(saver: Any, call: Call) -> None:
    """B115: the body has finished, only its router runs again"""
    nodes, config = Flaky(), thread()

    def router(state: State) -> str:
        if "mended" not in nodes.runs:
            raise ValueError("router")
        return END

    graph: Any = builder(nodes.steady).add_conditional_edges("steady", router)
    graph = graph.compile(checkpointer=saver)
    with pytest.raises(ValueError, match="router"):
        call(graph, {"log": []}, config)
    nodes.runs.append("mended")
    assert call(graph, None, config)["log"] == ["steady"]
    assert nodes.runs == ["steady", "mended"]


# --- durability -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("durability", "count"), [("sync", 4), ("async", 4), ("exit", 1)])
def test_how_many_checkpoints_a_run_saves(saver: Any, call: Call, durability: str, count: int) -> None:
    """B117"""
    nodes, config = Flaky(failures=0), thread()
    graph = chain(saver, nodes.steady, nodes.flaky)
    assert call(graph, {"log": []}, config, durability=durability)["log"] == ["steady", "flaky"]
    assert len(history(graph, config)) == count
    assert history(graph, config)[0].values["log"] == ["steady", "flaky"]


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_pause_and_a_failure_are_saved_in_each_durability(store: Store, call: Call, durability: str) -> None:
    """B117"""
    nodes = Flaky()

    def ask(state: State) -> State:
        return {"log": [interrupt("ok?")]}

    config = thread()
    call(chain(store.saver, nodes.steady, ask, nodes.flaky), {"log": []}, config, durability=durability)
    graph = chain(store.again(), nodes.steady, ask, nodes.flaky)
    assert [i.value for i in graph.get_state(config).interrupts] == ["ok?"]
    with pytest.raises(ValueError, match="not yet"):
        call(graph, Command(resume="yes"), config, durability=durability)
    graph = chain(store.again(), nodes.steady, ask, nodes.flaky)
    assert graph.get_state(config).next == ("flaky",)
    assert call(graph, None, config, durability=durability)["log"] == ["steady", "yes", "flaky"]
    assert nodes.runs == ["steady", "flaky", "flaky"]


@pytest.mark.parametrize("durability", DURABILITIES)
def test_every_parent_that_a_snapshot_names_is_stored(store: Store, call: Call, durability: str) -> None:
    """B81, B117: also as the process sees it that ran the thread"""

    def ask(state: State) -> State:
        return {"log": [interrupt("ok?")]}

    nodes, config = Flaky(failures=0), thread()
    graph = chain(store.saver, nodes.steady, ask, nodes.flaky)
    for given in ({"log": []}, Command(resume="yes"), {"log": []}):
        call(graph, given, config, durability=durability)
        snapshots = history(graph, config)
        assert [s.parent_config for s in snapshots] == [*(s.config for s in snapshots[1:]), None]
        assert graph.get_state(config).parent_config == snapshots[0].parent_config
        assert history(chain(store.again(), nodes.steady, ask, nodes.flaky), config) == snapshots


@pytest.mark.parametrize("nesting", ["a node", "a function"])
def test_with_durability_exit_a_finished_subgraph_leaves_no_checkpoints(saver: Any, call: Call, nesting: str) -> None:
    """B118"""
    nodes, config = Flaky(failures=0), thread()
    inner = chain(None, nodes.steady)
    node = inner if nesting == "a node" else lambda s: {"log": inner.invoke({"log": []})["log"]}
    graph: Any = StateGraph(State).add_node("inner", node).add_edge(START, "inner")
    graph = graph.compile(checkpointer=saver)
    call(graph, {"log": []}, config, durability="exit")
    assert len(history(graph, config)) == 1


def test_an_unknown_durability_is_refused(saver: Any, call: Call) -> None:
    with pytest.raises(ValueError, match="`durability` is 'sometimes'; give one of 'sync', 'async', 'exit'"):
        call(chain(saver, Flaky().steady), {"log": []}, thread(), durability="sometimes")


# --- timeouts of nodes ------------------------------------------------------------------------------------------------


def test_an_async_node_over_its_timeout_is_cancelled_and_named() -> None:
    cancelled = []

    async def waits_for_ever(state: State) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(1)
            raise

    graph = StateGraph(State).add_node(waits_for_ever, timeout=0.01).add_edge(START, "waits_for_ever").compile()
    with pytest.raises(NodeTimeoutError, match="waits_for_ever") as late:
        asyncio.run(graph.ainvoke({"log": []}))
    assert (late.value.kind, late.value.run_timeout, cancelled) == ("run", 0.01, [1])
