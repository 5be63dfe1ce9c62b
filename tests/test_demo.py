"""The main job: the clean-up demo, without a terminal, on one, killed and started again."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.engine import answers

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "examples" / "cleanup.py"
WAITPOINT = str(Path(sys.executable).with_name("waitpoint"))
UNTOUCHED = {"reports/q1-final.txt", "invoices.csv", "notes/ideas.md", "pictures/workshop.gif"}
DELETED = {
    "reports/q1-draft-1.txt",
    "reports/q1-draft-2.txt",
    "invoices (copy).csv",
    "pictures/workshop (1).gif",
    "untitled.txt",
}
REWRITTEN = {"notes/meeting.md", "notes/会议纪要.md", "server.log"}
PATIENCE = 30.0


def demo(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(DEMO), "--folder", str(folder), *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=50, stdin=subprocess.DEVNULL)


def waitpoint(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [WAITPOINT, *words], capture_output=True, text=True, timeout=50, cwd=folder, stdin=subprocess.DEVNULL
    )


def waiting(folder: Path) -> dict[str, str]:
    """Map each file that is asked about to its question's id."""
    with SqliteSaver(folder / "threads.db") as saver:
        return {q.value["question"].partition(" ")[2].rstrip("?"): q.id for q in saver.pending()}


def files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder / "files")) for p in (folder / "files").rglob("*") if p.is_file()}


def touches(folder: Path) -> Counter[str]:
    """Count, by the log that the effects write, how often each file was touched."""
    log = folder / "audit.log"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return Counter(re.sub(r"^\S+ \S+ \w+ ", "", line) for line in lines)


class Terminal:
    """The demo on a pseudo-terminal, driven as a person would."""

    def __init__(self, folder: Path) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "dumb"
            os.execv(sys.executable, [sys.executable, str(DEMO), "--folder", str(folder)])
        self.shown = ""

    def until(self, pattern: str) -> str:
        """Read until the pattern shows; return what was shown since the last time."""
        deadline = time.monotonic() + PATIENCE
        while not (found := re.search(pattern, self.shown)):
            ready, _, _ = select.select([self.fd], [], [], max(0.0, deadline - time.monotonic()))
            data = self._read() if ready else b""
            assert data, f"the demo never showed {pattern!r}; it showed:\n{self.shown}"
            self.shown += data.decode("utf-8", "replace")
        before, self.shown = self.shown[: found.end()], self.shown[found.end() :]
        return before

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)

    def end(self, pressing: str = "") -> tuple[int, str]:
        """Read to the end; return the exit code and what was shown.

        `pressing` is a key that ends it. It is pressed again while nothing happens, as a person would: a signal that comes
        just before Python reads a line is seen only at the next one.
        """
        if pressing:
            self.type(pressing)
        while True:
            if pressing and not select.select([self.fd], [], [], 1.0)[0]:
                self.type(pressing)
                continue
            data = self._read()
            if not data:
                break
            self.shown += data.decode("utf-8", "replace")
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status), self.shown

    def _read(self) -> bytes:
        try:
            return os.read(self.fd, 65536)
        except OSError:  # the other side has closed
            return b""


# --- without a terminal -----------------------------------------------------------------------------------------------


def test_without_a_terminal_it_prints_the_questions_and_the_commands_that_answer_them(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    done = demo(folder)
    assert (done.returncode, done.stderr) == (0, "")
    ids = waiting(folder)
    assert ids.keys() == DELETED | REWRITTEN
    for file, question in ids.items():
        assert re.search(rf"{re.escape(file)}\? - .*\n +\S+ answer {question[:8]} true", done.stdout), file
    assert touches(folder) == {}


def test_printed_commands_work_as_printed(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    out = demo(folder).stdout
    change, inbox, *commands = [line.strip() for line in out.splitlines() if line.startswith("    ")]
    assert len(commands) == 8
    for command in (inbox, *commands[:2]):
        done = subprocess.run(
            f"{change} && {command}", shell=True, cwd=ROOT, capture_output=True, text=True, timeout=50
        )
        assert done.returncode == 0, (command, done.stderr)
    assert len(touches(folder)) == 2


def test_answers_from_elsewhere_are_acted_upon_and_the_demo_tells_the_rest(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    demo(folder)
    with SqliteSaver(folder / "threads.db") as saver:
        for file, question in waiting(folder).items():
            if file != "untitled.txt":
                answers.answer(saver, question, file in REWRITTEN)
    again = demo(folder)
    assert "1 question waits" in again.stdout
    assert "untitled.txt" in again.stdout
    assert "notes/meeting.md" not in again.stdout
    assert touches(folder) == Counter(REWRITTEN)
    done = waitpoint(folder, "answer", waiting(folder)["untitled.txt"], "true")
    assert (done.returncode, json.loads(done.stdout.partition("\n")[2]).keys()) == (0, {"done"})
    assert files(folder) == (UNTOUCHED | DELETED | REWRITTEN) - {"untitled.txt"}
    last = demo(folder)
    assert last.returncode == 0
    assert "All is decided" in last.stdout
    assert "--fresh" in last.stdout
    assert touches(folder) == Counter(REWRITTEN | {"untitled.txt"})
    assert demo(folder).stdout == last.stdout, "started again when all is done, it says so again"


def test_fresh_starts_anew(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    demo(folder)
    waitpoint(folder, "answer", waiting(folder)["untitled.txt"], "true")
    assert files(folder) == (UNTOUCHED | REWRITTEN | DELETED) - {"untitled.txt"}
    assert demo(folder, "--fresh").returncode == 0
    assert files(folder) == UNTOUCHED | REWRITTEN | DELETED
    assert waiting(folder).keys() == DELETED | REWRITTEN
    assert touches(folder) == {}


@pytest.mark.parametrize("more", [[], ["--fresh"]])
def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path, more: list[str]) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    done = demo(tmp_path, *more)
    assert done.returncode == 2
    assert "holds something else" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["letter.txt"]


def test_a_file_that_changed_after_it_was_shown_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    demo(folder)
    (folder / "files" / "untitled.txt").write_text("my only copy")
    waitpoint(folder, "answer", waiting(folder)["untitled.txt"], "true")
    assert (folder / "files" / "untitled.txt").read_text() == "my only copy"
    assert touches(folder) == {}


def test_a_file_that_cannot_be_touched_is_tried_again(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    demo(folder)
    file = folder / "files" / "untitled.txt"
    file.unlink()
    file.mkdir()
    done = waitpoint(folder, "answer", waiting(folder)["untitled.txt"], "true")
    assert done.returncode == 4
    assert "Node 'decide' failed - IsADirectoryError" in done.stderr
    again = demo(folder)
    assert "could not be touched" in again.stdout
    assert "7 questions wait" in again.stdout
    file.rmdir()
    file.touch()
    assert "7 questions wait" in demo(folder).stdout
    assert not file.exists()
    assert touches(folder) == {"untitled.txt": 1}


# --- on a terminal ----------------------------------------------------------------------------------------------------


def test_on_a_terminal_it_asks_there_and_shows_what_a_rewrite_changes(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    terminal = Terminal(folder)
    shown = ""
    for count in range(8, 0, -1):
        part = terminal.until(r"\[y/n/q\] ")
        shown += part
        assert f"[{count} to decide]" in part
        terminal.type("n\n" if "notes/meeting.md?" in part else "y\n")
    code, rest = terminal.end()
    assert code == 0
    assert "All is decided: 8 files." in rest
    assert re.search(r"-- \[x\] send the minutes", shown)
    assert "会议纪要" in shown
    assert files(folder) == UNTOUCHED | REWRITTEN
    assert touches(folder) == Counter((DELETED | REWRITTEN) - {"notes/meeting.md"})


def test_leaving_keeps_the_answers_and_another_letter_is_asked_again(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    terminal = Terminal(folder)
    terminal.until(r"\[y/n/q\] ")
    terminal.type("maybe\n")
    assert "Please press one of" in terminal.until(r"\[y/n/q\] ")
    terminal.type("y\n")
    terminal.until(r"\[y/n/q\] ")
    terminal.type("q\n")
    code, rest = terminal.end()
    assert code == 0
    assert "goes on here" in rest
    assert sum(touches(folder).values()) == 1
    again = Terminal(folder)
    assert "[7 to decide]" in again.until(r"\[y/n/q\] ")
    again.kill()


@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["ctrl-c", "ctrl-d"])
def test_control_keys_stop_it_and_nothing_is_lost(tmp_path: Path, key: str) -> None:
    folder = tmp_path / "demo"
    terminal = Terminal(folder)
    terminal.until(r"\[y/n/q\] ")
    terminal.type("y\n")
    terminal.until(r"\[y/n/q\] ")
    code, rest = terminal.end(pressing=key)
    assert code == (130 if key == "\x03" else 0)
    assert "goes on here" in rest
    assert "Traceback" not in rest
    assert len(waiting(folder)) == 7


def test_killed_at_a_prompt_it_goes_on_with_what_was_not_answered(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    asked: Counter[str] = Counter()
    for _ in range(4):
        terminal = Terminal(folder)
        for _ in range(2):
            part = terminal.until(r"\[y/n/q\] ")
            asked[part.rpartition("? (")[0].rpartition("  ")[2]] += 1
            terminal.type("y\n")
        terminal.until(r"\[y/n/q\] |All is decided")
        terminal.kill()
    assert files(folder) == UNTOUCHED | REWRITTEN
    assert touches(folder) == Counter(DELETED | REWRITTEN)
    assert set(asked.values()) == {1}, asked


def test_an_answer_given_elsewhere_meanwhile_stands(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    terminal = Terminal(folder)
    part = terminal.until(r"\[y/n/q\] ")
    (file,) = [name for name in DELETED | REWRITTEN if f" {name}? (" in part]
    waitpoint(folder, "answer", waiting(folder)[file], "false", "--by", "ana")
    terminal.type("y\n")
    assert "ana answered this meanwhile" in terminal.until(r"\[y/n/q\] ")
    terminal.type("q\n")
    assert terminal.end()[0] == 0
    assert touches(folder) == {}


# --- killed -----------------------------------------------------------------------------------------------------------


def killed_everywhere(base: Path, step: int) -> None:
    command = [sys.executable, str(ROOT / "tests" / "demo_killed.py"), str(base), str(step)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    whole, *points = [json.loads(line) for line in done.stdout.splitlines()]
    assert whole["first"] == 0
    assert whole["points"] > 80
    assert len(points) == len(range(1, whole["points"] + 1, step))
    expected = contents(base / "whole")
    for point in points:
        where = f"killed at point {point['point']}, {point['name']}"
        assert (point["first"], point["second"]) == (-signal.SIGKILL, 0), where
        folder = base / str(point["point"])
        assert contents(folder) == expected, where
        counted = touches(folder)
        assert set(counted.values()) == {1}, f"{where}: {counted}"
        missing = (DELETED | REWRITTEN) - {"notes/meeting.md"} - counted.keys()
        # A file is touched, then its line is written: killed between the two, the line alone is missing.
        between = point["name"] in {"after unlink", "after replace", "before note"}
        assert len(missing) == between, where
        state = json.loads(waitpoint_state(folder))
        assert state == dict.fromkeys(DELETED, "deleted") | {
            file: "kept" if file == "notes/meeting.md" else "rewritten" for file in REWRITTEN
        }, where


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / "files" / name).read_bytes() for name in files(folder)}


def waitpoint_state(folder: Path) -> str:
    """Read the graph's output from the store as JSON: what came of each file."""
    sys.path.insert(0, str(DEMO.parent))
    try:
        import tidying
    finally:
        sys.path.remove(str(DEMO.parent))
    with SqliteSaver(folder / "threads.db") as saver:
        graph = tidying.builder.compile(checkpointer=saver, name="cleanup")
        state = graph.get_state({"configurable": {"thread_id": "cleanup"}})
        assert not state.next
        return json.dumps({each["file"]: each["result"] for each in state.values["done"]})


def test_killed_at_a_point_and_started_again_it_touches_each_file_once(tmp_path: Path) -> None:
    killed_everywhere(tmp_path, 9)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_killed_at_every_point_and_started_again_it_touches_each_file_once(tmp_path: Path) -> None:
    killed_everywhere(tmp_path, 1)
