"""Graphs whose threads lie in a saver of LangGraph: pauses, races, deletions, failures, long threads."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import langgraph.checkpoint.memory
import langgraph.checkpoint.sqlite
import langgraph.checkpoint.sqlite.aio
import pytest

from tests import langgraph_threads as programs
from tests.langgraph_threads import Library
from tests.test_langgraph_saver import LastWins, OnlyAsync, WithoutWrites
from waitpoint.checkpoint.base import (
    AnswersArrived,
    Commit,
    Move,
    Rest,
    Settle,
    Settlement,
    ThreadChanged,
    ThreadKey,
    ThreadRow,
    Writes,
)
from waitpoint.checkpoint.langgraph import LangGraphSaver, import_thread
from waitpoint.checkpoint.langgraph.peer import name_of
from waitpoint.checkpoint.langgraph.saver import SEGMENT
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.errors import AlreadyAnsweredError, AsyncOnlyError, StoreError, UsageError
from waitpoint.types import Command, step

THREAD = {"configurable": {"thread_id": "t"}}
KEY = ThreadKey("t", "LangGraph")
Again = Callable[[], LangGraphSaver]


@pytest.fixture(params=["memory", "sqlite"])
def again(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Again]:
    """Give a function that opens the store once more, as another process would."""
    shared = langgraph.checkpoint.memory.InMemorySaver()
    opened: list[Any] = []

    def open_again() -> LangGraphSaver:
        if request.param == "memory":
            return LangGraphSaver(shared)
        entered = langgraph.checkpoint.sqlite.SqliteSaver.from_conn_string(str(tmp_path / "theirs.db"))
        opened.append(entered)
        return LangGraphSaver(entered.__enter__())

    yield open_again
    for each in opened:
        each.__exit__(None, None, None)


def graph_on(saver: Any, lib: Library | None = None) -> Any:
    return programs.simple(lib or Library("waitpoint")).compile(checkpointer=saver)


def row(fence: int, **fields: Any) -> ThreadRow:
    return replace(ThreadRow(KEY, "running", fence, 0, 0, None, "o", 100.0, None, 1.0, 1.0), **fields)


def test_a_thread_pauses_and_is_answered_in_another_process(again: Again) -> None:
    lib = Library("waitpoint")
    (asked,) = graph_on(again(), lib).invoke({"city": "Rome"}, THREAD)["__interrupt__"]
    other = again()
    assert [(q.id, q.value) for q in other.pending()] == [(asked.id, asked.value)]
    assert graph_on(other, lib).invoke(Command(resume={asked.id: "yes"}), THREAD)["log"] == ["planned", "answer yes"]
    assert lib.ran == ["plan", "ask", "ask"]
    assert again().pending() == []


def test_of_two_processes_that_answer_the_first_counts(again: Again) -> None:
    first, second = again(), again()
    (asked,) = graph_on(first).invoke({"city": "Rome"}, THREAD)["__interrupt__"]
    assert graph_on(second).get_state(THREAD).next == ("ask",)  # it has read the thread, and believes that it waits
    graph_on(first).invoke(Command(resume={asked.id: "yes"}), THREAD)
    with pytest.raises(AlreadyAnsweredError):
        graph_on(second).invoke(Command(resume={asked.id: "no"}), THREAD)
    assert graph_on(again()).get_state(THREAD).values["log"] == ["planned", "answer yes"]


def test_of_two_writers_of_one_number_one_wins_and_the_other_sees_what_it_wrote(again: Again) -> None:
    savers = [again(), again()]
    savers[0].move(Move(KEY, None, row(1)))
    for saver in savers:
        assert saver.thread(KEY) == row(1)
    barrier = threading.Barrier(2)
    won: list[str] = []
    lost: list[ThreadRow | None] = []

    def claim(saver: LangGraphSaver, name: str) -> None:
        barrier.wait()
        try:
            saver.move(Move(KEY, row(1), row(2, owner=name)))
            won.append(name)
        except ThreadChanged as error:
            lost.append(error.thread)

    threads = [threading.Thread(target=claim, args=(s, n)) for s, n in zip(savers, ("a", "b"), strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert lost == [row(2, owner=won[0])]
    assert [s.thread(KEY) for s in (*savers, again())] == [row(2, owner=won[0])] * 3


def test_a_writer_who_believes_something_old_is_refused_also_if_its_number_is_free(again: Again) -> None:
    old, new = again(), again()
    old.move(Move(KEY, None, row(1)))
    assert new.thread(KEY) == row(1)
    old.commit(Commit(KEY, 1, Writes(), 2.0, rest=Rest("waiting", 0)))
    with pytest.raises(ThreadChanged):
        new.commit(Commit(KEY, 9, Writes(), 2.0))
    assert new.thread(KEY).status == "waiting"  # type: ignore[union-attr]


def test_what_is_written_to_a_thread_that_was_deleted_and_made_anew_never_becomes_part_of_it(again: Again) -> None:
    old, new = again(), again()
    old.move(Move(KEY, None, row(1, head="old")))
    new.delete_thread("t")
    new.move(Move(KEY, None, row(1, owner="other")))
    with pytest.raises(ThreadChanged):  # the number that it writes, 1, is free, and nothing but the head differs
        old.move(Move(KEY, row(1, head="old"), row(2, head="old")))
    new.commit(Commit(KEY, 1, Writes(), 3.0, next_item=1))
    for each in (old, new, again()):
        assert each.thread(KEY) == row(1, owner="other", next_item=1, updated_at=3.0)


def test_a_run_whose_thread_is_deleted_stores_nothing_more(again: Again) -> None:
    mine, other = again(), again()
    mine.move(Move(KEY, None, row(1)))
    other.delete_thread("t")
    with pytest.raises(ThreadChanged):
        mine.commit(Commit(KEY, 1, Writes(), 2.0))
    assert again().thread(KEY) is None


def test_a_thread_may_be_longer_than_a_segment(again: Again) -> None:
    saver, behind = again(), again()
    saver.move(Move(KEY, None, row(1)))
    assert behind.thread(KEY) is not None
    for number in range(2 * SEGMENT + 3):
        saver.commit(Commit(KEY, 1, Writes(), 2.0, next_item=number))
    for each in (saver, behind, again()):
        assert each.thread(KEY).next_item == 2 * SEGMENT + 2  # type: ignore[union-attr]


@pytest.mark.parametrize("is_stored", [True, False])
def test_after_a_write_that_failed_the_truth_is_read_from_the_store(is_stored: bool) -> None:
    class Flaky(langgraph.checkpoint.memory.InMemorySaver):
        breaks = False

        def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
            if is_stored or not self.breaks:
                super().put_writes(config, writes, task_id, task_path)
            if self.breaks:
                self.breaks = False
                raise OSError("the line is cut")

    theirs = Flaky()
    saver = LangGraphSaver(theirs)
    saver.move(Move(KEY, None, row(1)))
    theirs.breaks = True
    with pytest.raises(OSError, match="cut"):
        saver.commit(Commit(KEY, 1, Writes(), 2.0, next_item=7))
    expected = 7 if is_stored else 0
    assert saver.thread(KEY).next_item == LangGraphSaver(theirs).thread(KEY).next_item == expected  # type: ignore[union-attr]
    saver.commit(Commit(KEY, 1, Writes(), 3.0, next_item=8))
    assert LangGraphSaver(theirs).thread(KEY).next_item == 8  # type: ignore[union-attr]


def test_a_rest_is_refused_while_another_process_has_answered(again: Again) -> None:
    runner, answerer = again(), again()
    (asked,) = graph_on(runner).invoke({"city": "Rome"}, THREAD)["__interrupt__"]
    before = runner.thread(KEY)
    assert before is not None
    runner.move(Move(KEY, before, replace(before, status="running", fence=before.fence + 1, owner="o")))

    answerer.settle(Settle(KEY, [Settlement(asked.id, "answered", 5.0, answer=b"\x01\x00\xa1y")]))
    with pytest.raises(AnswersArrived):
        runner.commit(Commit(KEY, before.fence + 1, Writes(), 6.0, rest=Rest("idle", before.answer_seq)))


def test_recorded_effects_run_once_across_processes(again: Again) -> None:
    sent: list[str] = []
    lib = Library("waitpoint")

    def send(state: programs.Trip) -> programs.Trip:
        step(sent.append, state["city"])
        return {"log": [lib.interrupt("sent?")]}

    builder = lib.StateGraph(programs.Trip).add_node("send", send).add_edge("__start__", "send")
    builder.compile(checkpointer=again()).invoke({"city": "Rome"}, THREAD)
    assert builder.compile(checkpointer=again()).invoke(Command(resume="yes"), THREAD)["log"] == ["yes"]
    assert sent == ["Rome"]


def test_threads_of_langgraph_in_the_same_saver_are_left_alone() -> None:
    theirs = langgraph.checkpoint.memory.InMemorySaver()
    there = programs.simple(Library("langgraph")).compile(checkpointer=theirs)
    (asked,) = there.invoke({"city": "Rome"}, THREAD)["__interrupt__"]
    saver = LangGraphSaver(theirs)
    here = graph_on(saver)
    assert saver.pending() == []
    imported = import_thread(here, theirs, "t")
    assert [q.id for q in saver.pending()] == [q.id for q in imported.questions] == [asked.id]
    assert here.invoke(Command(resume="here"), THREAD)["log"] == ["planned", "answer here"]
    saver.delete_thread("t")
    assert there.get_state(THREAD).next == ("ask",)


@pytest.mark.parametrize("kind", [WithoutWrites, LastWins])
def test_a_saver_that_cannot_tell_the_first_write_works_for_one_process_and_a_warning_says_so(
    kind: type[Any], caplog: pytest.LogCaptureFixture
) -> None:
    theirs = kind()
    with caplog.at_level(logging.WARNING):
        (asked,) = graph_on(LangGraphSaver(theirs)).invoke({"city": "Rome"}, THREAD)["__interrupt__"]
    assert f"{kind.__name__} does not keep the first of two writes" in caplog.text
    later = LangGraphSaver(theirs)
    assert [q.id for q in later.pending()] == [asked.id]
    assert graph_on(later).invoke(Command(resume="yes"), THREAD)["log"] == ["planned", "answer yes"]
    assert graph_on(LangGraphSaver(theirs)).get_state(THREAD).values["log"] == ["planned", "answer yes"]


def test_asynchronous_savers_serve_asynchronous_runs(tmp_path: Path) -> None:
    path = str(tmp_path / "theirs.db")

    async def half(given: Any) -> Any:
        async with langgraph.checkpoint.sqlite.aio.AsyncSqliteSaver.from_conn_string(path) as theirs:
            return await graph_on(LangGraphSaver(theirs)).ainvoke(given, THREAD)

    assert asyncio.run(half({"city": "Rome"}))["__interrupt__"]
    assert asyncio.run(half(Command(resume="yes")))["log"] == ["planned", "answer yes"]


def test_savers_with_asynchronous_methods_only_serve_both_kinds_of_runs() -> None:
    theirs = OnlyAsync()
    saver = LangGraphSaver(theirs)
    graph_on(saver).invoke({"city": "Rome"}, THREAD)
    saver.close()

    async def rest() -> Any:
        return await graph_on(LangGraphSaver(theirs)).ainvoke(Command(resume="yes"), THREAD)

    assert asyncio.run(rest())["log"] == ["planned", "answer yes"]


def test_a_saver_that_was_made_in_an_event_loop_serves_after_that_has_ended() -> None:
    async def made() -> LangGraphSaver:
        saver = LangGraphSaver(OnlyAsync())
        await graph_on(saver).ainvoke({"city": "Rome"}, THREAD)
        assert len(await asyncio.to_thread(saver.pending)) == 1
        return saver

    saver = asyncio.run(made())
    assert graph_on(saver).invoke(Command(resume="yes"), THREAD)["log"] == ["planned", "answer yes"]
    saver.close()


def test_a_blocking_call_from_the_event_loop_of_the_saver_is_refused_and_does_not_hang() -> None:
    async def call() -> None:
        graph_on(LangGraphSaver(OnlyAsync())).get_state(THREAD)

    with pytest.raises(AsyncOnlyError, match="ainvoke"):
        asyncio.run(call())


def test_what_is_no_saver_is_refused_with_the_cure() -> None:
    opened = langgraph.checkpoint.sqlite.SqliteSaver.from_conn_string(":memory:")
    with pytest.raises(UsageError, match="`with`"):
        LangGraphSaver(opened)


def test_entries_that_others_wrote_are_told_as_such() -> None:
    theirs = langgraph.checkpoint.memory.InMemorySaver()
    LangGraphSaver(theirs).move(Move(KEY, None, row(1)))
    (where,) = [key for key in theirs.writes if key[0] == name_of("t")]
    ((name, (task, channel, _, path)),) = theirs.writes[where].items()
    theirs.writes[where][name] = (task, channel, theirs.serde.dumps_typed(b"\x01\x00\xc0"), path)
    with pytest.raises(StoreError, match="something else writes"):
        LangGraphSaver(theirs).thread(KEY)


@pytest.mark.parametrize("thread_id", ["a:b", "#1", "", "käse", "x" * 300, "lone \ud800", "waitpoint:t"])
def test_every_thread_id_has_a_place_of_its_own(thread_id: str) -> None:
    saver = LangGraphSaver(langgraph.checkpoint.memory.InMemorySaver())
    key = ThreadKey(thread_id, "g")
    other = ThreadKey(thread_id.encode("utf-8", "replace").decode() + "?", "g")
    for each in (key, other):
        saver.move(Move(each, None, replace(row(1), key=each)))
    assert {r.key for r in saver.threads()} == {key, other}
    assert name_of(thread_id) != name_of(other.thread_id)


def test_the_same_program_ends_alike_on_every_saver(again: Again) -> None:
    results = []
    for saver in (again(), InMemorySaver()):
        graph = programs.wide(Library("waitpoint")).compile(checkpointer=saver)
        asked = graph.invoke({"city": "Rome"}, THREAD)["__interrupt__"]
        for each in asked:
            result = graph.invoke(Command(resume={each.id: "x"}), THREAD)
        results.append((result, [(s.values, s.next) for s in graph.get_state_history(THREAD)]))
    assert results[0] == results[1]
