"""Writing to the terminal: tables whose columns stay straight in every script, plain text where nobody looks.

Rule: what comes here for standard output has been through `waitpoint.cli.safe`; notes and documents are made safe here. On a
terminal there are colours and lines are cut to its width; into a file or a pipe goes plain text, whole.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from waitpoint.cli import safe

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDE = 1_000_000


class Column(NamedTuple):
    """A column of a table. `cut`: on a terminal its texts give way when the line is too long."""

    title: str
    style: str = ""
    cut: bool = False


def prepare() -> None:
    """Make both outputs take any text, whatever the locale."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(OSError, ValueError):
                stream.reconfigure(errors="backslashreplace")


def drop_output() -> None:
    """Send the rest of standard output nowhere: its reader, such as `head`, has seen enough."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str = "", style: str = "") -> None:
    """Write a line to standard output."""
    if style and sys.stdout.isatty():
        from rich.text import Text

        _console().print(Text(text, style), soft_wrap=True)
    else:
        print(text)


def note(text: str) -> None:
    """Write one line to standard error, whatever the text holds."""
    print(safe.line(text), file=sys.stderr, flush=True)


def trace_of(error: BaseException) -> None:
    """Write an error's traceback to standard error."""
    print(safe.lines("".join(traceback.format_exception(error)).rstrip()), file=sys.stderr, flush=True)


def document(value: Any) -> None:
    """Write a value as one JSON document."""
    print(safe.json_text(value))


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Write rows under titles."""
    if sys.stdout.isatty():
        _console().print(_table(columns, rows))
        return
    from rich.console import Console

    out = Console(file=io.StringIO(), width=_WIDE, color_system=None, force_terminal=False, legacy_windows=False)
    with out.capture() as captured:
        out.print(_table(columns, rows))
    for each in captured.get().splitlines():
        print(each.rstrip())


def _table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        # Cut, not wrapped: ids and commands must stay whole, and a row is one line.
        made.add_column(
            Text(column.title), no_wrap=True, overflow="ellipsis", ratio=None, min_width=None if column.cut else 1
        )
    for row in rows:
        made.add_row(*(Text(cell, column.style) for cell, column in zip(row, columns, strict=True)))
    return made


def _console() -> Console:
    from rich.console import Console

    return Console(file=sys.stdout, markup=False, highlight=False, emoji=False)
