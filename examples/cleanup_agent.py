"""The agent of the clean-up demo: a model with tools over one folder. What writes or deletes waits for a person's decision.

A call names the file's checksum as the model saw it. So it touches only what was looked at, and after a crash a probe can
tell from the file whether the call took place.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import time
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator
from scripted_model import ScriptedModel

from waitpoint.agents import create_agent
from waitpoint.agents.middleware import HumanInTheLoopMiddleware, ToolErrorMiddleware
from waitpoint.types import Happened, NotHappened

TASK = """Clean up the folder. Delete what is empty or there twice, and drafts whose final version is there. Cut logs to \
their last 20 lines. Take finished tasks and stray blanks out of notes. Ask me whether I want a note about what you did."""
RULES = """You tidy files with the tools you have. A person decides about each change; take a no as final, and end with a \
short report of what was done and what was not."""
NO_FILE = "none"
CHANGED = "Left alone: {path} is not what you saw. List the files again."


def inside(path: str) -> str:
    """Refuse a path out of the folder: the model is told so, and no person is asked."""
    parts = PurePosixPath(path).parts
    if not parts or not path.isprintable() or path.startswith("/") or any(part.startswith(".") for part in parts):
        raise ValueError("a path has to stay inside the folder, and name no hidden file")
    return path


FilePath = Annotated[str, AfterValidator(inside)]


class Folder:
    """The tools, and how a call of theirs that a crash cut short is looked up."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    # --- tools: the model reads their docstrings ----------------------------------------------------------------------

    def list_files(self) -> str:
        """List the files: size in bytes, checksum and path of each."""
        found = sorted(p for p in self.root.rglob("*") if p.is_file() and not p.name.startswith("."))
        return "\n".join(f"{p.stat().st_size:>6} {checksum_of(p)} {p.relative_to(self.root)}" for p in found)

    def read_file(self, path: FilePath) -> str:
        """Return the text of a file."""
        return text_of(self._file(path))

    def write_file(self, path: FilePath, content: str, checksum: str, why: str) -> str:  # noqa: ARG002 - `why` is shown
        """Write a whole text file. `checksum` is the file's in list_files, "none" if it is new. `why` is for the user."""
        file = self._file(path)
        if checksum_of(file) != checksum:
            return CHANGED.format(path=path)
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_name(f".{file.name}.new")
        with beside.open("w", encoding="utf-8") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(file)
        self._note("wrote", path)
        return f"Wrote {path}."

    def delete_file(self, path: FilePath, checksum: str, why: str) -> str:  # noqa: ARG002 - `why` is shown
        """Delete a file. `checksum` is the file's in list_files. `why` is for the user."""
        file = self._file(path)
        if checksum_of(file) != checksum:
            return CHANGED.format(path=path)
        file.unlink()
        self._note("deleted", path)
        return f"Deleted {path}."

    def ask_user(self, question: str) -> str:
        """Ask the user something."""
        raise NotImplementedError("the user's answer takes the place of this tool")

    # --- after a crash: did it happen? --------------------------------------------------------------------------------

    def was_written(self, _key: str, args: dict[str, Any]) -> Happened | NotHappened | None:
        """Tell from the file whether `write_file` took place; None if it says neither: then a person is asked."""
        now = checksum_of(self._file(args["path"]))
        if now == digest(args["content"].encode()):
            return Happened(f"Wrote {args['path']}.")
        return NotHappened() if now == args["checksum"] else None

    def was_deleted(self, _key: str, args: dict[str, Any]) -> Happened | NotHappened | None:
        """Tell from the file whether `delete_file` took place."""
        now = checksum_of(self._file(args["path"]))
        if now == NO_FILE:
            return Happened(f"Deleted {args['path']}.")
        return NotHappened() if now == args["checksum"] else None

    # --- what a person is shown ---------------------------------------------------------------------------------------

    def described(self, name: str, args: dict[str, Any]) -> str:
        """Say what a call would do to the file as it is now, as a difference."""
        path, new = args["path"], args.get("content", "")
        try:
            file = self._file(path)
            old = text_of(file) if file.exists() else ""
            is_as_seen = checksum_of(file) == args["checksum"]
        except OSError as error:
            return f"The file cannot be read: {error}"
        lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2))[2:]
        if not is_as_seen:
            lines = ["It changed since the agent looked, so the call will leave it alone.", *lines]
        return "\n".join([f"{'Delete' if name == 'delete_file' else 'Write'} {path}", *lines])

    def _file(self, path: str) -> Path:
        file = self.root / path
        if not file.resolve().is_relative_to(self.root):  # by a link
            raise PermissionError(f"{path} leads out of the folder")
        return file

    def _note(self, what: str, path: str) -> None:
        """Add a line to the audit log beside the folder: one for each time a file was really touched."""
        with self.root.with_name("audit.log").open("a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {what} {path}\n")
            log.flush()
            os.fsync(log.fileno())


def text_of(file: Path) -> str:
    """Return what a file holds, as text."""
    data = file.read_bytes()
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"({len(data)} bytes that are no text)"


def digest(data: bytes) -> str:
    """Return a short name for a content."""
    return hashlib.sha256(data).hexdigest()[:12]


def checksum_of(file: Path) -> str:
    """Return the checksum of a file; "none" if there is none."""
    try:
        return digest(file.read_bytes())
    except FileNotFoundError:
        return NO_FILE


def make_agent(files: Folder, model: str = "scripted", checkpointer: Any = None) -> Any:
    """Return the agent: any model, or the scripted one, which needs no key."""
    changes: dict[str, Any] = {
        "allowed_decisions": ["approve", "edit", "reject"],
        "description": lambda call, _state, _runtime: files.described(call["name"], call["args"]),
    }
    approval = HumanInTheLoopMiddleware(
        {
            "write_file": {**changes, "probe": files.was_written},
            "delete_file": {**changes, "probe": files.was_deleted},
            "ask_user": {"allowed_decisions": ["respond"], "description": "The agent asks you something."},
        },
        interrupt_mode="per_call",
    )
    errors = ToolErrorMiddleware(lambda error, _request: str(error) if isinstance(error, OSError) else None)
    return create_agent(
        ScriptedModel() if model == "scripted" else model,
        [files.list_files, files.read_file, files.write_file, files.delete_file, files.ask_user],
        system_prompt=RULES,
        middleware=[approval, errors],
        checkpointer=checkpointer,
        name="cleanup",
    )
