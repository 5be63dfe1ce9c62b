"""Changing the state of graphs in graphs: at their pause, at older checkpoints, and their memory."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, builder, chain, ids, thread
from waitpoint.errors import ConfigError, InvalidUpdateError, NotFoundError, UnknownInterruptError
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, StateUpdate, interrupt


def a(state: State) -> State:
    return {"log": ["a"]}


def ask(state: State) -> State:
    return {"log": [f"ask {interrupt('?')}"]}


def last(state: State) -> State:
    return {"log": ["last"]}


def graph_of(saver: Any, *nodes: tuple[str, Any], **options: Any) -> Any:
    """Compile nodes one after the other under the given names."""
    graph: Any = StateGraph(State)
    before = START
    for name, node in nodes:
        graph.add_node(name, node).add_edge(before, name)
        before = name
    return graph.compile(checkpointer=saver, **options)


def nested(saver: Any, inner: Any, nesting: str, **options: Any) -> Any:
    """Put a graph in a node, in a function, or two levels down."""
    node = inner if nesting != "a function" else lambda s: {"log": inner.invoke({"log": []})["log"]}
    graph = graph_of(saver if nesting != "two levels" else None, ("inner", node), ("end", lambda s: {"log": ["end"]}))
    return graph if nesting != "two levels" else graph_of(saver, ("top", graph))


def innermost(graph: Any, config: Any) -> Any:
    """Return the snapshot of the graph that is furthest inside."""
    snapshot = graph.get_state(config, subgraphs=True)
    while snapshot.tasks and snapshot.tasks[0].state is not None:
        snapshot = snapshot.tasks[0].state
    return snapshot


NESTINGS = pytest.mark.parametrize("nesting", ["a node", "a function", "two levels"])


@NESTINGS
@pytest.mark.parametrize("named", ["the checkpoint", "the namespace"])
def test_the_state_at_an_inner_breakpoint_can_be_changed(store: Store, call: Call, nesting: str, named: str) -> None:
    """B72, B77: the run goes on inside, with the plain config"""
    config = thread()
    made = lambda: nested(store.again(), chain(None, a, last, interrupt_before=["last"]), nesting)  # noqa: E731
    call(made(), {"log": []}, config)
    before = innermost(made(), config)
    where = dict(before.config["configurable"])
    if named == "the namespace":
        del where["checkpoint_id"], where["checkpoint_map"]
    changed = made().update_state({"configurable": where}, {"log": ["changed"]})
    after = innermost(made(), config)
    assert changed == after.config
    assert (after.values["log"], after.next, after.metadata["source"]) == (["a", "changed"], ("last",), "update")
    assert after.parent_config == before.config
    assert after.metadata["parents"] == before.metadata["parents"]
    assert call(made(), None, config)["log"] == ["a", "changed", "last", "end"]


@NESTINGS
def test_an_update_at_an_inner_question_asks_it_again(store: Store, call: Call, nesting: str) -> None:
    """B77, B90, inside"""
    config = thread()
    made = lambda: nested(store.again(), chain(None, a, ask), nesting)  # noqa: E731
    (old,) = asked(call(made(), {"log": []}, config))
    made().update_state(innermost(made(), config).config, {"log": ["changed"]})
    assert store.saver.pending() == []
    for late in ("dropped?", {old.id: "late"}):
        with pytest.raises(UnknownInterruptError):
            call(made(), Command(resume=late), config)
    (new,) = asked(call(made(), None, config))
    assert (new.value, new.id != old.id) == ("?", True)
    assert call(made(), Command(resume="yes"), config)["log"] == ["a", "changed", "ask yes", "end"]


@NESTINGS
def test_an_update_of_an_old_inner_checkpoint_forks_the_graphs_around_it(
    store: Store, call: Call, nesting: str
) -> None:
    """B103, B104, B107: after the run has ended"""
    config = thread()
    made = lambda: nested(store.again(), chain(None, a, ask, last), nesting)  # noqa: E731
    call(made(), {"log": []}, config)
    old = innermost(made(), config)
    ended = call(made(), Command(resume="yes"), config)
    changed = made().update_state(old.config, {"log": ["changed"]})
    root = made().get_state(config)
    assert root.metadata["source"] == "fork"
    assert root.parent_config["configurable"]["checkpoint_id"] == old.config["configurable"]["checkpoint_map"][""]
    inside = innermost(made(), config)
    assert (inside.config, inside.values["log"], inside.next) == (changed, ["a", "changed"], ("ask",))
    assert made().get_state(inside.parent_config).values == old.values
    with pytest.raises(UnknownInterruptError):
        call(made(), Command(resume="nothing was asked yet"), config)
    assert [i.value for i in asked(call(made(), None, changed))] == ["?"]
    assert call(made(), Command(resume="no"), config)["log"] == ["a", "changed", "ask no", "last", "end"]
    assert ended["log"] == ["a", "ask yes", "last", "end"]


def test_an_older_checkpoint_of_an_open_call_is_changed_without_moving_its_parent(saver: Any, call: Call) -> None:
    """B103: the call is still the present one, so only it goes back"""
    graph, config = nested(saver, chain(None, a, ask), "a node"), thread()
    call(graph, {"log": []}, config)
    root = graph.get_state(config).config
    start = next(s for s in graph.get_state_history(innermost(graph, config).config) if s.next == ("a",))
    graph.update_state(start.config, {"log": ["instead"]}, as_node="a")
    assert graph.get_state(config).config == root
    assert asked(call(graph, None, config))
    assert call(graph, Command(resume="yes"), config)["log"] == ["instead", "ask yes", "end"]


def test_all_questions_of_the_step_are_asked_again_also_one_that_was_answered(saver: Any, call: Call) -> None:
    """B107"""

    def asking(name: str) -> Any:
        def node(state: State) -> State:
            return {"log": [f"{name} {interrupt(name)}"]}

        node.__name__ = name
        return node

    inner = builder(asking("one"), asking("two"), edges="parallel").compile()
    graph, config = nested(saver, inner, "a node"), thread()
    found = ids(call(graph, {"log": []}, config))
    assert [i.value for i in asked(call(graph, Command(resume={found["one"]: 1}), config))] == ["two"]
    old = innermost(graph, config)
    changed = graph.update_state(old.config, None, as_node="__copy__")
    again = ids(call(graph, None, changed))
    assert set(again) == {"one", "two"}
    assert set(again.values()).isdisjoint(found.values())
    result = call(graph, Command(resume={again["one"]: 3, again["two"]: 4}), config)
    assert result["log"] == ["one 3", "two 4", "end"]


def test_a_sibling_of_the_subgraph_keeps_its_question(saver: Any, call: Call) -> None:
    """B77: only what was asked inside is withdrawn"""
    graph: Any = StateGraph(State).add_node("inner", chain(None, a, ask))
    graph = graph.add_node("beside", lambda s: {"log": [f"beside {interrupt('beside?')}"]})
    graph = graph.add_edge(START, "inner").add_edge(START, "beside").compile(checkpointer=saver)
    config = thread()
    found = ids(call(graph, {"log": []}, config))
    where = next(t.state for t in graph.get_state(config).tasks if t.name == "inner")
    graph.update_state(where, {"log": ["changed"]})
    assert [q.id for q in saver.pending()] == [found["beside?"]]
    now = ids(call(graph, None, config))
    assert now["beside?"] == found["beside?"]
    assert now["?"] != found["?"]
    result = call(graph, Command(resume={now["?"]: 1, now["beside?"]: 2}), config)
    assert result["log"] == ["beside 2", "a", "changed", "ask 1"]


def test_a_call_that_is_over_forks_though_its_sibling_waits(saver: Any, call: Call) -> None:
    """B104: its result is there already, so nothing would come of a change in place"""
    graph: Any = StateGraph(State).add_node("inner", chain(None, a, last))
    graph = graph.add_node("beside", lambda s: {"log": [f"beside {interrupt('beside?')}"]})
    graph = graph.add_edge(START, "inner").add_edge(START, "beside").compile(checkpointer=saver)
    config = thread()
    (old,) = asked(call(graph, {"log": []}, config))
    where = next(t.state for t in graph.get_state(config).tasks if t.name == "inner")
    due = next(s for s in graph.get_state_history(where) if s.next == ("last",))
    graph.update_state(due.config, {"log": ["changed"]})
    assert graph.get_state(config).metadata["source"] == "fork"
    assert saver.pending() == []
    (new,) = asked(call(graph, None, config))
    assert new.id != old.id
    assert call(graph, Command(resume="yes"), config)["log"] == ["beside yes", "a", "changed", "last"]


def test_several_supersteps_inside_in_one_transition(saver: Any, call: Call) -> None:
    """B95, inside"""
    graph, config = nested(saver, chain(None, a, ask, last), "two levels"), thread()
    call(graph, {"log": []}, config)
    old = innermost(graph, config)
    steps = [[StateUpdate({"log": ["as ask"]}, "ask")], [StateUpdate({"log": ["as last"]}, "last")]]
    config_after = asyncio.run(graph.abulk_update_state(old.config, steps))
    states = list(graph.get_state_history(config_after))[:3]
    assert [s.next for s in states] == [(), ("last",), ("ask",)]
    assert [s.metadata["step"] for s in states] == [3, 2, 1]
    assert call(graph, None, config)["log"] == ["a", "as ask", "as last", "end"]


def test_a_breakpoint_holds_where_an_update_goes_back_inside(saver: Any, call: Call) -> None:
    """B77, B113"""
    inner = chain(None, a, last, interrupt_before=["last"])
    graph, config = nested(saver, inner, "a node"), thread()
    call(graph, {"log": []}, config)
    call(graph, None, config)
    old = next(
        s
        for t in next(s for s in graph.get_state_history(config) if s.next == ("inner",)).tasks
        for s in graph.get_state_history(t.state)
        if s.next == ("a",)
    )
    graph.update_state(old.config, {"log": ["as a"]}, as_node="a")
    call(graph, None, config)
    assert innermost(graph, config).next == ("last",)
    assert call(graph, None, config)["log"] == ["as a", "last", "end"]


class Own(TypedDict, total=False):
    value: Any
    own: Annotated[list[Any], operator.add]


def remembering(*, asks: bool) -> Any:
    """A graph with a memory of what it was answered."""

    def note(state: Own) -> Any:
        return {"own": [interrupt("?") if asks else "new"], "value": list(state["own"])}

    return builder(note, schema=Own).compile(checkpointer=True)


def test_a_memory_can_be_changed_between_its_calls(store: Store, call: Call) -> None:
    """B77, B129: the thread stays where it is"""
    config = thread()
    made = lambda: graph_of(store.again(), ("inner", remembering(asks=False)))  # noqa: E731
    call(made(), {"log": []}, config)
    root = made().get_state(config).config
    made().update_state(thread(config["configurable"]["thread_id"], checkpoint_ns="inner"), {"own": ["told"]})
    assert made().get_state(config).config == root
    assert call(made(), {"log": []}, config)["value"] == ["new", "told"]


def test_a_memory_is_read_and_changed_as_the_present_branch_has_it(store: Store, call: Call) -> None:
    """B77, B109: what was remembered on the branch that was left does not come back"""
    config, inside = thread("branch"), thread("branch", checkpoint_ns="inner")
    made = lambda: graph_of(store.again(), ("inner", remembering(asks=False)))  # noqa: E731
    call(made(), {"log": []}, config)
    one = made().get_state(config).config
    made().update_state(inside, {"own": ["left behind"]})
    call(made(), {"log": []}, config)
    assert made().get_state(inside).values["own"] == ["new", "left behind", "new"]
    made().update_state(one, None, as_node="__copy__")
    assert made().get_state(inside).values["own"] == ["new"]
    made().update_state(inside, {"own": ["told"]})
    assert made().get_state(inside).values["own"] == ["new", "told"]
    assert call(made(), {"log": []}, config)["value"] == ["new", "told"]
    start = list(made().get_state_history(config))[-1]
    made().update_state(start.config, None, as_node="__copy__")
    assert made().get_state(inside).values == {}


def test_a_memory_can_be_changed_while_it_waits_and_at_an_older_call(saver: Any, call: Call) -> None:
    """B77, B103, B109"""
    graph, config = graph_of(saver, ("inner", remembering(asks=True))), thread()
    old = []
    for answer in "ab":
        call(graph, {"log": []}, config)
        old.append(innermost(graph, config).config)
        call(graph, Command(resume=answer), config)
    call(graph, {"log": []}, config)
    graph.update_state(innermost(graph, config).config, {"own": ["told"]}, as_node="__start__")
    call(graph, None, config)
    assert call(graph, Command(resume="c"), config)["value"] == ["a", "b", "told"]
    graph.update_state(old[1], {"own": ["other"]}, as_node="__start__")
    call(graph, None, config)
    assert call(graph, Command(resume="d"), config)["value"] == ["a", "other"]
    call(graph, {"log": []}, config)
    assert call(graph, Command(resume="e"), config)["value"] == ["a", "other", "d"]


def test_what_is_not_there_is_not_changed(saver: Any, call: Call) -> None:
    """B138"""
    graph, config = nested(saver, chain(None, a, ask), "a node"), thread()
    call(graph, {"log": []}, config)
    before = list(graph.get_state_history(config))
    name = config["configurable"]["thread_id"]
    for ns, error, message in (
        ("nobody:1", ConfigError, "Subgraph 'nobody:1' not found"),
        ("inner:1", NotFoundError, "Subgraph 'inner:1' has no checkpoint"),
        ("inner|low", ConfigError, r"Subgraph 'inner\|low' not found"),
    ):
        with pytest.raises(error, match=message):
            graph.update_state(thread(name, checkpoint_ns=ns), {"log": ["x"]})
    inside = innermost(graph, config).config["configurable"]
    with pytest.raises(NotFoundError, match="Unknown checkpoint 'none'"):
        graph.update_state({"configurable": {**inside, "checkpoint_id": "none"}}, {"log": ["x"]})
    with pytest.raises(InvalidUpdateError, match="Node 'end' does not exist"):
        graph.update_state({"configurable": inside}, {"log": ["x"]}, as_node="end")
    assert list(graph.get_state_history(config)) == before
    assert call(graph, Command(resume="yes"), config)["log"] == ["a", "ask yes", "end"]
