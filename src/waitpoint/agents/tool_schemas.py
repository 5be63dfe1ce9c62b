"""What a tool's arguments must be: the JSON Schema that a person is shown, and the check before anyone is asked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from langchain_core.messages import ToolCall
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError

from waitpoint import canonical, schemas
from waitpoint.agents.errors import ToolInvocationError
from waitpoint.agents.tool_node.failures import invalid_arguments
from waitpoint.agents.tool_node.inject import fill, injected_of
from waitpoint.agents.tool_node.request import ByIdentity, ToolCallRequest


def args_schema(tool: BaseTool | None) -> dict[str, Any]:
    """Return the JSON Schema of the arguments that the model sees, without titles; any object where there is none."""
    return {"type": "object"} if tool is None else _args_schema(ByIdentity(tool))


@lru_cache(maxsize=1024)
def _args_schema(same: ByIdentity) -> dict[str, Any]:
    found: Any = same.tool.tool_call_schema
    schema: dict[str, Any] = _untitled(dict(found) if isinstance(found, dict) else found.model_json_schema())
    schema.pop("description", None)  # the tool's own, not the arguments'
    schema.setdefault("type", "object")
    schema.setdefault("properties", {})
    hidden = injected_of(same.tool).hidden
    if not hidden.isdisjoint(schema["properties"]):
        schema["properties"] = {k: v for k, v in schema["properties"].items() if k not in hidden}
        schema["required"] = [k for k in schema.get("required", ()) if k not in hidden]
    return schema


def visible_args(tool: BaseTool | None, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that the tool takes from the model. What it gets from elsewhere would be shown and not be used."""
    hidden = frozenset() if tool is None else injected_of(tool).hidden
    return {name: value for name, value in args.items() if name not in hidden}


def _untitled(schema: Any) -> Any:
    """Return a schema without the titles that pydantic makes of names; a property may be called "title"."""
    if isinstance(schema, list):
        return [_untitled(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    out = {}
    for key, value in schema.items():
        if key in ("properties", "$defs", "definitions") and isinstance(value, dict):
            out[key] = {name: _untitled(part) for name, part in value.items()}
        elif key in ("enum", "const", "default", "examples"):
            out[key] = value
        elif not (key == "title" and isinstance(value, str)):
            out[key] = _untitled(value)
    return out


def call_digest(tool: BaseTool, call: Mapping[str, Any]) -> str:
    """Return the digest of what a person decides about: the tool, the schema of its arguments, the arguments."""
    return canonical.args_digest((call["name"], tool.name, _schema_digest(ByIdentity(tool)), call["args"]), {})


@lru_cache(maxsize=1024)
def _schema_digest(same: ByIdentity) -> str:
    return canonical.args_digest((_args_schema(same),), {})


def check_arguments(tool: BaseTool, request: ToolCallRequest) -> None:
    """Check a call's arguments as the tool will, without running it.

    Raises `ToolInvocationError` if they cannot work. What validators of the tool make of them is thrown away: they run on
    the arguments as they are, once, when the tool is called.
    """
    call: ToolCall = request.tool_call
    problem = argument_error(tool, call["args"], request)
    if problem is None:
        return
    if isinstance(problem, ValidationError):
        found = invalid_arguments(call["name"], problem, call["args"], injected_of(tool).hidden)
        if found is not None:
            raise found from None
        return
    raise ToolInvocationError(call["name"], problem, call["args"]) from None


def argument_error(tool: BaseTool, args: Mapping[str, Any], request: ToolCallRequest) -> Exception | None:
    """Return what is wrong with arguments, or None."""
    declared = tool.args_schema
    try:
        if isinstance(declared, type) and issubclass(declared, BaseModel):
            declared.model_validate(fill(tool, args, request.state, request.runtime) | _call_id(tool, request))
        else:
            schemas.check_answer(args_schema(tool), dict(args), title=f"arguments of {tool.name}")
    except Exception as error:  # noqa: BLE001 - validators are the user's; whatever they raise, the call cannot work
        return error
    return None


def _call_id(tool: BaseTool, request: ToolCallRequest) -> dict[str, Any]:
    """Return the parameters that langchain-core fills itself, which its schemas require."""
    declared = tool.args_schema
    assert isinstance(declared, type)
    shown = args_schema(tool)["properties"]
    fields = getattr(declared, "model_fields", {})
    hidden = [name for name in fields if name not in shown and name not in injected_of(tool).names]
    return {name: request.tool_call["id"] or "" for name in hidden if fields[name].annotation is str}
