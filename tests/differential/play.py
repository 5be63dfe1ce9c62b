"""The adapter: one program, played on Waitpoint and on LangGraph, and told in words that hold for both.

Ids differ by design, so a question is told by its value and a checkpoint by its place in the history.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import langgraph.checkpoint.memory
import langgraph.errors
import langgraph.graph
import langgraph.types

import waitpoint.checkpoint.memory
import waitpoint.errors
import waitpoint.graph
import waitpoint.types


@dataclass(frozen=True)
class Library:
    """One of the two, by the names that both have."""

    name: str
    graph: Any
    types: Any
    errors: Any
    saver: Callable[[], Any]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.types, name) if hasattr(self.types, name) else getattr(self.graph, name)


WAITPOINT = Library(
    "waitpoint", waitpoint.graph, waitpoint.types, waitpoint.errors, waitpoint.checkpoint.memory.InMemorySaver
)
LANGGRAPH = Library(
    "langgraph", langgraph.graph, langgraph.types, langgraph.errors, langgraph.checkpoint.memory.InMemorySaver
)

CONFIG = {"configurable": {"thread_id": "t"}}

Call = Any  # an input, None, a Command, an `At`, or a function of the graph that returns one of these


@dataclass(frozen=True)
class At:
    """A call with a config of its own: that of an older checkpoint."""

    config: Any
    input: Any = None


@dataclass(frozen=True)
class Program:
    """A graph and the calls made on it. `options` go to `compile`, `config` to every call.

    `parallel`: siblings may end in any order, so of a call's parts the values are compared in order and the updates as
    a set. `differs` names what is meant to differ ("parts", "history", "state"), with the reason.
    """

    builder: Any
    calls: Sequence[Call]
    options: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    call_options: dict[str, Any] = field(default_factory=dict)
    parallel: bool = False
    differs: dict[str, str] = field(default_factory=dict)


def answers(graph: Any, by_value: dict[Any, Any]) -> dict[str, Any]:
    """Return a map of answers by id; questions are named by their values."""
    open_questions = graph.get_state(CONFIG).interrupts
    return {i.id: by_value[i.value] for i in open_questions if i.value in by_value}


def told(value: Any) -> Any:
    """Return a value without its ids and without the library that its types come from."""
    kind = type(value)
    if kind.__name__ == "Interrupt":
        return ("Interrupt", told(value.value), told(value.response_schema))
    if kind.__name__ == "Send":
        return ("Send", value.node, told(value.arg))
    if kind.__name__ == "Overwrite":
        return ("Overwrite", told(value.value))
    if isinstance(value, BaseException):
        return told_error(value)
    if kind is dict:
        return {k: told(v) for k, v in value.items()}
    if kind in {list, tuple}:
        return kind(told(v) for v in value)
    return value


def told_error(error: BaseException) -> tuple[str, str]:
    """Return an error's kind and first sentence; ours says more after that."""
    kind = type(error).__name__
    return (KINDS.get(kind, kind), re.split(r"\. |\.?\n| - ", str(error))[0])


KINDS = {"AmbiguousInterruptError": "RuntimeError"}  # a subclass, so that callers can tell


def told_task(task: Any) -> dict[str, Any]:
    """Return what a snapshot says of a task."""
    error = task.error if task.error is None or isinstance(task.error, str) else repr(task.error)
    return {
        "name": task.name,
        "error": error,
        "interrupts": told(task.interrupts),
        "result": told(task.result),
        "nested": task.state is not None,
    }


def told_state(snapshot: Any) -> dict[str, Any]:
    """Return a snapshot in words that hold for both libraries."""
    return {
        "values": told(snapshot.values),
        "next": sorted(snapshot.next),
        "source": None if snapshot.metadata is None else snapshot.metadata["source"],
        "step": None if snapshot.metadata is None else snapshot.metadata["step"],
        "has_parent": snapshot.parent_config is not None,
        "tasks": sorted((told_task(t) for t in snapshot.tasks), key=lambda t: t["name"]),
        "interrupts": sorted(told(snapshot.interrupts)),
    }


def told_parts(parts: Iterable[Any], *, parallel: bool) -> Any:
    """Return the parts of a stream."""
    found = [told(p) for p in parts]
    if not parallel:
        return found
    questions: list[Any] = []
    values: list[Any] = []
    updates: list[Any] = []
    for mode, part in found:
        asked = part.pop("__interrupt__", None)
        if mode == "updates":
            questions += [] if asked is None else asked or ["breakpoint"]
            updates += [part] if part else []
        elif not values or values[-1] != part:
            values.append(part)
    return {"values": values, "updates": sorted(updates, key=repr), "questions": sorted(questions, key=repr)}


class Stage:
    """A program on one of the libraries."""

    def __init__(self, library: Library, make: Callable[[Library], Program]) -> None:
        self.program = make(library)
        saver = library.saver()
        self.graph = self.program.builder.compile(checkpointer=saver, **self.program.options)
        self.config = {**CONFIG, **self.program.config}

    def invoked(self) -> list[Any]:
        """Return what every call returned or raised, and the state after it."""
        story: list[Any] = []
        for call in self.program.calls:
            try:
                story.append(self._told(self.graph.invoke(*self._given(call), **self.program.call_options)))
            except Exception as error:
                story.append(told(error))
            if "state" not in self.program.differs:
                story.append(told_state(self.graph.get_state(CONFIG)))
        return story

    async def awaited(self) -> list[Any]:
        """Return the same through the async methods."""
        story: list[Any] = []
        for call in self.program.calls:
            try:
                found = await self.graph.ainvoke(*self._given(call), **self.program.call_options)
                story.append(self._told(found))
            except Exception as error:
                story.append(told(error))
            if "state" not in self.program.differs:
                story.append(told_state(await self.graph.aget_state(CONFIG)))
        return story

    def streamed(self) -> list[Any]:
        """Return the parts of every call in modes `values` and `updates`."""
        story: list[Any] = []
        for call in self.program.calls:
            parts: list[Any] = []
            options = {"stream_mode": ["values", "updates"], **self.program.call_options}
            try:
                for part in self.graph.stream(*self._given(call), **options):
                    parts.append(part)  # noqa: PERF402 - what came before an error counts
            except Exception as error:
                story.append(told(error))
            story.append(told_parts(parts, parallel=self.program.parallel))
        return story

    def history(self) -> list[Any]:
        """Return the thread's history after all calls."""
        self.invoked()
        return [told_state(s) for s in self.graph.get_state_history(CONFIG)]

    def _told(self, result: Any) -> Any:
        found = told(result)
        if self.program.parallel and "__interrupt__" in found:
            found["__interrupt__"].sort(key=repr)
        return found

    def _given(self, call: Call) -> tuple[Any, Any]:
        given = call(self.graph) if callable(call) else call
        if isinstance(given, At):
            return given.input, {**given.config, **self.program.config}
        return given, self.config
