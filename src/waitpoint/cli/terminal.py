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

_GAP = "  "
_NARROWEST = 12


class Column(NamedTuple):
    """A column of a table: its title, and its style on a terminal."""

    title: str
    style: str = ""


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
    """Write rows under titles. The last column gives way where a line would be wider than the terminal."""
    from rich.cells import cell_len, set_cell_size

    on_terminal = sys.stdout.isatty()
    titled = [tuple(column.title for column in columns), *rows]
    widths = [max(cell_len(row[i]) for row in titled) for i in range(len(columns))]
    room = max(_NARROWEST, _console().width - sum(widths[:-1]) - len(_GAP) * (len(columns) - 1))
    for number, row in enumerate(titled):
        last = row[-1]
        if on_terminal and cell_len(last) > room:
            last = set_cell_size(last, room - 1) + "…"
        cells = [text + " " * (width - cell_len(text)) for text, width in zip(row, widths, strict=True)]
        styles = [column.style if number else "bold" for column in columns]
        _line([*cells[:-1], last], styles)


def _line(cells: Sequence[str], styles: Sequence[str]) -> None:
    if not sys.stdout.isatty():
        print(_GAP.join(cells).rstrip())
        return
    from rich.text import Text

    text = Text(_GAP).join(Text(cell, style) for cell, style in zip(cells, styles, strict=True))
    text.rstrip()
    _console().print(text, soft_wrap=True)


def _console() -> Console:
    from rich.console import Console

    return Console(file=sys.stdout, markup=False, highlight=False, emoji=False)
