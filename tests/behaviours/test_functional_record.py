"""The record of tasks: what finished never runs again, and whose record is whose."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import asked, thread
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.errors import ReplayMismatch, SealedAttemptError, UnstorableValueError
from waitpoint.func import entrypoint, task
from waitpoint.types import Command, interrupt

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


def resumed(made: Any, call: Call, given: Any = 1, answer: Any = "yes") -> Any:
    """Run a body to its question, and in another process' stead to its end."""
    config = thread()
    asked(call(made(), given, config))
    return call(made(), Command(resume=answer), config)


# --- results ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("result", [None, False, 0, "", [], {}, ()], ids=repr)
def test_a_falsy_result_is_a_result(store: Store, call: Call, result: Any) -> None:
    """B209, B212"""

    @task
    def give() -> Any:
        DONE.append("give")
        return result

    def made() -> Any:
        @entrypoint(checkpointer=store.again())
        def body(_: int) -> Any:
            found = give().result()
            interrupt("?")
            return found

        return body

    assert resumed(made, call) == result
    assert DONE == ["give"]


def test_calls_with_equal_arguments_are_as_many_calls(store: Store, call: Call) -> None:
    counter = iter(range(10))

    @task
    def draw(_: str) -> int:
        return next(counter)

    def made() -> Any:
        @entrypoint(checkpointer=store.again())
        def body(_: int) -> list[int]:
            found = [draw("a").result(), draw("b").result(), draw("a").result()]
            interrupt("?")
            return [*found, draw("a").result()]

        return body

    assert resumed(made, call) == [0, 1, 2, 3]


def test_changed_arguments_of_a_task_in_a_row_are_refused_and_nothing_runs(store: Store, call: Call) -> None:
    drawn = iter(range(10))

    @entrypoint(checkpointer=store.saver)
    def body(_: int) -> Any:
        work(("at", next(drawn))).result()
        return interrupt("?")

    config = thread()
    call(body, 1, config)
    with pytest.raises(ReplayMismatch, match="recorded with other arguments"):
        call(body, Command(resume="yes"), config)
    assert DONE == [("at", 0)]


def test_a_result_that_cannot_be_stored_is_said_to_be_lost_and_its_task_does_not_run_twice(
    store: Store, call: Call
) -> None:
    @task
    def give() -> Any:
        DONE.append("give")
        return threading.Lock()

    @entrypoint(checkpointer=store.saver)
    def body(_: int) -> Any:
        give().result()
        return interrupt("?")

    config = thread()
    call(body, 1, config)
    with pytest.raises(UnstorableValueError, match="could not be kept"):
        call(body, Command(resume="yes"), config)
    assert DONE == ["give"]


def test_another_run_on_the_thread_runs_its_tasks_anew(store: Store, call: Call) -> None:
    @entrypoint(checkpointer=store.saver)
    def body(n: int) -> Any:
        return work(n).result()

    config = thread()
    call(body, 1, config)
    call(body, 1, config)
    assert DONE == [1, 1]


def test_a_fork_runs_its_tasks_anew_and_asks_again(store: Store, call: Call) -> None:
    @entrypoint(checkpointer=store.saver)
    def body(n: int) -> Any:
        return [work(n).result(), interrupt("?")]

    config = thread()
    call(body, 1, config)
    call(body, Command(resume="a"), config)
    *_, first = body.get_state_history(config)
    assert [i.value for i in asked(call(body, None, first.config))] == ["?"]
    assert call(body, Command(resume="b"), config) == [1, "b"]
    assert DONE == [1, 1]


# --- at the same time -------------------------------------------------------------------------------------------------


def test_coroutines_in_another_order_find_each_its_own_record(store: Store) -> None:
    """The first run ends the second tasks in the opposite order of the next one."""
    order = [0, 1, 2]
    turn: dict[int, asyncio.Event] = {}

    @task
    async def first(n: int) -> int:
        await turn[n].wait()
        return n

    @task
    async def second(n: int) -> str:
        DONE.append(n)
        later = order.index(n) + 1
        if later < len(order):
            turn[order[later]].set()
        return f"second {n}"

    @entrypoint(checkpointer=store.saver)
    async def body(_: int) -> list[Any]:
        async def line(n: int) -> str:
            return await second(await first(n))

        found = await asyncio.gather(*[line(n) for n in range(3)])
        return [*found, interrupt("?")]

    async def run(given: Any) -> Any:
        turn.update({n: asyncio.Event() for n in range(3)})
        turn[order[0]].set()
        return await body.ainvoke(given, config)

    config = thread()
    order = [2, 1, 0]
    asyncio.run(run(1))
    assert DONE == [2, 1, 0]
    assert asyncio.run(run(Command(resume="yes"))) == ["second 0", "second 1", "second 2", "yes"]
    assert DONE == [2, 1, 0]


def test_a_run_that_broke_off_goes_on_in_another_order_without_a_mismatch(store: Store) -> None:
    """Tasks that ran side by side may come in another order on the next run, and that is no change of the program."""
    began: list[asyncio.Event] = []

    @task
    async def first(n: int) -> int:
        if n == 0 and BROKEN:
            await began[0].wait()
        return n

    @task
    async def second(n: int) -> int:
        DONE.append(n)
        if n == 0 and BROKEN:
            began[1].set()
            await asyncio.Event().wait()
        if len(DONE) == 2:
            began[0].set()
        return n

    @task
    async def breaks_off() -> None:
        if BROKEN:
            await began[1].wait()
            raise ValueError("broke off")

    @entrypoint(checkpointer=store.saver)
    async def body(_: int) -> list[Any]:
        async def line(n: int) -> int:
            return await second(await first(n))

        async def last() -> None:
            await breaks_off()

        return await asyncio.gather(*[line(n) for n in range(3)], last())

    async def run(given: Any) -> Any:
        began[:] = [asyncio.Event(), asyncio.Event()]
        return await body.ainvoke(given, config)

    BROKEN.add("all")
    config = thread()
    with pytest.raises(ValueError, match="broke off"):
        asyncio.run(run(1))
    assert sorted(DONE[:-1]) == [1, 2]
    assert DONE[-1] == 0
    BROKEN.clear()
    assert asyncio.run(run(None)) == [0, 1, 2, None]
    assert sorted(DONE) == [0, 0, 1, 2]


def test_equal_calls_in_two_tasks_find_each_its_own_record(store: Store, call: Call) -> None:
    drawn = iter(range(10))

    @task
    def draw(_: str) -> int:
        return next(drawn)

    @task
    def outer(n: int) -> list[Any]:
        return [n, draw("the same").result(), interrupt(f"{n}?")]

    @entrypoint(checkpointer=store.saver)
    def body(count: int) -> list[Any]:
        futures = [outer(n) for n in range(count)]
        return [f.result() for f in futures]

    config = thread()
    found = {i.value: i.id for i in asked(call(body, 2, config))}
    first = call(body, Command(resume={found["0?"]: "a"}), config)
    assert [i.value for i in asked(first)] == ["1?"]
    result = call(body, Command(resume="b"), config)
    assert sorted(number for _, number, _ in result) == [0, 1]
    assert next(drawn) == 2


def test_a_cancelled_task_is_not_saved_and_runs_again(store: Store) -> None:
    """B219"""
    started = asyncio.Event()

    @task
    async def slow() -> str:
        DONE.append("slow")
        if BROKEN:
            started.set()
            await asyncio.Event().wait()
        return "slow"

    @task
    async def fails() -> str:
        if BROKEN:
            await started.wait()
            raise ValueError("no")
        return "fine"

    @entrypoint(checkpointer=store.saver)
    async def body(_: int) -> list[str]:
        return await asyncio.gather(slow(), fails())

    async def run(given: Any) -> Any:
        nonlocal started
        started = asyncio.Event()
        return await body.ainvoke(given, config)

    BROKEN.add("all")
    config = thread()
    with pytest.raises(ValueError, match="no"):
        asyncio.run(run(1))
    BROKEN.clear()
    assert asyncio.run(run(None)) == ["slow", "fine"]
    assert DONE == ["slow", "slow"]


def test_a_cancelled_run_keeps_what_had_finished(store: Store) -> None:
    @task
    async def forever() -> None:
        DONE.append("forever")
        if BROKEN:
            reached.set()
            await asyncio.Event().wait()

    @entrypoint(checkpointer=store.saver)
    async def body(_: int) -> list[Any]:
        return [await awork("fine"), await work("plain"), await forever()]

    async def cancelled() -> None:
        nonlocal reached
        reached = asyncio.Event()
        running = asyncio.ensure_future(body.ainvoke(1, config))
        await reached.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    reached = asyncio.Event()
    BROKEN.add("all")
    config = thread()
    asyncio.run(cancelled())
    BROKEN.clear()
    assert asyncio.run(body.ainvoke(None, config)) == ["fine", "plain", None]
    assert DONE == ["fine", "plain", "forever", "forever"]


def test_a_body_that_failed_starts_no_further_tasks(store: Store) -> None:
    orphans: list[asyncio.Future[None]] = []

    @entrypoint(checkpointer=store.saver)
    async def body(_: int) -> None:
        async def left_behind() -> None:
            with contextlib.suppress(asyncio.CancelledError):
                await awork("before")
            await awork("after")

        orphans.append(asyncio.ensure_future(left_behind()))
        await asyncio.sleep(0)
        raise ValueError("failed")

    async def run() -> list[Any]:
        with pytest.raises(ValueError, match="failed"):
            await body.ainvoke(1, thread())
        return await asyncio.gather(*orphans, return_exceptions=True)

    (refused,) = asyncio.run(run())
    assert isinstance(refused, SealedAttemptError)
    assert "after" not in DONE


def test_a_consumer_that_leaves_lets_the_body_end(store: Store) -> None:
    @entrypoint(checkpointer=store.saver)
    def body(count: int) -> list[Any]:
        return [work(n).result() for n in range(count)]

    config = thread()
    for part in body.stream(3, config):
        assert part == {"work": 0}
        break
    state = body.get_state(config)
    assert (state.values, state.next) == ([0, 1, 2], ())
    assert DONE == [0, 1, 2]


def test_each_of_a_thousand_tasks_is_found_again() -> None:
    @entrypoint(checkpointer=InMemorySaver())
    def body(count: int) -> int:
        found: int = sum(work(n).result() for n in range(count))
        interrupt("?")
        return found

    config = thread()
    body.invoke(1000, config)
    assert body.invoke(Command(resume="yes"), config) == sum(range(1000))
    assert len(DONE) == 1000
