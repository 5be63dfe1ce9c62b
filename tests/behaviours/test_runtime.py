"""What a node's runtime tells, however it is asked for."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import langgraph.runtime
import pytest
from pydantic import BaseModel, ValidationError
from typing_extensions import TypedDict

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, builder, chain, thread
from waitpoint import clock, runtime
from waitpoint.errors import GraphDrained
from waitpoint.graph import START, StateGraph
from waitpoint.runtime import BaseUser, ExecutionInfo, RunControl, Runtime, ServerInfo, get_runtime
from waitpoint.store.memory import InMemoryStore
from waitpoint.types import Command, RetryPolicy, interrupt


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


class Limits(BaseModel):
    top: int


class Loose(TypedDict):
    user: str


@pytest.mark.parametrize(
    ("schema", "given", "seen"),
    [(Limits, {"top": "3"}, Limits(top=3)), (Loose, {"user": "ana"}, {"user": "ana"}), (None, {"a": 1}, {"a": 1})],
    ids=["pydantic", "typed dict", "none"],
)
def test_a_dict_as_context_becomes_what_its_schema_is(call: Call, schema: Any, given: Any, seen: Any) -> None:
    """B231"""
    found = []
    graph = StateGraph(State, schema).add_node("n", lambda _, runtime: found.append(runtime.context))
    call(graph.add_edge(START, "n").compile(), {}, context=given)
    assert found == [seen]


@pytest.mark.parametrize(
    ("schema", "given", "error"),
    [(Limits, {"top": "high"}, ValidationError), (Context, {"name": "ana"}, TypeError)],
    ids=["pydantic", "dataclass"],
)
def test_a_context_that_does_not_fit_its_schema_is_an_error_and_nothing_runs(
    call: Call, schema: Any, given: Any, error: type[Exception]
) -> None:
    """B231"""
    ran = []
    graph = StateGraph(State, schema).add_node("n", lambda _: ran.append("n")).add_edge(START, "n").compile()
    with pytest.raises(error):
        call(graph, {}, context=given)
    assert ran == []


def test_without_a_thread_a_runtime_tells_what_there_is(call: Call) -> None:
    def node(state: State, runtime: Runtime) -> State:
        info = runtime.execution_info
        return {"value": (info.thread_id, info.run_id, info.checkpoint_ns, info.node_attempt, runtime.store)}

    assert call(chain(None, node), {})["value"] == (None, None, "", 1, None)


# --- its parts by themselves ------------------------------------------------------------------------------------------


def test_a_runtime_has_all_that_the_peers_has() -> None:
    for name in ("Runtime", "ExecutionInfo", "ServerInfo", "RunControl"):
        ours, theirs = getattr(runtime, name), getattr(langgraph.runtime, name)
        assert {n for n in dir(theirs) if not n.startswith("_")} <= set(dir(ours))
    theirs, ours = inspect.signature(langgraph.runtime.Runtime).parameters, inspect.signature(Runtime).parameters
    assert list(ours) == list(theirs)
    assert {p.kind for p in ours.values()} == {p.kind for p in theirs.values()}


def test_a_runtime_with_other_parts_is_another_one() -> None:
    first = Runtime(context=1, store="store", execution_info=ExecutionInfo(task_id="t"))
    other = first.override(context=2, previous=3)
    assert (first.context, other.context, other.previous, other.store) == (1, 2, 3, "store")
    assert other.patch_execution_info(node_attempt=2).execution_info == ExecutionInfo(task_id="t", node_attempt=2)
    assert first.execution_info.node_attempt == 1
    with pytest.raises(AttributeError):
        first.context = 5  # type: ignore[misc]


def test_of_two_runtimes_the_second_says_what_it_has() -> None:
    written: list[Any] = []
    control, info = RunControl(), ExecutionInfo(thread_id="t")
    first = Runtime(context=1, store="store", control=control, stream_writer=written.append, previous=0)
    both = first.merge(Runtime(context=False, execution_info=info))
    both.stream_writer("heard")
    assert (both.context, both.store, both.control, both.previous) == (False, "store", control, 0)
    assert (both.execution_info, written) == (info, ["heard"])


# --- who calls --------------------------------------------------------------------------------------------------------


class User(dict[str, Any]):
    """A user as a server knows them."""

    identity = "ana"
    display_name = "Ana"
    is_authenticated = True
    permissions = ()


USER = User()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, None),
        ({"assistant_id": "a", "graph_id": "g"}, ServerInfo("a", "g")),
        ({"assistant_id": 7}, ServerInfo("7", "")),
        ({"langgraph_auth_user": USER}, ServerInfo("", "", USER)),
        ({"graph_id": "g", "langgraph_auth_user": USER}, ServerInfo("", "g", USER)),
        ({"langgraph_auth_user": {"no": "user"}}, None),
    ],
)
def test_a_server_tells_nodes_and_graphs_in_them_of_itself_by_the_config(
    saver: Any, call: Call, given: dict[str, Any], told: Any
) -> None:
    """B234"""
    seen: list[Any] = []

    def node(state: State, runtime: Runtime) -> None:
        seen.append(runtime.server_info)

    def outer(state: State, runtime: Runtime) -> None:
        seen.append(runtime.server_info)
        chain(None, node).invoke(state)

    made = builder(outer).add_node("inner", chain(None, node)).add_edge("outer", "inner")
    call(made.compile(saver), {}, thread(**given))
    assert seen == [told, told, told]
    assert isinstance(USER, BaseUser)


# --- being asked to stop ----------------------------------------------------------------------------------------------


def test_each_run_has_a_control_of_its_own_unless_it_is_given_one(saver: Any, call: Call) -> None:
    """B232"""
    seen: list[Any] = []

    def node(state: State, runtime: Runtime) -> None:
        seen.append(runtime.control)
        assert (runtime.drain_requested, runtime.drain_reason) == (False, None)

    graph, given = chain(saver, node), RunControl()
    call(graph, {}, thread())
    call(graph, {}, thread())
    call(graph, {}, thread(), control=given)
    assert seen[0] is not seen[1]
    assert isinstance(seen[0], RunControl)
    assert seen[2] is given


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("nesting", ["none", "as a node", "called", "two levels"])
def test_a_run_that_a_node_asks_to_stop_ends_its_step_is_saved_and_goes_on(
    store: Store, call: Call, nesting: str, durability: str
) -> None:
    """B232, B233"""
    runs: list[str] = []

    def first(state: State, runtime: Runtime) -> State:
        runs.append("first")
        assert runtime.control is not None
        runtime.control.request_drain("update")
        assert (runtime.drain_requested, runtime.drain_reason) == (True, "update")
        return {"log": ["first"]}

    def second(state: State) -> State:
        runs.append("second")
        return {"log": ["second"]}

    def made(saver: Any) -> Any:
        if nesting == "none":
            return chain(saver, first, second)
        inner = chain(None, first, second)
        if nesting == "two levels":
            inner = StateGraph(State).add_node("middle", inner).add_edge(START, "middle").compile()

        def calling(state: State) -> Any:
            return inner.invoke({"log": []})

        node = calling if nesting == "called" else inner
        return StateGraph(State).add_node("inner", node).add_edge(START, "inner").compile(saver)

    config = thread()
    with pytest.raises(GraphDrained, match="Graph drained: update") as drained:
        call(made(store.saver), {"log": []}, config, durability=durability)
    assert drained.value.reason == "update"
    assert runs == ["first"]
    assert made(store.again()).get_state(config).next == (("second",) if nesting == "none" else ("inner",))
    assert call(made(store.again()), None, config)["log"] == ["first", "second"]
    assert runs == ["first", "second"]


def test_a_drained_run_lets_the_whole_step_finish(saver: Any, call: Call) -> None:
    """B232"""
    control, config = RunControl(), thread()

    def one(state: State) -> State:
        control.request_drain()
        return {"log": ["one"]}

    def two(state: State) -> State:
        return {"log": ["two"]}

    def last(state: State) -> State:
        return {"log": ["last"]}

    made = builder(one, two, edges="parallel").add_node(last).add_edge(["one", "two"], "last")
    graph = made.compile(saver)
    with pytest.raises(GraphDrained) as drained:
        call(graph, {"log": []}, config, control=control)
    assert drained.value.reason == "shutdown"
    assert graph.get_state(config).values["log"] == ["one", "two"]
    assert call(graph, None, config)["log"] == ["one", "two", "last"]


def test_a_run_whose_last_step_was_running_ends_as_it_would(saver: Any, call: Call) -> None:
    """B232"""

    def only(state: State, runtime: Runtime) -> State:
        assert runtime.control is not None
        runtime.control.request_drain()
        return {"log": ["only"]}

    config = thread()
    assert call(chain(saver, only), {"log": []}, config)["log"] == ["only"]


def test_a_question_of_the_step_that_was_running_is_asked_rather_than_drained(saver: Any, call: Call) -> None:
    """B232"""

    def asks(state: State, runtime: Runtime) -> State:
        assert runtime.control is not None
        runtime.control.request_drain()
        return {"log": [interrupt("go?")]}

    def after(state: State) -> State:
        return {"log": ["after"]}

    graph, config = chain(saver, asks, after), thread()
    assert asked(call(graph, {"log": []}, config))[0].value == "go?"
    with pytest.raises(GraphDrained):
        call(graph, Command(resume="yes"), config)
    assert call(graph, None, config)["log"] == ["yes", "after"]


def test_streams_end_with_the_drain(saver: Any, streamed: Call) -> None:
    parts: list[Any] = []

    def first(state: State, runtime: Runtime) -> State:
        assert runtime.control is not None
        runtime.control.request_drain()
        return {"log": ["first"]}

    graph, config = chain(saver, first, last), thread()
    with pytest.raises(GraphDrained):
        parts += streamed(graph, {"log": []}, config)
    assert streamed(graph, None, config) == [{"last": {"log": ["last"]}}]


def last(state: State) -> State:
    return {"log": ["last"]}
