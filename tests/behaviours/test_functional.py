"""Entrypoints and tasks: what they return, what streams show of them, and where they run."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from typing import Any

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, builder, thread
from waitpoint.errors import (
    AsyncOnlyError,
)
from waitpoint.func import entrypoint, task
from waitpoint.graph import END, START, StateGraph
from waitpoint.types import StreamWriter

DONE: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    DONE.clear()


@task
def double(n: int) -> int:
    DONE.append(n)
    return n * 2


@task
async def adouble(n: int) -> int:
    DONE.append(n)
    return n * 2


# --- results and streams ----------------------------------------------------------------------------------------------


def test_an_entrypoint_returns_what_its_function_returns_with_and_without_a_checkpointer(
    store: Store, call: Call
) -> None:
    for options in ({}, {"checkpointer": store.saver}):

        @entrypoint(**options)
        def summed(numbers: list[int]) -> int:
            futures = [double(n) for n in numbers]
            return sum(f.result() for f in futures)

        assert call(summed, [1, 2, 3], thread()) == 12
        assert sorted(DONE) == [1, 2, 3]
        DONE.clear()


def test_an_async_entrypoint_awaits_its_tasks(store: Store) -> None:
    """B208"""

    @entrypoint(checkpointer=store.saver)
    async def summed(numbers: list[int]) -> int:
        return sum(await asyncio.gather(*[adouble(n) for n in numbers], double(10)))

    assert asyncio.run(summed.ainvoke([1, 2, 3], thread())) == 32


@pytest.mark.parametrize("given", [0, "", [], {}, False, {"a": 1}], ids=repr)
def test_any_input_but_none_is_an_input_and_any_result_a_result(store: Store, call: Call, given: Any) -> None:
    @entrypoint(checkpointer=store.saver)
    def same(value: Any) -> Any:
        return value

    assert call(same, given, config := thread()) == given
    assert same.get_state(config).values == given


def test_updates_show_each_task_when_it_ends_and_the_entrypoint_last(store: Store, streamed: Call) -> None:
    """B208"""
    fast_ended = threading.Event()

    @task
    def fast() -> str:
        return "fast"

    @task
    def slow() -> str:
        assert fast_ended.wait(30)
        return "slow"

    @entrypoint(checkpointer=store.saver)
    def both(_: int) -> list[str]:
        last, first = slow(), fast()
        first.add_done_callback(lambda _: fast_ended.set())
        return [last.result(), first.result()]

    assert streamed(both, 1, thread()) == [{"fast": "fast"}, {"slow": "slow"}, {"both": ["slow", "fast"]}]


def test_a_task_is_shown_before_the_body_goes_on(store: Store) -> None:
    seen: list[Any] = []

    @entrypoint(checkpointer=store.saver)
    def body(n: int) -> int:
        double(n).result()
        assert consumed.wait(30)
        return n

    consumed = threading.Event()
    for part in body.stream(1, thread()):
        seen.append(part)
        consumed.set()
    assert seen == [{"double": 2}, {"body": 1}]


def test_stream_mode_tasks_tells_of_tasks_too(store: Store, streamed: Call) -> None:
    @task
    def fail() -> None:
        raise ValueError("no")

    @entrypoint(checkpointer=store.saver)
    def body(n: int) -> int:
        try:
            fail().result()
        except ValueError:
            return double(n).result()
        return 0

    parts = streamed(body, 1, thread(), stream_mode="tasks")
    told = [(p["name"], p["input"]) if "input" in p else (p["name"], p["error"], p["result"]) for p in parts]
    assert told == [
        ("body", 1),
        ("fail", ((), {})),
        ("fail", "ValueError('no')", {}),
        ("double", ((1,), {})),
        ("double", None, {"__return__": 2}),
        ("body", None, {"__end__": 2}),
    ]
    assert len({p["id"] for p in parts}) == 3


def test_mode_values_shows_the_result_alone(store: Store, streamed: Call) -> None:
    @entrypoint(checkpointer=store.saver)
    def body(n: int) -> int:
        return double(n).result()

    assert streamed(body, 1, thread(), stream_mode="values") == [2]


def test_tasks_write_to_mode_custom_from_where_they_run(store: Store, streamed: Call) -> None:
    @task
    def speak(words: str, writer: StreamWriter) -> None:
        writer(words)

    @entrypoint(checkpointer=store.saver)
    def body(n: int) -> int:
        speak("one").result()
        speak("two").result()
        return n

    assert streamed(body, 1, thread(), stream_mode="custom") == ["one", "two"]


def test_a_node_of_a_graph_may_call_tasks_and_they_are_shown_before_it(store: Store, streamed: Call) -> None:
    def node(state: State) -> State:
        return {"log": [double(n).result() for n in (1, 2)]}

    graph = builder(node).compile(checkpointer=store.saver)
    parts = streamed(graph, {"log": []}, thread(), stream_mode="updates")
    assert parts == [{"double": 2}, {"double": 4}, {"node": {"log": [2, 4]}}]


def test_an_entrypoint_is_a_node_of_a_graph(store: Store, call: Call) -> None:
    @entrypoint()
    def inner(state: State) -> State:
        return {"log": [double(4).result()]}

    graph = StateGraph(State).add_node("inner", inner).add_edge(START, "inner").add_edge("inner", END)
    assert call(graph.compile(checkpointer=store.saver), {"log": [1]}, thread())["log"] == [1, 8]


def test_nested_tasks_have_the_namespace_of_their_graph(store: Store, streamed: Call) -> None:
    """B213"""

    @entrypoint()
    def child(n: int) -> int:
        return double(n).result()

    @entrypoint(checkpointer=store.saver)
    def parent(n: int) -> int:
        return double(child.invoke(n)).result()

    parts = streamed(parent, 1, thread(), subgraphs=True)
    assert [part for _, part in parts] == [{"double": 2}, {"child": 2}, {"double": 4}, {"parent": 4}]
    assert [ns == () for ns, _ in parts] == [False, False, True, True]


def test_what_nested_tasks_show_comes_in_its_place_among_other_parts(store: Store, streamed: Call) -> None:
    @entrypoint()
    def child(n: int, writer: StreamWriter) -> int:
        writer("before")
        found = double(n).result()
        writer("after")
        return found

    @entrypoint(checkpointer=store.saver)
    def parent(n: int) -> int:
        return int(child.invoke(n))

    parts = streamed(parent, 1, thread(), subgraphs=True, stream_mode=["custom", "updates"])
    assert [part for _, _, part in parts] == ["before", {"double": 2}, "after", {"child": 2}, {"parent": 2}]


# --- ways to run ------------------------------------------------------------------------------------------------------


def test_tasks_of_one_body_run_at_the_same_time(store: Store, call: Call) -> None:
    meeting = threading.Barrier(3, timeout=30)

    @task
    def meet() -> int:
        return meeting.wait()

    @entrypoint(checkpointer=store.saver)
    def body(_: int) -> list[int]:
        futures = [meet() for _ in range(3)]
        return sorted(f.result() for f in futures)

    assert call(body, 1, thread()) == [0, 1, 2]


@pytest.mark.parametrize("limit", [None, 1, 2])
def test_many_tasks_that_wait_for_tasks_of_their_own_never_wait_for_each_other(
    store: Store, call: Call, limit: int | None
) -> None:
    @task
    def outer(n: int) -> int:
        futures = [middle(n * 3 + k) for k in range(3)]
        return sum(f.result() for f in futures)

    @task
    def middle(n: int) -> int:
        return double(n).result()

    @entrypoint()
    def body(count: int) -> int:
        futures = [outer(n) for n in range(count)]
        return sum(f.result() for f in futures)

    config = {"max_concurrency": limit} if limit else {}
    assert call(body, 40, config) == 2 * sum(range(120))


def test_async_tasks_that_wait_for_tasks_of_their_own_never_wait_for_each_other() -> None:
    @task
    async def outer(n: int) -> int:
        return sum(await asyncio.gather(*[adouble(n), double(n)]))

    @entrypoint()
    async def body(count: int) -> int:
        return sum(await asyncio.gather(*[outer(n) for n in range(count)]))

    for limit in (1, 2, 100):
        assert asyncio.run(body.ainvoke(40, {"max_concurrency": limit})) == 4 * sum(range(40))


def test_more_plain_bodies_than_the_loop_has_threads_may_wait_for_async_tasks(store: Store) -> None:
    @task
    def through(n: int) -> int:
        return adouble(n).result()

    @entrypoint(checkpointer=store.saver)
    def body(n: int) -> int:
        return adouble(n).result() + through(n).result()

    async def all_at_once(count: int) -> int:
        return sum(await asyncio.gather(*[body.ainvoke(n, thread()) for n in range(count)]))

    assert asyncio.run(all_at_once(40)) == 4 * sum(range(40))


def test_a_limit_holds_for_tasks_of_the_body(call: Call) -> None:
    second_began = threading.Event()

    @task
    def first() -> bool:
        return second_began.wait(0.2)

    @task
    def second() -> None:
        second_began.set()

    @entrypoint()
    def body(_: int) -> bool:
        one, two = first(), second()
        two.result()
        return one.result()

    assert call(body, 1, {"max_concurrency": 1}) is False
    second_began.clear()
    assert call(body, 1) is True


def test_a_plain_entrypoint_under_ainvoke_may_call_async_tasks(store: Store) -> None:
    @entrypoint(checkpointer=store.saver)
    def body(n: int) -> int:
        return adouble(double(n).result()).result()

    assert asyncio.run(body.ainvoke(3, thread())) == 12


def test_an_async_task_in_a_blocking_run_is_refused(store: Store) -> None:
    @entrypoint(checkpointer=store.saver)
    def body(n: int) -> int:
        return adouble(n).result()

    with pytest.raises(AsyncOnlyError, match="Task 'adouble' is an async function"):
        body.invoke(1, thread())


def test_futures_are_those_of_the_standard_library(store: Store) -> None:
    @entrypoint(checkpointer=store.saver)
    def body(count: int) -> list[Any]:
        futures = [double(n) for n in range(count)]
        done, waiting = concurrent.futures.wait(futures)
        assert (len(done), waiting) == (count, set())
        assert all(f.done() and not f.cancelled() and f.exception() is None for f in futures)
        return sorted(f.result() for f in concurrent.futures.as_completed(futures, timeout=30))

    @entrypoint(checkpointer=store.saver)
    async def abody(count: int) -> list[Any]:
        futures = [adouble(n) for n in range(count)]
        assert all(asyncio.isfuture(f) for f in futures)
        with pytest.raises(asyncio.InvalidStateError):
            futures[0].result()
        await asyncio.wait(futures)
        return [f.result() for f in futures]

    assert body.invoke(3, thread()) == [0, 2, 4]
    assert asyncio.run(abody.ainvoke(3, thread())) == [0, 2, 4]


def test_blocking_calls_work_inside_a_running_event_loop(store: Store) -> None:
    @entrypoint(checkpointer=store.saver)
    def body(n: int) -> int:
        return double(n).result()

    async def notebook() -> Any:
        return body.invoke(1, thread())

    assert asyncio.run(notebook()) == 2


def test_tasks_may_be_called_from_threads_of_the_body(store: Store) -> None:
    def helper(n: int) -> int:
        return double(n).result()

    @entrypoint(checkpointer=store.saver)
    async def body(n: int) -> list[int]:
        return [await asyncio.to_thread(helper, n), await adouble(n)]

    assert asyncio.run(body.ainvoke(1, thread())) == [2, 2]


def test_a_task_that_nobody_waits_for_has_ended_when_the_body_has(store: Store, streamed: Call) -> None:
    @entrypoint(checkpointer=store.saver)
    def body(n: int) -> int:
        double(n)
        return n

    assert streamed(body, 1, thread()) == [{"double": 2}, {"body": 1}]


def test_methods_partials_lambdas_and_named_functions_are_tasks(store: Store, streamed: Call) -> None:
    class Maker:
        def make(self, n: int) -> str:
            return f"made {n}"

    make = task(Maker().make)
    named = task(name="named")(lambda n: n)

    @entrypoint(checkpointer=store.saver)
    def body(n: int) -> list[Any]:
        return [make(n).result(), named(n).result()]

    parts = streamed(body, 1, thread())
    assert parts == [{"make": "made 1"}, {"named": 1}, {"body": ["made 1", 1]}]
