"""Retries, error handlers and limits: what a node and a run may take, and what happens then."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.flaky import Flaky
from tests.behaviours.graphs import State, asked, chain, ids, parallel, thread
from waitpoint.engine import tasks
from waitpoint.errors import GraphRecursionError, NodeError, NodeTimeoutError
from waitpoint.graph import START, StateGraph
from waitpoint.runtime import Runtime
from waitpoint.types import Command, RetryPolicy, interrupt

DURABILITIES = ["sync", "async", "exit"]
QUICK = {"initial_interval": 0.0, "jitter": False}


# --- retries ----------------------------------------------------------------------------------------------------------


def retrying(saver: Any, node: Any, policy: Any, **options: Any) -> Any:
    graph: Any = StateGraph(State).add_node("node", node, retry_policy=policy, **options).add_edge(START, "node")
    return graph.compile(checkpointer=saver)


def test_a_node_is_tried_again_up_to_its_budget(saver: Any, call: Call) -> None:
    """B115, B221"""
    nodes, config = Flaky(failures=2, error=ConnectionError("down")), thread()
    nodes.sibling_done.set()
    graph = retrying(saver, nodes.flaky, RetryPolicy(max_attempts=3, **QUICK))
    assert call(graph, {"log": []}, config)["log"] == ["flaky"]
    assert nodes.runs == ["flaky"] * 3


def test_a_continued_thread_has_the_full_budget_again(saver: Any, call: Call) -> None:
    """B115"""
    nodes, config = Flaky(failures=3, error=ConnectionError("down")), thread()
    nodes.sibling_done.set()
    graph = retrying(saver, nodes.flaky, RetryPolicy(max_attempts=2, **QUICK))
    with pytest.raises(ConnectionError, match="down"):
        call(graph, {"log": []}, config)
    assert len(nodes.runs) == 2
    assert call(graph, None, config)["log"] == ["flaky"]
    assert len(nodes.runs) == 4


@pytest.mark.parametrize(
    ("retry_on", "runs"),
    [
        (KeyError, 2),
        ((KeyError, OSError), 2),
        ([ValueError], 1),
        (lambda error: isinstance(error, KeyError), 2),
        (lambda error: False, 1),
    ],
)
def test_a_policy_says_on_what_to_retry(saver: Any, call: Call, retry_on: Any, runs: int) -> None:
    """B221"""
    nodes = Flaky(failures=5, error=KeyError("k"))
    nodes.sibling_done.set()
    graph = retrying(saver, nodes.flaky, RetryPolicy(max_attempts=2, retry_on=retry_on, **QUICK))
    with pytest.raises(KeyError):
        call(graph, {"log": []}, thread())
    assert len(nodes.runs) == runs


def test_mistakes_in_the_code_are_not_retried_by_default(saver: Any, call: Call) -> None:
    """B221"""
    nodes = Flaky(failures=5)
    nodes.sibling_done.set()
    with pytest.raises(ValueError, match="not yet"):
        call(retrying(saver, nodes.flaky, RetryPolicy(**QUICK)), {"log": []}, thread())
    assert nodes.runs == ["flaky"]


def test_the_first_of_several_policies_that_fits_is_used(saver: Any, call: Call) -> None:
    """B221"""
    nodes = Flaky(failures=9, error=KeyError("k"))
    nodes.sibling_done.set()
    policies = [
        RetryPolicy(max_attempts=5, retry_on=ValueError, **QUICK),
        RetryPolicy(max_attempts=2, retry_on=KeyError, **QUICK),
        RetryPolicy(max_attempts=4, retry_on=LookupError, **QUICK),
    ]
    with pytest.raises(KeyError):
        call(retrying(saver, nodes.flaky, policies), {"log": []}, thread())
    assert len(nodes.runs) == 2


@pytest.mark.parametrize(
    ("policy", "waits"),
    [
        ({"initial_interval": 0.01}, [0.01, 0.02, 0.04]),
        ({"initial_interval": 1.0, "backoff_factor": 3.0}, [1.0, 3.0, 9.0]),
        ({"initial_interval": 1.0, "backoff_factor": 10.0, "max_interval": 20.0}, [1.0, 10.0, 20.0]),
        ({"initial_interval": 0.5, "backoff_factor": 1.0}, [0.5, 0.5, 0.5]),
    ],
)
@pytest.mark.parametrize("jitter", [False, True])
def test_the_waits_between_tries_grow(
    saver: Any, call: Call, monkeypatch: pytest.MonkeyPatch, policy: Any, waits: list[float], jitter: bool
) -> None:
    """B221: with jitter up to a second more each"""
    slept: list[float] = []

    async def awaited(self: Any) -> None:
        slept.append(self.seconds)

    monkeypatch.setattr(tasks._Sleep, "blocking", lambda self: slept.append(self.seconds))
    monkeypatch.setattr(tasks._Sleep, "awaiting", awaited)
    nodes = Flaky(failures=3, error=ConnectionError("down"))
    nodes.sibling_done.set()
    graph = retrying(saver, nodes.flaky, RetryPolicy(max_attempts=4, jitter=jitter, **policy))
    assert call(graph, {"log": []}, thread())["log"] == ["flaky"]
    assert all(0 <= more - least <= (1 if jitter else 0) for more, least in zip(slept, waits, strict=True))


def test_attempts_are_counted_from_one_and_the_first_time_stays(saver: Any, call: Call) -> None:
    """B221"""
    seen: list[tuple[int, float | None]] = []

    def node(state: State, runtime: Runtime[Any]) -> State:
        info = runtime.execution_info
        seen.append((info.node_attempt, info.node_first_attempt_time))
        if len(seen) < 3:
            raise ConnectionError("down")
        return {"log": ["done"]}

    call(retrying(saver, node, RetryPolicy(max_attempts=3, **QUICK)), {"log": []}, thread())
    assert [n for n, _ in seen] == [1, 2, 3]
    assert len({at for _, at in seen}) == 1


def test_writes_of_a_failed_try_are_dropped(saver: Any, call: Call) -> None:
    """B221: an object edited in place by a failed try does not leak into the next"""
    tries: list[Any] = []

    def node(state: State) -> State:
        tries.append(list(state["log"]))
        state["log"].append("leak")
        if len(tries) < 2:
            raise ConnectionError("down")
        return {"value": len(state["log"])}

    result = call(retrying(saver, node, RetryPolicy(**QUICK)), {"log": ["in"]}, thread())
    assert tries == [["in"], ["in"]]
    assert result == {"log": ["in"], "value": 2}


def test_a_pause_is_no_failure_and_an_answered_node_has_its_budget(saver: Any, call: Call) -> None:
    """B5, B221"""
    runs: list[str] = []

    def node(state: State) -> State:
        answer = interrupt("ok?")
        runs.append(answer)
        if len(runs) < 3:
            raise ConnectionError("down")
        return {"log": [answer]}

    graph, config = retrying(saver, node, RetryPolicy(max_attempts=3, **QUICK)), thread()
    call(graph, {"log": []}, config)
    assert runs == []
    assert call(graph, Command(resume="yes"), config)["log"] == ["yes"]
    assert runs == ["yes"] * 3


# --- error handlers ---------------------------------------------------------------------------------------------------


def handled(saver: Any, node: Any, handler: Any, **options: Any) -> Any:
    graph: Any = StateGraph(State).add_node("node", node, error_handler=handler, **options)
    graph.add_node("next", lambda s: {"log": ["next"]}).add_node("other", lambda s: {"log": ["other"]})
    graph.add_edge(START, "node").add_edge("node", "next")
    return graph.compile(checkpointer=saver)


def fails(state: State) -> State:
    raise KeyError("broken")


def test_a_handler_runs_after_the_last_try_with_state_and_error(saver: Any, call: Call) -> None:
    """B225"""
    nodes = Flaky(failures=9, error=ConnectionError("down"))
    nodes.sibling_done.set()
    seen: list[Any] = []

    def handler(state: State, error: NodeError) -> State:
        seen.append((list(state["log"]), error.node, repr(error.error)))
        return {"log": ["handled"]}

    graph = handled(saver, nodes.flaky, handler, retry_policy=RetryPolicy(max_attempts=2, **QUICK))
    assert call(graph, {"log": ["in"]}, thread())["log"] == ["in", "handled"]
    assert seen == [(["in"], "node", "ConnectionError('down')")]
    assert len(nodes.runs) == 2


def test_a_failed_node_leads_only_where_its_handler_goes(saver: Any, call: Call) -> None:
    """B225: the node did not finish, so its own edges, joins and routers are not followed"""

    def handler(state: State) -> Any:
        return Command(update={"log": ["handled"]}, goto="other")

    assert call(handled(saver, fails, handler), {"log": []}, thread())["log"] == ["handled", "other"]
    assert call(handled(saver, fails, lambda s: {"log": ["handled"]}), {"log": []}, thread())["log"] == ["handled"]

    graph: Any = StateGraph(State).add_node("node", fails, error_handler=lambda s: {"log": ["handled"]})
    graph.add_node("ok", lambda s: {"log": ["ok"]}).add_node("join", lambda s: {"log": ["join"]})
    graph.add_edge(START, "node").add_edge(START, "ok").add_edge(["node", "ok"], "join")
    graph.add_conditional_edges("node", lambda s: "join")
    assert call(graph.compile(checkpointer=saver), {"log": []}, thread())["log"] == ["handled", "ok"]


@pytest.mark.parametrize("durability", DURABILITIES)
def test_what_a_handler_decided_survives_a_failing_sibling(store: Store, call: Call, durability: str) -> None:
    """B115, B225: recorded like any result, and known as a handler's after another process reads it"""
    nodes, config = Flaky(), thread()

    def handler(state: State) -> State:
        nodes.runs.append("handler")
        nodes.sibling_done.set()
        return {"log": ["handled"]}

    def made(saver: Any) -> Any:
        graph: Any = StateGraph(State).add_node("node", fails, error_handler=handler).add_node("flaky", nodes.flaky)
        graph.add_node("next", lambda s: {"log": ["next"]})
        graph.add_edge(START, "node").add_edge("node", "next").add_edge(START, "flaky")
        return graph.compile(checkpointer=saver)

    with pytest.raises(ValueError, match="not yet"):
        call(made(store.saver), {"log": []}, config, durability=durability)
    assert call(made(store.again()), None, config)["log"] == ["flaky", "handled"]
    assert nodes.runs.count("handler") == 1


def test_a_handler_that_crashed_runs_again_and_the_failed_node_does_not(store: Store, call: Call) -> None:
    """B226"""
    runs: list[str] = []

    def node(state: State) -> State:
        runs.append("node")
        raise KeyError("broken")

    def handler(state: State, error: NodeError) -> State:
        runs.append("handler")
        if runs.count("handler") == 1:
            raise ValueError("handler too")
        return {"log": [error.node]}

    config = thread()
    with pytest.raises(ValueError, match="handler too"):
        call(handled(store.saver, node, handler), {"log": []}, config)
    assert handled(store.again(), node, handler).get_state(config).next == ("node",)
    assert call(handled(store.again(), node, handler), None, config)["log"] == ["node"]
    assert runs == ["node", "handler", "handler"]


def test_a_handler_may_ask(saver: Any, call: Call) -> None:
    """B225"""
    runs: list[str] = []

    def node(state: State) -> State:
        runs.append("node")
        raise KeyError("broken")

    def handler(state: State, error: NodeError) -> Any:
        return Command(update={"log": [interrupt(f"{error.node} failed, go on?")]}, goto="next")

    graph, config = handled(saver, node, handler), thread()
    (question,) = asked(call(graph, {"log": []}, config))
    assert question.value == "node failed, go on?"
    assert call(graph, Command(resume="yes"), config)["log"] == ["yes", "next"]
    assert runs == ["node"]


def test_a_default_handler_serves_nodes_without_their_own(saver: Any, call: Call) -> None:
    """B227"""
    graph: Any = StateGraph(State).set_node_defaults(error_handler=lambda s, error: {"log": ["default"]})
    graph.add_node("one", fails).add_node("two", fails, error_handler=lambda s: {"log": ["own"]})
    graph.add_edge(START, "one").add_edge(START, "two")
    graph = graph.compile(checkpointer=saver)
    assert call(graph, {"log": []}, thread())["log"] == ["default", "own"]


def test_default_retries_serve_nodes_without_their_own(saver: Any, call: Call) -> None:
    """B227"""
    tries: list[str] = []

    def trying(name: str) -> Any:
        def node(state: State) -> State:
            tries.append(name)
            raise ConnectionError(name)

        return node

    graph: Any = StateGraph(State).set_node_defaults(retry_policy=RetryPolicy(max_attempts=3, **QUICK))
    graph.add_node("one", trying("one"), error_handler=lambda s: Command(goto="two"))
    graph.add_node("two", trying("two"), retry_policy=RetryPolicy(max_attempts=2, **QUICK))
    graph.add_edge(START, "one")
    with pytest.raises(ConnectionError, match="two"):
        call(graph.compile(checkpointer=saver), {"log": []}, thread())
    assert tries == ["one"] * 3 + ["two"] * 2


async def test_a_default_timeout_serves_nodes_without_their_own(store: Store) -> None:
    """B227"""

    async def waits(state: State) -> None:
        await asyncio.Event().wait()

    graph: Any = StateGraph(State).set_node_defaults(timeout=0.01)

    def handler(state: State, error: NodeError) -> Command[Any]:
        return Command(update={"log": [type(error.error).__name__]}, goto="two")

    graph.add_node("one", waits, error_handler=handler).add_edge(START, "one")
    graph.add_node("two", waits, timeout=0.02)
    config = thread()
    with pytest.raises(NodeTimeoutError) as over:
        await graph.compile(checkpointer=store.saver).ainvoke({"log": []}, config)
    assert (over.value.node, over.value.run_timeout) == ("two", 0.02)
    assert graph.compile(checkpointer=store.saver).get_state(config).values["log"] == ["NodeTimeoutError"]


# --- limits -----------------------------------------------------------------------------------------------------------


def looping(saver: Any, **options: Any) -> Any:
    graph: Any = StateGraph(State).add_node("loop", lambda s: {"log": [1]})
    return graph.add_edge(START, "loop").add_edge("loop", "loop").compile(checkpointer=saver, **options)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_a_run_over_its_limit_fails_after_that_many_steps(saver: Any, call: Call, limit: int) -> None:
    graph, config = looping(saver), thread()
    with pytest.raises(GraphRecursionError, match=f"Recursion limit of {limit} reached"):
        call(graph, {"log": []}, {**config, "recursion_limit": limit})
    state = graph.get_state(config)
    assert state.values["log"] == [1] * limit
    assert state.next == ("loop",)


def test_the_limit_counts_the_step_that_finds_the_end_too(saver: Any, call: Call) -> None:
    """as in LangGraph: two nodes in a row need a limit of three"""
    nodes = Flaky(failures=0)
    graph = chain(saver, nodes.steady, nodes.flaky)
    assert call(graph, {"log": []}, {**thread(), "recursion_limit": 3})["log"] == ["steady", "flaky"]
    with pytest.raises(GraphRecursionError):
        call(graph, {"log": []}, {**thread(), "recursion_limit": 2})


def test_a_run_over_its_limit_can_be_continued_with_a_new_one(saver: Any, call: Call) -> None:
    graph, config = looping(saver), thread()
    for expected in (2, 4):
        with pytest.raises(GraphRecursionError):
            call(graph, {"log": []} if expected == 2 else None, {**config, "recursion_limit": 2})
        assert graph.get_state(config).values["log"] == [1] * expected


def test_a_limit_counts_the_steps_of_a_call_not_of_the_thread(saver: Any, call: Call) -> None:
    nodes, config = Flaky(failures=0), thread()
    graph = chain(saver, nodes.steady, nodes.flaky)
    for _ in range(3):
        call(graph, {"log": []}, {**config, "recursion_limit": 3})
    assert len(graph.get_state(config).values["log"]) == 6


def test_a_run_over_its_limit_shows_its_last_values_first(saver: Any, streamed: Call) -> None:
    """close to B177"""
    seen: list[Any] = []
    graph = looping(saver)
    with pytest.raises(GraphRecursionError):
        seen.extend(graph.stream({"log": []}, {**thread(), "recursion_limit": 2}, stream_mode="values"))
    parts: list[Any] = []
    with pytest.raises(GraphRecursionError):
        for part in graph.stream({"log": []}, {**thread(), "recursion_limit": 2}, stream_mode="values"):
            parts.append(part)  # noqa: PERF402 - what came before the error counts
    assert parts == [{"log": []}, {"log": [1]}, {"log": [1, 1]}]


@pytest.mark.parametrize("limit", [0, -1, 2.5, "3"])
def test_a_limit_that_is_none_is_refused(saver: Any, call: Call, limit: Any) -> None:
    with pytest.raises(ValueError, match=r"`recursion_limit` is .*; give a whole number of at least 1"):
        call(looping(saver), {"log": []}, {**thread(), "recursion_limit": limit})


def test_a_step_over_its_timeout_fails_and_the_thread_can_be_continued(saver: Any) -> None:
    """B191, B150"""
    stuck = threading.Event()
    runs: list[str] = []

    async def slow(state: State) -> State:
        runs.append("slow")
        if len(runs) == 1:
            try:
                await asyncio.Event().wait()
            finally:
                stuck.set()
        return {"log": ["slow"]}

    graph, config = chain(saver, slow), thread()
    graph.step_timeout = 0.05
    with pytest.raises(TimeoutError):
        asyncio.run(graph.ainvoke({"log": []}, config))
    assert stuck.wait(5)
    assert graph.get_state(config).next == ("slow",)
    assert asyncio.run(graph.ainvoke(None, config))["log"] == ["slow"]


def test_a_blocking_step_over_its_timeout_fails_and_what_it_still_does_is_not_taken(saver: Any) -> None:
    """B191"""
    release, ended = threading.Event(), threading.Event()
    runs: list[str] = []

    def slow(state: State) -> State:
        runs.append("slow")
        if len(runs) == 1:
            release.wait(10)
            ended.set()
            return {"log": ["late"]}
        return {"log": ["slow"]}

    graph, config = chain(saver, slow), thread()
    graph.step_timeout = 0.05
    with pytest.raises(TimeoutError):
        graph.invoke({"log": []}, config)
    assert graph.get_state(config).values["log"] == []
    release.set()
    assert ended.wait(5)
    assert graph.invoke(None, config)["log"] == ["slow"]


def test_a_timeout_counts_from_the_start_of_the_step(saver: Any) -> None:
    """B191: a task that ends does not give the others more time"""
    never = threading.Event()

    def one(state: State) -> State:
        never.wait(0.15)
        return {"log": ["one"]}

    def two(state: State) -> State:
        never.wait(0.4)
        return {"log": ["two"]}

    graph, config = parallel(saver, one, two), thread()
    graph.step_timeout = 0.28
    with pytest.raises(TimeoutError):
        graph.invoke({"log": []}, config)
    state = graph.get_state(config)
    assert state.next == ("two",)
    assert [t.result for t in state.tasks] == [{"log": ["one"]}, None]
    never.set()
    assert graph.invoke(None, config)["log"] == ["one", "two"]


def test_a_step_within_its_timeout_is_not_disturbed(saver: Any, call: Call) -> None:
    nodes = Flaky(failures=0)
    graph = parallel(saver, nodes.steady, nodes.flaky)
    graph.step_timeout = 30
    assert call(graph, {"log": []}, thread())["log"] == ["flaky", "steady"]


def test_questions_and_answers_work_under_a_step_timeout(saver: Any, call: Call) -> None:
    def one(state: State) -> State:
        return {"log": [interrupt("one?")]}

    def two(state: State) -> State:
        return {"log": [interrupt("two?")]}

    graph, config = parallel(saver, one, two), thread()
    graph.step_timeout = 30
    found = ids(call(graph, {"log": []}, config))
    assert call(graph, Command(resume={found["one?"]: 1, found["two?"]: 2}), config)["log"] == [1, 2]
