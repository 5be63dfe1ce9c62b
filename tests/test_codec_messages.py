"""Messages of langchain-core survive storage, and cost nothing to those who have none."""

from __future__ import annotations

import subprocess
import sys
from typing import Annotated, Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    ChatMessageChunk,
    FunctionMessage,
    FunctionMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
)
from typing_extensions import TypedDict

from waitpoint import codec
from waitpoint.errors import UnstorableValueError

CALL = {"name": "search", "args": {"q": "x", "n": [1, 2]}, "id": "c1"}
MESSAGES: list[Any] = [
    HumanMessage("hi"),
    HumanMessage([{"type": "text", "text": "hi"}, {"type": "image", "data": b"\x00"}], id="1", name="ana"),
    AIMessage("hello", id="2", response_metadata={"model": "m", "usage": {"n": 1}}),
    AIMessage("", tool_calls=[CALL], usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
    AIMessage("x", invalid_tool_calls=[{"name": "a", "args": "{", "id": "1", "error": "bad"}], extra_field=[1]),
    AIMessage("käse" * 500, additional_kwargs={"refusal": None}),
    ToolMessage("done", tool_call_id="c1", artifact=(1, 2), status="error", name="search"),
    SystemMessage("be kind"),
    ChatMessage("x", role="critic"),
    FunctionMessage("x", name="f"),
    RemoveMessage(id="1"),
    AIMessageChunk("a", tool_call_chunks=[{"name": "s", "args": "{", "id": "1", "index": 0}]),
    HumanMessageChunk("b"),
    SystemMessageChunk("c"),
    ToolMessageChunk("d", tool_call_id="1"),
    ChatMessageChunk("e", role="critic"),
    FunctionMessageChunk("f", name="n"),
    Document("text", metadata={"page": 1}, id="d"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_message_comes_back_the_same_in_every_part(message: Any) -> None:
    data = codec.dumps({"messages": [message]})
    back = codec.loads(data)["messages"][0]
    assert type(back) is type(message)
    assert back == message
    assert back.__dict__ == message.__dict__
    assert list(back.__dict__) == list(message.__dict__)
    assert back.model_fields_set == message.model_fields_set
    assert back.model_extra == message.model_extra
    assert repr(back) == repr(message)
    assert codec.dumps({"messages": [back]}) == data


def test_message_that_came_back_is_whole() -> None:
    back = codec.loads(codec.dumps(AIMessage("hello", tool_calls=[CALL])))
    assert back.additional_kwargs == {}
    assert back.tool_calls[0]["name"] == "search"
    back.additional_kwargs["x"] = 1
    assert codec.loads(codec.dumps(AIMessage("hello"))).additional_kwargs == {}
    assert back.model_copy(update={"content": "x"}).pretty_repr()


def test_the_text_of_a_message_can_be_stored_and_comes_back_as_text() -> None:
    text = HumanMessage("käse").text
    back = codec.loads(codec.dumps({"text": text, "list": [text], text: 1}))
    assert back == {"text": "käse", "list": ["käse"], "käse": 1}
    assert {type(back["text"]), type(back["list"][0])} == {str}


def test_schemas_of_messages_add_no_second_tag() -> None:
    class State(TypedDict):
        messages: Annotated[list[AnyMessage], "reducer"]
        base: BaseMessage

    registry = codec.Registry.from_schemas(State)
    assert codec.dumps(AIMessage("x"), registry) == codec.dumps(AIMessage("x"))
    assert b"lc.ai" in codec.dumps(AIMessage("x"), registry)


def test_derived_message_is_refused_until_it_is_declared() -> None:
    class Mine(AIMessage):
        score: int = 0

    with pytest.raises(UnstorableValueError, match=r"waitpoint\.codec\.register"):
        codec.dumps(Mine("x"))
    registry = codec.Registry.from_schemas(list[Mine])
    back = codec.loads(codec.dumps(Mine("x", score=2), registry), registry)
    assert (type(back), back.score) == (Mine, 2)


def test_import_of_the_codec_loads_neither_pydantic_nor_langchain() -> None:
    code = (
        "import sys\nfrom waitpoint import canonical, codec, schemas\n"
        "assert codec.loads(codec.dumps({'x': (1, 2)})) == {'x': (1, 2)}\n"
        "assert canonical.digest({'x': 1})\n"
        "heavy = {'pydantic', 'pydantic_core', 'langchain_core', 'zstandard', 'jsonschema_rs', 'asyncio'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=50)
    assert done.stdout.split() == []


def test_message_is_read_by_a_process_that_has_not_imported_langchain() -> None:
    data = codec.dumps([AIMessage("hello")])
    code = (
        "import sys\nfrom waitpoint import codec\n"
        f"value = codec.loads(bytes.fromhex({data.hex()!r}))\nprint(type(value[0]).__name__, value[0].content)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=50)
    assert done.stdout.split() == ["AIMessage", "hello"]
