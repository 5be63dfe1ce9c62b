"""Where two values differ, line by line, for people who decide on the second."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from waitpoint.inbox import marked
from waitpoint.records import MISSING


class Line(NamedTuple):
    """A line of a text: kept, gone, new, or a number of kept ones that are left out."""

    kind: str  # same, old, new, skipped
    text: str


class Change(NamedTuple):
    """A named value before and after."""

    name: str
    lines: list[Line]


def changes(before: Any, after: Any) -> list[Change]:
    """Return what differs: of objects the values under each name, else the whole."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        names = [*before, *(name for name in after if name not in before)]
        pairs = [(name, before.get(name, MISSING), after.get(name, MISSING)) for name in names]
    else:
        pairs = [("", before, after)]
    return [Change(name, list(_lines(old, new))) for name, old, new in pairs if _differ(old, new)]


def _differ(old: Any, new: Any) -> bool:
    if old is MISSING or new is MISSING:
        return old is not new
    return marked.json_shown(old) != marked.json_shown(new)


def _lines(old: Any, new: Any) -> Iterator[Line]:
    before, after = _text(old), _text(new)
    if isinstance(old, str) != isinstance(new, str) and MISSING not in (old, new):
        before, after = marked.json_shown(old).split("\n"), marked.json_shown(new).split("\n")
    for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from _kept(before[a:b])
            continue
        yield from (Line("old", each) for each in before[a:b])
        yield from (Line("new", each) for each in after[c:d])


def _kept(lines: list[str]) -> Iterator[Line]:
    if len(lines) <= 7:
        yield from (Line("same", each) for each in lines)
        return
    yield from (Line("same", each) for each in lines[:3])
    yield Line("skipped", f"{len(lines) - 6} lines that stay as they are")
    yield from (Line("same", each) for each in lines[-3:])


def _text(value: Any) -> list[str]:
    if value is MISSING:
        return []
    return (value if isinstance(value, str) else marked.json_shown(value)).split("\n")
