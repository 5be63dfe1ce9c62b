"""What the tests of the gate share: each store, both modes of asking, both ways to call an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.gated import Call, Effects
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.testing.witness import Witness

Reopened = Callable[[], Any]


@pytest.fixture(params=["memory", "sqlite"])
def reopened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reopened]:
    """Return a function that opens the store again, as a new process would; the one in memory stays."""
    opened: list[Any] = []

    def again() -> Any:
        if request.param == "sqlite" or not opened:
            opened.append(SqliteSaver(tmp_path / "gate.db") if request.param == "sqlite" else InMemorySaver())
        return opened[-1]

    yield again
    for saver in opened:
        saver.close()


@pytest.fixture
def stored(reopened: Reopened) -> Any:
    """A saver on each store."""
    return reopened()


@pytest.fixture(params=["batched", "per_call"])
def mode(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=["invoke", "ainvoke"])
def call(request: pytest.FixtureRequest) -> Call:
    """Call an agent on its thread to its next rest, blocking or under asyncio."""

    def blocking(agent: Any, given: Any, config: Any, **options: Any) -> Any:
        return agent.invoke(given, config, **options)

    def asynchronous(agent: Any, given: Any, config: Any, **options: Any) -> Any:
        return asyncio.run(agent.ainvoke(given, config, **options))

    return blocking if request.param == "invoke" else asynchronous


@pytest.fixture
def effects(tmp_path: Path) -> Effects:
    """Tools whose effects a witness counts."""
    return Effects(Witness(tmp_path / "witness.txt"))
