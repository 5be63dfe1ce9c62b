"""How a server writes its log: a JSON object in each line for programs, a plain line on a terminal.

Rule: what is logged are the facts named here, and never a header, a query, a body, a key or an answer.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

FACTS = (
    "request_id", "method", "path", "status", "seconds", "thread_id", "run_id", "graph", "assistant_id", "caller", "attempt",
)  # fmt: skip


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in FACTS if getattr(record, name, None) is not None}


def _line(text: str) -> str:
    """Return a text without anything that could begin a line or steer a terminal."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


class JsonLines(logging.Formatter):
    """One JSON object for each record."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        told = {"at": at, "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
        told |= _facts(record)
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False, default=str)


class Plain(logging.Formatter):
    """One line for each record, and a traceback below it."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        facts = _facts(record)
        if record.name == "waitpoint.http" and "status" in facts:
            took = f"{facts['status']} {facts['method']} {facts['path']} {facts['seconds'] * 1000:.0f} ms"
            text = f"{at} {took}"
        else:
            named = "".join(f" {name}={value}" for name, value in facts.items())
            text = f"{at} {record.levelname.lower()} {record.getMessage()}{named}"
        error = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return f"{_line(text)}{error}"


class _Endings(logging.Filter):
    """Leaves out that a wait was cut off, which is how one ends when the server stops."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "without completing response" not in record.getMessage()


def prepare(level: str = "info", *, as_json: bool | None = None) -> None:
    """Have everything logged to standard error, as JSON unless that is a terminal."""
    handler = logging.StreamHandler(sys.stderr)
    is_json = not sys.stderr.isatty() if as_json is None else as_json
    handler.setFormatter(JsonLines() if is_json else Plain())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("waitpoint").setLevel(level.upper())
    logging.getLogger("uvicorn.error").addFilter(_Endings())
