"""Time travel inside graphs in graphs: by their own config, from the innermost and from the middle."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, thread
from waitpoint.errors import ConfigError, NotFoundError, UnknownInterruptError
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, Send, interrupt


def graph_of(saver: Any, *nodes: tuple[str, Any], **options: Any) -> Any:
    """Compile nodes one after the other under the given names."""
    graph: Any = StateGraph(State)
    before = START
    for name, node in nodes:
        graph.add_node(name, node).add_edge(before, name)
        before = name
    return graph.compile(checkpointer=saver, **options)


class Levels:
    """Three graphs inside each other, the innermost with two questions; `runs` has what ran."""

    def __init__(self, store: Store, nesting: str = "nodes", memory: Any = None) -> None:
        self.store, self.nesting, self.memory = store, nesting, memory
        self.runs: list[str] = []
        self.config = thread()

    def logs(self, name: str) -> Any:
        def node(state: State) -> State:
            self.runs.append(name)
            return {"log": [name]}

        return node

    def asks(self, name: str) -> Any:
        def node(state: State) -> State:
            self.runs.append(name)
            return {"log": [f"{name} {interrupt(name)}"]}

        return node

    def inside(self, graph: Any) -> Any:
        if self.nesting == "nodes":
            return graph
        return lambda state: {"log": graph.invoke({"log": []})["log"]}

    @property
    def graph(self) -> Any:
        """The outermost graph, on a saver opened anew."""
        low = graph_of(self.memory, ("a", self.logs("a")), ("one", self.asks("one")), ("two", self.asks("two")))
        middle = graph_of(None, ("m", self.logs("m")), ("low", self.inside(low)), ("n", self.logs("n")))
        return graph_of(
            self.store.again(),
            ("before", self.logs("before")),
            ("mid", self.inside(middle)),
            ("after", self.logs("after")),
        )

    def through(self, call: Call) -> Any:
        """Run to the end, and return the snapshots of the middle and the innermost graph at the second question."""
        call(self.graph, {"log": []}, self.config)
        call(self.graph, Command(resume="1"), self.config)
        middle = self.graph.get_state(self.config, subgraphs=True).tasks[0].state
        call(self.graph, Command(resume="2"), self.config)
        self.runs.clear()
        return middle, middle.tasks[0].state


FINISHED = ["before", "m", "a", "one {0}", "two {1}", "n", "after"]


def log(*answers: str) -> list[str]:
    """Return what a run to the end logged, in graphs that are nodes: each logs what it was given, too."""
    return [word.format(*answers) for word in FINISHED]


def told(result: Any) -> list[str]:
    """Return the log without what the nesting repeats."""
    return list(dict.fromkeys(result["log"]))


@pytest.fixture(params=["nodes", "functions"])
def levels(request: pytest.FixtureRequest, store: Store) -> Levels:
    return Levels(store, request.param)


def test_a_replay_by_the_innermost_config_goes_on_inside(levels: Levels, call: Call) -> None:
    """B103, B105, B106"""
    _, low = levels.through(call)
    (question,) = asked(call(levels.graph, None, low.config))
    assert (question.value, levels.runs.count("a"), levels.runs.count("one")) == ("two", 0, 0)
    assert told(call(levels.graph, Command(resume="again"), levels.config)) == log("1", "again")
    assert levels.runs[-3:] == ["two", "n", "after"]
    assert "before" not in levels.runs
    assert "m" not in levels.runs


def test_a_replay_from_the_first_question_asks_both_again(levels: Levels, call: Call) -> None:
    """B105, B106"""
    _, low = levels.through(call)
    first = next(s for s in levels.graph.get_state_history(low.config) if s.next == ("one",))
    assert [i.value for i in asked(call(levels.graph, None, first.config))] == ["one"]
    assert [i.value for i in asked(call(levels.graph, Command(resume="x"), levels.config))] == ["two"]
    assert told(call(levels.graph, Command(resume="y"), levels.config)) == log("x", "y")
    assert "a" not in levels.runs


def test_a_replay_from_inner_input_runs_the_whole_inner_graph(levels: Levels, call: Call) -> None:
    """B103"""
    _, low = levels.through(call)
    first = list(levels.graph.get_state_history(low.config))[-1]
    assert first.next == ("__start__",)
    assert [i.value for i in asked(call(levels.graph, None, first.config))] == ["one"]
    assert levels.runs == ["a", "one"]
    call(levels.graph, Command(resume="x"), levels.config)
    assert told(call(levels.graph, Command(resume="y"), levels.config)) == log("x", "y")


def test_a_replay_by_the_middle_config_runs_what_is_inside_anew(levels: Levels, call: Call) -> None:
    """B103, B106"""
    middle, _ = levels.through(call)
    assert middle.next == ("low",)
    assert [i.value for i in asked(call(levels.graph, None, middle.config))] == ["one"]
    assert levels.runs == ["a", "one"]
    call(levels.graph, Command(resume="x"), levels.config)
    assert told(call(levels.graph, Command(resume="y"), levels.config)) == log("x", "y")


def test_each_replay_asks_under_a_new_id_and_makes_a_fork_in_the_parent(levels: Levels, call: Call) -> None:
    """B87, B104"""
    _, low = levels.through(call)
    old = levels.graph.get_state(levels.config).config
    root = low.config["configurable"]["checkpoint_map"][""]
    known = {i.id for i in low.interrupts}
    for _ in range(3):
        (question,) = asked(call(levels.graph, None, low.config))
        assert question.id not in known
        known.add(question.id)
        state = levels.graph.get_state(levels.config, subgraphs=True)
        assert (state.metadata["source"], state.parent_config["configurable"]["checkpoint_id"]) == ("fork", root)
        inside = state.tasks[0].state.tasks[0].state
        assert inside.metadata["source"] == "fork"
        assert levels.graph.get_state(inside.parent_config).values == low.values == inside.values
        assert [q.id for q in levels.store.saver.pending()] == [question.id]
    assert levels.graph.get_state(old).next == ()
    assert told(call(levels.graph, Command(resume="2"), levels.config)) == log("1", "2")


def test_an_answer_at_an_old_inner_checkpoint_answers_what_its_fork_asks(levels: Levels, call: Call) -> None:
    """architecture 7: going back, asking and answering in one command, by a bare value and by the old id"""
    _, low = levels.through(call)
    assert told(call(levels.graph, Command(resume="bare"), low.config)) == log("1", "bare")
    old = low.interrupts[0].id
    assert told(call(levels.graph, Command(resume={old: "by id"}), low.config)) == log("1", "by id")
    with pytest.raises(UnknownInterruptError):
        call(levels.graph, Command(resume={"0" * 32: "no"}), low.config)
    assert levels.graph.get_state(levels.config).next == ()


def test_the_present_inner_checkpoint_named_is_no_replay(levels: Levels, call: Call) -> None:
    """B108"""
    call(levels.graph, {"log": []}, levels.config)
    low = levels.graph.get_state(levels.config, subgraphs=True).tasks[0].state.tasks[0].state
    (question,) = levels.graph.get_state(levels.config).interrupts
    assert [i.id for i in asked(call(levels.graph, None, low.config))] == [question.id]
    assert [i.value for i in asked(call(levels.graph, Command(resume="1"), low.config))] == ["two"]
    assert levels.runs.count("one") == 2
    assert all(s.metadata["source"] != "fork" for s in levels.graph.get_state_history(levels.config))


def test_a_replay_while_the_thread_waits_withdraws_what_it_asked(levels: Levels, call: Call) -> None:
    """B104, architecture 7"""
    call(levels.graph, {"log": []}, levels.config)
    low = levels.graph.get_state(levels.config, subgraphs=True).tasks[0].state.tasks[0].state
    call(levels.graph, Command(resume="1"), levels.config)
    (two,) = levels.graph.get_state(levels.config).interrupts
    (one,) = asked(call(levels.graph, None, low.config))
    assert one.value == "one"
    assert [q.id for q in levels.store.saver.pending()] == [one.id]
    with pytest.raises(UnknownInterruptError):
        call(levels.graph, Command(resume={two.id: "late"}), levels.config)
    call(levels.graph, Command(resume="x"), levels.config)
    assert told(call(levels.graph, Command(resume="y"), levels.config)) == log("x", "y")


@pytest.mark.parametrize("memory", [None, True])
def test_forks_of_forks_inside(store: Store, call: Call, memory: Any) -> None:
    """B106, also where the innermost graph has a memory of its own"""
    levels = Levels(store, "functions", memory)
    _, low = levels.through(call)
    for answer in "xyz":
        call(levels.graph, None, low.config)
        low = levels.graph.get_state(levels.config, subgraphs=True).tasks[0].state.tasks[0].state
        assert low.next == ("two",)
        assert told(call(levels.graph, Command(resume=answer), levels.config)) == log("1", answer)
    assert levels.runs.count("one") == levels.runs.count("a") == 0
    call(levels.graph, {"log": []}, levels.config)
    call(levels.graph, Command(resume="p"), levels.config)
    result = call(levels.graph, Command(resume="q"), levels.config)
    remembered = ["a", "one 1", "two z"] if memory else []
    assert result["log"] == [*log("1", "z"), "before", "m", *remembered, "a", "one p", "two q", "n", "after"]


def test_a_replay_of_an_earlier_visit_of_a_memory_goes_on_from_there(saver: Any, call: Call) -> None:
    """B103, B109: the memory of the visits since is not seen"""

    class Own(TypedDict, total=False):
        value: Any
        own: Annotated[list[Any], operator.add]

    inner: Any = StateGraph(Own).add_node("ask", lambda s: {"own": [interrupt("?")], "value": list(s["own"])})
    inner = inner.add_edge(START, "ask").compile(checkpointer=True)
    graph, config = graph_of(saver, ("inner", inner)), thread()
    configs = []
    for n in range(3):
        call(graph, {"log": []}, config)
        configs.append(graph.get_state(config, subgraphs=True).tasks[0].state.config)
        call(graph, Command(resume=n), config)
    for back in (1, 0, 2):
        call(graph, None, configs[back])
        assert call(graph, Command(resume="x"), config)["value"] == list(range(back))
        call(graph, {"log": []}, config)
        assert call(graph, Command(resume="y"), config)["value"] == [*range(back), "x"]


def test_siblings_of_the_task_are_run_again(saver: Any, call: Call) -> None:
    """B84, inside: the step of the parent is a new one"""
    runs: list[Any] = []

    def ask(state: Any) -> Any:
        runs.append(state["value"])
        return {"log": [f"{state['value']} {interrupt(state['value'])}"]}

    inner = graph_of(None, ("first", lambda s: {"log": []}), ("ask", ask))
    graph: Any = StateGraph(State)
    graph.add_node("work", lambda s: {"log": inner.invoke(s)["log"]})
    graph.add_conditional_edges(START, lambda s: [Send("work", {"value": n, "log": []}) for n in "ab"], ["work"])
    graph, config = graph.compile(checkpointer=saver), thread()
    call(graph, {"log": []}, config)
    inside = [t.state for t in graph.get_state(config, subgraphs=True).tasks]
    questions = {i.value: i.id for i in graph.get_state(config).interrupts}
    call(graph, Command(resume={questions["a"]: 1, questions["b"]: 2}), config)
    runs.clear()
    assert {i.value for i in asked(call(graph, None, inside[1].config))} == {"a", "b"}
    assert sorted(runs) == ["a", "b"]
    open_now = {i.value: i.id for i in graph.get_state(config).interrupts}
    assert call(graph, Command(resume={open_now["a"]: 3, open_now["b"]: 4}), config)["log"] == ["a 3", "b 4"]


def test_an_inner_breakpoint_holds_again_at_a_replay_of_it(saver: Any, call: Call) -> None:
    """B72, B113"""
    inner = graph_of(None, ("x", lambda s: {"log": ["x"]}), ("y", lambda s: {"log": ["y"]}), interrupt_before=["y"])
    graph, config = graph_of(saver, ("inner", inner), ("last", lambda s: {"log": ["last"]})), thread()
    call(graph, {"log": []}, config)
    stopped = graph.get_state(config, subgraphs=True).tasks[0].state
    assert stopped.next == ("y",)
    assert call(graph, None, config)["log"] == ["x", "y", "last"]
    assert call(graph, None, stopped.config)["log"] == []
    assert graph.get_state(config, subgraphs=True).tasks[0].state.next == ("y",)
    assert call(graph, None, config)["log"] == ["x", "y", "last"]


def test_new_input_with_an_inner_config_is_refused(levels: Levels, call: Call) -> None:
    """B103: only a replay or an answer makes sense there"""
    _, low = levels.through(call)
    for given in ({"log": ["new"]}, Command(goto="one"), Command(resume="x", update={"log": ["y"]})):
        with pytest.raises(ConfigError, match="for the outermost graph"):
            call(levels.graph, given, low.config)
    assert levels.runs == []


def test_an_unknown_inner_checkpoint_is_refused(levels: Levels, call: Call) -> None:
    """B103"""
    _, low = levels.through(call)
    where = {"configurable": {**low.config["configurable"], "checkpoint_id": "nothing"}}
    with pytest.raises(NotFoundError, match="Unknown checkpoint 'nothing'"):
        call(levels.graph, None, where)


def test_a_replay_before_the_subgraph_runs_it_from_its_start(levels: Levels, call: Call) -> None:
    """B102"""
    levels.through(call)
    base = next(s for s in levels.graph.get_state_history(levels.config) if s.next == ("mid",))
    assert [i.value for i in asked(call(levels.graph, None, base.config))] == ["one"]
    assert levels.runs == ["m", "a", "one"]


def test_the_namespace_of_a_task_alone_is_no_place_to_go_back_to(levels: Levels, call: Call) -> None:
    """B101: without a checkpoint id the thread goes on where it stands"""
    call(levels.graph, {"log": []}, levels.config)
    (task,) = levels.graph.get_state(levels.config).tasks
    assert [i.value for i in asked(call(levels.graph, Command(resume="1"), task.state))] == ["two"]
