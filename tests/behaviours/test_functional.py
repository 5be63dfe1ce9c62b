"""Entrypoints and tasks: results, streams, memory, injected arguments, schemas, what is refused."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, builder, thread
from waitpoint.cache.memory import InMemoryCache
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.errors import (
    AsyncOnlyError,
    GraphValidationError,
    NodeTimeoutError,
    NotSupportedError,
    OutsideGraphError,
)
from waitpoint.func import entrypoint, task
from waitpoint.graph import END, START, StateGraph
from waitpoint.runtime import RunControl, Runtime
from waitpoint.types import CachePolicy, RetryPolicy, StreamWriter, interrupt

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


# --- memory -----------------------------------------------------------------------------------------------------------


def test_previous_is_what_the_last_run_on_the_thread_returned(store: Store, call: Call) -> None:
    @entrypoint(checkpointer=store.saver)
    def running(n: int, *, previous: int | None) -> int:
        return n + (previous or 0)

    config = thread()
    assert [call(running, n, config) for n in (1, 2, 3)] == [1, 3, 6]
    assert call(running, 5, thread()) == 5

    @entrypoint()
    def forgetful(n: int, previous: Any = "default") -> Any:
        return previous

    assert call(forgetful, 1) is None


def test_final_returns_one_value_and_saves_the_other(store: Store, call: Call) -> None:
    @entrypoint(checkpointer=store.saver)
    def body(n: int, *, previous: int | None) -> entrypoint.final[str, int]:
        return entrypoint.final(value=f"had {previous}", save=n)

    config = thread()
    assert [call(body, n, config) for n in (1, 2)] == ["had None", "had 1"]
    assert body.get_state(config).values == "had 1"


def test_update_state_sets_the_result_and_what_is_previous(store: Store, call: Call) -> None:
    @entrypoint(checkpointer=store.saver)
    def running(n: int, *, previous: int | None) -> int:
        return n + (previous or 0)

    config = thread()
    call(running, 1, config)
    running.update_state(config, 100)
    assert running.get_state(config).values == 100
    assert call(running, 1, config) == 101
    running.update_state(config, entrypoint.final(value="shown", save=7))
    assert running.get_state(config).values == "shown"
    assert call(running, 1, config) == 8


def test_the_history_has_two_checkpoints_for_each_run(store: Store, call: Call) -> None:
    @entrypoint(checkpointer=store.saver)
    def body(n: int) -> int:
        return n

    config = thread()
    call(body, 1, config)
    call(body, 2, config)
    told = [(s.values, s.next, (s.metadata or {})["source"], (s.metadata or {})["step"])
            for s in body.get_state_history(config)]  # fmt: skip
    assert told == [(2, (), "loop", 2), (1, ("body",), "input", 1), (1, (), "loop", 0), (None, ("body",), "input", -1)]


def test_what_a_body_does_to_previous_or_its_input_changes_nothing_stored(store: Store, call: Call) -> None:
    @entrypoint(checkpointer=store.saver)
    def body(given: list[int], previous: list[int] | None) -> list[int]:
        before = list(previous or [])
        (previous or []).append(99)
        given.append(98)
        return before

    config, given = thread(), [1]
    call(body, given, config)
    assert call(body, [2], config) == []


# --- what is injected -------------------------------------------------------------------------------------------------


def test_tasks_and_entrypoints_get_what_they_name(call: Call) -> None:
    @dataclass
    class Context:
        user: str

    @task
    def inner(n: int, *, config: dict[str, Any], store: Any, runtime: Runtime[Context], previous: Any) -> list[Any]:
        return [n, config["configurable"]["thread_id"], store, runtime.context.user, previous]

    @entrypoint(checkpointer=InMemorySaver(), store="a store", context_schema=Context)
    def body(n: int, runtime: Runtime[Context], writer: StreamWriter) -> list[Any]:
        writer("heard by nobody")
        return [runtime.context.user, *inner(n).result()]

    config = thread("t")
    assert call(body, 1, config, context={"user": "ann"}) == ["ann", 1, "t", "a store", "ann", None]
    found = call(body, 1, config, context={"user": "bob"})
    assert found[-1] == ["ann", 1, "t", "a store", "ann", None]


def test_what_a_caller_passes_wins_over_what_would_be_injected(call: Call) -> None:
    @task
    def inner(n: int, store: Any = None, *, writer: Any, previous: Any, config: Any) -> list[Any]:
        return [store, writer, previous, config]

    @entrypoint()
    def body(n: int) -> list[Any]:
        return inner(n, "by place", writer="w", previous="p", config={}).result()

    assert call(body, 1) == ["by place", "w", "p", {}]


# --- schemas ----------------------------------------------------------------------------------------------------------


class Order(BaseModel):
    amount: int = 1


def test_json_schemas_come_from_the_annotations() -> None:
    @entrypoint(context_schema=Order)
    def counts(words: list[str], previous: int | None = None) -> entrypoint.final[int, str]:
        return entrypoint.final(value=len(words), save="")

    assert counts.get_input_jsonschema() == {"title": "LangGraphInput", "type": "array", "items": {"type": "string"}}
    assert counts.get_output_jsonschema() == {"title": "LangGraphOutput", "type": "integer"}
    assert counts.get_context_jsonschema() == Order.model_json_schema()

    @entrypoint()
    def models(order: Order) -> Any:
        return None

    assert models.get_input_jsonschema() == Order.model_json_schema()
    assert models.get_output_jsonschema() == {"title": "LangGraphOutput"}
    assert models.get_context_jsonschema() is None


def test_what_annotations_name_can_be_stored_and_read_by_another_process(store: Store, call: Call) -> None:
    @task
    def priced(order: Order) -> Order:
        return Order(amount=order.amount * 2)

    def made() -> Any:
        @entrypoint(checkpointer=store.again())
        def body(order: Order) -> Order:
            return Order(amount=priced(order).result().amount + interrupt("?"))

        return body

    config = thread()
    call(made(), Order(amount=2), config)
    assert call(made(), _resume(1), config) == Order(amount=5)
    assert made().get_state(config).values == Order(amount=5)


def _resume(answer: Any) -> Any:
    from waitpoint.types import Command

    return Command(resume=answer)


# --- retries, timeouts, caches, drains --------------------------------------------------------------------------------

QUICK = RetryPolicy(initial_interval=0, jitter=False, max_attempts=3, retry_on=ValueError)


def test_a_task_that_fails_is_tried_again(store: Store, call: Call) -> None:
    @task(retry_policy=QUICK)
    def flaky(n: int, runtime: Runtime[Any]) -> int:
        DONE.append(runtime.execution_info.node_attempt)
        if len(DONE) < 3:
            raise ValueError("no")
        return n

    @entrypoint(checkpointer=store.saver)
    def body(n: int) -> int:
        return flaky(n).result()

    assert call(body, 1, thread()) == 1
    assert DONE == [1, 2, 3]


def test_an_entrypoint_that_fails_is_tried_again_and_its_finished_tasks_are_not(store: Store, call: Call) -> None:
    tries = []

    @task
    def flaky() -> str:
        tries.append("flaky")
        if len(tries) < 3:
            raise ValueError("no")
        return "ok"

    @entrypoint(checkpointer=store.saver, retry_policy=QUICK)
    def body(n: int) -> list[Any]:
        first, second = flaky(), double(n)
        return [second.result(), first.result()]

    assert call(body, 1, thread()) == [2, "ok"]
    assert (DONE, len(tries)) == ([1], 3)


def test_an_async_task_over_its_time_fails_by_name() -> None:
    @task(timeout=0.01)
    async def late() -> None:
        await asyncio.Event().wait()

    @entrypoint(checkpointer=InMemorySaver())
    async def body(_: int) -> None:
        await late()

    with pytest.raises(NodeTimeoutError, match="Task 'late' took longer") as failed:
        asyncio.run(body.ainvoke(1, thread()))
    assert (failed.value.node, failed.value.kind, failed.value.run_timeout) == ("late", "run", 0.01)


@pytest.mark.parametrize(
    "decorator", [lambda t: task(timeout=t), lambda t: entrypoint(timeout=t)], ids=["task", "entry"]
)
def test_timeouts_are_for_async_functions_and_greater_than_nothing(decorator: Any) -> None:
    with pytest.raises(ValueError, match="only supported for async nodes"):
        decorator(1)(lambda n: n)
    with pytest.raises(ValueError, match="greater than 0"):
        decorator(0)(lambda n: n)


def test_a_cached_task_is_computed_once_over_threads_until_its_cache_is_cleared(store: Store, streamed: Call) -> None:
    cache: InMemoryCache[Any] = InMemoryCache()

    @task(cache_policy=CachePolicy())
    def costly(n: int) -> int:
        DONE.append(n)
        return n * 2

    @entrypoint(checkpointer=store.saver, cache=cache)
    def body(n: int) -> int:
        return costly(n).result()

    cached = {"costly": 4, "__metadata__": {"cached": True}}
    assert streamed(body, 2, thread()) == [{"costly": 4}, {"body": 4}]
    assert streamed(body, 2, thread()) == [cached, {"body": 4}]
    assert DONE == [2]
    costly.clear_cache(cache)
    assert streamed(body, 2, thread()) == [{"costly": 4}, {"body": 4}]
    asyncio.run(costly.aclear_cache(cache))
    assert streamed(body, 2, thread()) == [{"costly": 4}, {"body": 4}]
    assert DONE == [2, 2, 2]


def test_an_async_task_is_cached_too() -> None:
    @task(cache_policy=CachePolicy())
    async def costly(n: int) -> int:
        DONE.append(n)
        return n * 2

    @entrypoint(cache=InMemoryCache())
    async def body(n: int) -> int:
        return await costly(n)

    assert [asyncio.run(body.ainvoke(2)) for _ in range(2)] == [4, 4]
    assert DONE == [2]


def test_tasks_can_be_called_after_a_drain_was_asked_for(store: Store, call: Call) -> None:
    control = RunControl()

    @entrypoint(checkpointer=store.saver)
    def body(n: int) -> int:
        control.request_drain()
        return double(n).result()

    assert call(body, 1, thread(), control=control) == 2


# --- what is refused --------------------------------------------------------------------------------------------------


def _yields(_: int) -> Any:
    yield 1


async def _ayields(_: int) -> Any:
    yield 1


@pytest.mark.parametrize("generator", [_yields, _ayields])
@pytest.mark.parametrize("decorator", [entrypoint(), task], ids=["entrypoint", "task"])
def test_generators_are_refused(decorator: Any, generator: Any) -> None:
    with pytest.raises(NotImplementedError, match="Generators are not supported"):
        decorator(generator)
    with pytest.raises(NotSupportedError):
        decorator(generator)


def test_a_final_of_one_type_and_a_function_without_input_are_refused() -> None:
    with pytest.raises(TypeError):
        entrypoint.final[int]  # type: ignore[misc]
    with pytest.raises(ValueError, match="at least one parameter"):
        entrypoint()(lambda: 1)
    with pytest.raises(GraphValidationError, match="nothing fills"):
        entrypoint()(lambda given, other: 1)


def test_a_task_outside_of_a_graph_is_refused_by_name() -> None:
    with pytest.raises(OutsideGraphError, match="task 'double'"):
        double(1)
