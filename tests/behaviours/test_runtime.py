"""What a node's runtime tells, however it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.behaviours.conftest import Call
from tests.behaviours.graphs import State, chain, thread
from waitpoint import clock
from waitpoint.graph import START, StateGraph
from waitpoint.runtime import RunControl, Runtime, get_runtime
from waitpoint.store.memory import InMemoryStore
from waitpoint.types import RetryPolicy


@dataclass
class Context:
    user: str


def test_a_runtime_tells_where_a_node_runs_and_with_what(saver: Any, call: Call) -> None:
    seen: list[Runtime[Context]] = []
    store, control = InMemoryStore(), RunControl()

    def node(state: State, where: Runtime[Context]) -> State:
        assert get_runtime(Context) is where
        where.stream_writer("heard by nobody")
        seen.append(where)
        if len(seen) == 1:
            raise ConnectionError("once")
        return {}

    builder = StateGraph(State, Context)
    builder.add_node("node", node, retry_policy=RetryPolicy(initial_interval=0, jitter=False)).add_edge(START, "node")
    graph, config = builder.compile(saver, store=store), thread("t", run_id="r")
    with clock.fixed(lambda: 5.0):
        call(graph, {"value": 1}, config, context={"user": "ana"}, control=control)
    first, second = seen
    before = list(graph.get_state_history(config))[1]
    info = second.execution_info
    assert second.context == Context("ana")
    assert (second.store, second.control, second.previous, second.server_info) == (store, control, None, None)
    assert (info.thread_id, info.run_id, info.checkpoint_ns) == ("t", "r", "")
    assert info.checkpoint_id == before.config["configurable"]["checkpoint_id"]
    assert info.task_id == before.tasks[0].id
    assert (first.execution_info.node_attempt, info.node_attempt) == (1, 2)
    assert first.execution_info.node_first_attempt_time == info.node_first_attempt_time == 5.0


@pytest.mark.parametrize("given", [None, {"user": "ana"}, Context("ana")], ids=["none", "dict", "object"])
def test_a_context_is_what_the_call_was_given_as_its_schema_has_it(call: Call, given: Any) -> None:
    def node(state: State, runtime: Runtime[Context]) -> State:
        return {"value": runtime.context}

    graph = StateGraph(State, Context).add_node(node).add_edge(START, "node").compile()
    assert call(graph, {}, context=given)["value"] == (None if given is None else Context("ana"))


def test_without_a_thread_a_runtime_tells_what_there_is(call: Call) -> None:
    def node(state: State, runtime: Runtime) -> State:
        info = runtime.execution_info
        return {"value": (info.thread_id, info.run_id, info.checkpoint_ns, info.node_attempt, runtime.store)}

    assert call(chain(None, node), {})["value"] == (None, None, "", 1, None)
