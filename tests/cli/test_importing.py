"""`waitpoint import`: a thread that LangGraph left paused is answered on the command line."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from tests.cli.program import Program

TRIP = """
from typing import TypedDict
from {package}.graph import START, StateGraph
from {package}.types import interrupt


class Trip(TypedDict, total=False):
    city: str
    ok: str


def ask(state: Trip) -> Trip:
    return {{"ok": interrupt({{"question": "Go?", "city": state["city"]}})}}


builder = StateGraph(Trip).add_node("ask", ask).add_edge(START, "ask")
"""
OLD = (
    TRIP.format(package="langgraph")
    + """
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver


def opened():
    return SqliteSaver.from_conn_string("old.db")


def opened_async():
    return AsyncSqliteSaver.from_conn_string("old.db")


def build(saver):
    return builder.compile(checkpointer=saver)


with opened() as file:
    for held in (file, saver := InMemorySaver()):
        if held.get_tuple({"configurable": {"thread_id": "t"}}) is None:
            build(held).invoke({"city": "Rome"}, {"configurable": {"thread_id": "t"}})
"""
)
NEW = TRIP.format(package="waitpoint") + 'graph = builder.compile(name="trip")\n'


@pytest.fixture
def moved(bare: Program) -> tuple[Program, str]:
    """Give the program in a folder with a graph, and the name of a module with the same graph and savers of LangGraph."""
    name = f"old_{uuid.uuid4().hex}"  # modules stay imported, so each test has one of its own
    bare.write(f"{name}.py", OLD)
    bare.write(f"new_{name}.py", NEW)
    bare.write("waitpoint.toml", f'[graphs]\ntrip = "new_{name}:graph"\n[store]\nurl = "sqlite:///threads.db"\n')
    return bare, name


@pytest.mark.parametrize("source", ["saver", "opened", "opened_async"])
def test_a_thread_is_imported_and_its_question_answered(moved: tuple[Program, str], source: str) -> None:
    program, module = moved
    done = program("import", "t", "--from", f"{module}:{source}", "--graph", "trip")
    assert (done.code, done.err) == (0, "")
    assert "Imported thread t of graph trip." in done.out
    assert "left behind: the checkpoints before the newest" in done.out
    (question,) = json.loads(program("inbox", "--json").out)["questions"]
    assert question["value"] == {"question": "Go?", "city": "Rome"}
    answered = program("answer", question["id"], '"yes"', "--json")
    assert json.loads(answered.out)["output"] == {"city": "Rome", "ok": "yes"}
    assert "imported" in program("trace", "t").out


def test_json_has_the_questions_and_what_was_left_behind(moved: tuple[Program, str]) -> None:
    program, module = moved
    document: dict[str, Any] = json.loads(
        program("import", "t", "--from", f"{module}:saver", "--graph", "trip", "--json").out
    )
    assert (document["thread_id"], document["graph"], document["next"]) == ("t", "trip", ["ask"])
    assert [q["node"] for q in document["questions"]] == ["ask"]


def test_with_as_node_the_state_alone_is_taken(moved: tuple[Program, str]) -> None:
    program, module = moved
    done = program("import", "t", "--from", f"{module}:saver", "--graph", "trip", "--as-node", "ask")
    assert (done.code, done.out.splitlines()[-1]) == (0, "It is done.")


def test_a_second_import_is_refused(moved: tuple[Program, str]) -> None:
    program, module = moved
    words = ("import", "t", "--from", f"{module}:saver", "--graph", "trip")
    assert program(*words).code == 0
    done = program(*words)
    assert done.code == 3
    assert "exists already" in done.err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("t", "--from", "MODULE:saver"), "give --graph"),
        (("no", "--from", "MODULE:saver", "--graph", "trip"), "has no thread 'no'"),
        (("t", "--from", "MODULE:nothing", "--graph", "trip"), "has no 'nothing'; check the name"),
        (("t", "--from", "MODULE:builder", "--graph", "trip"), "not a saver of LangGraph"),
        (("t", "--from", "saver", "--graph", "trip"), "'saver' names no saver"),
    ],
)
def test_mistakes_are_told(moved: tuple[Program, str], words: tuple[str, ...], text: str) -> None:
    program, module = moved
    done = program("import", *(word.replace("MODULE", module) for word in words))
    assert done.code == 2
    assert text in done.err
