"""Opens the arguments of a call in the user's editor, and keeps what was written until it is recorded."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from waitpoint.cli import given, safe
from waitpoint.errors import UsageError


def edited(args: dict[str, Any], name: str) -> tuple[Any, Path]:
    """Return the arguments of tool `name` as the user left them, and the file that holds them.

    Raises `UsageError` if there is no editor, if it failed, or if what it left is not JSON; then the file is kept.
    """
    handle, path_text = tempfile.mkstemp(prefix="waitpoint-", suffix=".json")  # only its owner can read it
    path = Path(path_text)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(safe.json_text(args) + "\n")
    try:
        _run(_editor(), path)
        source = path.read_text(encoding="utf-8-sig")
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    try:
        return given.parsed(source, f"What you made of the arguments of '{name}'"), path
    except UsageError as error:
        raise UsageError(f"{error} - nothing was stored; mend '{path}' and give it as --args @{path}") from None


def _editor() -> list[str]:
    for name in ("VISUAL", "EDITOR"):
        words = shlex.split(os.environ.get(name, ""))
        if words:
            return words
    if sys.stdin is not None and sys.stdin.isatty() and shutil.which("vi"):
        return ["vi"]
    raise UsageError("There is no editor to open the arguments in; set EDITOR, or give --args JSON or --set KEY=VALUE")


def _run(editor: list[str], path: Path) -> None:
    try:
        with _interrupts_left_to_it():
            code = subprocess.run([*editor, str(path)], check=False).returncode  # noqa: S603 - the user's own choice
    except OSError as error:
        raise UsageError(
            f"The editor '{editor[0]}' cannot be started - {error.strerror or error}; set EDITOR, or give --args JSON"
        ) from None
    if code != 0:
        raise UsageError(f"The editor '{editor[0]}' ended with code {code}, so nothing was stored; try again")


@contextlib.contextmanager
def _interrupts_left_to_it() -> Iterator[None]:
    """Let Ctrl-C mean what it means in the editor: it reaches this process too, and would end it and the text."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
