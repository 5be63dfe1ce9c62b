"""The SQLite store: files that are shared with threads, caches and other processes, and what a search reads of them."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import subprocess
import sys
import threading
from array import array
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from waitpoint import clock
from waitpoint.cache.sqlite import SqliteCache
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.config import get_store
from waitpoint.errors import StoreError
from waitpoint.graph import START, MessagesState, StateGraph
from waitpoint.store.base import GetOp, PutOp, SearchOp
from waitpoint.store.sqlite import AsyncSqliteStore, SqliteStore, rows
from waitpoint.store.sqlite.aio import AsyncSqliteStore as FromAio
from waitpoint.testing.conformance.rows import begin, row_of

OLD = Path(__file__).parent / "data" / "threads_v1.db"
NS = ("notes",)


def embed(texts: Any) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


# --- files ------------------------------------------------------------------------------------------------------------


def test_what_was_put_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    with SqliteStore.from_conn_string(tmp_path / "x.db", index={"dims": 2, "embed": embed}) as store:
        store.put(NS, "a", {"text": "abc"})
        scores = [item.score for item in store.search(NS, query="abc")]
    with SqliteStore.from_conn_string(str(tmp_path / "x.db"), index={"dims": 2, "embed": embed}) as store:
        assert [item.score for item in store.search(NS, query="abc")] == scores
        assert scores[0] is not None


@pytest.mark.parametrize("first", ["store", "saver", "cache"])
def test_threads_items_and_results_share_a_file_whoever_makes_it(tmp_path: Path, first: str) -> None:
    path = tmp_path / "all.db"
    with SqliteStore(path) as store, SqliteSaver(path) as saver, SqliteCache[Any](path) as cache:
        uses: dict[str, Any] = {
            "store": lambda: store.put(NS, "a", {}),
            "saver": lambda: begin(saver),
            "cache": lambda: cache.set({(NS, "k"): (1, None)}),
        }
        for use in (uses.pop(first), *uses.values()):
            use()
    with SqliteStore(path) as store, SqliteSaver(path) as saver, SqliteCache[Any](path) as cache:
        assert store.list_namespaces() == [NS]
        assert row_of(saver).head is not None
        assert cache.get([(NS, "k")]) == {(NS, "k"): 1}


def test_a_file_of_threads_from_before_there_were_stores_takes_items(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    shutil.copy(OLD, path)
    with SqliteStore(path) as store, SqliteSaver(path) as saver:
        store.put(NS, "a", {"n": 1})
        assert len(saver.threads()) == 1
    with SqliteStore(path) as store:
        assert [item.key for item in store.search(NS)] == ["a"]


def test_another_program_s_file_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as other:
        other.execute("CREATE TABLE mine (a)")
    with pytest.raises(StoreError, match="another program"):
        SqliteStore(tmp_path / "x.db").put(NS, "a", {})


def test_errors_name_the_store_and_the_cache(tmp_path: Path) -> None:
    store, cache = SqliteStore(tmp_path / "x.db"), SqliteCache[Any](tmp_path / "y.db")
    store.setup()
    cache.clear()
    store.close()
    cache.close()
    with pytest.raises(StoreError, match="the store of"):
        store.get(NS, "a")
    with pytest.raises(StoreError, match="the cache of"):
        cache.get([(NS, "k")])
    with pytest.raises(StoreError, match="is a directory"):
        SqliteStore(tmp_path).put(NS, "a", {})
    with SqliteStore(tmp_path / "z.db") as gone:
        gone.put(NS, "a", {})
        (tmp_path / "z.db").unlink()
        with pytest.raises(StoreError, match="open a new store"):
            gone.put(NS, "b", {})


def test_an_open_connection_is_one_to_its_file_or_is_used_itself(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        SqliteStore(connection).put(NS, "a", {})
        with SqliteStore(tmp_path / "x.db") as store:
            assert store.list_namespaces() == [NS]
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        with SqliteStore(connection) as store:
            store.put(NS, "a", {})
        assert SqliteStore(connection).list_namespaces() == [NS]


def test_a_saver_and_a_store_on_one_connection_do_not_meet_in_a_transaction() -> None:
    def put(state: MessagesState) -> Any:
        for n in range(20):
            get_store().put(NS, f"{threading.get_ident()} {n}", {})
        return {}

    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        store = SqliteStore(connection)
        builder = StateGraph(MessagesState)
        for n in range(6):
            builder.add_node(f"put {n}", put).add_edge(START, f"put {n}")
        graph = builder.compile(SqliteSaver(connection), store=store)
        graph.invoke({"messages": []}, {"configurable": {"thread_id": "1"}})
        with ThreadPoolExecutor(4) as pool:
            runs = [
                pool.submit(graph.invoke, {"messages": []}, {"configurable": {"thread_id": str(n)}}) for n in range(4)
            ]
            for run in runs:
                run.result()
        assert len(store.search(NS, limit=1000)) >= 40


def test_several_processes_put_into_one_file(tmp_path: Path) -> None:
    program = (
        "import sys; from waitpoint.store.sqlite import SqliteStore\n"
        "store = SqliteStore(sys.argv[1])\n"
        "for n in range(30): store.put(('p', sys.argv[2]), str(n), {'n': n})"
    )
    path = tmp_path / "x.db"
    children = [subprocess.Popen([sys.executable, "-c", program, str(path), str(n)]) for n in range(3)]
    assert [child.wait() for child in children] == [0, 0, 0]
    with SqliteStore(path) as store:
        assert store.list_namespaces() == [("p", str(n)) for n in range(3)]
        assert len(store.search(("p",), limit=100)) == 90


def test_a_batch_that_fails_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "x.db") as store:
        store.put(NS, "old", {"n": 1})
        with closing(sqlite3.connect(tmp_path / "x.db")) as other:
            other.execute(
                "CREATE TRIGGER full BEFORE INSERT ON store_item WHEN new.key = 'bad' "
                "BEGIN SELECT raise(ABORT, 'no more'); END"
            )
        with pytest.raises(StoreError, match="no more"):
            store.batch([PutOp(NS, "a", {}), PutOp(NS, "old", None), PutOp(NS, "bad", {})])
        assert [(item.key, item.value) for item in store.search(NS)] == [("old", {"n": 1})]


# --- asyncio ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SqliteStore, AsyncSqliteStore])
async def test_a_store_is_an_asyncio_context_manager(tmp_path: Path, kind: Any) -> None:
    async with kind.from_conn_string(tmp_path / "x.db") as store:
        await asyncio.gather(*(store.aput(NS, str(n), {}) for n in range(20)))
        assert len(await store.asearch(NS, limit=50)) == 20
    with pytest.raises(StoreError, match="closed"):
        await store.aget(NS, "0")


async def test_the_upkeep_of_the_asyncio_store_is_awaited(tmp_path: Path) -> None:
    assert FromAio is AsyncSqliteStore
    async with AsyncSqliteStore.from_conn_string(tmp_path / "x.db") as store:
        await store.setup()
        with clock.fixed(lambda: 0.0):
            await store.aput(NS, "a", {}, ttl=1)
            assert await store.sweep_ttl() == 0
        with clock.fixed(lambda: 61.0):
            assert (await store.start_ttl_sweeper()).done()
            assert await store.sweep_ttl() == 0
        assert await store.stop_ttl_sweeper()


def test_starting_the_sweeper_sweeps(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "x.db") as store:
        with clock.fixed(lambda: 0.0):
            store.put(NS, "a", {}, ttl=1)
        with clock.fixed(lambda: 61.0):
            assert store.start_ttl_sweeper(5).done()
            assert store.stop_ttl_sweeper(1.0)
        with closing(sqlite3.connect(tmp_path / "x.db")) as other:
            assert other.execute("SELECT count(*) FROM store_item").fetchone() == (0,)


# --- what lies in the file --------------------------------------------------------------------------------------------


def counted(path: Path) -> tuple[int, int]:
    with closing(sqlite3.connect(path)) as other:
        items = other.execute("SELECT count(*) FROM store_item").fetchone()
        return items[0], other.execute("SELECT count(*) FROM store_vector").fetchone()[0]


def test_items_that_go_take_their_vectors_with_them(tmp_path: Path) -> None:
    path, times = tmp_path / "x.db", [0.0]
    index: Any = {"dims": 2, "embed": embed, "fields": ["list[*]"]}
    with SqliteStore(path, index=index) as store, clock.fixed(lambda: times[0]):
        store.put(NS, "a", {"list": ["x", "y", "z"]})
        store.put(NS, "b", {"list": ["x", "y"]}, ttl=1)
        assert counted(path) == (2, 5)
        store.put(NS, "a", {"list": ["x"]})
        assert counted(path) == (2, 3)
        times[0] = 61.0
        store.put(NS, "c", {})
        assert counted(path) == (2, 1)
        store.delete(NS, "a")
        assert counted(path) == (1, 0)


def test_a_vector_of_another_length_is_not_compared(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "x.db", index={"dims": 2, "embed": embed}) as store:
        store.put(NS, "old", {"n": 1})
    longer: Any = {"dims": 3, "embed": lambda texts: [[1.0, 2.0, 3.0] for _ in texts]}
    with SqliteStore(tmp_path / "x.db", index=longer) as store:
        store.put(NS, "new", {"n": 2})
        found = store.search(NS, query="n")
        assert [(item.key, item.score is None) for item in found] == [("new", False), ("old", True)]


class Explained:
    """Runs statements on a cursor, and collects what SQLite plans for each."""

    def __init__(self, cursor: Any) -> None:
        self.cursor = cursor
        self.plans: list[str] = []

    def execute(self, sql: str, values: Any = ()) -> Any:
        self.plans += [row[3] for row in self.cursor.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall()]
        return self.cursor.execute(sql, values)

    def executemany(self, sql: str, values: Any) -> Any:
        for row in values:
            self.execute(sql, row)


@pytest.mark.parametrize(
    ("op", "index"),
    [
        (GetOp(NS, "a"), "store_item_key"),
        (SearchOp(NS), "store_item_key (ns>? AND ns<?)"),
        (SearchOp(NS, query="x"), "store_vector_key"),
        (PutOp(NS, "a", {}), "store_item_expires"),
        (PutOp(NS, "a", None), "store_item_key"),
    ],
    ids=lambda found: type(found).__name__,
)
def test_nothing_is_scanned(op: Any, index: str) -> None:
    with SqliteStore(":memory:", index={"dims": 2, "embed": embed}) as store:
        store.batch([PutOp((name,), "a", {"n": name}) for name in ("a", "notes", "z")])
        batch = store._opened([op])
        batch.asked = {"x": array("f", (1.0, 0.0))}

        def explain(cursor: Any, _: None) -> str:
            explained: Any = Explained(cursor)
            rows.apply(explained, batch)
            return "; ".join(explained.plans)

        found = store._database.write(explain, None, durable=False)
        assert index in found
        assert "SCAN" not in found
