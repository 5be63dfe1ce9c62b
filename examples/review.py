"""The terminal's side of the clean-up demo: shows a question as a card, and reads a person's answer to it."""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from waitpoint.protocol import branches_of
from waitpoint.types import Question

KEYS = {"a": "approve", "e": "edit", "r": "reject", "s": "respond"}
WORDS = {"approve": "(a)pprove", "edit": "(e)dit", "reject": "(r)eject", "respond": "an(s)wer"}
IN_DOUBT = {"h": "happened", "n": "not_happened", "s": "stop"}
drafts: dict[str, str] = {}
"""What was written in the editor, by question: if it was refused, it is there again."""


class AnsweredElsewhereError(Exception):
    """Somebody else was first, in the browser or in another terminal."""


IsOpen = Callable[[], Any]  # what it returns is true while the question is open


def allowed_decisions(question: Question) -> list[str]:
    """Return the decisions that a question's schema takes."""
    schema = question.response_schema or {}
    return list(branches_of(schema, schema.get("$defs", {})))


def answer_to(
    question: Question, count: int, described: Callable[[str, dict[str, Any]], str], is_open: IsOpen
) -> dict[str, Any] | None:
    """Show a question and read an answer to it; None to leave. Raises `AnsweredElsewhereError`."""
    value = question.value
    print(f"\n[{count} to decide] {printable(value['name'])}")
    for line in card(value, described):
        print(f"  {line}")
    if value["type"] == "in_doubt":
        key = key_pressed("  A crash left it open. (h)appened, (n)ot happened, (s)top, (q)uit? ", "hnsq", is_open)
        return None if key == "q" else {"type": IN_DOUBT[key]}
    allowed = allowed_decisions(question)
    prompt = f"  {', '.join([*(WORDS[kind] for kind in allowed), '(q)uit'])}? "
    letters = "".join(letter for letter, kind in KEYS.items() if kind in allowed)
    while (key := key_pressed(prompt, f"{letters}q", is_open)) != "q":
        decision = decided(question, KEYS[key])
        if decision is not None:
            return decision
    return None


def card(value: dict[str, Any], described: Callable[[str, dict[str, Any]], str]) -> Iterator[str]:
    """Yield all that a call would be given; of a file's new text, what it changes."""
    is_change = value["name"] in ("write_file", "delete_file")
    for key, given in value["args"].items():
        if key != "content" or not is_change:
            text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
            yield f"{printable(key):<9} {printable(text)}"
    if is_change:
        yield from (f"| {coloured(printable(line))}" for line in described(value["name"], value["args"]).split("\n"))


def decided(question: Question, kind: str) -> dict[str, Any] | None:
    """Read what a decision needs; None to choose again."""
    value = question.value
    if kind == "approve":
        return {"type": "approve"}
    if kind == "edit":
        args = edited(question.id, value["args"])
        return args and {"type": "edit", "edited_action": {"name": value["name"], "args": args}}
    text = line("  Why (the agent is told)? " if kind == "reject" else "  Your answer: ")
    if not text:
        return {"type": "reject"} if kind == "reject" and text is not None else None
    return {"type": kind, "message": text}


def edited(question: str, args: dict[str, Any]) -> dict[str, Any] | None:
    """Open the arguments in the user's editor until they are JSON; None if they stay as they are."""
    before = json.dumps(args, ensure_ascii=False, indent=2) + "\n"
    while True:
        try:
            drafts[question] = text = in_editor(drafts.get(question, before))
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"  The editor did not work: {printable(error)}. EDITOR names another.")
            return None
        try:
            found = json.loads(text)
        except ValueError as error:
            print(f"  This is no JSON: {printable(error)}")
        else:
            if isinstance(found, dict) and found != args:
                return found
            print("  Nothing was changed." if found == args else "  The arguments have to be a JSON object.")
            if found == args:
                return None
        if key_pressed("  (e)dit it again, or (b)ack? ", "eb") != "e":
            return None


def in_editor(text: str) -> str:
    """Return a text as the user left it in $EDITOR. Ctrl-C there is the editor's."""
    words = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "arguments.json")
        file.write_text(text, encoding="utf-8")
        before = signal.signal(signal.SIGINT, lambda *_: None)
        try:
            subprocess.run([*words, str(file)], check=True)
        finally:
            signal.signal(signal.SIGINT, before)
        return file.read_text(encoding="utf-8")


def key_pressed(prompt: str, allowed: str, is_open: IsOpen | None = None) -> str:
    """Ask until one of the allowed letters comes; the end of the input means the last of them.

    Raises `AnsweredElsewhereError` once the question is no longer open.
    """
    asked = prompt
    while True:
        if is_open is not None:
            print(prompt, end="", flush=True)
            prompt = ""
            while not select.select([sys.stdin], [], [], 0.5)[0]:
                if not is_open():
                    raise AnsweredElsewhereError
        text = line(prompt)
        if text is None:
            return allowed[-1]
        key = text.lower()[:1]
        if key and key in allowed:
            return key
        prompt = asked
        print(f"  Please press one of {', '.join(allowed)} and Enter.")


def line(prompt: str) -> str | None:
    """Read a line; None at the end of the input."""
    try:
        return input(prompt).strip()
    except EOFError:
        return None


def printable(value: object) -> str:
    """Return a text that cannot steer the terminal."""
    return "".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in str(value))


def coloured(text: str) -> str:
    """Return a line of a difference in its colour."""
    colour = {"+": 32, "-": 31, "@": 36}.get(text[:1])
    return text if colour is None or os.environ.get("NO_COLOR") else f"\x1b[{colour}m{text}\x1b[0m"
