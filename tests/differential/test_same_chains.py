"""A callback handler hears the same of a run here and on LangGraph: chains, their places, names, tags and metadata.

One difference is meant: what pauses is no error here. It ends, a node with what it asks and a graph with its state.
"""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any

import langgraph.checkpoint.memory
import langgraph.func
import langgraph.graph
import langgraph.types
import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler

import waitpoint.checkpoint.memory
import waitpoint.func
import waitpoint.graph
import waitpoint.types
from tests.differential.chain_programs import ONLY_ASYNC, PROGRAMS
from tests.differential.chain_programs import a_question_in_a_nested_graph as nested


def _api(library: Any) -> Any:
    return SimpleNamespace(
        StateGraph=library.graph.StateGraph,
        START=library.graph.START,
        interrupt=library.types.interrupt,
        Command=library.types.Command,
        Send=library.types.Send,
        RetryPolicy=library.types.RetryPolicy,
        InMemorySaver=library.checkpoint.memory.InMemorySaver,
        entrypoint=library.func.entrypoint,
        task=library.func.task,
    )


OURS, THEIRS = _api(waitpoint), _api(langgraph)

# What tells the libraries apart, or differs from run to run; where a node lies is told by its namespace of another form.
HIDDEN = ("ls_integration", "langgraph_checkpoint_ns", "checkpoint_ns", "langgraph_path", "lc_versions")


class Heard:
    """A handler that writes down what it hears, each run by the number of its start."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Any] = []
        self._numbers: dict[Any, int] = {None: -1}

    def note(self, kind: str, run_id: Any, parent: Any, *told: Any) -> None:
        if run_id not in self._numbers:
            self._numbers[run_id] = len(self._numbers)
        self.lines.append((kind, self._numbers[run_id], self._numbers.get(parent, "unknown"), *told))

    def started(
        self, kind: str, given: Any, *, run_id: Any, parent_run_id: Any, tags: Any, metadata: Any, **m: Any
    ) -> None:
        known = {k: v for k, v in (metadata or {}).items() if k not in HIDDEN}
        if "langgraph_triggers" in known and m.get("name") == "flow":
            del known["langgraph_triggers"]  # an entrypoint is started by another name
        self.note(kind, run_id, parent_run_id, m.get("name"), _plain(given), sorted(tags or ()), known)

    def ended(self, output: Any, *, run_id: Any, parent_run_id: Any, **_: Any) -> None:
        asks = isinstance(output, dict) and "__interrupt__" in output
        self.note("paused" if asks else "ended", run_id, parent_run_id, None if asks else _plain(output))

    def failed(self, error: Any, *, run_id: Any, parent_run_id: Any, **_: Any) -> None:
        paused = type(error).__name__ == "GraphInterrupt"
        self.note("paused" if paused else "failed", run_id, parent_run_id, None if paused else repr(error))


class Handler(Heard, BaseCallbackHandler):
    run_inline = True

    def on_chain_start(self, _: Any, given: Any, **told: Any) -> None:
        self.started("chain", given, **told)

    def on_chat_model_start(self, _: Any, given: Any, **told: Any) -> None:
        self.started("model", given, **{**told, "name": None})

    def on_tool_start(self, _: Any, given: Any, **told: Any) -> None:
        self.started("tool", given, **told)

    def on_chain_end(self, output: Any, **told: Any) -> None:
        self.ended(output, **told)

    def on_chain_error(self, error: Any, **told: Any) -> None:
        self.failed(error, **told)


class AsyncHandler(Heard, AsyncCallbackHandler):
    async def on_chain_start(self, _: Any, given: Any, **told: Any) -> None:
        await asyncio.sleep(0)
        self.started("chain", given, **told)

    async def on_chat_model_start(self, _: Any, given: Any, **told: Any) -> None:
        self.started("model", given, **{**told, "name": None})

    async def on_tool_start(self, _: Any, given: Any, **told: Any) -> None:
        self.started("tool", given, **told)

    async def on_chain_end(self, output: Any, **told: Any) -> None:
        await asyncio.sleep(0)
        self.ended(output, **told)

    async def on_chain_error(self, error: Any, **told: Any) -> None:
        await asyncio.sleep(0)
        self.failed(error, **told)


def _plain(value: Any) -> str:
    return repr(value)


def heard(api: Any, program: Any, handler: Any, how: str) -> list[Any]:
    def invoke(graph: Any, given: Any, config: Any = None) -> None:
        config = {**(config or {}), "callbacks": [handler]}
        with contextlib.suppress(ValueError):
            if how == "invoke":
                graph.invoke(given, config)
            else:
                asyncio.run(graph.ainvoke(given, config))

    program(api, invoke)
    return handler.lines  # type: ignore[no-any-return]


def _nested_pauses_as_ends(lines: list[Any], graphs: set[int]) -> list[Any]:
    """Return lines with the pauses of graphs as ends: which of the two a paused graph is told as, is the difference."""
    return [("paused", *line[1:3], None) if line[0] == "ended" and line[1] in graphs else line for line in lines]


def paused_graphs(theirs: list[Any]) -> set[int]:
    """Return the runs that LangGraph told as paused and that are graphs: something started in them that has a step."""
    paused = {line[1] for line in theirs if line[0] == "paused"}
    return paused & {line[2] for line in theirs if line[0] == "chain" and any("graph:step" in t for t in line[5])}


CASES = [(p, how) for p in PROGRAMS for how in ("invoke", "ainvoke") if how == "ainvoke" or p not in ONLY_ASYNC]


@pytest.mark.parametrize(("program", "how"), CASES, ids=lambda c: getattr(c, "__name__", c))
def test_a_handler_hears_the_same(program: Any, how: str) -> None:
    ours, theirs = heard(OURS, program, Handler(), how), heard(THEIRS, program, Handler(), how)
    assert _nested_pauses_as_ends(ours, paused_graphs(theirs)) == theirs
    assert len(ours) > 2


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_handler_of_coroutine_functions_hears_the_same(program: Any) -> None:
    sync, later = heard(OURS, program, Handler(), "ainvoke"), heard(OURS, program, AsyncHandler(), "ainvoke")
    assert later == sync


# --- event streams of version "v2", which are made of the same chains ---------------------------------------------------


def events(api: Any, program: Any) -> list[Any]:
    found: list[Any] = []
    numbers: dict[Any, int] = {}

    async def collected(graph: Any, given: Any, config: Any) -> None:
        async for event in graph.astream_events(given, config, version="v2"):
            if event["event"].startswith("on_chat_model"):
                event["data"], event["metadata"] = {}, {}
            run = numbers.setdefault(event["run_id"], len(numbers))
            around = [numbers[parent] for parent in event["parent_ids"]]
            metadata = {k: v for k, v in event["metadata"].items() if k not in HIDDEN}
            told = {k: _plain(v) for k, v in event["data"].items()}
            found.append((event["event"], event["name"], run, around, sorted(event["tags"]), metadata, told))

    def invoke(graph: Any, given: Any, config: Any = None) -> None:
        with contextlib.suppress(ValueError):
            asyncio.run(collected(graph, given, config))

    program(api, invoke)
    return found


# The others tell what only one of the two has: chunks of what runs in a node that is a runnable or lies in a chain, which
# LangGraph streams, triggers of entrypoints, ids of questions; and packets end in any order beside each other.
DIFFERENT = ("a_graph_in", "a_runnable", "function", "a_question", "packets")
EVENT_PROGRAMS = [p for p in PROGRAMS if not p.__name__.startswith(DIFFERENT)]


@pytest.mark.parametrize("program", EVENT_PROGRAMS, ids=lambda p: p.__name__)
def test_events_are_the_same(program: Any) -> None:
    ours, theirs = events(OURS, program), events(THEIRS, program)
    assert ours == theirs
    assert len(ours) > 1


def test_events_of_a_question_differ_by_the_end_of_what_asks() -> None:
    def shape(found: list[Any]) -> list[Any]:
        return [event[:5] for event in found]

    ours, theirs = shape(events(OURS, nested)), shape(events(THEIRS, nested))
    assert [event[:2] for event in ours if event not in theirs] == [
        ("on_chain_end", "asks"),
        ("on_chain_end", "inner"),
        ("on_chain_end", "nested"),
    ]
    assert [event for event in ours if event in theirs] == theirs
