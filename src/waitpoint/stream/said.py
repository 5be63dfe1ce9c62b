"""What models and nodes say while a run goes on, on its way to whoever listens; each message is let through once."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from waitpoint.core.channels import overwritten
from waitpoint.records import MISSING


@dataclass(slots=True, eq=False, repr=False)
class Said:
    """Something said in a task.

    kind "token": `what` is a chunk of the message that a model call (`call`) is making; "event": the same as an event of
    the content-block protocol; "end": the message, or None if the node stopped reading it; "error": what the call failed
    with; "whole": a message that a node returned or pushed; "known": messages that were there before, not to be shown.
    """

    kind: Literal["token", "event", "end", "error", "whole", "known"]
    what: Any
    metadata: Mapping[str, Any]
    call: Any = None


class Once:
    """Tells which messages are new to one consumer: by their ids, and those without one by being the same object."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._unnamed: dict[int, Any] = {}

    def know(self, messages: Iterable[Any]) -> None:
        """Take these for shown."""
        for message in messages:
            self.first(message)

    def first(self, message: Any) -> bool:
        """Whether this message was not there before; from now on it was."""
        if message.id is None:
            is_new = id(message) not in self._unnamed
            self._unnamed[id(message)] = message  # kept, so that its identity stays its own
            return is_new
        is_new = message.id not in self._ids
        self._ids.add(message.id)
        return is_new


class Chunks:
    """What mode `messages` shows to one consumer: pairs of a chunk or whole message, and its metadata."""

    def __init__(self) -> None:
        self._once = Once()
        self._speaking: dict[Any, Any] = {}  # model calls that have shown something, with the id of their message
        self._last: tuple[Any, Any] = (None, None)  # the call that spoke last, and its message's id

    def shown(self, said: Said) -> list[tuple[Any, dict[str, Any]]]:
        """Return the pairs to show for what was said; often none."""
        if said.kind == "token":
            return [self._spoken(said, said.what)]
        if said.kind == "known":
            self._once.know(said.what)
            return []
        message = said.what
        if said.kind == "error" or message is None:
            self._speaking.pop(said.call, None)
            self._last = (None, None)
            return []
        if said.kind == "event":
            message = self._chunk(said)
            return [] if message is None else [self._spoken(said, message)]
        if said.kind == "end" and said.call in self._speaking:
            del self._speaking[said.call]
            self._last = (None, None)
            self._once.know([message])
            return []
        return [(message, dict(said.metadata))] if self._once.first(message) else []

    def _spoken(self, said: Said, message: Any) -> tuple[Any, dict[str, Any]]:
        """Return the pair for a chunk; many follow each other, of one call and message."""
        if self._last[0] is not said.call or self._last[1] != message.id:
            self._once.first(message)
            self._speaking[said.call] = message.id
            self._last = (said.call, message.id)
        return message, dict(said.metadata)

    def _chunk(self, said: Said) -> Any:
        """Return the chunk that says what an event of the protocol says; None for one that only marks a place."""
        from langchain_core.messages import AIMessageChunk

        event = said.what
        if event.get("event") == "message-start":
            self._speaking[said.call] = event.get("id")
            return None
        name = self._speaking.get(said.call) or f"lc_run--{said.call}"
        index, delta = event.get("index"), event.get("delta") or {}
        if delta.get("type") == "text-delta":
            return AIMessageChunk(content=delta["text"], id=name)
        if delta.get("type") == "reasoning-delta":
            block = {"type": "reasoning", "reasoning": delta["reasoning"], "index": index}
            return AIMessageChunk(content=[block], id=name)
        content = event.get("content") or {}
        call: dict[str, Any]
        if delta.get("type") == "tool-call-delta":
            call = {"name": None, "args": delta["args"], "id": None, "index": index}
        elif event.get("event") == "content-block-start" and content.get("type") == "tool_call_chunk":
            call = {**{k: content.get(k) for k in ("name", "args", "id")}, "index": index}
        else:
            return None
        call["type"] = "tool_call_chunk"
        return AIMessageChunk.model_validate({"content": "", "tool_call_chunks": [call], "id": name})


def messages_in(values: Iterable[Any]) -> list[Any]:
    """Return the messages among these values and in lists of them, in order; removals are none."""
    if "langchain_core.messages" not in sys.modules:
        return []  # nobody can have made one
    from langchain_core.messages import BaseMessage, RemoveMessage

    found: list[Any] = []
    for value in values:
        inner = overwritten(value)
        given = value if inner is MISSING else inner
        items = given if isinstance(given, list | tuple) else (given,)
        found += [m for m in items if isinstance(m, BaseMessage) and not isinstance(m, RemoveMessage)]
    return found
