"""Questions in tasks of tasks, in entrypoints and graphs called by others, and pauses that were swallowed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, builder, ids, thread
from waitpoint.errors import SwallowedInterruptError
from waitpoint.func import entrypoint, task
from waitpoint.types import Command, interrupt, step

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


# --- tasks in tasks, entrypoints in entrypoints ------------------------------------------------------------------------


def test_a_task_in_a_task_asks(store: Store, call: Call) -> None:
    @task
    def outer(n: int) -> list[Any]:
        DONE.append(("outer", n))
        before = work(n).result()
        futures = [ask(f"{n} a"), ask(f"{n} b")]
        return [before, *(f.result() for f in futures)]

    @entrypoint(checkpointer=store.saver)
    def body(count: int) -> list[Any]:
        futures = [outer(n) for n in range(count)]
        return [f.result() for f in futures]

    config = thread()
    found = ids(call(body, 2, config))
    assert set(found) == {"0 a", "0 b", "1 a", "1 b"}
    rest = ids(call(body, Command(resume={found["0 a"]: 1, found["0 b"]: 2, found["1 b"]: 4}), config))
    assert rest == {"1 a": found["1 a"]}
    assert call(body, Command(resume=3), config) == [[0, 1, 2], [10, 3, 4]]
    assert sorted(d for d in DONE if d[0] == "work") == [("work", 0), ("work", 1)]
    assert DONE.count(("outer", 0)) == 2


def test_a_child_entrypoint_asks_once_and_its_finished_tasks_do_not_run_again(store: Store, call: Call) -> None:
    """B47"""

    def made() -> Any:
        @entrypoint()
        def child(n: int) -> list[Any]:
            return [work(n).result(), interrupt("child?")]

        @entrypoint(checkpointer=store.again())
        def parent(n: int) -> list[Any]:
            return [work(n + 1).result(), *child.invoke(n)]

        return parent

    config = thread()
    assert [i.value for i in asked(call(made(), 1, config))] == ["child?"]
    assert call(made(), Command(resume="yes"), config) == [20, 10, "yes"]
    assert DONE == [("work", 2), ("work", 1)]


def test_child_entrypoints_called_in_tasks_at_the_same_time_ask_together(store: Store, call: Call) -> None:
    @entrypoint()
    def child(n: int) -> list[Any]:
        return [work(n).result(), interrupt(f"child {n}?")]

    @task
    def run_child(n: int) -> Any:
        return child.invoke(n)

    @entrypoint(checkpointer=store.saver)
    def parent(count: int) -> list[Any]:
        futures = [run_child(n) for n in range(count)]
        return [f.result() for f in futures]

    config = thread()
    found = ids(call(parent, 3, config))
    assert set(found) == {"child 0?", "child 1?", "child 2?"}
    rest = ids(call(parent, Command(resume={found["child 1?"]: "b"}), config))
    assert rest == {v: i for v, i in found.items() if v != "child 1?"}
    answers = {found["child 0?"]: "a", found["child 2?"]: "c"}
    assert call(parent, Command(resume=answers), config) == [[0, "a"], [10, "b"], [20, "c"]]
    assert sorted(DONE) == [("work", 0), ("work", 1), ("work", 2)]


def test_an_async_child_entrypoint_asks(store: Store) -> None:
    @entrypoint()
    async def child(n: int) -> list[Any]:
        return [await work(n), await aask("child?")]

    @entrypoint(checkpointer=store.saver)
    async def parent(n: int) -> list[Any]:
        return [await work(n + 1), *(await child.ainvoke(n))]

    config = thread()
    assert [i.value for i in asked(asyncio.run(parent.ainvoke(1, config)))] == ["child?"]
    assert asyncio.run(parent.ainvoke(Command(resume="yes"), config)) == [20, 10, "yes"]
    assert [d for d in DONE if d[0] == "work"] == [("work", 2), ("work", 1)]


def test_a_graph_called_in_a_task_asks(store: Store, call: Call) -> None:
    def node(state: State) -> State:
        return {"log": [work(1).result(), interrupt("graph?")]}

    graph = builder(node).compile()

    @task
    def run_graph(_: int) -> Any:
        return graph.invoke({"log": []})["log"]

    @entrypoint(checkpointer=store.saver)
    def body(n: int) -> Any:
        return run_graph(n).result()

    config = thread()
    assert [i.value for i in asked(call(body, 1, config))] == ["graph?"]
    assert call(body, Command(resume="yes"), config) == [10, "yes"]
    assert DONE == [("work", 1)]


def test_a_node_of_a_graph_asks_by_tasks(store: Store, call: Call) -> None:
    def node(state: State) -> State:
        futures = [ask(n) for n in range(2)]
        return {"log": [f.result() for f in futures]}

    graph = builder(node).compile(checkpointer=store.saver)
    config = thread()
    found = ids(call(graph, {"log": []}, config))
    assert set(found) == {0, 1}
    assert call(graph, Command(resume={found[0]: "a", found[1]: "b"}), config)["log"] == ["a", "b"]


def test_a_step_in_a_task_asks_and_happens_once(store: Store, call: Call) -> None:
    def effect(n: int) -> int:
        DONE.append(("effect", n))
        return n

    @task
    def careful(n: int) -> list[Any]:
        return [step(effect, n), interrupt(f"{n}?"), step(effect, n)]

    @entrypoint(checkpointer=store.saver)
    def body(count: int) -> list[Any]:
        futures = [careful(n) for n in range(count)]
        return [f.result() for f in futures]

    config = thread()
    found = ids(call(body, 3, config))
    assert call(body, Command(resume={i: v for v, i in found.items()}), config) == [[n, f"{n}?", n] for n in range(3)]
    assert sorted(DONE) == sorted([("effect", n) for n in range(3)] * 2)


# --- swallowed pauses -------------------------------------------------------------------------------------------------


def test_a_body_that_goes_on_after_a_task_paused_is_told_so(store: Store, call: Call) -> None:
    @entrypoint(checkpointer=store.saver)
    def body(_: int) -> str:
        try:
            return str(ask("?").result())
        except BaseException:
            return "went on"

    with pytest.raises(SwallowedInterruptError, match=r"asked a question at .*ask"):
        call(body, 1, thread())


def test_a_task_that_goes_on_after_its_pause_is_told_so_and_is_not_finished(store: Store, call: Call) -> None:
    @task
    def swallows() -> str:
        try:
            return str(interrupt("?"))
        except BaseException:
            return "went on"

    @entrypoint(checkpointer=store.saver)
    def body(_: int) -> str:
        return swallows().result()

    config = thread()
    with pytest.raises(SwallowedInterruptError, match="swallows"):
        call(body, 1, config)
    (question,) = body.get_state(config).interrupts
    assert call(body, Command(resume={question.id: "answer"}), config) == "answer"


def test_pauses_gathered_as_results_are_pauses(store: Store) -> None:
    @entrypoint(checkpointer=store.saver)
    async def body(_: int) -> list[Any]:
        return await asyncio.gather(aask("a"), aask("b"), return_exceptions=True)

    config = thread()
    found = ids(asyncio.run(body.ainvoke(1, config)))
    assert set(found) == {"a", "b"}
    assert asyncio.run(body.ainvoke(Command(resume={i: v for v, i in found.items()}), config)) == ["a", "b"]


def test_questions_in_a_task_group_come_as_far_as_they_were_asked(store: Store) -> None:
    @entrypoint(checkpointer=store.saver)
    async def body(_: int) -> list[Any]:
        async def one(n: int) -> Any:
            return await aask(n)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(n)) for n in range(2)]
        return [t.result() for t in tasks]

    config = thread()
    paused = asyncio.run(body.ainvoke(1, config))
    while isinstance(paused, dict):
        answers = {i.id: f"to {i.value}" for i in asked(paused)}
        paused = asyncio.run(body.ainvoke(Command(resume=answers), config))
    assert paused == ["to 0", "to 1"]
