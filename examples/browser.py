"""The browser's side of the clean-up demo: a server beside it, with the inbox, for as long as the demo runs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.cli import main

SECONDS = 5.0  # how long a thread that is ready may wait for the server to take it up


@contextlib.contextmanager
def server(place: Path) -> Iterator[Callable[[], str | None]]:
    """Serve the folder's graphs; yields what tells the inbox's address once it is there, None where it cannot be."""
    words = [sys.executable, __file__, str(place / "waitpoint.toml")]
    with (place / "server.log").open("w") as log:
        process = subprocess.Popen(  # in a group of its own: Ctrl-C is for the demo
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, process_group=0
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield lambda: inbox_in(process.stdout or [])
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()


def inbox_in(lines: Iterator[str] | list[str]) -> str | None:
    """Return the address of the inbox from what the server prints when it has started."""
    text = ""
    for line in lines:
        text += line
        with contextlib.suppress(ValueError):
            found: dict[str, str] = json.loads(text)
            return found.get("inbox")
    return None


def at_rest(saver: SqliteSaver, thread_id: str) -> None:
    """Return once nobody runs the thread, nor is about to: what was answered in the browser is run by the server."""
    until = time.monotonic() + SECONDS
    while rows := saver.threads(thread_id=thread_id, limit=1):
        if rows[0].status not in ("running", "ready") or (rows[0].status == "ready" and time.monotonic() > until):
            return
        time.sleep(0.1)


def serve(settings: str) -> None:
    """Serve on any free port until standard input ends: so it never outlives the demo, however that ends."""

    def watch() -> None:
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
    main(["serve", "--config", settings, "--port", "0", "--json"])


if __name__ == "__main__":
    serve(sys.argv[1])
