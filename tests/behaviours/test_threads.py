"""Who runs a thread: new input, answers and continuations that meet a thread which waits, runs, or is ready to."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from tests.behaviours.conftest import Call
from tests.behaviours.graphs import State, asked, builder, chain, ids, parallel, the_id, thread
from waitpoint.checkpoint.base import Move
from waitpoint.engine.answers import answer as record_answer
from waitpoint.errors import (
    ConfigError,
    ConflictError,
    EmptyInputError,
    NodeFailedError,
    PendingQuestionsError,
    ThreadBusyError,
    UnknownInterruptError,
    UsageError,
)
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt

WAIT = 10


def ask(state: State) -> State:
    return {"log": [interrupt("name?")]}


def snapshot(graph: Any, config: Any, saver: Any) -> Any:
    return (
        graph.get_state(config),
        list(graph.get_state_history(config)),
        saver.pending(answerable=False),
        saver.threads(),
    )


# --- new input on a waiting thread ---


def test_new_input_on_a_waiting_thread_is_refused_and_lists_the_questions(
    saver: Any, call: Call, streamed: Call
) -> None:
    """Section 4, table: refused by default, nothing stored"""
    graph, config = parallel(saver, ask, ask_more), thread()
    open_ids = ids(call(graph, {"log": []}, config))
    before = snapshot(graph, config, saver)
    for refused in (call, streamed):
        with pytest.raises(PendingQuestionsError, match='on_pending="withdraw"') as caught:
            refused(graph, {"log": ["new"]}, config)
        assert set(caught.value.pending_ids) == set(open_ids.values())
        assert isinstance(caught.value, ConflictError)
        for question in open_ids.values():
            assert question in str(caught.value)
    assert snapshot(graph, config, saver) == before
    answers = {open_ids["name?"]: "ana", open_ids["more?"]: "no"}
    assert call(graph, Command(resume=answers), config) == {"log": ["ana", "no"]}


def ask_more(state: State) -> State:
    return {"log": [interrupt("more?")]}


@pytest.mark.parametrize("way", ["call", "streamed"])
def test_new_input_may_withdraw_the_questions(saver: Any, call: Call, streamed: Call, way: str) -> None:
    """Section 4, table: on_pending="withdraw" closes the questions as withdrawn"""
    graph, config = chain(saver, ask), thread()
    first = the_id(call(graph, {"log": ["first"]}, config))
    run = call if way == "call" else streamed
    run(graph, {"log": ["second"]}, config, on_pending="withdraw")
    by_id = {q.id: q for q in saver.pending(answerable=False)}
    assert (by_id[first].status, by_id[first].reason) == ("withdrawn", "new input came")
    (second,) = saver.pending()
    assert second.id != first
    with pytest.raises(UnknownInterruptError, match="withdrawn"):
        call(graph, Command(resume={first: "late"}), config)
    assert call(graph, Command(resume="ana"), config) == {"log": ["first", "second", "ana"]}


def test_an_unknown_way_to_treat_what_is_pending_is_an_error(saver: Any) -> None:
    """Section 4"""
    with pytest.raises(ValueError, match=r"on_pending.*'refuse', 'withdraw'"):
        chain(saver, ask).invoke({"log": []}, thread(), on_pending="drop")


@pytest.mark.parametrize("command", [Command(update={"log": ["u"]}), Command(goto="ask")], ids=["update", "goto"])
def test_a_command_without_an_answer_is_new_input_to_a_waiting_thread(saver: Any, call: Call, command: Any) -> None:
    """Section 4: it would move the thread on past its questions"""
    graph, config = chain(saver, ask), thread()
    question = the_id(call(graph, {"log": []}, config))
    with pytest.raises(PendingQuestionsError) as caught:
        call(graph, command, config)
    assert caught.value.pending_ids == (question,)
    assert [q.id for q in saver.pending()] == [question]


def test_new_input_on_a_thread_that_failed_starts_over(saver: Any, call: Call) -> None:
    """Section 4: nothing is pending there; an answer that could still be replaced no longer can"""

    def node(state: State) -> State:
        if "fine" in state["log"]:
            return {"log": ["done"]}
        return {"log": [int(interrupt("number?"))]}

    graph, config = chain(saver, node), thread()
    question = the_id(call(graph, {"log": []}, config))
    with pytest.raises(ValueError, match="seven"):
        call(graph, Command(resume="seven"), config)
    assert [q.id for q in saver.pending()] == [question]
    assert call(graph, {"log": ["fine"]}, config) == {"log": ["fine", "done"]}
    assert saver.pending() == []
    with pytest.raises(UnknownInterruptError):
        call(graph, Command(resume={question: "7"}), config)


def test_another_graph_on_the_same_thread_id_is_another_thread(saver: Any, call: Call) -> None:
    """Section 4: the row's key is thread and graph"""
    graph, other, config = chain(saver, ask), chain(saver, ask, name="other"), thread()
    call(graph, {"log": ["one"]}, config)
    assert asked(call(other, {"log": ["two"]}, config))
    assert call(other, Command(resume="O"), config) == {"log": ["two", "O"]}
    assert [t.key.graph for t in saver.threads() if t.status == "waiting"] == ["LangGraph"]
    assert call(graph, Command(resume="G"), config) == {"log": ["one", "G"]}


# --- a ready thread ---


def ready_thread(saver: Any, graph: Any, config: Any) -> str:
    question = the_id(graph.invoke({"log": []}, config))
    record_answer(saver, question, "ana")
    return question


def test_new_input_on_a_ready_thread_is_refused(saver: Any, call: Call) -> None:
    """Section 4, table"""
    graph, config = chain(saver, ask), thread("busy")
    ready_thread(saver, graph, config)
    before = snapshot(graph, config, saver)
    with pytest.raises(ThreadBusyError, match=r"'busy'.*invoke\(None\).*on_pending") as caught:
        call(graph, {"log": ["new"]}, config)
    assert (caught.value.thread_id, caught.value.status) == ("busy", "ready")
    assert snapshot(graph, config, saver) == before
    assert call(graph, None, config) == {"log": ["ana"]}


def test_new_input_may_drop_the_work_of_a_ready_thread_on_the_record(saver: Any, call: Call) -> None:
    """Section 4: on_pending="withdraw" drops its work on the record"""
    graph, config = chain(saver, ask), thread()
    ready_thread(saver, graph, config)
    result = call(graph, {"log": ["new"]}, config, on_pending="withdraw")
    assert [i.value for i in asked(result)] == ["name?"]
    assert call(graph, Command(resume="bob"), config) == {"log": ["new", "bob"]}
    (key,) = (t.key for t in saver.threads())
    assert [e.kind for e in saver.events(key)].count("started") == 2


# --- invoke(None) ---


def test_continuing_a_waiting_thread_returns_its_questions_and_runs_nothing(
    saver: Any, call: Call, streamed: Call
) -> None:
    """Section 4, B14, table: a no-op if every unfinished task waits"""
    runs: Counter[str] = Counter()

    def node(state: State) -> State:
        runs["node"] += 1
        return ask(state)

    def done(state: State) -> State:
        runs["done"] += 1
        return {"log": ["done"]}

    graph, config = parallel(saver, node, done), thread()
    first = call(graph, {"log": []}, config)
    before = snapshot(graph, config, saver)
    assert call(graph, None, config) == first
    parts = streamed(graph, None, config)
    assert [i.id for p in parts for i in p.get("__interrupt__", ())] == [the_id(first)]
    assert snapshot(graph, config, saver) == before
    assert runs == {"node": 1, "done": 1}


def test_continuing_a_thread_that_never_ran_is_an_error(saver: Any, call: Call) -> None:
    """Section 4"""
    with pytest.raises(EmptyInputError, match="never run"):
        call(chain(saver, ask), None, thread())


def test_continuing_a_finished_thread_returns_its_state(saver: Any, call: Call) -> None:
    """Section 4"""
    graph, config = chain(saver, ask), thread()
    call(graph, {"log": []}, config)
    call(graph, Command(resume="ana"), config)
    before = snapshot(graph, config, saver)
    assert call(graph, None, config) == {"log": ["ana"]}
    assert snapshot(graph, config, saver) == before


def test_continuing_runs_what_failed_and_leaves_what_waits(saver: Any, call: Call) -> None:
    """Section 4: ready, failed, orphaned or past a breakpoint"""
    runs: Counter[str] = Counter()

    def asking(state: State) -> State:
        runs["asking"] += 1
        return ask(state)

    def fails_once(state: State) -> State:
        asked_by_now.wait(WAIT)
        runs["fails_once"] += 1
        if runs["fails_once"] == 1:
            raise OSError("gone for a moment")
        return {"log": ["mended"]}

    asked_by_now = threading.Event()

    def after_question(state: State) -> State:
        try:
            return asking(state)
        finally:
            asked_by_now.set()

    graph, config = parallel(saver, after_question, fails_once), thread()
    with pytest.raises(OSError, match="gone"):
        call(graph, {"log": []}, config)
    result = call(graph, None, config)
    assert result["log"] == ["mended"]
    assert runs["fails_once"] == 2
    count = runs["asking"]
    call(graph, None, config)
    assert runs["asking"] == count <= 2
    assert call(graph, Command(resume="ana"), config)["log"] == ["ana", "mended"]


DEAD = "nobody-boot/nobody-namespace/1/1/aaaa"


def orphan(saver: Any, *, lease_until: float = 0.0) -> None:
    """Make the only thread look as if a process of another host had died while it ran it."""
    (row,) = saver.threads()
    then = replace(row, status="running", fence=row.fence + 1, owner=DEAD, lease_until=lease_until)
    saver.move(Move(row.key, row, then))


def test_a_thread_whose_owner_died_is_picked_up(saver: Any, call: Call) -> None:
    """Section 4: whoever invokes next picks the thread up"""
    graph, config = chain(saver, ask), thread()
    ready_thread(saver, graph, config)
    orphan(saver)
    assert call(graph, None, config) == {"log": ["ana"]}


def test_an_answer_to_a_thread_whose_owner_died_takes_it_over(saver: Any, call: Call) -> None:
    """Section 4"""
    graph, config = chain(saver, ask), thread()
    question = the_id(call(graph, {"log": []}, config))
    orphan(saver)
    assert call(graph, Command(resume={question: "ana"}), config) == {"log": ["ana"]}


def test_new_input_to_a_thread_whose_owner_died_is_refused_while_it_has_work(saver: Any, call: Call) -> None:
    """Section 4: its work is not dropped silently"""
    graph, config = chain(saver, ask), thread()
    ready_thread(saver, graph, config)
    orphan(saver)
    with pytest.raises(ThreadBusyError):
        call(graph, {"log": ["new"]}, config)
    assert call(graph, None, config) == {"log": ["ana"]}


# --- a running thread ---


class Running:
    """A thread that a run of ours holds until the test lets it go."""

    def __init__(self) -> None:
        self.entered, self.go = threading.Event(), threading.Event()
        self.runs: Counter[str] = Counter()
        self.fails = False
        self.pool = ThreadPoolExecutor(2)

    def a(self, state: State) -> State:
        self.runs["a"] += 1
        answer = interrupt("a?")
        self.entered.set()
        assert self.go.wait(WAIT)
        if self.fails:
            raise OSError("broken disk")
        return {"log": [answer]}

    def b(self, state: State) -> State:
        self.runs["b"] += 1
        return {"log": [interrupt("b?")]}

    def begin(self, call: Call, graph: Any, config: Any, question: str) -> Future[Any]:
        future = self.pool.submit(call, graph, Command(resume={question: "A"}), config)
        assert self.entered.wait(WAIT)
        return future

    def waits(self, saver: Any, work: Callable[[], Any]) -> Future[Any]:
        """Start a call and return once it has looked at the running thread, and so waits for its rest."""
        looked, looks = threading.Event(), count(1)
        plain = type(saver).thread

        def thread_row(key: Any) -> Any:
            row = plain(saver, key)
            if next(looks) > 1:  # the first may be the opening's, that waits for nothing yet
                looked.set()
            return row

        saver.thread = thread_row
        future = self.pool.submit(work)
        assert looked.wait(WAIT)
        return future


@pytest.fixture
def held() -> Any:
    running = Running()
    yield running
    running.go.set()
    running.pool.shutdown()


@pytest.mark.parametrize("on_pending", ["refuse", "withdraw"])
def test_new_input_on_a_running_thread_is_refused(saver: Any, call: Call, held: Running, on_pending: str) -> None:
    """Section 4"""
    graph, config = chain(saver, held.a), thread("running")
    question = the_id(call(graph, {"log": []}, config))
    future = held.begin(call, graph, config, question)
    with pytest.raises(ThreadBusyError, match=r"'running'.*is running") as caught:
        call(graph, {"log": ["new"]}, config, on_pending=on_pending)
    assert caught.value.status == "running"
    held.go.set()
    assert future.result(WAIT) == {"log": ["A"]}


def test_an_answer_that_comes_while_the_thread_runs_is_taken_by_that_run(saver: Any, call: Call, held: Running) -> None:
    """Section 4: both succeed, the first to claim runs, and no answer is left behind"""
    graph, config = parallel(saver, held.a, held.b), thread()
    open_ids = ids(call(graph, {"log": []}, config))
    first = held.begin(call, graph, config, open_ids["a?"])
    second = held.waits(saver, lambda: call(graph, Command(resume={open_ids["b?"]: "B"}), config))
    assert not second.done()
    held.go.set()
    assert first.result(WAIT) == {"log": ["A", "B"]}
    assert second.result(WAIT) == {"log": ["A", "B"]}
    assert held.runs == {"a": 2, "b": 2}


def test_an_answer_may_be_left_to_the_run_that_goes_on(saver: Any, call: Call, held: Running) -> None:
    """Section 4: wait=False returns at once"""
    graph, config = parallel(saver, held.a, held.b), thread()
    open_ids = ids(call(graph, {"log": []}, config))
    first = held.begin(call, graph, config, open_ids["a?"])
    result = call(graph, Command(resume={open_ids["b?"]: "B"}), config, wait=False)
    assert result["log"] == []
    held.go.set()
    assert first.result(WAIT) == {"log": ["A", "B"]}


def test_continuing_a_running_thread_waits_for_its_rest(saver: Any, call: Call, held: Running) -> None:
    """Section 4"""
    graph, config = chain(saver, held.a), thread()
    first = held.begin(call, graph, config, the_id(call(graph, {"log": []}, config)))
    assert call(graph, None, config, wait=False)["log"] == []
    second = held.waits(saver, lambda: call(graph, None, config))
    held.go.set()
    assert first.result(WAIT) == second.result(WAIT) == {"log": ["A"]}
    assert held.runs == {"a": 2}


def test_who_waits_is_told_of_the_failure_that_was_recorded(saver: Any, call: Call, held: Running) -> None:
    """Section 4: raises the recorded failure"""
    graph, config = chain(saver, held.a), thread()
    held.fails = True
    first = held.begin(call, graph, config, the_id(call(graph, {"log": []}, config)))
    second = held.waits(saver, lambda: call(graph, None, config))
    held.go.set()
    with pytest.raises(OSError, match="broken disk"):
        first.result(WAIT)
    with pytest.raises(NodeFailedError, match="broken disk"):
        second.result(WAIT)


def test_a_node_that_invokes_its_own_thread_gets_an_error(saver: Any, call: Call) -> None:
    """Section 4"""
    graph: Any = None

    def node(state: State) -> Any:
        return graph.invoke(None, config)

    graph, config = chain(saver, node), thread("self")
    with pytest.raises(UsageError, match="invokes its own thread 'self'"):
        call(graph, {"log": []}, config)


def test_a_coroutine_that_invokes_its_own_thread_gets_an_error_instead_of_waiting_for_itself(saver: Any) -> None:
    """Section 4, async"""
    graph: Any = None

    async def node(state: State) -> Any:
        return await graph.ainvoke(Command(resume=1), config)

    graph, config = chain(saver, node), thread()
    with pytest.raises(UsageError):
        asyncio.run(graph.ainvoke({"log": []}, config))


def test_a_subgraph_node_that_invokes_the_outer_thread_gets_an_error(saver: Any, call: Call) -> None:
    """Section 4, nested: the thread is the same, however deep the call"""
    outer: Any = None

    def inner(state: State) -> Any:
        return outer.invoke(None, config)

    graph = StateGraph(State).add_node("inner", builder(inner).compile()).add_edge(START, "inner")
    outer, config = graph.compile(checkpointer=saver), thread()
    with pytest.raises(UsageError, match="own thread"):
        call(outer, {"log": []}, config)


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (5, "config"),
        ("1", "config"),
        ({"configurable": 5}, "configurable"),
        ({"configurable": {"thread_id": "1", "checkpoint_id": 5}}, "checkpoint_id"),
        ({"configurable": {"thread_id": "1", "checkpoint_ns": 5}}, "checkpoint_ns"),
        ({"metadata": 5, "configurable": {"thread_id": "1"}}, "metadata"),
        ({"tags": "one", "configurable": {"thread_id": "1"}}, "tags"),
        (None, "thread_id"),
    ],
    ids=str,
)
def test_a_config_that_is_not_what_it_has_to_be_is_refused_in_a_sentence(
    saver: Any, call: Call, config: Any, name: str
) -> None:
    graph = chain(saver, lambda state: {"log": ["ran"]})
    uses: list[Callable[[], Any]] = [
        lambda: call(graph, {"log": []}, config),
        lambda: graph.get_state(config),
        lambda: list(graph.get_state_history(config)),
        lambda: graph.update_state(config, {"log": []}),
    ]
    for use in uses:
        with pytest.raises(ConfigError, match=f"`{name}`"):
            use()
