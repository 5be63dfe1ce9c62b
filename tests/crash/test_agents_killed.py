"""An agent killed with SIGKILL at each line of the crash table, then continued by another process.

Guarantees: gate-before-effect, in-doubt-is-asked, finished-is-not-rerun, no-answer-left-behind, never-wedged,
history-valid.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.conftest import Server
from waitpoint.testing.witness import Witness

modes = pytest.mark.parametrize("mode", ["batched", "per_call"])
ways = pytest.mark.parametrize("how", ["blocking", "asyncio"])

# A line of the table: the point at which the process dies, the verdicts of the whole thread, whether doubt remains.
TABLE: dict[str, tuple[str, int, bool]] = {
    "a verdict, before the question": ("before commit (", 2, False),
    "the question": ("after commit (", 1, False),
    "an answer, before the claim": ("after settle 1", 1, False),
    "the claim, before executing": ("before commit (step executing", 1, False),
    "executing, before the effect": ("before effect", 1, True),
    "the effect": ("after effect", 1, True),
    "the effect, before its record": ("before record done", 1, True),
    "the outcome, before the step's commit": ("after record done", 1, False),
    "the outcome, at the step's commit": ("before commit (tools done", 1, False),
}


class Paying:
    """A server of paying agents, with the points that the whole run of each passes."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.points: dict[str, list[str]] = {}

    def run(self, program: str, at: int = 0) -> dict[str, Any]:
        """Run the program, killed at a point, in the folder of this test."""
        return self.server.run(self.folder, program, "sync", (at,) if at else ())

    def number(self, program: str, start: str) -> int:
        """Return the number of the first point whose name starts so; of a question's commit, if it is about one."""
        asking = "asked by" if start in ("before commit (", "after commit (") else ""
        points = self.whole(program)["points"]
        return next(n for n, point in enumerate(points, 1) if point.startswith(start) and asking in point)

    def whole(self, program: str) -> dict[str, Any]:
        """Run the program in a folder of its own, where nobody kills it."""
        folder = self.folder.with_name("whole")
        return self.server.run(folder / program.replace(" ", "-"), program, "sync")

    def killed(self, program: str, start: str) -> tuple[list[str], dict[str, Any]]:
        """Kill a run at a point, show that it got exactly that far, and let another process take it to its end.

        Returns the effects by the time of the kill, and how the thread ended.
        """
        number = self.number(program, start)
        dead = self.run(program, number)
        assert dead["signal"] == signal.SIGKILL
        assert len(dead["points"]) == number
        effects = Witness(self.folder / "witness.txt").lines()
        assert len(effects) == dead["points"].count("after effect")
        alive = self.run(program)
        assert alive["signal"] == 0
        result: dict[str, Any] = alive["result"]
        return effects, result


@pytest.fixture(scope="module")
def server_of_agents() -> Iterator[Server]:
    running = Server("tests.crash.programs.paying")
    yield running
    running.close()


@pytest.fixture
def paying(server_of_agents: Server, tmp_path: Path) -> Paying:
    (tmp_path / "whole").mkdir()
    return Paying(server_of_agents, tmp_path / "run")


@modes
@pytest.mark.parametrize("line", TABLE)
def test_after_a_kill_the_next_run_does_what_the_table_says(line: str, mode: str, paying: Paying) -> None:
    start, verdicts, in_doubt = TABLE[line]
    person = "apart" if line == "an answer, before the claim" else "inline"
    before, ended = paying.killed(f"{mode} ask not_happened {person} blocking", start)
    assert ended["verdicts"] == verdicts
    assert ended["asked"] == 1
    assert ended["told"] == [["success", "paid ana"]]
    assert ended["last"] == "done"
    assert len(ended["doubts"]) == in_doubt
    assert len(ended["effects"]) == len(before) + 1 if in_doubt else 1  # "not happened" was not always true


@modes
@ways
def test_the_claim_with_an_answer_is_no_execution(how: str, mode: str, paying: Paying) -> None:
    _, ended = paying.killed(f"{mode} ask stop inline {how}", "after settle 1 and claim")
    assert len(ended["effects"]) == 1
    assert ended["doubts"] == []


DOUBTS = {
    # what is said of it: effects that it adds, what the model is told
    "happened": (0, "it was paid by hand"),
    "not_happened": (1, "paid ana"),
    "run_again": (1, "paid ana"),
    "stop": (1, "paid ana"),  # the run ends there; then somebody thinks again, and says that it did not happen
}


@ways
@modes
@pytest.mark.parametrize("point", ["before effect", "after effect"])
@pytest.mark.parametrize("doubt", DOUBTS)
def test_a_call_in_doubt_is_asked_about_and_the_answer_is_obeyed(
    doubt: str, point: str, mode: str, how: str, paying: Paying
) -> None:
    more, told = DOUBTS[doubt]
    before, ended = paying.killed(f"{mode} ask {doubt} inline {how}", point)
    (asked,) = ended["doubts"]
    assert (asked["kind"], asked["name"], asked["args"]) == ("tool", "pay", {"to": "ana"})
    assert len(ended["effects"]) == len(before) + more
    assert {line.split()[1] for line in ended["effects"]} <= {asked["idempotency_key"]}
    assert ended["told"] == [["success", told]]
    assert ended["stopped"] == (doubt == "stop")


@modes
@pytest.mark.parametrize("point", ["before effect", "after effect"])
def test_an_idempotent_call_runs_again_under_its_key_and_nobody_is_asked(point: str, mode: str, paying: Paying) -> None:
    before, ended = paying.killed(f"{mode} idempotent stop inline blocking", point)
    assert ended["doubts"] == []
    assert len(ended["effects"]) == len(before) + 1
    assert len(set(ended["effects"])) == 1
    assert ended["told"] == [["success", "paid ana"]]


@modes
@pytest.mark.parametrize("point", ["before effect", "after effect"])
def test_a_probe_finds_out_whether_a_call_happened(point: str, mode: str, paying: Paying) -> None:
    before, ended = paying.killed(f"{mode} probe stop inline blocking", point)
    assert ended["doubts"] == []
    assert len(ended["effects"]) == 1
    assert ended["told"] == [["success", "found that ana is paid" if before else "paid ana"]]


def test_a_probe_that_does_not_know_leaves_it_to_a_person(paying: Paying) -> None:
    before, ended = paying.killed("per_call unsure happened inline blocking", "after effect")
    assert len(ended["doubts"]) == 1
    assert ended["effects"] == before
    assert ended["told"] == [["success", "it was paid by hand"]]


@pytest.mark.parametrize("mode", ["nested_batched", "nested_per_call"])
@pytest.mark.parametrize("point", ["before effect", "after effect", "after record done"])
def test_a_subagents_call_in_doubt_is_asked_about_at_the_top(point: str, mode: str, paying: Paying) -> None:
    _, ended = paying.killed(f"{mode} ask honest inline blocking", point)
    assert [each["name"] for each in ended["doubts"]] == ([] if point == "after record done" else ["pay"])
    assert len(ended["effects"]) == 1
    assert ended["asked"] == 1
    assert ended["told"] == [["success", "done"]]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["nested_batched", "nested_per_call"])
def test_killed_at_every_point_a_subagent_pays_once(mode: str, paying: Paying, tmp_path: Path) -> None:
    program = f"{mode} ask honest inline blocking"
    points = paying.whole(program)["points"]
    for number, point in enumerate(points, 1):
        paying.folder = tmp_path / str(number)
        assert paying.run(program, number)["signal"] == signal.SIGKILL
        ended = paying.run(program)["result"]
        assert len(ended["effects"]) == 1, point
        assert ended["told"] == [["success", "done"]], point


@pytest.mark.slow
@pytest.mark.timeout(300)
@modes
@ways
@pytest.mark.parametrize("safety", ["ask", "idempotent", "probe"])
def test_killed_at_every_point_it_pays_once_or_asks(
    safety: str, how: str, mode: str, paying: Paying, tmp_path: Path
) -> None:
    program = f"{mode} {safety} not_happened inline {how}"
    points = paying.whole(program)["points"]
    for number, point in enumerate(points, 1):
        paying.folder = tmp_path / str(number)
        assert paying.run(program, number)["signal"] == signal.SIGKILL
        before = len(Witness(paying.folder / "witness.txt").lines())
        ended = paying.run(program)["result"]
        is_doubtful = points.index("before effect") <= number - 1 < points.index("before effect") + 3
        is_doubtful = is_doubtful or point.startswith("after commit (step executing")
        assert len(ended["doubts"]) == (is_doubtful and safety == "ask"), point
        again = is_doubtful and before and safety != "probe"
        assert len(ended["effects"]) == (2 if again else 1), point
        assert len(set(ended["effects"])) == 1, point
        assert ended["told"][0][0] == "success", point
        assert ended["last"] == "done", point


def kill_often(paying: Paying, program: str, seed: int) -> None:
    """Kill each process that goes on, at a point drawn at random, until one is quicker than its killer."""
    drawn = random.Random(f"{program} {seed}")
    while "result" not in (reply := paying.run(program, drawn.randint(1, 24))):
        assert reply["signal"] == signal.SIGKILL
    assert len(reply["result"]["effects"]) == 1, seed
    assert reply["result"]["last"] == "done", seed


@modes
@ways
def test_killed_again_and_again_it_pays_exactly_once_if_people_tell_the_truth(
    how: str, mode: str, paying: Paying
) -> None:
    kill_often(paying, f"{mode} ask honest inline {how}", 0)


@pytest.mark.proof
@modes
def test_many_agents_killed_again_and_again(mode: str, paying: Paying, tmp_path: Path) -> None:
    for seed in range(1, 101):
        paying.folder = tmp_path / str(seed)
        kill_often(paying, f"{mode} ask honest inline blocking", seed)
