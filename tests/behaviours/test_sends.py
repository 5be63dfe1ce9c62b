"""Fan-outs: tasks made by `Send`, joins, and the fixed order in which a step's writes are applied."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, builder, ids, thread
from waitpoint.errors import InvalidUpdateError
from waitpoint.graph import END, START, StateGraph
from waitpoint.types import Command, Send, interrupt


def work(item: Any) -> State:
    return {"log": [item]}


def mapped(saver: Any, sends: list[Any], **options: Any) -> Any:
    """Compile a map: Sends out of a first node, and a last node behind the workers."""
    graph: Any = StateGraph(State).add_node("split", lambda s: {"log": ["split"]}).add_node("work", work)
    graph.add_node("plain", lambda s: {"log": ["plain"]}).add_node("last", lambda s: {"log": ["last"]})
    graph.add_edge(START, "split").add_conditional_edges("split", lambda s: sends).add_edge("work", "last")
    return graph.compile(checkpointer=saver, **options)


# --- Send -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("from_where", ["a router", "a command", "the entry"])
def test_a_send_runs_a_node_in_the_next_step_with_its_own_input(saver: Any, call: Call, from_where: str) -> None:
    """B151"""
    sends = [Send("work", n) for n in (3, 1, 2)]
    if from_where == "a router":
        graph, before = mapped(saver, sends), ["split"]
    else:
        made: Any = StateGraph(State).add_node("work", work).add_node("last", lambda s: {"log": ["last"]})
        made.add_edge("work", "last")
        if from_where == "a command":
            made.add_node("split", lambda s: Command(update={"log": ["split"]}, goto=sends)).add_edge(START, "split")
            before = ["split"]
        else:
            made.add_conditional_edges(START, lambda s: sends)
            before = []
        graph = made.compile(checkpointer=saver)
    config = thread()
    assert call(graph, {"log": []}, config)["log"] == [*before, 3, 1, 2, "last"]
    step = next(s for s in graph.get_state_history(config) if "work" in s.next)
    assert step.next == ("work", "work", "work")
    assert len({t.id for t in step.tasks}) == 3


@pytest.mark.parametrize("arg", [None, 0, "", {}, [], {"any": {"thing": [1]}}, (1, 2)])
def test_every_value_can_be_sent(store: Store, call: Call, arg: Any) -> None:
    """B151: and comes back of the same type in another process"""
    graph, config = mapped(store.saver, [Send("work", arg)]), thread()
    call(graph, {"log": []}, config, interrupt_before=["work"])
    (sent,) = call(mapped(store.again(), []), None, config)["log"][1:-1]
    assert sent == arg
    assert type(sent) is type(arg)


def test_an_empty_fan_out_ends_the_run(saver: Any, call: Call) -> None:
    """B151"""
    assert call(mapped(saver, []), {"log": []}, thread())["log"] == ["split"]


def test_sends_out_of_sent_tasks(saver: Any, call: Call) -> None:
    """B151"""

    def halve(n: int) -> Any:
        goto = [Send("halve", n // 2)] if n > 1 else END
        return Command(update={"log": [n]}, goto=goto)

    graph: Any = StateGraph(State).add_node("halve", halve)
    graph.add_conditional_edges(START, lambda s: [Send("halve", 4), Send("halve", 3)])
    assert call(graph.compile(checkpointer=saver), {"log": []}, thread())["log"] == [4, 3, 2, 1, 1]


def test_a_send_to_an_unknown_node_is_an_error_with_its_name(saver: Any, call: Call) -> None:
    """B151"""
    with pytest.raises(InvalidUpdateError, match="unknown node 'nowhere'"):
        call(mapped(saver, [Send("nowhere", 1)]), {"log": []}, thread())


def test_sent_tasks_run_at_the_same_time(saver: Any) -> None:
    """B151: each waits for the other, so one after the other would never end"""
    both = threading.Barrier(2, timeout=10)

    def meet(item: int) -> State:
        both.wait()
        return {"log": [item]}

    graph: Any = StateGraph(State).add_node("meet", meet)
    graph.add_conditional_edges(START, lambda s: [Send("meet", 1), Send("meet", 2)])
    assert graph.compile(checkpointer=saver).invoke({"log": []}, thread())["log"] == [1, 2]


def test_sent_coroutines_run_at_the_same_time(saver: Any) -> None:
    """B151"""

    async def both() -> Any:
        arrived = {1: asyncio.Event(), 2: asyncio.Event()}

        async def meet(item: int) -> State:
            arrived[item].set()
            await arrived[3 - item].wait()
            return {"log": [item]}

        graph: Any = StateGraph(State).add_node("meet", meet)
        graph.add_conditional_edges(START, lambda s: [Send("meet", 1), Send("meet", 2)])
        return await graph.compile(checkpointer=saver).ainvoke({"log": []}, thread())

    assert asyncio.run(both())["log"] == [1, 2]


def test_max_concurrency_limits_how_many_run_at_once(saver: Any) -> None:
    """B151: a second task never starts while the first still runs"""
    overlaps: list[int] = []
    started = {n: threading.Event() for n in range(4)}

    def watch(item: int) -> State:
        started[item].set()
        if item + 1 in started and started[item + 1].wait(0.05):
            overlaps.append(item)
        return {"log": [item]}

    graph: Any = StateGraph(State).add_node("watch", watch)
    graph.add_conditional_edges(START, lambda s: [Send("watch", n) for n in range(4)])
    config = {**thread(), "max_concurrency": 1}
    assert graph.compile(checkpointer=saver).invoke({"log": []}, config)["log"] == [0, 1, 2, 3]
    assert overlaps == []


@pytest.mark.parametrize("limit", [1, 2])
def test_max_concurrency_limits_coroutines_too(saver: Any, limit: int) -> None:
    """B151"""
    running: set[int] = set()
    most: list[int] = []

    async def watch(item: int) -> State:
        running.add(item)
        most.append(len(running))
        for _ in range(20):  # every other task gets its turn on the loop
            await asyncio.sleep(0)
        running.remove(item)
        return {"log": [item]}

    graph: Any = StateGraph(State).add_node("watch", watch)
    graph.add_conditional_edges(START, lambda s: [Send("watch", n) for n in range(6)])
    config = {**thread(), "max_concurrency": limit}
    assert asyncio.run(graph.compile(checkpointer=saver).ainvoke({"log": []}, config))["log"] == list(range(6))
    assert max(most) == limit


def test_a_sent_input_changed_in_place_does_not_reach_the_next_attempt(saver: Any, call: Call) -> None:
    """B151"""
    seen: list[Any] = []

    def ask(item: dict[str, Any]) -> State:
        seen.append(dict(item))
        item["changed"] = True
        return {"log": [interrupt("ok?")]}

    graph: Any = StateGraph(State).add_node("ask", ask)
    graph.add_conditional_edges(START, lambda s: [Send("ask", {"n": 1})])
    graph, config = graph.compile(checkpointer=saver), thread()
    call(graph, {"log": []}, config)
    call(graph, Command(resume="yes"), config)
    assert seen == [{"n": 1}, {"n": 1}]


def test_only_the_sent_task_that_asked_runs_again(saver: Any, call: Call) -> None:
    """B29, B151"""
    runs: list[int] = []

    def some(item: int) -> State:
        runs.append(item)
        return {"log": [(item, interrupt(f"{item}?") if item % 2 else "even")]}

    graph: Any = StateGraph(State).add_node("some", some)
    graph.add_conditional_edges(START, lambda s: [Send("some", n) for n in range(4)])
    graph, config = graph.compile(checkpointer=saver), thread()
    found = ids(call(graph, {"log": []}, config))
    assert set(found) == {"1?", "3?"}
    call(graph, Command(resume={found["3?"]: "c"}), config)
    result = call(graph, Command(resume={found["1?"]: "a"}), config)
    assert result["log"] == [(0, "even"), (1, "a"), (2, "even"), (3, "c")]
    assert sorted(runs) == [0, 1, 1, 2, 3, 3]


# --- the order of writes ----------------------------------------------------------------------------------------------


class Reversed:
    """Nodes that end in the reverse of their order: each waits for the one after it."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.done = {name: threading.Event() for name in names}

    def ends(self, name: str) -> None:
        later = self.names[self.names.index(name) + 1 :]
        if later:
            assert self.done[later[0]].wait(10)
        self.done[name].set()

    def node(self, name: str) -> Any:
        def node(state: Any) -> State:
            self.ends(name)
            return {"log": [name]}

        return node

    def worker(self, name: str) -> State:
        self.ends(name)
        return {"log": [name]}


def test_writes_are_applied_by_name_then_sends_as_sent_not_by_completion(saver: Any, call: Call) -> None:
    """B152"""
    order = Reversed("a", "b", "c", "s2", "s1")
    graph: Any = StateGraph(State)
    for name in ("c", "a", "b"):
        graph.add_node(name, order.node(name)).add_edge(START, name)
    graph.add_node("worker", order.worker)
    graph.add_conditional_edges(START, lambda s: [Send("worker", "s2"), Send("worker", "s1")])
    graph, config = graph.compile(checkpointer=saver), thread()
    assert call(graph, {"log": []}, config)["log"] == ["a", "b", "c", "s2", "s1"]


def test_the_order_holds_when_siblings_finish_in_another_call(saver: Any, call: Call) -> None:
    """B152"""
    graph: Any = StateGraph(State)
    graph.add_node("a", lambda s: {"log": [("a", interrupt("a?"))]}).add_node("b", lambda s: {"log": ["b"]})
    graph.add_node("c", lambda s: {"log": [("c", interrupt("c?"))]})
    for name in ("c", "b", "a"):
        graph.add_edge(START, name)
    graph, config = graph.compile(checkpointer=saver), thread()
    found = ids(call(graph, {"log": []}, config))
    call(graph, Command(resume={found["c?"]: 3}), config)
    assert call(graph, Command(resume=1), config)["log"] == [("a", 1), "b", ("c", 3)]


# --- mixed, and joins -------------------------------------------------------------------------------------------------


def test_a_router_may_mix_sends_and_names(saver: Any, call: Call) -> None:
    """B153"""
    graph = mapped(saver, [Send("work", 2), "plain", Send("work", 1), END])
    assert call(graph, {"log": []}, thread())["log"] == ["split", "plain", 2, 1, "last"]


def test_a_path_map_applies_to_names_and_not_to_sends(saver: Any, call: Call) -> None:
    """B153"""
    graph: Any = builder(split_of).add_node("work", work).add_node("plain", lambda s: {"log": ["plain"]})
    graph.add_conditional_edges("split_of", lambda s: ["yes", Send("work", 1)], {"yes": "plain", "no": END})
    assert call(graph.compile(checkpointer=saver), {"log": []}, thread())["log"] == ["plain", 1]


def split_of(state: State) -> State:
    return {}


def test_an_edge_out_of_sent_tasks_fires_once(saver: Any, call: Call) -> None:
    """B154"""
    log = call(mapped(saver, [Send("work", n) for n in range(5)]), {"log": []}, thread())["log"]
    assert log == ["split", 0, 1, 2, 3, 4, "last"]


def test_an_edge_out_of_sent_tasks_waits_for_one_that_asks(saver: Any, call: Call) -> None:
    """B154"""

    def some(item: int) -> State:
        return {"log": [interrupt("ok?") if item == 2 else item]}

    graph: Any = StateGraph(State).add_node("some", some).add_node("last", lambda s: {"log": ["last"]})
    graph.add_conditional_edges(START, lambda s: [Send("some", n) for n in (1, 2, 3)]).add_edge("some", "last")
    graph, config = graph.compile(checkpointer=saver), thread()
    assert asked(call(graph, {"log": []}, config))[0].value == "ok?"
    assert call(graph, Command(resume="yes"), config)["log"] == [1, "yes", 3, "last"]


def test_a_list_edge_waits_for_all_over_steps(saver: Any, call: Call) -> None:
    """B155"""
    graph: Any = StateGraph(State)
    for name in ("short", "long1", "long2", "join"):
        graph.add_node(name, lambda s, name=name: {"log": [name]})
    graph.add_edge(START, "short").add_edge(START, "long1").add_edge("long1", "long2")
    graph.add_edge(["short", "long2"], "join")
    assert call(graph.compile(checkpointer=saver), {"log": []}, thread())["log"] == ["long1", "short", "long2", "join"]


def test_two_single_edges_do_not_wait_for_each_other(saver: Any, call: Call) -> None:
    """B155"""
    graph: Any = StateGraph(State)
    for name in ("short", "long1", "long2", "join"):
        graph.add_node(name, lambda s, name=name: {"log": [name]})
    graph.add_edge(START, "short").add_edge(START, "long1").add_edge("long1", "long2")
    graph.add_edge("short", "join").add_edge("long2", "join")
    log = call(graph.compile(checkpointer=saver), {"log": []}, thread())["log"]
    assert log == ["long1", "short", "join", "long2", "join"]


def test_a_join_waits_over_a_pause_and_another_process(store: Store, call: Call) -> None:
    """B155"""

    def made(saver: Any) -> Any:
        graph: Any = StateGraph(State).add_node("quick", lambda s: {"log": ["quick"]})
        graph.add_node("ask", lambda s: {"log": [interrupt("ok?")]}).add_node("join", lambda s: {"log": ["join"]})
        graph.add_node("step", lambda s: {"log": ["step"]})
        graph.add_edge(START, "quick").add_edge(START, "step").add_edge("step", "ask")
        return graph.add_edge(["quick", "ask"], "join").compile(checkpointer=saver)

    config = thread()
    call(made(store.saver), {"log": []}, config)
    assert call(made(store.again()), Command(resume="yes"), config)["log"] == ["quick", "step", "yes", "join"]


def test_a_join_in_a_loop_waits_anew_each_round(saver: Any, call: Call) -> None:
    """B155"""
    graph: Any = StateGraph(State)
    graph.add_node("fork", lambda s: {"log": ["fork"]}).add_node("a", lambda s: {"log": ["a"]})
    graph.add_node("b", lambda s: {"log": ["b"]}).add_node("join", lambda s: {"log": ["join"]})
    graph.add_edge(START, "fork").add_edge("fork", "a").add_edge("fork", "b").add_edge(["a", "b"], "join")
    graph.add_conditional_edges("join", lambda s: "fork" if s["log"].count("join") < 2 else END)
    log = call(graph.compile(checkpointer=saver), {"log": []}, thread())["log"]
    assert log == ["fork", "a", "b", "join"] * 2


def test_two_joins_of_the_same_sources_both_fire(saver: Any, call: Call) -> None:
    """B155"""
    graph: Any = StateGraph(State)
    for name in ("a", "b", "join1", "join2"):
        graph.add_node(name, lambda s, name=name: {"log": [name]})
    graph.add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "join1").add_edge(["b", "a"], "join2")
    assert call(graph.compile(checkpointer=saver), {"log": []}, thread())["log"] == ["a", "b", "join1", "join2"]
