"""Import of the graph API: what `import waitpoint.graph` takes in a fresh process, with its bytecode at hand."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Row, Work, in_turn, main
from benchmarks.sides import OURS, PEER, Side

PROGRAM = """
from time import perf_counter
start = perf_counter()
import {name}.graph
print(perf_counter() - start)
"""


def work(side: Side, folder: Path) -> Work:
    """Import in a new process, which keeps its bytecode in `folder`."""
    surroundings = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    surroundings["PYTHONPYCACHEPREFIX"] = str(folder)

    def one_process() -> float:
        command = [sys.executable, "-c", PROGRAM.format(name=side.name)]
        done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=True)
        return float(done.stdout)

    return one_process


def measure(quick: bool) -> Iterator[Row]:
    """Measure in fresh processes; the first of each side only writes the bytecode."""
    with tempfile.TemporaryDirectory() as folder:
        works = [work(side, Path(folder)) for side in (OURS, PEER)]
        ours, peer = in_turn(works, 5 if quick else 25)
    yield Row("import of the graph API", "-", ours, peer, at_least=8)


if __name__ == "__main__":
    main({"import_time": measure})
