"""Changing the state from outside: updates, forks, copies, and whole threads built from updates."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, builder, chain, parallel, the_id, thread
from waitpoint.errors import InvalidUpdateError, NotFoundError, ThreadBusyError, UnknownInterruptError, WaitpointError
from waitpoint.graph import END, START, StateGraph
from waitpoint.types import Command, Overwrite, Send, StateUpdate, interrupt


def a(state: State) -> State:
    return {"log": ["a"]}


def b(state: State) -> State:
    return {"log": ["b"]}


def c(state: State) -> State:
    return {"log": ["c"]}


def ask(state: State) -> State:
    return {"log": [interrupt("name?")]}


def history(graph: Any, config: Any) -> list[Any]:
    return list(graph.get_state_history(config))


def told(graph: Any, config: Any) -> list[Any]:
    """Return what a history says besides ids and times."""
    return [
        (s.values, s.next, s.metadata["step"], s.metadata["source"], [(t.name, t.result) for t in s.tasks])
        for s in history(graph, config)
    ]


@pytest.fixture(params=["update_state", "aupdate_state"])
def update(request: pytest.FixtureRequest) -> Any:
    """Change a thread's state, blocking or under asyncio."""
    if request.param == "update_state":
        return lambda graph, *given, **options: graph.update_state(*given, **options)
    return lambda graph, *given, **options: asyncio.run(graph.aupdate_state(*given, **options))


# --- updates ----------------------------------------------------------------------------------------------------------


def test_an_update_makes_a_checkpoint_with_the_values_reduced_in(saver: Any, call: Call, update: Any) -> None:
    """B89"""
    graph, config = chain(saver, a, b), thread()
    call(graph, {"log": []}, config, interrupt_before=["b"])
    paused = graph.get_state(config)
    updated = update(graph, config, {"log": ["update"], "value": 1})
    now = graph.get_state(config)
    assert set(updated["configurable"]) == {"thread_id", "checkpoint_ns", "checkpoint_id"}
    assert now.config == updated
    assert now.values == {"log": ["a", "update"], "value": 1}
    assert (now.metadata["source"], now.metadata["step"]) == ("update", paused.metadata["step"] + 1)
    assert now.parent_config == paused.config
    assert now.next == ("b",)
    assert call(graph, None, config)["log"] == ["a", "update", "b"]


def test_an_update_acts_as_the_last_node_or_as_the_one_named(saver: Any, call: Call, update: Any) -> None:
    """B89"""
    graph, config = chain(saver, a, b, c), thread()
    call(graph, {"log": []}, config, interrupt_before=["b"])
    update(graph, config, {"log": ["as b"]}, as_node="b")
    assert graph.get_state(config).next == ("c",)
    assert call(graph, None, config)["log"] == ["a", "as b", "c"]


def test_an_update_as_a_node_follows_its_routers_on_the_new_state(saver: Any, call: Call, update: Any) -> None:
    """B89"""
    graph: Any = builder(a).add_node("b", b).add_node("c", c)
    graph.add_conditional_edges("a", lambda s: s["value"])
    graph, config = graph.compile(checkpointer=saver), thread()
    call(graph, {"value": "b"}, config)
    update(graph, config, {"value": "c"}, as_node="a")
    assert graph.get_state(config).next == ("c",)
    assert call(graph, None, config)["log"] == ["a", "b", "c"]


def test_an_update_of_the_end_is_kept_and_nothing_runs(saver: Any, call: Call, update: Any) -> None:
    """B89"""
    graph, config = chain(saver, a), thread()
    call(graph, {"log": []}, config)
    update(graph, config, {"log": ["after"]})
    assert graph.get_state(config).next == ()
    assert graph.get_state(config).values["log"] == ["a", "after"]


def test_forks_of_one_checkpoint_are_independent(saver: Any, call: Call, update: Any) -> None:
    """B89"""
    graph, config = chain(saver, a, b), thread()
    call(graph, {"log": []}, config)
    old = next(s for s in history(graph, config) if s.next == ("b",))
    forks = [update(graph, old.config, {"log": [n]}) for n in (1, 2)]
    assert [graph.get_state(f).parent_config for f in forks] == [old.config, old.config]
    assert call(graph, None, forks[0])["log"] == ["a", 1, "b"]
    assert call(graph, None, forks[1])["log"] == ["a", 2, "b"]
    assert graph.get_state(old.config) == old


def test_an_update_without_values_is_an_ordinary_update(saver: Any, call: Call, update: Any) -> None:
    """B93"""
    graph, config = chain(saver, a, b), thread()
    call(graph, {"log": []}, config, interrupt_before=["b"])
    before = graph.get_state(config)
    update(graph, config, None)
    now = graph.get_state(config)
    assert (now.metadata["source"], now.values, now.parent_config) == ("update", before.values, before.config)
    assert now.next == ("b",)


def test_an_update_may_overwrite(saver: Any, call: Call, update: Any) -> None:
    """B89, B159"""
    graph, config = chain(saver, a), thread()
    call(graph, {"log": ["in"]}, config)
    update(graph, config, {"log": Overwrite(["only"])}, as_node="a")
    assert graph.get_state(config).values["log"] == ["only"]


def test_an_update_may_go_somewhere(saver: Any, call: Call, update: Any) -> None:
    """B96"""
    graph: Any = builder(a, b).add_node("c", lambda s: {"log": [s]})
    graph, config = graph.compile(checkpointer=saver), thread()
    call(graph, {"log": []}, config, interrupt_before=["b"])
    update(graph, config, Command(update={"log": ["go"]}, goto=[Send("c", 1)]), as_node="a")
    assert graph.get_state(config).next == ("b", "c")
    assert call(graph, None, config)["log"] == ["a", "go", "b", 1]


def test_an_update_before_anything_ran_is_what_the_thread_begins_with(saver: Any, call: Call, update: Any) -> None:
    graph, config = chain(saver, a, b), thread()
    call(graph, {"log": ["in"]}, config)
    begun = update(graph, history(graph, config)[-1].config, {"log": ["other"]})
    assert call(graph, None, begun)["log"] == ["other", "a", "b"]


def test_an_update_of_a_thread_that_never_ran_begins_it(saver: Any, call: Call, update: Any) -> None:
    """B89"""
    graph, config = chain(saver, a, b), thread()
    update(graph, config, {"log": ["made"]}, as_node="a")
    now = graph.get_state(config)
    assert (now.next, now.values, now.metadata["source"]) == (("b",), {"log": ["made"]}, "update")
    assert call(graph, None, config)["log"] == ["made", "b"]


@pytest.mark.parametrize("options", [{"interrupt_before": ["b"]}, {"interrupt_after": ["a"]}])
def test_an_update_at_a_breakpoint_does_not_stop_there_again(saver: Any, call: Call, update: Any, options: Any) -> None:
    """B67, B89"""
    graph, config = chain(saver, a, b, c, **options), thread()
    call(graph, {"log": []}, config)
    update(graph, config, {"log": ["update"]})
    assert call(graph, None, config)["log"] == ["a", "update", "b", "c"]


def test_another_process_sees_an_update(store: Store, call: Call) -> None:
    """B89"""
    graph, config = chain(store.saver, a, b, interrupt_before=["b"]), thread()
    call(graph, {"log": []}, config)
    graph.update_state(config, {"log": ["update"]})
    assert call(chain(store.again(), a, b), None, config)["log"] == ["a", "update", "b"]


# --- updates of a waiting thread --------------------------------------------------------------------------------------


def test_an_update_as_the_end_clears_questions_and_tasks_and_keeps_what_finished(
    saver: Any, call: Call, update: Any
) -> None:
    """B18"""
    graph, config = parallel(saver, a, ask), thread()
    question = the_id(call(graph, {"log": []}, config))
    update(graph, config, None, as_node=END)
    now = graph.get_state(config)
    assert (now.next, now.tasks, now.interrupts) == ((), (), ())
    assert (now.metadata["source"], now.values) == ("update", {"log": ["a"]})
    assert saver.pending() == []
    with pytest.raises(UnknownInterruptError, match=f"{question} was withdrawn"):
        call(graph, Command(resume={question: "late"}), config)


def test_an_update_of_a_waiting_thread_withdraws_its_questions_in_the_same_transaction(
    saver: Any, call: Call, update: Any
) -> None:
    """B89, architecture 7"""
    graph, config = chain(saver, a, ask, b), thread()
    question = the_id(call(graph, {"log": []}, config))
    update(graph, config, {"log": ["update"]})
    assert saver.pending() == []
    (closed,) = saver.pending(answerable=False)
    assert (closed.id, closed.status) == (question, "withdrawn")
    assert "moved" in (closed.reason or "")
    result = call(graph, None, config)
    assert [i.value for i in asked(result)] == ["name?"]
    assert the_id(result) != question
    assert call(graph, Command(resume="new"), config)["log"] == ["a", "update", "new", "b"]


@pytest.mark.parametrize(
    ("where", "which"), [("a", "the plain config"), ("ask", "the plain config"), ("ask", "the fork's config")]
)
def test_a_fork_by_update_asks_again_and_is_answered_with_either_config(
    saver: Any, call: Call, update: Any, where: str, which: str
) -> None:
    """B90"""
    graph, config = chain(saver, a, ask, b), thread()
    first = the_id(call(graph, {"log": []}, config))
    call(graph, Command(resume="old"), config)
    old = next(s for s in history(graph, config) if s.next == (where,))
    fork = update(graph, old.config, {"value": "fork"}, as_node=START if where == "a" else "a")
    result = call(graph, None, fork)
    assert [i.value for i in asked(result)] == ["name?"]
    assert the_id(result) != first
    target = fork if which == "the fork's config" else config
    assert call(graph, Command(resume="new"), target) == {"log": ["a", "new", "b"], "value": "fork"}


def test_a_resume_at_a_fork_from_which_the_question_is_steps_away_is_refused_and_changes_nothing(
    saver: Any, call: Call, update: Any
) -> None:
    """B90, architecture 7: the checkpoint itself had asked nothing, so a bare value answers nothing and runs nothing"""
    graph, config = chain(saver, a, ask), thread()
    call(graph, {"log": []}, config)
    old = next(s for s in history(graph, config) if s.next == ("a",))
    fork = update(graph, old.config, {"value": "fork"}, as_node=START)
    first = the_id(call(graph, None, fork))
    with pytest.raises(UnknownInterruptError, match="Nothing was asked at that checkpoint"):
        call(graph, Command(resume="x"), fork)
    (question,) = saver.pending()
    assert question.id == first
    assert call(graph, Command(resume="y"), config)["log"] == ["a", "y"]


# --- copies -----------------------------------------------------------------------------------------------------------


def test_a_copy_is_a_sibling_without_change(saver: Any, call: Call, update: Any) -> None:
    """B93"""
    graph, config = chain(saver, a, b), thread()
    call(graph, {"log": []}, config)
    old = next(s for s in history(graph, config) if s.next == ("b",))
    copy = graph.get_state(update(graph, old.config, None, as_node="__copy__"))
    assert (copy.values, copy.next, copy.metadata["source"]) == (old.values, old.next, "fork")
    assert copy.parent_config == old.parent_config
    assert call(graph, None, copy.config)["log"] == ["a", "b"]


def test_a_copy_of_a_pause_asks_again(saver: Any, call: Call, update: Any) -> None:
    """B93"""
    graph, config = chain(saver, a, ask), thread()
    first = the_id(call(graph, {"log": []}, config))
    copy = update(graph, config, None, as_node="__copy__")
    assert saver.pending() == []
    result = call(graph, None, copy)
    assert [i.value for i in asked(result)] == ["name?"]
    assert the_id(result) != first
    assert call(graph, Command(resume="new"), config)["log"] == ["a", "new"]


def test_a_copy_of_an_input_begins_with_the_same_input(saver: Any, call: Call, update: Any) -> None:
    """B93"""
    graph, config = chain(saver, a, b), thread()
    call(graph, {"log": ["in"]}, config)
    copy = graph.get_state(update(graph, history(graph, config)[-1].config, None, as_node="__copy__"))
    assert (copy.next, copy.parent_config, copy.tasks[0].result) == (("__start__",), None, {"log": ["in"]})
    assert call(graph, None, copy.config)["log"] == ["in", "a", "b"]


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_an_update_as_an_unknown_node_is_refused_and_changes_nothing(saver: Any, call: Call, update: Any) -> None:
    graph, config = chain(saver, a, b), thread()
    call(graph, {"log": []}, config)
    before = history(graph, config)
    with pytest.raises(InvalidUpdateError, match="Node 'nobody' does not exist"):
        update(graph, config, {"log": ["x"]}, as_node="nobody")
    assert history(graph, config) == before


def test_an_update_whose_author_is_not_clear_is_refused(saver: Any, call: Call, update: Any) -> None:
    graph, config = parallel(saver, a, b), thread()
    call(graph, {"log": []}, config)
    with pytest.raises(InvalidUpdateError, match="Ambiguous update, specify as_node"):
        update(graph, config, {"log": ["x"]})


@pytest.mark.parametrize("values", [{"log": "no list"}, 7])
def test_an_update_that_does_not_fit_is_refused_and_changes_nothing(
    saver: Any, call: Call, update: Any, values: Any
) -> None:
    graph, config = chain(saver, a, b), thread()
    call(graph, {"log": []}, config)
    before = history(graph, config)
    with pytest.raises(InvalidUpdateError):
        update(graph, config, values, as_node="a")
    assert history(graph, config) == before


@pytest.mark.parametrize("as_node", [END, "__copy__"])
def test_an_update_as_no_node_takes_no_values(saver: Any, call: Call, update: Any, as_node: str) -> None:
    """B18, B93: nothing that was given is dropped silently"""
    graph, config = chain(saver, a), thread()
    call(graph, {"log": []}, config)
    with pytest.raises(InvalidUpdateError, match=f"'{as_node}' takes no values"):
        update(graph, config, {"log": ["x"]}, as_node=as_node)


def test_an_update_of_an_unknown_checkpoint_is_refused(saver: Any, call: Call, update: Any) -> None:
    graph, config = chain(saver, a), thread()
    call(graph, {"log": []}, config)
    nowhere = {"configurable": {**config["configurable"], "checkpoint_id": "nowhere"}}
    with pytest.raises(WaitpointError, match="Unknown checkpoint 'nowhere'") as refused:
        update(graph, nowhere, {"log": ["x"]})
    assert isinstance(refused.value, NotFoundError)


def test_an_update_from_inside_the_running_thread_is_refused(saver: Any, call: Call) -> None:
    config = thread()

    def meddles(state: State) -> State:
        graph.update_state(config, {"log": ["x"]})
        return {}

    graph = chain(saver, meddles)
    with pytest.raises(ThreadBusyError, match="is running"):
        call(graph, {"log": ["in"]}, config)
    assert graph.get_state(config).values["log"] == ["in"]


def test_an_update_without_a_checkpointer_is_refused(update: Any) -> None:
    with pytest.raises(WaitpointError, match="no checkpointer"):
        update(chain(None, a), thread(), {"log": []})


# --- many updates at once ---------------------------------------------------------------------------------------------


@pytest.fixture(params=["bulk_update_state", "abulk_update_state"])
def bulk(request: pytest.FixtureRequest) -> Any:
    """Write several supersteps, blocking or under asyncio."""
    if request.param == "bulk_update_state":
        return lambda graph, *given: graph.bulk_update_state(*given)
    return lambda graph, *given: asyncio.run(graph.abulk_update_state(*given))


def test_a_thread_built_from_updates_has_the_history_of_one_that_ran(saver: Any, call: Call, bulk: Any) -> None:
    """B95"""
    graph, ran, built = chain(saver, a, b), thread(), thread()
    call(graph, {"log": ["in"], "value": 1}, ran)
    bulk(
        graph,
        built,
        [
            [StateUpdate({"log": ["in"], "value": 1}, "__input__")],
            [StateUpdate({"log": ["in"], "value": 1}, "__start__")],
            [StateUpdate({"log": ["a"]}, "a")],
            [StateUpdate({"log": ["b"]}, "b")],
        ],
    )
    without_source = [(values, due, step, tasks) for values, due, step, _, tasks in told(graph, built)]
    assert without_source == [(values, due, step, tasks) for values, due, step, _, tasks in told(graph, ran)]


def test_each_inner_list_is_one_superstep(saver: Any, call: Call, bulk: Any) -> None:
    """B95"""
    graph, config = parallel(saver, a, b), thread()
    bulk(
        graph,
        config,
        [
            [StateUpdate({"log": ["in"]}, "__input__")],
            [StateUpdate({"log": ["in"]}, "__start__")],
            [StateUpdate({"log": ["B"]}, "b"), StateUpdate({"log": ["A"]}, "a")],
        ],
    )
    now = graph.get_state(config)
    assert now.next == ()
    assert sorted(now.values["log"]) == ["A", "B", "in"]
    assert len(history(graph, config)) == 3


def test_commands_with_sends_are_followed_by_an_update_for_each_task(saver: Any, call: Call, bulk: Any) -> None:
    """B96"""

    def split(state: State) -> Any:
        return Command(update={"log": ["split"]}, goto=[Send("work", 1), Send("work", 2)])

    graph: Any = builder(split).add_node("work", lambda n: {"log": [n]})
    graph, ran, built = graph.compile(checkpointer=saver), thread(), thread()
    call(graph, {"log": ["in"]}, ran)
    bulk(
        graph,
        built,
        [
            [StateUpdate({"log": ["in"]}, "__input__")],
            [StateUpdate({"log": ["in"]}, "__start__")],
            [StateUpdate(split({}), "split")],
            [StateUpdate({"log": [1]}, "work"), StateUpdate({"log": [2]}, "work")],
        ],
    )
    assert [s.values for s in history(graph, built)] == [s.values for s in history(graph, ran)]
    assert [s.next for s in history(graph, built)] == [s.next for s in history(graph, ran)]
    assert graph.get_state(built).values["log"] == ["in", "split", 1, 2]


def test_a_built_thread_goes_on_like_any_other(saver: Any, call: Call, bulk: Any) -> None:
    """B95"""
    graph, config = chain(saver, a, ask), thread()
    bulk(graph, config, [[StateUpdate({"log": ["in"]}, "__start__")], [StateUpdate({"log": ["A"]}, "a")]])
    assert [i.value for i in asked(call(graph, None, config))] == ["name?"]
    assert call(graph, Command(resume="x"), config)["log"] == ["in", "A", "x"]


@pytest.mark.parametrize(
    ("supersteps", "kind", "text"),
    [
        ([], ValueError, "No supersteps provided"),
        ([[]], ValueError, "No updates provided"),
        ([[StateUpdate({"log": []}, "a")], []], ValueError, "No updates provided"),
        ([[StateUpdate({"log": []}), StateUpdate({"log": []}, "a")]], InvalidUpdateError, "as_node"),
        ([[StateUpdate({"log": []}, "a"), StateUpdate(None, "__end__")]], InvalidUpdateError, "__end__"),
        ([[StateUpdate({"log": []}, "a"), StateUpdate(None, "__copy__")]], InvalidUpdateError, "__copy__"),
    ],
)
def test_bulk_updates_that_make_no_sense_are_refused_before_anything_is_written(
    saver: Any, bulk: Any, supersteps: Any, kind: Any, text: str
) -> None:
    """B97"""
    graph, config = chain(saver, a, b), thread()
    with pytest.raises(kind, match=text) as refused:
        bulk(graph, config, supersteps)
    assert isinstance(refused.value, WaitpointError)
    assert history(graph, config) == []


def test_bulk_updates_are_stored_all_or_none(saver: Any, bulk: Any) -> None:
    """B97"""
    graph, config = chain(saver, a, b), thread()
    with pytest.raises(InvalidUpdateError, match="nobody"):
        bulk(graph, config, [[StateUpdate({"log": ["A"]}, "a")], [StateUpdate({"log": ["x"]}, "nobody")]])
    assert history(graph, config) == []


def test_a_graph_with_an_update_of_its_start_runs_its_entry_routers(saver: Any, call: Call, bulk: Any) -> None:
    """B95"""
    graph: Any = StateGraph(State).add_node("a", a).add_node("b", b)
    graph.add_conditional_edges(START, lambda s: s["value"])
    graph, config = graph.compile(checkpointer=saver), thread()
    bulk(graph, config, [[StateUpdate({"value": "b"}, "__start__")]])
    assert graph.get_state(config).next == ("b",)
    assert call(graph, None, config)["log"] == ["b"]


@pytest.mark.parametrize("supersteps", [5, [5], [[5]], [StateUpdate({"log": []}, "a")], [[()]]], ids=str)
def test_supersteps_that_are_no_lists_of_updates_are_refused_in_a_sentence(saver: Any, supersteps: Any) -> None:
    with pytest.raises(InvalidUpdateError, match="list of lists of StateUpdate"):
        chain(saver, a).bulk_update_state(thread(), supersteps)


def test_a_plain_tuple_is_an_update_too(saver: Any) -> None:
    graph, config = chain(saver, a, b), thread()
    graph.bulk_update_state(config, [[({"log": ["as a"]}, "a")]])
    assert graph.get_state(config).next == ("b",)
