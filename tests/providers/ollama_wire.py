"""Ollama's /api/chat: one JSON object, or one a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, ClassVar

from tests.providers import strict
from tests.providers.server import Request, Turn


class OllamaWire:
    """Messages without call ids; a stream's tool calls come whole."""

    stream_type: ClassVar[str] = "application/x-ndjson"

    def faults(self, request: Request) -> list[str]:
        wrong = [] if request.path == "/api/chat" else [f"no such path '{request.path}'"]
        return wrong + strict.ollama(request.body)

    def wants_stream(self, request: Request) -> bool:
        return request.body.get("stream", True) is True

    def whole(self, turn: Turn) -> Any:
        message: dict[str, Any] = {"role": "assistant", "content": turn.text}
        if turn.calls:
            message["tool_calls"] = _calls(turn)
        return _line(message, done=True)

    def parts(self, turn: Turn) -> Iterator[str]:
        for text in turn.texts:
            yield json.dumps(_line({"role": "assistant", "content": text})) + "\n"
        for call in _calls(turn):
            yield json.dumps(_line({"role": "assistant", "content": "", "tool_calls": [call]})) + "\n"
        yield json.dumps(_line({"role": "assistant", "content": ""}, done=True)) + "\n"

    def refusal(self, text: str) -> Any:
        return {"error": text}


def _calls(turn: Turn) -> list[dict[str, Any]]:
    return [{"function": {"name": call.name, "arguments": dict(call.args)}} for call in turn.calls]


def _line(message: dict[str, Any], *, done: bool = False) -> dict[str, Any]:
    line: dict[str, Any] = {"model": "served", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": done}
    if done:
        line |= {"done_reason": "stop", "prompt_eval_count": 11, "eval_count": 7, "total_duration": 1}
    return line
