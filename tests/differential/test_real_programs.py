"""Programs of real size come over by their imports alone: what they show, keep and do is the same as on LangGraph.

Each is a file of `real/`, run as it is and as `waitpoint migrate` leaves it, in several processes one after the other.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from waitpoint.cli import main

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent / "real"
KEPT_BY_LIBRARIES = ("threads.db", "memory.db")


def played(program: Path, folder: Path, numbers: list[int]) -> subprocess.Popen[str]:
    """Start a process that makes calls of a program."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, HERE / "playing.py", program, folder, *map(str, numbers)]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(HERE)}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, env=environment, **pipes)


def migrated(name: str, folder: Path) -> Path:
    """Return a copy of a program that `waitpoint migrate` has rewritten."""
    program = folder / f"{name}.py"
    shutil.copy(HERE / program.name, program)
    with pytest.raises(SystemExit, match=r"^0$"):  # 3 if anything has no counterpart
        main(["migrate", "--write", str(program)])
    was, becomes = (set(p.read_text().splitlines()) for p in (HERE / program.name, program))
    assert all("import" in line for line in was ^ becomes)
    return program


def heard(process: subprocess.Popen[str], *libraries: str) -> list[Any]:
    """Return what the calls of a process showed."""
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    seen = json.loads(out)
    assert seen["libraries"] == sorted(libraries)
    return seen["calls"]  # type: ignore[no-any-return]


def effects(folder: Path) -> dict[str, Any]:
    """Return what a program has done in its folder: all files but those in which a library keeps its own."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(KEPT_BY_LIBRARIES))
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


# --- what is meant to differ ------------------------------------------------------------------------------------------


def shown(parts: list[Any], *, parallel: bool) -> dict[str, Any]:
    """Return the parts of a call, with its questions apart.

    LangGraph shows a question once for each task and each graph that rests with it, Waitpoint shows all in one last
    chunk. Of siblings any may end first, so theirs are compared in no order.
    """
    rest, questions = [], []
    for namespace, mode, payload in parts:
        if mode != "messages" and "__interrupt__" in payload:
            questions += [q for q in payload.pop("__interrupt__") if q not in questions]
            if mode == "updates" or namespace:
                continue
        rest.append([namespace, mode, payload])
    return {"questions": sorted(questions, key=repr), "parts": sorted(rest, key=repr) if parallel else rest}


def recorded(state: dict[str, Any]) -> dict[str, Any]:
    """Return a snapshot of a history, where LangGraph has only the last of the questions that a task asked."""
    tasks = [{**task, "asks": task["asks"][-1:]} for task in state["tasks"]]
    return {**state, "tasks": tasks, "asks": sorted([q for task in tasks for q in task["asks"]], key=repr)}


def compared(call: dict[str, Any], *, parallel: bool) -> dict[str, Any]:
    """Return what is to be the same of a call."""
    history = [recorded(state) for state in call["history"]]
    return {"parts": shown(call["parts"], parallel=parallel), "state": call["state"], "history": history}


# --- the programs -----------------------------------------------------------------------------------------------------


def same_on_both(name: str, cuts: list[int], tmp_path: Path, *, parallel: bool = False) -> list[dict[str, Any]]:
    """Play a program on both libraries, compare every call and all effects, and return the calls.

    `cuts` are the numbers of the calls before which a process ends and the next one takes over; the last ends the play.
    """
    program, there, here = migrated(name, tmp_path), tmp_path / "there", tmp_path / "here"
    story: list[dict[str, Any]] = []
    for first, end in pairwise([0, *cuts]):
        numbers = list(range(first, end))
        peer, own = played(HERE / program.name, there, numbers), played(program, here, numbers)
        theirs, ours = heard(peer, "langchain", "langgraph"), heard(own, "waitpoint")
        for expected, found in zip(theirs, ours, strict=True):
            story.append(compared(found, parallel=parallel))
            assert story[-1] == compared(expected, parallel=parallel), f"call {len(story) - 1}"
        assert effects(here) == effects(there)
    return story


def asked(story: list[dict[str, Any]], what: Callable[[Any], Any]) -> list[list[Any]]:
    """Return what the questions of each call are about."""
    return [[what(value) for _, value, _ in call["parts"]["questions"]] for call in story]


def test_an_email_assistant_sends_what_its_owner_approved(tmp_path: Path) -> None:
    story = same_on_both("email_assistant", [1, 2, 8, 13], tmp_path)
    questions = asked(story, lambda value: value[0]["action_request"]["action"])
    meeting, mail, notify = ["schedule_meeting"], ["write_email"], ["Email assistant: notify"]
    ana, rest = [meeting, mail, mail, []], [[], notify, [], notify, ["ask_owner"], []]
    assert questions == [*ana, *rest, meeting, mail, []]
    done = effects(tmp_path / "here")
    sent = [json.loads(line) for line in done["sent.jsonl"].splitlines()]
    assert [mail["body"] for mail in sent] == ["Tuesday it is.", "B"]
    # What the owner changed for the first meeting is remembered for the second.
    assert [json.loads(line)["minutes"] for line in done["calendar.jsonl"].splitlines()] == [30, 30]
    assert len(done["looked.jsonl"].splitlines()) == 4
