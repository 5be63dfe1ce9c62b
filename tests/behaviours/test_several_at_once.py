"""Several questions raised in one task: they surface together, as far as they were raised before its body ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import pytest
from langchain_core.runnables.config import ContextThreadPoolExecutor

from tests.behaviours.conftest import Store
from tests.behaviours.graphs import State, asked, builder, chain, the_id, thread
from waitpoint.errors import OutsideGraphError, PayloadError
from waitpoint.graph import START
from waitpoint.types import Command, interrupt, step

NAMES = ["a", "b", "c"]


def ask(name: str) -> Any:
    return interrupt({"about": name})


async def aask(name: str) -> Any:
    return ask(name)


async def gathered(state: State) -> State:
    return {"log": await asyncio.gather(*map(aask, NAMES))}


async def grouped(state: State) -> State:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(aask(name)) for name in NAMES]
    return {"log": [t.result() for t in tasks]}


def pooled(state: State) -> State:
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(copy_context().run, ask, name) for name in NAMES]
    return {"log": [w.result() for w in waiting]}


def langchain_pooled(state: State) -> State:
    with ContextThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(ask, name) for name in NAMES]
    return {"log": [w.result() for w in waiting]}


def collected(state: State) -> State:
    answers, pauses = [], []
    for name in NAMES:
        try:
            answers.append(ask(name))
        except BaseException as pause:
            pauses.append(pause)
    if pauses:
        raise BaseExceptionGroup("questions", pauses)
    return {"log": answers}


WAYS = [gathered, grouped, pooled, langchain_pooled, collected]


def run(graph: Any, given: Any, config: Any) -> Any:
    return asyncio.run(graph.ainvoke(given, config))


def about(result: Any) -> dict[str, str]:
    return {i.value["about"]: i.id for i in asked(result)}


@pytest.mark.parametrize("node", WAYS, ids=lambda f: f.__name__)
def test_questions_raised_together_surface_together(saver: Any, node: Callable[..., Any]) -> None:
    """Section 5"""
    graph, config = chain(saver, node), thread()
    open_ids = about(run(graph, {"log": []}, config))
    assert sorted(open_ids) == NAMES
    assert {i.value["about"]: i.id for i in graph.get_state(config).interrupts} == open_ids
    assert {q.value["about"]: q.id for q in saver.pending()} == open_ids


@pytest.mark.parametrize("node", WAYS, ids=lambda f: f.__name__)
def test_they_come_once_in_the_last_part_of_a_stream(saver: Any, node: Callable[..., Any]) -> None:
    """Section 5, table"""

    async def parts() -> list[Any]:
        return [part async for part in chain(saver, node).astream({"log": []}, thread())]

    (last,) = asyncio.run(parts())
    assert sorted(i.value["about"] for i in last["__interrupt__"]) == NAMES


@pytest.mark.parametrize("node", WAYS, ids=lambda f: f.__name__)
def test_they_are_answered_all_at_once_by_id(saver: Any, node: Callable[..., Any]) -> None:
    """Section 5"""
    graph, config = chain(saver, node), thread()
    open_ids = about(run(graph, {"log": []}, config))
    answers = {question: name.upper() for name, question in open_ids.items()}
    assert run(graph, Command(resume=answers), config) == {"log": ["A", "B", "C"]}


@pytest.mark.parametrize("node", WAYS, ids=lambda f: f.__name__)
def test_they_are_answered_one_by_one_in_any_order(store: Store, node: Callable[..., Any]) -> None:
    """Section 5: those still open keep their ids while the task runs again for each answer"""
    config = thread()
    open_ids = about(run(chain(store.saver, node), {"log": []}, config))
    for name in ("c", "a"):
        result = run(chain(store.again(), node), Command(resume={open_ids[name]: name.upper()}), config)
        assert open_ids.items() >= about(result).items()
        assert name not in about(result)
    assert about(result) == {"b": open_ids["b"]}
    assert run(chain(store.again(), node), Command(resume="B"), config) == {"log": ["A", "B", "C"]}


def test_a_task_group_cancels_those_that_have_not_asked_yet(saver: Any) -> None:
    """Section 5: a TaskGroup cancels the others; they ask on the next attempt"""
    never = asyncio.Event

    async def late(name: str, go: Any) -> Any:
        await go.wait()
        return ask(name)

    rounds: list[int] = []

    async def node(state: State) -> State:
        rounds.append(1)
        go = never()
        if len(rounds) > 1:
            go.set()
        async with asyncio.TaskGroup() as group:
            first = group.create_task(aask("a"))
            second = group.create_task(late("b", go))
        return {"log": [first.result(), second.result()]}

    graph, config = chain(saver, node), thread()
    assert list(about(run(graph, {"log": []}, config))) == ["a"]
    assert list(about(run(graph, Command(resume="A"), config))) == ["b"]
    assert run(graph, Command(resume="B"), config) == {"log": ["A", "B"]}


def test_a_group_of_a_pause_and_an_error_is_a_failure(saver: Any) -> None:
    """Section 5: groups of only pauses count as a pause"""
    broken = [True]

    async def fails() -> None:
        if broken[0]:
            raise ValueError("no pause")

    async def node(state: State) -> State:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(aask("a"))
            group.create_task(fails())
        return {"log": [task.result()]}

    graph, config = chain(saver, node), thread()
    with pytest.raises(ExceptionGroup) as caught:
        run(graph, {"log": []}, config)
    assert [str(e) for e in caught.value.exceptions] == ["no pause"]
    assert graph.get_state(config).next == ("node",)
    assert [t.status for t in saver.threads()] == ["failed"]
    broken[0] = False
    assert run(graph, Command(resume="A"), config) == {"log": ["A"]}


def test_answers_come_to_the_calls_that_asked_whatever_their_order(saver: Any) -> None:
    """Section 5: coroutines that ask in another order on replay"""
    order = list(NAMES)

    async def node(state: State) -> State:
        found = await asyncio.gather(*map(aask, order))
        return {"log": sorted(zip(order, found, strict=True))}

    graph, config = chain(saver, node), thread()
    open_ids = about(run(graph, {"log": []}, config))
    order.reverse()
    answers = {question: name.upper() for name, question in open_ids.items()}
    assert run(graph, Command(resume=answers), config) == {"log": [("a", "A"), ("b", "B"), ("c", "C")]}


async def equal_gathered(state: State) -> State:
    return {"log": await asyncio.gather(aask("same"), aask("same"))}


async def equal_grouped(state: State) -> State:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(aask("same")) for _ in range(2)]
    return {"log": [t.result() for t in tasks]}


def equal_pooled(state: State) -> State:
    with ContextThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(ask, "same") for _ in range(2)]
    return {"log": [w.result() for w in waiting]}


def equal_caught(state: State) -> State:
    for _ in range(2):
        try:
            ask("same")
        except BaseException as error:
            last = error
    raise last


@pytest.mark.parametrize("node", [equal_gathered, equal_grouped, equal_pooled, equal_caught], ids=lambda f: f.__name__)
def test_two_equal_questions_open_at_once_in_one_task_are_refused(saver: Any, node: Callable[..., Any]) -> None:
    """Section 5: a reviewer could not tell them apart either"""
    with pytest.raises(PayloadError, match=r"twice at once.*a `key`"):
        run(chain(saver, node), {"log": []}, thread())


def test_a_key_lets_equal_questions_be_open_at_once(saver: Any) -> None:
    """Section 5"""

    async def one(key: str) -> Any:
        return interrupt("same?", key=key)

    async def node(state: State) -> State:
        return {"log": await asyncio.gather(*map(one, NAMES))}

    graph, config = chain(saver, node), thread()
    run(graph, {"log": []}, config)
    answers = {q.id: (q.key or "").upper() for q in saver.pending()}
    assert run(graph, Command(resume=answers), config) == {"log": ["A", "B", "C"]}


def test_a_thread_of_ones_own_needs_the_context_of_the_node(saver: Any) -> None:
    """Section 5: without it nothing is known of the task, and the error says how to give it"""

    def node(state: State) -> State:
        with ThreadPoolExecutor(1) as pool:
            return {"log": [pool.submit(ask, "a").result()]}

    with pytest.raises(OutsideGraphError, match="copy_context"):
        chain(saver, node).invoke({"log": []}, thread())


def test_a_question_outside_of_any_graph_is_refused() -> None:
    """Section 5"""
    with pytest.raises(OutsideGraphError, match=r"interrupt\(\)"):
        interrupt("anybody?")


def test_steps_beside_a_question_are_recorded_and_not_run_again(saver: Any) -> None:
    """Section 5 with 6: what a sibling coroutine did before the pause stays done"""
    effects: list[str] = []

    async def effect(name: str) -> str:
        effects.append(name)
        return name

    async def one(name: str) -> Any:
        done = await step(effect, name)
        return done, ask(name)

    async def node(state: State) -> State:
        return {"log": await asyncio.gather(*map(one, NAMES), return_exceptions=False)}

    graph, config = chain(saver, node), thread()
    result = run(graph, {"log": []}, config)
    for _ in NAMES:
        if "__interrupt__" in result:
            answers = {question: name.upper() for name, question in about(result).items()}
            result = run(graph, Command(resume=answers), config)
    assert result == {"log": [("a", "A"), ("b", "B"), ("c", "C")]}
    assert sorted(effects) == NAMES


@pytest.mark.parametrize("way", ["gather", "pool"])
def test_graphs_called_side_by_side_in_one_node_ask_together(saver: Any, way: str) -> None:
    """Section 5, nested: each child keeps its place, and the parent shows all that they ask"""

    def inner(state: State) -> State:
        return {"log": [ask(state["value"])]}

    child = builder(inner).compile()

    async def gathering(state: State) -> State:
        found = await asyncio.gather(*(child.ainvoke({"log": [], "value": name}) for name in NAMES))
        return {"log": [f["log"][0] for f in found]}

    def pooling(state: State) -> State:
        with ContextThreadPoolExecutor(1) as pool:
            waiting = [pool.submit(child.invoke, {"log": [], "value": name}) for name in NAMES]
        return {"log": [w.result()["log"][0] for w in waiting]}

    graph = builder().add_node("node", gathering if way == "gather" else pooling).add_edge(START, "node")
    compiled, config = graph.compile(checkpointer=saver), thread()
    open_ids = about(run(compiled, {"log": []}, config))
    assert set(open_ids) <= set(NAMES)
    assert {i.id for i in compiled.get_state(config).interrupts} == set(open_ids.values())
    for _ in range(4):
        answers = {question: name.upper() for name, question in open_ids.items()}
        result = run(compiled, Command(resume=answers), config)
        if "__interrupt__" not in result:
            break
        open_ids = about(result)
    assert result == {"log": ["A", "B", "C"]}


def test_a_question_of_a_pool_survives_a_deploy_of_the_frames_around_it(store: Store) -> None:
    """Section 5: sites are compared as far as both stacks reach, so a thread's short stack meets a long one"""
    pooling = [True]

    def node(state: State) -> State:
        if pooling[0]:
            with ThreadPoolExecutor(1) as pool:
                return {"log": [pool.submit(copy_context().run, ask, "a").result()]}
        return {"log": [ask("a")]}

    config = thread()
    first = the_id(chain(store.saver, node).invoke({"log": []}, config))
    pooling[0] = False
    result = chain(store.again(), node).invoke(Command(resume={first: "A"}), config)
    assert result == {"log": ["A"]}


def test_a_question_that_a_called_graph_has_stored_is_shown_though_the_body_did_not_wait_for_it(saver: Any) -> None:
    """Section 5, nested: what the store has open and what the caller is shown are the same"""

    async def main() -> Any:
        loop, stored = asyncio.get_running_loop(), asyncio.Event()
        plain = type(saver).commit

        def commit(change: Any) -> None:
            plain(saver, change)
            if change.writes.questions:
                loop.call_soon_threadsafe(stored.set)

        def inner(state: State) -> State:
            return {"log": [ask("inner")]}

        child = builder(inner).compile()

        async def node(state: State) -> State:
            called = asyncio.ensure_future(child.ainvoke({"log": []}))
            called.add_done_callback(lambda done: done.cancelled() or done.exception())
            if not stored.is_set():
                saver.commit = commit
                await stored.wait()
                del saver.commit
            own = ask("own")
            return {"log": [own, *(await called)["log"]]}

        graph, config = chain(saver, node), thread()
        open_ids = about(await graph.ainvoke({"log": []}, config))
        assert set(open_ids) == {"own", "inner"}
        assert {i.id for i in graph.get_state(config).interrupts} == set(open_ids.values())
        answers = {question: name.upper() for name, question in open_ids.items()}
        return await graph.ainvoke(Command(resume=answers), config)

    assert asyncio.run(main()) == {"log": ["OWN", "INNER"]}
