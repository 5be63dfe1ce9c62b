"""A clean-up program that asks before it touches a file: a plain graph.

`look` reads the folder and proposes changes. Each proposal becomes a task of its own that asks, and acts after a yes. An
effect runs in `step()` with a probe that looks at the file, so that after a crash it is known whether it happened.
"""

from __future__ import annotations

import difflib
import hashlib
import operator
import os
import time
from pathlib import Path
from typing import Annotated, Any, TypedDict

from waitpoint.graph import END, START, StateGraph
from waitpoint.types import Happened, NotHappened, Send, interrupt, step

KEPT_LOG_LINES = 20
SHOWN_CHANGES = 16


class Proposal(TypedDict):
    """A change of one file: its new text (None: it is to be deleted), and the digest of what it held when it was read."""

    file: str
    why: str
    changes: list[str]
    digest: str
    text: str | None


class State(TypedDict):
    """What the program knows: the folder, what it proposes, and what came of it, by file."""

    folder: str
    proposals: list[Proposal]
    done: Annotated[list[dict[str, str]], operator.add]


class Outcome(TypedDict):
    """What the graph returns."""

    done: list[dict[str, str]]


class Job(TypedDict):
    """The input of one task."""

    folder: str
    proposal: Proposal


# --- looking ----------------------------------------------------------------------------------------------------------


def look(state: State) -> dict[str, Any]:
    """Read every file and propose what to do with some of them."""
    folder = Path(state["folder"])
    names = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and not p.name.startswith("."))
    contents = {name: (folder / name).read_bytes() for name in names}
    found: list[Proposal] = []
    for name, data in contents.items():
        why, text = wanted(name, data, contents)
        if why:
            lines = [] if text is None else changes(data.decode(), text)
            found.append({"file": name, "why": why, "changes": lines, "digest": digest(data), "text": text})
    return {"proposals": found}


def wanted(name: str, data: bytes, contents: dict[str, bytes]) -> tuple[str, str | None]:
    """Return why a file should go or change ("" if it is fine), and its new text."""
    if not data:
        return "it is empty", None
    original = next((other for other in contents if contents[other] == data and len(other) < len(name)), None)
    if original is not None:
        return f"it is the same as {original}", None
    stem, draft, _ = name.partition("-draft-")
    if draft and f"{stem}-final.txt" in contents:
        return f"{stem}-final.txt came after it", None
    if name.endswith(".log"):
        lines = data.decode().splitlines(keepends=True)
        if len(lines) > KEPT_LOG_LINES:
            return f"{len(lines) - KEPT_LOG_LINES} lines are old", "".join(lines[-KEPT_LOG_LINES:])
    if name.endswith(".md"):
        tidy = tidied(data.decode())
        if tidy != data.decode():
            return "it has finished tasks and stray blanks", tidy
    return "", None


def tidied(text: str) -> str:
    """Return notes without finished tasks, blanks at line ends and runs of empty lines."""
    out: list[str] = []
    for line in (each.rstrip() for each in text.splitlines()):
        if not line.lstrip().startswith("- [x]") and (line or (out and out[-1])):
            out.append(line)
    return "\n".join(out).rstrip() + "\n"


def changes(old: str, new: str) -> list[str]:
    """Return the first lines of the difference between two texts."""
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1))[2:]
    more = len(lines) - SHOWN_CHANGES
    return [*lines[:SHOWN_CHANGES], f"... and {more} more lines"] if more > 0 else lines


def each_proposal(state: State) -> list[Send] | str:
    """Start a task for each proposal."""
    return [Send("decide", {"folder": state["folder"], "proposal": p}) for p in state["proposals"]] or END


# --- asking and acting ------------------------------------------------------------------------------------------------


def decide(job: Job) -> dict[str, Any]:
    """Ask about one file; act on a yes."""
    proposal, folder = job["proposal"], job["folder"]
    file, text = proposal["file"], proposal["text"]
    yes = interrupt(question(proposal), response_schema={"type": "boolean"})
    if not yes:
        result = "kept"
    elif text is None:
        result = step(delete, folder, file, proposal["digest"], in_doubt=was_deleted)
    else:
        result = step(rewrite, folder, file, proposal["digest"], text, in_doubt=was_rewritten)
    return {"done": [{"file": file, "result": result}]}


def question(proposal: Proposal) -> dict[str, Any]:
    """Return what a person is shown."""
    action = "Delete" if proposal["text"] is None else "Rewrite"
    return {"question": f"{action} {proposal['file']}?", "why": proposal["why"], "changes": proposal["changes"]}


def delete(folder: str, file: str, expected: str) -> str:
    """Delete a file that still holds what was shown."""
    path = Path(folder, file)
    if digest_of(path) != expected:
        return "left alone: it changed after it was shown"
    path.unlink()
    note(folder, "deleted", file)
    return "deleted"


def was_deleted(key: str, args: dict[str, Any]) -> Happened | NotHappened | None:  # noqa: ARG001 - a probe's signature
    """Tell from the file whether `delete` took place; None if the file says neither."""
    folder, file, expected = args["args"]
    now = digest_of(Path(folder, file))
    if now is None:
        return Happened("deleted")
    return NotHappened() if now == expected else None


def rewrite(folder: str, file: str, expected: str, text: str) -> str:
    """Give a file that still holds what was shown its new text, all at once."""
    path = Path(folder, file)
    if digest_of(path) != expected:
        return "left alone: it changed after it was shown"
    beside = path.with_name(f".{path.name}.new")
    with beside.open("w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    beside.replace(path)
    note(folder, "rewritten", file)
    return "rewritten"


def was_rewritten(key: str, args: dict[str, Any]) -> Happened | NotHappened | None:  # noqa: ARG001 - a probe's signature
    """Tell from the file whether `rewrite` took place; None if the file says neither."""
    folder, file, expected, text = args["args"]
    now = digest_of(Path(folder, file))
    if now == digest(text.encode()):
        return Happened("rewritten")
    return NotHappened() if now == expected else None


def note(folder: str, what: str, file: str) -> None:
    """Add a line to the audit log beside the folder: one for each time a file was really touched."""
    with Path(folder).with_name("audit.log").open("a", encoding="utf-8") as log:
        log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {what} {file}\n")
        log.flush()
        os.fsync(log.fileno())


def digest(data: bytes) -> str:
    """Return a short name for a content."""
    return hashlib.sha256(data).hexdigest()[:16]


def digest_of(path: Path) -> str | None:
    """Return the digest of a file; None if there is none."""
    try:
        return digest(path.read_bytes())
    except FileNotFoundError:
        return None


builder = StateGraph(State, output_schema=Outcome)
builder.add_node("look", look)
builder.add_node("decide", decide)
builder.add_edge(START, "look")
builder.add_conditional_edges("look", each_proposal, ["decide", END])
builder.add_edge("decide", END)

# For the command line, which keeps its threads in the store of waitpoint.toml.
graph = builder.compile(name="cleanup")
