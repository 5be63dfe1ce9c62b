"""A saver of LangGraph equals the memory saver after any transitions in any order, made by several processes in turn."""

from __future__ import annotations

import threading
from pathlib import Path

import langgraph.checkpoint.memory
import langgraph.checkpoint.sqlite
import pytest
from hypothesis import settings
from hypothesis.stateful import rule

from tests.test_saver_model import Savers
from waitpoint.checkpoint.base import Commit, Move, Rest, ThreadChanged, ThreadKey, ThreadRow, Writes
from waitpoint.checkpoint.langgraph import LangGraphSaver

WRITERS, ROUNDS = 3, 25


class SaversOfLangGraph(Savers):
    """Does the same to the model and to one of several adapters, which take turns."""

    def __init__(self) -> None:
        super().__init__()
        self.saver.close()
        self.theirs = langgraph.checkpoint.memory.InMemorySaver()
        self.others = [LangGraphSaver(self.theirs), LangGraphSaver(self.theirs)]
        self.saver = LangGraphSaver(self.theirs)  # type: ignore[assignment]

    @rule()
    def reopen(self) -> None:
        self.saver = LangGraphSaver(self.theirs)  # type: ignore[assignment]

    @rule()
    def take_turns(self) -> None:
        self.others.append(self.saver)  # type: ignore[arg-type]
        self.saver = self.others.pop(0)  # type: ignore[assignment]


@pytest.mark.slow
@pytest.mark.timeout(300)
class TestSaversOfLangGraph(SaversOfLangGraph.TestCase):
    settings = settings(stateful_step_count=30)


def test_of_many_writers_that_claim_at_once_each_claim_has_one_winner(tmp_path: Path) -> None:
    """Each writer claims and gives back, again and again; what they did can only have happened one after the other."""
    key = ThreadKey("t", "g")
    path = str(tmp_path / "theirs.db")
    barrier = threading.Barrier(WRITERS)
    claimed: list[int] = []
    lost: list[int] = []

    def work(name: str) -> None:
        with langgraph.checkpoint.sqlite.SqliteSaver.from_conn_string(path) as theirs:
            saver = LangGraphSaver(theirs)
            barrier.wait()
            for _ in range(ROUNDS):
                now = saver.thread(key)
                fence = 1 if now is None else now.fence + 1
                try:
                    row = ThreadRow(key, "running", fence, 0, 0, None, name, 9.0, None, 1.0, 1.0)
                    saver.move(Move(key, now, row))
                    claimed.append(fence)
                    saver.commit(Commit(key, fence, Writes(), 2.0, rest=Rest("idle", 0)))
                except ThreadChanged:
                    lost.append(fence)

    with langgraph.checkpoint.sqlite.SqliteSaver.from_conn_string(path) as theirs:
        theirs.setup()
    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"[:WRITERS]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claimed) == list(range(1, len(claimed) + 1))  # no fence was given twice, and none is missing
    assert len(claimed) + len(lost) >= WRITERS * ROUNDS
