"""A file that effects append to, so that a test can tell what really happened in a process that died.

Each line is on disk before `append` returns; several processes may append to one file at once.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path


class Witness:
    """The witness file of a test. Lines are single words or sentences without newlines."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def append(self, line: str) -> None:
        """Write a line, and wait until the disk has it."""
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, f"{line}\n".encode())  # one write, so that lines of two processes never mix
            os.fsync(handle)
        finally:
            os.close(handle)

    def lines(self) -> list[str]:
        """Return the lines in the order in which they were written."""
        return self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []

    def counts(self) -> Counter[str]:
        """Tell how often each line was written."""
        return Counter(self.lines())
