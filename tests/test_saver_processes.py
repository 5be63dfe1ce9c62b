"""Several processes on one file: races are made certain, kills are kills, forks are forks."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.saver_process import Child
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.testing.conformance.rows import C1, KEY, begin, question, question_of, row_of

ROUNDS = 50


def test_of_two_processes_that_answer_at_the_same_moment_exactly_one_wins(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver, Child() as ana, Child() as bob:
        begin(saver, status="waiting", questions=[question(f"q{n}", seq=n) for n in range(ROUNDS)])
        with closing(sqlite3.connect(path, isolation_level=None)) as gate:
            for n in range(ROUNDS):
                gate.execute("BEGIN IMMEDIATE")  # nobody can write, so both have begun before either can win
                ana.tell("answer", path, f"q{n}", "ana")
                bob.tell("answer", path, f"q{n}", "bob")
                assert (ana.hear(), bob.hear()) == ("begins", "begins")
                gate.execute("COMMIT")
                results = {"ana": ana.hear(), "bob": bob.hear()}
                winner = question_of(saver, f"q{n}").by
                loser = {"ana": "bob", "bob": "ana"}[str(winner)]
                assert results == {winner: "won", loser: f"lost to {winner}"}
                assert row_of(saver).answer_seq == n + 1


def test_processes_that_create_the_file_together_all_succeed(tmp_path: Path) -> None:
    with ExitStack() as stack:
        children = [stack.enter_context(Child()) for _ in range(3)]
        for n in range(15):
            for child in children:
                child.tell("create", tmp_path / f"{n}.db")
            assert [child.hear() for child in children] == ["0", "0", "0"]


@pytest.mark.parametrize("acknowledged", [1, 40, 300])
def test_every_acknowledged_commit_survives_a_kill(tmp_path: Path, acknowledged: int) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver:
        begin(saver)
    with Child() as child:
        child.tell("stream", path)
        for n in range(acknowledged):
            assert child.hear() == str(n)
        assert child.process.poll() is None  # killed in the middle of its work
        child.process.kill()
        said, _ = child.process.communicate()
        complete = [line for line in said.splitlines(keepends=True) if line.endswith("\n")]
        acknowledged += len(complete)
    with SqliteSaver(path) as saver:
        count = row_of(saver).next_item
        assert count in {acknowledged, acknowledged + 1}  # the last one may have been stored and not yet told
        assert saver.items(KEY, [(0, count + 9)]) == {n: b"%d" % n * 500 for n in range(count)}
        assert saver.load(KEY).checkpoint is not None


def test_a_fork_takes_no_connection_along(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with Child() as child:
        child.tell("fork", path)
        assert child.hear() == "0"
        child.end()
    with SqliteSaver(path) as saver:
        assert saver.items(KEY, [(0, 9)]) == {
            0: b"before",
            1: b"child, parent open",
            2: b"child, parent closed",
            3: b"parent",
        }


@pytest.mark.filterwarnings("ignore")
def test_a_fork_beside_a_writing_thread_waits_for_a_quiet_moment(tmp_path: Path) -> None:
    with Child() as child:
        child.tell("fork_while_writing", tmp_path / "threads.db")
        assert child.hear() == "[0, 0, 0, 0, 0]"


def test_a_fork_copies_a_database_in_memory() -> None:
    with Child() as child:
        child.tell("fork_in_memory", ":memory:")
        assert child.hear() == "(0, {})"
        child.end()


def test_a_saver_that_nobody_closed_is_closed_with_the_program(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with Child() as child:
        child.tell("forget", path)
        assert "threads.db-wal" in child.hear()
        assert child.end() == ""
    assert [found.name for found in tmp_path.iterdir()] == ["threads.db"]
    with SqliteSaver(path) as saver:
        assert row_of(saver).head == C1
