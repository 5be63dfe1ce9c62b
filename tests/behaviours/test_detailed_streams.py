"""Modes `checkpoints` and `debug`: each step with its record, and the questions once more where the run rests."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tests.behaviours.conftest import Call, Consumed
from tests.behaviours.graphs import State, builder, chain, parallel, the_id, thread
from waitpoint.errors import GraphRecursionError
from waitpoint.func import entrypoint, task
from waitpoint.graph import START, StateGraph
from waitpoint.stream import CheckpointsTransformer, DebugTransformer
from waitpoint.types import Command, interrupt


def a(state: State) -> State:
    return {"log": ["a"]}


def b(state: State) -> State:
    return {"log": ["b"]}


def ask(state: State) -> State:
    return {"log": [interrupt("ok?")]}


def history(graph: Any, config: Any) -> list[Any]:
    """Return the checkpoints of a thread as mode `checkpoints` tells them, the oldest first."""
    return [
        {
            "config": s.config,
            "parent_config": s.parent_config,
            "metadata": s.metadata,
            "values": s.values,
            "next": list(s.next),
        }
        for s in reversed(list(graph.get_state_history(config)))
    ]


def without_tasks(parts: list[Any]) -> list[Any]:
    return [{k: v for k, v in part.items() if k != "tasks"} for part in parts]


# --- checkpoints ------------------------------------------------------------------------------------------------------


def test_checkpoints_are_those_of_the_history(saver: Any, streamed: Call) -> None:
    """B177"""
    graph, config = chain(saver, a, b), thread(user="ana")
    parts = streamed(graph, {"log": ["in"]}, config, stream_mode="checkpoints")
    assert without_tasks(parts) == history(graph, config)
    assert [part["metadata"]["step"] for part in parts] == [-1, 0, 1, 2]
    assert parts[1]["metadata"]["user"] == "ana"
    assert [[t["name"] for t in part["tasks"]] for part in parts] == [[START], ["a"], ["b"], []]
    ids = [s.tasks[0].id for s in reversed(list(graph.get_state_history(config))) if s.tasks]
    assert [part["tasks"][0]["id"] for part in parts if part["tasks"]] == ids


def test_with_durability_exit_parts_name_only_stored_parents(saver: Any, streamed: Call) -> None:
    graph, config = chain(saver, a, b), thread()
    streamed(graph, {"log": []}, config, durability="exit", stream_mode="checkpoints")
    (first,) = graph.get_state_history(config)
    parts = streamed(graph, {"log": []}, config, durability="exit", stream_mode="checkpoints")
    assert {str(part["parent_config"]) for part in parts} == {str(first.config)}


def test_where_a_run_rests_its_checkpoint_comes_again_with_the_open_questions(saver: Any, streamed: Call) -> None:
    graph, config = parallel(saver, ask, b), thread()
    parts = streamed(graph, {"log": []}, config, stream_mode=["checkpoints", "updates"])
    last = next(p for m, p in reversed(parts) if m == "checkpoints")
    (question,) = next(u["__interrupt__"] for m, u in parts if "__interrupt__" in u)
    tasks = {t["name"]: t for t in last["tasks"]}
    assert tasks["ask"]["interrupts"] == ({"value": "ok?", "id": question.id, "response_schema": None},)
    assert tasks["b"] == {**tasks["b"], "interrupts": (), "result": {"log": ["b"]}}
    assert parts[-1] == ("updates", {"__interrupt__": (question,)})
    assert last["config"] == graph.get_state(config).config
    resumed = streamed(graph, Command(resume="yes"), config, stream_mode="checkpoints")
    assert resumed[0]["config"] == last["config"]
    assert [p["next"] for p in resumed] == [["ask", "b"], []]
    assert resumed[-1]["values"] == graph.get_state(config).values


def test_a_call_that_finds_only_questions_shows_the_checkpoint_where_they_wait(saver: Any, streamed: Call) -> None:
    graph, config = chain(saver, ask), thread()
    question = the_id(graph.invoke({"log": []}, config))
    for mode in ("checkpoints", "debug"):
        (part,) = streamed(graph, None, config, stream_mode=mode)
        checkpoint = part if mode == "checkpoints" else part["payload"]
        assert [i["id"] for t in checkpoint["tasks"] for i in t["interrupts"]] == [question]


def test_an_answered_question_is_not_shown_as_open(saver: Any, streamed: Call) -> None:
    def twice(state: State) -> State:
        return {"log": [interrupt("first?"), interrupt("second?")]}

    graph, config = chain(saver, twice), thread()
    graph.invoke({"log": []}, config)
    last = streamed(graph, Command(resume=1), config, stream_mode="checkpoints")[-1]
    assert [i["value"] for t in last["tasks"] for i in t["interrupts"]] == ["second?"]


def test_nested_checkpoints_have_their_namespace_and_the_task_around_names_it(saver: Any, streamed: Call) -> None:
    """B177, B180"""
    graph: Any = StateGraph(State).add_node("inner", chain(None, a, ask)).add_edge(START, "inner")
    graph, config = graph.compile(checkpointer=saver), thread()
    parts = streamed(graph, {"log": []}, config, stream_mode="checkpoints", subgraphs=True)
    below = [(ns, part) for ns, part in parts if ns]
    around = next(t for ns, part in parts if not ns for t in part["tasks"] if t["name"] == "inner")
    assert {ns[0] for ns, _ in below} == {around["state"]["configurable"]["checkpoint_ns"]}
    assert {part["config"]["configurable"]["checkpoint_ns"] for _, part in below} == {below[0][0][0]}
    assert parts[-1][0] == ()
    assert [i["value"] for t in parts[-1][1]["tasks"] for i in t["interrupts"]] == ["ok?"]
    assert all(not ns for ns, _ in streamed(graph, None, config, stream_mode="checkpoints", subgraphs=True))


def test_the_last_checkpoint_before_a_breakpoint_is_shown(saver: Any, streamed: Call) -> None:
    """B177"""
    graph, config = chain(saver, a, b, interrupt_before=["b"]), thread()
    shown = streamed(graph, {"log": []}, config, stream_mode="checkpoints")
    assert shown[-1]["next"] == ["b"]
    assert shown[-1]["config"] == graph.get_state(config).config


def test_the_last_checkpoint_before_the_limit_is_shown(saver: Any) -> None:
    """B177"""
    graph, config, parts = chain(saver, a, b), thread(), []
    with pytest.raises(GraphRecursionError):
        for part in graph.stream({"log": []}, {**config, "recursion_limit": 1}, stream_mode="checkpoints"):
            parts.append(part)  # noqa: PERF402 - the list must have them when the error comes
    assert parts[-1]["config"] == graph.get_state(config).config
    assert parts[-1]["next"] == ["b"]


def test_without_a_checkpointer_there_are_no_checkpoints(streamed: Call) -> None:
    assert streamed(chain(None, a), {"log": []}, stream_mode="checkpoints") == []
    assert [p["type"] for p in streamed(chain(None, a), {"log": []}, stream_mode="debug")] == ["task", "task_result"]


# --- debug ------------------------------------------------------------------------------------------------------------


def test_debug_puts_checkpoints_and_tasks_into_envelopes(saver: Any, streamed: Call) -> None:
    """B178"""
    graph = chain(saver, a)
    parts = streamed(graph, {"log": []}, thread(), stream_mode=["checkpoints", "tasks", "debug"])
    told = [(m, p) for m, p in parts if m != "debug"]
    envelopes = [p for m, p in parts if m == "debug"]
    assert [e["payload"] for e in envelopes] == [p for _, p in told]
    kinds = ["checkpoint", "checkpoint", "task", "task_result", "checkpoint"]
    assert [(e["type"], e["step"]) for e in envelopes] == list(zip(kinds, [-1, 0, 1, 1, 1], strict=True))
    assert all(sorted(e) == ["payload", "step", "timestamp", "type"] for e in envelopes)
    assert all(datetime.fromisoformat(e["timestamp"]).utcoffset() is not None for e in envelopes)


def test_debug_tells_of_recorded_tasks_too(saver: Any, streamed: Call) -> None:
    @task
    def double(x: int) -> int:
        return 2 * x

    @entrypoint(checkpointer=saver)
    def flow(x: int) -> int:
        return double(x).result()

    parts = streamed(flow, 2, thread(), stream_mode="debug")
    names = [(p["type"], p["payload"]["name"]) for p in parts if p["type"] != "checkpoint"]
    assert names == [("task", "flow"), ("task", "double"), ("task_result", "double"), ("task_result", "flow")]
    assert {p["step"] for p in parts if p["type"] != "checkpoint"} == {0}


def test_a_failed_task_is_told_with_its_error(saver: Any, streamed: Call) -> None:
    def fails(state: State) -> State:
        raise ValueError("no")

    graph, config, parts = chain(saver, fails), thread(), []
    with pytest.raises(ValueError, match="no"):
        for part in graph.stream({"log": []}, config, stream_mode="debug"):
            parts.append(part)  # noqa: PERF402 - the list must have them when the error comes
    assert (parts[-1]["type"], parts[-1]["payload"]["error"]) == ("task_result", "ValueError('no')")
    with pytest.raises(ValueError, match="no"):
        streamed(graph, None, config, stream_mode="debug")


# --- event streams ----------------------------------------------------------------------------------------------------


def test_checkpoints_and_debug_are_projections_on_demand(saver: Any, consumed: Consumed) -> None:
    """B203"""
    graph = builder(a, ask).compile(checkpointer=saver)
    options = {"transformers": [CheckpointsTransformer, DebugTransformer]}
    checkpoints = consumed(graph, "checkpoints", {"log": []}, thread("1"), **options)
    assert [c["next"] for c in checkpoints] == [[START], ["a"], ["ask"], ["ask"]]
    assert [bool(t["interrupts"]) for c in checkpoints for t in c["tasks"]] == [False, False, False, True]
    debug = consumed(graph, "debug", {"log": []}, thread("2"), **options)
    assert [d["type"] for d in debug][:4] == ["checkpoint", "checkpoint", "task", "task_result"]
