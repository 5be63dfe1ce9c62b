"""Commands that nodes return: updates, places to go, and words to the parent graph."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, builder, chain, thread
from waitpoint.errors import InvalidUpdateError, ParentCommand, UnknownInterruptError
from waitpoint.graph import END, START, StateGraph
from waitpoint.types import Command, Overwrite, Send, interrupt


def b(state: State) -> State:
    return {"log": ["b"]}


def c(state: State) -> State:
    return {"log": ["c"]}


class Name(Enum):
    C = "c"


def routed(saver: Any, action: Any, **options: Any) -> Any:
    """Compile a node `a` in front of two that only a command reaches."""
    graph: Any = StateGraph(State).add_node("a", action).add_node("b", b).add_node("c", c)
    return graph.add_edge(START, "a").compile(checkpointer=saver, **options)


# --- update and goto --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goto", "log"),
    [
        ("b", ["a", "b"]),
        (["b"], ["a", "b"]),
        (("c", "b"), ["a", "b", "c"]),
        (Name.C, ["a", "c"]),
        (Send("c", {}), ["a", "c"]),
        ([Send("c", {}), "b", Send("c", {})], ["a", "b", "c", "c"]),
        (END, ["a"]),
        ([END, "b"], ["a", "b"]),
        ((), ["a"]),
    ],
)
def test_a_command_updates_and_goes_somewhere(saver: Any, call: Call, goto: Any, log: list[str]) -> None:
    """B142"""
    graph = routed(saver, lambda s: Command(update={"log": ["a"]}, goto=goto))
    assert call(graph, {"log": []}, thread())["log"] == log


def test_a_command_without_update_or_without_goto(saver: Any, call: Call) -> None:
    """B142"""
    assert call(routed(saver, lambda s: Command(goto="b")), {"log": []}, thread())["log"] == ["b"]
    assert call(routed(saver, lambda s: Command(update={"log": ["a"]})), {"log": []}, thread())["log"] == ["a"]
    assert call(routed(saver, lambda s: Command()), {"log": ["in"]}, thread())["log"] == ["in"]


def test_a_coroutine_returns_commands_too(saver: Any) -> None:
    """B142"""

    async def node(state: State) -> Any:
        return Command(update={"log": ["a"]}, goto="c")

    assert asyncio.run(routed(saver, node).ainvoke({"log": []}, thread()))["log"] == ["a", "c"]


def test_fixed_edges_are_followed_beside_a_goto(saver: Any, call: Call) -> None:
    """B142"""
    graph: Any = StateGraph(State).add_node("a", lambda s: Command(goto="c")).add_node("b", b).add_node("c", c)
    graph = graph.add_edge(START, "a").add_edge("a", "b").compile(checkpointer=saver)
    assert call(graph, {"log": []}, thread())["log"] == ["b", "c"]


def test_a_node_gone_to_twice_in_one_step_runs_once(saver: Any, call: Call) -> None:
    """B142"""
    graph: Any = StateGraph(State).add_node("a1", lambda s: Command(goto="c"))
    graph.add_node("a2", lambda s: Command(goto=["c", "c"])).add_node("c", c).add_edge(START, "a1")
    graph = graph.add_edge(START, "a2").compile(checkpointer=saver)
    assert call(graph, {"log": []}, thread())["log"] == ["c"]


def test_commands_make_a_loop(saver: Any, call: Call) -> None:
    """B142"""

    def count(state: State) -> Any:
        n = len(state["log"])
        return Command(update={"log": [n]}, goto="a" if n < 3 else END)

    assert call(routed(saver, count), {"log": []}, thread())["log"] == [0, 1, 2, 3]


def test_a_command_may_overwrite(saver: Any, call: Call) -> None:
    """B142, B159"""
    graph = routed(saver, lambda s: Command(update={"log": Overwrite(["only"])}, goto="b"))
    assert call(graph, {"log": ["in"]}, thread())["log"] == ["only", "b"]


@pytest.mark.parametrize("goto", ["nowhere", ["b", "nowhere"], Send("nowhere", {}), START])
def test_a_command_to_an_unknown_node_fails_the_node_by_name(saver: Any, call: Call, goto: Any) -> None:
    """B142"""
    graph, config = routed(saver, lambda s: Command(update={"log": ["a"]}, goto=goto)), thread()
    with pytest.raises(InvalidUpdateError, match=r"'a' went to unknown node '(nowhere|__start__)'"):
        call(graph, {"log": []}, config)
    assert graph.get_state(config).values["log"] == []
    assert graph.get_state(config).next == ("a",)


def test_a_node_that_answers_questions_is_refused(saver: Any, call: Call) -> None:
    """B142: answers come from outside"""
    with pytest.raises(InvalidUpdateError, match="'a' returned a Command with `resume`"):
        call(routed(saver, lambda s: Command(resume="yes")), {"log": []}, thread())


def test_a_goto_survives_a_pause_of_a_sibling_and_another_process(store: Store, call: Call) -> None:
    """B142: what a finished node decided is kept with its result"""

    def ask(state: State) -> State:
        return {"log": [interrupt("ok?")]}

    def made(saver: Any) -> Any:
        graph: Any = StateGraph(State).add_node("ask", ask).add_node("b", b).add_node("c", lambda n: {"log": [n]})
        graph.add_node("a", lambda s: Command(update={"log": ["a"]}, goto=["b", Send("c", 7)]))
        return graph.add_edge(START, "a").add_edge(START, "ask").compile(checkpointer=saver)

    config = thread()
    call(made(store.saver), {"log": []}, config)
    assert call(made(store.again()), Command(resume="yes"), config)["log"] == ["a", "yes", "b", 7]


# --- several at once --------------------------------------------------------------------------------------------------


def test_a_list_of_commands_and_updates_is_applied_in_order(saver: Any, call: Call) -> None:
    """B144"""
    graph = routed(
        saver,
        lambda s: [
            Command(update={"log": [1]}, goto="b"),
            {"log": [2]},
            Command(goto="c", update={"log": [3], "value": "x"}),
            None,
        ],
    )
    assert call(graph, {"log": []}, thread()) == {"log": [1, 2, 3, "b", "c"], "value": "x"}


def test_updates_shows_a_list_of_what_such_a_node_wrote(saver: Any, streamed: Call) -> None:
    """B145"""
    graph = routed(saver, lambda s: [Command(update={"log": [1]}, goto="b"), {"log": [2]}])
    parts = streamed(graph, {"log": []}, thread(), stream_mode="updates")
    assert parts == [{"a": [{"log": [1]}, {"log": [2]}]}, {"b": {"log": ["b"]}}]


# --- instances as updates ---------------------------------------------------------------------------------------------


def join(left: list[Any], right: list[Any]) -> list[Any]:
    return left + right


class Model(BaseModel):
    n: int = 0
    log: Annotated[list[Any], join] = []


@dataclass
class Data:
    n: int = 0
    log: Annotated[list[Any], join] = field(default_factory=list)


@pytest.mark.parametrize("schema", [Model, Data])
def test_an_update_may_be_an_instance_of_the_state(saver: Any, call: Call, schema: Any) -> None:
    """B147"""
    graph: Any = StateGraph(schema).add_node("a", lambda s: Command(update=schema(n=s.n + 1, log=["a"]), goto="b"))
    graph.add_node("b", lambda s: schema(n=s.n + 10, log=["b"])).add_edge(START, "a")
    assert call(graph.compile(checkpointer=saver), {"n": 1}, thread()) == {"n": 12, "log": ["a", "b"]}


# --- the parent -------------------------------------------------------------------------------------------------------


def to_parent(**command: Any) -> Any:
    return lambda s: Command(graph=Command.PARENT, **command)


def with_child(saver: Any, child: Any) -> Any:
    graph: Any = StateGraph(State).add_node("child", child).add_node("b", b).add_node("c", c)
    return graph.add_edge(START, "child").compile(checkpointer=saver)


def child_of(action: Any, *, before: Any = None) -> Any:
    graph: Any = StateGraph(State).add_node("own", before or (lambda s: {"log": ["own"]})).add_node("up", action)
    return graph.add_edge(START, "own").add_edge("own", "up").compile()


@pytest.mark.parametrize("goto", ["c", ["c"], Send("c", {})])
def test_a_command_to_the_parent_acts_there_and_the_childs_own_updates_are_dropped(
    saver: Any, call: Call, goto: Any
) -> None:
    """B148"""
    child = child_of(to_parent(goto=goto, update={"log": ["up"], "value": 1}))
    assert call(with_child(saver, child), {"log": []}, thread()) == {"log": ["up", "c"], "value": 1}


def test_edges_of_the_child_node_are_followed_beside_it(saver: Any, call: Call) -> None:
    """B148"""
    graph: Any = StateGraph(State).add_node("child", child_of(to_parent(goto="c"))).add_node("b", b).add_node("c", c)
    graph = graph.add_edge(START, "child").add_edge("child", "b").compile(checkpointer=saver)
    assert call(graph, {"log": []}, thread())["log"] == ["b", "c"]


def test_a_called_child_speaks_to_the_calling_graph_and_code_after_the_call_is_not_reached(
    saver: Any, call: Call
) -> None:
    """B149"""
    child = child_of(to_parent(goto="c", update={"log": ["up"]}))

    def calls(state: State) -> State:
        child.invoke({"log": []})
        raise AssertionError("not reached")

    assert call(with_child(saver, calls), {"log": []}, thread())["log"] == ["up", "c"]


def test_a_child_called_by_a_coroutine_speaks_to_the_calling_graph(saver: Any) -> None:
    """B149"""
    child = child_of(to_parent(goto="c", update={"log": ["up"]}))

    async def calls(state: State) -> State:
        await child.ainvoke({"log": []})
        raise AssertionError("not reached")

    assert asyncio.run(with_child(saver, calls).ainvoke({"log": []}, thread()))["log"] == ["up", "c"]


def test_the_nearest_parent_is_meant(saver: Any, call: Call) -> None:
    """B148"""
    low = child_of(to_parent(goto="there", update={"log": ["up"]}))
    middle: Any = StateGraph(State).add_node("low", low).add_node("there", lambda s: {"log": ["there"]})
    middle = middle.add_edge(START, "low").compile()
    graph = with_child(saver, middle)
    assert call(graph, {"log": []}, thread())["log"] == ["up", "there"]


def test_a_command_to_the_parent_after_a_question(saver: Any, call: Call) -> None:
    """B148"""
    runs: list[str] = []

    def own(state: State) -> State:
        runs.append("own")
        return {"log": ["own"]}

    def up(state: State) -> Any:
        return Command(graph=Command.PARENT, goto="c", update={"log": [interrupt("where?")]})

    graph, config = with_child(saver, child_of(up, before=own)), thread()
    assert [i.value for i in asked(call(graph, {"log": []}, config))] == ["where?"]
    assert call(graph, Command(resume="up"), config)["log"] == ["up", "c"]
    assert runs == ["own"]


def test_a_parent_without_that_node_says_so(saver: Any, call: Call) -> None:
    """B148"""
    graph = with_child(saver, child_of(to_parent(goto="nowhere")))
    with pytest.raises(InvalidUpdateError, match="'child' went to unknown node 'nowhere'"):
        call(graph, {"log": []}, thread())


@pytest.mark.parametrize("step_timeout", [None, 30])
@pytest.mark.parametrize("with_saver", [True, False])
def test_from_the_root_graph_it_leaves_invoke_as_an_error(
    saver: Any, call: Call, step_timeout: float | None, with_saver: bool
) -> None:
    """B150"""
    command = Command(graph=Command.PARENT, goto="c", update={"log": ["up"]})
    graph = routed(saver if with_saver else None, lambda s: command)
    graph.step_timeout = step_timeout
    with pytest.raises(ParentCommand) as left:
        call(graph, {"log": []}, thread())
    assert left.value.args[0] == command


# --- commands as input ------------------------------------------------------------------------------------------------


def test_a_command_may_be_the_input_of_a_new_thread(saver: Any, call: Call) -> None:
    """B142"""
    graph = chain(saver, b, c)
    assert call(graph, Command(update={"log": ["in"]}), thread())["log"] == ["in", "b", "c"]


def test_an_update_beside_an_answer_is_seen_by_the_node_that_goes_on(saver: Any, call: Call) -> None:
    """B7, B142"""

    def ask(state: State) -> State:
        return {"log": [interrupt("ok?"), state.get("value")]}

    graph, config = chain(saver, ask, b), thread()
    call(graph, {"log": []}, config)
    result = call(graph, Command(resume="yes", update={"value": "late"}), config)
    assert result == {"log": ["yes", "late", "b"], "value": "late"}


def test_a_goto_beside_an_answer_runs_those_nodes_too(saver: Any, call: Call) -> None:
    """B7, B69"""

    def ask(state: State) -> State:
        return {"log": [interrupt("ok?")]}

    graph: Any = builder(ask).add_node("b", b).add_node("c", c)
    graph, config = graph.compile(checkpointer=saver), thread()
    call(graph, {"log": []}, config)
    assert call(graph, Command(resume="yes", goto=["b", Send("c", {})]), config)["log"] == ["yes", "b", "c"]


def test_a_command_with_nothing_in_it_is_refused(saver: Any, call: Call) -> None:
    """table: an empty Command"""
    graph, config = chain(saver, b), thread()
    call(graph, {"log": []}, config)
    before = graph.get_state(config)
    with pytest.raises(UnknownInterruptError) as refused:
        call(graph, Command(), config)
    assert refused.value.reason == "empty_map"
    assert graph.get_state(config) == before


@pytest.mark.parametrize("update", [{"log": ["late"]}, {"value": "x" * 500}], ids=["a list", "large"])
def test_an_update_of_any_size_comes_with_the_answer_and_the_thread_goes_on(
    store: Store, call: Call, update: State
) -> None:
    """What a command writes is stored beside what a run writes, which gives out the numbers of the items."""

    def first(state: State) -> State:
        return {"log": [interrupt("first?")]}

    def second(state: State) -> State:
        return {"log": [interrupt("second?"), "y" * 500]}

    graph, config = chain(store.saver, first, second), thread()
    call(graph, {"log": ["x" * 500]}, config)
    call(graph, Command(resume="a", update=update), config)
    assert call(graph, Command(resume="b", update=update), config)["log"][-2:] == ["b", "y" * 500]
    assert graph.get_state(config).values["log"].count("late") == (2 if "log" in update else 0)
