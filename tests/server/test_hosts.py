"""Hosts that stop and start, that share a file, and whose store is away for a while."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.server.graphs import asking
from tests.server.run_graphs import Gate, asking_beside, held
from waitpoint.checkpoint.base import PendingFilter
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.engine import answers
from waitpoint.errors import NotFoundError
from waitpoint.hosting.host import Host
from waitpoint.hosting.requests import RunRequest
from waitpoint.hosting.results import result_of
from waitpoint.ledger.base import LogEntry, RunRow
from waitpoint.ledger.sqlite import SqliteLedger
from waitpoint.records import Answer

MODES = ["values"]


@asynccontextmanager
async def started(path: Path, ledger: SqliteLedger | None = None, **graphs: Any) -> AsyncGenerator[Host]:
    """Run a host until the end of the block, and then stop it without patience."""
    host = Host(graphs, SqliteSaver(path), ledger or SqliteLedger(path))
    await host.start()
    try:
        yield host
    finally:
        await host.stop(patience=0)


async def begun(host: Host, graph: str, **asked: Any) -> RunRow:
    return await host.begin("t", await host.find_assistant(graph), RunRequest(modes=MODES, **asked))


async def values(host: Host, run: RunRow) -> Any:
    now = await host.wait_for(run)
    return result_of(now, host.graphs[run.graph], host.ledger, host.saver).document()


async def test_a_run_whose_host_stops_goes_on_at_the_next_start(tmp_path: Path) -> None:
    path, first, second = tmp_path / "x.db", Gate(), Gate()
    async with started(path, held=held(first)) as host:
        run = await begun(host, "held", input={"log": []})
        await first.reached.wait()
    second.opened.set()
    async with started(path, held=held(second)) as host:
        assert await values(host, run) == {"log": ["first", "second", "third"]}
        now = host.ledger.run(run.id)
        assert now is not None
        assert (now.attempt, now.status, first.passes) == (2, "success", 0)


async def test_an_update_is_not_laid_over_again_when_its_run_goes_on(tmp_path: Path) -> None:
    path, first, second = tmp_path / "x.db", Gate(), Gate()
    async with started(path, held=held(first)) as host:
        await host.wait_for(await begun(host, "held", input={"log": []}, interrupt_before=["second"]))
        run = await begun(host, "held", command={"update": {"log": ["extra"]}})
        await first.reached.wait()
    second.opened.set()
    async with started(path, held=held(second)) as host:
        found = await values(host, run)
        assert sorted(found["log"]) == ["extra", "first", "second", "third"]


async def test_a_host_stops_what_another_on_the_same_file_executes(tmp_path: Path) -> None:
    path, gate = tmp_path / "x.db", Gate()
    async with started(path, held=held(gate)) as one, started(path, held=held(Gate())) as other:
        run = await begun(one, "held", input={"log": []})
        await asyncio.wait([asyncio.ensure_future(gate.reached.wait()), asyncio.ensure_future(held_by(other))],
                           return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
        stopper = other if one.dispatcher.running else one
        ended = await stopper.cancel(run.id)
        assert ended.status == "interrupted"
        with pytest.raises(NotFoundError):
            await stopper.cancel(run.id)


async def held_by(host: Host) -> None:
    """Return once a host executes something."""
    async for _ in host.follow("t"):
        if host.dispatcher.running:
            return


class Away(SqliteLedger):
    """A ledger whose store is away when one of its operations is next called."""

    fails = ""

    def append(self, entries: Any) -> list[LogEntry]:
        self._may_fail("append")
        return super().append(entries)

    def claim_run(self, *args: Any) -> RunRow | None:
        self._may_fail("claim_run")
        return super().claim_run(*args)

    def end_run(self, *args: Any) -> bool:
        self._may_fail("end_run")
        return super().end_run(*args)

    def _may_fail(self, name: str) -> None:
        if self.fails == name:
            self.fails = ""
            raise sqlite3.OperationalError("the disk is away")


@pytest.mark.parametrize("name", ["append", "claim_run", "end_run"])
async def test_a_store_that_is_away_for_a_moment_loses_no_run_and_no_entry(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    path = tmp_path / "x.db"
    ledger = Away(path)
    async with started(path, ledger, asking=asking()) as host:
        ledger.fails = name
        run = await begun(host, "asking", input={"log": []})
        entries = [entry async for entry in host.follow("t", run_id=run.id) if entry is not None]
        assert [entry.kind for entry in (entries[0], entries[-1])] == ["metadata", "end"]
        assert [entry.kind for entry in entries].count("end") == 1
        assert (await values(host, run))["log"] == ["plan"]
    assert "the disk is away" in caplog.text


async def test_readers_leave_nothing_behind(tmp_path: Path) -> None:
    async with started(tmp_path / "x.db", asking=asking()) as host:
        run = await begun(host, "asking", input={"log": []})
        await asyncio.gather(*(host.wait_for(run) for _ in range(5)))
        assert not host.hub._readers
        assert not host.hub._waiting
        assert not host.hub._counts


@pytest.mark.parametrize("by_host", [True, False])
async def test_an_answer_that_comes_after_a_cancellation_sets_the_thread_going(tmp_path: Path, by_host: bool) -> None:
    gate = Gate()
    async with started(tmp_path / "x.db", beside=asking_beside(gate)) as host:
        run = await begun(host, "beside", input={"log": []})
        await gate.reached.wait()
        await host.cancel(run.id)
        seen = host.ledger.thread("t")
        assert seen is not None
        (row,) = host.saver.questions(PendingFilter("t"))
        assert (seen.status, row.status) == ("interrupted", "open")
        gate.opened.set()
        if by_host:
            await host.answer(row.id, Answer("yes", by="ana"))
        else:
            answers.answer(host.saver, row.id, "yes")
        async for entry in host.follow("t"):
            if entry is not None and entry.kind == "end" and entry.run_id != run.id:
                break
        state = host.graphs["beside"].get_state({"configurable": {"thread_id": "t"}})
        assert (sorted(state.values["log"]), state.next) == (["slow", "yes"], ())
