"""Chat completions, as OpenAI speaks them, and the ways in which OpenRouter, Fireworks and Baseten differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from tests.providers import strict
from tests.providers.server import Call, Request, Turn, event

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


class OpenAIWire:
    """OpenAI itself."""

    stream_type: ClassVar[str] = "text/event-stream"
    path: ClassVar[str] = "/v1/chat/completions"

    def faults(self, request: Request) -> list[str]:
        wrong = [] if request.path == self.path else [f"no such path '{request.path}'"]
        return wrong + strict.openai(request.body)

    def wants_stream(self, request: Request) -> bool:
        return request.body.get("stream") is True

    def whole(self, turn: Turn) -> Any:
        message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
        if turn.calls:
            message["tool_calls"] = [_call(call, "".join(call.pieces())) for call in turn.calls]
        choice = {"index": 0, "message": message, "finish_reason": _reason(turn)}
        return {**self._head("chat.completion"), "choices": [choice], "usage": USAGE}

    def parts(self, turn: Turn) -> Iterator[str]:
        yield self._delta({"role": "assistant", "content": "" if turn.texts else None})
        for text in turn.texts:
            yield self._delta({"content": text})
        for index, call in enumerate(turn.calls):
            yield self._delta({"tool_calls": [{"index": index, **_call(call, "")}]})
            for piece in call.pieces():
                yield self._delta({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield self._delta({}, _reason(turn))
        yield event({**self._head("chat.completion.chunk"), "choices": [], "usage": USAGE})
        yield event("[DONE]")

    def refusal(self, text: str) -> Any:
        return {"error": {"message": text, "type": "invalid_request_error", "param": None, "code": None}}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": "chatcmpl-1", "object": kind, "created": 1_700_000_000, "model": "served"}

    def _delta(self, delta: dict[str, Any], reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return event({**self._head("chat.completion.chunk"), "choices": [choice]})


class OpenRouterWire(OpenAIWire):
    """A path of its own, comments in the stream while it waits for a host, and the host's own reason to stop."""

    path = "/api/v1/chat/completions"

    def parts(self, turn: Turn) -> Iterator[str]:
        yield ": OPENROUTER PROCESSING\n\n"
        for part in super().parts(turn):
            yield part
            yield ": OPENROUTER PROCESSING\n\n"

    def refusal(self, text: str) -> Any:
        return {"error": {"code": 400, "message": text}}

    def _head(self, kind: str) -> dict[str, Any]:
        return {**super()._head(kind), "id": "gen-1", "provider": "Somewhere", "system_fingerprint": None}

    def _delta(self, delta: dict[str, Any], reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "native_finish_reason": reason}
        return event({**self._head("chat.completion.chunk"), "choices": [choice]})


class FireworksWire(OpenAIWire):
    """A path of its own, and the tokens are counted in the part that ends the choice."""

    path = "/inference/v1/chat/completions"

    def parts(self, turn: Turn) -> Iterator[str]:
        *parts, _last, _counted, done = super().parts(turn)
        yield from parts
        choice = {"index": 0, "delta": {}, "finish_reason": _reason(turn)}
        yield event({**self._head("chat.completion.chunk"), "choices": [choice], "usage": USAGE})
        yield done


class BasetenWire(OpenAIWire):
    """Each tool call comes whole, in one part."""

    def parts(self, turn: Turn) -> Iterator[str]:
        yield self._delta({"role": "assistant", "content": ""})
        for text in turn.texts:
            yield self._delta({"content": text})
        for index, call in enumerate(turn.calls):
            yield self._delta({"tool_calls": [{"index": index, **_call(call, "".join(call.pieces()))}]})
        yield self._delta({}, _reason(turn))
        yield event({**self._head("chat.completion.chunk"), "choices": [], "usage": USAGE})
        yield event("[DONE]")


def _call(call: Call, arguments: str) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _reason(turn: Turn) -> str:
    return "tool_calls" if turn.calls else "stop"
