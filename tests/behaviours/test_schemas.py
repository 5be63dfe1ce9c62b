"""States, reducers and building: what a schema makes of inputs, updates and outputs."""

from __future__ import annotations

import asyncio
import operator
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Annotated, Any, NotRequired, Required, TypedDict

import pytest
from pydantic import BaseModel, Field, ValidationError

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, builder, chain, parallel, thread
from waitpoint.errors import GraphValidationError, InvalidUpdateError
from waitpoint.graph import END, START, StateGraph
from waitpoint.types import Command, Overwrite, Send, interrupt


def a(state: Any) -> Any:
    return {"log": ["a"]}


def b(state: Any) -> Any:
    return {"log": ["b"]}


# --- reducers ---------------------------------------------------------------------------------------------------------


def test_a_key_without_a_reducer_takes_one_write_a_step(saver: Any, call: Call) -> None:
    """B157"""

    def one(state: State) -> State:
        return {"value": 1}

    def two(state: State) -> State:
        return {"value": 2}

    with pytest.raises(InvalidUpdateError, match=r"At key 'value'.*It got 2 in one step"):
        call(parallel(saver, one, two), {"log": []}, thread())
    assert call(chain(saver, one, two), {"log": []}, thread())["value"] == 2


@pytest.mark.parametrize("source", ["sends", "one node"])
def test_two_writes_to_one_key_from_sends_or_from_one_node(saver: Any, call: Call, source: str) -> None:
    """B157"""
    graph: Any = StateGraph(State)
    if source == "sends":
        graph.add_node("work", lambda n: {"value": n})
        graph.add_conditional_edges(START, lambda s: [Send("work", 1), Send("work", 2)])
    else:
        graph.add_node("work", lambda s: [Command(update={"value": 1}), {"value": 2}]).add_edge(START, "work")
    with pytest.raises(InvalidUpdateError, match="At key 'value'"):
        call(graph.compile(checkpointer=saver), {"log": []}, thread())


def only_one(left: Any) -> Any:
    return left


def keyword(left: Any, right: Any, *, more: Any) -> Any:
    return left


@pytest.mark.parametrize("reducer", [only_one, keyword])
def test_a_reducer_with_a_bad_signature_is_refused_when_the_graph_is_made(reducer: Any) -> None:
    """B158"""
    schema = TypedDict("schema", {"key": Annotated[list, reducer]})  # noqa: UP013 - the reducer varies
    with pytest.raises(ValueError, match="Invalid reducer"):
        StateGraph(schema)


def test_an_edge_from_an_unknown_node_is_refused_at_compile() -> None:
    """B158"""
    graph: Any = StateGraph(State).add_node("search", a).add_edge(START, "search").add_edge("serach", END)
    with pytest.raises(ValueError, match=r"Found edge starting at unknown node 'serach'.*did you mean 'search'"):
        graph.compile()


def test_reducers_fold_all_writes_in_order(saver: Any, call: Call) -> None:
    """B152, B157"""

    class Folded(TypedDict, total=False):
        total: Annotated[int, operator.add]
        seen: Annotated[set[str], operator.or_]
        both: Annotated[dict[str, int], operator.or_]
        text: Annotated[str, lambda left, right: f"({left}+{right})"]

    def one(state: Any) -> Any:
        return {"total": 1, "seen": {"one"}, "both": {"x": 1, "y": 1}, "text": "1"}

    def two(state: Any) -> Any:
        return {"total": 2, "seen": {"two"}, "both": {"y": 2}, "text": "2"}

    graph = builder(one, two, edges="parallel", schema=Folded).compile(checkpointer=saver)
    result = call(graph, {"text": "in"}, thread())
    assert result == {"total": 3, "seen": {"one", "two"}, "both": {"x": 1, "y": 2}, "text": "(((+in)+1)+2)"}


# --- Overwrite --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [Overwrite(["only"]), {"__overwrite__": ["only"]}])
def test_an_overwrite_sets_the_value_past_the_reducer(saver: Any, call: Call, form: Any) -> None:
    """B159"""

    def over(state: State) -> Any:
        return {"log": form}

    assert call(chain(saver, a, over, b), {"log": ["in"]}, thread())["log"] == ["only", "b"]
    assert call(parallel(saver, a, over, b), {"log": ["in"]}, thread())["log"] == ["only"]


def test_two_overwrites_in_one_step_are_refused(saver: Any, call: Call) -> None:
    """B159"""

    def one(state: State) -> Any:
        return {"log": Overwrite([1])}

    def two(state: State) -> Any:
        return {"log": {"__overwrite__": [2]}}

    with pytest.raises(InvalidUpdateError, match=r"Can receive only one Overwrite value per super-step\."):
        call(parallel(saver, one, two), {"log": []}, thread())


def test_an_overwrite_survives_a_sibling_that_asks(store: Store, call: Call) -> None:
    """B159"""

    def over(state: State) -> Any:
        return {"log": Overwrite(["only"])}

    def ask(state: State) -> State:
        return {"log": [interrupt("ok?")]}

    config = thread()
    paused = call(parallel(store.saver, over, ask), {"log": ["in"]}, config)
    assert paused["log"] == ["only"]
    assert call(parallel(store.again(), over, ask), Command(resume="yes"), config)["log"] == ["only"]


# --- building ---------------------------------------------------------------------------------------------------------


class Names(StrEnum):
    FIRST = "first"
    SECOND = "second"


class Plain(Enum):
    FIRST = "first"


class Callable_:
    def __call__(self, state: State) -> State:
        return {"log": ["object"]}


def test_a_node_takes_its_name_from_the_function_or_the_class(saver: Any, call: Call) -> None:
    """B160"""
    graph: Any = StateGraph(State).add_node(a).add_node(Callable_())
    graph.add_edge(START, "a").add_edge("a", "Callable_")
    graph, config = graph.compile(checkpointer=saver), thread()
    assert call(graph, {"log": []}, config)["log"] == ["a", "object"]
    assert {t.name for s in graph.get_state_history(config) for t in s.tasks} == {"__start__", "a", "Callable_"}


def test_members_of_an_enum_may_be_node_names(saver: Any, call: Call) -> None:
    """B160"""
    graph: Any = StateGraph(State).add_node(Names.FIRST, a).add_node(Names.SECOND, b)
    graph.add_edge(START, Plain.FIRST).add_conditional_edges(Names.FIRST, lambda s: Names.SECOND)
    graph, config = graph.compile(checkpointer=saver, interrupt_before=[Names.SECOND]), thread()
    call(graph, {"log": []}, config)
    assert graph.get_state(config).next == ("second",)
    assert call(graph, None, config)["log"] == ["a", "b"]


def test_a_sequence_takes_functions_and_pairs(saver: Any, call: Call) -> None:
    """B161"""
    graph: Any = StateGraph(State).add_sequence([a, ("second", b)]).add_edge(START, "a")
    assert call(graph.compile(checkpointer=saver), {"log": []}, thread())["log"] == ["a", "b"]


@pytest.mark.parametrize("nodes", [[], [a, a], [("x", a), ("x", b)]])
def test_an_empty_or_doubled_sequence_is_refused(nodes: Any) -> None:
    """B161"""
    with pytest.raises(ValueError, match=r"[Ss]equence|already"):
        StateGraph(State).add_sequence(nodes)


# --- schemas of nodes, input and output -------------------------------------------------------------------------------


class Whole(TypedDict, total=False):
    x: int
    y: int
    log: Annotated[list[Any], operator.add]


class Private(TypedDict, total=False):
    secret: str
    x: int


class OnlyX(TypedDict, total=False):
    x: int


class OnlyLog(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


def test_nodes_and_routers_see_only_the_keys_of_their_own_schema(saver: Any, call: Call) -> None:
    """B162"""
    seen: list[Any] = []

    def writes(state: Whole) -> Any:
        return {"secret": "s", "x": 2, "unknown": 1}

    def reads(state: Private) -> Any:
        seen.append(dict(state))
        return {"y": 3}

    def router(state: OnlyX) -> str:
        seen.append(dict(state))
        return "reads"

    graph: Any = StateGraph(Whole).add_node(writes).add_node(reads).add_edge(START, "writes")
    graph, config = graph.add_conditional_edges("writes", router).compile(checkpointer=saver), thread()
    assert call(graph, {"x": 1, "y": 1, "unknown": 0}, config) == {"x": 2, "y": 3, "log": []}
    assert seen == [{"x": 2}, {"secret": "s", "x": 2}]


def test_an_input_schema_may_be_given_to_a_node(saver: Any, call: Call) -> None:
    """B162"""
    seen: list[Any] = []

    def node(state: Any) -> Any:
        seen.append(dict(state))
        return {}

    graph: Any = StateGraph(Whole).add_node("node", node, input_schema=OnlyX).add_edge(START, "node")
    call(graph.compile(checkpointer=saver), {"x": 1, "y": 2}, thread())
    assert seen == [{"x": 1}]


def test_private_keys_survive_a_pause_and_another_process(store: Store, call: Call) -> None:
    """B162"""

    def writes(state: Whole) -> Any:
        return {"secret": "s"}

    def asks(state: Private) -> Any:
        return {"log": [state["secret"], interrupt("ok?")]}

    config = thread()
    made = lambda saver: builder(writes, asks, schema=Whole).compile(checkpointer=saver)  # noqa: E731
    call(made(store.saver), {"x": 1}, config)
    assert call(made(store.again()), Command(resume="yes"), config)["log"] == ["s", "yes"]


def test_input_and_output_schemas_filter_what_invoke_takes_and_returns(saver: Any, call: Call) -> None:
    """B163"""

    def node(state: Whole) -> Any:
        return {"y": 5, "log": [sorted(state)]}

    graph: Any = StateGraph(Whole, input_schema=OnlyX, output_schema=OnlyLog).add_node(node).add_edge(START, "node")
    graph, config = graph.compile(checkpointer=saver), thread()
    assert call(graph, {"x": 1, "y": 9}, config) == {"log": [["log", "x"]]}
    assert graph.get_state(config).values == {"x": 1, "y": 5, "log": [["log", "x"]]}


def test_streams_and_snapshots_show_the_whole_state(saver: Any, streamed: Call) -> None:
    """B163, B170"""

    def node(state: Whole) -> Any:
        return {"y": 5, "secret": "s"}

    def reads(state: Private) -> Any:
        return {"log": [state["secret"]]}

    graph: Any = StateGraph(Whole, input_schema=OnlyX, output_schema=OnlyLog).add_node(node).add_node(reads)
    graph = graph.add_edge(START, "node").add_edge("node", "reads").compile(checkpointer=saver)
    config = thread()
    parts = streamed(graph, {"x": 1}, config, stream_mode=["values", "updates"])
    assert parts == [
        ("values", {"x": 1, "log": []}),
        ("updates", {"node": {"y": 5, "secret": "s"}}),
        ("values", {"x": 1, "y": 5, "log": [], "secret": "s"}),
        ("updates", {"reads": {"log": ["s"]}}),
        ("values", {"x": 1, "y": 5, "log": ["s"], "secret": "s"}),
    ]
    assert graph.get_state(config).values == parts[-1][1]


@pytest.mark.parametrize(("keys", "result"), [(["x"], {"x": 1}), ("x", 1), (["x", "log"], {"x": 1, "log": ["a"]})])
def test_output_keys_choose_what_is_returned_and_shown(
    saver: Any, call: Call, streamed: Call, keys: Any, result: Any
) -> None:
    """B163"""
    graph = builder(a, schema=Whole).compile(checkpointer=saver)
    assert call(graph, {"x": 1}, thread(), output_keys=keys) == result
    assert streamed(graph, {"x": 1}, thread(), output_keys=keys, stream_mode="values")[-1] == result
    with pytest.raises(ValueError, match="`output_keys` names 'z'"):
        call(graph, {"x": 1}, thread(), output_keys="z")


def test_the_output_is_filtered_at_a_pause_too(saver: Any, call: Call) -> None:
    """B163"""

    def ask(state: Whole) -> Any:
        return {"log": [interrupt("ok?")]}

    graph: Any = StateGraph(Whole, output_schema=OnlyLog).add_node(ask).add_edge(START, "ask")
    paused = call(graph.compile(checkpointer=saver), {"x": 1}, thread())
    assert set(paused) == {"log", "__interrupt__"}


class Given(TypedDict):
    must: int
    may: NotRequired[int]


class Loose(TypedDict, total=False):
    must: Required[int]
    may: int


@dataclass
class Defaults:
    must: int
    may: int = 0


@pytest.mark.parametrize("schema", [Given, Loose, Defaults])
def test_what_is_required_of_an_input_and_an_output(schema: Any) -> None:
    """B164"""
    graph = StateGraph(schema).add_node("node", lambda s: {}).add_edge(START, "node").compile()
    assert graph.get_input_jsonschema()["required"] == ["must"]
    assert set(graph.get_input_jsonschema()["properties"]) == {"must", "may"}
    assert graph.get_output_jsonschema()["required"] == ["must"]


# --- pydantic and dataclass states ------------------------------------------------------------------------------------


class Inner(BaseModel):
    n: int = 0


class Model(BaseModel):
    name: str
    note: str | None = "note"
    inner: Inner = Field(default_factory=Inner)
    log: Annotated[list[Any], operator.add] = Field(default_factory=list)


@dataclass
class Data:
    name: str
    note: str | None = "note"
    log: Annotated[list[Any], operator.add] = field(default_factory=list)


@pytest.mark.parametrize("schema", [Model, Data])
def test_nodes_get_instances_and_invoke_returns_plain_dicts(saver: Any, call: Call, schema: Any) -> None:
    """B165"""
    seen: list[Any] = []

    def node(state: Any) -> Any:
        seen.append(type(state))
        return {"log": [state.name, state.note]}

    def router(state: Any) -> str:
        seen.append(type(state))
        return END

    graph: Any = builder(node, schema=schema).add_conditional_edges("node", router)
    result = call(graph.compile(checkpointer=saver), {"name": "ana"}, thread())
    assert type(result) is dict
    assert result["log"] == ["ana", "note"]
    assert seen == [schema, schema]


def test_the_input_of_a_pydantic_state_is_validated(saver: Any, call: Call) -> None:
    """B165"""
    graph, config = builder(a, schema=Model).compile(checkpointer=saver), thread()
    with pytest.raises(ValidationError) as refused:
        call(graph, {"name": 7}, config)
    assert [e["loc"] for e in refused.value.errors()] == [("name",)]
    assert list(graph.get_state_history(config)) == []


@pytest.mark.parametrize("schema", [Model, Data])
def test_setting_a_field_to_none_is_an_update(saver: Any, call: Call, schema: Any) -> None:
    """B165"""

    def as_dict(state: Any) -> Any:
        return {"note": None}

    def as_instance(state: Any) -> Any:
        return schema(name="new", note=None)

    for node in (as_dict, as_instance):
        graph = builder(node, schema=schema).compile(checkpointer=saver)
        assert call(graph, {"name": "ana", "note": "old"}, thread())["note"] is None


@pytest.mark.parametrize("schema", [Model, Data])
def test_an_input_may_be_an_instance(saver: Any, call: Call, schema: Any) -> None:
    """B165"""
    graph = builder(a, schema=schema).compile(checkpointer=saver)
    result = call(graph, schema(name="ana", log=["in"]), thread())
    assert (result["name"], result["log"]) == ("ana", ["in", "a"])


@pytest.mark.parametrize("schema", [Model, Data])
def test_instances_work_over_a_pause_and_another_process(store: Store, call: Call, schema: Any) -> None:
    """B165"""

    def ask(state: Any) -> Any:
        assert isinstance(state, schema)
        return {"log": [interrupt(f"{state.name}?")]}

    config = thread()
    call(builder(a, ask, schema=schema).compile(checkpointer=store.saver), {"name": "ana"}, config)
    graph = builder(a, ask, schema=schema).compile(checkpointer=store.again())
    assert call(graph, Command(resume="yes"), config)["log"] == ["a", "yes"]


def test_models_inside_a_state_come_back_as_models(store: Store, call: Call) -> None:
    """B165"""

    def ask(state: Model) -> Any:
        assert isinstance(state.inner, Inner)
        return {"log": [state.inner.n, interrupt("ok?")]}

    config = thread()
    call(builder(ask, schema=Model).compile(checkpointer=store.saver), {"name": "x", "inner": {"n": 3}}, config)
    graph = builder(ask, schema=Model).compile(checkpointer=store.again())
    assert call(graph, Command(resume="yes"), config)["log"] == [3, "yes"]


def test_async_nodes_of_pydantic_states(saver: Any) -> None:
    """B165"""

    async def node(state: Model) -> Any:
        return {"log": [state.name]}

    graph = builder(node, schema=Model).compile(checkpointer=saver)
    assert asyncio.run(graph.ainvoke({"name": "ana"}, thread()))["log"] == ["ana"]


def test_an_update_that_is_no_update_names_the_node(saver: Any, call: Call) -> None:
    """B162"""
    with pytest.raises(InvalidUpdateError, match=r"'bad'.*Expected dict, got 'int'"):
        call(chain(saver, bad), {"log": []}, thread())


def bad(state: State) -> Any:
    return 7


def test_a_state_that_is_no_schema_is_refused() -> None:
    with pytest.raises(GraphValidationError):
        StateGraph(State).add_node("a", "no function")
