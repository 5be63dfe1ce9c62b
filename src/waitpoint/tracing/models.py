"""Spans of models and tools: a callback handler of LangChain's, by OpenTelemetry's conventions for generative AI."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from waitpoint.stream.listener import OfTask, handler_class
from waitpoint.tracing.spans import Span, content_is_asked_for


class Watcher(OfTask):
    """The part of the handler that is ours. It belongs to one task, and its spans lie in that task's span."""

    def __init__(self, task: Span, thread_id: str | None) -> None:
        super().__init__()
        self._task, self._thread = task, thread_id
        self._spans: dict[Any, Span] = {}  # of calls at work, and of chains the span around them

    def _around(self, parent_run_id: Any) -> Span:
        return self._spans.get(parent_run_id, self._task)

    def on_chain_start(self, *_: Any, run_id: Any, parent_run_id: Any = None, **__: Any) -> None:
        """Note what a chain lies in."""
        self._spans[run_id] = self._around(parent_run_id)

    def on_chain_end(self, *_: Any, run_id: Any, **__: Any) -> None:
        """Forget the chain."""
        self._spans.pop(run_id, None)

    def on_chain_error(self, *_: Any, run_id: Any, **__: Any) -> None:
        """Forget the chain."""
        self._spans.pop(run_id, None)

    # --- models -------------------------------------------------------------------------------------------------------

    def on_chat_model_start(self, _: Any, messages: Any, **told: Any) -> None:
        """Begin a model's span."""
        span = self._model("chat", **told)
        if content_is_asked_for():
            span.put({"gen_ai.input.messages": _json([_message(m) for m in messages[0]])})

    def on_llm_start(self, *_: Any, **told: Any) -> None:
        """Begin the span of a model that completes text."""
        self._model("text_completion", **told)

    def _model(
        self, operation: str, *, run_id: Any, parent_run_id: Any = None, metadata: Mapping[str, Any] | None = None,
        **told: Any,
    ) -> Span:  # fmt: skip
        known, asked = metadata or {}, told.get("invocation_params") or {}
        model = known.get("ls_model_name") or asked.get("model") or asked.get("model_name")
        span = self._around(parent_run_id).inside(
            f"{operation} {model}" if model else operation,
            {
                "gen_ai.operation.name": operation,
                "gen_ai.provider.name": known.get("ls_provider"),
                "gen_ai.request.model": model,
                "gen_ai.request.temperature": known.get("ls_temperature"),
                "gen_ai.request.max_tokens": known.get("ls_max_tokens"),
                "gen_ai.conversation.id": self._thread,
            },
            kind="CLIENT",
        )
        self._spans[run_id] = span
        return span

    def on_llm_end(self, response: Any, *, run_id: Any, **_: Any) -> None:
        """End a model's span with what the model told of its answer."""
        span = self._spans.pop(run_id, None)
        if span is None:
            return
        first = next((g for made in response.generations for g in made), None)
        message = getattr(first, "message", None)
        usage, told = getattr(message, "usage_metadata", None) or {}, getattr(message, "response_metadata", None) or {}
        reason = told.get("finish_reason") or told.get("stop_reason")
        span.put(
            {
                "gen_ai.response.id": told.get("id") or getattr(message, "id", None),
                "gen_ai.response.model": told.get("model_name") or told.get("model"),
                "gen_ai.response.finish_reasons": None if reason is None else [str(reason)],
                "gen_ai.usage.input_tokens": usage.get("input_tokens"),
                "gen_ai.usage.output_tokens": usage.get("output_tokens"),
            }
        )
        if message is not None and content_is_asked_for():
            span.put({"gen_ai.output.messages": _json([_message(message)])})
        span.end()

    def on_llm_error(self, error: BaseException, *, run_id: Any, **_: Any) -> None:
        """End the span of a model that failed; a node that wants no more of a stream is no failure."""
        self._failed(run_id, None if isinstance(error, GeneratorExit) else error)

    # --- tools --------------------------------------------------------------------------------------------------------

    def on_tool_start(
        self, serialized: Any, input_str: str, *, run_id: Any, parent_run_id: Any = None, **told: Any
    ) -> None:
        """Begin a tool's span."""
        name = told.get("name") or (serialized or {}).get("name") or "tool"
        self._spans[run_id] = self._around(parent_run_id).inside(
            f"execute_tool {name}",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": name,
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.id": told.get("tool_call_id"),
                "gen_ai.conversation.id": self._thread,
                "gen_ai.tool.call.arguments": input_str if content_is_asked_for() else None,
            },
        )

    def on_tool_end(self, output: Any, *, run_id: Any, **_: Any) -> None:
        """End a tool's span."""
        span = self._spans.pop(run_id, None)
        if span is not None:
            if content_is_asked_for():
                span.put({"gen_ai.tool.call.result": str(getattr(output, "content", output))})
            span.end()

    def on_tool_error(self, error: BaseException, *, run_id: Any, **_: Any) -> None:
        """End the span of a tool that failed, or that paused, which is no failure."""
        self._failed(run_id, error)

    def _failed(self, run_id: Any, error: BaseException | None) -> None:
        span = self._spans.pop(run_id, None)
        if span is not None:
            span.end(error)


def watcher(task: Span, thread_id: str | None) -> Any:
    """Return the handler for a task; None as long as nothing could call a model, since LangChain is not loaded."""
    if "langchain_core.callbacks.base" not in sys.modules:
        return None
    return handler_class(Watcher)(task, thread_id)


def _message(message: Any) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "text", "content": str(message.text)}] if message.text else []
    calls: Sequence[Mapping[str, Any]] = getattr(message, "tool_calls", None) or ()
    parts += [
        {"type": "tool_call", "id": c.get("id"), "name": c.get("name"), "arguments": c.get("args")} for c in calls
    ]
    roles = {"human": "user", "ai": "assistant"}
    return {"role": roles.get(message.type, message.type), "parts": parts}


def _json(value: Any) -> str:
    import json

    return json.dumps(value, default=str)
