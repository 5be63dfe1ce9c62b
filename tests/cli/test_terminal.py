"""On a terminal: colours, lines cut to its width, and columns that stay straight; none of it into a pipe."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.cli.test_listing import cells

WAITPOINT = str(Path(sys.executable).with_name("waitpoint"))


def on_terminal(folder: Path, *words: str, columns: int = 80, **environ: str) -> str:
    """Run the program on a pseudo-terminal; return what it shows."""
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.chdir(folder)
        for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
            os.environ.pop(name, None)
        os.environ.update({"TERM": "xterm-256color"} | environ)
        os.execv(WAITPOINT, [WAITPOINT, *words])
    data = b""
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        data += part
    os.close(fd)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return data.decode()


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.fixture
def waiting(program: Program) -> Program:
    for thread in ("plain", "线程一", "スレッド"):
        program.start("x" * 60, "报告" * 30, thread=thread)
    return program


def test_a_table_is_cut_to_the_width_and_stays_straight(waiting: Program) -> None:
    shown = on_terminal(waiting.folder, "inbox", columns=80)
    assert "\x1b[" in shown
    lines = plain(shown).splitlines()[:7]
    assert all(cells(line) <= 80 for line in lines), lines
    assert all(line.rstrip().endswith("…") for line in lines[1:]), lines
    starts = {cells(line[: line.index("review")]) for line in lines[1:]}
    assert starts == {cells(lines[0][: lines[0].index("NODE")])}


def test_ids_are_whole_even_on_a_narrow_terminal(waiting: Program) -> None:
    ids = [q["id"][:8] for q in waiting("inbox", "--json").json["questions"]]
    shown = plain(on_terminal(waiting.folder, "inbox", columns=50))
    assert all(i in shown for i in ids), shown


def test_a_command_to_type_is_one_line_whatever_the_width(waiting: Program) -> None:
    (first, *_) = waiting("inbox", "--json").json["questions"]
    shown = plain(on_terminal(waiting.folder, "show", first["id"], columns=30))
    assert re.search(rf"waitpoint answer {first['id'][:8]} '{{\"decision\": \"approve\"}}'", shown)


def test_no_color_is_respected(waiting: Program) -> None:
    shown = on_terminal(waiting.folder, "inbox", NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", shown)


def test_any_locale_can_show_any_text(waiting: Program) -> None:
    shown = on_terminal(waiting.folder, "inbox", columns=120, LC_ALL="C", PYTHONIOENCODING="ascii")
    assert r"\u7ebf" in shown
