"""Validation: what cannot work is refused at compile, by name and with the cure."""

from typing import Any, Literal, TypedDict

import pytest

from waitpoint.errors import GraphValidationError
from waitpoint.graph import END, START, StateGraph
from waitpoint.records import Command


class State(TypedDict):
    a: int


def node(state: State) -> Any: ...


def graph(*names: str) -> StateGraph:
    builder = StateGraph(State)
    for name in names or ("search", "answer"):
        builder.add_node(name, node)
    return builder.add_edge(START, next(iter(builder.nodes)))


def refusal(builder: StateGraph, **options: Any) -> str:
    with pytest.raises(GraphValidationError) as caught:
        builder.compile(**options)
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


def test_an_edge_from_an_unknown_node_is_refused_with_a_suggestion() -> None:
    text = refusal(graph().add_edge("serach", "answer"))
    assert text == (
        "Found edge starting at unknown node 'serach' - the edge to 'answer' starts there, but no such node was added; "
        "did you mean 'search'?"
    )


def test_an_edge_to_an_unknown_node_is_refused_with_a_suggestion() -> None:
    text = refusal(graph().add_edge("answer", "serach"))
    assert "Found edge ending at unknown node `serach` - the edge from 'answer' goes there" in text
    assert text.endswith("did you mean 'search'?")


def test_without_a_similar_name_the_known_ones_are_listed() -> None:
    assert refusal(graph().add_edge("answer", "xyz")).endswith("; known: 'search', 'answer'")


def test_a_long_list_of_known_names_is_cut() -> None:
    text = refusal(graph(*(f"n{i}" for i in range(30))).add_edge("n1", "xyz"))
    assert text.endswith("'n9', ...")


def test_a_router_behind_an_unknown_node_is_refused() -> None:
    text = refusal(graph().add_conditional_edges("serach", lambda state: "answer"))
    assert "Found edge starting at unknown node 'serach' - the conditional edges by 'condition' start there" in text


@pytest.mark.parametrize("path_map", [{"x": "serach"}, ["serach"], {"x": START}])
def test_a_path_map_to_an_unknown_node_is_refused(path_map: Any) -> None:
    text = refusal(graph().add_conditional_edges("answer", lambda state: "x", path_map))
    assert "At 'answer' node, 'condition' branch found unknown target" in text


def test_a_literal_that_names_an_unknown_node_is_refused() -> None:
    def route(state: State) -> Literal["answer", "serach"]: ...

    text = refusal(graph().add_conditional_edges("answer", route))
    assert "At 'answer' node, 'route' branch found unknown target 'serach'" in text
    assert "did you mean 'search'?" in text


def test_a_command_that_names_an_unknown_node_is_refused() -> None:
    def jump(state: State) -> Command[Literal["serach"]]: ...

    text = refusal(graph().add_node(jump))
    assert "Found edge ending at unknown node `serach` - node 'jump' lists it as a destination" in text


def test_a_destination_that_is_unknown_is_refused() -> None:
    assert "`nowhere`" in refusal(graph().add_node("jump", node, destinations={"nowhere": "label"}))


def test_a_graph_without_an_entry_is_refused() -> None:
    text = refusal(StateGraph(State).add_node("search", node).add_edge("search", END))
    assert "Graph must have an entrypoint" in text
    assert "add_edge(START, 'search')" in text


def test_an_empty_graph_is_refused() -> None:
    assert "Graph must have an entrypoint" in refusal(StateGraph(State))


def test_a_router_is_an_entry_too() -> None:
    StateGraph(State).add_node("search", node).add_conditional_edges(START, lambda state: "search").compile()


def test_a_node_that_nothing_leads_to_is_allowed() -> None:
    graph().compile()


@pytest.mark.parametrize("argument", ["interrupt_before", "interrupt_after"])
def test_a_breakpoint_at_an_unknown_node_is_refused_with_a_suggestion(argument: str) -> None:
    text = refusal(graph(), **{argument: ["answer", "serach"]})
    assert "Interrupt node `serach` not found" in text
    assert "did you mean 'search'?" in text


def test_a_bad_breakpoint_beside_a_star_is_refused_too() -> None:
    assert "`nowhere`" in refusal(graph(), interrupt_before=["nowhere"], interrupt_after="*")


@pytest.mark.parametrize("names", ["*", ["search"], "search", [], None])
def test_known_breakpoints_are_accepted(names: Any) -> None:
    graph().compile(interrupt_before=names, interrupt_after=names)


def test_validate_checks_without_compiling() -> None:
    with pytest.raises(ValueError, match="unknown node"):
        graph().add_edge("answer", "nowhere").validate()
    with pytest.raises(ValueError, match="Interrupt node `nowhere` not found"):
        graph().validate(interrupt=["nowhere"])
