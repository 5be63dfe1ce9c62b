"""What the tests of behaviours share: each store, opened again at will, and the four ways to call a graph."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from waitpoint.cache.base import BaseCache
from waitpoint.cache.memory import InMemoryCache
from waitpoint.cache.sqlite import SqliteCache
from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.checkpoint.sqlite import SqliteSaver

Call = Callable[..., Any]
Consumed = Callable[..., Any]


class Store:
    """A store that outlives its savers; the one in memory cannot be reopened, so it stays."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.savers: list[BaseCheckpointSaver] = []
        self.saver = self.again()

    def again(self) -> BaseCheckpointSaver:
        """Return another saver on the same rows, as another process would open it."""
        if self.path is not None:
            self.savers.append(SqliteSaver(self.path))
        elif not self.savers:
            self.savers.append(InMemorySaver())
        return self.savers[-1]


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "threads.db" if request.param == "sqlite" else None)
    yield store
    for saver in store.savers:
        saver.close()


@pytest.fixture
def saver(store: Store) -> BaseCheckpointSaver:
    return store.saver


@pytest.fixture(params=["memory", "sqlite"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseCache[Any]]:
    if request.param == "memory":
        yield InMemoryCache()
    else:
        with SqliteCache[Any](tmp_path / "cache.db") as cache:
            yield cache


def _invoke(graph: Any, given: Any, config: Any = None, **options: Any) -> Any:
    return graph.invoke(given, config, **options)


def _ainvoke(graph: Any, given: Any, config: Any = None, **options: Any) -> Any:
    return asyncio.run(graph.ainvoke(given, config, **options))


@pytest.fixture(params=["invoke", "ainvoke"])
def call(request: pytest.FixtureRequest) -> Call:
    """Call a graph to its next rest, blocking or under asyncio."""
    return _invoke if request.param == "invoke" else _ainvoke


def _stream(graph: Any, given: Any, config: Any = None, **options: Any) -> list[Any]:
    return list(graph.stream(given, config, **options))


def _astream(graph: Any, given: Any, config: Any = None, **options: Any) -> list[Any]:
    async def collected() -> list[Any]:
        return [part async for part in graph.astream(given, config, **options)]

    return asyncio.run(collected())


@pytest.fixture(params=["stream", "astream"])
def streamed(request: pytest.FixtureRequest) -> Call:
    """Return all parts of a run, streamed blocking or under asyncio."""
    return _stream if request.param == "stream" else _astream


def _blocking(graph: Any, what: str, given: Any, config: Any = None, **options: Any) -> Any:
    run = graph.stream_events(given, config, version="v3", **options)
    if what == "events":
        return list(run)
    if what == "texts":
        return [list(message.text) for message in run.messages]
    found = getattr(run, what)
    return found if what in ("output", "interrupted", "interrupts") else list(found)


def _asynchronous(graph: Any, what: str, given: Any, config: Any = None, **options: Any) -> Any:
    async def consumed() -> Any:
        run = await graph.astream_events(given, config, version="v3", **options)
        if what == "events":
            return [event async for event in run]
        if what == "texts":
            return [[token async for token in message.text] async for message in run.messages]
        found = getattr(run, what)
        return await found() if what in ("output", "interrupted", "interrupts") else [item async for item in found]

    return asyncio.run(consumed())


@pytest.fixture(params=["stream_events", "astream_events"])
def consumed(request: pytest.FixtureRequest) -> Consumed:
    """Return what one way of consuming a run gives, blocking or under asyncio."""
    return _blocking if request.param == "stream_events" else _asynchronous
