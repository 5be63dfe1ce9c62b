"""Typed results of an agent: asked of the model as a tool call, or through the provider's own way."""

from __future__ import annotations

import dataclasses
import json
from types import UnionType
from typing import Annotated, Any, Generic, NotRequired, Union, get_args, get_origin

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool
from pydantic import BaseModel, TypeAdapter
from typing_extensions import TypedDict, TypeVar, is_typeddict

from waitpoint import schemas
from waitpoint.agents.errors import (
    MultipleStructuredOutputsError,
    StructuredOutputError,
    StructuredOutputValidationError,
)
from waitpoint.agents.state import OmitFromInput
from waitpoint.agents.tool_node.failures import HandleErrors, error_message
from waitpoint.errors import ConfigError

SchemaT = TypeVar("SchemaT", default=Any)


class SchemaSpec(Generic[SchemaT]):
    """One schema of a result: its name, its JSON Schema, and how data becomes a value of it."""

    def __init__(self, schema: Any, strict: bool | None = None) -> None:
        self.schema = schema
        self.strict = strict
        is_raw = isinstance(schema, dict)
        if not is_raw and not _is_typed(schema):
            raise ConfigError(
                f"`response_format` is {schema!r}; give a pydantic model, dataclass, TypedDict or JSON Schema, or a strategy "
                f"made of one"
            )
        self._adapter = None if is_raw else TypeAdapter(schema)
        self.json_schema: dict[str, Any] = dict(schema) if self._adapter is None else self._adapter.json_schema()
        title = self.json_schema.get("title") if is_raw else getattr(schema, "__name__", None)
        self.name = str(title or "response")
        doc = None if is_raw else schema.__doc__
        self.description = str(self.json_schema.get("description") or doc or f"The final answer, as {self.name}.")

    def parse(self, data: Any) -> SchemaT:
        """Return data as a value of the schema. Raises what its validation raises."""
        if self._adapter is None:
            schemas.check_answer(self.json_schema, data, title=self.name)
            return data  # type: ignore[no-any-return]
        return self._adapter.validate_python(data)  # type: ignore[no-any-return]

    def tool(self) -> StructuredTool:
        """Return the schema as a tool that the model may call; it is never run."""
        declared: Any = (
            self.schema if isinstance(self.schema, type) and issubclass(self.schema, BaseModel) else self.json_schema
        )
        return StructuredTool(name=self.name, description=self.description, args_schema=declared, func=_never)


def _never(**_: Any) -> None:
    """Stand for a function where a tool has to have one."""


def _is_typed(schema: Any) -> bool:
    if not isinstance(schema, type):
        return is_typeddict(schema)
    return issubclass(schema, BaseModel) or dataclasses.is_dataclass(schema) or is_typeddict(schema)


class ToolStrategy(Generic[SchemaT]):
    """Ask for the result as a call of a tool that stands for the schema; works with every model that calls tools.

    A union of schemas, or a JSON Schema with `oneOf`, gives a tool for each. `tool_message_content` is the answer to that
    call in the history. `handle_errors` says which misfits the model is told of, to try again.
    """

    def __init__(
        self, schema: Any, *, tool_message_content: str | None = None, handle_errors: HandleErrors = True
    ) -> None:
        self.schema = schema
        self.tool_message_content = tool_message_content
        self.handle_errors = handle_errors
        self.schema_specs = [SchemaSpec[Any](each) for each in _alternatives(schema)]
        names = [spec.name for spec in self.schema_specs]
        for n, spec in enumerate(self.schema_specs):
            if spec.name in names[:n]:  # a call could mean either
                spec.name = f"{spec.name}_{n + 1}"

    def read(self, message: AIMessage) -> tuple[Any, list[ToolMessage]] | None:
        """Return the result that a message gives and the answers to its calls; None if it gives none.

        The result is in a tuple of one, or empty where the model has to try again. Raises `StructuredOutputError`.
        """
        specs = {spec.name: spec for spec in self.schema_specs}
        calls = [call for call in message.tool_calls if call["name"] in specs]
        if not calls:
            return None
        if len(calls) > 1:
            text = self._text(MultipleStructuredOutputsError([call["name"] for call in calls], message))
            return (), [error_message(text, call) for call in calls]
        (call,) = calls
        try:
            value = specs[call["name"]].parse(call["args"])
        except Exception as error:  # noqa: BLE001 - validators are the user's; the model may try again
            text = self._text(StructuredOutputValidationError(call["name"], error, message))
            return (), [error_message(text, call)]
        text = self.tool_message_content or f"Returning structured response: {value}"
        return (value,), [ToolMessage(content=text, name=call["name"], tool_call_id=call["id"] or "")]

    def _text(self, error: StructuredOutputError) -> str:
        """Return what the model is told of an error, or raise it."""
        handle = self.handle_errors
        if isinstance(handle, bool):
            fits = handle
        elif isinstance(handle, type | tuple):
            fits = isinstance(error, handle) or isinstance(getattr(error, "source", None), handle)
        else:
            fits = True
        if not fits:
            raise error
        if isinstance(handle, str):
            return handle
        if callable(handle) and not isinstance(handle, type):
            return handle(error)
        return f"Error: {error}\n Please fix your mistakes."


class ProviderStrategy(Generic[SchemaT]):
    """Ask for the result through the provider's own structured output."""

    def __init__(self, schema: Any, *, strict: bool | None = None) -> None:
        self.schema = schema
        self.schema_spec = SchemaSpec[Any](schema, strict)

    def model_settings(self) -> dict[str, Any]:
        """Return what the model is bound with."""
        spec = self.schema_spec
        described: dict[str, Any] = {"name": spec.name, "schema": spec.json_schema}
        if spec.strict is not None:
            described["strict"] = spec.strict
        return {"response_format": {"type": "json_schema", "json_schema": described}}

    def read(self, message: AIMessage) -> Any:
        """Return the result that a message gives. Raises `StructuredOutputValidationError`."""
        try:
            return self.schema_spec.parse(json.loads(message.text))
        except Exception as error:
            raise StructuredOutputValidationError(self.schema_spec.name, error, message) from error


class AutoStrategy(Generic[SchemaT]):
    """Choose by what the model can: the provider's own way where its profile says so, else a tool."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema

    def chosen(self, model: Any, *, with_tools: bool = False) -> ToolStrategy[Any] | ProviderStrategy[Any]:
        """Return the strategy for a model, which may have tools besides."""
        profile = getattr(model, "profile", None) or {}
        is_able = profile.get("structured_output") and not (with_tools and _is_one_or_the_other(model))
        if is_able and len(_alternatives(self.schema)) == 1:
            return ProviderStrategy(self.schema)
        return ToolStrategy(self.schema)


def _is_one_or_the_other(model: Any) -> bool:
    """Whether a model has tools or structured output, not both: Gemini before its third series."""
    name = str(getattr(model, "model_name", None) or getattr(model, "model", None) or "").lower()
    return "gemini" in name and "gemini-3" not in name


ResponseFormat = ToolStrategy[Any] | ProviderStrategy[Any] | AutoStrategy[Any]


def as_strategy(response_format: Any) -> ResponseFormat | None:
    """Return what was given as `response_format` as a strategy, checked. Raises `ConfigError`."""
    if response_format is None or isinstance(response_format, ToolStrategy | ProviderStrategy | AutoStrategy):
        return response_format
    for schema in _alternatives(response_format):
        SchemaSpec(schema)
    return AutoStrategy(response_format)


def structured_names(strategy: Any) -> frozenset[str]:
    """Return the names of the tools that may stand for a result."""
    if isinstance(strategy, AutoStrategy):
        strategy = ToolStrategy(strategy.schema)
    return frozenset(spec.name for spec in strategy.schema_specs) if isinstance(strategy, ToolStrategy) else frozenset()


def state_of(strategy: Any) -> list[Any]:
    """Return the part of a state's schema that says which classes a result may be of, so that they can be stored."""
    kinds = tuple(s for s in _alternatives(strategy.schema) if not isinstance(s, dict)) if strategy is not None else ()
    if not kinds:
        return []
    hint = NotRequired[Annotated[Union[kinds] | None, OmitFromInput]]  # noqa: UP007 - its members are known at run time
    return [TypedDict("StructuredState", {"structured_response": hint})]  # type: ignore[operator]


def _alternatives(schema: Any) -> list[Any]:
    if get_origin(schema) in (Union, UnionType):
        return [each for part in get_args(schema) for each in _alternatives(part)]
    if isinstance(schema, dict) and "oneOf" in schema:
        return [each for part in schema["oneOf"] for each in _alternatives(part)]
    return [schema]
