"""Entrypoints killed with SIGKILL at any transition and around any effect of a task, then continued by another process.

Guarantees: finished-is-not-rerun, no-answer-left-behind, never-wedged.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.conftest import Server
from tests.crash.programs.functions import EFFECTS
from waitpoint.testing.witness import Witness

RESULT = [
    "did first", "yes to between?", "did second", "did left", "did right", "did inner", "yes to inner?",
    "did after inner", "did last",
]  # fmt: skip


@pytest.fixture(scope="module")
def functions() -> Iterator[Server]:
    running = Server("tests.crash.programs.functions")
    yield running
    running.close()


@pytest.fixture(params=["sync", "async"])
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def whole(functions: Server, folder: Path, program: str) -> list[str]:
    """Run it to its end, and return the points that it passed."""
    reply = functions.run(folder, program, "async")
    assert reply["result"]["values"] == RESULT
    assert reply["result"]["counts"] == dict.fromkeys(EFFECTS, 1)
    points: list[str] = reply["points"]
    return points


def killed(functions: Server, folder: Path, program: str, number: int) -> tuple[list[str], dict[str, Any]]:
    """Kill a run at a point, and let another process go on; return what was done and on record, and how it ended."""
    dead = functions.run(folder, program, "async", (number,))
    assert dead["signal"] == signal.SIGKILL
    points: list[str] = dead["points"]
    assert len(points) == number
    done = {p.removeprefix("after effect ") for p in points if p.startswith("after effect ")}
    assert set(Witness(folder / "witness.txt").lines()) - done <= {"left", "right"}  # each in a thread of its own
    alive = functions.run(folder, program, "async")
    assert alive["signal"] == 0
    return points, alive["result"]


def check(points: list[str], result: dict[str, Any]) -> None:
    """What was on record is not done again; what was done and not on record is, once."""
    at = f"killed at {points[-1]!r}"
    assert result["values"] == RESULT, at
    assert sorted(a[1] for a in result["answers"] if a[2] == "answered") == ["between?", "inner?"], at
    for name in EFFECTS:
        assert result["counts"][name] == 1 or (result["counts"][name] == 2 and may_repeat(points, name)), (
            f"{name}, {at}"
        )
    assert result["doubts"] == [], at


def may_repeat(points: list[str], name: str) -> bool:
    """Whether an effect had happened and was not on record; of two side by side either may be recorded first."""
    if f"after effect {name}" not in points:
        return name in ("left", "right")
    later = points[points.index(f"after effect {name}") :]
    recorded = sum(1 for p in later if p.startswith("after commit") and "step done" in p)
    return recorded < (2 if name in ("left", "right") else 1)


def kill_at(functions: Server, folder: Path, program: str, numbers: list[int]) -> None:
    for number in numbers:
        check(*killed(functions, folder / str(number), program, number))
        shutil.rmtree(folder / str(number))


def test_killed_between_two_tasks_the_first_is_not_run_again(functions: Server, program: str, tmp_path: Path) -> None:
    points = whole(functions, tmp_path / "whole", program)
    for later in ("second", "after inner", "last"):
        number = points.index(f"before effect {later}") + 1
        stopped, result = killed(functions, tmp_path / later.replace(" ", "-"), program, number)
        assert stopped[-1] == f"before effect {later}"
        assert result["values"] == RESULT
        assert result["counts"] == dict.fromkeys(EFFECTS, 1)


@pytest.mark.timeout(120)
def test_killed_anywhere_it_ends_the_same(functions: Server, program: str, tmp_path: Path) -> None:
    count = len(whole(functions, tmp_path / "whole", program))
    kill_at(functions, tmp_path, program, list(range(1, count, count // 6)))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_at_every_point_it_ends_the_same(functions: Server, program: str, tmp_path: Path) -> None:
    count = len(whole(functions, tmp_path / "whole", program))
    kill_at(functions, tmp_path, program, list(range(1, count)))
