"""The clean-up demo without a terminal: what it prints, and what the command line makes of it."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.demo.runs import (
    DELETED,
    QUESTION,
    REWRITTEN,
    ROOT,
    UNTOUCHED,
    demo,
    files,
    leave_in_doubt,
    record,
    touches,
    waiting,
    waitpoint,
)
from tests.providers.openai_wire import OpenAIWire
from tests.providers.server import KEY, Call, Turn, serving


def test_without_a_terminal_it_prints_what_waits_and_the_commands_that_decide(template: tuple[Path, str]) -> None:
    folder, shown = template
    ids = waiting(folder)
    assert ids.keys() == DELETED | REWRITTEN | {QUESTION}
    for what, question in ids.items():
        command = f"respond {question[:8]} done.md" if what == QUESTION else f"approve {question[:8]} "
        assert re.search(rf"{re.escape(what)}.*\n +\S+ {command}", shown), what
    assert touches(folder) == {}


def test_calls_that_touch_nothing_run_at_once_beside_those_that_wait(template: tuple[Path, str]) -> None:
    proposed = template[1].partition("This is what I would do.")[2]
    assert "read_file: Quarterly report" in proposed.partition("decisions wait")[0]


@pytest.mark.slow
def test_printed_commands_work_as_printed(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    out = demo(folder).stdout
    change, inbox, serve, *commands = [line.strip() for line in out.splitlines() if line.startswith("    ")]
    assert " serve " in serve
    assert len(commands) == 9
    (respond,) = [command for command in commands if " respond " in command]
    approve = [command for command in commands if " approve " in command]
    for command in (inbox, respond, approve[0], approve[1].partition(" #")[0].replace("approve", "show")):
        done = subprocess.run(
            f"{change} && {command}", shell=True, cwd=ROOT, capture_output=True, text=True, timeout=50
        )
        assert done.returncode == 0, (command, done.stderr)
    assert len(touches(folder)) == 1
    assert len(waiting(folder)) == 7


def test_decisions_from_elsewhere_are_acted_upon_and_the_demo_tells_the_rest(folder: Path) -> None:
    record(folder, {key: {"type": "approve"} for key in REWRITTEN} | {QUESTION: {"type": "respond", "message": "no"}})
    record(folder, {key: {"type": "reject", "message": "mine"} for key in DELETED - {"untitled.txt"}})
    again = demo(folder)
    assert "1 decision waits" in again.stdout
    assert "untitled.txt" in again.stdout.partition("1 decision waits")[2]
    assert touches(folder) == Counter(REWRITTEN)
    assert waitpoint(folder, "approve", waiting(folder)["untitled.txt"]).returncode == 0
    assert files(folder) == (UNTOUCHED | DELETED | REWRITTEN) - {"untitled.txt"}
    last = demo(folder)
    assert last.returncode == 0
    assert "All is done" in last.stdout
    assert "Deleted untitled.txt." in last.stdout
    assert last.stdout.count("as it is: mine") == 4
    assert "--fresh" in last.stdout
    assert touches(folder) == Counter(REWRITTEN | {"untitled.txt"})
    assert demo(folder).stdout == last.stdout, "started again when all is done, it says so again"


@pytest.mark.slow
def test_the_agent_takes_a_no_as_final_and_a_wish_as_a_wish(folder: Path) -> None:
    wishes = {"server.log": {"type": "reject", "message": "Please keep 30 lines."}, "untitled.txt": {"type": "reject"}}
    no = {"type": "reject", "message": "not now"}
    rest = dict.fromkeys((DELETED | REWRITTEN) - wishes.keys(), no)
    record(folder, wishes | rest | {QUESTION: {"type": "respond", "message": "yes, in notes/done.md"}})
    demo(folder)
    assert waiting(folder).keys() == {"server.log"}, "what was refused otherwise is not proposed again"
    assert waitpoint(folder, "approve", waiting(folder)["server.log"]).returncode == 0
    assert len((folder / "files" / "server.log").read_text().splitlines()) == 30
    assert waiting(folder).keys() == {"notes/done.md"}
    assert waitpoint(folder, "approve", waiting(folder)["notes/done.md"]).returncode == 0
    note = (folder / "files" / "notes" / "done.md").read_text()
    assert "- Left untitled.txt as it is: you said no\n" in note
    assert "- Left notes/meeting.md as it is: not now\n" in note
    assert "- Wrote server.log.\n" in note
    assert touches(folder) == Counter(["server.log", "notes/done.md"])


@pytest.mark.slow
def test_an_edit_from_the_command_line_is_what_runs_and_the_agent_knows(folder: Path) -> None:
    ids = waiting(folder)
    meeting = ids.pop("notes/meeting.md")
    assert waitpoint(folder, "edit", meeting, "--set", "content=All done.").returncode == 0
    assert (folder / "files" / "notes" / "meeting.md").read_text() == "All done."
    no = {"type": "reject", "message": "no"}
    record(folder, dict.fromkeys(ids.keys() - {QUESTION}, no) | {QUESTION: {"type": "respond", "message": "no"}})
    assert "Wrote notes/meeting.md. (as you changed it)" in demo(folder).stdout


def test_a_call_in_doubt_whose_file_says_neither_is_told_with_the_command_that_shows_it(
    folder: Path, program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_in_doubt(folder, program, monkeypatch)
    out = demo(folder).stdout
    assert "A crash left it open whether this happened: delete_file untitled.txt" in out
    doubt = waiting(folder)["untitled.txt"]
    assert f"show {doubt[:8]}\n" in out
    assert waitpoint(folder, "answer", doubt, '{"type": "happened", "result": "Deleted by hand."}').returncode == 0
    assert (folder / "files" / "untitled.txt").read_text() == "something else"


def test_fresh_starts_anew(folder: Path) -> None:
    waitpoint(folder, "approve", waiting(folder)["untitled.txt"])
    assert files(folder) == (UNTOUCHED | REWRITTEN | DELETED) - {"untitled.txt"}
    assert demo(folder, "--fresh").returncode == 0
    assert files(folder) == UNTOUCHED | REWRITTEN | DELETED
    assert waiting(folder).keys() == DELETED | REWRITTEN | {QUESTION}
    assert touches(folder) == {}


@pytest.mark.parametrize("more", [[], ["--fresh"]])
def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path, more: list[str]) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    done = demo(tmp_path, *more)
    assert done.returncode == 2
    assert "holds something else" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["letter.txt"]


def test_a_folder_of_an_earlier_demo_is_named_as_such(folder: Path) -> None:
    (folder / "program.py").unlink()
    done = demo(folder)
    assert done.returncode == 2
    assert "earlier version of this demo; start anew with --fresh" in done.stderr
    assert demo(folder, "--fresh").returncode == 0


@pytest.mark.parametrize(
    ("model", "why"), [("mystery-1", "'mystery-1'"), ("openai:gpt-5.5", "api_key")], ids=["unknown", "without a key"]
)
def test_a_model_that_cannot_be_used_is_named(
    tmp_path: Path, model: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = demo(tmp_path / "demo", "--model", model)
    assert done.returncode == 2
    assert done.stderr.startswith(f"Model '{model}' cannot be used: ")
    assert why in done.stderr
    assert "9 decisions wait" in demo(tmp_path / "demo").stdout, "it is not remembered"


def test_a_model_of_a_provider_takes_the_scripted_ones_place_also_for_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = {"path": "untitled.txt", "checksum": "e3b0c44298fc", "why": "it is empty"}
    turns = (
        Turn(("I look.",), (Call("a", "list_files", {}),)),
        Turn((), (Call("b", "delete_file", nothing), Call("c", "delete_file", {**nothing, "path": "../other.txt"}))),
        Turn(("One file is gone.",)),
    )
    folder = tmp_path / "demo"
    with serving(OpenAIWire(), *turns) as provider:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_API_BASE", f"{provider.url}/v1")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert "1 decision waits" in demo(folder, "--model", "openai:gpt-5.5").stdout
        assert waitpoint(folder, "approve", waiting(folder)["untitled.txt"]).returncode == 0
        assert (provider.refused, provider.turns) == ([], [])
    assert "  One file is gone." in demo(folder).stdout
    assert touches(folder) == {"untitled.txt": 1}


def test_a_file_that_changed_after_it_was_shown_is_left_alone(folder: Path) -> None:
    (folder / "files" / "untitled.txt").write_text("my only copy")
    waitpoint(folder, "approve", waiting(folder)["untitled.txt"])
    assert (folder / "files" / "untitled.txt").read_text() == "my only copy"
    assert touches(folder) == {}


def test_the_agent_is_told_of_a_file_that_cannot_be_touched(folder: Path) -> None:
    file = folder / "files" / "untitled.txt"
    file.unlink()
    file.mkdir()
    record(folder, {QUESTION: {"type": "respond", "message": "no"}} | {key: {"type": "approve"} for key in DELETED})
    record(folder, {key: {"type": "approve"} for key in REWRITTEN})
    done = demo(folder)
    assert done.returncode == 0
    assert "Left untitled.txt as it is: [Errno 21] Is a directory" in done.stdout
    assert touches(folder) == Counter((DELETED | REWRITTEN) - {"untitled.txt"})
