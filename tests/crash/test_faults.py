"""A store that fails, Ctrl-C and cancellation at every point of a run: the caller is told, and nothing is lost.

The same program goes on in the same process; then the thread must end as one that met no fault.

Guarantees: never-wedged, no-answer-left-behind, in-doubt-is-asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.crash.programs import order
from tests.crash.programs.world import World, enter
from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.engine import owner
from waitpoint.errors import StoreError
from waitpoint.testing.faults import Points, fail

Act = Callable[[str], None]

# A file takes minutes for what memory does in seconds.
in_memory = pytest.param("memory", marks=[pytest.mark.slow, pytest.mark.timeout(300)])
in_a_file = pytest.param("sqlite", marks=pytest.mark.proof)
every_point = pytest.mark.parametrize("kind", [in_memory, in_a_file], indirect=True)


def interrupt_from_keyboard(point: str) -> None:
    """Do what Ctrl-C does."""
    raise KeyboardInterrupt(point)


class Left(Exception):
    """The consumer of a stream left early."""


class Stage:
    """Makes worlds of one kind, and lets a run in each meet a fault."""

    def __init__(self, folder: Path, kind: str, is_async: bool) -> None:
        self.folder, self.kind, self.is_async = folder, kind, is_async
        self.opened: list[BaseCheckpointSaver] = []
        self.whole = self.play(())[0]

    def world(self, points: Points) -> World:
        """Make a fresh world."""
        folder = self.folder / str(len(self.opened))
        folder.mkdir()
        store = InMemorySaver() if self.kind == "memory" else SqliteSaver(folder / "threads.sqlite")
        self.opened.append(store)
        return enter(World(folder, points, store, is_ordered=False))

    def play(
        self, at: int | Sequence[int], act: Act = fail, graph: Callable[[Any], Any] = lambda graph: graph
    ) -> tuple[World, list[BaseException]]:
        """Run a thread to its end, whatever is thrown; return its world, and what reached the caller."""
        world = self.world(Points(at, act))
        first = at if isinstance(at, int) else next(iter(at), 0)
        durability = ("async", "sync", "exit")[first % 3]
        caught: list[BaseException] = []
        while True:
            try:
                world.ended = self.run(world, graph, durability)
                return world, caught
            except (StoreError, KeyboardInterrupt, asyncio.CancelledError, Left) as error:
                caught.append(error)
                assert len(caught) < 5, caught
                self.at_peace(world)

    def run(self, world: World, graph: Callable[[Any], Any], durability: str = "async") -> dict[str, Any]:
        """Run or go on, to the end or to a fault."""
        if self.is_async:
            return asyncio.run(world.to_the_end_async(graph(order.build_async(world.saver)), durability=durability))
        return world.to_the_end(graph(order.build(world.saver)), durability=durability)

    def at_peace(self, world: World) -> None:
        """Check that any process could go on: nobody is on record as running the thread."""
        for row in world.store.threads():
            assert (row.status != "running", row.owner) == (True, None), f"{row} after {world.points.passed[-1]!r}"

    def check(self, world: World) -> None:
        """Compare with the run that met no fault. Only what `rerun` allows may have happened twice."""
        whole, ended = self.whole.ended, world.ended
        assert ended["values"] == whole["values"]
        assert sorted(ended["answers"]) == sorted(whole["answers"])
        for effect, kind in order.STEPS.items():
            if effect in whole["counts"]:
                assert ended["counts"][effect] in ((1, 2) if kind == "rerun" else (1,)), effect
        assert set(ended["doubts"]) <= {e for e, kind in order.STEPS.items() if kind == "ask"}

    def meet(self, act: Act, numbers: list[int]) -> None:
        """Let a run meet a fault at each of these points; only the store's own may be hit by a full disk."""
        kind = StoreError if act is fail else KeyboardInterrupt
        for number in numbers:
            hit: list[str] = []

            def strike(point: str, hit: list[str] = hit) -> None:
                if act is not fail or "effect" not in point:
                    hit.append(point)
                    act(point)

            world, caught = self.play(number, strike)
            assert [type(error) for error in caught] == [kind] * len(hit), hit
            self.check(world)

    def sampled(self, count: int) -> list[int]:
        """Return some of the points of the whole run."""
        drawn = random.Random(f"{self.kind} {self.is_async}")
        return sorted(drawn.sample(range(1, len(self.whole.points.passed) + 1), count))


@pytest.fixture(scope="module", params=["memory", "sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=[False, True], ids=["invoke", "ainvoke"])
def stage(request: pytest.FixtureRequest, kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage(tmp_path_factory.mktemp("stage"), kind, request.param)
    yield stage
    for store in stage.opened:
        store.close()


@pytest.mark.parametrize("act", [fail, interrupt_from_keyboard], ids=["full-disk", "ctrl-c"])
def test_a_fault_reaches_the_caller_and_the_thread_goes_on_as_if_it_had_not_been(stage: Stage, act: Act) -> None:
    stage.meet(act, stage.sampled(7))


@every_point
@pytest.mark.parametrize("act", [fail, interrupt_from_keyboard], ids=["full-disk", "ctrl-c"])
def test_a_fault_at_every_point(stage: Stage, act: Act) -> None:
    stage.meet(act, list(range(1, len(stage.whole.points.passed) + 1)))


# --- cancellation -----------------------------------------------------------------------------------------------------


class Cancelling:
    """Cancels the task that runs a graph, when a point is reached from whatever thread."""

    now: Cancelling
    task: asyncio.Task[Any] | None = None

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        Cancelling.now = self

    async def ainvoke(self, *args: Any, **options: Any) -> Any:
        self.task = asyncio.create_task(self.graph.ainvoke(*args, **options))
        return await self.task

    async def aget_state(self, *args: Any) -> Any:
        return await self.graph.aget_state(*args)

    @property
    def name(self) -> str:
        return str(self.graph.name)


def cancel(point: str) -> None:
    """Cancel the run, if there is one."""
    task = Cancelling.now.task
    if task is not None:
        task.get_loop().call_soon_threadsafe(task.cancel)


def cancelled_at(stage: Stage, points: Sequence[Sequence[int]]) -> None:
    for at in points:
        world, caught = stage.play(at, cancel, Cancelling)
        assert {type(error) for error in caught} <= {asyncio.CancelledError}
        stage.check(world)


only_asyncio = pytest.mark.parametrize("stage", [True], ids=["ainvoke"], indirect=True)


@only_asyncio
def test_a_cancelled_run_goes_on_as_if_it_had_not_been(stage: Stage) -> None:
    cancelled_at(stage, [[n] for n in stage.sampled(6)] + [[n, n + 1, n + 2] for n in stage.sampled(3)])


@every_point
@only_asyncio
def test_cancelled_at_every_point_once_and_again_while_it_winds_down(stage: Stage) -> None:
    numbers = range(1, len(stage.whole.points.passed) + 1)
    cancelled_at(stage, [[n] for n in numbers] + [[n, n + 1, n + 2] for n in numbers])


# --- streams that are closed early ------------------------------------------------------------------------------------


class Leaving:
    """Reads a graph's streams, and leaves at a part."""

    def __init__(self, graph: Any, at: int, modes: Any) -> None:
        self.graph, self.at, self.modes, self.parts = graph, at, modes, 0
        self.name = graph.name
        self.get_state, self.aget_state = graph.get_state, graph.aget_state

    def invoke(self, *args: Any, **options: Any) -> None:
        parts = self.graph.stream(*args, stream_mode=self.modes, **options)
        with contextlib.closing(parts):
            for _ in parts:
                self._count()

    async def ainvoke(self, *args: Any, **options: Any) -> None:
        parts = self.graph.astream(*args, stream_mode=self.modes, **options)
        async with contextlib.aclosing(parts):
            async for _ in parts:
                self._count()

    def _count(self) -> None:
        self.parts += 1
        if self.parts == self.at:
            raise Left


MODES = ["values", "updates", "tasks", ["values", "updates", "custom"]]


def parts_of(stage: Stage, modes: Any) -> int:
    """Count the parts of all streams of a whole run."""
    made: list[Leaving] = []
    stage.play((), fail, lambda graph: made.append(Leaving(graph, -1, modes)) or made[-1])
    return made[0].parts


def left_at(stage: Stage, modes: Any, numbers: Sequence[int]) -> None:
    for number in numbers:
        made: list[Leaving] = []

        def leave(graph: Any, at: int = number, made: list[Leaving] = made) -> Leaving:
            made.append(Leaving(graph, at if not made else -1, modes))
            return made[-1]

        world, caught = stage.play((), fail, leave)
        assert [type(error) for error in caught] == [Left]
        stage.check(world)
        done = [e for e in (*order.STEPS, *order.PLAIN) if e in stage.whole.ended["counts"]]
        assert stage.is_async or [e for e in done if world.ended["counts"][e] != 1] == []


@pytest.mark.parametrize("modes", MODES, ids=str)
def test_a_stream_closed_early_leaves_a_thread_that_goes_on(stage: Stage, modes: Any) -> None:
    count = parts_of(stage, modes)
    left_at(stage, modes, sorted(random.Random(f"{modes}").sample(range(1, count + 1), 3)))


@every_point
@pytest.mark.parametrize("modes", MODES, ids=str)
def test_a_stream_closed_at_every_part(stage: Stage, modes: Any) -> None:
    left_at(stage, modes, range(1, parts_of(stage, modes) + 1))


# --- a store that fails for a while -----------------------------------------------------------------------------------


def test_a_thread_that_could_not_be_given_back_is_when_the_store_works_again(stage: Stage) -> None:
    first = len(stage.whole.points.passed) // 2
    for number in range(first, first + 4):
        world = stage.world(Points(range(number, 10_000), fail))
        with pytest.raises(StoreError, match="disk is full"):
            stage.run(world, lambda graph: graph)
        owner.give_back_unreturned()
        assert {row.status for row in world.store.threads()} & {"running"} or world.points.passed[-1].startswith("read")
        world.points.at = ()
        if number % 2:  # by the next beat; or this process does not wait for that, knowing that nobody is at work
            owner.give_back_unreturned()
            stage.at_peace(world)
        world.ended = stage.run(world, lambda graph: graph)
        assert world.ended["values"] == stage.whole.ended["values"]
