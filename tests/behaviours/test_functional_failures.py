"""Tasks that fail: an exception that the body went on after stays, any other is tried again."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import asked, thread
from waitpoint.func import entrypoint, task
from waitpoint.types import Command, RetryPolicy, interrupt

DONE: list[Any] = []
BROKEN: set[Any] = set()


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    DONE.clear()
    BROKEN.clear()


class Declined(Exception):
    """An exception of a library, with arguments of its own."""

    def __init__(self, code: int) -> None:
        super().__init__(f"declined {code}")
        self.code = code


@task
def work(n: Any) -> Any:
    DONE.append(n)
    if n in BROKEN:
        raise Declined(402)
    return n


@task
async def awork(n: Any) -> Any:
    DONE.append(n)
    if n in BROKEN:
        raise Declined(402)
    return n


# --- exceptions -------------------------------------------------------------------------------------------------------


def test_an_exception_that_the_body_went_on_after_is_raised_again_from_the_record(store: Store, call: Call) -> None:
    """B213"""
    BROKEN.add("pay")

    def made() -> Any:
        @entrypoint(checkpointer=store.again())
        def body(_: int) -> list[Any]:
            try:
                work("pay").result()
            except Declined as declined:
                return [declined.code, interrupt("pay otherwise?")]
            return []

        return body

    config = thread()
    call(made(), 1, config)
    BROKEN.clear()
    assert call(made(), Command(resume="card"), config) == [402, "card"]
    assert DONE == ["pay"]


def test_a_failed_task_runs_again_when_the_thread_goes_on_and_finished_ones_do_not(store: Store, call: Call) -> None:
    """Whichever of them ended first."""
    for broken in ("first", "second", "third"):
        DONE.clear()
        BROKEN.add(broken)

        @entrypoint(checkpointer=store.saver)
        def body(_: int) -> list[Any]:
            futures = [work("first"), work("second"), work("third")]
            return [f.result() for f in futures]

        config = thread()
        with pytest.raises(Declined):
            call(body, 1, config)
        BROKEN.clear()
        assert call(body, None, config) == ["first", "second", "third"]
        assert sorted(DONE) == sorted(["first", "second", "third", broken])


@pytest.mark.parametrize("look", ["result", "exception"])
def test_a_wait_that_came_to_its_end_before_the_task_did_has_not_seen_how_it_failed(look: str, store: Store) -> None:
    may_end = threading.Event()

    @task
    def slow() -> str:
        DONE.append("slow")
        may_end.wait()
        if BROKEN:
            raise Declined(402)
        return "slow"

    @entrypoint(checkpointer=store.saver)
    def body(_: int) -> list[Any]:
        future = slow()
        if not may_end.is_set():
            with pytest.raises(TimeoutError):
                getattr(future, look)(timeout=0)
            may_end.set()
        return [interrupt("meanwhile?"), future.result()]

    BROKEN.add("slow")
    config = thread()
    body.invoke(1, config)
    BROKEN.clear()
    assert body.invoke(Command(resume="yes"), config) == ["yes", "slow"]
    assert DONE == ["slow", "slow"]


def test_a_failed_task_runs_again_though_the_body_did_other_work_before_it_failed(store: Store, call: Call) -> None:
    @entrypoint(checkpointer=store.saver)
    def body(_: int) -> Any:
        try:
            return work("pay").result()
        except Declined as declined:
            work("refund").result()
            raise ValueError("not paid") from declined

    BROKEN.add("pay")
    config = thread()
    with pytest.raises(ValueError, match="not paid"):
        call(body, 1, config)
    BROKEN.clear()
    assert call(body, None, config) == "pay"
    assert DONE == ["pay", "refund", "pay"]


def test_failed_tasks_of_an_exception_group_run_again(store: Store) -> None:
    @entrypoint(checkpointer=store.saver)
    async def body(_: int) -> list[Any]:
        async def one(n: int) -> Any:
            return await awork(n)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(n)) for n in range(3)]
        return [t.result() for t in tasks]

    BROKEN.add(1)
    config = thread()
    with pytest.raises(ExceptionGroup) as failed:
        asyncio.run(body.ainvoke(1, config))
    assert [type(e) for e in failed.value.exceptions] == [Declined]
    BROKEN.clear()
    assert asyncio.run(body.ainvoke(None, config)) == [0, 1, 2]
    assert DONE.count(1) == 2


def test_an_exception_that_nobody_saw_before_a_pause_is_tried_again_after_it(store: Store, call: Call) -> None:
    @task
    def ask() -> Any:
        return interrupt("?")

    @entrypoint(checkpointer=store.saver)
    def body(_: int) -> list[Any]:
        futures = [ask(), work("flaky"), work("fine")]
        return [f.result() for f in futures]

    BROKEN.add("flaky")
    config = thread()
    asked(call(body, 1, config))
    BROKEN.clear()
    assert call(body, Command(resume="yes"), config) == ["yes", "flaky", "fine"]
    assert sorted(DONE) == ["fine", "flaky", "flaky"]


def test_a_task_that_fails_beside_a_question_fails_the_run_and_the_question_stays(store: Store, call: Call) -> None:
    @task
    def ask() -> Any:
        return interrupt("?")

    @entrypoint(checkpointer=store.saver)
    def body(_: int) -> list[Any]:
        question, flaky = ask(), work("flaky")
        return [flaky.result(), question.result()]

    BROKEN.add("flaky")
    config = thread()
    with pytest.raises(Declined):
        call(body, 1, config)
    (question,) = body.get_state(config).interrupts
    BROKEN.clear()
    assert call(body, Command(resume={question.id: "yes"}), config) == ["flaky", "yes"]
    assert DONE == ["flaky", "flaky"]


def test_an_exception_of_an_inner_task_reaches_the_outer_one_and_both_run_again(store: Store, call: Call) -> None:
    @task
    def outer() -> list[Any]:
        DONE.append("outer")
        return [work("fine").result(), work("flaky").result()]

    @entrypoint(checkpointer=store.saver)
    def body(_: int) -> list[Any]:
        return outer().result()

    BROKEN.add("flaky")
    config = thread()
    with pytest.raises(Declined):
        call(body, 1, config)
    BROKEN.clear()
    assert call(body, None, config) == ["fine", "flaky"]
    assert DONE == ["outer", "fine", "flaky", "outer", "flaky"]


def test_a_retried_task_tries_its_failed_tasks_again_too(store: Store, call: Call) -> None:
    @task
    def flaky() -> str:
        DONE.append("flaky")
        if DONE.count("flaky") < 3:
            raise ValueError("no")
        return "ok"

    @task(retry_policy=RetryPolicy(initial_interval=0, jitter=False, retry_on=ValueError))
    def outer() -> list[Any]:
        first, second = flaky(), work("fine")
        return [second.result(), first.result()]

    @entrypoint(checkpointer=store.saver)
    def body(_: int) -> Any:
        return outer().result()

    assert call(body, 1, thread()) == ["fine", "ok"]
    assert DONE.count("fine") == 1


def test_a_retried_task_finds_the_graphs_again_that_it_called(store: Store, call: Call) -> None:
    @entrypoint()
    def child(n: int) -> list[Any]:
        return [work(f"child {n}").result(), interrupt("child?")]

    @task(retry_policy=RetryPolicy(initial_interval=0, jitter=False, retry_on=ValueError))
    def outer() -> list[Any]:
        found = child.invoke(1)
        DONE.append("outer")
        if DONE.count("outer") < 3:
            raise ValueError("no")
        return [*found, interrupt("outer?")]

    @entrypoint(checkpointer=store.saver)
    def body(_: int) -> Any:
        return outer().result()

    config = thread()
    assert [i.value for i in asked(call(body, 1, config))] == ["child?"]
    assert [i.value for i in asked(call(body, Command(resume="a"), config))] == ["outer?"]
    assert call(body, Command(resume="b"), config) == ["child 1", "a", "b"]
    assert DONE == ["child 1", "outer", "outer", "outer", "outer"]


@pytest.mark.parametrize("limit", [1, 2])
def test_a_task_that_fails_before_its_own_have_begun_waits_for_no_thread(store: Store, call: Call, limit: int) -> None:
    @task
    def outer(n: int) -> None:
        for k in range(3):
            work((n, k))
        raise Declined(n)

    @entrypoint(checkpointer=store.saver)
    def body(count: int) -> list[str]:
        futures = [outer(n) for n in range(count)]
        return [str(f.exception()) for f in futures]

    config = thread() | {"max_concurrency": limit}
    assert call(body, 4, config) == [f"declined {n}" for n in range(4)]


def test_an_inner_exception_that_the_outer_task_went_on_after_stays(store: Store, call: Call) -> None:
    @task
    def outer() -> Any:
        with contextlib.suppress(Declined):
            return work("flaky").result()
        return interrupt("by hand?")

    def made() -> Any:
        @entrypoint(checkpointer=store.again())
        def body(_: int) -> Any:
            return outer().result()

        return body

    BROKEN.add("flaky")
    config = thread()
    asked(call(made(), 1, config))
    BROKEN.clear()
    assert call(made(), Command(resume="done by hand"), config) == "done by hand"
    assert DONE == ["flaky"]
