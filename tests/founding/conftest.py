"""The founding tests run on memory and on a real SQLite file, those of agents also blocking and under asyncio."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.founding import reviewed
from tests.founding.saving import Saver
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.checkpoint.sqlite import SqliteSaver


@pytest.fixture(params=["memory", "sqlite"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Saver]:
    made: Saver = InMemorySaver() if request.param == "memory" else SqliteSaver(str(tmp_path / "w.db"))
    yield made
    made.close()


@pytest.fixture(params=["invoke", "ainvoke"])
def call(request: pytest.FixtureRequest) -> reviewed.Call:
    """Call an agent to its next rest."""
    return reviewed.invoke if request.param == "invoke" else reviewed.ainvoke
