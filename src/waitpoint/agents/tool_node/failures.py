"""How a failing tool call becomes an answer to the model, or an error of the run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

from langchain_core.messages import ToolCall, ToolMessage
from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from waitpoint.agents.errors import ToolInvocationError
from waitpoint.errors import GraphBubbleUp

INVALID_TOOL_NAME = "Error: {name} is not a valid tool, try one of [{known}]."
ANY_ERROR = "Error: {error}\n Please fix your mistakes."


def invalid_arguments(
    name: str, error: ValidationError, args: Mapping[str, Any], hidden: frozenset[str]
) -> ToolInvocationError | None:
    """Return the error for the model, without what it cannot see; None if it did nothing wrong."""
    own = [e for e in error.errors(include_url=False) if not (e["loc"] and e["loc"][0] in hidden)]
    if not own:
        return None
    lines = [f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in own]
    shown = {key: value for key, value in args.items() if key not in hidden}
    return ToolInvocationError(name, error, shown, "\n".join(lines), own)


def without_inputs(error: ValidationError, title: str, place: tuple[str | int, ...] = ()) -> ValidationError:
    """Return a validation error that says where and what is wrong, and not what was there: it may be anyone's secret."""
    lines: list[InitErrorDetails] = []
    for each in error.errors(include_url=False, include_input=False):
        text = PydanticCustomError(each["type"], "{text}", {"text": each["msg"]})
        lines.append({"type": text, "loc": (*place, *each["loc"]), "input": None})
    return ValidationError.from_exception_data(title, lines, hide_input=True)


HandleErrors = bool | str | type[Exception] | tuple[type[Exception], ...] | Callable[..., str]


def invalid_only(error: Exception) -> str:
    """Answer the model where its arguments were wrong; let everything else fail the run. The default."""
    if isinstance(error, ToolInvocationError):
        return error.message
    raise error


def answer_to(error: Exception, call: ToolCall, handle: HandleErrors) -> ToolMessage:
    """Return what the model is told of an error, or raise the error if it is not to be handled."""
    if isinstance(error, GraphBubbleUp) or not _handles(handle, error):
        raise error
    if isinstance(handle, str):
        text = handle
    elif callable(handle) and not isinstance(handle, type):
        text = handle(error)
    else:
        text = error.message if isinstance(error, ToolInvocationError) else ANY_ERROR.format(error=repr(error))
    return error_message(text, call)


def error_message(text: str, call: ToolCall, **more: Any) -> ToolMessage:
    """Return an answer with status error."""
    return ToolMessage(content=text, name=call["name"], tool_call_id=call["id"] or "", status="error", **more)


def _handles(handle: HandleErrors, error: Exception) -> bool:
    if isinstance(handle, bool):
        return handle
    if isinstance(handle, type | tuple):
        return isinstance(error, handle)
    return isinstance(handle, str) or isinstance(error, _types_of(handle))


def _types_of(handler: Callable[..., str]) -> tuple[type[Exception], ...]:
    """Return what a handler takes, by the annotation of its first parameter; without one everything."""
    try:
        first = next(iter(inspect.signature(handler).parameters.values()))
        hint = get_type_hints(handler).get(first.name)
    except (TypeError, ValueError, NameError, StopIteration):
        return (Exception,)
    options = get_args(hint) if get_origin(hint) is Union or type(hint).__name__ == "UnionType" else (hint,)
    found = tuple(o for o in options if isinstance(o, type) and issubclass(o, Exception))
    return found or (Exception,)
