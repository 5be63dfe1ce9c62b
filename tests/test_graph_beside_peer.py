"""Whole graphs, declared once and built by both builders: the results are the peer's."""

import operator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal, TypedDict

import langgraph.graph
import langgraph.graph.message
import langgraph.types
import pytest
from langchain_core.messages import AIMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from pydantic import BaseModel, Field

import waitpoint.graph
import waitpoint.graph.message
import waitpoint.types

BUILDERS = {
    "ours": (waitpoint.graph, waitpoint.types),
    "peer": (langgraph.graph, langgraph.types),
}


def outcome(case: Any, given: Any) -> list[Any]:
    """What both make of a case: the result, or the kind of error."""
    found = []
    for graph, types in BUILDERS.values():
        try:
            found.append(case(graph, types).compile().invoke(given))
        except Exception as error:
            found.append(type(error).__name__)
    return found


class Inner(BaseModel):
    n: int = 0


class Model(BaseModel):
    a: int
    b: str | None = "b"
    inner: Inner = Field(default_factory=Inner)
    log: Annotated[list[str], operator.add] = Field(default_factory=list)


@dataclass
class Data:
    a: int
    b: str | None = "b"
    log: Annotated[list[str], operator.add] = field(default_factory=list)


class Dict(TypedDict, total=False):
    a: int
    b: str | None
    log: Annotated[list[str], operator.add]


class Private(TypedDict):
    secret: str


class Part(TypedDict):
    a: int


class Step(StrEnum):
    ONE = "one"


def chain(state: Any, *nodes: Any, **options: Any) -> Any:
    def case(graph: Any, types: Any) -> Any:
        builder = graph.StateGraph(state, **options)
        return builder.add_sequence([(f"n{i}", node) for i, node in enumerate(nodes)]).add_edge(graph.START, "n0")

    return case


def mutating(state: Any) -> Any:
    state.a += 10
    state.log = ["mutated"]
    return state


def set_none(state: Any) -> Any:
    return type(state)(a=state.a, b=None)


def fresh_model(state: Any) -> Any:
    return Model(a=state.a + 1)


def reading_private(state: Private) -> Any:
    return {"log": [state["secret"]]}


def with_config(state: Dict, config: RunnableConfig) -> Any:
    return {"log": sorted(set(config) & {"configurable", "metadata"})}


@pytest.mark.parametrize(
    ("case", "given"),
    [
        (chain(Model, lambda s: {"a": s.a + 1}), {"a": "1"}),
        (chain(Model, lambda s: {"a": s.a + 1}), {"a": 1, "inner": {"n": 2}, "x": 3}),
        (chain(Model, lambda s: {"a": s.a + 1}), Model(a=1)),
        (chain(Model, lambda s: {"a": 1}), {"a": "one"}),
        (chain(Model, lambda s: {"a": 1}), {"b": "missing a"}),
        (chain(Model, mutating), {"a": 1, "log": ["first"]}),
        (chain(Model, set_none), {"a": 1}),
        (chain(Model, fresh_model, fresh_model), {"a": 1, "b": "given"}),
        (chain(Model, lambda s: {"a": "two"}, lambda s: {"b": "late"}), {"a": 1}),
        (chain(Data, lambda s: {"a": s.a + 1}), {"a": 1}),
        (chain(Data, lambda s: {"log": [s.b]}), Data(a=1, b=None)),
        (chain(Data, mutating), {"a": 1, "log": ["first"]}),
        (chain(Data, set_none), {"a": 1, "b": "given"}),
        (chain(Data, lambda s: {"a": 1}), {"b": "missing a"}),
        (chain(Dict, lambda s: {"a": 1, "x": 2}), {}),
        (chain(Dict, lambda s: None), {"a": 1, "x": 2}),
        (chain(Dict, lambda s: {"log": ["x"]}, lambda s: {"log": s["log"]}), {"log": ["first"]}),
        (chain(Dict, lambda s: 5), {"a": 1}),
        (chain(Dict, lambda s: ["x"]), {"a": 1}),
        (chain(Dict, lambda s: {"log": "x"}), "text"),
        (chain(Dict, lambda s: {"secret": "s"}, reading_private), {"a": 1}),
        (chain(Dict, lambda s: {"log": [str(sorted(s))]}, input_schema=Part), {"a": 1, "b": "dropped"}),
        (chain(Dict, lambda s: {"a": 1, "b": "hidden"}, output_schema=Part), {"b": "x"}),
        (chain(Dict, with_config), {"a": 1}),
        (chain(Dict, RunnableLambda(lambda s: {"a": s["a"] + 1})), {"a": 1}),
        (chain(dict, lambda s: {**s, "n": 1}, lambda s: {"only": s}), {"a": 1}),
        (chain(Annotated[list, operator.add], lambda s: ["x"], lambda s: s), ["first"]),
        (chain(int, lambda s: s + 1, lambda s: None, lambda s: s + 1), 1),
    ],
)
def test_states_and_updates_of_every_kind(case: Any, given: Any) -> None:
    ours, peer = outcome(case, given)
    assert ours == peer or (ours == "InvalidUpdateError" and isinstance(peer, str))


def test_commands_sends_and_routers() -> None:
    def case(graph: Any, types: Any) -> Any:
        def plan(state: Dict) -> Any:
            return [types.Command(update={"log": ["plan"]}, goto=["pick", types.Send("work", {"a": 7})]), {"a": 1}]

        def pick(state: Dict) -> types.Command[Literal["work", "last"]]:
            return types.Command(goto="last", update=[("log", ["pick"]), ("b", "p")])

        def route(state: Dict) -> Any:
            return ["extra", "late"] if state["a"] == 1 else graph.END

        builder = graph.StateGraph(Dict).add_node(plan).add_node(pick)
        builder.add_node("work", lambda s: {"log": [f"work {s['a']}"]})
        builder.add_node("extra", lambda s: {"log": ["extra"]}).add_edge("extra", "more")
        builder.add_node("more", lambda s: {"log": ["more"]})
        builder.add_node("last", lambda s: {"log": ["last"]}).add_node(Step.ONE, lambda s: {"log": ["one"]})
        builder.add_node("late", lambda s: {"log": ["late"]}, defer=True)
        builder.add_node("both", lambda s: {"log": ["both"]}).add_edge(["last", "late"], "both")
        builder.add_conditional_edges("last", route).add_edge("work", Step.ONE)
        return builder.add_conditional_edges(graph.START, lambda s: "go", {"go": "plan"})

    ours, peer = outcome(case, {})
    assert ours == peer
    assert "both" in ours["log"]


def test_overwrites_and_clashing_writes() -> None:
    def parallel(*updates: Any) -> Any:
        def case(graph: Any, types: Any) -> Any:
            builder = graph.StateGraph(Dict)
            for i, make in enumerate(updates):
                builder.add_node(f"n{i}", lambda s, make=make: make(types)).add_edge(graph.START, f"n{i}")
            return builder

        return case

    def plain(key: str, value: Any) -> Any:
        return lambda types: {key: value}

    def overwrite(value: Any) -> Any:
        return lambda types: {"log": types.Overwrite(value)}

    for updates in (
        [plain("a", 1), plain("a", 2)],
        [plain("log", ["x"]), overwrite(["y"]), plain("log", ["z"])],
        [overwrite(["x"]), overwrite(["y"])],
        [plain("log", {"__overwrite__": ["y"]}), plain("log", ["z"])],
        [plain("log", ["x"]), plain("log", ["y"]), plain("a", 1)],
    ):
        ours, peer = outcome(parallel(*updates), {"log": ["first"]})
        assert ours == peer


def test_messages_are_merged_in_a_graph() -> None:
    def case(graph: Any, types: Any) -> Any:
        class Chat(graph.MessagesState):
            user: str

        def answer(state: Chat) -> Any:
            return {"messages": AIMessage("two", id="2"), "user": state["messages"][-1].id}

        def forget(state: Chat) -> Any:
            return {"messages": [RemoveMessage(id="1"), ("user", "three")]}

        builder = graph.StateGraph(Chat).add_sequence([answer, forget])
        return builder.add_edge(graph.START, "answer")

    ours, peer = outcome(case, {"messages": [{"role": "user", "content": "one", "id": "1"}]})
    assert ours["user"] == peer["user"] == "1"
    assert [(type(m), m.content) for m in ours["messages"]] == [(type(m), m.content) for m in peer["messages"]]
    assert all(m.id for m in ours["messages"])


def test_error_handlers_and_retries() -> None:
    def case(graph: Any, types: Any) -> Any:
        tries: list[int] = []

        def failing(state: Dict) -> Any:
            tries.append(1)
            raise ValueError(f"try {len(tries)}")

        def handler(state: Dict, error: Any) -> Any:
            return {"log": [error.node, repr(error.error)]}

        handler.__annotations__["error"] = (waitpoint if types is waitpoint.types else langgraph).errors.NodeError
        policy = types.RetryPolicy(initial_interval=0.001, max_attempts=2, jitter=False, retry_on=ValueError)
        builder = graph.StateGraph(Dict).set_node_defaults(retry_policy=policy, error_handler=handler)
        return builder.add_node("failing", failing).add_edge(graph.START, "failing")

    ours, peer = outcome(case, {})
    assert ours == peer == {"log": ["failing", "ValueError('try 2')"]}
