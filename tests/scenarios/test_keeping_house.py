"""Scenarios S083 and S085: threads are deleted wholly, and pruned without losing what an open question needs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from tests.scenarios.conftest import Call
from tests.scenarios.world import Shelf, State, texts
from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt, step

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "chat"}}


def chat(saver: BaseCheckpointSaver) -> Any:
    """Return a graph with one inside, an effect and questions at both levels."""

    def note(state: State) -> State:
        return {"log": [step(lambda: "noted " + "x" * 200)]}

    def ask(_: State) -> State:
        return {"value": interrupt("inside?")}

    inner = StateGraph(State).add_sequence([note, ask]).add_edge(START, "note").compile()
    builder = StateGraph(State).add_node("inner", inner).add_node("outer", lambda _: {"log": interrupt("outside?")})
    return builder.add_edge(START, "inner").add_edge(START, "outer").compile(checkpointer=saver)


def test_s083_one_call_removes_a_thread_from_every_table(disk: Shelf, call: Call) -> None:
    saver = disk.open()
    assert sorted(texts(call(chat(saver), {"log": ["hello"]}, CONFIG))) == ["inside?", "outside?"]
    assert disk.path is not None
    with closing(sqlite3.connect(disk.path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]

        def filled() -> set[str]:
            return {t for t in tables if connection.execute(f"SELECT count(*) FROM {t}").fetchone()[0]}

        assert filled() >= {"thread", "checkpoint", "item", "outcome", "journal", "question", "event"}
        saver.delete_thread("chat")
        assert filled() <= {"sqlite_sequence", "sqlite_stat1"}
    assert saver.pending() == []


def test_s085_pruning_never_removes_what_an_open_question_needs(shelf: Shelf, call: Call) -> None:
    call(chat(shelf.open()), {"log": ["hello"]}, CONFIG)
    before = chat(shelf.open()).get_state(CONFIG, subgraphs=True)
    assert shelf.open().prune(["chat"]).checkpoints > 0
    assert chat(shelf.open()).get_state(CONFIG, subgraphs=True) == before
    answers = {question.id: ["yes"] for question in shelf.open().pending()}
    done = call(chat(shelf.open()), Command(resume=answers), CONFIG)
    assert done["log"].count("yes") == 1
    assert sum(text.startswith("noted") for text in done["log"]) == 1
    assert (done["value"], shelf.open().pending()) == (["yes"], [])
