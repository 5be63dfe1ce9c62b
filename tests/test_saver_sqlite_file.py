"""The file: how it is made, migrated, refused, shared with a user's own connection, and closed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.data.make_threads_v1 import KEY as OLD_KEY
from waitpoint.checkpoint.base import INTERFACE, Cut, EventRow, FenceLost, ThreadKey
from waitpoint.checkpoint.sqlite import SqliteSaver, schema
from waitpoint.checkpoint.sqlite.aio import AsyncSqliteSaver
from waitpoint.errors import StoreError, UsageError
from waitpoint.testing.conformance.rows import (
    BELOW,
    C1,
    C2,
    KEY,
    answer,
    begin,
    checkpoint,
    commit,
    entry,
    item,
    outcome,
    question,
    row_of,
    thread,
)

HERE = Path(__file__).parent
OLD = HERE / "data" / "threads_v1.db"


def shape(connection: sqlite3.Connection) -> list[Any]:
    """What a schema amounts to, however it was written."""
    names = connection.execute("SELECT type, name FROM sqlite_master ORDER BY name").fetchall()
    found: list[Any] = []
    for kind, name in names:
        text = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0]
        details = connection.execute(f"PRAGMA {'table_xinfo' if kind == 'table' else 'index_xinfo'}({name})").fetchall()
        where = "" if text is None else " ".join(text.split()).partition(" WHERE ")[2]
        found.append((kind, name, details, where))
    return found


def contents(path: Path) -> bytes:
    return b"".join(found.read_bytes() for found in sorted(path.parent.iterdir()) if found.is_file())


# --- schema -----------------------------------------------------------------------------------------------------------


def test_schema_and_migrations_lead_to_the_same() -> None:
    with closing(sqlite3.connect(":memory:")) as new, closing(sqlite3.connect(":memory:")) as old:
        new.executescript(schema.whole_schema())
        for script in schema.migrations():
            old.executescript(script)
        assert shape(new) == shape(old)
        assert len(shape(new)) > 10


def test_migrations_are_numbered_without_a_gap() -> None:
    folder = Path(schema.__file__).parent / "migrations"
    numbers = [int(path.name[:4]) for path in sorted(folder.glob("*.sql"))]
    assert numbers == list(range(1, len(schema.migrations()) + 1))


def test_a_new_file_says_whose_it_is_and_how_new(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "x.db") as saver:
        saver.setup()
        saver.setup()
        with closing(sqlite3.connect(tmp_path / "x.db")) as other:
            assert other.execute("PRAGMA application_id").fetchone() == (schema.APPLICATION_ID,)
            assert other.execute("PRAGMA user_version").fetchone() == (len(schema.migrations()),)
            assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_an_older_file_is_migrated_step_by_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.db"
    with SqliteSaver(path) as saver:
        begin(saver)
    steps = [
        *schema.migrations(),
        "ALTER TABLE thread ADD COLUMN later TEXT;",
        "CREATE INDEX thread_later ON thread (later);",
    ]
    monkeypatch.setattr(schema, "migrations", lambda: steps)
    with SqliteSaver(path) as saver:
        assert row_of(saver).head == C1
        with closing(sqlite3.connect(path)) as other:
            assert other.execute("PRAGMA user_version").fetchone() == (len(steps),)
            assert other.execute("SELECT later FROM thread INDEXED BY thread_later").fetchall() == [(None,)]


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.db"
    with SqliteSaver(path) as saver:
        begin(saver)
    before = contents(path)
    with monkeypatch.context() as patch:
        patch.setattr(
            schema, "migrations", lambda: ["", "", "", "ALTER TABLE thread ADD COLUMN later TEXT;\nDROP TABLE missing;"]
        )
        with pytest.raises(StoreError, match="no such table"), SqliteSaver(path):
            pass
    assert contents(path) == before
    with SqliteSaver(path) as saver:
        assert row_of(saver).head == C1


def test_a_database_of_schema_version_1_opens(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    shutil.copy(OLD, path)
    with SqliteSaver(path) as saver:
        row = thread(OLD_KEY, status="waiting", answer_seq=1, next_item=3, head=C1, updated_at=7.0)
        row.owner = row.lease_until = None
        loaded = saver.load(OLD_KEY)
        assert loaded.thread == row
        assert loaded.checkpoint == checkpoint()
        assert loaded.outcomes == [outcome("task-1")]
        assert loaded.journal == [entry(state="done")]
        settled = {"settled_at": 6.0, "settle_seq": 1}
        answered = replace(question("a" * 32, OLD_KEY), status="answered", answer=b"yes", by="ana", **settled)
        answered.comment, answered.token = "looks fine", "token-1"
        withdrawn = replace(
            question("b" * 32, OLD_KEY, seq=2), status="withdrawn", reason="no longer needed", **settled
        )
        assert loaded.questions == [answered, withdrawn, question("c" * 32, OLD_KEY, seq=3)]
        assert saver.history(OLD_KEY) == [checkpoint(C2, parent_id=C1, step=1), checkpoint()]
        assert saver.load(OLD_KEY, BELOW).checkpoint == checkpoint(C1, BELOW)
        assert saver.items(OLD_KEY, [(0, 9)]) == {0: b"first", 1: bytes(3000), 2: b"item"}
        assert saver.events(OLD_KEY) == [EventRow("begun", 1.0, C1, seq=1), EventRow("answered", 6.0, "a" * 32, seq=2)]
        assert answer(saver, "c" * 32, key=OLD_KEY).answer_seq == 2


# --- files that cannot be used ----------------------------------------------------------------------------------------


def test_a_newer_schema_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with SqliteSaver(path) as saver:
        begin(saver)
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 99")
    before = contents(path)
    with pytest.raises(StoreError, match="schema version 99") as caught:
        SqliteSaver(path).load(KEY)
    assert "upgrade" in str(caught.value)
    assert contents(path) == before


def test_another_programs_database_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE checkpoints (thread_id TEXT)")
    before = contents(path)
    with pytest.raises(StoreError, match="another program"), SqliteSaver(path):
        pass
    assert contents(path) == before


def test_a_file_that_is_no_database_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(b"dear diary, " * 1000)
    before = contents(path)
    with pytest.raises(StoreError, match="not a SQLite database"):
        begin(SqliteSaver(path))
    assert contents(path) == before


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a directory"):
        SqliteSaver(tmp_path).setup()
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="its folder must exist"):
        SqliteSaver(tmp_path / "no" / "x.db").threads()
    assert list(tmp_path.iterdir()) == []


WRITE_AS_NOBODY = """
import os, sys
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.errors import StoreError
os.chdir(sys.argv[1])
if os.getuid() == 0:
    os.setgid(65534), os.setuid(65534)
for path in sys.argv[2:]:
    try:
        SqliteSaver(path).setup()
    except StoreError as error:
        print(error)
"""


def test_a_file_that_may_not_be_written_is_refused_untouched() -> None:
    # Not `tmp_path`, whose parents only their owner may enter; root may write anything, so it becomes somebody else.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "x.db"
        path.touch()
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        said = subprocess.run(
            [sys.executable, "-c", WRITE_AS_NOBODY, folder, "x.db", "new.db"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout.splitlines()
        assert [line.split(" - ")[0] for line in said] == [
            "database 'x.db' may not be written to",
            "database 'new.db' cannot be opened",
        ]
        assert [found.name for found in Path(folder).iterdir()] == ["x.db"]
        assert path.read_bytes() == b""
        Path(folder).chmod(0o755)


def test_a_locked_database_is_waited_for_and_then_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with SqliteSaver(path, busy_timeout=0.01) as saver, closing(sqlite3.connect(path, isolation_level=None)) as other:
        begin(saver)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="is locked by another process"):
            commit(saver, items=[item(0)])
        assert saver.load(KEY).thread is not None  # readers do not wait
        other.execute("COMMIT")
        commit(saver, items=[item(0)])


def test_a_full_disk_stores_nothing_and_the_saver_goes_on(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "x.db") as saver:
        begin(saver)
        connection = saver._database._writer._cursor.connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="the disk is full"):
            commit(saver, items=[item(n, bytes(3000)) for n in range(50)])
        connection.execute("PRAGMA max_page_count = 1000000")
        assert saver.items(KEY, [(0, 99)]) == {}
        commit(saver, items=[item(0)])


# --- connections ------------------------------------------------------------------------------------------------------


def test_a_users_connection_to_a_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as mine:
        saver = SqliteSaver(mine)
        begin(saver)
        threads = []
        reader = threading.Thread(target=lambda: threads.extend(saver.threads()))
        reader.start()
        reader.join()
        assert [row.key for row in threads] == [KEY]
        saver.close()
        assert mine.execute("SELECT thread_id FROM thread").fetchone() == (KEY.thread_id,)


def test_a_users_connection_in_memory_is_used_and_stays_open() -> None:
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as mine:
        mine.row_factory = sqlite3.Row
        with SqliteSaver(mine) as saver:
            assert saver.blocking is False
            row = begin(saver, questions=[question()])
            assert saver.load(KEY).thread == row
            assert answer(saver, "q1").status == "running"
        assert mine.execute("SELECT thread_id FROM thread").fetchone()["thread_id"] == KEY.thread_id
        with SqliteSaver(mine) as again:
            assert again.load(KEY).checkpoint == checkpoint()


def test_a_connection_inside_a_transaction_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as mine:
        mine.execute("BEGIN")
        with pytest.raises(UsageError, match="inside a transaction"):
            SqliteSaver(mine)


def test_a_closed_connection_and_other_things_are_refused() -> None:
    mine = sqlite3.connect(":memory:")
    mine.close()
    with pytest.raises(UsageError, match="cannot use that connection"):
        SqliteSaver(mine)
    with pytest.raises(UsageError, match="cannot open a int"):
        SqliteSaver(3)  # type: ignore[arg-type]


def test_a_closed_saver_says_so(tmp_path: Path) -> None:
    for source in (tmp_path / "x.db", ":memory:"):
        saver = SqliteSaver(source)
        begin(saver)
        saver.close()
        saver.close()
        with pytest.raises(StoreError, match="is closed"):
            saver.load(KEY)
        with pytest.raises(StoreError, match="is closed"):
            commit(saver)


def test_closing_removes_the_write_ahead_log(tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "x.db")) as saver:
        begin(saver)
        saver.load(KEY)
    assert [path.name for path in tmp_path.iterdir()] == ["x.db"]


def test_a_relative_path_stays_the_same_file_after_a_change_of_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    saver = SqliteSaver("x.db")
    monkeypatch.chdir("/")
    begin(saver)
    saver.close()
    assert (tmp_path / "x.db").exists()


def test_one_file_has_one_reader_for_each_thread_that_reads_at_once(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "x.db") as saver:
        begin(saver)
        for _ in range(3):
            reader = threading.Thread(target=lambda: saver.load(KEY))
            reader.start()
            reader.join()
        assert len(saver._database._readers) == 1


def test_a_number_of_a_deleted_thread_is_not_taken_for_another_thread(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "x.db") as one, SqliteSaver(tmp_path / "x.db") as two:
        begin(one)
        commit(one)  # remembers the number of the thread
        two.delete_thread(KEY.thread_id)
        other = ThreadKey("other", "graph")
        begin(two, other)  # gets the number
        with pytest.raises(FenceLost):
            commit(one, items=[item(0)])
        begin(two)
        commit(one, items=[item(0)])
        assert two.items(KEY, [(0, 1)]) == {0: b"item"}
        assert two.items(other, [(0, 1)]) == {}


@pytest.mark.parametrize("is_replaced", [False, True], ids=["deleted", "replaced"])
def test_a_durable_change_is_refused_where_the_file_is_gone_and_works_once_it_is_back(
    tmp_path: Path, is_replaced: bool
) -> None:
    """Guarantee decision-durable: SQLite would go on writing to a file that nobody can open again."""
    path, kept = tmp_path / "x.db", tmp_path / "kept.db"
    with SqliteSaver(path) as saver:
        begin(saver)
        path.rename(kept)
        if is_replaced:
            shutil.copy(kept, path)
        with pytest.raises(StoreError, match="was deleted or replaced while it was open - nothing was stored"):
            saver.delete_thread(KEY.thread_id)
        with pytest.raises(StoreError, match="was deleted or replaced while it was open"):
            saver.thread(KEY)
        kept.rename(path)
        assert saver.thread(KEY) is not None
        saver.delete_thread(KEY.thread_id)
        assert saver.thread(KEY) is None


# --- asyncio ----------------------------------------------------------------------------------------------------------


async def test_the_async_saver_is_the_same_saver(tmp_path: Path) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "x.db")) as saver:
        assert isinstance(saver, SqliteSaver)
        begin(saver)
        await saver.adelete_thread(KEY.thread_id)
        assert saver.threads() == []
    with pytest.raises(StoreError, match="is closed"):
        saver.threads()
    await saver.aclose()


def test_a_file_shrinks_when_it_is_vacuumed_after_a_pruning(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with SqliteSaver(path) as saver:
        begin(saver, status="idle", next_item=300, items=[item(n, bytes(4000)) for n in range(300)])
        row = saver.thread(KEY)
        assert row is not None
        saver.cut(Cut(KEY, row, items=[(1, 300)]))
        saver.vacuum()
        assert path.stat().st_size < 200_000  # of 1,200,000
        assert saver.items(KEY, [(0, 300)]) == {0: bytes(4000)}
        commit(saver)
    with pytest.raises(StoreError, match="is closed"):
        saver.vacuum()


def test_a_saver_for_another_version_of_the_interface_is_refused_by_name() -> None:
    """S183"""

    for version, cure in ((INTERFACE + 1, "upgrade the waitpoint package"), (0, "the package it comes from")):
        with pytest.raises(UsageError, match=cure):
            type("Theirs", (SqliteSaver,), {}, interface=version)
    assert type("Theirs", (SqliteSaver,), {}, interface=INTERFACE).interface == INTERFACE
