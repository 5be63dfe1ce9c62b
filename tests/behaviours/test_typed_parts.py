"""Version "v2": parts that say what they are, outputs with their questions, and states as instances of their classes."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel

from tests.behaviours.conftest import Call
from tests.behaviours.graphs import State, chain, thread
from tests.behaviours.speaking import Speaker, speaks
from waitpoint.config import get_stream_writer
from waitpoint.errors import ConfigError
from waitpoint.func import entrypoint
from waitpoint.graph import START, MessagesState, StateGraph
from waitpoint.types import Command, GraphOutput, Interrupt, StreamPart, interrupt

USE = r"use `\.value`"


class Model(BaseModel):
    a: int = 0
    b: str


@dataclass
class Data:
    a: int
    log: Annotated[list[str], operator.add] = field(default_factory=list)


def one(saver: Any, schema: Any, node: Any, **options: Any) -> Any:
    return StateGraph(schema, **options).add_node("node", node).add_edge(START, "node").compile(checkpointer=saver)


def a(state: State) -> State:
    return {"log": ["a"]}


def writes(state: Any) -> Any:
    get_stream_writer()("written")
    return {}


def ask(state: State) -> State:
    return {"log": [interrupt("ok?")]}


# --- parts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("subgraphs", [False, True])
@pytest.mark.parametrize("modes", ["updates", ["updates"], None])
def test_a_part_has_its_type_namespace_and_data_whatever_was_asked_for(
    saver: Any, streamed: Call, modes: Any, subgraphs: bool
) -> None:
    """B182"""
    parts = streamed(chain(saver, a), {"log": []}, thread(), stream_mode=modes, subgraphs=subgraphs, version="v2")
    assert parts == [{"type": "updates", "ns": (), "data": {"a": {"log": ["a"]}}}]


def test_every_mode_has_parts(saver: Any, streamed: Call) -> None:
    """B182"""
    graph: Any = StateGraph(MessagesState).add_node("speaks", speaks(Speaker(texts=["hi"]))).add_node("writes", writes)
    graph = graph.add_edge(START, "speaks").add_edge("speaks", "writes").compile(checkpointer=saver)
    modes = ["values", "updates", "custom", "messages", "tasks", "checkpoints", "debug"]
    parts = streamed(graph, {"messages": []}, thread(), stream_mode=modes, version="v2")
    assert {part["type"] for part in parts} == set(modes)
    assert all(sorted(p) == ["data", "ns", "type"] for p in parts if p["type"] != "values")
    assert next(p["data"] for p in parts if p["type"] == "custom") == "written"
    assert next(p["data"][0].content for p in parts if p["type"] == "messages") == "hi "


def test_parts_of_nested_graphs_have_their_namespace(saver: Any, streamed: Call) -> None:
    """B182"""
    graph = one(saver, State, chain(None, a))
    inner, outer = streamed(graph, {"log": []}, thread(), subgraphs=True, version="v2")
    assert (inner["ns"][0].split(":")[0], inner["data"]) == ("node", {"a": {"log": ["a"]}})
    assert (outer["ns"], outer["data"]) == ((), {"node": {"log": ["a"]}})


def test_questions_are_beside_the_values_and_not_among_them(saver: Any, streamed: Call) -> None:
    """B182"""
    graph, config = chain(saver, a, ask), thread()
    parts = streamed(graph, {"log": []}, config, stream_mode=["values", "updates"], version="v2")
    *earlier, last = [p for p in parts if p["type"] == "values"]
    assert all(p["interrupts"] == () for p in earlier)
    (question,) = last["interrupts"]
    assert isinstance(question, Interrupt)
    assert last == {"type": "values", "ns": (), "data": {"log": ["a"]}, "interrupts": (question,)}
    assert {"type": "updates", "ns": (), "data": {"__interrupt__": (question,)}} in parts
    again = streamed(graph, None, config, stream_mode="values", version="v2")
    assert again == [last]


def test_a_state_that_is_one_value_stays_it_while_questions_are_open(saver: Any, call: Call, streamed: Call) -> None:
    graph, config = one(saver, Annotated[list[str], operator.add], lambda s: [interrupt("?")]), thread()
    parts = streamed(graph, ["in"], config, stream_mode="values", version="v2")
    assert [(p["data"], len(p["interrupts"])) for p in parts] == [(["in"], 0), (["in"], 1)]
    output = call(graph, None, config, version="v2")
    assert (output.value, len(output.interrupts)) == (["in"], 1)


def test_an_unknown_version_is_refused_before_anything_runs(saver: Any, streamed: Call, call: Call) -> None:
    for used in (streamed, call):
        with pytest.raises(ConfigError, match="`version` is 'v9'"):
            used(chain(saver, a), {"log": []}, thread(), version="v9")
    assert saver.threads() == []


# --- instances --------------------------------------------------------------------------------------------------------


def test_values_and_checkpoints_of_a_model_are_instances_and_updates_stay_dicts(saver: Any, streamed: Call) -> None:
    """B183"""
    graph = one(saver, Model, lambda s: {"a": s.a + 1})
    modes = ["values", "checkpoints", "updates", "debug"]
    parts = streamed(graph, {"b": "x"}, thread(), stream_mode=modes, version="v2")
    assert [p["data"] for p in parts if p["type"] == "values"] == [Model(b="x"), Model(a=1, b="x")]
    found = [p["data"]["values"] for p in parts if p["type"] == "checkpoints"]
    assert found == [{}, Model(b="x"), Model(a=1, b="x")]
    told = [p["data"]["payload"]["values"] for p in parts if p["type"] == "debug" and p["data"]["type"] == "checkpoint"]
    assert told == found
    assert [p["data"] for p in parts if p["type"] == "updates"] == [{"node": {"a": 1}}]
    assert streamed(graph, {"b": "x"}, thread("v1"), stream_mode="values")[-1] == {"a": 1, "b": "x"}


def test_dataclasses_are_instances_in_nested_graphs_too(saver: Any, streamed: Call) -> None:
    """B183"""
    inner = one(None, Data, lambda s: {"a": s.a + 1, "log": ["n"]})
    graph = one(saver, TypedDict("Outer", {"a": int}), inner)
    parts = streamed(graph, {"a": 1}, thread(), stream_mode="values", subgraphs=True, version="v2")
    assert [p["data"] for p in parts if p["ns"]] == [Data(1), Data(2, ["n"])]
    assert [p["data"] for p in parts if not p["ns"]] == [{"a": 1}, {"a": 2}]


def test_a_state_that_lacks_what_its_class_requires_stays_a_dict(saver: Any, streamed: Call) -> None:
    graph = StateGraph(Model, input_schema=TypedDict("Given", {"a": int}))
    graph.add_node("node", lambda s: {"b": "y"}, input_schema=TypedDict("Seen", {"a": int}))
    compiled = graph.add_edge(START, "node").compile(checkpointer=saver)
    parts = streamed(compiled, {"a": 1}, thread(), stream_mode="values", version="v2")
    assert [p["data"] for p in parts] == [{"a": 1}, Model(a=1, b="y")]


# --- outputs ----------------------------------------------------------------------------------------------------------


def test_an_output_has_value_interrupts_and_next(saver: Any, call: Call) -> None:
    """B184"""
    graph, config = chain(saver, a, ask), thread()
    output = call(graph, {"log": []}, config, version="v2")
    assert isinstance(output, GraphOutput)
    assert output.value == {"log": ["a"]}
    assert [i.value for i in output.interrupts] == ["ok?"]
    assert output.next == ("ask",)
    assert call(graph, Command(resume="yes"), config, version="v2") == GraphOutput({"log": ["a", "yes"]}, (), ())


def test_next_tells_a_breakpoint_from_the_end(saver: Any, call: Call) -> None:
    graph, config = chain(saver, a, ask, interrupt_before=["ask"]), thread()
    output = call(graph, {"log": []}, config, version="v2")
    assert (output.interrupts, output.next) == ((), ("ask",))


def test_the_value_is_an_instance_of_the_output_schema(saver: Any, call: Call) -> None:
    """B183, B184"""
    assert call(one(saver, Model, lambda s: {"a": 2}), {"b": "x"}, thread("1"), version="v2").value == Model(a=2, b="x")
    assert call(one(saver, Data, lambda s: {"a": 2}), {"a": 1}, thread("2"), version="v2").value == Data(2)
    graph = one(saver, Model, lambda s: {"a": 2}, output_schema=TypedDict("Out", {"a": int}))
    assert call(graph, {"b": "x"}, thread("3"), version="v2").value == {"a": 2}
    keys = call(one(saver, Model, lambda s: {"a": 2}), {"b": "x"}, thread("4"), version="v2", output_keys=["a"])
    assert keys.value == {"a": 2}


def test_an_entrypoint_has_outputs_too(saver: Any, call: Call) -> None:
    """B184"""

    @entrypoint(checkpointer=saver)
    def flow(x: int) -> int:
        return x + interrupt("more?")

    config = thread()
    output = call(flow, 1, config, version="v2")
    assert ([i.value for i in output.interrupts], output.next) == (["more?"], ("flow",))
    assert call(flow, Command(resume=2), config, version="v2") == GraphOutput(3)


def test_code_for_dicts_still_works_on_outputs_and_is_warned(saver: Any, call: Call) -> None:
    """B184"""
    output = call(chain(saver, a, ask), {"log": []}, thread(), version="v2")
    with pytest.warns(DeprecationWarning, match=USE):
        assert output["log"] == ["a"]
    with pytest.warns(DeprecationWarning, match=USE):
        assert output["__interrupt__"] == output.interrupts
    with pytest.warns(DeprecationWarning, match=USE):
        assert "__interrupt__" in output
    with pytest.warns(DeprecationWarning, match=USE):
        assert "other" not in output
    with pytest.warns(DeprecationWarning, match=USE):
        assert "__interrupt__" not in GraphOutput({})
    with pytest.warns(DeprecationWarning, match=USE):
        assert GraphOutput(Model(b="x"))["b"] == "x"
    with pytest.warns(DeprecationWarning, match=USE), pytest.raises(KeyError):
        GraphOutput(Model(b="x"))["c"]
    with pytest.warns(DeprecationWarning, match=USE):
        assert "b" in GraphOutput(Model(b="x"))


def test_invoke_with_another_mode_returns_the_parts(saver: Any, call: Call) -> None:
    """B184"""
    parts = call(chain(saver, a), {"log": []}, thread(), stream_mode=["updates"], version="v2")
    assert parts == [{"type": "updates", "ns": (), "data": {"a": {"log": ["a"]}}}]


def test_a_graph_called_in_a_node_gives_outputs_and_its_questions_reach_the_caller(saver: Any, call: Call) -> None:
    inner = chain(None, ask)

    def calls(state: State) -> State:
        return {"log": inner.invoke({"log": []}, version="v2").value["log"]}

    graph, config = one(saver, State, calls), thread()
    assert [i.value for i in call(graph, {"log": []}, config, version="v2").interrupts] == ["ok?"]
    assert call(graph, Command(resume="yes"), config, version="v2").value == {"log": ["yes"]}


def test_the_type_of_parts_takes_the_types_of_state_and_output() -> None:
    assert "Model" in str(StreamPart[Model, Data])
