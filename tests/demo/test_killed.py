"""The clean-up demo, killed at each of its points and started again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agents.scripted import refuse_what_strict_providers_refuse
from tests.demo.runs import (
    DELETED,
    REWRITTEN,
    UNTOUCHED,
    files,
    imported,
    touches,
)
from waitpoint.checkpoint.sqlite import SqliteSaver


def killed_everywhere(base: Path, step: int) -> None:
    command = [sys.executable, str(Path(__file__).with_name("killed.py")), str(base), str(step)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    whole, *points = [json.loads(line) for line in done.stdout.splitlines()]
    assert whole["first"] == 0
    assert whole["points"] > 120
    assert len(points) == len(range(1, whole["points"] + 1, step))
    expected, said = contents(base / "whole"), conversation(base / "whole")
    assert expected.keys() == UNTOUCHED | REWRITTEN | {"done.md"}
    for point in points:
        where = f"killed at point {point['point']}, {point['name']}"
        assert (point["first"], point["second"]) == (-signal.SIGKILL, 0), where
        folder = base / str(point["point"])
        assert contents(folder) == expected, where
        counted = touches(folder)
        assert set(counted.values()) == {1}, f"{where}: {counted}"
        missing = (DELETED | REWRITTEN | {"done.md"}) - {"notes/meeting.md"} - counted.keys()
        # A file is touched, then its line is written: killed between the two, the line alone is missing.
        between = point["name"] in {"after unlink", "after replace", "before _note"}
        assert len(missing) == between, where
        assert conversation(folder) == said, where


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / "files" / name).read_bytes() for name in files(folder)}


def conversation(folder: Path) -> list[Any]:
    """Return what was said, from the store: the model's texts and calls, and what it was told of each call."""
    with SqliteSaver(folder / "threads.db") as saver, imported() as program:
        agent = program.make_agent(program.Folder(folder / "files"), checkpointer=saver)
        state = agent.get_state({"configurable": {"thread_id": "cleanup"}})
        assert not state.next
        messages = state.values["messages"]
    refuse_what_strict_providers_refuse(messages)
    return [(m.type, m.text, getattr(m, "tool_calls", None) or getattr(m, "tool_call_id", None)) for m in messages]


def test_killed_at_a_point_and_started_again_it_touches_each_file_once(tmp_path: Path) -> None:
    killed_everywhere(tmp_path, 13)


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_killed_at_every_point_and_started_again_it_touches_each_file_once(tmp_path: Path) -> None:
    killed_everywhere(tmp_path, 1)
