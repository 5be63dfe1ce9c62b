"""The adapter for agents: one scripted agent, played on Waitpoint and on LangChain, and told in words that hold for both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import langchain.agents
import langchain.agents.middleware
import langchain.agents.structured_output
import langchain.tools
import langgraph.prebuilt
import langgraph.store.memory
import langgraph.types
from langchain_core.messages import BaseMessage

import waitpoint.agents
import waitpoint.agents.middleware
import waitpoint.agents.structured_output
import waitpoint.prebuilt
import waitpoint.tools
import waitpoint.types
from tests.agents.scripted import Scripted


@dataclass(frozen=True)
class Library:
    """One of the two, by the names that both have."""

    name: str
    rooms: tuple[Any, ...]

    def __getattr__(self, name: str) -> Any:
        for room in self.rooms:
            if hasattr(room, name):
                return getattr(room, name)
        raise AttributeError(name)


WAITPOINT = Library(
    "waitpoint",
    (
        waitpoint.agents,
        waitpoint.agents.middleware,
        waitpoint.agents.structured_output,
        waitpoint.tools,
        waitpoint.prebuilt,
        waitpoint.types,
    ),
)
LANGCHAIN = Library(
    "langchain",
    (
        langchain.agents,
        langchain.agents.middleware,
        langchain.agents.structured_output,
        langchain.tools,
        langgraph.prebuilt,
        langgraph.types,
    ),
)


@dataclass(frozen=True)
class Agent:
    """An agent and what it is given. `options` go to `create_agent`, `keys` are more of the input.

    What is to differ is left out of the comparison: "status" of messages; with "jump" a state that is shown again, since a
    jump is a key of the state there.
    """

    replies: Sequence[Any]
    tools: Sequence[Any] = ()
    middleware: Sequence[Any] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    keys: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    call: Mapping[str, Any] = field(default_factory=dict)
    differs: Sequence[str] = ()


Program = Callable[[Library, list[Any]], Agent]
"""Makes an agent of a library; what it does besides, it notes in the list."""


class Stage:
    """A program on one library, to be played once."""

    def __init__(self, library: Library, make: Program) -> None:
        self.notes: list[Any] = []
        self.plan = make(library, self.notes)
        self.model = Scripted(*self.plan.replies, **self.plan.model)
        self.agent: Any = library.create_agent(
            self.model, list(self.plan.tools), middleware=list(self.plan.middleware), **self.plan.options
        )
        self.given = {"messages": [("user", "go")], **self.plan.keys}

    def _told(self, result: Any) -> dict[str, Any]:
        all_of_it = {"result": result, "shown": self.model.shown, "notes": sorted(self.notes, key=repr)}
        return {key: told(part, self.plan.differs) for key, part in all_of_it.items()}

    def invoked(self) -> dict[str, Any]:
        """Return the state at the end, what the model was shown, and what was noted."""
        try:
            result = self.agent.invoke(self.given, **self.plan.call)
        except Exception as error:
            result = failed(error)
        return self._told(result)

    def awaited(self) -> dict[str, Any]:
        """Return the same of `ainvoke`."""
        try:
            result = asyncio.run(self.agent.ainvoke(self.given, **self.plan.call))
        except Exception as error:
            result = failed(error)
        return self._told(result)

    def streamed(self) -> list[Any]:
        """Return the parts in modes `values` and `updates`; those of tools that run at once in the order of their calls."""
        parts: list[Any] = []
        try:
            for mode, part in self.agent.stream(self.given, stream_mode=["values", "updates"], **self.plan.call):
                parts.append((mode, told(part, self.plan.differs)))
        except Exception as error:
            parts.append(failed(error))
        return _in_order(_once(parts) if "jump" in self.plan.differs else parts)


def failed(error: Exception) -> str:
    """Return the name of an error if both libraries have it, else that of the built-in one it is."""
    shared = (type(error), *(cls for cls in type(error).__mro__ if cls.__module__ == "builtins"))
    known = ("StructuredOutputValidationError", "MultipleStructuredOutputsError", "InvalidUpdateError")
    return next(cls.__name__ for cls in shared if cls.__module__ == "builtins" or cls.__name__ in known)


def _once(parts: list[Any]) -> list[Any]:
    states = [part for part in parts if part[0] == "values"]
    repeated = [id(later) for earlier, later in pairwise(states) if earlier == later]
    return [part for part in parts if id(part) not in repeated]


def _in_order(parts: list[Any]) -> list[Any]:
    out: list[Any] = []
    tools: list[Any] = []
    for part in parts:
        if part[0] == "updates" and "tools" in part[1]:
            tools.append(part)
            continue
        out += [*sorted(tools, key=repr), part]
        tools = []
    return [*out, *sorted(tools, key=repr)]


def told(value: Any, without: Sequence[str] = ()) -> Any:
    """Return a value in words of neither library, messages without their ids."""
    if isinstance(value, BaseMessage):
        kept = ("content", "name", "tool_calls", "invalid_tool_calls", "tool_call_id", "status", "artifact")
        parts = {key: told(getattr(value, key), without) for key in kept if getattr(value, key, None)}
        parts = {key: part for key, part in parts.items() if key not in without}
        return (value.type, tuple(sorted(parts.items(), key=repr)))
    if isinstance(value, Mapping):
        # LangChain shows a jump as a key of the state; here it is none.
        return {key: told(part, without) for key, part in value.items() if key != "jump_to"} or None
    if isinstance(value, list | tuple):
        return [told(part, without) for part in value]
    return value if isinstance(value, str | int | float | bool | None) else repr(value)
