"""Anthropic's messages: content blocks, and a stream of named events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from tests.providers import strict
from tests.providers.server import Request, Turn, event


class AnthropicWire:
    """One message of blocks; in a stream each block is started, grown by deltas and stopped."""

    stream_type: ClassVar[str] = "text/event-stream"

    def faults(self, request: Request) -> list[str]:
        wrong = [] if request.path.partition("?")[0] == "/v1/messages" else [f"no such path '{request.path}'"]
        wrong += [] if request.headers.get("anthropic-version") else ["the header 'anthropic-version' is missing"]
        return wrong + strict.anthropic(request.body)

    def wants_stream(self, request: Request) -> bool:
        return request.body.get("stream") is True

    def whole(self, turn: Turn) -> Any:
        texts = [{"type": "text", "text": turn.text}] if turn.texts else []
        calls = [{"type": "tool_use", "id": c.id, "name": c.name, "input": dict(c.args)} for c in turn.calls]
        return {
            **_head([*texts, *calls]),
            "stop_reason": _reason(turn),
            "usage": {"input_tokens": 11, "output_tokens": 7},
        }

    def parts(self, turn: Turn) -> Iterator[str]:
        yield _event("message_start", message={**_head([]), "usage": {"input_tokens": 11, "output_tokens": 1}})
        if turn.texts:
            yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
            yield _event("ping")
            for text in turn.texts:
                yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})
            yield _event("content_block_stop", index=0)
        for index, call in enumerate(turn.calls, start=1 if turn.texts else 0):
            block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
            yield _event("content_block_start", index=index, content_block=block)
            for piece in ["", *call.pieces()]:
                delta = {"type": "input_json_delta", "partial_json": piece}
                yield _event("content_block_delta", index=index, delta=delta)
            yield _event("content_block_stop", index=index)
        ended = {"stop_reason": _reason(turn), "stop_sequence": None}
        yield _event("message_delta", delta=ended, usage={"input_tokens": 11, "output_tokens": 7})
        yield _event("message_stop")

    def refusal(self, text: str) -> Any:
        return {"type": "error", "error": {"type": "invalid_request_error", "message": text}}


def _head(content: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "served",
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
    }


def _event(kind: str, **data: Any) -> str:
    return event({"type": kind, **data}, kind)


def _reason(turn: Turn) -> str:
    return "tool_use" if turn.calls else "end_turn"
