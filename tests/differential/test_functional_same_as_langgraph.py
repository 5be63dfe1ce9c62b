"""Entrypoints and tasks come to the same on Waitpoint and on LangGraph: results, parts, states, history, schemas."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig

from tests.differential.functional_programs import FUNCTIONAL, func
from tests.differential.play import LANGGRAPH, WAITPOINT, Library, Stage


def programs_without(difference: str) -> pytest.MarkDecorator:
    """Return all programs but those that are meant to differ in this."""
    chosen = [make for make in FUNCTIONAL if difference not in make(WAITPOINT).differs]
    return pytest.mark.parametrize("make", chosen, ids=lambda make: make.__name__)


@programs_without("results")
def test_invoke_and_get_state_say_the_same(make: Any) -> None:
    assert Stage(WAITPOINT, make).invoked() == Stage(LANGGRAPH, make).invoked()


@programs_without("results")
async def test_ainvoke_and_aget_state_say_the_same(make: Any) -> None:
    assert await Stage(WAITPOINT, make).awaited() == await Stage(LANGGRAPH, make).awaited()


@programs_without("parts")
def test_values_and_updates_are_the_same_parts(make: Any) -> None:
    assert Stage(WAITPOINT, make).streamed() == Stage(LANGGRAPH, make).streamed()


@programs_without("history")
def test_histories_are_the_same(make: Any) -> None:
    assert Stage(WAITPOINT, make).history() == Stage(LANGGRAPH, make).history()


def gathered(lib: Library) -> Any:
    """Return an async program: tasks in coroutines, gathered, with injected arguments that are passed on."""
    api = func(lib)

    @api.task
    async def first(n: int) -> int:
        return n + 1

    @api.task
    async def second(n: int, *, store: Any, config: RunnableConfig, previous: Any = None) -> list[Any]:
        return [n * 2, store, config["configurable"]["thread_id"], previous]

    @api.entrypoint(checkpointer=lib.saver())
    async def body(count: int) -> list[Any]:
        async def line(n: int) -> Any:
            return await second(await first(n), store=f"store {n}")

        return [*await asyncio.gather(*[line(n) for n in range(count)]), lib.interrupt("?")]

    return body


async def test_gathered_tasks_come_to_the_same() -> None:
    found = []
    for lib in (WAITPOINT, LANGGRAPH):
        graph, config = gathered(lib), {"configurable": {"thread_id": "t"}}
        paused = await graph.ainvoke(3, config)
        found.append([list(paused), await graph.ainvoke(lib.Command(resume="yes"), config)])
    assert found[0] == found[1]


@pytest.mark.parametrize("hint", [int, dict[str, int], list[str], int | None, Any], ids=str)
def test_json_schemas_are_the_same(hint: Any) -> None:
    def body(given: Any) -> Any:
        return given

    body.__annotations__ = {"given": hint, "return": hint}
    ours, theirs = func(WAITPOINT).entrypoint()(body), func(LANGGRAPH).entrypoint()(body)
    assert ours.get_input_jsonschema() == theirs.get_input_jsonschema()
    assert ours.get_output_jsonschema() == theirs.get_output_jsonschema()
