"""What tests of crashes and races share: a server of processes to kill, a store of each kind, actors in threads."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.actors import Actor
from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.checkpoint.sqlite import SqliteSaver

ROOT = Path(__file__).resolve().parents[2]


class Server:
    """Runs a program in a process of its own, which dies at the points that are named."""

    def __init__(self, module: str = "tests.crash.programs.server") -> None:
        command = [sys.executable, "-m", module]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)

    def run(self, folder: Path, program: str, durability: str, at: tuple[int, ...] = ()) -> dict[str, Any]:
        """Run the program on a folder; return the points it passed, the signal it died of, and its result."""
        folder.mkdir(exist_ok=True)
        request = {"folder": str(folder), "program": program, "durability": durability, "at": at}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        reply: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert "error" not in reply, reply["error"]
        return reply

    def close(self) -> None:
        """End the server."""
        self._process.communicate()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseCheckpointSaver]:
    with InMemorySaver() if request.param == "memory" else SqliteSaver(tmp_path / "threads.sqlite") as store:
        yield store


@pytest.fixture
def did() -> list[str]:
    """What the bodies did after their questions."""
    return []


@pytest.fixture
def actors(store: BaseCheckpointSaver) -> Iterator[Callable[..., list[Actor]]]:
    hired: list[Actor] = []

    def hire(count: int, build: Callable[[BaseCheckpointSaver], Any]) -> list[Actor]:
        hired.extend(Actor(store, build) for _ in range(count))
        return hired[-count:]

    yield hire
    for actor in hired:
        actor.close()
