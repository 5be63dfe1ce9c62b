"""Measure both sides in turn, A B A B, in one process, so that a busy machine is busy for both; medians are compared.

A turn does enough rounds that it matters little how cold the other side left the processor's caches.
"""

from __future__ import annotations

import argparse
import gc
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.sides import OURS, PEER, Side

Work = Callable[[], float]  # does the work once and returns how many seconds the measured part of it took


@dataclass(frozen=True)
class Row:
    """One line of the table.

    With `at_least` the peer's time over ours is compared with the target, with `at_most` our own figure.
    """

    case: str
    store: str
    ours: float
    peer: float
    in_seconds: bool = True
    at_least: float | None = None
    at_most: float | None = None

    @property
    def ratio(self) -> float:
        """How many times ours the peer's figure is."""
        return self.peer / self.ours

    def cells(self) -> tuple[str, ...]:
        """Return the row as texts."""
        shown = _time if self.in_seconds else _number
        target, good = "-", None
        if self.at_least is not None:
            target, good = f"{self.at_least:g}x", self.ratio >= self.at_least
        elif self.at_most is not None:
            target, good = f"ours at most {self.at_most:g}", self.ours <= self.at_most
        verdict = "-" if good is None else "ok" if good else "miss"
        return self.case, self.store, shown(self.ours), shown(self.peer), f"{self.ratio:.1f}x", target, verdict


HEADINGS = ("case", "store", "Waitpoint", "LangGraph", "LangGraph / Waitpoint", "target", "")


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds >= 0.01 else f"{seconds * 1e6:.0f} us"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def clear_away() -> None:
    """Collect garbage, and spare later collections what is alive: one side does not pay for what the other keeps."""
    gc.collect()
    gc.freeze()


def in_turn(works: Sequence[Work], times: int, warm: int = 1) -> list[float]:
    """Do each work in turn, `times` times after `warm` unmeasured ones; return the median of each, in seconds."""
    found: list[list[float]] = [[] for _ in works]
    for n in range(-warm, times):
        for work, seconds in zip(works, found, strict=True):
            clear_away()
            took = work()
            if n >= 0:
                seconds.append(took)
    return [statistics.median(seconds) for seconds in found]


def compare(
    case: str, store: str, make: Callable[[Side, Any], Work], *, times: int, at_least: float | None, warm: int = 1
) -> Row:
    """Measure the work that `make` builds on each side's saver."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        works = [make(side, stack.enter_context(side.saver(store, folder))) for side in (OURS, PEER)]
        ours, peer = in_turn(works, times, warm)
    return Row(case, store, ours, peer, at_least=at_least)


def table(rows: Iterable[Row]) -> str:
    """Return a table in Markdown."""
    lines = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    drawn = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
             for line in lines]  # fmt: skip
    drawn.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(drawn)


def durable_commit() -> float:
    """Return the seconds that SQLite takes to commit one row and wait for the disk: the floor of what is durable."""
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "floor.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE row (data BLOB)")

        def commit() -> float:
            start = perf_counter()
            connection.execute("INSERT INTO row VALUES (zeroblob(300))")
            return perf_counter() - start

        took = statistics.median(commit() for _ in range(100))
        connection.close()
    return took


Case = Callable[[bool], Iterable[Row]]


def main(cases: dict[str, Case]) -> None:
    """Measure the cases that the command line names and print their table."""
    parser = argparse.ArgumentParser(description="Measure Waitpoint beside LangGraph.")
    parser.add_argument("cases", nargs="*", help=f"which cases ({', '.join(cases)}); all if none is named")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and shorter threads: a first look")
    asked = parser.parse_args()
    if unknown := [name for name in asked.cases if name not in cases]:
        parser.error(f"unknown case {unknown[0]!r}; the cases are {', '.join(cases)}")
    rows: list[Row] = []
    for name in asked.cases or cases:
        print(f"measuring {name}", file=sys.stderr, flush=True)
        rows += cases[name](asked.quick)
    print(table(rows))
    print(f"\nA durable commit of one row takes SQLite {_time(durable_commit())} on this disk.")
