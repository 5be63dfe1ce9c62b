"""Graphs in graphs with a memory of their own (`checkpointer=True`): what they keep, what they see on other branches."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, builder, chain, ids, thread
from waitpoint.errors import UsageError
from waitpoint.func import entrypoint
from waitpoint.graph import END, START, StateGraph
from waitpoint.interrupts import step
from waitpoint.types import Command, Send, interrupt


class Own(TypedDict, total=False):
    """A key that the parent knows and one that it does not."""

    value: Any
    own: Annotated[list[Any], operator.add]


def remembering(*, asks: bool = True, checkpointer: Any = True, **options: Any) -> Any:
    """Compile a graph whose value tells what it remembered at the start of its call."""

    def note(state: Own) -> Any:
        return {"own": [len(state.get("own", []))]}

    def ask(state: Own) -> Any:
        answer = interrupt("ok?") if asks else "yes"
        return {"own": [answer], "value": list(state["own"])}

    return builder(note, ask, schema=Own).compile(checkpointer=checkpointer, **options)


def outer(saver: Any, *nodes: tuple[str, Any], **options: Any) -> Any:
    """Compile nodes one after the other under the given names."""
    graph: Any = StateGraph(State)
    before = START
    for name, node in nodes:
        graph.add_node(name, node).add_edge(before, name)
        before = name
    return graph.compile(checkpointer=saver, **options)


def caller(inner: Any, **given: Any) -> Any:
    """Return a node that invokes a graph."""

    def calls(state: State) -> State:
        return {"value": inner.invoke({"value": None, **given})["value"]}

    return calls


def past(graph: Any, config: Any, after: str) -> list[Any]:
    """Return the checkpoints at which this node was due, the oldest first."""
    return [s for s in reversed(list(graph.get_state_history(config))) if s.next == (after,)]


# --- what it keeps ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nesting", ["a node", "a function"])
@pytest.mark.parametrize("asks", [False, True])
def test_state_accumulates_over_runs_of_the_parent(store: Store, call: Call, nesting: str, *, asks: bool) -> None:
    """B129"""
    config = thread()

    def made() -> Any:
        inner = remembering(asks=asks)
        return outer(store.again(), ("inner", inner if nesting == "a node" else caller(inner)))

    seen = []
    for n in range(3):
        result = call(made(), {"log": [], "value": n}, config)
        if asks:
            assert [i.value for i in asked(result)] == ["ok?"]
            result = call(made(), Command(resume="yes"), config)
        seen.append(result["value"])
    assert seen == [[0], [0, "yes", 2], [0, "yes", 2, "yes", 4]]


def test_another_thread_has_another_memory(saver: Any, call: Call) -> None:
    """B129"""
    graph = outer(saver, ("inner", remembering(asks=False)))
    for _ in range(2):
        assert call(graph, {"log": []}, thread())["value"] == [0]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_memory_is_kept_with_every_durability(store: Store, call: Call, durability: str) -> None:
    """B117, B129"""
    config = thread()

    def made() -> Any:
        inner = remembering()
        plain = remembering(asks=False)
        twice = outer(None, ("one", inner), ("two", plain), ("again", outer(None, ("low", plain))))
        return outer(store.again(), ("twice", twice))

    seen = []
    for _ in range(3):
        call(made(), {"log": []}, config, durability=durability)
        seen.append(call(made(), Command(resume="yes"), config, durability=durability)["value"])
    assert [len(s) for s in seen] == [1, 3, 5]


def test_a_loop_asks_in_each_visit_and_keeps_its_memory(store: Store, call: Call) -> None:
    """B111, S035"""
    config = thread()

    def made() -> Any:
        graph: Any = StateGraph(State).add_node("inner", remembering()).add_node("log", log).add_edge(START, "inner")
        graph.add_edge("inner", "log").add_conditional_edges("log", lambda s: END if len(s["log"]) == 3 else "inner")
        return graph.compile(checkpointer=store.again())

    def log(state: State) -> State:
        return {"log": [len(state["value"])]}

    call(made(), {"log": []}, config)
    results = [call(made(), Command(resume=n), config) for n in range(3)]
    assert ["__interrupt__" in r for r in results] == [True, True, False]
    assert results[-1]["log"] == [1, 3, 5]
    assert results[-1]["value"] == [0, 0, 2, 1, 4]


@pytest.mark.parametrize("durability", ["async", "exit"])
def test_a_loop_in_one_run_builds_on_each_visit(saver: Any, call: Call, durability: str) -> None:
    """B111"""

    def log(state: State) -> State:
        return {"log": [len(state["value"])]}

    graph: Any = StateGraph(State).add_node("inner", remembering(asks=False)).add_node("log", log)
    graph.add_edge(START, "inner").add_edge("inner", "log")
    graph.add_conditional_edges("log", lambda s: END if len(s["log"]) == 3 else "inner")
    graph, config = graph.compile(checkpointer=saver), thread()
    assert call(graph, {"log": []}, config, durability=durability)["log"] == [1, 3, 5]
    assert len(graph.get_state(thread(config["configurable"]["thread_id"], checkpoint_ns="inner")).values["own"]) == 6


def test_two_under_different_names_do_not_share(saver: Any, call: Call) -> None:
    """B131"""
    inner = remembering(asks=False)
    graph, config = outer(saver, ("one", inner), ("log", keep), ("two", inner)), thread()
    for n in (1, 3, 5):
        result = call(graph, {"log": []}, config)
        assert (len(result["log"][-1]), len(result["value"])) == (n, n)


def keep(state: State) -> State:
    return {"log": [list(state["value"])]}


def test_two_calls_in_one_function_do_not_share(saver: Any, call: Call) -> None:
    """B130, B132"""
    inner = remembering(asks=False)

    def calls(state: State) -> State:
        return {"log": [len(inner.invoke({"value": n})["value"]) for n in range(2)]}

    graph, config = outer(saver, ("calls", calls)), thread()
    call(graph, {"log": []}, config)
    assert call(graph, {"log": []}, config)["log"] == [1, 1, 3, 3]


def test_parallel_ones_keep_apart_and_ask_side_by_side(store: Store, call: Call) -> None:
    """B129, B131"""
    config = thread()

    def asking(name: str) -> Any:
        def ask(state: Own) -> Any:
            return {"own": [interrupt(f"{name}?")], "log": [(name, len(state.get("own", [])))]}

        class Logged(Own, total=False):
            log: Annotated[list[Any], operator.add]

        return builder(ask, schema=Logged).compile(checkpointer=True)

    def made() -> Any:
        graph: Any = StateGraph(State)
        for name in ("one", "two"):
            inner = asking(name)
            graph.add_node(name, lambda s, inner=inner: {"log": inner.invoke({})["log"][-1:]}).add_edge(START, name)
        return graph.compile(checkpointer=store.again())

    for n in range(2):
        found = ids(call(made(), {"log": []}, config))
        assert set(found) == {"one?", "two?"}
        rest = call(made(), Command(resume={found["two?"]: 2}), config)
        assert [i.value for i in asked(rest)] == ["one?"]
        result = call(made(), Command(resume=1), config)
        assert sorted(result["log"][-2:]) == [("one", n), ("two", n)]


def test_inner_nodes_that_finished_do_not_run_again_after_the_answer(saver: Any, call: Call) -> None:
    """S033, with a memory"""
    runs: list[str] = []

    def first(state: Own) -> Any:
        runs.append("first")
        return {"own": [1]}

    def ask(state: Own) -> Any:
        runs.append("ask")
        return {"own": [interrupt("one?"), interrupt("two?")]}

    def calls(state: State) -> State:
        runs.append("calls")
        return {"value": inner.invoke({})["own"]}

    inner = builder(first, ask, schema=Own).compile(checkpointer=True)
    graph, config = outer(saver, ("calls", calls)), thread()
    call(graph, {"log": []}, config)
    call(graph, Command(resume="a"), config)
    assert call(graph, Command(resume="b"), config)["value"] == [1, "a", "b"]
    assert runs == ["calls", "first", "ask", "calls", "ask", "calls", "ask"]


def test_three_levels_each_keep_what_they_are_told_to(store: Store, call: Call) -> None:
    """B111: a memory inside a graph without one, and a graph without one inside a memory"""
    config = thread()

    def made(middle: Any, low: Any) -> Any:
        graph = outer(middle, ("low", remembering(checkpointer=low)), ("log", keep))
        return outer(store.again(), ("middle", graph))

    for middle, low, lengths in ((None, True, [1, 3]), (True, None, [1, 1]), (True, True, [1, 3])):
        config = thread()
        results = []
        for _ in range(2):
            call(made(middle, low), {"log": []}, config)
            results.append(call(made(middle, low), Command(resume="yes"), config))
        assert [len(r["value"]) for r in results] == lengths


def test_an_entrypoint_with_a_memory_has_its_previous_value(saver: Any, call: Call) -> None:
    """B129, for functions"""

    @entrypoint(checkpointer=True)
    def counts(given: int, *, previous: int | None = None) -> int:
        return (previous or 0) + given

    def calls(state: State) -> State:
        return {"value": counts.invoke(2)}

    graph, config = outer(saver, ("calls", calls)), thread()
    assert [call(graph, {"log": []}, config)["value"] for _ in range(3)] == [2, 4, 6]


def test_a_memory_called_in_a_step_is_that_of_the_function(saver: Any, call: Call) -> None:
    """B130: a recorded effect runs once a task, and what it calls goes on in the next run"""
    inner = remembering(asks=False)

    def look(n: int) -> int:
        return len(inner.invoke({"value": n})["value"])

    def calls(state: State) -> State:
        found = [step(look, 1), step(look, 2)]
        interrupt("go on?")
        return {"log": found}

    graph, config = outer(saver, ("calls", calls)), thread()
    for _ in range(2):
        call(graph, {"log": []}, config)
        result = call(graph, Command(resume="yes"), config)
    assert result["log"] == [1, 1, 3, 3]


# --- where it is ------------------------------------------------------------------------------------------------------


def test_its_namespace_is_the_name_of_its_node(saver: Any, call: Call, streamed: Call) -> None:
    """B130"""
    low = remembering()

    def calls(state: State) -> State:
        low.invoke({"value": 1})
        return {"value": low.invoke({"value": 2})["value"]}

    graph, config = outer(saver, ("middle", outer(None, ("calls", calls)))), thread()
    call(graph, {"log": []}, config)
    parts = streamed(graph, Command(resume="yes"), config, subgraphs=True)
    task = graph.get_state(config).tasks[0]
    inside = {ns for ns, part in parts if "note" in part or "ask" in part}
    assert inside == {("middle", "calls"), ("middle", "calls", "1")}
    for ns in ("middle|calls", "middle|calls|1"):
        where = thread(config["configurable"]["thread_id"], checkpoint_ns=ns)
        assert graph.get_state(where).values
        assert [s.metadata["step"] for s in graph.get_state_history(where)][-1] == -1
    (question,) = saver.pending()
    assert (question.ns, question.path) == ("middle|calls|1", ("middle", "calls", "ask"))
    assert task.interrupts[0].id == question.id


def test_its_state_can_be_read_during_and_after_a_run(store: Store, call: Call) -> None:
    """B101, B130"""
    config = thread("read")
    inside = thread("read", checkpoint_ns="inner")
    made = lambda: outer(store.again(), ("inner", remembering()))  # noqa: E731
    question = asked(call(made(), {"log": []}, config))[0].id
    paused = made().get_state(config, subgraphs=True).tasks[0]
    assert [i.id for i in paused.interrupts] == [question]
    assert (paused.state.next, [i.id for i in paused.state.interrupts]) == (("ask",), [question])
    assert made().get_state(inside).next == ("ask",)
    assert [i.id for i in made().get_state(inside).interrupts] == [question]
    call(made(), Command(resume="yes"), config)
    assert made().get_state(inside).values["own"] == [0, "yes"]
    asking = next(s for s in made().get_state_history(inside) if s.next == ("ask",))
    assert [i.id for t in asking.tasks for i in t.interrupts] == [question]


# --- other branches ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nesting", ["a node", "a function", "two levels"])
def test_a_replay_sees_the_memory_of_then(store: Store, call: Call, nesting: str) -> None:
    """B109, B111: with a node before it, so that the fork lies before the call"""
    config = thread()

    def made() -> Any:
        inner = remembering(asks=False)
        nodes = {"a node": inner, "a function": caller(inner), "two levels": outer(True, ("low", inner))}
        return outer(store.again(), ("before", lambda s: {"log": ["before"]}), ("inner", nodes[nesting]))

    for _ in range(3):
        call(made(), {"log": []}, config)
    for due in ("before", "inner"):
        replays = [call(made(), None, s.config)["value"] for s in past(made(), config, due)[:3]]
        assert [len(r) for r in replays] == [1, 3, 5]
    # The last replay was of the third run, so a fourth one builds on it.
    assert len(call(made(), {"log": []}, config)["value"]) == 7


def test_a_replay_of_the_first_run_sees_nothing_and_what_follows_builds_on_it(store: Store, call: Call) -> None:
    """B109, with questions"""
    config = thread()
    made = lambda: outer(store.again(), ("inner", remembering()))  # noqa: E731
    for answer in ("a", "b"):
        call(made(), {"log": []}, config)
        call(made(), Command(resume=answer), config)
    first, second = past(made(), config, "inner")
    asked(call(made(), None, first.config))
    assert call(made(), Command(resume="c"), config)["value"] == [0]
    call(made(), {"log": []}, config)
    assert call(made(), Command(resume="d"), config)["value"] == [0, "c", 2]
    asked(call(made(), None, second.config))  # of the old branch
    assert call(made(), Command(resume="e"), config)["value"] == [0, "a", 2]
    call(made(), {"log": []}, config)
    assert call(made(), Command(resume="f"), config)["value"] == [0, "a", 2, "e", 4]


def test_a_replay_of_a_replay_stays_on_its_branch(saver: Any, call: Call) -> None:
    """B109"""
    graph, config = outer(saver, ("inner", remembering(asks=False))), thread()
    for _ in range(2):
        call(graph, {"log": []}, config)
    first, second = past(graph, config, "inner")
    for _ in range(3):
        assert len(call(graph, None, first.config)["value"]) == 1
        forked = past(graph, config, "inner")[-1]
        assert len(call(graph, {"log": []}, config)["value"]) == 3
        assert len(call(graph, None, forked.config)["value"]) == 1
    assert len(call(graph, None, second.config)["value"]) == 3


@pytest.mark.parametrize("how", ["update", "new input"])
def test_a_fork_sees_the_memory_of_its_base(saver: Any, call: Call, how: str) -> None:
    """B109"""
    graph, config = outer(saver, ("first", lambda s: {"log": [1]}), ("inner", remembering(asks=False))), thread()
    for _ in range(3):
        call(graph, {"log": []}, config)
    base = past(graph, config, "inner")[1]
    if how == "update":
        result = call(graph, None, graph.update_state(base.config, {"log": ["changed"]}))
    else:
        result = call(graph, {"log": ["again"]}, base.config)
    assert len(result["value"]) == 3
    assert len(call(graph, {"log": []}, config)["value"]) == 5


def test_parallel_memories_go_back_independently(saver: Any, call: Call) -> None:
    """B111"""

    def calling(inner: Any) -> Any:
        return lambda s: {"log": [len(inner.invoke({})["value"])]}

    graph: Any = StateGraph(State).add_node("one", calling(remembering(asks=False))).add_edge(START, "one")
    graph = graph.add_node("two", calling(remembering(asks=False)))
    graph.add_conditional_edges(START, lambda s: "two" if s.get("value") else END)
    graph, config = graph.compile(checkpointer=saver), thread()
    for both in (True, False, True):
        call(graph, {"log": [], "value": both}, config)
    assert graph.get_state(config).values["log"] == [1, 1, 3, 5, 3]
    second = next(s for s in graph.get_state_history(config) if s.next == ("one",))
    assert call(graph, None, second.config)["log"] == [1, 1, 3]
    assert call(graph, {"log": [], "value": True}, config)["log"][-2:] == [5, 3]


# --- what does not go together ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("asks", [False, True])
def test_two_tasks_of_a_step_cannot_share_a_memory(saver: Any, call: Call, *, asks: bool) -> None:
    """B131: each Send to one node would write to it"""
    graph: Any = StateGraph(State).add_node("work", remembering(asks=asks))
    graph.add_conditional_edges(START, lambda s: [Send("work", {"value": n}) for n in (1, 2)], ["work"])
    graph = graph.compile(checkpointer=saver)
    with pytest.raises(UsageError, match=r"checkpointer=True, is called twice at once as 'work'"):
        call(graph, {"log": []}, thread(), **({} if asks else {"durability": "sync"}))


def test_two_tasks_of_a_step_cannot_share_a_memory_further_down(saver: Any, call: Call) -> None:
    """B131"""
    middle = outer(None, ("low", remembering(asks=False)))
    graph: Any = StateGraph(State).add_node("work", lambda s: {"log": [middle.invoke(s)["value"]]})
    graph.add_conditional_edges(START, lambda s: [Send("work", {"value": n}) for n in (1, 2)], ["work"])
    with pytest.raises(UsageError, match=r"is called twice at once as 'work\|low'"):
        call(graph.compile(checkpointer=saver), {"log": []}, {**thread(), "max_concurrency": 1})


def test_a_memory_needs_a_saver_somewhere_around_it(call: Call) -> None:
    """B129"""
    inner = remembering(name="inner")
    for nesting in (inner, caller(inner)):
        with pytest.raises(UsageError, match=r"'inner' was compiled with checkpointer=True.*in node 'inner'"):
            call(outer(None, ("inner", nesting)), {"log": []})


def test_a_memory_of_its_own_is_not_for_the_outermost_graph(call: Call) -> None:
    """B129"""
    with pytest.raises(UsageError, match="is for graphs inside another graph"):
        call(remembering(), {"value": 1}, thread())


def test_new_input_on_a_waiting_memory_goes_on_from_what_it_had(saver: Any, call: Call) -> None:
    """B129: the question is withdrawn, and what was done before it stays"""
    graph, config = outer(saver, ("inner", remembering())), thread()
    call(graph, {"log": []}, config)
    call(graph, {"log": []}, config, on_pending="withdraw")
    assert call(graph, Command(resume="yes"), config)["value"] == [0, 1]
    assert saver.pending() == []


def test_a_failure_inside_goes_on_where_it_failed(saver: Any, call: Call) -> None:
    """B129"""
    runs: list[str] = []

    def first(state: Own) -> Any:
        runs.append("first")
        return {"own": ["first"]}

    def flaky(state: Own) -> Any:
        runs.append("flaky")
        if runs.count("flaky") == 1:
            raise ValueError("not yet")
        return {"value": list(state["own"])}

    graph, config = outer(saver, ("inner", builder(first, flaky, schema=Own).compile(checkpointer=True))), thread()
    with pytest.raises(ValueError, match="not yet"):
        call(graph, {"log": []}, config)
    assert call(graph, None, config)["value"] == ["first"]
    assert runs == ["first", "flaky", "flaky"]
    assert call(graph, {"log": []}, config)["value"] == ["first"] * 2


def test_a_hand_over_to_the_parent_keeps_what_was_done_before_it(saver: Any, call: Call) -> None:
    """B129, with Command.PARENT"""

    def note(state: Own) -> Any:
        return {"own": [len(state.get("own", []))]}

    def leave(state: Own) -> Any:
        return Command(graph=Command.PARENT, update={"log": [list(state["own"])]}, goto="last")

    graph: Any = StateGraph(State).add_node("inner", builder(note, leave, schema=Own).compile(checkpointer=True))
    graph = graph.add_node("last", lambda s: {"log": ["last"]}).add_edge(START, "inner").compile(checkpointer=saver)
    config = thread()
    call(graph, {"log": []}, config)
    assert call(graph, {"log": []}, config)["log"] == [[0], "last", [0, 1], "last"]


def test_a_chain_of_forks_keeps_one_memory_for_each_branch(saver: Any, call: Call) -> None:
    """B109: whatever was replayed in between"""
    graph, config = chain(saver, caller(remembering(asks=False))), thread()
    call(graph, {"log": []}, config)
    root = past(graph, config, "calls")[0]
    branches = []
    for _ in range(3):
        assert len(call(graph, None, root.config)["value"]) == 1
        assert len(call(graph, {"log": []}, config)["value"]) == 3
        branches.append(past(graph, config, "calls")[-1])
    for branch in branches:
        assert len(call(graph, None, branch.config)["value"]) == 3
