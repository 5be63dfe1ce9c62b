"""Nodes and tasks that take too long, or are silent for too long: cancelled, named, and tried again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda

from tests.behaviours.conftest import Store
from tests.behaviours.graphs import State, asked, builder, thread
from waitpoint.config import get_stream_writer
from waitpoint.errors import NodeTimeoutError, StepTimeoutError
from waitpoint.func import entrypoint, task
from waitpoint.graph import START, StateGraph
from waitpoint.graph.message import push_message
from waitpoint.runtime import Runtime, get_runtime
from waitpoint.testing.faults import FaultySaver, Points
from waitpoint.types import Command, RetryPolicy, Send, TimeoutPolicy, interrupt

IDLE = 0.15


class Silent:
    """A body that says nothing and never ends, `times` times."""

    def __init__(self, times: int = 1) -> None:
        self.times = times
        self.runs = self.cancelled = 0

    async def __call__(self, state: State) -> State:
        self.runs += 1
        if self.runs > self.times:
            return {"log": ["done"]}
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return {}


def one_node(node: Any, saver: Any = None, **options: Any) -> Any:
    return StateGraph(State).add_node("node", node, **options).add_edge(START, "node").compile(saver)


def run(graph: Any, given: Any, config: Any = None) -> Any:
    return asyncio.run(graph.ainvoke(given, config))


@pytest.mark.parametrize(
    "given", [0.01, timedelta(milliseconds=10), TimeoutPolicy(run_timeout=timedelta(seconds=0.01))]
)
def test_a_bound_of_the_run_cancels_the_node_and_the_thread_can_be_continued(store: Store, given: Any) -> None:
    """B224"""
    node, config = Silent(), thread()
    graph = one_node(node, store.saver, timeout=given)
    with pytest.raises(NodeTimeoutError, match=r"Node 'node' took longer than its timeout of 0\.01 seconds") as late:
        run(graph, {"log": []}, config)
    error = late.value
    assert (error.node, error.kind, error.timeout, error.run_timeout, error.idle_timeout) == (
        "node",
        "run",
        0.01,
        0.01,
        None,
    )
    assert error.elapsed >= 0.01
    assert node.cancelled == 1
    assert run(one_node(node, store.again(), timeout=given), None, config)["log"] == ["done"]


def test_a_silent_node_is_cancelled_and_told_apart_from_one_that_takes_long(store: Store) -> None:
    """B224"""
    node, config = Silent(), thread()
    graph = one_node(node, store.saver, timeout=TimeoutPolicy(run_timeout=60, idle_timeout=0.01))
    with pytest.raises(NodeTimeoutError, match=r"Node 'node' made no progress for its idle timeout of 0\.01") as late:
        run(graph, {"log": []}, config)
    error = late.value
    assert (error.kind, error.timeout, error.run_timeout, error.idle_timeout) == ("idle", 0.01, 60.0, 0.01)
    assert node.cancelled == 1
    assert run(graph, None, config)["log"] == ["done"]


# --- signs of life ----------------------------------------------------------------------------------------------------


async def beats() -> None:
    get_runtime().heartbeat()


async def writes() -> None:
    get_stream_writer()("still here")


async def pushes() -> None:
    push_message({"role": "ai", "content": "still here", "id": "1"}, state_key=None)


async def calls_a_runnable() -> None:
    await RunnableLambda(lambda x: x).ainvoke(1)


async def calls_a_graph() -> None:
    await one_node(lambda state: {}).ainvoke({})


async def calls_a_task() -> None:
    await noted()


@task
def noted() -> int:
    return 1


SIGNS = [writes, pushes, calls_a_runnable, calls_a_graph, calls_a_task]


def lively(sign: Callable[[], Awaitable[None]]) -> Callable[..., Any]:
    """Return a node that gives signs for several times as long as it may be silent."""

    async def node(state: State) -> State:
        ends = time.monotonic() + 3 * IDLE
        while time.monotonic() < ends:
            await sign()
            await asyncio.sleep(0)
        return {"log": ["done"]}

    return node


@pytest.mark.parametrize("sign", [beats, *SIGNS])
def test_a_node_that_gives_signs_of_life_may_go_on(sign: Any) -> None:
    """B224"""
    graph = one_node(lively(sign), timeout=TimeoutPolicy(idle_timeout=IDLE))
    assert run(graph, {"log": []})["log"] == ["done"]


@pytest.mark.parametrize("sign", SIGNS)
def test_where_only_heartbeats_count_other_signs_do_not(sign: Any) -> None:
    policy = TimeoutPolicy(idle_timeout=0.05, refresh_on="heartbeat")
    with pytest.raises(NodeTimeoutError, match="no progress"):
        run(one_node(lively(sign), timeout=policy), {"log": []})


def test_where_only_heartbeats_count_heartbeats_do() -> None:
    policy = TimeoutPolicy(idle_timeout=IDLE, refresh_on="heartbeat")
    assert run(one_node(lively(beats), timeout=policy), {"log": []})["log"] == ["done"]


def test_signs_of_life_come_up_through_graphs_in_graphs() -> None:
    middle = one_node(one_node(lively(beats)))
    graph = one_node(middle, timeout=TimeoutPolicy(idle_timeout=IDLE))
    assert run(graph, {"log": []})["log"] == ["done"]


def test_signs_of_life_do_not_extend_the_bound_of_the_run() -> None:
    graph = one_node(lively(beats), timeout=TimeoutPolicy(run_timeout=0.05, idle_timeout=IDLE))
    with pytest.raises(NodeTimeoutError) as late:
        run(graph, {"log": []})
    assert late.value.kind == "run"


def test_a_heartbeat_outside_of_a_bound_does_nothing() -> None:
    async def node(state: State, runtime: Runtime) -> State:
        runtime.heartbeat()
        return {"log": ["done"]}

    assert run(one_node(node), {"log": []})["log"] == ["done"]
    Runtime().heartbeat()


# --- where timeouts hold ----------------------------------------------------------------------------------------------


def test_the_default_policy_tries_a_node_again_that_took_too_long() -> None:
    """B224"""
    node = Silent(times=2)
    policy = RetryPolicy(initial_interval=0, jitter=False)
    graph = one_node(node, timeout=TimeoutPolicy(idle_timeout=0.01), retry_policy=policy)
    assert run(graph, {"log": []})["log"] == ["done"]
    assert (node.runs, node.cancelled) == (3, 2)


def test_an_error_handler_hears_of_a_timeout() -> None:
    def handler(state: State, error: Any) -> State:
        return {"log": [type(error.error).__name__]}

    graph = one_node(Silent(), timeout=0.01, error_handler=handler)
    assert run(graph, {"log": []})["log"] == ["NodeTimeoutError"]


@pytest.mark.parametrize(
    "body", [one_node(Silent()), RunnableLambda(lambda x: x, afunc=Silent())], ids=["graph", "runnable"]
)
def test_graphs_and_runnables_as_nodes_are_bounded_too(body: Any) -> None:
    with pytest.raises(NodeTimeoutError):
        run(one_node(body, timeout=0.01), {"log": []})


@pytest.mark.parametrize("given", [0.01, TimeoutPolicy(idle_timeout=0.01)], ids=["run", "idle"])
def test_a_send_brings_a_timeout_that_counts_in_place_of_the_nodes_also_later(store: Store, given: Any) -> None:
    """B224: the packet waits at a question, in the store"""
    node = Silent()

    def ask(state: State) -> Command[Any]:
        return Command(update={"log": [interrupt("go?")]}, goto=Send("work", {}, timeout=given))

    def graph(saver: Any) -> Any:
        made = StateGraph(State).add_node(ask, destinations=("work",)).add_node("work", node, timeout=60)
        return made.add_edge(START, "ask").compile(saver)

    config = thread()
    asked(run(graph(store.saver), {"log": []}, config))
    with pytest.raises(NodeTimeoutError) as late:
        run(graph(store.again()), Command(resume="yes"), config)
    assert late.value.timeout == 0.01
    assert late.value.kind == ("run" if given == 0.01 else "idle")
    assert run(graph(store.again()), None, config)["log"] == ["yes", "done"]


def test_a_send_cannot_bound_a_plain_function(store: Store) -> None:
    made = StateGraph(State).add_node("work", lambda state: {})
    made.add_conditional_edges(START, lambda state: [Send("work", {}, timeout=1)], ["work"])
    graph = made.compile(store.saver)
    for call in (graph.invoke, lambda *given: run(graph, *given)):
        with pytest.raises(ValueError, match="only supported for async nodes"):
            call({"log": []}, thread())


def test_invoke_cannot_bound_a_graph() -> None:
    with pytest.raises(ValueError, match="only supported for async nodes under ainvoke"):
        one_node(one_node(lambda state: {}), timeout=1).invoke({"log": []})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (0, "must be greater than 0"),
        (-1.5, "must be greater than 0"),
        (float("nan"), "must be greater than 0"),
        (timedelta(0), "must be greater than 0"),
        (TimeoutPolicy(idle_timeout=0), "idle_timeout is 0 s"),
        (TimeoutPolicy(run_timeout="5"), "run_timeout is a str"),  # type: ignore[arg-type]
        ("5", "run_timeout is a str"),
        (True, "run_timeout is a bool"),
        (TimeoutPolicy(1, refresh_on="always"), "must be 'auto' or 'heartbeat'"),  # type: ignore[arg-type]
    ],
)
def test_a_timeout_that_cannot_be_kept_is_refused_wherever_it_is_given(given: Any, says: str) -> None:
    """B223"""

    async def body(state: Any) -> Any: ...

    for declare in (
        lambda: StateGraph(State).add_node("node", body, timeout=given),
        lambda: StateGraph(State).set_node_defaults(timeout=given),
        lambda: task(timeout=given)(body),
        lambda: entrypoint(timeout=given)(body),
        lambda: Send("node", {}, timeout=given),
    ):
        with pytest.raises(ValueError, match=says):
            declare()


def test_a_policy_that_bounds_nothing_is_none() -> None:
    graph = one_node(lambda state: {"log": ["done"]}, timeout=TimeoutPolicy())
    assert graph.invoke({"log": []})["log"] == ["done"]
    assert Send("node", {}, timeout=TimeoutPolicy()).timeout is None


def test_a_task_is_bounded_in_each_way(store: Store) -> None:
    silent, beating = Silent(), lively(beats)

    @task(timeout=TimeoutPolicy(idle_timeout=0.01), retry_policy=RetryPolicy(initial_interval=0, jitter=False))
    async def patient() -> Any:
        return await silent({})

    @task(timeout=TimeoutPolicy(idle_timeout=IDLE))
    async def alive() -> Any:
        return await beating({})

    @entrypoint(store.saver)
    async def body(given: int) -> Any:
        return [await patient(), await alive()]

    assert run(body, 1, thread()) == [{"log": ["done"]}, {"log": ["done"]}]
    assert silent.cancelled == 1


# --- steps ------------------------------------------------------------------------------------------------------------


def test_a_step_that_keeps_talking_is_over_its_timeout_all_the_same(store: Store) -> None:
    """B191"""
    leaves = []

    def talks(state: State) -> State:
        write, ends = get_stream_writer(), time.monotonic() + 10
        while time.monotonic() < ends and not leaves:
            write("still here")
        return {}

    graph = builder(talks).compile(store.saver)
    graph.step_timeout = 0.1
    with pytest.raises(StepTimeoutError, match="step_timeout"):
        try:
            list(graph.stream({"log": []}, thread(), stream_mode="custom"))
        finally:
            leaves.append(1)


@pytest.mark.parametrize("bound", [None, 30.0])
def test_a_saver_that_times_out_is_not_taken_for_a_step_that_does(store: Store, bound: float | None) -> None:
    """B119"""

    def refuse(point: str) -> None:
        raise TimeoutError(f"the database does not answer at {point}")

    one, two = (lambda state: {"log": ["one"]}), (lambda state: {"log": ["two"]})
    made = StateGraph(State).add_node("one", one).add_node("two", two).add_edge(START, "one").add_edge(START, "two")
    points = Points()
    quiet = made.compile(FaultySaver(store.saver, points))
    quiet.invoke({"log": []}, thread())
    for at in range(1, len(points.passed) + 1):
        graph = made.compile(FaultySaver(store.saver, Points(at, refuse)))
        graph.step_timeout = bound
        with pytest.raises(TimeoutError, match="the database does not answer"):
            graph.invoke({"log": []}, thread())
