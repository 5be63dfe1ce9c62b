"""A server in a process of its own, which tests kill and start again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

_PROGRAM = """
import socket, sys
from pathlib import Path
import uvicorn
from tests.server.run_graphs import counted, noting
from waitpoint.server import create_app

folder = Path(sys.argv[1])
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
listener.bind(("127.0.0.1", 0))
listener.listen(64)
app = create_app({"noting": noting(folder), "counted": counted(folder)}, folder / "threads.db")


class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(listener.getsockname()[1], flush=True)


Server(uvicorn.Config(app, log_level="warning", lifespan="on")).run([listener])
"""


class Process:
    """A running server."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-c", _PROGRAM, str(folder)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._process.poll() is not None:
            return
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextlib.contextmanager
def running(folder: Path) -> Generator[Process]:
    """Run a server; it is killed at the end of the block at the latest."""
    process = Process(folder)
    try:
        yield process
    finally:
        process.kill()
