"""Programs of real size come over by their imports alone: what they show, keep and do is the same as on LangGraph.

Each is a file of `real/`, run as it is and as `waitpoint migrate` leaves it, in several processes one after the other.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
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
    return {str(p.relative_to(folder)): rows(p) if p.suffix == ".db" else p.read_bytes() for p in files}


def rows(path: Path) -> list[str]:
    """Return what is in a database. Tools run side by side, so the rows have no order."""
    with closing(sqlite3.connect(path)) as connection:
        return sorted(connection.iterdump())


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


def recorded(history: list[Any]) -> list[Any]:
    """Return a history without its questions, of which LangGraph has only the last one of a task."""
    return [{**state, "tasks": [{**task, "asks": None} for task in state["tasks"]], "asks": None} for state in history]


def questions_of(history: list[Any]) -> list[Any]:
    """Return the questions that the tasks of a history asked."""
    return [[task["asks"] for task in state["tasks"]] for state in history]


def are_among(theirs: list[Any], ours: list[Any]) -> bool:
    """Whether each task's questions, as LangGraph recorded them, are among those that Waitpoint did."""
    pairs = [pair for state in zip(theirs, ours, strict=True) for pair in zip(*state, strict=True)]
    return all(bool(few) == bool(all_) and all(q in all_ for q in few) for few, all_ in pairs)


def plain(value: Any) -> Any:
    """Return what was told in the words that both agents have.

    In batched mode LangChain's have no schema of the decisions; they frame a reviewer's words, and write arguments with
    spaces.
    """
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        decided = value[:1] == ["Interrupt"] and isinstance(value[1], dict) and "action_requests" in value[1]
        return [*value[:2], None] if decided else [plain(each) for each in value]
    if isinstance(value, str):
        value = re.sub(r"^User rejected the tool call for `\w+` with reason: ", "", value)
        return re.sub(r"(?<=with arguments )\{.*\}(?=\.$)", compact, value, flags=re.MULTILINE)
    return value


def compact(found: re.Match[str]) -> str:
    """Return JSON without spaces between its tokens."""
    return json.dumps(json.loads(found[0]), separators=(",", ":"))


def settled(state: dict[str, Any]) -> dict[str, Any]:
    """Return a snapshot with the questions of each task in one order, and without an agent's own notes of decisions."""
    tasks = [
        {**task, "asks": sorted(task["asks"], key=repr), "nested": task["nested"] and settled(task["nested"])}
        for task in state["tasks"]
    ]
    values = {key: value for key, value in state["values"].items() if not key.startswith("hitl_")}
    return {**state, "values": values, "tasks": tasks}


def compared(call: dict[str, Any], *, parallel: bool) -> dict[str, Any]:
    """Return what is to be the same of a call."""
    call = plain(call)
    parts, state = shown(call["parts"], parallel=parallel), settled(call["state"])
    return {"parts": parts, "state": state, "history": recorded(call["history"])}


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
            number = f"call {len(story) - 1}"
            assert story[-1] == compared(expected, parallel=parallel), number
            assert are_among(*(questions_of(plain(call)["history"]) for call in (expected, found))), number
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


def test_an_sql_agent_runs_what_was_reviewed(tmp_path: Path) -> None:
    story = same_on_both("sql_agent", [1, 4, 7, 8, 12], tmp_path, parallel=True)
    questions = asked(story, lambda value: value.get("action") or [r["name"] for r in value["action_requests"]])
    query, change, log = ["run_query"], [["change_rows", "change_rows", "order_copies"]], [["log_change"]]
    assert questions == [query, [], query, query, query, [], change, log, [], change, log, []]
    albums = [line for line in effects(tmp_path / "here")["shop.db"] if line.startswith('INSERT INTO "albums"')]
    assert [line.partition("VALUES")[2] for line in albums] == [
        "(1,1,'Pastel Blues',12.5,3);",
        "(3,2,'Tago Mago',20.0,7);",
        "(4,2,'Future Days',18.5,2);",
        "(5,3,'Moondog',21.0,51);",
    ]


def test_a_research_team_buys_and_publishes_what_was_allowed(tmp_path: Path) -> None:
    story = same_on_both("research_team", [1, 2, 5, 7, 10], tmp_path, parallel=True)
    questions = asked(story, lambda value: value.get("source", value["ask"]))
    archive, survey, publish, name = "paid/archive.txt", "paid/survey.txt", "publish", "name of the file"
    first = [[archive, survey], [archive], [publish], [publish], [name], []]
    assert questions == [*first, [archive, survey], [publish], [name], []]
    done = effects(tmp_path / "here")
    bought = [json.loads(line)["source"] for line in done["bills.jsonl"].splitlines()]
    assert (bought[0], sorted(bought[1:])) == (survey, [archive, survey])
    assert done["shelf/harbour.txt"].decode().endswith("Harbours are dredged in spring. (shorter)\n")
    assert b"In 1890 there were 40 boats." in done["shelf/again.txt"]
