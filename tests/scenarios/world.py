"""What the scenarios share: a store that is opened again, a thread to run on, and programs in processes of their own."""

from __future__ import annotations

import itertools
import json
import operator
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

from waitpoint import codec
from waitpoint.checkpoint.base import BaseCheckpointSaver, ThreadKey
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.types import Interrupt

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "scenarios" / "programs"

_numbers = itertools.count(1)


class State(TypedDict, total=False):
    """A log that all nodes may write to, and a value that one of them may."""

    log: Annotated[list[Any], operator.add]
    value: Any


class Shelf:
    """A store; `open` gives another saver on the same rows, as a new process would have it."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.opened: list[BaseCheckpointSaver] = []

    def open(self) -> BaseCheckpointSaver:
        if self.path is not None:
            self.opened.append(SqliteSaver(self.path))
        elif not self.opened:
            self.opened.append(InMemorySaver())
        return self.opened[-1]

    def close(self) -> None:
        for saver in self.opened:
            saver.close()


def thread(name: str = "", **more: Any) -> dict[str, Any]:
    """Return the config of a thread, by default of a new one."""
    return {"configurable": {"thread_id": name or f"thread-{next(_numbers)}", **more}}


def asked(result: Any) -> list[Interrupt[Any]]:
    """Return the questions of a pause."""
    found = result["__interrupt__"]
    assert isinstance(found, list)
    return found


def the_id(result: Any) -> str:
    """Return the id of the one question of a pause."""
    (question,) = asked(result)
    return question.id


def texts(result: Any) -> list[Any]:
    """Return the payloads of the questions of a pause; none if it is the end."""
    return [i.value for i in result.get("__interrupt__", ())]


def events(saver: BaseCheckpointSaver, config: dict[str, Any], graph: str = "LangGraph") -> list[tuple[str, Any]]:
    """Return a thread's record: what happened, and what is said of it."""
    found = saver.events(ThreadKey(config["configurable"]["thread_id"], graph))
    return [(e.kind, codec.loads(e.data) if e.data else {}) for e in found]


def start(program: str, *args: Any, **options: Any) -> subprocess.Popen[str]:
    """Start one of the programs in a process of its own."""
    command = [sys.executable, str(PROGRAMS / program), *map(str, args)]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, env={**os.environ, "PYTHONPATH": path}, **pipes, **options)


def told(process: subprocess.Popen[str]) -> Any:
    """Wait for a program's end and return what it printed last, read as JSON."""
    with process:
        out, err = process.communicate(timeout=50)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


def run(program: str, *args: Any) -> Any:
    """Run one of the programs in a process of its own and return what it printed last, read as JSON."""
    return told(start(program, *args))
