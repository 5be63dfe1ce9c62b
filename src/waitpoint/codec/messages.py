"""Messages and documents of langchain-core, under short tags of their own.

langchain-core takes a second to import, so it is imported only when stored bytes hold such a tag; whoever has a message
to store has imported it already.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

from waitpoint.codec import models, natives
from waitpoint.codec.classes import Form
from waitpoint.codec.natives import Encoder

PREFIX: Final = "lc."
MODULE: Final = "langchain_core."

_MESSAGES: Final = {
    "lc.message": "BaseMessage",
    "lc.message_chunk": "BaseMessageChunk",
    "lc.human": "HumanMessage",
    "lc.human_chunk": "HumanMessageChunk",
    "lc.ai": "AIMessage",
    "lc.ai_chunk": "AIMessageChunk",
    "lc.system": "SystemMessage",
    "lc.system_chunk": "SystemMessageChunk",
    "lc.tool": "ToolMessage",
    "lc.tool_chunk": "ToolMessageChunk",
    "lc.chat": "ChatMessage",
    "lc.chat_chunk": "ChatMessageChunk",
    "lc.function": "FunctionMessage",
    "lc.function_chunk": "FunctionMessageChunk",
    "lc.remove": "RemoveMessage",
}


@functools.cache
def forms() -> tuple[Mapping[type, Form], Mapping[str, Form]]:
    """Return the forms of all messages and documents, by class and by tag."""
    from langchain_core import messages
    from langchain_core.documents import Document

    classes = {tag: getattr(messages, name) for tag, name in _MESSAGES.items()} | {"lc.document": Document}
    by_tag = {tag: Form(*models.functions(cls, tag, lean=True)) for tag, cls in classes.items()}
    return {cls: by_tag[tag] for tag, cls in classes.items()}, by_tag


def encoder_of(cls: type) -> Encoder | None:
    """Return how values of a class of langchain-core are taken apart; None for one that is not stored.

    What a message gives as its `text` is a str of a class of its own, and comes back as a str.
    """
    if cls.__name__ == "TextAccessor":
        return natives.odd_text
    form = forms()[0].get(cls)
    return form.encode if form else None
