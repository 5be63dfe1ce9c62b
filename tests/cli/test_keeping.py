"""Keeping house from the terminal: threads are pruned, copied and deleted by their full ids."""

from __future__ import annotations

import pytest

from tests.cli.program import Program
from waitpoint.checkpoint.sqlite import SqliteSaver


@pytest.fixture
def waiting(program: Program) -> Program:
    for name in ("first", "second"):
        program.start("a", thread=name)
    return program


def checkpoints(program: Program, thread: str) -> int:
    with SqliteSaver(program.folder / "threads.db") as saver:
        (row,) = saver.threads(thread_id=thread)
        return len(saver.history(row.key))


def test_threads_that_are_named_lose_their_history_and_keep_their_questions(waiting: Program) -> None:
    before = waiting("inbox", "--json").json["count"]
    assert checkpoints(waiting, "first") > 1
    done = waiting("threads", "prune", "first", "--json").json
    assert (done["threads"], done["deleted"], done["running"]) == (1, 0, [])
    assert (checkpoints(waiting, "first"), checkpoints(waiting, "second") > 1) == (1, True)
    assert waiting("inbox", "--json").json["count"] == before
    assert waiting("threads", "prune", "first").out.strip() == "Nothing to take away."


def test_a_sweep_takes_what_is_old_enough(waiting: Program) -> None:
    assert waiting("threads", "prune", "--older-than", "30d", "--keep-latest").out.strip() == "Nothing to take away."
    assert "from 2 threads" in waiting("threads", "prune", "--older-than", "0s").out
    assert "Took" not in waiting("threads", "prune", "--older-than", "0s", "--delete").out  # their questions are open
    assert len(waiting("threads", "--json").json["threads"]) == 2


def test_a_copy_has_questions_of_its_own(waiting: Program) -> None:
    before = {q["id"] for q in waiting("inbox", "--json").json["questions"]}
    assert waiting("threads", "copy", "first", "third").out.strip() == "Thread third is a copy of first."
    after = waiting("inbox", "--thread", "third", "--json").json["questions"]
    assert after
    assert not {q["id"] for q in after} & before
    assert "exists already" in waiting("threads", "copy", "first", "third").refused(2)


def test_a_deleted_thread_is_gone_with_its_questions(waiting: Program) -> None:
    assert waiting("threads", "delete", "first", "second").out.strip() == "Deleted 2 threads."
    assert waiting("inbox", "--json").json["count"] == 0
    assert waiting("threads", "--json").json["threads"] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["prune"], "Nothing says what to prune"),
        (["prune", "--older-than", "soon"], "is no length of time"),
        (["prune", "first", "--delete", "--keep-latest"], "exclude each other"),
        (["prune", "firs"], "Unknown thread 'firs'"),
        (["delete", "first", "firs"], "Unknown thread 'firs'"),
        (["copy", "firs", "new"], "No thread 'firs'"),
        (["--store", "sqlite:///other.db", "delete", "first"], "Options stand behind the command"),
    ],
)
def test_what_is_not_clear_is_refused_and_nothing_is_taken(waiting: Program, words: list[str], told: str) -> None:
    assert told in waiting("threads", *words).refused(2)
    assert len(waiting("threads", "--json").json["threads"]) == 2
