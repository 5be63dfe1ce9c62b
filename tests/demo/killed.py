"""Run the clean-up demo and kill it at each of its points in turn, then start it again; a folder is left for each.

    python tests/demo/killed.py FOLDER STEP

A point is a moment before or after a transition of the store, an effect on a file (the demo's own files too), or a line of
the audit log. Every STEP-th point gets a folder of its own. Each run is a fork, so that nothing is imported twice. Prints a
JSON line for each point: its number, its name, how the first run ended and how the second.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import cleanup
import cleanup_agent

from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.types import Question

MEETING = "notes/meeting.md"  # is to stay as it is
CHINESE = "notes/会议纪要.md"  # is written as a person wants it
LOG = "server.log"  # is to be longer, which the agent proposes anew


class Points:
    """Counts the points of a run and dies at one of them."""

    def __init__(self, fatal: int, told: int) -> None:
        self.fatal = fatal
        self.told = told
        self.names: list[str] = []

    def pass_by(self, name: str) -> None:
        self.names.append(name)
        if len(self.names) == self.fatal:
            os.write(self.told, json.dumps(self.names).encode())
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: Any, name: str) -> None:
        inner: Callable[..., Any] = getattr(owner, name)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self.pass_by(f"before {name}")
            result = inner(*args, **kwargs)
            self.pass_by(f"after {name}")
            return result

        setattr(owner, name, wrapped)


class Terminal:
    """A standard stream that says it is a terminal and shows nothing."""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass


def answer(question: Question, _count: int, _described: Any, _is_open: Any) -> dict[str, Any]:
    """Decide in each of the four ways, on the card alone."""
    name, args = question.value["name"], question.value["args"]
    assert question.value["type"] == "tool_approval", f"asked about a doubt that a probe can settle: {name} {args}"
    if name == "ask_user":
        return {"type": "respond", "message": "Call it done.md."}
    if args["path"] == MEETING:
        return {"type": "reject", "message": "It is read tomorrow."}
    if args["path"] == CHINESE:
        return {"type": "edit", "edited_action": {"name": name, "args": {**args, "content": "没有了\n"}}}
    if args["path"] == LOG and not args["why"].startswith("you said"):
        return {"type": "reject", "message": "keep 30 lines"}
    return {"type": "approve"}


def nowhere(_: Path) -> contextlib.AbstractContextManager[Callable[[], None]]:
    """Serve nothing."""
    return contextlib.nullcontext(lambda: None)


def run(folder: Path, fatal: int) -> tuple[int, list[str]]:
    """Run the demo in a fork; give how it ended, and the points that it passed."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        points = Points(fatal, write)
        for name in ("move", "commit", "settle", "record"):
            points.around(SqliteSaver, name)
        for name in ("unlink", "replace", "rename"):
            points.around(Path, name)
        points.around(cleanup_agent.Folder, "_note")
        cleanup.answer_to = answer
        cleanup.server = nowhere  # so that all points are of this process
        sys.stdin = sys.stdout = Terminal()  # type: ignore[assignment]
        sys.argv = ["cleanup.py", "--folder", str(folder)]
        code = cleanup.main()
        os.write(write, json.dumps(points.names).encode())
        os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), json.loads(told) if told else []


def main() -> None:
    base, step = Path(sys.argv[1]), int(sys.argv[2])
    code, names = run(base / "whole", 0)
    print(json.dumps({"point": 0, "name": "", "first": code, "second": 0, "points": len(names)}), flush=True)
    for point in range(1, len(names) + 1, step):
        folder = base / str(point)
        first, passed = run(folder, point)
        second, _ = run(folder, 0)
        line = {"point": point, "name": passed[-1], "first": first, "second": second}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
