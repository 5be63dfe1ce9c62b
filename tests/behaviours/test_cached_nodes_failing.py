"""Nodes with a cache policy where something is wrong: the cache, the key function, what was cached, the declaration."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.behaviours.cached import POLICY, Given, State, Work, graph_of
from tests.behaviours.conftest import Call
from tests.behaviours.graphs import thread
from waitpoint.cache.base import BaseCache
from waitpoint.cache.memory import InMemoryCache
from waitpoint.errors import CacheWarning, ConfigError, GraphValidationError, UsageError
from waitpoint.graph import END, START, StateGraph
from waitpoint.types import CachePolicy, Command


class Broken(BaseCache[Any]):
    """A cache whose disk is full."""

    def get(self, keys: Any) -> Any:
        raise OSError("disk full")

    def set(self, pairs: Any) -> None:
        raise OSError("disk full")

    def clear(self, namespaces: Any = None) -> None:
        raise OSError("disk full")


def test_a_cache_that_fails_warns_and_the_node_runs(call: Call) -> None:
    work = Work()
    with pytest.warns(CacheWarning, match="'work' of graph 'LangGraph'.*disk full") as warned:
        assert call(graph_of(work, Broken()), {"given": 1})["found"] == 2
    assert ["read" in str(w.message) for w in warned] == [True, False]
    assert work.runs == [1]


class Slow(InMemoryCache[Any]):
    """A cache whose writes take for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()

    async def aset(self, pairs: Any) -> None:
        self.begun.set()
        await asyncio.Event().wait()


def test_a_node_that_is_done_counts_though_its_run_is_cancelled_while_it_is_cached(saver: Any) -> None:
    work, config = Work(), thread()

    async def cancelled() -> Any:
        cache = Slow()
        graph = graph_of(work, cache, saver)
        run = asyncio.create_task(graph.ainvoke({"given": 1}, config))
        await cache.begun.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        return await graph.ainvoke(None, config)

    assert asyncio.run(cancelled())["found"] == 2
    assert work.runs == [1]


def test_a_result_that_the_graph_cannot_use_any_more_is_computed_anew(cache: Any, call: Call) -> None:
    class Old(State, total=False):
        gone: Any

    def work(state: Given) -> Any:
        return {"found": 1, "gone": 2}

    old = StateGraph(Old).add_node("work", work, cache_policy=POLICY, input_schema=Given).add_edge(START, "work")
    call(old.compile(cache=cache), {"given": 1})
    assert call(graph_of(work, cache), {"given": 1}) == {"given": 1, "found": 1, "log": []}


def test_a_result_that_leads_to_a_node_that_is_gone_is_computed_anew(cache: Any, call: Call) -> None:
    places = ["gone"]

    def work(state: Given) -> Command[Any]:
        return Command(update={"found": places[0]}, goto=places[0])

    old = StateGraph(State).add_node("work", work, cache_policy=POLICY, input_schema=Given, destinations=("gone",))
    old.add_node("gone", lambda state: {"log": ["gone"]}).add_edge(START, "work")
    assert call(old.compile(cache=cache), {"given": 1}) == {"given": 1, "found": "gone", "log": ["gone"]}
    places[0] = END
    assert call(graph_of(work, cache), {"given": 1}) == {"given": 1, "found": END, "log": []}


def test_an_input_that_cannot_be_compared_needs_a_key_function(cache: Any, call: Call) -> None:
    work = Work(lambda given: 1)
    with pytest.raises(ConfigError, match=r"node 'work'.*key_func"):
        call(graph_of(work, cache), {"given": object()})
    assert work.runs == []
    keyed = graph_of(work, cache, policy=CachePolicy(key_func=lambda state: "same"))
    assert [call(keyed, {"given": object()})["found"] for _ in range(2)] == [1, 1]
    assert len(work.runs) == 1


def test_a_result_that_cannot_be_stored_warns_and_is_not_kept(cache: Any, call: Call) -> None:
    work = Work(lambda given: object())
    graph = graph_of(work, cache)
    for _ in range(2):
        with pytest.warns(CacheWarning, match="could not be encoded"):
            call(graph, {"given": 1})
    assert work.runs == [1, 1]


@pytest.mark.parametrize("key", [lambda state: 5, lambda state: state["missing"]])
def test_a_key_function_that_fails_fails_its_node(saver: Any, cache: Any, call: Call, key: Any) -> None:
    work = Work()
    graph, config = graph_of(work, cache, saver, policy=CachePolicy(key_func=key)), thread()
    with pytest.raises((ConfigError, KeyError)):
        call(graph, {"given": 1}, config)
    assert work.runs == []
    (task,) = graph.get_state(config).tasks
    assert task.error is not None
    assert call(graph_of(work, cache, saver), None, config)["found"] == 2  # the mended program goes on


def test_what_is_no_policy_or_no_cache_is_refused() -> None:
    policy: Any = {"ttl": 5}
    with pytest.raises(GraphValidationError, match="CachePolicy"):
        StateGraph(State).add_node("work", Work(), cache_policy=policy)
    with pytest.raises(GraphValidationError, match="CachePolicy"):
        StateGraph(State).set_node_defaults(cache_policy=policy)
    with pytest.raises(UsageError, match="`cache` is a dict"):
        graph_of(Work(), {})
    with pytest.raises(ConfigError, match="`ttl`"):
        graph_of(Work(), InMemoryCache(), policy=CachePolicy(ttl=0)).invoke({"given": 1})
