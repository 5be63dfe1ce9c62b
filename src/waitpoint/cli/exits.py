"""Exit codes, and errors as one sentence each.

0 done or waiting, 2 usage, 3 refused, 4 a node failed, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

from typing import Any

from waitpoint.errors import ConflictError, WaitpointError

DONE = 0
USAGE = 2
REFUSED = 3
FAILED = 4
STOPPED = 130


def code_of(error: BaseException) -> int | None:
    """Return the exit code of an error that was foreseen; None for any other."""
    if isinstance(error, ConflictError) or _misfits(error) is not None:
        return REFUSED
    return USAGE if isinstance(error, WaitpointError) else None


def text_of(error: BaseException) -> str:
    """Return an error as text; it may hold whatever its raiser put there."""
    misfits = _misfits(error)
    if misfits is not None:
        return "; ".join(misfits)
    if isinstance(error, WaitpointError):
        return str(error)
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def sentence(error: BaseException) -> str:
    """Return an error as the one sentence that ends a command."""
    misfits = _misfits(error)
    if misfits is None:
        return text_of(error)
    title = str(getattr(error, "title", ""))
    listed = "; ".join(misfits)
    if title.startswith("answer to "):
        return f"The {title} does not fit its schema - {listed} - nothing was stored; `show` tells what fits"
    if title.startswith("decision"):
        return f"The {title} cannot be taken - {listed} - nothing was stored; `show` tells what can be decided"
    return f"The input does not fit '{title}' - {listed} - nothing was stored; mend it and run again"


def is_misfit(error: BaseException) -> bool:
    """Whether an error says that a value does not fit its schema."""
    return _misfits(error) is not None


def name_of(error: BaseException) -> str:
    """Return a stable name of an error for programs."""
    if isinstance(error, WaitpointError):
        return error.code
    return "misfit" if _misfits(error) is not None else type(error).__name__


def _misfits(error: BaseException) -> list[str] | None:
    """Return what is wrong with a value, place by place, if this is an error of validation (pydantic's)."""
    if type(error).__name__ != "ValidationError" or not hasattr(error, "errors"):
        return None
    found: list[dict[str, Any]] = error.errors(include_url=False, include_input=False, include_context=False)
    return [f"{_place(each['loc'])}{each['msg']}" for each in found]


def _place(path: tuple[str | int, ...]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
    return f"{text}: " if text else ""
