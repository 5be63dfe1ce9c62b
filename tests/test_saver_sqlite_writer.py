"""The one writer: callers that meet share a commit, a refused one takes nothing else back, nobody is left waiting."""

from __future__ import annotations

import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from waitpoint.checkpoint.base import Commit, FenceLost, QuestionsChanged, ThreadKey, Writes
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.errors import StoreError
from waitpoint.testing.conformance.rows import KEY, OTHER, answer, begin, commit, item, question, question_of, row_of


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[SqliteSaver]:
    with SqliteSaver(tmp_path / "x.db", busy_timeout=5) as saver:
        begin(saver, questions=[question("q1"), question("q2")])
        yield saver


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(20) as pool:
        yield pool


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another thread is about to do."""
    pause = threading.Event()
    for _ in range(20_000):
        if condition():
            return
        pause.wait(0.001)
    raise AssertionError("did not happen")


class Meeting:
    """Holds the writer's turn, so that whoever writes meanwhile queues up; then lets them go together."""

    def __init__(self, saver: SqliteSaver) -> None:
        self.writer = saver._database._writer
        self.statements: list[str] = []

    def wait_for(self, number: int) -> None:
        until(lambda: len(self.writer._queue) == number)

    @property
    def begun(self) -> int:
        return self.statements.count("BEGIN IMMEDIATE")


@contextmanager
def meeting(saver: SqliteSaver) -> Iterator[Meeting]:
    found = Meeting(saver)
    assert found.writer.take(5)
    found.writer._cursor.connection.set_trace_callback(found.statements.append)
    try:
        yield found
    finally:
        found.writer.release()


def test_callers_that_meet_share_one_transaction(saver: SqliteSaver, pool: ThreadPoolExecutor) -> None:
    with meeting(saver) as met:
        writing = [pool.submit(commit, saver, items=[item(n)]) for n in range(12)]
        met.wait_for(12)
    for future in writing:
        future.result()
    assert met.begun == 1
    assert met.statements.count("COMMIT") == 1
    assert len(saver.items(KEY, [(0, 99)])) == 12


def test_a_lone_caller_commits_directly(saver: SqliteSaver) -> None:
    with meeting(saver) as met:
        pass
    commit(saver, items=[item(0)])
    assert met.begun == 1
    assert not any("SAVEPOINT" in text for text in met.statements)


def test_a_refused_caller_takes_nothing_back_but_its_own(saver: SqliteSaver, pool: ThreadPoolExecutor) -> None:
    begin(saver, OTHER, items=[item(0)])
    with meeting(saver) as met:
        first = pool.submit(commit, saver, items=[item(0)])
        met.wait_for(1)
        late = pool.submit(commit, saver, 9, items=[item(1)])
        met.wait_for(2)
        half = pool.submit(commit, saver, key=OTHER, items=[item(5), item(0, b"other")])
        met.wait_for(3)
        last = pool.submit(commit, saver, items=[item(2)])
        met.wait_for(4)
    first.result()
    last.result()
    with pytest.raises(FenceLost) as caught:
        late.result()
    assert caught.value.thread is not None
    with pytest.raises(StoreError, match="taken by other content"):
        half.result()
    assert met.begun == 1
    assert list(saver.items(KEY, [(0, 9)])) == [0, 2]
    assert list(saver.items(OTHER, [(0, 9)])) == [0]


def test_of_two_answers_in_one_transaction_the_first_wins(saver: SqliteSaver, pool: ThreadPoolExecutor) -> None:
    with meeting(saver) as met:
        first = pool.submit(answer, saver, "q1")
        met.wait_for(1)
        second = pool.submit(answer, saver, "q2", "q1")
        met.wait_for(2)
    assert first.result().answer_seq == 1
    with pytest.raises(QuestionsChanged) as caught:
        second.result()
    assert [row.status for row in caught.value.questions] == ["open", "answered"]
    assert question_of(saver, "q2").status == "open"
    assert row_of(saver).answer_seq == 1


def synchronous(saver: SqliteSaver) -> int:
    number: int = saver._database._writer._cursor.connection.execute("PRAGMA synchronous").fetchone()[0]
    return number


FULL, NORMAL = 2, 1


def test_durable_commits_wait_for_the_disk_and_visible_ones_do_not(saver: SqliteSaver) -> None:
    for durable in (False, True, False):
        saver.commit(Commit(KEY, 1, Writes(), 1.0, durable=durable))
        assert synchronous(saver) == (FULL if durable else NORMAL)
    answer(saver, "q1")
    assert synchronous(saver) == FULL


def test_a_shared_transaction_is_durable_if_one_of_it_is(saver: SqliteSaver, pool: ThreadPoolExecutor) -> None:
    commit(saver)
    assert synchronous(saver) == NORMAL
    with meeting(saver) as met:
        writing: list[Future[Any]] = [pool.submit(commit, saver) for _ in range(3)]
        met.wait_for(3)
        writing += [pool.submit(answer, saver, "q1"), pool.submit(commit, saver)]
        met.wait_for(5)
    for future in writing:
        future.result()
    assert met.begun == 1
    assert synchronous(saver) == FULL


def test_the_level_is_set_only_when_it_changes(saver: SqliteSaver) -> None:
    with meeting(saver) as met:
        pass
    for durable in (True, True, False, False, False, True):
        saver.commit(Commit(KEY, 1, Writes(), 1.0, durable=durable))
    levels = [text for text in met.statements if "synchronous" in text]
    assert levels == ["PRAGMA synchronous = NORMAL", "PRAGMA synchronous = FULL"]


def test_a_failing_transaction_fails_all_its_callers(saver: SqliteSaver, pool: ThreadPoolExecutor) -> None:
    writer = saver._database._writer
    connection = writer._cursor.connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with meeting(saver) as met:
        writing = [pool.submit(commit, saver, items=[item(n, bytes(100_000))]) for n in range(3)]
        met.wait_for(3)
    errors = [future.exception() for future in writing]
    assert all(isinstance(error, StoreError) and "disk is full" in str(error) for error in errors)
    assert len({id(error) for error in errors}) == 3
    connection.execute("PRAGMA max_page_count = 100000")
    commit(saver, items=[item(9)])
    assert list(saver.items(KEY, [(0, 99)])) == [9]


def test_text_that_is_no_unicode_shares_a_transaction_too(saver: SqliteSaver, pool: ThreadPoolExecutor) -> None:
    strange = [ThreadKey(f"\udcff{n}", "graph") for n in range(3)]
    with meeting(saver) as met:
        writing = [pool.submit(begin, saver, key, items=[item(0)]) for key in strange]
        met.wait_for(3)
    rows = [future.result() for future in writing]
    assert met.begun == 1
    assert [saver.thread(key) for key in strange] == rows


def test_closing_waits_for_its_turn_and_refuses_who_comes_later(saver: SqliteSaver, pool: ThreadPoolExecutor) -> None:
    with meeting(saver) as met:
        early = pool.submit(commit, saver, items=[item(0)])
        met.wait_for(1)
        closing_ = pool.submit(saver.close)
        met.wait_for(2)
        late = pool.submit(commit, saver, items=[item(1)])
        met.wait_for(3)
    closing_.result()
    early.result()
    with pytest.raises(StoreError, match="is closed"):
        late.result()


class Interrupted(BaseException):
    """What a signal raises in the main thread."""


@pytest.fixture
def interrupted() -> Iterator[None]:
    def interrupt(number: int, frame: Any) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("interrupted")
def test_an_interrupted_wait_keeps_nobody_waiting(saver: SqliteSaver, pool: ThreadPoolExecutor) -> None:
    taken, over = threading.Event(), threading.Event()

    def hold() -> None:
        with meeting(saver):
            taken.set()
            over.wait()

    holding = pool.submit(hold)
    taken.wait()
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    with pytest.raises(Interrupted):
        commit(saver, items=[item(0)])
    over.set()
    holding.result()
    commit(saver, items=[item(1)])
    assert list(saver.items(KEY, [(0, 9)])) == [1]


@pytest.mark.usefixtures("interrupted")
def test_an_interrupted_writer_takes_its_change_back_and_hands_on(
    saver: SqliteSaver, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    writer = saver._database._writer
    followers: list[Future[Any]] = []

    def begin_and_never_end(cursor: Any, change: None) -> None:
        cursor.execute("INSERT INTO item VALUES (1, x'00')")
        followers.extend(pool.submit(commit, saver, items=[item(n)]) for n in range(3))
        until(lambda: len(writer._queue) == 3)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        threading.Event().wait(30)

    with pytest.raises(Interrupted):
        saver._database.write(begin_and_never_end, None, durable=True)
    for future in followers:
        future.result()
    assert len(saver.items(KEY, [(0, 9)])) == 3
    with closing(sqlite3.connect(tmp_path / "x.db")) as other:
        assert other.execute("SELECT count(*) FROM item WHERE key = 1").fetchone() == (0,)


def test_many_threads_at_once_lose_nothing(saver: SqliteSaver, pool: ThreadPoolExecutor) -> None:
    keys = [ThreadKey(str(n), "graph") for n in range(8)]
    for key in keys:
        begin(saver, key)

    def work(key: ThreadKey) -> None:
        for n in range(50):
            saver.commit(Commit(key, 1, Writes(items=[item(n)]), float(n), next_item=n + 1, durable=n % 5 == 0))
            assert saver.items(key, [(0, 99)]).keys() == set(range(n + 1))

    for future in [pool.submit(work, key) for key in keys]:
        future.result()
    assert [row_of(saver, key).next_item for key in keys] == [50] * 8
