"""Messages as they grow: each chunk of a message as the whole of what was said so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Growing:
    """The messages of one run, by their ids; chunks come and messages go out as JSON values."""

    def __init__(self) -> None:
        self._whole: dict[str, Any] = {}

    def whole(self, chunk: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """Return the message that a chunk makes with those before it, and whether it is the first of it."""
        from langchain_core.messages import AIMessageChunk

        id_ = str(chunk.get("id"))
        before = self._whole.get(id_)
        piece = AIMessageChunk.model_validate({k: v for k, v in chunk.items() if k != "tool_calls"})
        self._whole[id_] = whole = piece if before is None else before + piece
        shown = whole.model_dump(mode="json", exclude={"tool_call_chunks", "chunk_position"})
        return {**shown, "type": "ai", "id": chunk.get("id")}, before is None
