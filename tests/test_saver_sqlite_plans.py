"""How much is read: every statement of a listing and of a load goes by an index, however much lies in the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pytest

from waitpoint.checkpoint.base import Cut, PendingFilter
from waitpoint.checkpoint.sqlite import SqliteSaver, reads, writes
from waitpoint.testing.conformance.rows import BELOW, C1, C2, KEY, begin, checkpoint, question, row_of


@pytest.fixture
def saver() -> Iterator[SqliteSaver]:
    with SqliteSaver(":memory:") as saver:
        begin(saver, checkpoints=[checkpoint(), checkpoint(C1, BELOW)], questions=[question()])
        yield saver


class Explained:
    """Runs statements on a cursor, and collects what SQLite plans for each."""

    def __init__(self, cursor: reads.Cursor) -> None:
        self.cursor = cursor
        self.plans: list[str] = []

    def execute(self, sql: str, values: object = ()) -> object:
        plan = self.cursor.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall()
        self.plans += [row[3] for row in plan]
        return self.cursor.execute(sql, values)

    def executemany(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        for values in rows:
            self.execute(sql, values)


def plans(saver: SqliteSaver, find: object, *args: object) -> str:
    def explain(cursor: reads.Cursor) -> str:
        explained = Explained(cursor)
        find(explained, *args)
        return "; ".join(explained.plans)

    return saver._database.read(explain)


def test_pending_questions_come_from_their_own_index(saver: SqliteSaver) -> None:
    for wanted in (PendingFilter(), PendingFilter(newest_first=True, limit=5), PendingFilter(node="n", graph="g")):
        found = plans(saver, reads.questions, wanted)
        assert "SCAN question USING INDEX question_open" in found
        assert "SCAN thread" not in found
    assert "question_open" in plans(saver, reads.count, PendingFilter())


def test_pending_questions_of_a_thread_come_from_that_thread(saver: SqliteSaver) -> None:
    found = plans(saver, reads.questions, PendingFilter(thread_id=KEY.thread_id))
    assert "sqlite_autoindex_thread_1 (thread_id=?)" in found
    assert "SEARCH question USING INDEX question_root (tid=?)" in found


@pytest.mark.parametrize(
    ("find", "args"),
    [
        (reads.load, (KEY, "", None)),
        (reads.load, (KEY, "", C1)),
        (reads.load, (KEY, BELOW, None)),
        (reads.items, (KEY, [(0, 9)])),
        (reads.history, (KEY, "", None, 5)),
        (reads.history, (KEY, "", C2, 5)),
        (reads.events, (KEY, 3, 5)),
        (reads.find_thread, (KEY,)),
        (reads.find_question, ("q1",)),
        (reads.whole, (KEY,)),
        (reads.threads, ("ready", None, None, 0, None)),
        (reads.threads, ("running", None, None, 0, None)),
        (reads.threads, (None, KEY.thread_id, None, 0, None)),
    ],
)
def test_nothing_is_scanned(saver: SqliteSaver, find: object, args: tuple[object, ...]) -> None:
    assert "SCAN" not in plans(saver, find, *args)


def test_a_cut_finds_what_it_takes_by_indexes(saver: SqliteSaver) -> None:
    change = Cut(KEY, row_of(saver), [("", C2), (BELOW, C2)], [(0, 9)], [("", "permits", "name", 0)])
    found = plans(saver, writes._cut_rows, 1, change)
    assert "SCAN" not in found
    assert "question_root (tid=? AND root_checkpoint=?)" in found
    assert "question_checkpoint (tid=? AND ns=? AND checkpoint_id=?)" in found


def test_due_threads_and_heartbeats_come_from_their_own_index(saver: SqliteSaver) -> None:
    assert "USING INDEX thread_due" in plans(saver, reads.threads, "ready", None, None, 0, None)
    assert "thread_due" in plans(saver, writes.beat, ("me", 1.0))


SETTLE_MANY = """
    WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?)
    INSERT INTO question (id, tid, ns, checkpoint_id, root_checkpoint, task_id, seq, node, value, digest, site, extra,
        asked_at, status, replaceable)
    SELECT 'settled' || n, 1, '', '', 'c', 't', n, 'node', x'', '', x'', x'', n, iif(n % 2, 'answered', 'withdrawn'), 0
    FROM n"""


@pytest.mark.parametrize("settled", [30_000, pytest.param(1_000_000, marks=pytest.mark.proof)])
def test_pending_reads_no_more_for_however_many_are_settled(saver: SqliteSaver, settled: int) -> None:
    connection = saver._database._writer._cursor.connection

    def steps() -> int:
        """Count steps of SQLite's machine, which depend on no clock."""
        seen: list[None] = []
        connection.set_progress_handler(lambda: seen.append(None), 1)
        assert [row.id for row in saver.questions(PendingFilter())] == ["q1"]
        assert saver.count(PendingFilter()) == 1
        connection.set_progress_handler(None, 0)
        return len(seen)

    steps()  # the statements are prepared
    before = steps()
    connection.execute(SETTLE_MANY, (settled,))
    assert saver.count(PendingFilter(answerable=False)) == settled + 1
    assert steps() == before
