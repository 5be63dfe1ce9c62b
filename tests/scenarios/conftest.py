"""What the scenarios run on: each store, opened again at will, and both ways to call a graph."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.gated import Effects
from tests.scenarios.world import Shelf
from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.testing.witness import Witness

Call = Callable[..., Any]


@pytest.fixture(params=["memory", "sqlite"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path / "threads.db" if request.param == "sqlite" else None)
    yield shelf
    shelf.close()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Shelf]:
    """A SQLite file."""
    shelf = Shelf(tmp_path / "threads.db")
    yield shelf
    shelf.close()


@pytest.fixture
def saver(shelf: Shelf) -> BaseCheckpointSaver:
    return shelf.open()


def _invoke(graph: Any, given: Any, config: Any = None, **options: Any) -> Any:
    return graph.invoke(given, config, **options)


def _ainvoke(graph: Any, given: Any, config: Any = None, **options: Any) -> Any:
    return asyncio.run(graph.ainvoke(given, config, **options))


@pytest.fixture(params=[_invoke, _ainvoke], ids=["invoke", "ainvoke"])
def call(request: pytest.FixtureRequest) -> Call:
    """Call a graph to its next rest, blocking or under asyncio."""
    found: Call = request.param
    return found


@pytest.fixture(params=["batched", "per_call"])
def mode(request: pytest.FixtureRequest) -> Any:
    """The two ways in which an agent asks about tool calls."""
    return request.param


@pytest.fixture
def effects(tmp_path: Path) -> Effects:
    """Tools whose effects a witness counts."""
    return Effects(Witness(tmp_path / "witness.txt"))
