"""Every store keeps every promise of the port."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.store.base import BaseStore
from waitpoint.store.memory import InMemoryStore
from waitpoint.store.sqlite import SqliteStore
from waitpoint.testing.conformance import StoreConformance

NewStore = Callable[..., BaseStore]


class TestMemory(StoreConformance):
    @pytest.fixture
    def new_store(self) -> NewStore:
        return InMemoryStore


class TestSqliteFile(StoreConformance):
    @pytest.fixture
    def new_store(self, tmp_path: Path) -> Iterator[NewStore]:
        stores: list[SqliteStore] = []

        def new_store(**options: Any) -> BaseStore:
            stores.append(SqliteStore(tmp_path / f"{len(stores)}.db", **options))
            return stores[-1]

        yield new_store
        for store in stores:
            store.close()


class TestSqliteInMemory(StoreConformance):
    @pytest.fixture
    def new_store(self) -> NewStore:
        return lambda **options: SqliteStore(":memory:", **options)


class TestSqliteBesideThreads(StoreConformance):
    @pytest.fixture
    def new_store(self, tmp_path: Path) -> Iterator[NewStore]:
        numbers, opened = count(), []

        def new_store(**options: Any) -> BaseStore:
            path = tmp_path / f"{next(numbers)}.db"
            saver = SqliteSaver(path)
            saver.setup()
            opened.extend((saver, SqliteStore(path, **options)))
            return opened[-1]

        yield new_store
        for one in opened:
            one.close()
