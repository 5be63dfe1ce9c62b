"""Modes `tasks`, `checkpoints`, `debug` and `tools` say the same on Waitpoint and on LangGraph, but for ids and times."""

from __future__ import annotations

import asyncio
import importlib
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from pydantic import BaseModel

from tests.differential.play import LANGGRAPH, WAITPOINT, Library

CONFIG = {"configurable": {"thread_id": "t"}}
HEX = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
Program = Callable[[Library], tuple[Any, list[Any]]]


class State(TypedDict):
    log: Annotated[list[Any], operator.add]


def says(text: str) -> Any:
    return lambda state: {"log": [text]}


def in_a_row(lib: Library, **nodes: Any) -> Any:
    graph = lib.StateGraph(State)
    before = lib.START
    for name, node in nodes.items():
        graph.add_node(name, node)
        graph.add_edge(before, name)
        before = name
    return graph


def asking(lib: Library) -> tuple[Any, list[Any]]:
    graph = in_a_row(lib, a=says("a"), ask=lambda s: {"log": [lib.interrupt("?")]}, b=says("b"))
    return graph.compile(checkpointer=lib.saver()), [{"log": ["in"]}, lib.Command(resume="yes"), {"log": ["more"]}]


def nested(lib: Library) -> tuple[Any, list[Any]]:
    inner = in_a_row(lib, x=says("x"), ask=lambda s: {"log": [lib.interrupt("?")]}).compile()
    graph = in_a_row(lib, a=says("a"), inner=inner)
    return graph.compile(checkpointer=lib.saver()), [{"log": ["in"]}, lib.Command(resume="yes")]


def without_a_saver(lib: Library) -> tuple[Any, list[Any]]:
    return in_a_row(lib, a=says("a"), b=says("b")).compile(), [{"log": []}]


def stopped_before_a_node(lib: Library) -> tuple[Any, list[Any]]:
    graph = in_a_row(lib, a=says("a"), b=says("b"))
    return graph.compile(checkpointer=lib.saver(), interrupt_before=["b"]), [{"log": ["in"]}, None]


def a_node_that_sends(lib: Library) -> tuple[Any, list[Any]]:
    graph = in_a_row(lib, a=says("a"))
    graph.add_node("b", says("b"))
    graph.add_conditional_edges("a", lambda s: lib.Send("b", {"log": ["sent"]}))
    return graph.compile(checkpointer=lib.saver()), [{"log": ["in"]}]


def a_start_with_a_router(lib: Library) -> tuple[Any, list[Any]]:
    graph = lib.StateGraph(State)
    graph.add_node("a", says("a"))
    graph.add_conditional_edges(lib.START, lambda s: ["a"], ["a"])
    return graph.compile(checkpointer=lib.saver()), [{"log": ["in"]}]


def a_fork(lib: Library) -> tuple[Any, list[Any]]:
    graph = in_a_row(lib, a=says("a"), b=says("b")).compile(checkpointer=lib.saver())
    before_b = lambda: next(s.config for s in graph.get_state_history(CONFIG) if s.next == ("b",))  # noqa: E731
    return graph, [{"log": ["in"]}, (None, before_b)]


def an_update(lib: Library) -> tuple[Any, list[Any]]:
    graph = in_a_row(lib, a=says("a"), ask=lambda s: {"log": [lib.interrupt("?")]}, c=says("c"))
    compiled = graph.compile(checkpointer=lib.saver())
    update = lambda: compiled.update_state(CONFIG, {"log": ["new"]}, as_node="a")  # noqa: E731
    return compiled, [{"log": ["in"]}, (None, update), lib.Command(resume="yes")]


def a_node_that_fails_once(lib: Library) -> tuple[Any, list[Any]]:
    attempts: list[int] = []

    def fails_once(state: State) -> Any:
        attempts.append(1)
        if len(attempts) == 1:
            raise ValueError("broken")
        return {"log": ["mended"]}

    return in_a_row(lib, a=fails_once).compile(checkpointer=lib.saver()), [{"log": []}, None]


def told(part: Any, mode: str) -> Any:
    """Return a part without ids and times, and without what is ours alone: the checkpoint that is shown at a rest."""
    ns, payload = part
    if payload == "failed":
        return payload
    names = [p.split(":")[0] for p in ns]
    if mode == "debug":
        return (
            names,
            payload["type"],
            payload["step"],
            payload["payload"]["name" if "task" in payload["type"] else "next"],
        )
    if mode == "checkpoints":
        tasks = [
            {
                k: [i["value"] for i in v] if k == "interrupts" else HEX.sub("#", repr(v))
                for k, v in t.items()
                if k != "id"
            }
            for t in payload["tasks"]
        ]
        metadata = {k: payload["metadata"][k] for k in ("source", "step")}
        where = sorted(payload["config"]["configurable"].keys() - {"checkpoint_map"})
        parent = payload["parent_config"] is not None
        return names, sorted(payload), metadata, payload["values"], payload["next"], tasks, where, parent
    told = {k: v for k, v in payload.items() if k != "id"}
    if isinstance(told.get("error"), Exception):
        told["error"] = repr(told["error"])  # the peer's are exceptions here, and texts elsewhere
    if "interrupts" in told:
        told["interrupts"] = [i["value"] for i in told["interrupts"]]
    return names, told


def repeated_at_rest(parts: list[Any], mode: str) -> list[Any]:
    """Leave out the last part of a run that rests with questions, in the modes that show its checkpoint again."""
    if not parts or parts[-1][1] == "failed":
        return parts
    if mode == "debug":
        is_checkpoint = parts[-1][1]["type"] == "checkpoint"
        return parts[:-1] if is_checkpoint and _asks(parts[-1][1]["payload"]) else parts
    return parts[:-1] if mode == "checkpoints" and _asks(parts[-1][1]) else parts


def _asks(checkpoint: Any) -> bool:
    return any(task["interrupts"] for task in checkpoint["tasks"])


PROGRAMS = [
    asking,
    nested,
    without_a_saver,
    stopped_before_a_node,
    a_node_that_sends,
    a_start_with_a_router,
    a_fork,
    an_update,
    a_node_that_fails_once,
]


def streamed(graph: Any, given: Any, mode: str) -> list[Any]:
    """Return the parts of a run, up to its error if it fails."""
    given, config = (given[0], given[1]()) if isinstance(given, tuple) else (given, CONFIG)
    parts: list[Any] = []
    try:
        for part in graph.stream(given, config, stream_mode=mode, subgraphs=True):
            parts.append(part)  # noqa: PERF402 - the list must have them when the error comes
    except ValueError:
        parts.append(((), "failed"))
    return parts


@pytest.mark.parametrize("mode", ["tasks", "checkpoints", "debug"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_the_steps_are_told_the_same(program: Program, mode: str) -> None:
    """B175, B177, B178"""
    runs = []
    for lib in (WAITPOINT, LANGGRAPH):
        graph, inputs = program(lib)
        found = []
        for given in inputs:
            parts = streamed(graph, given, mode)
            found.append([told(p, mode) for p in (repeated_at_rest(parts, mode) if lib is WAITPOINT else parts)])
        runs.append(found)
    assert runs[0] == runs[1]
    assert any(runs[0]) or (mode, program) == ("checkpoints", without_a_saver)


# --- version "v2" -----------------------------------------------------------------------------------------------------


class Model(BaseModel):
    log: Annotated[list[Any], operator.add] = []
    last: str = ""


@dataclass
class Data:
    log: Annotated[list[Any], operator.add] = field(default_factory=list)
    last: str = ""


def typed(lib: Library, schema: Any, **options: Any) -> list[Any]:
    graph = lib.StateGraph(schema, **options)
    graph.add_node("a", lambda s: {"log": ["a"], "last": "a"})
    graph.add_node("ask", lambda s: {"log": [lib.interrupt("?")]})
    graph.add_edge(lib.START, "a")
    graph.add_edge("a", "ask")
    compiled, found = graph.compile(checkpointer=lib.saver()), []
    for given in ({"log": ["in"]}, lib.Command(resume="yes")):
        for part in compiled.stream(given, CONFIG, stream_mode=["values", "updates"], version="v2"):
            data = part["data"]
            shown = [i.value for i in data["__interrupt__"]] if "__interrupt__" in str(data) else data
            found.append((sorted(part), part["type"], part["ns"], shown, [i.value for i in part.get("interrupts", ())]))
    output = compiled.invoke({"log": []}, {"configurable": {"thread_id": "other"}}, version="v2")
    return [*found, output.value, [i.value for i in output.interrupts]]


@pytest.mark.parametrize("options", [{}, {"output_schema": Data}], ids=["state", "output"])
@pytest.mark.parametrize("schema", [State, Model, Data])
def test_typed_parts_and_outputs_are_the_same(schema: Any, options: Any) -> None:
    """B182, B183, B184"""
    if schema is State and options:
        options = {"output_schema": TypedDict("Out", {"log": Annotated[list[Any], operator.add]})}
    assert typed(WAITPOINT, schema, **options) == typed(LANGGRAPH, schema, **options)


# --- tools ------------------------------------------------------------------------------------------------------------


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


def tool_graph(lib: Library) -> Any:
    prebuilt = importlib.import_module(f"{lib.name}.prebuilt")
    runtime_class = prebuilt.ToolRuntime

    def slow(word: str, runtime: Any) -> str:
        """Say it letter by letter."""
        for letter in word:
            runtime.emit_output_delta(letter)
        return word

    slow.__annotations__["runtime"] = runtime_class

    @tool
    def ask() -> str:
        """Ask."""
        return str(lib.interrupt("?"))

    graph = lib.StateGraph(lib.MessagesState)
    graph.add_node("tools", prebuilt.ToolNode([add, fail, tool(slow), ask], handle_tool_errors=True))
    graph.add_edge(lib.START, "tools")
    return graph.compile(checkpointer=lib.saver())


def call(name: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"call-{name}", "type": "tool_call"}])


def events(lib: Library, message: AIMessage, *, use_async: bool) -> list[Any]:
    graph, found = tool_graph(lib), []
    inputs = [{"messages": [message]}]
    if message.tool_calls[0]["name"] == "ask":
        inputs.append(lib.Command(resume="yes"))
    for given in inputs:
        if use_async:

            async def collected(given: Any = given) -> list[Any]:
                return [part async for part in graph.astream(given, CONFIG, stream_mode="tools")]

            parts = asyncio.run(collected())
        else:
            parts = list(graph.stream(given, CONFIG, stream_mode="tools"))
        found.append([{k: v.content if k == "output" else v for k, v in part.items()} for part in parts])
    return found


@pytest.mark.parametrize("use_async", [False, True], ids=["stream", "astream"])
@pytest.mark.parametrize(
    "message",
    [call("add", a=1, b=2), call("fail", why="broken"), call("slow", word="hey"), call("ask")],
    ids=lambda m: m.tool_calls[0]["name"],
)
def test_tools_are_told_the_same(message: AIMessage, use_async: bool) -> None:
    """B185, B186"""
    ours = events(WAITPOINT, message, use_async=use_async)
    assert ours == events(LANGGRAPH, message, use_async=use_async)
    assert ours[0][0]["event"] == "tool-started"


class Shown(TypedDict):
    log: Annotated[list[Any], operator.add]


class Private(Shown):
    notes: Annotated[list[Any], operator.add]


def parts_of_a_private_child(lib: Library, mode: str, *, called: bool) -> list[Any]:
    child = lib.StateGraph(Private, input_schema=Shown, output_schema=Shown)
    child.add_node("notes", lambda s: {"log": ["seen"], "notes": ["unseen"]})
    child.add_node("only", lambda s: {"notes": ["unseen"]})
    child.add_node("ask", lambda s: {"log": [lib.interrupt("?")]})
    built = child.add_edge(lib.START, "notes").add_edge("notes", "only").add_edge("only", "ask").compile()

    def calls(state: State) -> Any:
        return built.invoke({"log": []})

    graph = lib.StateGraph(State).add_node("child", calls if called else built).add_edge(lib.START, "child")
    compiled = graph.compile(checkpointer=lib.saver())
    found = []
    for given in ({"log": ["in"]}, lib.Command(resume="yes")):
        for namespace, part in compiled.stream(given, CONFIG, stream_mode=mode, subgraphs=True):
            if "__interrupt__" not in part:
                found.append((len(namespace), part))
    return found


@pytest.mark.parametrize("called", [False, True], ids=["a node", "called"])
@pytest.mark.parametrize("mode", ["values", "updates"])
def test_a_graph_inside_another_shows_the_keys_of_its_output(mode: str, called: bool) -> None:
    ours = parts_of_a_private_child(WAITPOINT, mode, called=called)
    assert ours == parts_of_a_private_child(LANGGRAPH, mode, called=called)
    assert len(ours) > 3
    assert "unseen" not in repr(ours)
