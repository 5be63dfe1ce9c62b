"""A body that lets StopIteration out fails with a RuntimeError that names it, however it is called."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

import pytest

from waitpoint.agents import create_agent
from waitpoint.agents.middleware import AgentMiddleware
from waitpoint.func import entrypoint, task
from waitpoint.graph import START, StateGraph


class State(TypedDict):
    n: int


def ends(state: State) -> Any:
    return {"n": next(iter([]))}


def called(graph: Any, given: Any, is_async: bool) -> Any:
    return asyncio.run(asyncio.wait_for(graph.ainvoke(given), 20)) if is_async else graph.invoke(given)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_node_that_ends_an_iteration_fails_by_name(is_async: bool) -> None:
    graph = StateGraph(State).add_node(ends).add_edge(START, "ends").compile()
    with pytest.raises(RuntimeError, match="Node 'ends' raised StopIteration") as caught:
        called(graph, {"n": 0}, is_async)
    assert isinstance(caught.value.__cause__, StopIteration)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_router_that_ends_an_iteration_fails_by_name(is_async: bool) -> None:
    def route(state: State) -> str:
        return next(iter([]))

    graph = StateGraph(State).add_node("n", lambda state: {"n": 1}).add_edge(START, "n")
    graph.add_conditional_edges("n", route, ["n"])
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        called(graph.compile(), {"n": 0}, is_async)


def test_a_task_that_ends_an_iteration_fails_in_an_asynchronous_run() -> None:
    @task
    def last(n: int) -> int:
        return next(iter([]))

    @entrypoint()
    async def flow(n: int) -> int:
        return await last(n)

    with pytest.raises(RuntimeError, match="Task 'last' raised StopIteration"):
        called(flow, 1, is_async=True)


def test_a_middleware_that_ends_an_iteration_fails_in_an_asynchronous_run() -> None:
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel

    class Ends(AgentMiddleware):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return next(iter([]))

    agent = create_agent(GenericFakeChatModel(messages=iter([])), middleware=[Ends()])
    with pytest.raises(RuntimeError, match="StopIteration"):
        called(agent, {"messages": [("user", "hi")]}, is_async=True)
