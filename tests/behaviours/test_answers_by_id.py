"""Several questions open at once: each has its id, and any of them may be answered, now or later."""

from __future__ import annotations

import asyncio
import operator
from collections import Counter
from typing import Annotated, Any, TypedDict

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, builder, chain, ids, parallel, the_id, thread
from waitpoint.errors import AmbiguousInterruptError, UnknownInterruptError
from waitpoint.graph import END, START, StateGraph
from waitpoint.types import Answer, Command, Send, interrupt


class Asking:
    """Two nodes that ask, and how often each ran."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()

    def a(self, state: State) -> State:
        self.runs["a"] += 1
        return {"log": [interrupt("a?")]}

    def b(self, state: State) -> State:
        self.runs["b"] += 1
        return {"log": [interrupt("b?")]}

    def graph(self, saver: Any) -> Any:
        return parallel(saver, self.a, self.b)


def test_each_parallel_node_reports_its_own_question(saver: Any, call: Call) -> None:
    """B31"""
    graph, config = Asking().graph(saver), thread()
    result = call(graph, {"log": []}, config)
    assert sorted(ids(result)) == ["a?", "b?"]
    assert len({i.id for i in asked(result)}) == 2
    assert list(graph.get_state(config).interrupts) == asked(result)


def test_parallel_questions_come_once_last_and_together(saver: Any, streamed: Call) -> None:
    """B31, table: one `__interrupt__` chunk with all"""
    parts = streamed(Asking().graph(saver), {"log": []}, thread())
    (last,) = parts
    assert [i.value for i in last["__interrupt__"]] == ["a?", "b?"]


def test_all_questions_may_be_answered_in_one_call(saver: Any, call: Call) -> None:
    """B32"""
    asking, config = Asking(), thread()
    open_ids = ids(call(asking.graph(saver), {"log": []}, config))
    answers = {open_ids["b?"]: "B", open_ids["a?"]: "A"}
    assert call(asking.graph(saver), Command(resume=answers), config) == {"log": ["A", "B"]}
    assert asking.runs == {"a": 2, "b": 2}


@pytest.mark.parametrize("first", ["a?", "b?"])
def test_some_questions_may_be_answered_now_and_others_later(store: Store, call: Call, first: str) -> None:
    """B32, B35, table: unanswered siblings are not run again (so a ran twice, b twice)"""
    asking, config = Asking(), thread()
    open_ids = ids(call(asking.graph(store.saver), {"log": []}, config))
    second = "b?" if first == "a?" else "a?"
    result = call(asking.graph(store.again()), Command(resume={open_ids[first]: first.upper()}), config)
    assert ids(result) == {second: open_ids[second]}
    assert result["log"] == [first.upper()]
    assert asking.runs == {first[0]: 2, second[0]: 1}
    result = call(asking.graph(store.again()), Command(resume={open_ids[second]: second.upper()}), config)
    assert result == {"log": ["A?", "B?"]}
    assert asking.runs == {"a": 2, "b": 2}


def test_one_value_for_several_questions_is_refused_and_changes_nothing(saver: Any, call: Call) -> None:
    """B33"""
    asking, config = Asking(), thread()
    graph = asking.graph(saver)
    result = call(graph, {"log": []}, config)
    before = graph.get_state(config)
    text = "When there are multiple pending interrupts, you must specify the interrupt id when resuming."
    with pytest.raises(RuntimeError, match=text) as caught:
        call(graph, Command(resume="both"), config)
    assert isinstance(caught.value, AmbiguousInterruptError)
    assert caught.value.reason == "ambiguous"
    assert caught.value.pending_ids == tuple(sorted(ids(result).values()))
    assert graph.get_state(config) == before
    assert asking.runs == {"a": 1, "b": 1}
    assert {q.status for q in saver.pending(answerable=False)} == {"open"}


def test_a_last_open_question_of_several_takes_a_bare_value(saver: Any, call: Call) -> None:
    """B33: the count is that of the questions open when the call came"""
    asking, config = Asking(), thread()
    open_ids = ids(call(asking.graph(saver), {"log": []}, config))
    call(asking.graph(saver), Command(resume={open_ids["a?"]: "A"}), config)
    assert call(asking.graph(saver), Command(resume="B"), config) == {"log": ["A", "B"]}


def test_a_finished_node_is_out_of_the_state_and_of_every_later_run(saver: Any, call: Call) -> None:
    """B35, B36"""
    asking, config = Asking(), thread()
    graph = asking.graph(saver)
    open_ids = ids(call(graph, {"log": []}, config))
    call(graph, Command(resume={open_ids["a?"]: "A"}), config)
    state = graph.get_state(config)
    assert [i.value for i in state.interrupts] == ["b?"]
    assert state.next == ("b",)
    tasks = {t.name: t for t in state.tasks}
    assert (tasks["a"].interrupts, tasks["a"].result) == ((), {"log": ["A"]})
    assert ([i.value for i in tasks["b"].interrupts], tasks["b"].result) == (["b?"], None)
    for _ in range(2):
        call(graph, None, config)
    assert asking.runs == {"a": 2, "b": 1}


def test_a_checkpoint_read_by_its_id_is_the_record_of_the_step(saver: Any) -> None:
    """B37"""
    graph, config = Asking().graph(saver), thread()
    open_ids = ids(graph.invoke({"log": []}, config))
    graph.invoke(Command(resume={open_ids["a?"]: "A"}), config)
    record = graph.get_state(graph.get_state(config).config)
    assert record.next == ("a", "b")
    assert {i.id for i in record.interrupts} == set(open_ids.values())
    tasks = {t.name: t for t in record.tasks}
    assert tasks["a"].result == {"log": ["A"]}
    assert [i.id for i in tasks["a"].interrupts] == [open_ids["a?"]]
    assert tasks["b"].result is None
    assert record.values == {"log": []}


@pytest.mark.parametrize("durability", ["sync", "async"])
def test_history_still_lists_where_each_question_was_asked(saver: Any, call: Call, durability: str) -> None:
    """B38"""

    def c(state: State) -> State:
        return {"log": [interrupt("c?")]}

    asking, config = Asking(), thread()
    graph = builder(asking.a, asking.b, edges="parallel").add_node("c", c).add_edge(["a", "b"], "c")
    compiled = graph.compile(checkpointer=saver)
    open_ids = ids(call(compiled, {"log": []}, config, durability=durability))
    last = call(compiled, Command(resume=dict.fromkeys(open_ids.values(), "x")), config, durability=durability)
    open_ids |= ids(last)
    call(compiled, Command(resume="y"), config, durability=durability)
    found = {i.value: i.id for s in compiled.get_state_history(config) for i in s.interrupts}
    assert found == open_ids


NOTHING: list[Any] = [None, {}, {"x": 0}, {"log": []}]


class Loose(TypedDict, total=False):
    """A state with a key that may be written as 0."""

    log: Annotated[list[Any], operator.add]
    x: int


@pytest.mark.parametrize("returned", NOTHING, ids=repr)
def test_a_node_that_returned_next_to_nothing_is_finished(saver: Any, call: Call, returned: Any) -> None:
    """B39"""
    runs: Counter[str] = Counter()

    def quiet(state: Loose) -> Any:
        runs["quiet"] += 1
        interrupt("quiet?")
        return returned

    def other(state: Loose) -> Loose:
        return {"log": [interrupt("other?")]}

    graph, config = builder(quiet, other, edges="parallel", schema=Loose).compile(checkpointer=saver), thread()
    open_ids = ids(call(graph, {"log": []}, config))
    call(graph, Command(resume={open_ids["quiet?"]: 1}), config)
    state = graph.get_state(config)
    assert state.next == ("other",)
    assert {t.name: t.interrupts for t in state.tasks}["quiet"] == ()
    assert call(graph, Command(resume="o"), config)["log"] == ["o"]
    assert runs["quiet"] == 2


@pytest.mark.parametrize("returned", NOTHING, ids=repr)
def test_so_is_a_sibling_that_asked_nothing(saver: Any, call: Call, returned: Any) -> None:
    """B39"""
    runs: Counter[str] = Counter()

    def quiet(state: Loose) -> Any:
        runs["quiet"] += 1
        return returned

    def other(state: Loose) -> Loose:
        return {"log": [interrupt("other?")]}

    graph, config = builder(quiet, other, edges="parallel", schema=Loose).compile(checkpointer=saver), thread()
    call(graph, {"log": []}, config)
    assert graph.get_state(config).next == ("other",)
    call(graph, Command(resume="o"), config)
    assert runs["quiet"] == 1


def test_a_node_that_asked_a_second_question_is_still_pending(saver: Any, call: Call) -> None:
    """B41"""

    def twice(state: State) -> State:
        return {"log": [interrupt("first?"), interrupt("second?")]}

    asking, config = Asking(), thread()
    graph = parallel(saver, asking.a, twice)
    open_ids = ids(call(graph, {"log": []}, config))
    result = call(graph, Command(resume={open_ids["first?"]: 1}), config)
    assert sorted(ids(result)) == ["a?", "second?"]
    state = graph.get_state(config)
    assert set(state.next) == {"a", "twice"}
    task = {t.name: t for t in state.tasks}["twice"]
    assert ([i.value for i in task.interrupts], task.result) == (["second?"], None)
    remaining = ids(result)
    both = {remaining["a?"]: "A", remaining["second?"]: 2}
    assert call(graph, Command(resume=both), config) == {"log": ["A", 1, 2]}


@pytest.mark.parametrize("pinned", ["newest", None])
def test_a_config_that_names_the_newest_checkpoint_resumes_like_one_without(
    saver: Any, call: Call, pinned: str | None
) -> None:
    """B42"""
    asking, config = Asking(), thread("pinned")
    graph = asking.graph(saver)
    open_ids = ids(call(graph, {"log": []}, config))

    def named() -> dict[str, Any]:
        if pinned is None:
            return thread("pinned", checkpoint_id=None)
        return graph.get_state(config).config  # type: ignore[no-any-return]

    count = len(list(graph.get_state_history(config)))
    call(graph, Command(resume={open_ids["a?"]: "A"}), named())
    assert len(list(graph.get_state_history(config))) == count
    assert call(graph, Command(resume={open_ids["b?"]: "B"}), named()) == {"log": ["A", "B"]}
    assert asking.runs == {"a": 2, "b": 2}
    assert [s.metadata["source"] for s in graph.get_state_history(config)].count("fork") == 0


class Item(TypedDict, total=False):
    """What a worker is sent."""

    n: int
    log: Annotated[list[Any], operator.add]


def work(state: Item) -> Item:
    return {"log": [(state["n"], interrupt(f"item {state['n']}?"))]}


def worker() -> Any:
    graph: Any = StateGraph(Item, output_schema=State).add_node("work", work).add_edge(START, "work")
    return graph.compile()


def fan_out(saver: Any, target: Any) -> Any:
    graph: Any = StateGraph(State)
    graph.add_node("work", target, input_schema=Item)
    graph.add_conditional_edges(START, lambda _: [Send("work", {"n": n, "log": []}) for n in range(3)], ["work"])
    return graph.compile(checkpointer=saver)


@pytest.mark.parametrize("nested", [False, True], ids=["function", "subgraph"])
def test_each_send_task_has_a_question_of_its_own(store: Store, call: Call, nested: bool) -> None:
    """B43"""
    target: Any = worker() if nested else work
    config = thread()
    graph = fan_out(store.saver, target)
    call(graph, {"log": []}, config)
    open_ids = {i.value: i.id for i in graph.get_state(config).interrupts}
    assert sorted(open_ids) == ["item 0?", "item 1?", "item 2?"]
    result = call(fan_out(store.again(), target), Command(resume={open_ids["item 1?"]: "one"}), config)
    assert ids(result) == {k: v for k, v in open_ids.items() if k != "item 1?"}
    rest = {open_ids["item 2?"]: "two", open_ids["item 0?"]: "zero"}
    result = call(fan_out(store.again(), target), Command(resume=rest), config)
    assert result["log"] == [(0, "zero"), (1, "one"), (2, "two")]


def test_equal_questions_of_equal_send_tasks_are_told_apart(saver: Any, call: Call) -> None:
    """B43: tasks tell questions apart, payloads need not"""

    def work(state: Item) -> Item:
        return {"log": [interrupt("sure?")]}

    graph, config = fan_out(saver, work), thread()
    open_ids = [i.id for i in asked(call(graph, {"log": []}, config))]
    assert len(set(open_ids)) == 3
    answers = {question: n for n, question in enumerate(open_ids)}
    assert call(graph, Command(resume=answers), config)["log"] == [0, 1, 2]


def test_a_map_must_be_one_wholly(saver: Any, call: Call) -> None:
    """Table: a dict with any key in the form of an id is a map of answers and must be one wholly"""
    asking, config = Asking(), thread()
    graph = asking.graph(saver)
    open_ids = ids(call(graph, {"log": []}, config))
    with pytest.raises(UnknownInterruptError) as caught:
        call(graph, Command(resume={open_ids["a?"]: "A", "note": "x"}), config)
    assert "note" in caught.value.interrupt_ids
    assert asking.runs == {"a": 1, "b": 1}
    assert {q.status for q in saver.pending(answerable=False)} == {"open"}


def ask(state: State) -> State:
    return {"log": [interrupt("name?")]}


@pytest.mark.parametrize("value", [{"name": "ana"}, {"A" * 32: 1}, {"a" * 31: 1}, {"g" * 32: 1}, {1: "x"}], ids=repr)
def test_a_dict_without_the_form_of_an_id_in_its_keys_is_a_plain_answer(saver: Any, call: Call, value: Any) -> None:
    """Table; B32"""
    graph, config = chain(saver, ask), thread()
    call(graph, {"log": []}, config)
    assert call(graph, Command(resume=value), config) == {"log": [value]}


def test_a_map_may_hold_a_map_as_an_answer(saver: Any) -> None:
    """Table: an answer that looks like a map is sent by id"""
    graph, config = chain(saver, ask), thread()
    question = the_id(graph.invoke({"log": []}, config))
    tricky = {"f" * 32: 1}
    with pytest.raises(UnknownInterruptError):
        graph.invoke(Command(resume=tricky), config)
    assert graph.invoke(Command(resume={question: tricky}), config) == {"log": [tricky]}


def test_an_answer_object_may_wrap_a_bare_value_that_looks_like_a_map(saver: Any) -> None:
    """Table: `Answer(value)` is one answer, whatever its value"""
    graph, config = chain(saver, ask), thread()
    graph.invoke({"log": []}, config)
    tricky = {"f" * 32: 1}
    assert graph.invoke(Command(resume=Answer(tricky)), config) == {"log": [tricky]}


def test_questions_at_several_levels_are_answered_by_id_from_the_root(saver: Any, call: Call) -> None:
    """B31 with nesting: in a node, in a subgraph, in a graph called by a function, two levels down"""
    runs: Counter[str] = Counter()

    def inner(state: State) -> State:
        runs["inner"] += 1
        return {"log": [interrupt("inner?")]}

    def calls(state: State) -> Any:
        runs["calls"] += 1
        return {"log": chain(None, inner).invoke({"log": []})["log"]}

    asking, config = Asking(), thread()
    graph: Any = builder(asking.a, calls, edges="parallel")
    middle = builder().add_node("deep", chain(None, inner)).add_edge(START, "deep").compile()
    graph.add_node("middle", middle).add_edge(START, "middle").add_edge("middle", END)
    compiled = graph.compile(checkpointer=saver)
    result = call(compiled, {"log": []}, config)
    assert sorted(i.value for i in asked(result)) == ["a?", "inner?", "inner?"]
    by_path = {q.path: q.id for q in saver.pending()}
    assert set(by_path) == {("a",), ("calls", "inner"), ("middle", "deep", "inner")}
    call(compiled, Command(resume={by_path[("middle", "deep", "inner")]: "deep"}), config)
    assert runs == {"inner": 3, "calls": 1}
    call(compiled, Command(resume={by_path[("calls", "inner")]: "called"}), config)
    assert runs == {"inner": 4, "calls": 2}
    assert call(compiled, Command(resume="A"), config) == {"log": ["A", "called", "deep"]}


def test_coroutines_that_ask_in_parallel_are_answered_by_id(saver: Any) -> None:
    """B32"""

    async def a(state: State) -> State:
        return {"log": [interrupt("a?")]}

    async def b(state: State) -> State:
        return {"log": [interrupt("b?")]}

    graph, config = parallel(saver, a, b), thread()

    async def talk() -> Any:
        open_ids = ids(await graph.ainvoke({"log": []}, config))
        await graph.ainvoke(Command(resume={open_ids["b?"]: "B"}), config)
        return await graph.ainvoke(Command(resume={open_ids["a?"]: "A"}), config)

    assert asyncio.run(talk()) == {"log": ["A", "B"]}
