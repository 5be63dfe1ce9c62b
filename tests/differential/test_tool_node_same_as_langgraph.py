"""A `ToolNode` in a graph comes to the same on Waitpoint and on LangGraph: contents, status, order, errors."""

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, StructuredTool, ToolException, tool
from pydantic import BaseModel, Field

from tests.agents.scripted import calls
from tests.differential.agents import LANGCHAIN, WAITPOINT, Library, failed, told
from tests.differential.play import LANGGRAPH
from tests.differential.play import WAITPOINT as GRAPHS

Made = tuple[list[Any], AIMessage, dict[str, Any]]
"""Tools, the message that calls them, options of the node."""


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


class Item(BaseModel):
    """An item."""

    count: int = Field(gt=0)
    tags: list[str] = []


@tool
def order(items: list[Item], note: str = "") -> str:
    """Order."""
    return f"{len(items)} {note}"


@tool
def fail(how: str) -> str:
    """Fail."""
    raise {"value": ValueError, "key": KeyError, "tool": ToolException}[how]("badly")


@tool(response_format="content_and_artifact")
def made(what: str) -> Any:
    """Make."""
    return [{"type": "text", "text": what}], {"made": what}


def give(form: str) -> Any:
    """Give."""
    forms: dict[str, Any] = {
        "text": "é",
        "none": None,
        "flag": False,
        "tuple": (1, 2),
        "nested": {"a": [{"b": "ü"}]},
        "set": {1},
        "model": Item(count=1),
        "blocks": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:x"}}],
        "texts": ["a", "b"],
        "bytes": b"a",
    }
    return forms[form]


def one(name: str, **args: Any) -> AIMessage:
    return calls((name, "c1", args))


FORMS = ("text", "none", "flag", "tuple", "nested", "set", "model", "blocks", "texts", "bytes")


def value_error(error: ValueError) -> str:
    return f"a value: {error}"


CASES: dict[str, Callable[[Library], Made]] = {
    "all forms": lambda lib: ([give], calls(*(("give", form, {"form": form}) for form in FORMS)), {}),
    "an artifact": lambda lib: ([made], one("made", what="tea"), {}),
    "unknown": lambda lib: ([add, fail], one("sub"), {}),
    "a misfit": lambda lib: ([add], one("add", a="x", b=1), {}),
    "a missing argument": lambda lib: ([add], one("add", a=1), {}),
    "a nested misfit": lambda lib: ([order], one("order", items=[{"count": 0}]), {}),
    "more arguments": lambda lib: ([add], one("add", a=1, b=2, c=3), {}),
    "raised": lambda lib: ([fail], one("fail", how="value"), {}),
    "told": lambda lib: ([fail], one("fail", how="key"), {"handle_tool_errors": True}),
    "told by a text": lambda lib: ([fail], one("fail", how="key"), {"handle_tool_errors": "later"}),
    "told by type": lambda lib: ([fail], one("fail", how="key"), {"handle_tool_errors": (KeyError,)}),
    "not told by type": lambda lib: ([fail], one("fail", how="key"), {"handle_tool_errors": ValueError}),
    "told by annotation": lambda lib: ([fail], one("fail", how="value"), {"handle_tool_errors": value_error}),
    "not told by annotation": lambda lib: ([fail], one("fail", how="key"), {"handle_tool_errors": value_error}),
    "never told": lambda lib: ([fail], one("fail", how="tool"), {"handle_tool_errors": False}),
    "a misfit told by all": lambda lib: ([add], one("add", a="x", b=1), {"handle_tool_errors": "no"}),
    "a tool's own handling": lambda lib: (
        [StructuredTool.from_function(fail.func, handle_tool_error="handled", name="fail")],  # type: ignore[attr-defined]
        one("fail", how="tool"),
        {},
    ),
    "a tool's own handling of misfits": lambda lib: (
        [StructuredTool.from_function(add.func, handle_validation_error="unfit", name="add")],  # type: ignore[attr-defined]
        one("add", a="x", b=1),
        {},
    ),
}


def case(make: Callable[[Library], Made]) -> Callable[[Library], Made]:
    """Put a case on the list."""
    CASES[make.__name__.replace("_", " ")] = make
    return make


@case
def a_command(lib: Library) -> Made:
    def hello(call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Say hello."""
        return lib.Command(update={"messages": [ToolMessage("hello", tool_call_id=call_id), AIMessage("and more")]})

    return (
        [hello, add],
        calls(("add", "c1", {"a": 1, "b": 2}), ("hello", "c2", {}), ("add", "c3", {"a": 3, "b": 4})),
        {},
    )


@case
def a_list(lib: Library) -> Made:
    def hello(call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Say hello."""
        return [lib.Command(update={"messages": [AIMessage("first")]}), ToolMessage("hello", tool_call_id=call_id)]

    return [hello], one("hello"), {}


@case
def a_wrapper(lib: Library) -> Made:
    def around(request: Any, handler: Any) -> Any:
        answer = handler(request)
        return answer.model_copy(update={"content": f"{request.tool_call['name']}: {answer.content}"})

    return [add], calls(("add", "c1", {"a": 1, "b": 2}), ("sub", "c2", {})), {"wrap_tool_call": around}


@case
def the_state_of_a_turn(lib: Library) -> Made:
    def count(messages: Annotated[list[Any], lib.InjectedState("messages")], more: int = 0) -> str:
        """Count."""
        return str(len(messages) + more)

    return [count], calls(("count", "c1", {"messages": []}), ("count", "c2", {"more": 5})), {}


def played(lib: Library, graphs: Any, make: Callable[[Library], Made]) -> Any:
    tools, message, options = make(lib)
    graph = graphs.StateGraph(graphs.MessagesState)
    graph.add_node("tools", lib.ToolNode(tools, **options))
    graph.add_edge(graphs.START, "tools")
    try:
        return told(graph.compile().invoke({"messages": [("user", "go"), message]})["messages"])
    except Exception as error:
        return failed(error)


@pytest.mark.parametrize("name", CASES)
def test_a_node_comes_to_the_same(name: str) -> None:
    assert played(WAITPOINT, GRAPHS, CASES[name]) == played(LANGCHAIN, LANGGRAPH, CASES[name])
