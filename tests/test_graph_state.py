"""The builder: call forms, what they become in the spec, and what is refused."""

import enum
import functools
import operator
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal, TypedDict

import pytest
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel

from waitpoint.core.spec import Join
from waitpoint.errors import GraphValidationError, UsageError
from waitpoint.graph import END, START, MessagesState, StateGraph
from waitpoint.graph.managed import RemainingSteps
from waitpoint.records import Command, RetryPolicy, Send, TimeoutPolicy


class State(TypedDict):
    a: int
    log: Annotated[list[str], operator.add]


class Part(TypedDict):
    a: int


class Private(TypedDict):
    secret: str


class Model(BaseModel):
    a: int = 0


@dataclass
class Data:
    a: int = 0


class Name(enum.Enum):
    PLAN = "plan"
    ACT = "act"


class StrName(enum.StrEnum):
    PLAN = "plan"


def plan(state: State) -> Any: ...
def act(state: State) -> Any: ...
async def wait(state: State) -> Any: ...
def pick(state: State) -> str: ...


def two() -> StateGraph:
    return StateGraph(State).add_node(plan).add_node(act).add_edge(START, "plan")


def spec(graph: StateGraph, **options: Any) -> Any:
    return graph.compile(**options).spec


# --- add_node ---------------------------------------------------------------------------------------------------------


def test_every_builder_method_returns_the_builder() -> None:
    graph = StateGraph(State)
    assert graph.add_node("a", plan) is graph
    assert graph.add_sequence([("b", plan)]) is graph
    assert graph.add_edge("a", "b") is graph
    assert graph.add_edge(["a", "b"], END) is graph
    assert graph.add_conditional_edges("a", pick) is graph
    assert graph.set_entry_point("a") is graph
    assert graph.set_conditional_entry_point(pick) is graph
    assert graph.set_finish_point("b") is graph
    assert graph.set_node_defaults(timeout=None) is graph
    assert graph.validate() is graph


def test_a_node_is_named_after_what_it_runs_or_as_given() -> None:
    class Caller:
        def __call__(self, state: State) -> Any: ...

    graph = StateGraph(State).add_node(plan).add_node(Caller()).add_node("named", lambda state: None)
    graph.add_node(RunnableLambda(lambda x: x, name="runnable")).add_node(functools.partial(plan))
    assert list(graph.nodes) == ["plan", "Caller", "named", "runnable", "partial"]


def test_a_compiled_graph_is_a_node_under_its_name() -> None:
    child = two().compile(name="child")
    found = spec(StateGraph(State).add_node(child).add_node("other", child).add_edge(START, "child")).nodes
    assert [(found[n].call.kind, found[n].call.fn is child) for n in ("child", "other")] == [("graph", True)] * 2


def test_a_graph_that_is_not_compiled_is_no_node() -> None:
    with pytest.raises(GraphValidationError, match=r"call \.compile\(\)"):
        StateGraph(State).add_node("child", two())


@pytest.mark.parametrize("names", [Name, StrName])
def test_enum_members_are_names_everywhere(names: Any) -> None:
    graph = StateGraph(State).add_node(names.PLAN, plan).add_node("act", act)
    graph.add_edge(START, names.PLAN).add_edge([names.PLAN], "act").add_edge(names.PLAN, END)
    graph.add_conditional_edges(names.PLAN, pick, {"x": names.PLAN, names.PLAN: END})
    graph.add_node("jump", act, destinations=(names.PLAN,))
    compiled = graph.compile(interrupt_before=[names.PLAN])
    node = compiled.spec.nodes["plan"]
    assert node.edges == (END,)
    assert node.branches[0].ends == {"x": "plan", names.PLAN: END}
    assert compiled.spec.joins == (Join(frozenset({"plan"}), "act"),)
    assert compiled.spec.nodes["jump"].destinations == ("plan",)
    assert all(type(name) is str for name in compiled.spec.nodes)


def test_options_of_a_node_reach_the_spec() -> None:
    policy = RetryPolicy(max_attempts=5)
    graph = two().add_node(
        "n",
        wait,
        defer=True,
        metadata={"k": 1},
        retry_policy=policy,
        destinations={"plan": "again", END: "done"},
        timeout=timedelta(seconds=2),
        error_handler=act,
    )
    node = spec(graph).nodes["n"]
    assert (node.defer, node.metadata, node.retry, node.timeout) == (True, {"k": 1}, (policy,), TimeoutPolicy(2.0))
    assert node.destinations == {"plan": "again", END: "done"}
    assert node.error_handler.fn is act
    assert node.call.is_async


def test_several_retry_policies_keep_their_order() -> None:
    policies = [RetryPolicy(max_attempts=5), RetryPolicy(retry_on=ValueError)]
    assert spec(two().add_node("n", act, retry_policy=policies)).nodes["n"].retry == tuple(policies)


@pytest.mark.parametrize("bad", [[3], (RetryPolicy(), None)])
def test_what_is_no_retry_policy_is_refused(bad: Any) -> None:
    with pytest.raises(GraphValidationError, match="retry_policy holds a"):
        StateGraph(State).add_node("n", plan, retry_policy=bad)


@pytest.mark.parametrize("name", ["a|b", "a:b"])
def test_characters_of_namespaces_are_refused_in_names(name: str) -> None:
    with pytest.raises(ValueError, match="is a reserved character and is not allowed in the node names"):
        StateGraph(State).add_node(name, plan)


@pytest.mark.parametrize("name", [START, END])
def test_the_names_of_the_ends_are_reserved(name: str) -> None:
    with pytest.raises(ValueError, match=f"Node `{name}` is reserved"):
        StateGraph(State).add_node(name, plan)


def test_a_second_node_of_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="Node `plan` already present"):
        StateGraph(State).add_node(plan).add_node("plan", act)


def test_a_name_without_an_action_is_refused() -> None:
    with pytest.raises(GraphValidationError, match="write add_node\\('plan', function\\)"):
        StateGraph(State).add_node("plan")


def test_a_node_may_be_named_like_a_key_of_the_state() -> None:
    assert "a" in spec(StateGraph(State).add_node("a", plan).add_edge(START, "a")).nodes


@pytest.mark.parametrize("timeout", [0, -1, 0.0, timedelta(0), float("nan")])
def test_a_timeout_is_greater_than_zero(timeout: Any) -> None:
    with pytest.raises(ValueError, match="greater than 0"):
        StateGraph(State).add_node("n", wait, timeout=timeout)
    with pytest.raises(ValueError, match="greater than 0"):
        StateGraph(State).set_node_defaults(timeout=timeout)


def test_a_timeout_of_a_plain_function_is_refused_at_compile() -> None:
    graph = StateGraph(State).add_node("n", plan, timeout=1).add_edge(START, "n")
    with pytest.raises(ValueError, match="only supported for async nodes") as caught:
        graph.compile()
    assert "'n'" in str(caught.value)


def test_a_default_timeout_of_a_plain_function_is_refused_at_compile() -> None:
    with pytest.raises(ValueError, match="only supported for async nodes"):
        two().set_node_defaults(timeout=1).compile()


# --- defaults ---------------------------------------------------------------------------------------------------------


def test_defaults_apply_to_nodes_without_their_own() -> None:
    mine, common = RetryPolicy(max_attempts=9), RetryPolicy(max_attempts=2)
    graph = StateGraph(State).set_node_defaults(retry_policy=common, error_handler=act, timeout=7)
    graph.add_node("own", wait, retry_policy=mine, error_handler=plan, timeout=1).add_node("bare", wait)
    nodes = spec(graph.add_edge(START, "own")).nodes
    assert (nodes["own"].retry, nodes["own"].error_handler.fn, nodes["own"].timeout) == (
        (mine,),
        plan,
        TimeoutPolicy(1.0),
    )
    assert (nodes["bare"].retry, nodes["bare"].error_handler.fn, nodes["bare"].timeout) == (
        (common,),
        act,
        TimeoutPolicy(7.0),
    )


def test_defaults_set_twice_add_up() -> None:
    graph = two().set_node_defaults(retry_policy=RetryPolicy()).set_node_defaults(error_handler=act)
    node = spec(graph).nodes["plan"]
    assert node.retry == (RetryPolicy(),)
    assert node.error_handler is not None


def test_an_empty_list_of_retries_means_none_at_all() -> None:
    graph = two().set_node_defaults(retry_policy=RetryPolicy()).add_node("n", act, retry_policy=[])
    assert spec(graph).nodes["n"].retry == ()


def test_the_name_of_the_default_handler_is_taken_once_there_is_one() -> None:
    graph = two().add_node("__default_error_handler__", act)
    graph.compile()
    with pytest.raises(ValueError, match=r"__default_error_handler__.*already exists"):
        graph.set_node_defaults(error_handler=act).compile()


# --- edges ------------------------------------------------------------------------------------------------------------


def test_edges_are_kept_in_order_and_once() -> None:
    graph = two().add_node("x", act).add_edge("plan", "x").add_edge("plan", "act").add_edge("plan", "x")
    assert spec(graph).nodes["plan"].edges == ("x", "act")
    assert spec(graph).nodes[START].edges == ("plan",)
    assert graph.edges == {(START, "plan"), ("plan", "x"), ("plan", "act")}


def test_an_edge_from_a_list_waits_for_all() -> None:
    graph = two().add_node("x", act).add_edge(["plan", "act"], "x").add_edge(["plan", "x"], END)
    assert spec(graph).joins == (Join(frozenset({"plan", "act"}), "x"),)
    assert graph.waiting_edges == {(("plan", "act"), "x"), (("plan", "x"), END)}


@pytest.mark.parametrize(("starts", "end"), [(["plan", "serach"], "act"), (["plan"], "serach"), ([START], "act")])
def test_a_waiting_edge_needs_its_nodes_first(starts: list[str], end: str) -> None:
    with pytest.raises(ValueError, match=r"Need to add_node `.*` first"):
        two().add_edge(starts, end)


def test_a_waiting_edge_from_nothing_is_refused() -> None:
    with pytest.raises(GraphValidationError, match="waits for no node"):
        two().add_edge([], "plan")


@pytest.mark.parametrize("start", [END, [END], ["plan", END]])
def test_no_edge_starts_at_the_end(start: Any) -> None:
    with pytest.raises(ValueError, match="END cannot be a start node"):
        two().add_edge(start, "plan")


@pytest.mark.parametrize("start", ["plan", ["plan"]])
def test_no_edge_ends_at_the_start(start: Any) -> None:
    with pytest.raises(ValueError, match="START cannot be an end node"):
        two().add_edge(start, START)


def test_a_sequence_is_a_chain() -> None:
    graph = StateGraph(State).add_sequence([plan, ("second", act), act]).add_edge(START, "plan")
    nodes = spec(graph).nodes
    assert [nodes[n].edges for n in ("plan", "second", "act")] == [("second",), ("act",), ()]


def test_an_empty_sequence_is_refused() -> None:
    with pytest.raises(ValueError, match="Sequence requires at least one node"):
        StateGraph(State).add_sequence([])


@pytest.mark.parametrize("nodes", [[plan, plan], [("a", plan), ("a", act)]])
def test_a_name_twice_in_a_sequence_is_refused(nodes: Any) -> None:
    with pytest.raises(ValueError, match="already exists"):
        StateGraph(State).add_sequence(nodes)


def test_entry_and_finish_points_are_edges() -> None:
    graph = StateGraph(State).add_node(plan).set_entry_point("plan").set_finish_point("plan")
    assert graph.edges == {(START, "plan"), ("plan", END)}


# --- routers ----------------------------------------------------------------------------------------------------------


def to_either(state: State) -> Literal["plan", "act", "__end__"]: ...


def test_a_router_is_a_branch_of_its_node() -> None:
    (branch,) = spec(two().add_conditional_edges("plan", pick)).nodes["plan"].branches
    assert (branch.name, branch.call.fn, branch.ends) == ("pick", pick, None)
    assert branch.reader.keys == ("a", "log")


@pytest.mark.parametrize(
    ("path", "path_map", "ends"),
    [
        (pick, {"yes": "act", False: END}, {"yes": "act", False: END}),
        (pick, ["act", END], {"act": "act", END: END}),
        (pick, ("act",), {"act": "act"}),
        (to_either, None, {"plan": "plan", "act": "act", END: END}),
        (to_either, {"plan": "act"}, {"plan": "act"}),
        (lambda state: "act", None, None),
    ],
)
def test_a_path_map_or_a_literal_says_where_a_router_leads(path: Any, path_map: Any, ends: Any) -> None:
    (branch,) = spec(two().add_conditional_edges("plan", path, path_map)).nodes["plan"].branches
    assert branch.ends == ends


def test_a_router_at_the_entry_is_a_branch_of_start() -> None:
    graph = StateGraph(State).add_node(plan).set_conditional_entry_point(pick, ["plan"])
    assert spec(graph).nodes[START].branches[0].ends == {"plan": "plan"}


def test_two_routers_of_a_name_behind_a_node_are_refused() -> None:
    graph = two().add_conditional_edges("plan", lambda state: "act")
    with pytest.raises(ValueError, match="Branch with name `condition` already exists for node `plan`"):
        graph.add_conditional_edges("plan", lambda state: "act")
    graph.add_conditional_edges("plan", pick).add_conditional_edges("act", pick)


def test_a_router_may_be_async_and_injected_into() -> None:
    async def route(state: State, config: Any) -> str: ...

    call = spec(two().add_conditional_edges("plan", route)).nodes["plan"].branches[0].call
    assert (call.is_async, call.wants) == (True, {"config": "config"})


def test_a_router_reads_its_own_schema_or_that_of_its_node() -> None:
    def narrow(state: Part) -> Any: ...
    def own(state: Private) -> str: ...
    def bare(state: Any) -> str: ...

    graph = StateGraph(State).add_node(narrow).add_edge(START, "narrow")
    graph.add_conditional_edges("narrow", own).add_conditional_edges("narrow", bare).add_conditional_edges(START, bare)
    nodes = spec(graph).nodes
    assert [b.reader.keys for b in nodes["narrow"].branches] == [("secret",), ("a",)]
    assert nodes[START].branches[0].reader.keys == ("a", "log")
    assert "secret" in graph.channels


# --- schemas of nodes -------------------------------------------------------------------------------------------------


def test_a_node_reads_the_schema_of_its_first_parameter() -> None:
    def narrow(state: Part) -> Any: ...
    def private(state: Private) -> Any: ...
    def model(state: Model) -> Any: ...
    def untyped(state: dict[str, Any]) -> Any: ...

    graph = StateGraph(State).add_sequence([narrow, private, model, untyped]).add_edge(START, "narrow")
    found = spec(graph)
    readers = {name: found.nodes[name].reader for name in ("narrow", "private", "model", "untyped")}
    assert [r.keys for r in readers.values()] == [("a",), ("secret",), ("a",), ("a", "log")]
    assert readers["narrow"].make is None
    assert readers["model"].make({"a": 1}) == Model(a=1)
    assert found.to_writes({"secret": "s", "nowhere": 1}) == [("secret", "s")]
    assert found.input_keys == found.output_keys == ("a", "log")


def test_a_given_input_schema_wins_over_the_annotation() -> None:
    node = spec(StateGraph(State).add_node("n", plan, input_schema=Part).add_edge(START, "n")).nodes["n"]
    assert node.reader.keys == ("a",)


def test_input_and_output_schemas_limit_what_goes_in_and_out() -> None:
    graph = StateGraph(State, input_schema=Part, output_schema=Private).add_node(plan).add_edge(START, "plan")
    found = spec(graph)
    assert (found.input_keys, found.output_keys) == (("a",), ("secret",))
    assert set(found.channels) == {"a", "log", "secret"}


def test_the_spec_names_all_schemas_for_the_codec() -> None:
    def private(state: Private) -> Any: ...
    def route(state: Model) -> str: ...

    graph = StateGraph(State, Data, input_schema=Part).add_node(private).add_edge(START, "private")
    assert spec(graph.add_conditional_edges("private", route)).types == (State, Part, Private, Model, Data)


def test_a_key_keeps_the_reducer_that_a_plain_declaration_does_not_repeat() -> None:
    class Seen(TypedDict):
        log: list[str]

    graph = StateGraph(State).add_node("n", plan, input_schema=Seen)
    assert graph.channels["log"].kind == "append"


def test_a_key_with_two_reducers_is_refused() -> None:
    class Other(TypedDict):
        log: Annotated[list[str], lambda a, b: a]

    class Added(TypedDict):
        a: Annotated[int, operator.add]

    assert StateGraph(State).add_node("n", plan, input_schema=State)
    for schema in (Other, Added):
        with pytest.raises(ValueError, match="already exists with a different type"):
            StateGraph(State).add_node("n", plan, input_schema=schema)


def test_managed_values_are_read_but_neither_put_in_nor_returned() -> None:
    class Counting(TypedDict):
        a: int
        left: RemainingSteps

    found = spec(StateGraph(Counting).add_node("n", lambda s: None).add_edge(START, "n"))
    assert found.nodes["n"].reader.managed == {"left": "remaining_steps"}
    assert (found.nodes["n"].reader.keys, found.input_keys, found.output_keys) == (("a",), ("a",), ("a",))
    assert found.to_writes({"left": 3, "a": 1}) == [("a", 1)]
    with pytest.raises(ValueError, match="Managed channels are not permitted in Input/Output schema"):
        StateGraph(State, output_schema=Counting)


def test_a_bare_type_is_a_state_of_one_value() -> None:
    found = spec(StateGraph(Annotated[list[str], operator.add]).add_node("n", lambda s: s).add_edge(START, "n"))
    assert found.whole
    assert found.nodes["n"].reader.whole
    assert (found.input_keys, found.output_keys) == (("__root__",), ("__root__",))
    assert found.to_writes(["x"]) == [("__root__", ["x"])]


def test_messages_state_may_be_derived_from() -> None:
    class Chat(MessagesState):
        user: str

    assert {k: c.kind for k, c in StateGraph(Chat).channels.items()} == {"messages": "messages", "user": "last"}


# --- commands ---------------------------------------------------------------------------------------------------------


def test_an_annotated_command_says_where_a_node_may_lead() -> None:
    def jump(state: State) -> Command[Literal["plan", "act"]]: ...
    def maybe(state: State) -> Command[Literal["act", "__end__"]] | None: ...
    def free(state: State) -> Command: ...

    graph = two().add_node(jump).add_node(maybe).add_node(free)
    graph.add_node("given", jump, destinations=("act",))
    nodes = spec(graph).nodes
    found = [nodes[n].destinations for n in ("jump", "maybe", "free", "given")]
    assert found == [("plan", "act"), ("act", END), None, ("act",)]


def test_a_command_reaches_the_spec_as_a_value_with_its_update() -> None:
    assert spec(two()).to_writes(Command(update={"a": 1}).update) == [("a", 1)]
    assert Send(Name.PLAN, {}).node == "plan"  # type: ignore[arg-type]


# --- compile ----------------------------------------------------------------------------------------------------------


def test_a_graph_is_named_langgraph_unless_it_is_named() -> None:
    assert spec(two()).name == "LangGraph"
    assert spec(two(), name="triage").name == "triage"


def test_compiling_twice_sees_what_was_added_between() -> None:
    graph = two()
    first = spec(graph)
    second = spec(graph.add_node("later", act))
    assert "later" not in first.nodes
    assert "later" in second.nodes


def test_a_compiled_graph_remembers_its_builder() -> None:
    graph = two()
    assert graph.compile().builder is graph


@pytest.mark.parametrize("saver", ["memory", object(), 1])
def test_what_is_no_saver_is_refused(saver: Any) -> None:
    with pytest.raises(UsageError, match="`checkpointer` is a"):
        two().compile(checkpointer=saver)
