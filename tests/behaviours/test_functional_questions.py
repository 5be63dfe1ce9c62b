"""Questions in entrypoints and tasks: each with its own id, asked once, answered to the task that asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import asked, ids, the_id, thread
from waitpoint.engine.answers import withdraw
from waitpoint.errors import PayloadError, QuestionWithdrawn
from waitpoint.func import entrypoint, task
from waitpoint.types import Command, RetryPolicy, interrupt

DONE: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    DONE.clear()


@task
def ask(question: Any) -> Any:
    DONE.append(("ask", question))
    return interrupt(question)


@task
async def aask(question: Any) -> Any:
    DONE.append(("ask", question))
    return interrupt(question)


@task
def work(n: int) -> int:
    DONE.append(("work", n))
    return n * 10


def open_ids(graph: Any, config: Any) -> dict[Any, str]:
    return {i.value: i.id for i in graph.get_state(config).interrupts}


# --- one at a time ----------------------------------------------------------------------------------------------------


def test_the_body_asks_and_only_the_question_is_returned(store: Store, call: Call) -> None:
    """B210"""

    def made() -> Any:
        @entrypoint(checkpointer=store.again())
        def body(n: int) -> list[Any]:
            return [work(n).result(), interrupt("sure?"), work(n + 1).result()]

        return body

    config = thread()
    paused = call(made(), 1, config)
    assert set(paused) == {"__interrupt__"}
    (task_of_body,) = made().get_state(config).tasks
    assert (task_of_body.name, [i.id for i in task_of_body.interrupts]) == ("body", [the_id(paused)])
    assert call(made(), Command(resume="yes"), config) == [10, "yes", 20]
    assert DONE == [("work", 1), ("work", 2)]


def test_a_pause_never_shows_what_the_last_run_returned(store: Store, call: Call, streamed: Call) -> None:
    @entrypoint(checkpointer=store.saver)
    def body(n: int) -> dict[str, Any]:
        return {"answer": interrupt("?") if n > 1 else "none"}

    config = thread()
    call(body, 1, config)
    assert set(call(body, 2, config)) == {"__interrupt__"}
    assert body.get_state(config).values == {"answer": "none"}
    assert call(body, Command(resume="a"), config) == {"answer": "a"}
    (shown,) = streamed(body, 3, config, stream_mode="values")
    assert set(shown) == {"__interrupt__"}


def test_a_task_asks_and_its_question_is_shown_once_under_the_entrypoint(store: Store, streamed: Call) -> None:
    """B210"""

    @entrypoint(checkpointer=store.saver)
    def body(question: str) -> Any:
        return ask(question).result()

    config = thread()
    parts = streamed(body, "sure?", config)
    assert [list(p) for p in parts] == [["__interrupt__"]]
    (question,) = parts[0]["__interrupt__"]
    assert [(t.name, t.interrupts) for t in body.get_state(config).tasks] == [("body", (question,))]
    assert streamed(body, Command(resume="yes"), config) == [{"ask": "yes"}, {"body": "yes"}]


def test_the_same_task_asks_several_times_in_one_run_each_its_own_question(store: Store, call: Call) -> None:
    """B211"""

    def made() -> Any:
        @entrypoint(checkpointer=store.again())
        def body(count: int) -> list[Any]:
            return [ask("the same?").result() for _ in range(count)]

        return body

    config = thread()
    found = [the_id(call(made(), 3, config))]
    found += [the_id(call(made(), Command(resume=n), config)) for n in (1, 2)]
    assert len(set(found)) == 3
    assert call(made(), Command(resume=3), config) == [1, 2, 3]
    assert len(DONE) == 6  # each once to ask and once to take its answer


@pytest.mark.parametrize("answer", [None, False, 0, "", [], {}], ids=repr)
def test_an_answered_task_with_a_falsy_result_is_finished(store: Store, call: Call, answer: Any) -> None:
    """B48, B212"""

    @entrypoint(checkpointer=store.saver)
    def body(_: int) -> list[Any]:
        first, second = ask("first"), ask("second")
        return [first.result(), second.result()]

    config = thread()
    found = ids(call(body, 1, config))
    DONE.clear()
    assert ids(call(body, Command(resume={found["first"]: answer}), config)) == {"second": found["second"]}
    assert call(body, Command(resume={found["second"]: answer}), config) == [answer, answer]
    assert DONE.count(("ask", "first")) == 1


# --- several at once --------------------------------------------------------------------------------------------------


def test_what_tasks_ask_at_the_same_time_comes_together(store: Store, call: Call) -> None:
    @entrypoint(checkpointer=store.saver)
    def body(count: int) -> list[Any]:
        futures = [ask(n) for n in range(count)]
        return [f.result() for f in futures]

    config = thread()
    found = ids(call(body, 3, config))
    assert sorted(found) == [0, 1, 2]
    assert call(body, Command(resume={i: f"to {n}" for n, i in found.items()}), config) == ["to 0", "to 1", "to 2"]


def test_what_gathered_tasks_ask_comes_together(store: Store) -> None:
    @entrypoint(checkpointer=store.saver)
    async def body(count: int) -> list[Any]:
        return await asyncio.gather(*[aask(n) for n in range(count)], ask("plain"))

    config = thread()
    found = ids(asyncio.run(body.ainvoke(3, config)))
    assert set(found) == {0, 1, 2, "plain"}
    answers = {i: f"to {n}" for n, i in found.items()}
    assert asyncio.run(body.ainvoke(Command(resume=answers), config)) == ["to 0", "to 1", "to 2", "to plain"]


def test_answers_one_by_one_leave_the_other_questions_as_they_are(store: Store, call: Call) -> None:
    def made() -> Any:
        @entrypoint(checkpointer=store.again())
        def body(count: int) -> list[Any]:
            futures = [ask(n) for n in range(count)]
            return [f.result() for f in futures]

        return body

    config = thread()
    found = ids(call(made(), 3, config))
    assert ids(call(made(), Command(resume={found[1]: "b"}), config)) == {0: found[0], 2: found[2]}
    assert open_ids(made(), config) == {0: found[0], 2: found[2]}
    assert ids(call(made(), Command(resume={found[2]: "c"}), config)) == {0: found[0]}
    assert call(made(), Command(resume="a"), config) == ["a", "b", "c"]


def test_equal_questions_of_different_calls_get_each_their_own_answer(store: Store, call: Call) -> None:
    @task
    def approve(order: int) -> Any:
        return (order, interrupt("ok?"))

    @entrypoint(checkpointer=store.saver)
    def body(count: int) -> list[Any]:
        futures = [approve(n) for n in range(count)]
        return [f.result() for f in futures]

    config = thread()
    first, second = asked(call(body, 2, config))
    assert first.id != second.id
    (left,) = asked(call(body, Command(resume={second.id: "to the second"}), config))
    assert left.id == first.id
    result = call(body, Command(resume={first.id: "to the first"}), config)
    assert [n for n, _ in result] == [0, 1]
    assert {a for _, a in result} == {"to the first", "to the second"}


def test_an_answer_stays_with_the_call_that_asked_however_often_the_body_runs(store: Store, call: Call) -> None:
    @task
    def approve(order: str) -> Any:
        return f"{order}: {interrupt({'order': order})}"

    @entrypoint(checkpointer=store.saver)
    def body(_: int) -> list[Any]:
        futures = [approve("a"), approve("b"), approve("c")]
        last = interrupt("and now?")
        return [*(f.result() for f in futures), last]

    config = thread()
    by_order = {(i.value["order"] if isinstance(i.value, dict) else "now"): i.id for i in asked(call(body, 1, config))}
    assert set(by_order) == {"a", "b", "c", "now"}
    for name in ("c", "now", "a"):
        call(body, Command(resume={by_order[name]: f"for {name}"}), config)
    result = call(body, Command(resume={by_order["b"]: "for b"}), config)
    assert result == ["a: for a", "b: for b", "c: for c", "for now"]


def test_one_body_cannot_ask_the_same_twice_at_once(store: Store) -> None:
    @entrypoint(checkpointer=store.saver)
    async def body(_: int) -> Any:
        async def one() -> Any:
            return interrupt("same?")

        return await asyncio.gather(one(), one())

    with pytest.raises(PayloadError, match="asks the same question twice"):
        asyncio.run(body.ainvoke(1, thread()))


def test_a_question_of_a_task_that_nobody_waits_for_is_asked(store: Store, call: Call) -> None:
    @entrypoint(checkpointer=store.saver)
    def body(_: int) -> str:
        ask("left alone")
        return "done"

    config = thread()
    assert list(ids(call(body, 1, config))) == ["left alone"]
    assert call(body, Command(resume=1), config) == "done"


def test_coroutines_that_each_await_tasks_in_a_row_get_as_far_as_they_can(store: Store) -> None:
    """The first pause reaches the body at once; the other coroutines still come to their second question."""

    @entrypoint(checkpointer=store.saver)
    async def body(count: int) -> list[Any]:
        async def line(n: int) -> list[Any]:
            first = await aask(f"{n} first")
            return [first, await aask(f"{n} second")]

        return await asyncio.gather(*[line(n) for n in range(count)])

    config = thread()
    run = lambda given: asyncio.run(body.ainvoke(given, config))  # noqa: E731
    found = ids(run(2))
    assert set(found) == {"0 first", "1 first"}
    later = ids(run(Command(resume={found["1 first"]: "a"})))
    assert set(later) == {"0 first", "1 second"}
    assert later["0 first"] == found["0 first"]
    last = ids(run(Command(resume={found["0 first"]: "b"})))
    assert last == {"0 second": last["0 second"], "1 second": later["1 second"]}
    result = run(Command(resume={last["0 second"]: "c", last["1 second"]: "d"}))
    assert result == [["b", "c"], ["a", "d"]]
    assert sorted(DONE) == sorted(
        [("ask", "0 first")] * 3 + [("ask", "1 first")] * 2 + [("ask", "0 second")] * 2 + [("ask", "1 second")] * 3
    )


def test_a_coroutine_that_a_task_wakes_after_the_body_paused_still_asks(store: Store) -> None:
    paused: list[asyncio.Event] = []

    @task
    async def until_the_pause() -> None:
        await paused[0].wait()

    @task
    async def pauses() -> Any:
        asyncio.get_running_loop().call_later(0.01, paused[0].set)
        return interrupt("at once")

    @entrypoint(checkpointer=store.saver)
    async def body(_: int) -> list[Any]:
        async def line() -> Any:
            await asyncio.gather(asyncio.gather(until_the_pause()))
            return await aask("later")

        return await asyncio.gather(pauses(), line())

    async def run(given: Any) -> Any:
        paused[:] = [asyncio.Event()]
        return await body.ainvoke(given, config)

    config = thread()
    found = ids(asyncio.run(run(1)))
    assert set(found) == {"at once", "later"}
    assert asyncio.run(run(Command(resume={i: v for v, i in found.items()}))) == ["at once", "later"]


# --- what becomes of answers ------------------------------------------------------------------------------------------


def test_an_answer_that_a_task_fails_on_can_be_replaced(store: Store, call: Call) -> None:
    @task
    def number() -> int:
        return int(interrupt("a number?"))

    @entrypoint(checkpointer=store.saver)
    def body(_: int) -> int:
        return number().result()

    config = thread()
    found = the_id(call(body, 1, config))
    with pytest.raises(ValueError, match="seven"):
        call(body, Command(resume="seven"), config)
    assert call(body, Command(resume={found: "7"}), config) == 7


def test_an_answer_that_a_finished_task_took_is_final(store: Store, call: Call) -> None:
    fails = [True]

    @entrypoint(checkpointer=store.saver)
    def body(_: int) -> Any:
        answer = ask("?").result()
        if fails:
            raise ValueError("after it")
        return answer

    config = thread()
    call(body, 1, config)
    with pytest.raises(ValueError, match="after it"):
        call(body, Command(resume="first"), config)
    assert body.get_state(config).interrupts == ()
    fails.clear()
    assert call(body, None, config) == "first"


def test_a_question_of_a_task_can_be_withdrawn(store: Store, call: Call) -> None:
    @task
    def careful() -> str:
        try:
            return str(interrupt("?"))
        except QuestionWithdrawn as withdrawn:
            return f"without: {withdrawn.reason}"

    @entrypoint(checkpointer=store.saver)
    def body(_: int) -> str:
        return careful().result()

    config = thread()
    found = the_id(call(body, 1, config))
    withdraw(store.saver, found, "too late")
    assert call(body, None, config) == "without: too late"


def test_a_retried_task_asks_once(store: Store, call: Call) -> None:
    """What it asked, and what it let other tasks do, is there for each try."""

    @task(retry_policy=RetryPolicy(initial_interval=0, jitter=False, retry_on=ValueError))
    def flaky() -> list[Any]:
        found = [interrupt("?"), work(1).result(), ask("inner?").result()]
        DONE.append("tried")
        if DONE.count("tried") < 3:
            raise ValueError("no")
        return found

    @entrypoint(checkpointer=store.saver)
    def body(_: int) -> Any:
        return flaky().result()

    config = thread()
    call(body, 1, config)
    assert list(ids(call(body, Command(resume="a"), config))) == ["inner?"]
    assert call(body, Command(resume="b"), config) == ["a", 10, "b"]
    assert DONE.count("tried") == 3
    assert DONE.count(("work", 1)) == 1
