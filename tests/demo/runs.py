"""Runs the clean-up demo and the command line in its folder, reads what they left, and drives its terminal."""

from __future__ import annotations

import contextlib
import importlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.engine import answers
from waitpoint.types import Command

ROOT = Path(__file__).resolve().parents[2]
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
QUESTION = "Shall I leave a note about what I did? Tell me its name, such as done.md, or no."
PROMPT = r"\(q\)uit\? "
PATIENCE = 30.0


def demo(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(DEMO), "--folder", str(folder), *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=50, stdin=subprocess.DEVNULL)


def waitpoint(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [WAITPOINT, *words], capture_output=True, text=True, timeout=50, cwd=folder, stdin=subprocess.DEVNULL,
        env=os.environ | env,
    )  # fmt: skip


def waiting(folder: Path) -> dict[str, str]:
    """Map each file that is asked about, or each question of the agent, to the question's id."""
    with SqliteSaver(folder / "threads.db") as saver:
        return {q.value["args"].get("path", q.value["args"].get("question")): q.id for q in saver.pending()}


def files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder / "files")) for p in (folder / "files").rglob("*") if p.is_file()}


def touches(folder: Path) -> Counter[str]:
    """Count, by the log that the effects write, how often each file was touched."""
    log = folder / "audit.log"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return Counter(re.sub(r"^\S+ \S+ \w+ ", "", line) for line in lines)


def record(folder: Path, decisions: dict[str, Any]) -> None:
    """Decide on these without running anything."""
    ids = waiting(folder)
    with SqliteSaver(folder / "threads.db") as saver:
        for what, decision in decisions.items():
            answers.answer(saver, ids[what], decision)


class Terminal:
    """The demo on a pseudo-terminal, driven as a person would."""

    def __init__(self, folder: Path, editor: str = "false") -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ |= {"TERM": "dumb", "EDITOR": editor, "VISUAL": ""}
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
            is_heard = "goes on here" in self.shown
            if pressing and not is_heard and not select.select([self.fd], [], [], 1.0)[0]:
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


@contextlib.contextmanager
def imported() -> Iterator[Any]:
    """Import the agent as the demo does."""
    sys.path.insert(0, str(DEMO.parent))
    try:
        yield importlib.import_module("cleanup_agent")
    finally:
        sys.path.remove(str(DEMO.parent))


def leave_in_doubt(folder: Path, program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Approve the deletion of untitled.txt, stop in the middle of it, and let the file say neither yes nor no."""
    approve = Command(resume={waiting(folder)["untitled.txt"]: {"type": "approve"}})
    with SqliteSaver(folder / "threads.db") as saver, monkeypatch.context() as patched:
        agent = program.make_agent(program.Folder(folder / "files"), checkpointer=saver)
        patched.setattr(Path, "unlink", stopped)
        with pytest.raises(KeyboardInterrupt):
            agent.invoke(approve, {"configurable": {"thread_id": "cleanup"}})
    (folder / "files" / "untitled.txt").write_text("something else")


def stopped(_path: Path) -> None:
    raise KeyboardInterrupt
