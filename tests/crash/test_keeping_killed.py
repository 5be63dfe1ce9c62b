"""Killed while it prunes, copies or takes back a thread: each transition is there or is not, and the thread goes on.

Guarantees: never-wedged, finished-is-not-rerun.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.conftest import Server
from tests.crash.programs.keeping import STEPS, graph_on
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.types import Command

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t"}}


@pytest.fixture(scope="module")
def keeper() -> Iterator[Server]:
    running = Server("tests.crash.programs.keeping")
    yield running
    running.close()


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a thread that was at its end, and whose second run waits."""
    folder = tmp_path_factory.mktemp("waiting")
    with SqliteSaver(folder / "threads.sqlite") as saver:
        graph = graph_on(saver)
        graph.invoke({"log": []}, {**CONFIG, "metadata": {"run_id": "first"}})
        graph.invoke(Command(resume="yes"), CONFIG)
        graph.invoke({"log": ["again"]}, {**CONFIG, "metadata": {"run_id": "second"}})
        assert len(saver.history(saver.threads()[0].key)) > STEPS
    return folder


def copy_of(waiting: Path, folder: Path) -> Path:
    shutil.copytree(waiting, folder)
    return folder


def test_a_pruning_that_was_killed_leaves_a_thread_that_goes_on_and_can_be_pruned(
    keeper: Server, waiting: Path, tmp_path: Path
) -> None:
    points = keeper.run(copy_of(waiting, tmp_path / "whole"), "prune", "")["points"]
    assert len(points) > 8
    left = []
    for number in range(1, len(points) + 1):
        folder = copy_of(waiting, tmp_path / str(number))
        dead = keeper.run(folder, "prune", "", (number,))
        assert dead["signal"] == signal.SIGKILL
        assert dead["points"] == points[:number]
        with SqliteSaver(folder / "threads.sqlite") as saver:
            (row,) = saver.threads()
            whole = saver.whole(row.key)
            assert whole is not None
            left.append(len(whole.checkpoints) + len(whole.items))
            graph = graph_on(saver)
            assert all(len(s.values["page"]) > 0 for s in graph.get_state_history(CONFIG) if "page" in s.values)
            if number % 2:
                saver.prune(["t"])
                assert len(saver.history(row.key)) == 1
            assert len(graph.invoke(Command(resume="yes"), CONFIG)["log"]) == STEPS + 4
    assert left == sorted(left, reverse=True)
    assert len(set(left)) == len(points) // 2 + 1  # each transition took its part, wholly


def test_a_copying_that_was_killed_made_a_whole_copy_or_none(keeper: Server, waiting: Path, tmp_path: Path) -> None:
    points = keeper.run(copy_of(waiting, tmp_path / "whole"), "copy", "")["points"]
    assert len(points) == 2
    for number, copies in ((1, 0), (2, 1)):
        folder = copy_of(waiting, tmp_path / str(number))
        assert keeper.run(folder, "copy", "", (number,))["signal"] == signal.SIGKILL
        with SqliteSaver(folder / "threads.sqlite") as saver:
            assert len(saver.threads(thread_id="u")) == copies
            if not copies:
                saver.copy_thread("t", "u")
            config = {"configurable": {"thread_id": "u"}}
            assert len(graph_on(saver).invoke(Command(resume="yes"), config)["log"]) == STEPS + 4
            assert len(saver.pending()) == 1


def test_taking_a_run_back_is_done_in_one_and_what_is_left_of_its_values_goes_next(
    keeper: Server, waiting: Path, tmp_path: Path
) -> None:
    points = keeper.run(copy_of(waiting, tmp_path / "whole"), "take back", "")["points"]
    for number in range(1, len(points) + 1):
        folder = copy_of(waiting, tmp_path / str(number))
        assert keeper.run(folder, "take back", "", (number,))["signal"] == signal.SIGKILL
        with SqliteSaver(folder / "threads.sqlite") as saver:
            state = graph_on(saver).get_state(CONFIG)
            assert (state.next, len(saver.pending())) == ((("ask",), 1) if number == 1 else ((), 0))
            saver.delete_for_runs(["second"])
            assert len(graph_on(saver).get_state(CONFIG).values["log"]) == STEPS + 1
