"""Entrypoints and tasks as declared: memory, injected arguments, schemas, retries, caches, what is refused."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from pydantic import BaseModel

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import thread
from waitpoint.cache.memory import InMemoryCache
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.config import get_config
from waitpoint.errors import (
    GraphValidationError,
    NodeTimeoutError,
    NotSupportedError,
    OutsideGraphError,
)
from waitpoint.func import entrypoint, task
from waitpoint.runtime import RunControl, Runtime, get_runtime
from waitpoint.types import CachePolicy, Command, RetryPolicy, StreamWriter, interrupt

DONE: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    DONE.clear()


@task
def double(n: int) -> int:
    DONE.append(n)
    return n * 2


# --- memory -----------------------------------------------------------------------------------------------------------


def test_previous_is_what_the_last_run_on_the_thread_returned(store: Store, call: Call) -> None:
    """B214"""

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
    """B214"""

    @entrypoint(checkpointer=store.saver)
    def body(n: int, *, previous: int | None) -> entrypoint.final[str, int]:
        return entrypoint.final(value=f"had {previous}", save=n)

    config = thread()
    assert [call(body, n, config) for n in (1, 2)] == ["had None", "had 1"]
    assert body.get_state(config).values == "had 1"


def test_update_state_sets_the_result_and_what_is_previous(store: Store, call: Call) -> None:
    """B214"""

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


def test_config_and_runtime_in_a_task_name_the_task(store: Store, call: Call) -> None:
    @task
    def where() -> list[Any]:
        metadata, info = get_config()["metadata"], get_runtime().execution_info
        return [metadata["langgraph_node"], metadata["langgraph_checkpoint_ns"], info.task_id]

    @entrypoint(checkpointer=store.saver)
    def body(_: int) -> list[Any]:
        here = get_config()["metadata"]
        return [here["langgraph_node"], here["langgraph_checkpoint_ns"], where().result(), where().result()]

    node, ns, first, second = call(body, 1, thread())
    assert (node, first[0], second[0]) == ("body", "where", "where")
    assert first[1] == f"{ns}|where:{first[2]}"
    assert first[2] != second[2]


def test_a_model_called_in_a_task_is_heard_with_the_name_of_the_task(store: Store, streamed: Call) -> None:
    model = FakeListChatModel(responses=["abc"])

    @task
    def speak(words: str) -> str:
        return str(model.invoke(words).text)

    @entrypoint(checkpointer=store.saver)
    def body(words: str) -> str:
        return speak(words).result()

    parts = streamed(body, "hello", thread(), stream_mode="messages")
    assert "".join(str(message.text) for message, _ in parts) == "abc"
    assert {told["langgraph_node"] for _, told in parts} == {"speak"}


def test_what_a_caller_passes_wins_over_what_would_be_injected(call: Call) -> None:
    """B217"""

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
    """B215"""

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
    """B218"""
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
    """B220"""
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
    """B216"""
    with pytest.raises(NotImplementedError, match="Generators are not supported"):
        decorator(generator)
    with pytest.raises(NotSupportedError):
        decorator(generator)


def test_a_final_of_one_type_and_a_function_without_input_are_refused() -> None:
    """B216"""
    with pytest.raises(TypeError):
        entrypoint.final[int]  # type: ignore[misc]
    with pytest.raises(ValueError, match="at least one parameter"):
        entrypoint()(lambda: 1)
    with pytest.raises(GraphValidationError, match="nothing fills"):
        entrypoint()(lambda given, other: 1)


def test_a_task_outside_of_a_graph_is_refused_by_name() -> None:
    with pytest.raises(OutsideGraphError, match="task 'double'"):
        double(1)
