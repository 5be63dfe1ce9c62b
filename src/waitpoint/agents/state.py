"""The state of an agent, and how the schemas of its middleware become one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, NotRequired, Required, get_args, get_origin, get_type_hints

from langchain_core.messages import AnyMessage
from typing_extensions import TypedDict, TypeVar, is_typeddict

from waitpoint.errors import GraphValidationError
from waitpoint.graph.message import add_messages

JumpTo = Literal["tools", "model", "end"]
ResponseT = TypeVar("ResponseT", default=Any)


@dataclass(frozen=True, slots=True)
class OmitFromSchema:
    """Marks a key of a state that is no part of an agent's input or output."""

    input: bool = True
    output: bool = True


OmitFromInput = OmitFromSchema(input=True, output=False)
OmitFromOutput = OmitFromSchema(input=False, output=True)
PrivateStateAttr = OmitFromSchema(input=True, output=True)


class AgentState(TypedDict, Generic[ResponseT]):
    """What every agent's state holds; derive from it to add keys."""

    messages: Required[Annotated[list[AnyMessage], add_messages]]
    structured_response: NotRequired[Annotated[ResponseT, OmitFromInput]]


class InputAgentState(TypedDict):
    """What an agent takes as input."""

    messages: Required[Annotated[list[AnyMessage | dict[str, Any]], add_messages]]


class OutputAgentState(TypedDict, Generic[ResponseT]):
    """What an agent returns."""

    messages: Required[Annotated[list[AnyMessage], add_messages]]
    structured_response: NotRequired[ResponseT]


class AgentSchemas(TypedDict):
    """The three schemas of an agent's graph."""

    state: Any
    input: Any
    output: Any


def merged_schemas(name: str, declared: Iterable[Any]) -> AgentSchemas:
    """Join the state schemas of an agent and its middleware; where two declare a key, the later one counts.

    Raises `GraphValidationError` for a schema that is no TypedDict, or one without `messages`.
    """
    hints: dict[str, Any] = {}
    for schema in declared:
        if not is_typeddict(schema):
            raise GraphValidationError(
                f"the state schema {getattr(schema, '__name__', schema)!r} of agent {name!r} is no TypedDict - the schemas of "
                f"middleware are joined by their keys; derive it from AgentState"
            )
        hints.update(get_type_hints(schema, include_extras=True))
    if "messages" not in hints:
        raise GraphValidationError(
            f"the state of agent {name!r} has no key 'messages' - that is what an agent works on; derive its schema from "
            f"AgentState"
        )
    marks = {key: _mark(hint) for key, hint in hints.items()}
    plain = {key: _unmarked(hint) for key, hint in hints.items()}
    return {
        "state": _typed(f"{name}State", plain),
        "input": _typed(f"{name}Input", {k: h for k, h in plain.items() if not marks[k].input}),
        "output": _typed(f"{name}Output", {k: h for k, h in plain.items() if not marks[k].output}),
    }


def _typed(name: str, hints: dict[str, Any]) -> Any:
    return TypedDict(name, hints)  # type: ignore[operator]  # the functional form, with keys known at run time


def _mark(hint: Any) -> OmitFromSchema:
    for extra in _extras(hint):
        if isinstance(extra, OmitFromSchema):
            return extra
    return OmitFromSchema(input=False, output=False)


def _extras(hint: Any) -> tuple[Any, ...]:
    while get_origin(hint) in (Required, NotRequired):
        (hint,) = get_args(hint)
    return tuple(getattr(hint, "__metadata__", ()))


def _unmarked(hint: Any) -> Any:
    """Return the annotation without our marks, so that the last thing left in it is the reducer."""
    origin = get_origin(hint)
    if origin in (Required, NotRequired):
        (inner,) = get_args(hint)
        return origin[_unmarked(inner)]
    extras = getattr(hint, "__metadata__", ())
    if not any(isinstance(extra, OmitFromSchema) for extra in extras):
        return hint
    kept = tuple(extra for extra in extras if not isinstance(extra, OmitFromSchema))
    return Annotated[(hint.__origin__, *kept)] if kept else hint.__origin__
