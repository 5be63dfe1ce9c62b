"""Scenarios of the section "checkpointer": several processes on one file, and pauses in each durability mode."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from typing import Any

import pytest

from tests.scenarios.conftest import Call
from tests.scenarios.world import Shelf, State, run, start, texts, the_id, thread, told
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.errors import StoreError
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt

# --- S073 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wait", [5, 0], ids="wait {}".format)
def test_s073_sqlite_is_not_locked_with_several_processes(disk: Shelf, wait: int) -> None:
    programs = [start("pauses.py", disk.path, f"p{n}", 15, wait) for n in range(3)]
    for program in programs:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
    for program in programs:  # all at once, on a file that none of them has made
        assert program.stdin is not None
        program.stdin.write("go\n")
        program.stdin.flush()
    for n, program in enumerate(programs):
        assert told(program)["answers"] == [f"p{n} {k}" for k in range(15)]
    saver = disk.open()
    assert saver.pending() == []
    assert {t.status for t in saver.threads()} == {"idle"}
    assert len(saver.threads()) == 45
    assert len(saver.pending(answerable=False)) == 45


def test_s073_the_saver_sets_the_log_and_the_wait_time_itself(disk: Shelf) -> None:
    assert disk.path is not None
    with SqliteSaver(disk.path), closing(sqlite3.connect(disk.path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_s073_who_asks_not_to_wait_is_told_and_loses_nothing(disk: Shelf, call: Call) -> None:
    def ask(state: State) -> State:
        return {"value": interrupt("go?")}

    assert disk.path is not None
    hasty = SqliteSaver(disk.path, busy_timeout=0)
    graph = StateGraph(State).add_node(ask).add_edge(START, "ask").compile(checkpointer=hasty)
    config = thread()
    question = the_id(call(graph, {"log": []}, config))
    with closing(sqlite3.connect(disk.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked by another process"):
            call(graph, Command(resume="yes"), config)
        assert [q.id for q in hasty.pending()] == [question]
    assert call(graph, Command(resume="yes"), config)["value"] == "yes"
    hasty.close()


def test_s073_a_write_waits_for_the_transaction_of_another_program(disk: Shelf, call: Call) -> None:
    """Someone holds the write lock, lets go when told, and nothing is lost."""

    def ask(state: State) -> State:
        return {"value": interrupt("go?")}

    graph = StateGraph(State).add_node(ask).add_edge(START, "ask").compile(checkpointer=disk.open())
    config = thread()
    the_id(call(graph, {"log": []}, config))
    assert disk.path is not None
    done: list[Any] = []
    answering = threading.Thread(target=lambda: done.append(call(graph, Command(resume="yes"), config)))
    with closing(sqlite3.connect(disk.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        answering.start()
        assert graph.get_state(config).next == ("ask",)  # reading does not wait for the writer
        assert not done
        other.execute("COMMIT")
    answering.join(30)
    assert done[0]["value"] == "yes"


# --- S081 -------------------------------------------------------------------------------------------------------------

DURABILITIES = ["exit", "async", "sync"]


@pytest.mark.parametrize("durability", DURABILITIES)
def test_s081_the_cheap_durability_mode_keeps_a_pause(shelf: Shelf, call: Call, durability: str) -> None:
    runs: list[str] = []

    def before(state: State) -> State:
        runs.append("before")
        return {"log": ["before"]}

    def ask(state: State) -> State:
        return {"log": [interrupt("one?"), interrupt("two?")]}

    def build() -> Any:
        graph = StateGraph(State).add_sequence([before, ask]).add_edge(START, "before")
        return graph.compile(checkpointer=shelf.open())

    config = thread()
    assert texts(call(build(), {"log": []}, config, durability=durability)) == ["one?"]
    assert build().get_state(config).values == {"log": ["before"]}
    assert texts(call(build(), Command(resume=1), config, durability=durability)) == ["two?"]
    assert call(build(), Command(resume=2), config, durability=durability)["log"] == ["before", 1, 2]
    assert runs == ["before"]


@pytest.mark.parametrize("durability", DURABILITIES)
def test_s081_a_pause_that_the_caller_saw_is_on_record_even_if_the_process_dies_at_once(
    disk: Shelf, durability: str
) -> None:
    paused = run("pause_once.py", disk.path, "paper", durability)
    assert paused["seen"] == ["before", "__interrupt__"]
    assert [q.id for q in disk.open().pending()] == [paused["id"]]
    done = run("pause_once.py", disk.path, "paper", durability, "yes")
    assert done == {"seen": ["ask"], "log": ["before", "yes"]}


@pytest.mark.parametrize("durability", DURABILITIES)
def test_s081_a_nested_pause_is_kept_in_each_mode(shelf: Shelf, call: Call, durability: str) -> None:
    runs: list[str] = []

    def before(state: State) -> State:
        runs.append("before")
        return {"log": ["before"]}

    def ask(state: State) -> State:
        return {"log": [interrupt("go?")]}

    def build() -> Any:
        inner = StateGraph(State).add_sequence([before, ask]).add_edge(START, "before").compile()
        graph = StateGraph(State).add_node("inner", inner).add_edge(START, "inner")
        return graph.compile(checkpointer=shelf.open())

    config = thread()
    call(build(), {"log": []}, config, durability=durability)
    assert call(build(), Command(resume="yes"), config, durability=durability)["log"] == ["before", "yes"]
    assert runs == ["before"]
