"""A chat model that replies from a list, notes what it was shown, and refuses a history that strict providers refuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field


class Scripted(BaseChatModel):
    """Replies in turn; a text is a message, an exception is raised. `shown` has the messages of each call."""

    replies: list[Any]
    shown: list[list[BaseMessage]] = Field(default_factory=list)
    bound: list[list[Any]] = Field(default_factory=list)

    def __init__(self, *replies: AIMessage | str | BaseException, **fields: Any) -> None:
        super().__init__(replies=list(replies), **fields)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **settings: Any) -> Any:
        """Note the tools; the script calls them as it likes."""
        self.bound.append(list(tools))
        return self.bind(**settings) if settings else self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        refuse_what_strict_providers_refuse(messages)
        self.shown.append(list(messages))
        assert len(self.shown) <= len(self.replies), f"asked {len(self.shown)} times, with {len(self.replies)} replies"
        reply = self.replies[len(self.shown) - 1]
        if isinstance(reply, BaseException):
            raise reply
        message = AIMessage(reply) if isinstance(reply, str) else reply.model_copy()
        return ChatResult(generations=[ChatGeneration(message=message)])


def calls(*named: tuple[str, str, dict[str, Any]], text: str = "") -> AIMessage:
    """Return a message of the model with these tool calls: name, id, arguments."""
    return AIMessage(text, tool_calls=[{"name": n, "id": i, "args": a, "type": "tool_call"} for n, i, a in named])


def refuse_what_strict_providers_refuse(messages: Sequence[BaseMessage]) -> None:
    """Each call has exactly one result, right after the message that made it, and no result is without a call."""
    open_ids: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            assert message.tool_call_id in open_ids, f"a result of {message.tool_call_id!r}, which is not open"
            open_ids.remove(message.tool_call_id)
            continue
        assert not open_ids, f"no result of {open_ids} before a message of type {message.type!r}"
        if isinstance(message, AIMessage):
            open_ids = [call["id"] or "" for call in (*message.tool_calls, *message.invalid_tool_calls)]
    assert not open_ids, f"no result of {open_ids} at the end"
