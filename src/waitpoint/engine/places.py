"""Where each id is in the lists of messages that checkpoints hold, so that adding a message looks at no other.

Rule: only for lists that nobody changes, which those of checkpoints are: nodes and callers get copies. A list that grew
out of another one shares its record; how long a list is says which of the ids there are its own.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

KEPT_LISTS = 128
WORTH_KEEPING = 32  # a shorter list is looked through as fast


class Places:
    """The ids of a list, and of those that grew out of it, in their order."""

    __slots__ = ("_ids", "_place_of")

    def __init__(self, ids: list[str], place_of: dict[str, int]) -> None:
        self._ids = ids
        self._place_of = place_of

    def holds_any(self, ids: Iterable[str], length: int) -> bool:
        """Whether one of these is among the first `length` ids."""
        place_of = self._place_of
        return any(place_of.get(one, length) < length for one in ids)

    def grown(self, length: int, ids: Sequence[str]) -> Places:
        """Return the record of a list of this length and these new ids; another one where a list grew otherwise."""
        following = self._ids[length : length + len(ids)]
        if following == ids[: len(following)]:
            for one in ids[len(following) :]:
                self._place_of[one] = len(self._ids)
                self._ids.append(one)
            return self
        before = self._ids[:length]
        return Places([*before, *ids], {one: at for at, one in enumerate([*before, *ids])})


# By id(list). The list is kept, so it stays that one; its length too, so that a change is noticed.
_known: OrderedDict[int, tuple[list[Any], int, Places]] = OrderedDict()
_lock = threading.Lock()


def of(values: list[Any]) -> Places | None:
    """Return the record of this very list, if there is one."""
    found = _known.get(id(values))
    return None if found is None or found[1] != len(values) else found[2]


def begin(values: list[Any], ids: list[Any]) -> Places | None:
    """Make the record of a list; None for one that is short, or has an id twice or none."""
    if len(values) < WORTH_KEEPING:
        return None
    place_of = {one: at for at, one in enumerate(ids)}
    if len(place_of) < len(ids) or None in place_of:
        return None
    made = Places(ids, place_of)
    with _lock:
        _keep(values, made)
    return made


def grow(old: list[Any], new: list[Any], ids: Sequence[str]) -> None:
    """Note that `new` is `old` with elements of these ids after it; none of them may be in `old`."""
    with _lock:
        found = of(old)
        if found is not None:
            _keep(new, found.grown(len(old), ids))


def repeat(old: list[Any], new: list[Any]) -> None:
    """Note that `new` holds what `old` does, decoded once more, and takes its place."""
    with _lock:
        found = of(old)
        if found is not None:
            del _known[id(old)]
            _keep(new, found)


def grew(old: list[Any], new: list[Any]) -> bool:
    """Whether `new` is known to be `old` with more after it."""
    before = of(old)
    return before is not None and before is of(new) and len(new) >= len(old)


def _keep(values: list[Any], places: Places) -> None:
    _known[id(values)] = (values, len(values), places)
    while len(_known) > KEPT_LISTS:
        _known.popitem(last=False)


def _after_fork() -> None:
    global _lock  # noqa: PLW0603 - the parent's may be held by a thread that does not exist here
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
