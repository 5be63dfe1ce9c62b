"""Which errors of tool calls a `ToolNode` tells the model of, and which it raises."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import ToolException, tool
from pydantic import BaseModel, Field

from tests.agents.scripted import calls
from tests.behaviours.conftest import Call
from waitpoint.agents.errors import ToolInvocationError
from waitpoint.errors import ParentCommand
from waitpoint.prebuilt import ToolNode
from waitpoint.types import Command


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def fail(how: str) -> str:
    """Fail."""
    raise {"value": ValueError, "key": KeyError, "tool": ToolException}[how]("badly")


class Item(BaseModel):
    """An item."""

    count: int = Field(gt=0)


NO_SUCH = calls(("sub", "c1", {}))
UNFIT = calls(("add", "c1", {"a": "x", "b": 2}))


def failing(how: str) -> AIMessage:
    return calls(("fail", "c1", {"how": how}))


def test_an_unknown_tool_is_told_with_those_that_there_are(call: Call) -> None:
    (answer,) = call(ToolNode([add, fail]), [NO_SUCH])
    assert answer.content == "Error: sub is not a valid tool, try one of [add, fail]."
    assert (answer.status, answer.name, answer.tool_call_id) == ("error", "sub", "c1")


def test_by_default_the_model_is_told_of_its_own_arguments_only(call: Call) -> None:
    (answer,) = call(ToolNode([add, fail]), [UNFIT])
    assert answer.status == "error"
    assert answer.content.startswith("Error invoking tool 'add' with kwargs {'a': 'x', 'b': 2} with error:\n")
    assert "a: Input should be a valid integer" in answer.content
    assert "Please fix the error and try again." in answer.content
    with pytest.raises(ValueError, match="badly"):
        call(ToolNode([add, fail]), [failing("value")])


HANDLED: list[tuple[Any, str, str | None]] = [
    (True, "value", "Error: ValueError('badly')\n Please fix your mistakes."),
    ("try later", "value", "try later"),
    (ValueError, "value", "Error: ValueError('badly')\n Please fix your mistakes."),
    (ValueError, "key", None),
    ((ValueError, KeyError), "key", "Error: KeyError('badly')\n Please fix your mistakes."),
    ((ValueError,), "key", None),
    (lambda error: f"told of {error!r}", "key", "told of KeyError('badly')"),
    (False, "value", None),
    (True, "tool", "Error: ToolException('badly')\n Please fix your mistakes."),
]


@pytest.mark.parametrize(("handle", "how", "told"), HANDLED, ids=map(str, range(len(HANDLED))))
def test_which_errors_are_told_is_up_to_handle_tool_errors(handle: Any, how: str, told: str | None, call: Call) -> None:
    node = ToolNode([fail], handle_tool_errors=handle)
    if told is None:
        with pytest.raises((ValueError, KeyError), match="badly"):
            call(node, [failing(how)])
        return
    (answer,) = call(node, [failing(how)])
    assert (answer.content, answer.status) == (told, "error")


def _values(error: ValueError) -> str:
    return "a value"


def _values_or_keys(error: ValueError | KeyError) -> str:
    return "a value or a key"


class Handler:
    """Handles as a method."""

    def keys(self, error: KeyError) -> str:
        """Tell of keys."""
        return "a key"


@pytest.mark.parametrize(
    ("handle", "how", "told"),
    [
        (_values, "value", "a value"),
        (_values, "key", None),
        (_values_or_keys, "key", "a value or a key"),
        (_values_or_keys, "tool", None),
        (Handler().keys, "key", "a key"),
        (Handler().keys, "value", None),
    ],
)
def test_the_annotation_of_a_handler_says_what_it_handles(handle: Any, how: str, told: str | None, call: Call) -> None:
    node = ToolNode([fail], handle_tool_errors=handle)
    if told is None:
        with pytest.raises((ValueError, KeyError, ToolException), match="badly"):
            call(node, [failing(how)])
    else:
        assert [m.content for m in call(node, [failing(how)])] == [told]


def test_without_handling_wrong_arguments_are_raised_too(call: Call) -> None:
    with pytest.raises(ToolInvocationError, match="'add'") as wrong:
        call(ToolNode([add], handle_tool_errors=False), [UNFIT])
    assert (wrong.value.tool_name, wrong.value.tool_kwargs) == ("add", {"a": "x", "b": 2})
    assert "valid integer" in str(wrong.value.source)
    assert wrong.value.filtered_errors is not None
    assert [e["loc"] for e in wrong.value.filtered_errors] == [("a",)]
    assert isinstance(wrong.value, ToolException)


def test_an_error_of_one_call_waits_for_the_others_to_end(call: Call) -> None:
    ran: list[int] = []

    def note(n: int) -> str:
        """Note."""
        ran.append(n)
        return "noted"

    both = calls(("fail", "c1", {"how": "value"}), ("note", "c2", {"n": 1}))
    with pytest.raises(ValueError, match="badly"):
        call(ToolNode([fail, note]), [both])
    assert ran == [1]


def test_nested_arguments_are_named_by_their_path(call: Call) -> None:
    def order(items: list[Item]) -> str:
        """Order."""
        return "ordered"

    (answer,) = call(ToolNode([order]), [calls(("order", "c1", {"items": [{"count": 0}]}))])
    assert "items.0.count: Input should be greater than 0" in answer.content


def test_a_validation_error_in_the_tools_body_is_the_tools_own(call: Call) -> None:
    def order() -> str:
        """Order."""
        Item.model_validate({"count": "many"})
        return "ordered"

    with pytest.raises(ValueError, match="Item"):
        call(ToolNode([order]), [calls(("order", "c1", {}))])


@pytest.mark.parametrize("handle", [True, "told", (Exception,), lambda error: "told", False])
def test_what_stops_a_graph_is_no_error_of_a_tool(handle: Any, call: Call) -> None:
    def leave() -> Any:
        """Leave."""
        raise ParentCommand(Command(graph=Command.PARENT, goto="x"))

    with pytest.raises(ParentCommand):
        call(ToolNode([leave], handle_tool_errors=handle), [calls(("leave", "c1", {}))])
