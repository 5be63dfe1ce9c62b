"""Killed with SIGKILL at every transition and around every effect, then continued by another process.

Guarantees: in-doubt-is-asked, finished-is-not-rerun, no-answer-left-behind, never-wedged.
"""

from __future__ import annotations

import random
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.crash.conftest import Server
from tests.crash.programs.order import PLAIN, STEPS
from waitpoint.testing.witness import Witness

PROGRAMS = [(p, d) for p in ("sync", "async") for d in ("sync", "async", "exit")]


class Whole:
    """The run that nobody kills: its points, its end, and where in it the record of each effect begins and ends."""

    def __init__(self, server: Server, folder: Path, program: str, durability: str) -> None:
        reply = server.run(folder, program, durability)
        self.program, self.durability = program, durability
        self.points: list[str] = reply["points"]
        self.result: dict[str, Any] = reply["result"]

    def number(self, start: str, part: str = "", after: int = 0) -> int:
        """Return the number of the first point, from point `after` on, whose name starts so and has this part."""
        named = (n for n, p in enumerate(self.points, 1) if n >= after and p.startswith(start) and part in p)
        return next(named)

    def unrecorded(self, effect: str) -> range:
        """Return the points at which the effect has happened and no record says so."""
        happened = self.number(f"after effect {effect}")
        if effect in PLAIN:
            end = self.number("after commit", f"{PLAIN[effect]} done", happened)
        elif STEPS[effect] == "rerun":
            end = self.number("after commit", "step done", happened)
        else:
            end = self.number("after record done", after=happened)
        return range(happened, end)

    def doubtful(self, effect: str) -> range:
        """Return the points at which an effect of kind "ask" is on record as begun, and not as done."""
        begun = self.number(f"before effect {effect}")
        return range(begun - 1, self.unrecorded(effect).stop)


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda p: f"{p[0]}-durability-{p[1]}")
def whole(request: pytest.FixtureRequest, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    return Whole(server, tmp_path_factory.mktemp("whole") / "run", *request.param)


def kill_and_go_on(server: Server, folder: Path, whole: Whole, number: int) -> dict[str, Any]:
    """Kill a run at a point; show that it got exactly that far; then let another process take it to its end."""
    dead = server.run(folder, whole.program, whole.durability, (number,))
    assert dead["signal"] == signal.SIGKILL
    assert dead["points"] == whole.points[:number]
    lines = Witness(folder / "witness.txt").lines()
    assert lines == [p.removeprefix("after effect ") for p in dead["points"] if p.startswith("after effect ")]
    alive = server.run(folder, whole.program, whole.durability)
    assert alive["signal"] == 0
    result: dict[str, Any] = alive["result"]
    return result


def check(whole: Whole, number: int, result: dict[str, Any]) -> None:
    """Compare a run that was killed at a point with the one that was not."""
    at = f"killed at {number}, {whole.points[number - 1]!r}"
    assert result["values"] == whole.result["values"], at
    assert sorted(result["answers"]) == sorted(whole.result["answers"]), at
    for effect, kind in STEPS.items():
        if effect in whole.result["counts"]:
            repeats = kind == "rerun" and number in whole.unrecorded(effect)
            assert result["counts"][effect] == (2 if repeats else 1), f"{effect} when {at}"
            is_asked = kind == "ask" and number in whole.doubtful(effect)
            assert result["doubts"].count(effect) == (1 if is_asked else 0), f"{effect} when {at}"
    for effect in PLAIN if whole.durability != "exit" else ("left.plain",):
        if effect in whole.result["counts"]:
            assert result["counts"][effect] == (2 if number in whole.unrecorded(effect) else 1), f"{effect} when {at}"


def kill_at(server: Server, folder: Path, whole: Whole, numbers: list[int]) -> None:
    for number in numbers:
        check(whole, number, kill_and_go_on(server, folder / str(number), whole, number))
        shutil.rmtree(folder / str(number))


def test_a_run_that_nobody_kills_does_each_effect_once_and_asks_about_none(whole: Whole) -> None:
    counts = whole.result["counts"]
    assert {e: n for e, n in counts.items() if n != 1} == {"prepare.before": 3, "prepare.between": 2}
    assert whole.result["doubts"] == []
    assert len(whole.points) > 100


@pytest.mark.timeout(120)
def test_a_killed_run_goes_on_in_another_process_and_repeats_no_recorded_effect(
    server: Server, whole: Whole, tmp_path: Path
) -> None:
    drawn = random.Random(f"{whole.program} {whole.durability}")
    kill_at(server, tmp_path, whole, sorted(drawn.sample(range(1, len(whole.points) + 1), 5)))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("whole", [("sync", "async"), ("async", "async")], indirect=True, ids=["sync", "async"])
def test_killed_at_every_transition_and_around_every_effect(server: Server, whole: Whole, tmp_path: Path) -> None:
    kill_at(server, tmp_path, whole, list(range(1, len(whole.points) + 1)))


@pytest.mark.proof
@pytest.mark.parametrize("whole", [p for p in PROGRAMS if p[1] != "async"], indirect=True, ids="-".join)
def test_killed_at_every_point_with_the_other_durabilities(server: Server, whole: Whole, tmp_path: Path) -> None:
    kill_at(server, tmp_path, whole, list(range(1, len(whole.points) + 1)))


def kill_often(server: Server, folder: Path, whole: Whole, seed: int) -> None:
    """Kill each process that goes on, at a point drawn at random, until one is quicker than its killer."""
    drawn = random.Random(f"{whole.program} {whole.durability} {seed}")
    while "result" not in (reply := server.run(folder, whole.program, whole.durability, (drawn.randint(1, 60),))):
        assert reply["signal"] == signal.SIGKILL
    result = reply["result"]
    assert result["values"] == whole.result["values"], seed
    assert sorted(result["answers"]) == sorted(whole.result["answers"]), seed
    for effect, kind in STEPS.items():
        if effect in whole.result["counts"] and kind != "rerun":
            assert result["counts"][effect] == 1, f"{effect}, seed {seed}"
    shutil.rmtree(folder)


@pytest.mark.timeout(120)
def test_killed_again_and_again_it_still_ends_the_same_and_does_no_doubtful_effect_twice(
    server: Server, whole: Whole, tmp_path: Path
) -> None:
    kill_often(server, tmp_path / "run", whole, 0)


@pytest.mark.proof
def test_many_runs_killed_again_and_again(server: Server, whole: Whole, tmp_path: Path) -> None:
    for seed in range(1, 201):
        kill_often(server, tmp_path / str(seed), whole, seed)
