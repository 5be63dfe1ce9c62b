"""Functions: an entrypoint that calls tasks one after another, and one that starts many and collects them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from time import perf_counter
from typing import Any

from benchmarks.measure import Row, Work, compare, main
from benchmarks.sides import STORES, Side, config

TASKS = 50
RUNS = 5


def sequence(side: Side, saver: Any) -> Work:
    """Call a task many times, each result before the next call; return the seconds for each."""
    api = side.module("func")

    @api.task  # type: ignore[untyped-decorator]
    def add_one(x: int) -> int:
        return x + 1

    @api.entrypoint(checkpointer=saver)  # type: ignore[untyped-decorator]
    def climb(x: int) -> int:
        for _ in range(TASKS):
            x = add_one(x).result()
        return x

    return timed(climb, 0, TASKS)


def side_by_side(side: Side, saver: Any) -> Work:
    """Start many tasks, then collect them; return the seconds for each."""
    api = side.module("func")

    @api.task  # type: ignore[untyped-decorator]
    def double(x: int) -> int:
        return 2 * x

    @api.entrypoint(checkpointer=saver)  # type: ignore[untyped-decorator]
    def doubled(many: int) -> int:
        return sum(future.result() for future in [double(n) for n in range(many)])

    return timed(doubled, TASKS, TASKS * (TASKS - 1))


def timed(function: Any, given: int, result: int) -> Work:
    """Return the work that calls an entrypoint on some new threads."""
    numbers = count()

    def some_runs() -> float:
        start = perf_counter()
        ends = [function.invoke(given, config(next(numbers))) for _ in range(RUNS)]
        took = perf_counter() - start
        assert ends == [result] * RUNS
        return took / (RUNS * TASKS)

    return some_runs


def measure(quick: bool) -> Iterator[Row]:
    """Measure on each store."""
    for store in STORES:
        for case, make in (("a task after another", sequence), (f"a task of {TASKS} side by side", side_by_side)):
            yield compare(case, store, make, times=3 if quick else 10, at_least=None)


if __name__ == "__main__":
    main({"functional_tasks": measure})
