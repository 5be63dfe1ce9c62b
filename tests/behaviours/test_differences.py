"""Where Waitpoint deliberately differs from LangGraph: a test or two for each row of the table of differences.

The rows about agents (`when`, batched edits and decisions, texts of rejections and descriptions, tools with a JSON
Schema, dangling tool calls) belong to the tests of agents; stream modes `checkpoints` and `debug` to those of streams.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pydantic import ValidationError

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, builder, chain, ids, parallel, the_id, thread
from waitpoint.engine.answers import answer as record_answer
from waitpoint.errors import (
    AlreadyAnsweredError,
    CheckpointerRequiredError,
    PendingQuestionsError,
    ThreadBusyError,
    UnknownInterruptError,
)
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, Send, interrupt, step

NOBODY = "0123456789abcdef" * 2


class Nodes:
    """Two nodes that ask, one that does not, and how often each ran."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()

    def a(self, state: State) -> State:
        self.runs["a"] += 1
        return {"log": [interrupt("a?")]}

    def b(self, state: State) -> State:
        self.runs["b"] += 1
        return {"log": [interrupt("b?")]}

    def c(self, state: State) -> State:
        self.runs["c"] += 1
        return {"log": ["c"]}


def test_asking_without_a_checkpointer_is_an_error_at_the_call(call: Call) -> None:
    """There: a question that nobody can answer"""
    with pytest.raises(CheckpointerRequiredError, match="compile"):
        call(chain(None, Nodes().a), {"log": []})


@pytest.mark.parametrize("resume", [{NOBODY: 1}, "a value", None, {}], ids=["unknown id", "value", "None", "{}"])
@pytest.mark.parametrize("at", ["before the first run", "after the last"])
def test_an_answer_to_nothing_is_refused_by_name(saver: Any, call: Call, at: str, resume: Any) -> None:
    """There: ignored, or a crash"""
    graph, config = chain(saver, Nodes().a), thread()
    if at == "after the last":
        call(graph, {"log": []}, config)
        call(graph, Command(resume="A"), config)
    before = (saver.threads(), list(graph.get_state_history(config)))
    with pytest.raises(UnknownInterruptError) as caught:
        call(graph, Command(resume=resume), config)
    assert caught.value.reason == "not_pending"
    assert (saver.threads(), list(graph.get_state_history(config))) == before


def test_an_answered_and_a_stale_id_are_refused_by_name(saver: Any, call: Call) -> None:
    """There: ignored"""
    nodes, config = Nodes(), thread()
    graph = chain(saver, nodes.a, nodes.b)
    first = the_id(call(graph, {"log": []}, config))
    call(graph, Command(resume={first: "A"}), config)
    for _ in range(2):
        with pytest.raises(AlreadyAnsweredError, match=first):
            call(graph, Command(resume={first: "again"}), config)
    assert call(graph, Command(resume="B"), config) == {"log": ["A", "B"]}


def test_an_empty_command_is_refused_as_an_empty_map(saver: Any, call: Call) -> None:
    """There: ignored"""
    graph, config = chain(saver, Nodes().a), thread()
    call(graph, {"log": []}, config)
    with pytest.raises(UnknownInterruptError) as caught:
        call(graph, Command(), config)
    assert caught.value.reason == "empty_map"
    assert len(saver.pending()) == 1


@pytest.mark.parametrize("resume", ["anything", None, {}, False], ids=repr)
def test_a_value_at_a_static_breakpoint_goes_on_and_is_dropped(saver: Any, call: Call, resume: Any) -> None:
    """Here too: at a breakpoint there is nothing to answer, and the value answers no later question"""
    nodes, config = Nodes(), thread()
    graph = chain(saver, nodes.c, nodes.a, interrupt_before=["a"])
    assert call(graph, {"log": []}, config) == {"log": ["c"]}
    result = call(graph, Command(resume=resume), config)
    assert [i.value for i in asked(result)] == ["a?"]
    assert call(graph, Command(resume="A"), config) == {"log": ["c", "A"]}


def test_a_map_of_answers_at_a_static_breakpoint_is_refused(saver: Any, call: Call) -> None:
    """It names questions, and there are none"""
    nodes, config = Nodes(), thread()
    graph = chain(saver, nodes.c, interrupt_before=["c"])
    call(graph, {"log": []}, config)
    with pytest.raises(UnknownInterruptError, match=NOBODY):
        call(graph, Command(resume={NOBODY: 1}), config)
    assert nodes.runs == {}


def test_an_empty_dict_answers_the_single_open_question(saver: Any, call: Call) -> None:
    """There: it names no interrupt"""
    graph, config = chain(saver, Nodes().a), thread()
    call(graph, {"log": []}, config)
    assert call(graph, Command(resume={}), config) == {"log": [{}]}


def test_an_empty_dict_is_ambiguous_while_several_questions_are_open(saver: Any, call: Call) -> None:
    """It is a value, not a map"""
    nodes, config = Nodes(), thread()
    graph = parallel(saver, nodes.a, nodes.b)
    call(graph, {"log": []}, config)
    with pytest.raises(UnknownInterruptError) as caught:
        call(graph, Command(resume={}), config)
    assert caught.value.reason == "ambiguous"


def test_a_raw_json_schema_is_enforced(saver: Any, call: Call) -> None:
    """There: shown only"""

    def node(state: State) -> State:
        return {"log": [interrupt("n?", response_schema={"type": "integer", "minimum": 1})]}

    graph, config = chain(saver, node), thread()
    call(graph, {"log": []}, config)
    for bad in ("one", 0, None):
        with pytest.raises(ValidationError):
            call(graph, Command(resume=bad), config)
    assert call(graph, Command(resume=1), config) == {"log": [1]}


def test_of_several_answers_all_are_taken_or_none(saver: Any, call: Call) -> None:
    """There: the good ones run"""
    nodes, config = Nodes(), thread()

    def strict(state: State) -> State:
        return {"log": [interrupt("n?", response_schema={"type": "integer"})]}

    graph = parallel(saver, nodes.a, strict)
    open_ids = ids(call(graph, {"log": []}, config))
    for bad in ({open_ids["a?"]: "A", open_ids["n?"]: "bad"}, {open_ids["a?"]: "A", NOBODY: 1}):
        with pytest.raises(ValueError, match=r"."):
            call(graph, Command(resume=bad), config)
    assert nodes.runs == {"a": 1}
    assert [q.status for q in saver.pending(answerable=False)] == ["open", "open"]


def test_continuing_a_waiting_thread_does_not_touch_tasks_that_only_wait(saver: Any, call: Call) -> None:
    """There: runs the pending nodes again"""
    nodes, config = Nodes(), thread()
    graph = parallel(saver, nodes.a, nodes.b, nodes.c)
    first = call(graph, {"log": []}, config)
    assert call(graph, None, config) == first
    assert nodes.runs == {"a": 1, "b": 1, "c": 1}


def test_a_partial_answer_does_not_touch_the_siblings(store: Store, call: Call) -> None:
    """There: runs the unanswered siblings again"""
    nodes, config = Nodes(), thread()
    open_ids = ids(call(parallel(store.saver, nodes.a, nodes.b, nodes.c), {"log": []}, config))
    call(parallel(store.again(), nodes.a, nodes.b, nodes.c), Command(resume={open_ids["a?"]: "A"}), config)
    assert nodes.runs == {"a": 2, "b": 1, "c": 1}


def test_a_partial_answer_does_not_touch_sibling_sends_and_subgraphs(saver: Any, call: Call) -> None:
    """The same for tasks of every kind"""
    runs: Counter[str] = Counter()

    def work(given: Any) -> State:
        runs[f"work {given['value']}"] += 1
        return {"log": [interrupt(f"work {given['value']}?")]}

    def inner(state: State) -> State:
        runs["inner"] += 1
        return {"log": [interrupt("inner?")]}

    graph: Any = StateGraph(State).add_node("work", work).add_node("inner", builder(inner).compile())
    graph.add_edge(START, "inner")
    graph.add_conditional_edges(START, lambda _: [Send("work", {"value": n}) for n in range(2)], ["work"])
    compiled, config = graph.compile(checkpointer=saver), thread()
    open_ids = ids(call(compiled, {"log": []}, config))
    call(compiled, Command(resume={open_ids["work 1?"]: 1}), config)
    assert runs == {"inner": 1, "work 0": 1, "work 1": 2}
    call(compiled, Command(resume={open_ids["inner?"]: 2}), config)
    assert runs == {"inner": 2, "work 0": 1, "work 1": 2}
    assert call(compiled, Command(resume=0), config) == {"log": [2, 0, 1]}


def test_new_input_on_a_waiting_thread_is_refused_unless_told_to_withdraw(saver: Any, call: Call) -> None:
    """There: restarts it and drops the question"""
    graph, config = chain(saver, Nodes().a), thread()
    question = the_id(call(graph, {"log": ["one"]}, config))
    with pytest.raises(PendingQuestionsError, match=question):
        call(graph, {"log": ["two"]}, config)
    assert [q.id for q in saver.pending()] == [question]
    call(graph, {"log": ["two"]}, config, on_pending="withdraw")
    assert [(q.status, q.reason) for q in saver.pending(answerable=False)][0] == ("withdrawn", "new input came")  # noqa: RUF015
    assert call(graph, Command(resume="A"), config) == {"log": ["one", "two", "A"]}


def test_an_answer_goes_to_its_question_and_not_to_its_position(saver: Any, call: Call) -> None:
    """There: by position, so that a yes to one file deletes another"""
    files, config = ["a.txt", "b.txt"], thread()

    def node(state: State) -> State:
        return {"log": [(name, interrupt(f"Delete {name}?")) for name in files]}

    graph = chain(saver, node)
    call(graph, {"log": []}, config)
    call(graph, Command(resume="yes"), config)
    files.insert(0, "archive.zip")
    result = call(graph, Command(resume="no"), config)
    assert [i.value for i in asked(result)] == ["Delete archive.zip?"]
    final = call(graph, Command(resume="never"), config)
    assert final == {"log": [("archive.zip", "never"), ("a.txt", "yes"), ("b.txt", "no")]}


def test_questions_of_several_tasks_come_in_one_last_part(saver: Any, streamed: Call) -> None:
    """There: one `__interrupt__` chunk for each paused task"""
    nodes = Nodes()
    graph = parallel(saver, nodes.a, nodes.b, nodes.c)
    parts = streamed(graph, {"log": []}, thread(), stream_mode=["updates", "values", "tasks"])
    last_update = [p for m, p in parts if m == "updates"][-1]
    last_values = [p for m, p in parts if m == "values"][-1]
    assert [i.value for i in last_update["__interrupt__"]] == ["a?", "b?"]
    assert last_values["__interrupt__"] == last_update["__interrupt__"]
    assert sum("__interrupt__" in p for m, p in parts if m == "updates") == 1
    assert sum("__interrupt__" in p for m, p in parts if m == "values") == 1
    by_task = {p["name"]: p["interrupts"] for m, p in parts if m == "tasks" and "interrupts" in p}
    assert {name: [i["value"] for i in found] for name, found in by_task.items()} == {"a": ["a?"], "b": ["b?"], "c": []}
    assert {m for m, _ in parts[-2:]} == {"updates", "values"}


def test_a_failed_tasks_answer_is_replaced_only_while_no_effect_came_after_it(saver: Any, call: Call) -> None:
    """There: always"""
    for effect, refused in ((False, False), (True, True)):

        def node(state: State, effect: bool = effect) -> State:
            answer = interrupt("n?")
            if effect:
                step(str.upper, "done")
            return {"log": [int(answer)]}

        graph, config = chain(saver, node), thread()
        question = the_id(call(graph, {"log": []}, config))
        with pytest.raises(ValueError, match="seven"):
            call(graph, Command(resume="seven"), config)
        if refused:
            with pytest.raises(AlreadyAnsweredError):
                call(graph, Command(resume={question: "7"}), config)
        else:
            assert call(graph, Command(resume={question: "7"}), config) == {"log": [7]}


def test_durability_exit_saves_what_a_durable_record_rests_on(saver: Any, call: Call) -> None:
    """There: one checkpoint at the end of the run"""

    def plain(state: State) -> State:
        return {"log": ["plain"]}

    def other(state: State) -> State:
        return {"log": ["other"]}

    def recorded(state: State) -> State:
        return {"log": [step(str.upper, "recorded")]}

    def count(*nodes: Any) -> int:
        graph, config = chain(saver, *nodes), thread()
        result = call(graph, {"log": []}, config, durability="exit")
        if "__interrupt__" in result:
            call(graph, Command(resume="A"), config, durability="exit")
        return len(list(graph.get_state_history(config)))

    nodes = Nodes()
    assert count(plain, other) == 1
    assert count(plain, recorded, other) == 2
    assert count(plain, nodes.a, other) == 2
    assert count(recorded, plain, nodes.a, other) == 3


def test_new_input_on_a_ready_thread_is_refused_unless_told_to_withdraw(saver: Any, call: Call) -> None:
    """There: starts over"""
    graph, config = chain(saver, Nodes().a), thread()
    question = the_id(call(graph, {"log": ["one"]}, config))
    record_answer(saver, question, "A")
    with pytest.raises(ThreadBusyError, match="withdraw"):
        call(graph, {"log": ["two"]}, config)
    result = call(graph, {"log": ["two"]}, config, on_pending="withdraw")
    assert [i.value for i in asked(result)] == ["a?"]
    assert the_id(result) != question


def test_every_question_of_a_node_has_an_id_of_its_own(saver: Any, call: Call) -> None:
    """There: the later ones share the first one's id unless strict"""

    def node(state: State) -> State:
        return {"log": [interrupt(f"{n}?") for n in range(4)]}

    graph, config = chain(saver, node), thread()
    found = [the_id(call(graph, {"log": []}, config))]
    found += [the_id(call(graph, Command(resume=n), config)) for n in range(3)]
    assert len(set(found)) == 4
