"""History: what each checkpoint says, how it is listed, and how a thread goes back to one."""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
from typing import Any

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, builder, chain, parallel, the_id, thread
from waitpoint import clock
from waitpoint.errors import AmbiguousInterruptError, NotFoundError, UnknownInterruptError, WaitpointError
from waitpoint.graph import START, StateGraph
from waitpoint.types import Answer, Command, Send, interrupt


def a(state: State) -> State:
    return {"log": ["a"]}


def b(state: State) -> State:
    return {"log": ["b"]}


def ask(state: State) -> State:
    return {"log": [interrupt("name?")]}


def history(graph: Any, config: Any, **options: Any) -> list[Any]:
    return list(graph.get_state_history(config, **options))


def at(graph: Any, config: Any, *, node: str) -> Any:
    """Return the newest snapshot that has this node due."""
    return next_of(history(graph, config), node)


def next_of(snapshots: list[Any], name: str) -> Any:
    return next(s for s in snapshots if s.next == (name,))


# --- what is listed ---------------------------------------------------------------------------------------------------


def test_a_run_of_n_nodes_makes_n_plus_two_checkpoints_newest_first(saver: Any, call: Call) -> None:
    """B80"""
    graph, config = chain(saver, a, b), thread()
    call(graph, {"log": ["in"]}, config)
    told = [(s.metadata["source"], s.metadata["step"], s.next, s.values["log"]) for s in history(graph, config)]
    assert told == [
        ("loop", 2, (), ["in", "a", "b"]),
        ("loop", 1, ("b",), ["in", "a"]),
        ("loop", 0, ("a",), ["in"]),
        ("input", -1, ("__start__",), []),
    ]


def test_the_second_run_of_a_thread_counts_on(saver: Any, call: Call) -> None:
    """B80"""
    graph, config = chain(saver, a), thread()
    call(graph, {"log": ["in"]}, config)
    call(graph, {"log": ["more"]}, config)
    told = [(s.metadata["source"], s.metadata["step"], s.next) for s in history(graph, config)]
    assert told[:3] == [("loop", 4, ()), ("loop", 3, ("a",)), ("input", 2, ("__start__",))]


def test_a_snapshot_has_all_its_parts(saver: Any, call: Call) -> None:
    """B81"""
    graph, config = chain(saver, a, b), thread("t")
    with clock.fixed(lambda: 1_700_000_000.25):
        call(graph, {"log": []}, config)
    newest, *_, first = history(graph, config)
    for snapshot in (newest, first):
        where = snapshot.config["configurable"]
        assert set(where) == {"thread_id", "checkpoint_ns", "checkpoint_id"}
        assert (where["thread_id"], where["checkpoint_ns"]) == ("t", "")
        assert set(snapshot.metadata) == {"source", "step", "parents"}
        assert snapshot.metadata["parents"] == {}
        assert snapshot.interrupts == ()
        assert dt.datetime.fromisoformat(snapshot.created_at).timestamp() == 1_700_000_000.25
    assert first.parent_config is None
    chain_of = history(graph, config)
    for child, parent in itertools.pairwise(chain_of):
        assert child.parent_config == parent.config


def test_metadata_holds_what_the_config_says_besides_reserved_keys(saver: Any, call: Call) -> None:
    """B81, close to 123 and 124"""
    graph, config = chain(saver, a), thread("t", user="ana")
    call(graph, {"log": []}, {**config, "metadata": {"batch": 3}})
    for snapshot in history(graph, config):
        assert set(snapshot.metadata) == {"source", "step", "parents", "user", "batch"}
        assert (snapshot.metadata["user"], snapshot.metadata["batch"]) == ("ana", 3)


def test_tasks_carry_their_results_and_the_first_one_the_input(saver: Any, call: Call) -> None:
    """B82"""
    graph, config = chain(saver, a, b), thread()
    call(graph, {"log": ["in"]}, config)
    told = [[(t.name, t.result) for t in s.tasks] for s in history(graph, config)]
    assert told == [[], [("b", {"log": ["b"]})], [("a", {"log": ["a"]})], [("__start__", {"log": ["in"]})]]


def test_tasks_of_sends_and_siblings_are_listed_in_their_fixed_order(saver: Any, call: Call) -> None:
    """B82, B152"""

    def work(item: int) -> State:
        return {"log": [item]}

    graph: Any = builder(b, a, edges="parallel").add_node("work", work)
    graph.add_conditional_edges(START, lambda s: [Send("work", 2), Send("work", 1)])
    graph, config = graph.compile(checkpointer=saver), thread()
    call(graph, {"log": []}, config)
    step = history(graph, config)[1]
    assert step.next == ("a", "b", "work", "work")
    assert [t.result["log"] for t in step.tasks] == [["a"], ["b"], [2], [1]]


def test_a_pause_is_on_record_with_its_question_after_the_answer_too(saver: Any, call: Call) -> None:
    """B82, close to 38"""
    graph, config = chain(saver, a, ask), thread()
    question = the_id(call(graph, {"log": []}, config))
    call(graph, Command(resume="ana"), config)
    paused = at(graph, config, node="ask")
    assert [i.id for i in paused.interrupts] == [question]
    assert [i.value for i in paused.tasks[0].interrupts] == ["name?"]
    assert paused.tasks[0].result == {"log": ["ana"]}


def test_limit_and_before_choose_a_part(saver: Any, call: Call) -> None:
    """B83"""
    graph, config = chain(saver, a, b), thread()
    call(graph, {"log": []}, config)
    everything = history(graph, config)
    assert history(graph, config, limit=2) == everything[:2]
    assert history(graph, config, limit=0) == []
    assert history(graph, config, before=everything[1].config) == everything[2:]
    assert history(graph, config, before=everything[1].config, limit=1) == everything[2:3]
    assert history(graph, config, before=everything[-1].config) == []


def test_a_filter_chooses_by_metadata(saver: Any, call: Call) -> None:
    """B83"""
    graph, config = chain(saver, a, b), thread()
    call(graph, {"log": []}, config)
    assert [s.metadata["step"] for s in history(graph, config, filter={"source": "input"})] == [-1]
    assert [s.next for s in history(graph, config, filter={"source": "loop", "step": 1})] == [("b",)]
    assert history(graph, config, filter={"source": "update"}) == []
    assert [s.metadata["step"] for s in history(graph, config, filter={"source": "loop"}, limit=2)] == [2, 1]


def test_checkpoint_ids_sort_by_time_also_when_the_clock_goes_back(saver: Any, call: Call) -> None:
    """B83"""
    graph, config = chain(saver, a, b), thread()
    times = iter(range(2_000_000_000, 0, -1000))
    with clock.fixed(lambda: float(next(times))):
        call(graph, {"log": []}, config)
        call(graph, {"log": []}, config)
    ids = [s.config["configurable"]["checkpoint_id"] for s in history(graph, config)]
    assert ids == sorted(ids, reverse=True)
    assert len(ids) == len(set(ids)) == 8


def test_the_async_history_is_the_same(saver: Any) -> None:
    """B80"""
    graph, config = chain(saver, a, b), thread()

    async def listed() -> list[Any]:
        await graph.ainvoke({"log": []}, config)
        return [s async for s in graph.aget_state_history(config, limit=3)]

    assert asyncio.run(listed()) == history(graph, config, limit=3)


def test_another_process_reads_the_same_history(store: Store, call: Call) -> None:
    """B80"""
    config = thread()
    call(chain(store.saver, a, ask), {"log": []}, config)
    assert history(chain(store.again(), a, ask), config) == history(chain(store.saver, a, ask), config)


def test_a_thread_that_never_ran_has_no_history_and_an_empty_state(saver: Any) -> None:
    graph, config = chain(saver, a), thread()
    assert history(graph, config) == []
    state = graph.get_state(config)
    assert (state.values, state.next, state.tasks, state.metadata, state.created_at) == ({}, (), (), None, None)
    with pytest.raises(NotFoundError, match="Unknown checkpoint 'nowhere'"):
        graph.get_state({"configurable": {**config["configurable"], "checkpoint_id": "nowhere"}})


def test_without_a_checkpointer_there_is_no_history_and_the_error_says_so() -> None:
    with pytest.raises(WaitpointError, match="no checkpointer"):
        history(chain(None, a), thread())


def test_threads_do_not_see_each_other(saver: Any, call: Call) -> None:
    """B81"""
    graph = chain(saver, a)
    one, two = thread(), thread()
    call(graph, {"log": ["one"]}, one)
    call(graph, {"log": ["two"]}, two)
    assert {s.config["configurable"]["thread_id"] for s in history(graph, one)} == {one["configurable"]["thread_id"]}
    assert graph.get_state(two).values["log"] == ["two", "a"]


def test_get_state_of_an_older_checkpoint_is_its_record(saver: Any, call: Call) -> None:
    """B81, close to 114"""
    graph, config = chain(saver, a, b), thread()
    call(graph, {"log": []}, config)
    for snapshot in history(graph, config):
        assert graph.get_state(snapshot.config) == snapshot


# --- going back: replay -----------------------------------------------------------------------------------------------


class Counted:
    """Nodes that count their runs."""

    def __init__(self) -> None:
        self.runs: list[str] = []

    def one(self, state: State) -> State:
        self.runs.append("one")
        return {"log": ["one"]}

    def two(self, state: State) -> State:
        self.runs.append("two")
        return {"log": ["two"]}

    def three(self, state: State) -> State:
        self.runs.append("three")
        return {"log": ["three"]}


def test_a_replay_runs_only_what_follows_and_runs_it_again(saver: Any, call: Call) -> None:
    """B84"""
    counted = Counted()
    graph, config = chain(saver, counted.one, counted.two, counted.three), thread()
    call(graph, {"log": []}, config)
    counted.runs.clear()
    assert call(graph, None, at(graph, config, node="two").config)["log"] == ["one", "two", "three"]
    assert counted.runs == ["two", "three"]


def test_a_replay_forks_and_old_checkpoints_stay(saver: Any, call: Call) -> None:
    """B86"""
    graph, config = chain(saver, a, b), thread()
    call(graph, {"log": []}, config)
    before = history(graph, config)
    replayed = next_of(before, "b")
    call(graph, None, replayed.config)
    after = history(graph, config)
    assert after[-len(before) :] == before
    new = after[: -len(before)]
    assert [(s.metadata["source"], s.next) for s in new] == [("loop", ()), ("fork", ("b",))]
    assert new[1].parent_config == replayed.config
    assert new[1].values == replayed.values
    assert graph.get_state(config).config == new[0].config


def test_a_replay_of_the_first_checkpoint_begins_with_the_same_input(saver: Any, call: Call) -> None:
    """B86"""
    graph, config = chain(saver, a, b), thread()
    call(graph, {"log": ["in"]}, config)
    assert call(graph, None, history(graph, config)[-1].config)["log"] == ["in", "a", "b"]


def test_a_replay_of_the_last_checkpoint_runs_nothing(saver: Any, call: Call) -> None:
    """B84"""
    counted = Counted()
    graph, config = chain(saver, counted.one), thread()
    call(graph, {"log": []}, config)
    assert call(graph, None, graph.get_state(config).config)["log"] == ["one"]
    assert counted.runs == ["one"]


def test_a_replay_of_parallel_nodes_runs_them_all_again(saver: Any, call: Call) -> None:
    """B84: nothing is taken from the old run"""
    counted = Counted()
    graph, config = parallel(saver, counted.one, counted.two), thread()
    call(graph, {"log": []}, config)
    assert call(graph, None, history(graph, config)[1].config)["log"] == ["one", "two"]
    assert sorted(counted.runs) == ["one", "one", "two", "two"]


@pytest.mark.parametrize("where", ["before", "at"])
def test_a_replay_from_before_or_at_a_question_asks_again_under_a_new_id(saver: Any, call: Call, where: str) -> None:
    """B87"""
    graph, config = chain(saver, a, ask), thread()
    seen = [the_id(call(graph, {"log": []}, config))]
    call(graph, Command(resume="first"), config)
    target = at(graph, config, node="a" if where == "before" else "ask").config
    for _ in range(3):
        (question,) = asked(call(graph, None, target))
        assert question.value == "name?"
        assert question.id not in seen
        seen.append(question.id)
    assert [q.id for q in saver.pending()] == seen[-1:]


def test_the_plain_config_answers_the_newest_fork_and_the_old_branch_keeps_its_answer(saver: Any, call: Call) -> None:
    """B88"""
    graph, config = chain(saver, ask, b), thread()
    call(graph, {"log": []}, config)
    call(graph, Command(resume="old"), config)
    ended = graph.get_state(config)
    call(graph, None, at(graph, config, node="ask").config)
    assert call(graph, Command(resume="new"), config)["log"] == ["new", "b"]
    assert graph.get_state(ended.config).values["log"] == ["old", "b"]
    assert graph.get_state(config).values["log"] == ["new", "b"]


def test_an_answer_to_a_question_of_a_branch_that_was_left_is_refused(saver: Any, call: Call) -> None:
    """B88"""
    graph, config = chain(saver, a, ask), thread()
    question = the_id(call(graph, {"log": []}, config))
    call(graph, None, at(graph, config, node="a").config)
    with pytest.raises(UnknownInterruptError, match=f"{question} was withdrawn: the thread was moved"):
        call(graph, Command(resume={question: "late"}), config)


def test_a_resume_at_an_old_checkpoint_forks_asks_and_answers_at_once(saver: Any, call: Call) -> None:
    """B88, architecture 7: the old id or a bare value answers the equal question that the fork asks"""
    graph, config = chain(saver, ask, b), thread()
    question = the_id(call(graph, {"log": []}, config))
    call(graph, Command(resume="old"), config)
    old = at(graph, config, node="ask").config
    assert call(graph, Command(resume="bare"), old)["log"] == ["bare", "b"]
    assert call(graph, Command(resume={question: "by id"}), old)["log"] == ["by id", "b"]
    assert saver.pending() == []


def ask_first(state: State) -> State:
    return {"log": [interrupt("first?")]}


def ask_second(state: State) -> State:
    return {"log": [interrupt("second?")]}


def test_with_two_questions_in_a_row_going_back_asks_only_what_follows(saver: Any, call: Call) -> None:
    """B92"""
    graph, config = chain(saver, ask_first, ask_second), thread()
    call(graph, {"log": []}, config)
    call(graph, Command(resume=1), config)
    call(graph, Command(resume=2), config)
    between = at(graph, config, node="ask_second").config
    result = call(graph, None, graph.update_state(between, {"log": ["fork"]}, as_node="ask_first"))
    assert [i.value for i in asked(result)] == ["second?"]
    assert call(graph, Command(resume=3), config)["log"] == [1, "fork", 3]
    result = call(graph, None, at_first(graph, config))
    assert [i.value for i in asked(result)] == ["first?"]


def at_first(graph: Any, config: Any) -> Any:
    return [s for s in history(graph, config) if s.next == ("ask_first",)][-1].config


def test_a_loop_can_be_replayed_from_each_round(saver: Any, call: Call) -> None:
    """B84"""

    def count(state: State) -> State:
        return {"value": state["value"] + 1}

    graph: Any = StateGraph(State).add_node("count", count).add_edge(START, "count")
    graph.add_conditional_edges("count", lambda s: "count" if s["value"] < 3 else "__end__")
    graph, config = graph.compile(checkpointer=saver), thread()
    call(graph, {"value": 0}, config)
    for snapshot in [s for s in history(graph, config) if s.next == ("count",)]:
        assert call(graph, None, snapshot.config)["value"] == 3


def test_new_input_at_an_old_checkpoint_starts_from_there(saver: Any, call: Call) -> None:
    """B86"""
    graph, config = chain(saver, a), thread()
    call(graph, {"log": ["one"]}, config)
    end_of_first = graph.get_state(config).config
    call(graph, {"log": ["two"]}, config)
    assert call(graph, {"log": ["three"]}, end_of_first)["log"] == ["one", "a", "three", "a"]
    assert graph.get_state(config).values["log"] == ["one", "a", "three", "a"]


# --- going back: commands ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "resume"),
    [("a", "bare"), ("ask", {"0" * 32: 1}), ("ask", object()), ("b", "bare")],
    ids=["before the question", "no such id", "cannot be stored", "after the question"],
)
def test_an_answer_that_an_old_checkpoint_cannot_take_is_refused_and_nothing_runs(
    saver: Any, call: Call, where: str, resume: Any
) -> None:
    """Guarantee answers-atomic: a refused answer changes nothing, so the head is not moved and no node runs again"""
    graph, config = chain(saver, a, ask, b), thread()
    call(graph, {"log": []}, config)
    call(graph, Command(resume="yes"), config)
    before = history(graph, config)
    old = next_of(before, where)
    with pytest.raises((UnknownInterruptError, TypeError)):
        call(graph, Command(resume=resume), old.config)
    assert history(graph, config) == before


def test_a_bare_answer_at_an_old_checkpoint_of_several_tasks_is_refused_and_nothing_runs(
    saver: Any, call: Call
) -> None:
    graph, config = parallel(saver, ask_first, ask_second), thread()
    questions = asked(call(graph, {"log": []}, config))
    call(graph, Command(resume={q.id: 1 for q in questions}), config)
    before = history(graph, config)
    old = next(s for s in before if len(s.next) == 2)
    with pytest.raises(AmbiguousInterruptError):
        call(graph, Command(resume=2), old.config)
    assert history(graph, config) == before


@pytest.mark.parametrize(
    ("command", "log"),
    [
        (Command(update={"log": ["new"]}), ["a", "new", "b"]),
        (Command(goto="c"), ["a", "b", "c"]),
        (Command(update={"log": ["new"] * 300}, goto=Send("c", {})), ["a", *["new"] * 300, "b", "c"]),
    ],
    ids=["update", "goto", "both"],
)
def test_a_command_at_an_old_checkpoint_is_laid_over_the_fork(
    saver: Any, call: Call, command: Any, log: list[str]
) -> None:
    """B69, B86"""
    graph: Any = builder(a, b).add_node("c", lambda state: {"log": ["c"]})
    graph, config = graph.compile(checkpointer=saver), thread()
    call(graph, {"log": []}, config)
    old = next_of(history(graph, config), "b")
    assert call(graph, command, old.config)["log"] == log
    assert history(graph, config)[1].metadata["source"] == "fork"


def test_an_update_comes_with_an_answer_at_an_old_checkpoint_too(saver: Any, call: Call) -> None:
    graph, config = chain(saver, ask, b), thread()
    call(graph, {"log": []}, config)
    call(graph, Command(resume="old"), config)
    old = next_of(history(graph, config), "ask")
    assert call(graph, Command(resume="new", update={"log": ["more"]}), old.config)["log"] == ["more", "new", "b"]


def test_a_resume_at_an_old_breakpoint_runs_again_from_it(saver: Any, call: Call) -> None:
    """B69: at a static breakpoint the value is dropped"""
    graph, config = chain(saver, a, b, interrupt_before=["b"]), thread()
    call(graph, {"log": []}, config)
    call(graph, None, config)
    old = next_of(history(graph, config), "a")
    assert call(graph, Command(resume=True), old.config)["log"] == ["a"]
    assert graph.get_state(config).next == ("b",)


@pytest.mark.parametrize("by_id", [False, True], ids=["bare", "by id"])
def test_an_answer_repeated_under_its_token_with_the_config_of_its_pause_does_nothing(
    saver: Any, call: Call, by_id: bool
) -> None:
    """A delivery that is tried again names the checkpoint that it saw, which is an old one by then."""
    graph, config = chain(saver, ask, b), thread()
    question = the_id(call(graph, {"log": []}, config))
    pause = graph.get_state(config).config
    answer = Answer("yes", token="t")
    given = Command(resume={question: answer} if by_id else answer)
    done = call(graph, given, pause)
    before = history(graph, config)
    assert call(graph, given, pause) == done
    assert history(graph, config) == before
