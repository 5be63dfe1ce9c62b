"""Eight at once: eight OS threads ask and answer on one saver, each on threads of its own."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from time import perf_counter
from typing import Any

from benchmarks.measure import Row, Work, compare, main
from benchmarks.pause_and_resume import ask_and_answer, asking_graph
from benchmarks.sides import STORES, Side

WORKERS = 8
ROUNDS = 5


def work(side: Side, saver: Any) -> Work:
    """Let all workers ask and answer some rounds; told is the time for each pause and resume."""
    graph, numbers = asking_graph(side, saver), count()

    def one_worker(first: int) -> None:
        for n in range(ROUNDS):
            ask_and_answer(side, graph, f"{first}-{n}")

    def all_workers() -> float:
        firsts = [next(numbers) for _ in range(WORKERS)]
        with ThreadPoolExecutor(WORKERS) as pool:
            start = perf_counter()
            list(pool.map(one_worker, firsts))
            return (perf_counter() - start) / (WORKERS * ROUNDS)

    return all_workers


def measure(quick: bool) -> Iterator[Row]:
    """Measure on each store."""
    for store in STORES:
        yield compare("8 threads at once, each pause and resume", store, work, times=5 if quick else 20, at_least=None)


if __name__ == "__main__":
    main({"eight_threads": measure})
