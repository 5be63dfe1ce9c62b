"""Savers of LangGraph keep threads of Waitpoint, with the promises of a saver."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import langgraph.checkpoint.memory
import langgraph.checkpoint.sqlite
import langgraph.checkpoint.sqlite.aio
import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver as TheirBase

from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.checkpoint.langgraph import LangGraphSaver

pytest.register_assert_rewrite("waitpoint.testing.conformance")

from waitpoint.testing.conformance import SaverConformance  # noqa: E402 - after assertions are made readable


class OnlyAsync(TheirBase[str]):
    """A saver that has only asynchronous methods, and is bound to no event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = langgraph.checkpoint.memory.InMemorySaver()

    async def aget_tuple(self, config: Any) -> Any:
        return self.inner.get_tuple(config)

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        return self.inner.put(config, checkpoint, metadata, new_versions)

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self.inner.put_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        self.inner.delete_thread(thread_id)


class WithoutWrites(langgraph.checkpoint.memory.InMemorySaver):
    """A saver that gives no pending writes back."""

    def get_tuple(self, config: Any) -> Any:
        found = super().get_tuple(config)
        return found and found._replace(pending_writes=None)


class LastWins(langgraph.checkpoint.memory.InMemorySaver):
    """A saver that lets a second write take the place of the first."""

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        where = config["configurable"]
        known = self.writes[where["thread_id"], where.get("checkpoint_ns", ""), where["checkpoint_id"]]
        for key in [key for key in known if key[0] == task_id]:
            del known[key]
        super().put_writes(config, writes, task_id, task_path)


class TestMemory(SaverConformance):
    @pytest.fixture
    def saver(self) -> BaseCheckpointSaver:
        return LangGraphSaver(langgraph.checkpoint.memory.InMemorySaver())


class TestSqlite(SaverConformance):
    @pytest.fixture
    def saver(self, tmp_path: Path) -> Iterator[BaseCheckpointSaver]:
        with langgraph.checkpoint.sqlite.SqliteSaver.from_conn_string(str(tmp_path / "theirs.db")) as theirs:
            yield LangGraphSaver(theirs)


class TestWithoutWrites(SaverConformance):
    @pytest.fixture
    def saver(self) -> BaseCheckpointSaver:
        return LangGraphSaver(WithoutWrites())


class TestLastWins(SaverConformance):
    @pytest.fixture
    def saver(self) -> BaseCheckpointSaver:
        return LangGraphSaver(LastWins())


class TestOnlyAsync(SaverConformance):
    @pytest.fixture
    def saver(self) -> Iterator[BaseCheckpointSaver]:
        saver = LangGraphSaver(OnlyAsync())
        yield saver
        saver.close()


class TestAsyncSqlite(SaverConformance):
    """Called from another thread than that of its event loop, as the asynchronous driver does."""

    @pytest.fixture
    def saver(self, tmp_path: Path) -> Iterator[BaseCheckpointSaver]:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        opened = langgraph.checkpoint.sqlite.aio.AsyncSqliteSaver.from_conn_string(str(tmp_path / "theirs.db"))

        def run(awaited: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(awaited, loop).result()

        yield LangGraphSaver(run(opened.__aenter__()))
        run(opened.__aexit__(None, None, None))
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
