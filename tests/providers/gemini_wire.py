"""Google's Gen AI API: generateContent and streamGenerateContent over REST."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from tests.providers import strict
from tests.providers.server import Request, Turn, event

PATH = re.compile(r"/v1(beta)?/models/[\w.-]+:(generateContent|streamGenerateContent\?alt=sse)")
SIGNATURE = "c2lnbmVk"  # base64; sent back with the call it came with


class GeminiWire:
    """Contents of parts; a stream's parts are whole responses, and a function call is never cut."""

    stream_type: ClassVar[str] = "text/event-stream"

    def faults(self, request: Request) -> list[str]:
        wrong = [] if PATH.fullmatch(request.path) else [f"no such path '{request.path}'"]
        return wrong + strict.gemini(request.body)

    def wants_stream(self, request: Request) -> bool:
        return ":streamGenerateContent" in request.path

    def whole(self, turn: Turn) -> Any:
        texts = [{"text": turn.text}] if turn.texts else []
        return _response([*texts, *_calls(turn)], "STOP")

    def parts(self, turn: Turn) -> Iterator[str]:
        for text in turn.texts:
            yield event(_response([{"text": text}]))
        for call in _calls(turn):
            yield event(_response([call]))
        yield event(_response([{"text": ""}], "STOP"))

    def refusal(self, text: str) -> Any:
        return {"error": {"code": 400, "message": text, "status": "INVALID_ARGUMENT"}}


def _calls(turn: Turn) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = [{"functionCall": {"name": c.name, "args": dict(c.args)}} for c in turn.calls]
    for call in calls[:1]:
        call["thoughtSignature"] = SIGNATURE
    return calls


def _response(parts: list[dict[str, Any]], reason: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if reason:
        candidate["finishReason"] = reason
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "served", "responseId": "r1"}
