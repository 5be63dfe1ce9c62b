"""JSON as it is given on the command line: as text, as @FILE, or as - from standard input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from waitpoint.errors import UsageError

MOST_BYTES = 64 * 1024 * 1024


def json_value(text: str, what: str) -> Any:
    """Return the value that an argument gives; `what` names it in errors ("The answer"). Raises `UsageError`."""
    return parsed(_read(text, what), what)


def parsed(source: str, what: str) -> Any:
    """Return the value of a JSON text that was read somewhere. Raises `UsageError`."""
    try:
        return json.loads(source, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise UsageError(_not_json(source, what, error)) from None
    except (RecursionError, ValueError) as error:
        raise UsageError(f"{what} is not JSON that can be stored - {error}; see https://www.json.org") from None


def _read(text: str, what: str) -> str:
    if text == "-":
        if sys.stdin is None or sys.stdin.closed:
            raise UsageError(f"{what} was to be read from standard input, which is closed; give it as text or @FILE")
        data = sys.stdin.buffer.read(MOST_BYTES + 1)
    elif text.startswith("@"):
        data = _of_file(text[1:], what)
    else:
        return text
    if len(data) > MOST_BYTES:
        raise UsageError(f"{what} is larger than {MOST_BYTES // 1024 // 1024} MB; store it elsewhere and give its name")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{what} is not UTF-8 text, so it is not JSON; save it as UTF-8") from None


def _of_file(name: str, what: str) -> bytes:
    if not name:
        raise UsageError(f"{what} is just '@', which names no file; write @FILE, or - for standard input")
    try:
        with Path(name).open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{what} cannot be read from '{name}' - {error.strerror or error}; check the path") from None


def _not_json(source: str, what: str, error: json.JSONDecodeError) -> str:
    if not source.strip():
        return f"{what} is empty, and that is not JSON; for an empty text give '\"\"', for nothing null"
    where = f"line {error.lineno} column {error.colno}"
    cure = "put it into single quotes, so that the shell leaves it alone"
    word = source.strip()
    if word.lower() in ("true", "false", "null", "yes", "no", "none"):
        meant = {"yes": '"yes"', "no": '"no"', "none": "null"}.get(word.lower(), word.lower())
        cure = f"did you mean '{meant}'?"
    elif word[0] not in '{["' and len(word) < 200 and "\n" not in word:
        cure = f"if it is a text, put it into quotes: '{json.dumps(word, ensure_ascii=False)}'"
    return f"{what} is not JSON - {error.msg} at {where} - {cure}"


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
