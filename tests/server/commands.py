"""`waitpoint serve` in a process of its own, in a folder with graphs, for tests that stop it and start it again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

WAITPOINT = str(Path(sys.executable).with_name("waitpoint"))

SETTINGS = """
[graphs]
asking = "flows:asking"
held = "flows:held"

[store]
url = "sqlite:///threads.db"
"""

FLOWS = '''
"""Graphs that ask, and that wait until a file is there."""

import asyncio
import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

from waitpoint.graph import START, StateGraph
from waitpoint.types import interrupt

HERE = Path(__file__).parent


class Log(TypedDict):
    log: Annotated[list[Any], operator.add]


def ask(state: Log) -> Log:
    return {"log": [interrupt("Go on?")]}


def plan(state: Log) -> Log:
    return {"log": ["plan"]}


async def work(state: Log) -> Log:
    (HERE / "reached").touch()
    if not (HERE / "go").exists():
        await asyncio.Event().wait()
    return {"log": ["work"]}


asking = StateGraph(Log).add_node(ask).add_edge(START, "ask").compile(name="asking")
held = StateGraph(Log).add_node(plan).add_node(work)
held = held.add_edge(START, "plan").add_edge("plan", "work").compile(name="held")
'''


class Serving:
    """A running `waitpoint serve`."""

    def __init__(self, folder: Path, *options: str) -> None:
        # Its own session, so that whatever it starts ends with it.
        self.log = folder / "server.log"
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [WAITPOINT, "serve", "--port", "0", "--json", *options],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self.told = self.read()
        self.url: str = self.told["url"]

    def read(self) -> dict[str, Any]:
        """Return the next document that it prints: its addresses, once it has started."""
        assert self.process.stdout is not None
        text = ""
        for line in self.process.stdout:
            text += line
            with contextlib.suppress(ValueError):
                found: dict[str, Any] = json.loads(text)
                return found
        raise AssertionError(self.log.read_text())

    @property
    def lines(self) -> list[dict[str, Any]]:
        """What it logged."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Tell it to stop; return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(20)

    def end(self) -> None:
        """Be sure that nothing is left of it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()


def prepared(folder: Path, settings: str = SETTINGS, flows: str = FLOWS) -> Path:
    """Write graphs and settings into a folder."""
    (folder / "waitpoint.toml").write_text(settings)
    (folder / "flows.py").write_text(flows)
    return folder


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Generator[Serving]:
    """Serve a folder's graphs until the block ends."""
    server = Serving(folder, *options)
    try:
        yield server
    finally:
        server.end()
