"""Draws a graph in letters: a column of boxes, ways to the next one between them, all others as lines beside them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

Edge = tuple[str, str, bool]  # from, to, and whether it depends


class _Lane(NamedTuple):
    """A line beside the boxes: all ways to one target that do not come from the box right above it."""

    target: str
    top: int
    bottom: int
    conditional: bool


def drawn(notes: Mapping[str, Sequence[str]], edges: Sequence[Edge], *, first: str, last: str) -> str:
    """Return the drawing. `notes` are the nodes, each with lines to be put in its box.

    Ways that depend are dotted. A way leaves a box at its lower edge and comes to one at its name.
    """
    order = _ordered(list(notes), edges, first, last)
    width = max((len(text) for name in order for text in (name, *(f"? {n}" for n in notes[name]))), default=0) + 4
    lines: list[str] = []
    enters: dict[str, int] = {}
    leaves: dict[str, int] = {}
    for number, name in enumerate(order):
        before = order[number - 1] if number else None
        if before is not None:
            lines += _between(before, name, edges, width)
        lines.append(f"+{'-' * (width - 2)}+")
        enters[name] = len(lines)
        lines += [f"| {text:<{width - 4}} |" for text in (name, *(f"? {note}" for note in notes[name]))]
        leaves[name] = len(lines)
        lines.append(f"+{'-' * (width - 2)}+")
    follows = set(itertools.pairwise(order))
    beside = [e for e in edges if (e[0], e[1]) not in follows]
    return "\n".join(line.rstrip() for line in _beside(lines, beside, enters, leaves, width))


def _ordered(names: list[str], edges: Sequence[Edge], first: str, last: str) -> list[str]:
    """Return the nodes so that ways lead down, but for those that lead back."""
    after: dict[str, list[str]] = {name: [] for name in names}
    for source, target, _ in edges:
        after[source].append(target)
    order: list[str] = []
    seen: set[str] = set()
    for start in sorted(names, key=lambda name: name != first):
        done: list[str] = []
        stack = [(start, False)]
        while stack:
            name, is_left = stack.pop()
            if is_left:
                done.append(name)
            elif name not in seen:
                seen.add(name)
                stack.append((name, True))
                stack += [(target, False) for target in after[name] if target not in seen]
        order += reversed(done)
    return sorted(order, key=lambda name: name == last)


def _between(before: str, name: str, edges: Sequence[Edge], width: int) -> list[str]:
    way = next((e for e in edges if e[:2] == (before, name)), None)
    if way is None:
        return [" " * width]
    return [f"{':' if way[2] else '|':^{width}}", f"{'v':^{width}}"]


def _beside(
    lines: list[str], edges: Sequence[Edge], enters: Mapping[str, int], leaves: Mapping[str, int], width: int
) -> list[str]:
    lanes = []
    for target in dict.fromkeys(target for _, target, _ in edges):
        rows = [enters[target], *(leaves[source] for source, to, _ in edges if to == target)]
        dotted = all(conditional for _, to, conditional in edges if to == target)
        lanes.append(_Lane(target, min(rows), max(rows), dotted))
    grid = [list(line) for line in lines]
    ends: list[list[_Lane]] = []  # by column, the lanes in it
    for lane in sorted(lanes, key=lambda lane: lane.bottom - lane.top):
        free = (n for n, column in enumerate(ends) if all(lane.top > o.bottom or lane.bottom < o.top for o in column))
        number = next(free, len(ends))
        if number == len(ends):
            ends.append([])
        ends[number].append(lane)
        at = width + 3 + 3 * number
        for row in range(lane.top, lane.bottom + 1):
            _put(grid[row], at, ":" if lane.conditional else "|")
        for source, to, conditional in edges:
            if to == lane.target:
                _across(grid[leaves[source]], width, at, "." if conditional else "-")
        _across(grid[enters[lane.target]], width, at, "." if lane.conditional else "-")
        _put(grid[enters[lane.target]], width, "<")
    return ["".join(row) for row in grid]


def _across(row: list[str], start: int, end: int, letter: str) -> None:
    """Draw a line from a box to a lane; other lanes pass over it."""
    for at in range(start, end):
        if at >= len(row) or row[at] == " ":
            _put(row, at, letter)
    _put(row, end, "+")


def _put(row: list[str], at: int, letter: str) -> None:
    row += " " * (at + 1 - len(row))
    row[at] = letter
