"""What a rest left behind is read again only where somebody else may have changed it."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.engine import answers, recall
from waitpoint.errors import AlreadyAnsweredError, QuestionWithdrawn
from waitpoint.graph import StateGraph
from waitpoint.types import Command, Send, interrupt, step

AT: Any = {"configurable": {"thread_id": "1"}}


class State(TypedDict):
    log: Annotated[list[Any], operator.add]


@pytest.fixture(params=["memory", "sqlite"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with InMemorySaver() if request.param == "memory" else SqliteSaver(tmp_path / "threads.db") as opened:
        yield opened


def asking(saver: Any, count: int = 2) -> Any:
    def ask(part: Any) -> Any:
        try:
            return {"log": [interrupt({"part": part["n"]})]}
        except QuestionWithdrawn:
            return {"log": ["withdrawn"]}

    builder = StateGraph(State).add_node("ask", ask)
    builder.add_conditional_edges("__start__", lambda _: [Send("ask", {"n": n}) for n in range(count)], ["ask"])
    return builder.compile(checkpointer=saver)


def counted(saver: Any) -> list[Any]:
    """Note each time the saver reads all of a thread."""
    loads: list[Any] = []
    plain = saver.load

    def load(*args: Any) -> Any:
        loads.append(args)
        return plain(*args)

    saver.load = load
    return loads


def test_answers_in_one_process_read_the_other_questions_no_more(saver: Any) -> None:
    graph = asking(saver, 5)
    loads = counted(saver)
    ids = [i.id for i in graph.invoke({"log": []}, AT)["__interrupt__"]]
    assert len(loads) == 1
    for n, one in enumerate(ids):
        left = graph.invoke(Command(resume={one: n}), AT)
    assert left == {"log": [0, 1, 2, 3, 4]}
    assert len(loads) == 1


def test_what_is_recalled_is_what_the_store_would_tell(saver: Any) -> None:
    graph = asking(saver, 3)
    for one in [i.id for i in graph.invoke({"log": []}, AT)["__interrupt__"]]:
        key = saver.threads()[0].key
        recalled, read = recall.load(saver, key), saver.load(key)
        assert recalled.thread == read.thread
        assert recalled.checkpoint == read.checkpoint
        assert list(recalled.outcomes) == list(read.outcomes)
        assert list(recalled.questions) == list(read.questions)
        graph.invoke(Command(resume={one: "yes"}), AT)


def test_an_answer_of_another_process_is_seen(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "threads.db") as ours, SqliteSaver(tmp_path / "threads.db") as theirs:
        first, second = (i.id for i in asking(ours).invoke({"log": []}, AT)["__interrupt__"])
        asking(theirs).invoke(Command(resume={first: "theirs"}), AT)
        with pytest.raises(AlreadyAnsweredError):
            asking(ours).invoke(Command(resume={first: "ours"}), AT)
        assert asking(ours).invoke(Command(resume={second: "ours"}), AT) == {"log": ["theirs", "ours"]}


def test_a_question_that_was_withdrawn_meanwhile_is_not_waited_for(saver: Any) -> None:
    graph = asking(saver)
    first, second = (i.id for i in graph.invoke({"log": []}, AT)["__interrupt__"])
    answers.withdraw(saver, first, "no longer needed")
    assert graph.invoke(Command(resume={second: "yes"}), AT) == {"log": ["withdrawn", "yes"]}


def test_a_thread_that_was_deleted_is_not_recalled(saver: Any) -> None:
    graph = asking(saver)
    graph.invoke({"log": []}, AT)
    saver.delete_thread("1")
    assert len(graph.invoke({"log": ["anew"]}, AT)["__interrupt__"]) == 2
    assert graph.get_state(AT).values == {"log": ["anew"]}


def test_a_thread_with_a_journal_is_read(saver: Any) -> None:
    def act(_: State) -> Any:
        return {"log": [step(lambda: "done"), interrupt("go on?")]}

    builder = StateGraph(State).add_node("act", act).add_edge("__start__", "act")
    graph = builder.compile(checkpointer=saver)
    loads = counted(saver)
    graph.invoke({"log": []}, AT)
    assert graph.invoke(Command(resume="yes"), AT) == {"log": ["done", "yes"]}
    assert len(loads) == 2
