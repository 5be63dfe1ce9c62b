"""A store that fails, Ctrl-C and cancellation at any point of an entrypoint: the caller is told, and nothing is lost.

Guarantees: never-wedged, no-answer-left-behind, finished-is-not-rerun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.crash.programs import functions
from tests.crash.programs.world import World
from tests.crash.test_faults import Act, Stage, cancelled_at, interrupt_from_keyboard
from waitpoint.testing.faults import fail


class FunctionStage(Stage):
    """Lets runs of the entrypoint meet faults."""

    def run(self, world: World, graph: Callable[[Any], Any], durability: str = "async") -> dict[str, Any]:
        if self.is_async:
            made = graph(functions.build_async(world.saver))
            return asyncio.run(world.to_the_end_async(made, durability=durability))
        return world.to_the_end(graph(functions.build(world.saver)), durability=durability)

    def check(self, world: World) -> None:
        whole, ended = self.whole.ended, world.ended
        assert ended["values"] == whole["values"]
        assert sorted(ended["answers"]) == sorted(whole["answers"])
        assert all(ended["counts"][name] in (1, 2) for name in functions.EFFECTS), ended["counts"]
        assert sum(ended["counts"].values()) <= len(functions.EFFECTS) + 2  # two may be at work at once
        assert ended["doubts"] == []


@pytest.fixture(scope="module", params=["memory", "sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=[False, True], ids=["invoke", "ainvoke"])
def stage(request: pytest.FixtureRequest, kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = FunctionStage(tmp_path_factory.mktemp("stage"), kind, request.param)
    yield stage
    for store in stage.opened:
        store.close()


in_memory = pytest.param("memory", marks=[pytest.mark.slow, pytest.mark.timeout(300)])
every_point = pytest.mark.parametrize(
    "kind", [in_memory, pytest.param("sqlite", marks=pytest.mark.proof)], indirect=True
)
only_asyncio = pytest.mark.parametrize("stage", [True], ids=["ainvoke"], indirect=True)
faults = pytest.mark.parametrize("act", [fail, interrupt_from_keyboard], ids=["full-disk", "ctrl-c"])


@faults
def test_a_fault_reaches_the_caller_and_the_thread_goes_on_as_if_it_had_not_been(stage: Stage, act: Act) -> None:
    stage.meet(act, stage.sampled(6))


@every_point
@faults
def test_a_fault_at_every_point(stage: Stage, act: Act) -> None:
    stage.meet(act, list(range(1, len(stage.whole.points.passed) + 1)))


@only_asyncio
def test_a_cancelled_run_goes_on_as_if_it_had_not_been(stage: Stage) -> None:
    cancelled_at(stage, [[n] for n in stage.sampled(6)])


@every_point
@only_asyncio
def test_cancelled_at_every_point(stage: Stage) -> None:
    numbers = range(1, len(stage.whole.points.passed) + 1)
    cancelled_at(stage, [[n] for n in numbers] + [[n, n + 1, n + 2] for n in numbers])
