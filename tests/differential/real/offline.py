"""A chat model that needs no network: a function of what it is shown says what it replies, token by token."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool


def call(name: str, number: int | str, **args: Any) -> dict[str, Any]:
    """Return a tool call as a model makes it."""
    return {"name": name, "args": args, "id": f"{name}-{number}", "type": "tool_call"}


class Offline(BaseChatModel):
    """Replies by `says`, which is given the messages and the names of the tools that are bound."""

    says: Callable[[list[BaseMessage], list[str]], AIMessage]

    @property
    def _llm_type(self) -> str:
        return "offline"

    def bind_tools(self, tools: Sequence[Any], **settings: Any) -> Any:
        """Remember the names of the tools."""
        return self.bind(tools=[convert_to_openai_tool(tool)["function"]["name"] for tool in tools])

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kw: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.says(messages, kw.get("tools", [])))])

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kw: Any
    ) -> Iterator[ChatGenerationChunk]:
        reply = self.says(messages, kw.get("tools", []))
        parts = [AIMessageChunk(content=token) for token in re.findall(r"\S+\s*", reply.text)]
        for index, made in enumerate(reply.tool_calls):
            half = {"name": made["name"], "args": "", "id": made["id"], "index": index}
            rest = {"name": None, "args": json.dumps(made["args"]), "id": None, "index": index}
            parts += [AIMessageChunk(content="", tool_call_chunks=[each]) for each in (half, rest)]
        for part in parts:
            chunk = ChatGenerationChunk(message=part)
            if run_manager is not None:
                run_manager.on_llm_new_token(part.text, chunk=chunk)
            yield chunk
