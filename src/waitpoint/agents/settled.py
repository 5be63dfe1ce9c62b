"""The beginnings of histories that were looked at before, so that a turn of a long conversation looks at what is new.

Rule: only messages far from the end, which no attempt decodes anew and nobody changes in place. A beginning is known by
the very messages it has, so a history that was cut, rewritten or read by another process is looked at from its start.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

KEPT_HISTORIES: Final = 128
WORTH_KEEPING: Final = 64  # a shorter history is looked through as fast
NEW: Final = 32  # so many messages at the end are looked at in any case

Shown = Callable[[Any], Any]


class Beginning:
    """Messages from the start of a history on, each call among them answered in its place.

    `ids` are theirs, `shown` is what a model is shown of them.
    """

    __slots__ = ("ids", "messages", "shown")

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.ids: set[Any] = set()
        self.shown: list[Any] = []

    def grown(self, messages: Sequence[Any], readable: Shown) -> Beginning:
        """Return the beginning that goes on with these messages. Lists are made anew: others may be reading these."""
        more = Beginning()
        more.messages = [*self.messages, *messages]
        more.ids = self.ids.union([getattr(message, "id", None) for message in messages])
        more.shown = [*self.shown, *map(readable, messages)]
        return more


NOTHING: Final = Beginning()

# By id(first message), which the beginning keeps alive.
_known: OrderedDict[int, Beginning] = OrderedDict()
_lock = threading.Lock()


def of(messages: Sequence[Any]) -> Beginning:
    """Return the longest known beginning of a history."""
    if len(messages) < WORTH_KEEPING:
        return NOTHING
    with _lock:
        found = _known.get(id(messages[0]), NOTHING)
    # Two lists of the same objects are compared without a look at any of them.
    return found if found.messages == messages[: len(found.messages)] else NOTHING


def end_of_valid(messages: Sequence[Any], start: int) -> int | None:
    """Return up to where the messages from `start` on can become part of a beginning; None if they are not valid.

    Valid is: every call is answered right after its message, in order, and nothing else is answered.
    """
    awaited: list[str] = []
    last, end = len(messages) - NEW, start
    for at in range(start, len(messages)):
        message = messages[at]
        if isinstance(message, ToolMessage):
            if not awaited or awaited.pop(0) != message.tool_call_id:
                return None
            continue
        if awaited:
            return None
        if at <= last:
            end = at
        if isinstance(message, AIMessage):
            awaited = [c["id"] for c in (*message.tool_calls, *message.invalid_tool_calls) if c["id"] is not None]
    return None if awaited else end


def keep(messages: Sequence[BaseMessage], begun: Beginning, end: int, readable: Shown) -> None:
    """Note that `begun` goes on up to `end` in this history."""
    start = len(begun.messages)
    if end - start < NEW or len(messages) < WORTH_KEEPING:  # so that few messages are put together often
        return
    grown = begun.grown(messages[start:end], readable)
    with _lock:
        _known[id(messages[0])] = grown
        _known.move_to_end(id(messages[0]))
        while len(_known) > KEPT_HISTORIES:
            _known.popitem(last=False)


def _after_fork() -> None:
    global _lock  # noqa: PLW0603 - the parent's may be held by a thread that does not exist here
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
