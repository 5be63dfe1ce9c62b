"""Errors about what a model did: arguments that fit no tool, a typed result that is none. They carry what it said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.tools import ToolException

from waitpoint.errors import InvalidUpdateError, WaitpointError


class ToolInvocationError(WaitpointError, ToolException):
    """The model's arguments do not fit the tool; the text names only arguments that the model controls."""

    code = "tool_arguments"

    def __init__(
        self, tool_name: str, source: Exception, args: Mapping[str, Any], text: str | None = None,
        filtered_errors: Sequence[Any] | None = None,
    ) -> None:  # fmt: skip
        self.tool_name = tool_name
        self.source = source
        self.filtered_errors = None if filtered_errors is None else list(filtered_errors)
        self.tool_kwargs = dict(args)
        reason = source if text is None else text
        self.message = (
            f"Error invoking tool '{tool_name}' with kwargs {self.tool_kwargs} with error:\n {reason}\n "
            f"Please fix the error and try again."
        )
        super().__init__(self.message)


class UnansweredCallError(InvalidUpdateError, ValueError):
    """A tool or a hook around it gave no answer to the call, or several; give one `ToolMessage` with the call's id."""

    code = "tool_unanswered"


class StructuredOutputError(WaitpointError):
    """The model's structured output cannot be used; `ai_message` is what it said."""

    code = "structured_output"

    def __init__(self, message: str, ai_message: Any) -> None:
        super().__init__(message)
        self.ai_message = ai_message


class MultipleStructuredOutputsError(StructuredOutputError):
    """The model gave several structured outputs where one is wanted."""

    code = "structured_output_several"

    def __init__(self, tool_names: Sequence[str], ai_message: Any) -> None:
        self.tool_names = list(tool_names)
        super().__init__(
            f"The model gave {len(tool_names)} structured outputs ({', '.join(tool_names)}) where exactly one is wanted; call "
            f"one of these tools, once",
            ai_message,
        )


class StructuredOutputValidationError(StructuredOutputError):
    """The model's structured output does not fit its schema."""

    code = "structured_output_invalid"

    def __init__(self, tool_name: str, source: Exception, ai_message: Any) -> None:
        self.tool_name = tool_name
        self.source = source
        super().__init__(f"The structured output {tool_name!r} does not fit its schema: {source}", ai_message)
