"""Every saver keeps every promise of the port."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.testing.conformance import SaverConformance


class TestMemory(SaverConformance):
    @pytest.fixture
    def saver(self) -> Iterator[BaseCheckpointSaver]:
        with InMemorySaver() as saver:
            yield saver


class TestSqliteFile(SaverConformance):
    @pytest.fixture
    def saver(self, tmp_path: Path) -> Iterator[BaseCheckpointSaver]:
        with SqliteSaver(tmp_path / "threads.db") as saver:
            yield saver


class TestSqliteInMemory(SaverConformance):
    @pytest.fixture
    def saver(self) -> Iterator[BaseCheckpointSaver]:
        with SqliteSaver(":memory:") as saver:
            yield saver
