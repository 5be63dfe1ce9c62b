"""Questions in every place that runs the user's code, and under every way to keep what happened."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, builder, chain, ids, parallel, the_id, thread
from waitpoint.errors import NodeError
from waitpoint.graph import END, START, StateGraph
from waitpoint.types import Command, RetryPolicy, Send, interrupt, step

DURABILITIES = ["sync", "async", "exit"]


def ask(state: State) -> State:
    return {"log": [interrupt("name?")]}


def done(state: State) -> State:
    return {"log": ["done"]}


def test_an_error_handler_may_ask_and_the_failed_node_is_not_run_again(store: Store, call: Call) -> None:
    """B20, B226: the handler runs again for its answer, the node does not"""
    runs: Counter[str] = Counter()

    def node(state: State) -> State:
        runs["node"] += 1
        raise ValueError("broken")

    def handler(state: State, error: NodeError) -> State:
        runs["handler"] += 1
        return {"log": [(error.node, interrupt("what now?"))]}

    def graph(saver: Any) -> Any:
        made = builder()
        return made.add_node("node", node, error_handler=handler).add_edge(START, "node").compile(checkpointer=saver)

    config = thread()
    assert asked(call(graph(store.saver), {"log": []}, config))[0].value == "what now?"
    assert call(graph(store.again()), Command(resume="skip it"), config) == {"log": [("node", "skip it")]}
    assert runs == {"node": 1, "handler": 2}


def test_a_retry_takes_the_answer_again(saver: Any, call: Call) -> None:
    """B5: a transient failure after the answer does not ask once more"""
    tries: list[Any] = []

    def node(state: State) -> State:
        tries.append(interrupt("name?"))
        if len(tries) < 3:
            raise ConnectionError("try again")
        return {"log": [tries[-1], interrupt("more?")]}

    graph: Any = builder()
    graph.add_node("node", node, retry_policy=RetryPolicy(max_attempts=3, initial_interval=0, jitter=False))
    compiled, config = graph.add_edge(START, "node").compile(checkpointer=saver), thread()
    call(compiled, {"log": []}, config)
    assert asked(call(compiled, Command(resume="ana"), config))[0].value == "more?"
    assert tries == ["ana"] * 3
    assert call(compiled, Command(resume="no"), config) == {"log": ["ana", "no"]}


@pytest.mark.parametrize("durability", DURABILITIES)
def test_the_router_at_the_start_may_ask(store: Store, call: Call, durability: str) -> None:
    """B1: before any node has run"""

    def graph(saver: Any) -> Any:
        made = builder()
        made.add_node("a", done).add_node("b", ask)
        made.add_conditional_edges(START, lambda state: str(interrupt("where to?")), ["a", "b"])
        return made.compile(checkpointer=saver)

    config = thread()
    (question,) = asked(call(graph(store.saver), {"log": ["in"]}, config, durability=durability))
    assert question.value == "where to?"
    assert graph(store.again()).get_state(config).next == (START,)
    assert call(graph(store.again()), Command(resume="a"), config, durability=durability) == {"log": ["in", "done"]}


def test_a_router_may_ask_after_its_node_and_the_node_is_not_run_again(saver: Any, call: Call) -> None:
    """B7: routers run again from their own first line"""
    runs: Counter[str] = Counter()

    def node(state: State) -> State:
        runs["node"] += 1
        return {"log": [interrupt("node?")]}

    def router(state: State) -> list[Send]:
        runs["router"] += 1
        return [Send("work", {"n": n}) for n in range(interrupt({"log": state["log"]}))]

    def work(given: Any) -> State:
        return {"log": [given["n"]]}

    graph = builder(node)
    graph.add_node("work", work).add_conditional_edges("node", router, ["work"])
    compiled, config = graph.compile(checkpointer=saver), thread()
    call(compiled, {"log": []}, config)
    assert asked(call(compiled, Command(resume="N"), config))[0].value == {"log": ["N"]}
    assert call(compiled, Command(resume=2), config) == {"log": ["N", 0, 1]}
    assert runs == {"node": 2, "router": 2}


@pytest.mark.parametrize("durability", DURABILITIES)
def test_partial_answers_under_every_durability(store: Store, call: Call, durability: str) -> None:
    """B35: nested, sent and plain tasks; the store is opened again before each answer"""
    runs: Counter[str] = Counter()
    lock = threading.Lock()

    def work(given: Any) -> State:
        with lock:
            runs[given["value"]] += 1
        return {"log": [(given["value"], interrupt(given["value"]))]}

    def inner(state: State) -> State:
        runs["inner"] += 1
        first = interrupt("inner 1")
        return {"log": [("inner", first, interrupt("inner 2"))]}

    def before(state: State) -> State:
        runs["before"] += 1
        return {"log": ["before"]}

    def graph(saver: Any) -> Any:
        made = builder(before)
        made.add_node("inner", builder(before, inner).compile()).add_node("work", work).add_node("plain", ask)
        made.add_edge("before", "inner").add_edge("before", "plain")
        made.add_conditional_edges("before", lambda _: [Send("work", {"value": n}) for n in "xy"], ["work"])
        return made.compile(checkpointer=saver)

    config, seen = thread(), {}
    result = call(graph(store.saver), {"log": []}, config, durability=durability)
    for wanted in ("y", "inner 1", "name?", "inner 2", "x"):
        open_ids = ids(result)
        assert all(seen.get(k, v) == v for k, v in open_ids.items())
        seen |= open_ids
        resume = {open_ids[wanted]: wanted.upper()}
        result = call(graph(store.again()), Command(resume=resume), config, durability=durability)
    # The inner graph begins with what the outer one has, so it hands back "before" twice: its input's and its own.
    assert result["log"] == [
        "before", "before", "before", ("inner", "INNER 1", "INNER 2"), "NAME?", ("x", "X"), ("y", "Y"),
    ]  # fmt: skip
    assert runs == {"before": 2, "inner": 3, "x": 2, "y": 2}


@pytest.mark.parametrize("name", [7, UUID(int=7)], ids=["int", "uuid"])
def test_thread_ids_that_become_text_name_one_thread(saver: Any, call: Call, name: Any) -> None:
    """B4"""
    graph = chain(saver, ask)
    call(graph, {"log": []}, {"configurable": {"thread_id": name}})
    assert [q.thread_id for q in saver.pending()] == [str(name)]
    assert call(graph, Command(resume="ana"), {"configurable": {"thread_id": str(name)}}) == {"log": ["ana"]}


class Given(BaseModel):
    log: list[Any] = []
    value: int = 0


def test_a_node_with_a_model_as_its_input_may_ask(saver: Any, call: Call) -> None:
    """B7 with B162"""

    def node(given: Given) -> dict[str, Any]:
        return {"value": given.value + interrupt(given)}

    graph: Any = StateGraph(Given).add_node("node", node).add_edge(START, "node")
    compiled, config = graph.compile(checkpointer=saver), thread()
    assert asked(call(compiled, {"value": 2}, config))[0].value == {"log": [], "value": 2}
    assert call(compiled, Command(resume=3), config)["value"] == 5


def test_an_answer_may_come_with_an_update_and_a_place_to_go(saver: Any, call: Call) -> None:
    """B142: resume, update and goto in one command"""

    def other(state: State) -> State:
        return {"log": ["other"]}

    def after(state: State) -> State:
        return {"log": [f"after {len(state['log'])}"]}

    graph = builder(ask).add_node("other", other).add_node("after", after).add_edge("ask", "after")
    compiled, config = graph.compile(checkpointer=saver), thread()
    call(compiled, {"log": ["in"]}, config)
    result = call(compiled, Command(resume="ana", update={"log": ["updated"]}, goto="other"), config)
    assert result == {"log": ["in", "updated", "ana", "other", "after 4"]}


def test_a_refused_answer_stores_no_update_either(saver: Any, call: Call) -> None:
    """Section 5: before anything else is stored"""
    graph, config = parallel(saver, ask, done), thread()
    call(graph, {"log": []}, config)
    before = graph.get_state(config)
    with pytest.raises(ValueError, match="0" * 32):
        call(graph, Command(resume={"0" * 32: 1}, update={"log": ["updated"]}, goto="done"), config)
    assert graph.get_state(config) == before
    assert call(graph, Command(resume="ana"), config)["log"] == ["ana", "done"]


def test_a_question_may_be_asked_inside_a_recorded_effect(saver: Any, call: Call) -> None:
    """Section 6: a pause out of an effect leaves no doubt about it"""
    runs: list[int] = []

    def effect() -> Any:
        runs.append(1)
        return interrupt("inside?")

    def node(state: State) -> State:
        return {"log": [step(effect, in_doubt="ask"), interrupt("after?")]}

    graph, config = chain(saver, node), thread()
    assert asked(call(graph, {"log": []}, config))[0].value == "inside?"
    assert asked(call(graph, Command(resume="in"), config))[0].value == "after?"
    assert call(graph, Command(resume="out"), config) == {"log": ["in", "out"]}
    assert len(runs) == 2


@pytest.mark.parametrize("value", [None, "", 0, False, [], {}], ids=repr)
def test_an_empty_payload_is_a_question_too(saver: Any, call: Call, value: Any) -> None:
    """B2"""

    def node(state: State) -> State:
        return {"log": [interrupt(value)]}

    graph, config = chain(saver, node), thread()
    (question,) = asked(call(graph, {"log": []}, config))
    assert question.value == value
    assert call(graph, Command(resume={question.id: "yes"}), config) == {"log": ["yes"]}


def test_a_loop_that_asks_until_it_is_told_to_stop(store: Store, call: Call) -> None:
    """B30: many steps, a question in each, the store opened again before every answer"""

    def graph(saver: Any) -> Any:
        made = builder(ask)
        made.add_conditional_edges("ask", lambda s: END if s["log"][-1] == "stop" else "ask")
        return made.compile(checkpointer=saver)

    config, seen = thread(), set()
    result = call(graph(store.saver), {"log": []}, config)
    for n in [*range(12), "stop"]:
        seen.add(the_id(result))
        result = call(graph(store.again()), Command(resume=n), config)
    assert result == {"log": [*range(12), "stop"]}
    assert len(seen) == 13


def test_all_that_a_pause_says_is_equal_wherever_it_is_read(saver: Any, call: Call, streamed: Call) -> None:
    """B6, B17: one pause, five views"""
    graph, config = parallel(saver, ask, done), thread()
    parts = streamed(graph, {"log": ["in"]}, config, stream_mode=["values", "updates"])
    result = call(graph, None, config)
    state = graph.get_state(config)
    values = [p for m, p in parts if m == "values"][-1]
    updates = [p for m, p in parts if m == "updates"][-1]
    assert values["__interrupt__"] == updates["__interrupt__"] == state.interrupts == tuple(asked(result))
    assert values["log"] == result["log"] == state.values["log"] == ["in", "done"]
