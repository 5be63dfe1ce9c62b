"""Two or three processes act on one thread at the same moment. The moment is made certain: each is held just before it
writes, having read the thread as the others did, until all are there.

Guarantees: decided-once, answers-atomic, no-answer-left-behind, finished-is-not-rerun.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.crash.checks import all_questions, unread_answers
from tests.crash.conftest import ROOT
from tests.crash.programs.raced import GRAPHS
from waitpoint import clock
from waitpoint.checkpoint.base import ThreadKey
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.testing.witness import Witness

NAMES = ("ana", "bo", "cy")


class Racer:
    """A process of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        command = [sys.executable, "-m", "tests.crash.programs.racer", f"{folder}/threads.sqlite", f"{folder}/witness"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)

    def start(self, **order: Any) -> None:
        """Give it something to do."""
        self._tell(json.dumps(order | {"by": self.name}))

    def go(self) -> None:
        """Let it through the gate."""
        self._tell("go")

    def heard(self) -> dict[str, Any]:
        """Wait for its next line."""
        assert self._process.stdout is not None
        said: dict[str, Any] = json.loads(self._process.stdout.readline())
        return said

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.communicate()

    def end(self) -> None:
        """End the process."""
        self._process.communicate()
        assert self._process.returncode == 0

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()


class Arena:
    """A file that three racers share with this process."""

    def __init__(self, folder: Path) -> None:
        self.store = SqliteSaver(folder / "threads.sqlite")
        self.store.setup()
        self.witness = Witness(folder / "witness")
        self.racers = [Racer(name, folder) for name in NAMES]
        self.graphs = {name: build(self.store, self.witness.append) for name, build in GRAPHS.items()}

    def asked(self, graph: str, thread: str) -> dict[str, str]:
        """Run a new thread to its questions; return their ids by node."""
        self.graphs[graph].invoke({"log": []}, {"configurable": {"thread_id": thread}})
        return {q.node: q.id for q in self.store.pending(thread_id=thread)}

    def settled(self, graph: str, thread: str) -> None:
        """Check that a finished thread left nothing behind."""
        assert unread_answers(self.store, ThreadKey(thread, graph)) == []
        (row,) = self.store.threads(thread_id=thread)
        assert (row.status, row.owner) == ("idle", None)
        assert self.store.pending(thread_id=thread) == []

    def at_once(
        self, racers: Sequence[Racer], orders: Sequence[dict[str, Any]], point: str = "before settle"
    ) -> list[Any]:
        """Let racers do these things, all held at a point until the last one is there; return how each ended."""
        for racer, order in zip(racers, orders, strict=True):
            racer.start(**order, hold=point)
        for racer in racers:
            assert racer.heard() == {"at": point}
        for racer in racers:
            racer.go()
        return [racer.heard() for racer in racers]


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    arena = Arena(tmp_path_factory.mktemp("arena"))
    yield arena
    for racer in arena.racers:
        racer.end()
    arena.store.close()


def one_of_them_wins(arena: Arena, racers: Sequence[Racer], rounds: int) -> None:
    names = [r.name for r in racers]
    for n in range(rounds):
        thread = f"same question, {len(racers)} processes, round {n}"
        (question,) = arena.asked("one", thread).values()
        resumes = [f"by {name}" if n % 2 else {question: f"by {name}"} for name in names]
        ends = arena.at_once(racers, [{"graph": "one", "thread": thread, "resume": r} for r in resumes])
        (winner,) = [i for i, end in enumerate(ends) if "done" in end]
        assert ends[winner] == {"done": {"log": [f"by {names[winner]}", "end"]}, "asked": []}
        (stored,) = all_questions(arena.store, thread)
        for end in ends[:winner] + ends[winner + 1 :]:
            assert end["refused"] == "AlreadyAnsweredError"
            assert (end["by"], end["at"]) == (names[winner], clock.iso(stored.settled_at or 0))
            assert end["text"].startswith(
                f"Unknown or already-consumed interrupt: {question} was answered by '{names[winner]}' at {end['at']}"
            )
        assert stored.by == names[winner]
        arena.settled("one", thread)
    counts = arena.witness.counts()
    for n in range(rounds):
        thread = f"same question, {len(racers)} processes, round {n}"
        assert (counts[f"{thread} after"], counts[f"{thread} end"]) == (1, 1)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_processes_answer_the_same_question_at_once_and_one_wins(arena: Arena) -> None:
    one_of_them_wins(arena, arena.racers[:2], 200)


def test_three_processes_answer_the_same_question_at_once_and_one_wins(arena: Arena) -> None:
    one_of_them_wins(arena, arena.racers, 30)


def all_are_heard(arena: Arena, racers: Sequence[Racer], rounds: int, point: str) -> None:
    """Each racer answers its own question. Held after they settled, all of them must return the end of the thread."""
    nodes = "abc"[: len(racers)]
    whole = {"done": {"log": ["a", "b", "c", "end"]}, "asked": []}
    for n in range(rounds):
        thread = f"own questions, {len(racers)} processes {point}, round {n}"
        asked = arena.asked("many", thread)
        if len(racers) == 2:
            arena.racers[2].start(graph="many", thread=thread, resume={asked["c"]: "c"})
            assert len(arena.racers[2].heard()["asked"]) == 2
        orders = [{"graph": "many", "thread": thread, "resume": {asked[node]: node}} for node in nodes]
        ends = arena.at_once(racers, orders, point)
        if point == "after settle":
            assert ends == [whole] * len(racers)
        else:  # one may have come to rest before another's answer was stored: then that one's question was still open
            assert whole in ends
            for node, end in zip(nodes, ends, strict=True):
                assert end == whole or (node in end["done"]["log"] and asked[node] not in end["asked"] != [])
        arena.settled("many", thread)
    counts = arena.witness.counts()
    for n in range(rounds):
        thread = f"own questions, {len(racers)} processes {point}, round {n}"
        done = [f"{thread} {node} {what}" for node in "abc" for what in ("before", "step", "after")]
        assert [counts[line] for line in [*done, f"{thread} end"]] == [1] * 10


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("point", "rounds"), [("before settle", 200), ("after settle", 50)])
def test_two_processes_answer_two_questions_of_one_thread_at_once_and_both_are_heard(
    arena: Arena, point: str, rounds: int
) -> None:
    all_are_heard(arena, arena.racers[:2], rounds, point)


@pytest.mark.parametrize("point", ["before settle", "after settle"])
def test_three_processes_answer_three_questions_of_one_thread_at_once_and_all_are_heard(
    arena: Arena, point: str
) -> None:
    all_are_heard(arena, arena.racers, 30, point)


def test_who_waits_for_a_run_that_is_killed_takes_it_over_and_acts_on_both_answers(arena: Arena) -> None:
    for n in range(5):
        thread = f"killed, round {n}"
        asked = arena.asked("many", thread)
        doomed, waiting = Racer("dora", Path(arena.witness.path).parent), arena.racers[0]
        doomed.start(graph="many", thread=thread, resume={asked["a"]: "a", asked["c"]: "c"}, hold="after settle")
        assert doomed.heard() == {"at": "after settle"}
        waiting.start(graph="many", thread=thread, resume={asked["b"]: "b"}, hold="after settle")
        assert waiting.heard() == {"at": "after settle"}
        (row,) = arena.store.threads(thread_id=thread)
        assert (row.status, row.answer_seq) == ("running", 2)
        waiting.go()
        doomed.kill()
        assert waiting.heard() == {"done": {"log": ["a", "b", "c", "end"]}, "asked": []}
        arena.settled("many", thread)
        assert {line: c for line, c in arena.witness.counts().items() if line.startswith(thread) and c > 1} == {}
