"""The clean-up demo on a terminal, driven as a person would."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.demo.runs import (
    DELETED,
    PROMPT,
    QUESTION,
    REWRITTEN,
    UNTOUCHED,
    Terminal,
    files,
    leave_in_doubt,
    touches,
    waiting,
    waitpoint,
)


def test_on_a_terminal_it_asks_there_and_shows_what_a_call_changes(folder: Path) -> None:
    terminal = Terminal(folder)
    shown = ""
    for count in range(9, 0, -1):
        part = terminal.until(PROMPT)
        shown += part
        assert f"[{count} to decide]" in part
        if QUESTION in part:
            assert "(a)pprove" not in part
            terminal.type("s\ndone.md\n")
        else:
            terminal.type("r\nI still need it.\n" if "notes/meeting.md" in part else "a\n")
    last = terminal.until(PROMPT)
    assert "done.md" in last
    assert "Left notes/meeting.md as it is: I still need it." in last
    terminal.type("a\n")
    code, rest = terminal.end()
    assert code == 0
    assert "All is done." in rest
    assert re.search(r"\| \S*-- \[x\] send the minutes", shown)
    assert "why       it is empty" in shown
    assert "会议纪要" in shown
    assert files(folder) == UNTOUCHED | REWRITTEN | {"done.md"}
    assert touches(folder) == Counter((DELETED | REWRITTEN) - {"notes/meeting.md"} | {"done.md"})


def reach(terminal: Terminal, what: str) -> str:
    """Approve cards until one that says this; return that card."""
    while what not in (part := terminal.until(PROMPT)):
        terminal.type("s\nno\n" if QUESTION in part else "a\n")
    return part


def test_arguments_are_edited_in_the_users_editor_until_they_fit(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    editor = tmp_path / "editor"
    editor.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, re, sys\n"
        "file = pathlib.Path(sys.argv[1])\n"
        "text, tries = file.read_text(), pathlib.Path(__file__).with_suffix('.tries')\n"
        "count = len(tries.read_text()) if tries.exists() else 0\n"
        "tries.write_text('x' * (count + 1))\n"
        "if count == 0: text = text.replace('{', '', 1)\n"
        "if count == 1: text = '{' + text.replace('\"content\": ', '\"content\": 7, \"spare\": ')\n"
        'if count == 2: text = re.sub(\'"content": 7, "spare": .*"\', \'"content": "Nothing left to do.\\\\\\\\n"\', text)\n'
        "file.write_text(text)\n"
    )
    editor.chmod(0o755)
    terminal = Terminal(folder, str(editor))
    reach(terminal, "notes/meeting.md")
    terminal.type("e\n")
    assert "This is no JSON" in terminal.until(r"\(b\)ack\? ")
    terminal.type("e\n")
    assert "This does not fit: edit.edited_action.args.content" in terminal.until(PROMPT)
    terminal.type("e\n")
    terminal.until(PROMPT + "|All is done")
    assert (folder / "files" / "notes" / "meeting.md").read_text() == "Nothing left to do.\n"
    assert touches(folder)["notes/meeting.md"] == 1
    terminal.kill()


@pytest.mark.slow
def test_an_editor_that_fails_or_changes_nothing_decides_nothing(tmp_path: Path) -> None:
    for editor, said in (("false", "The editor did not work"), ("true", "Nothing was changed"), ("no-such", "did not")):
        terminal = Terminal(tmp_path / editor, editor)
        reach(terminal, "(e)dit")
        terminal.type("e\n")
        assert said in terminal.until(PROMPT)
        assert len(waiting(tmp_path / editor)) + sum(touches(tmp_path / editor).values()) >= 8
        terminal.kill()


def test_a_call_in_doubt_whose_file_says_neither_is_asked_about(
    folder: Path, program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_in_doubt(folder, program, monkeypatch)
    terminal = Terminal(folder)
    part = reach(terminal, "A crash left it open")
    assert "untitled.txt" in part
    terminal.type("n\n")
    assert "Left alone: untitled.txt is not what you saw." in terminal.until(PROMPT + "|All is done")
    terminal.kill()
    assert (folder / "files" / "untitled.txt").read_text() == "something else"


def test_leaving_keeps_the_decisions_and_another_letter_is_asked_again(folder: Path) -> None:
    terminal = Terminal(folder)
    reach(terminal, "delete_file")
    before = sum(touches(folder).values())
    terminal.type("maybe\n")
    assert "Please press one of" in terminal.until(PROMPT)
    terminal.type("a\n")
    terminal.until(PROMPT)
    terminal.type("q\n")
    code, rest = terminal.end()
    assert code == 0
    assert "goes on here" in rest
    assert sum(touches(folder).values()) == before + 1
    left = len(waiting(folder))
    again = Terminal(folder)
    assert f"[{left} to decide]" in again.until(PROMPT)
    again.kill()


@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["ctrl-c", "ctrl-d"])
def test_control_keys_stop_it_and_nothing_is_lost(folder: Path, key: str) -> None:
    terminal = Terminal(folder)
    reach(terminal, "delete_file")
    terminal.type("a\n")
    terminal.until(PROMPT)
    left = waiting(folder)
    code, rest = terminal.end(pressing=key)
    assert code == (130 if key == "\x03" else 0)
    assert "goes on here" in rest
    assert "Traceback" not in rest
    assert waiting(folder) == left


@pytest.mark.slow
def test_killed_at_a_prompt_it_goes_on_with_what_was_not_decided(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    asked: Counter[str] = Counter()
    for _ in range(5):
        terminal = Terminal(folder)
        for _ in range(2):
            part = terminal.until(PROMPT + "|All is done")
            if "All is done" in part:
                break
            (what,) = [each for each in (*DELETED, *REWRITTEN, QUESTION) if re.search(rf"  {re.escape(each)}\r", part)]
            asked[what] += 1
            terminal.type("s\nno\n" if what == QUESTION else "a\n")
        terminal.until(PROMPT + "|make demo ARGS")
        terminal.kill()
    assert files(folder) == UNTOUCHED | REWRITTEN
    assert touches(folder) == Counter(DELETED | REWRITTEN)
    assert set(asked.values()) == {1}, asked


@pytest.mark.slow
def test_a_decision_made_elsewhere_meanwhile_stands(folder: Path) -> None:
    terminal = Terminal(folder)
    part = reach(terminal, "delete_file")
    (file,) = [name for name in DELETED if f"  {name}\r" in part]
    waitpoint(folder, "reject", waiting(folder)[file], "--by", "ana")
    terminal.type("a\n")
    assert "ana answered this meanwhile" in terminal.until(PROMPT)
    terminal.type("q\n")
    assert terminal.end()[0] == 0
    assert touches(folder)[file] == 0
    assert (folder / "files" / file).exists()
