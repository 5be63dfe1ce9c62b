"""Scenarios of the section "swallow": nothing between the question and the runtime mistakes a pause for a failure."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.scenarios.conftest import Call
from tests.scenarios.world import Shelf, State, texts, thread
from waitpoint.errors import NodeError
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, RetryPolicy, interrupt

ON = [Exception, (Exception,), lambda error: True, BaseException]


# --- S061 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("retry_on", ON, ids=["Exception", "tuple", "always", "BaseException"])
def test_s061_the_pause_is_not_retried(shelf: Shelf, call: Call, retry_on: Any) -> None:
    runs: Counter[str] = Counter()
    policy = RetryPolicy(max_attempts=5, initial_interval=0, jitter=False, retry_on=retry_on)

    def ask(state: State) -> State:
        runs["ask"] += 1
        return {"value": interrupt("go?")}

    def handler(state: State, error: NodeError) -> State:
        runs["handler"] += 1
        return {"value": "handled"}

    graph = StateGraph(State).add_node("ask", ask, retry_policy=policy, error_handler=handler)
    compiled, config = graph.add_edge(START, "ask").compile(checkpointer=shelf.open()), thread()
    assert texts(call(compiled, {"log": []}, config)) == ["go?"]
    assert runs == {"ask": 1}
    assert len(shelf.open().pending(answerable=False)) == 1
    assert call(compiled, Command(resume="yes"), config)["value"] == "yes"
    assert runs == {"ask": 2}


@pytest.mark.parametrize("retry_on", ON, ids=["Exception", "tuple", "always", "BaseException"])
def test_s061_the_pause_of_a_nested_graph_is_not_retried(shelf: Shelf, call: Call, retry_on: Any) -> None:
    runs: Counter[str] = Counter()
    policy = RetryPolicy(max_attempts=5, initial_interval=0, jitter=False, retry_on=retry_on)

    def ask(state: State) -> State:
        runs["ask"] += 1
        return {"value": interrupt("go?")}

    inner = StateGraph(State).add_node(ask).add_edge(START, "ask").compile()

    def outer(state: State) -> State:
        runs["outer"] += 1
        return {"value": inner.invoke({"log": []})["value"]}

    graph = StateGraph(State).add_node("outer", outer, retry_policy=policy)
    compiled, config = graph.add_edge(START, "outer").compile(checkpointer=shelf.open()), thread()
    assert texts(call(compiled, {"log": []}, config)) == ["go?"]
    assert runs == {"ask": 1, "outer": 1}
    assert call(compiled, Command(resume="yes"), config)["value"] == "yes"


def test_s061_a_failure_before_the_pause_is_retried_and_one_question_is_asked(shelf: Shelf, call: Call) -> None:
    runs: list[int] = []
    policy = RetryPolicy(max_attempts=3, initial_interval=0, jitter=False, retry_on=Exception)

    def ask(state: State) -> State:
        runs.append(1)
        if len(runs) < 3:
            raise OSError("down")
        return {"value": interrupt("go?")}

    graph = StateGraph(State).add_node("ask", ask, retry_policy=policy).add_edge(START, "ask")
    compiled, config = graph.compile(checkpointer=shelf.open()), thread()
    assert texts(call(compiled, {"log": []}, config)) == ["go?"]
    assert len(runs) == 3
    assert len(shelf.open().pending(answerable=False)) == 1
    assert call(compiled, Command(resume="yes"), config)["value"] == "yes"


def test_s061_a_failure_after_the_answer_is_retried_with_the_answer(shelf: Shelf, call: Call) -> None:
    runs: list[int] = []
    policy = RetryPolicy(max_attempts=3, initial_interval=0, jitter=False, retry_on=Exception)

    def ask(state: State) -> State:
        answer = interrupt("go?")
        runs.append(1)
        if len(runs) < 3:
            raise OSError("down")
        return {"value": answer}

    graph = StateGraph(State).add_node("ask", ask, retry_policy=policy).add_edge(START, "ask")
    compiled, config = graph.compile(checkpointer=shelf.open()), thread()
    call(compiled, {"log": []}, config)
    assert call(compiled, Command(resume="yes"), config)["value"] == "yes"
    assert len(runs) == 3
    assert [q.status for q in shelf.open().pending(answerable=False)] == ["answered"]


def test_s061_an_awaited_pause_is_not_retried(shelf: Shelf) -> None:
    runs: list[int] = []
    policy = RetryPolicy(max_attempts=5, initial_interval=0, jitter=False, retry_on=BaseException)  # type: ignore[arg-type]

    async def ask(state: State) -> State:
        runs.append(1)
        return {"value": interrupt("go?")}

    graph = StateGraph(State).add_node("ask", ask, retry_policy=policy).add_edge(START, "ask")
    compiled = graph.compile(checkpointer=shelf.open())
    assert texts(asyncio.run(compiled.ainvoke({"log": []}, thread()))) == ["go?"]
    assert runs == [1]
