"""A command whose update does not fit the state is refused before anything of it is stored."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.errors import InvalidUpdateError
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt


class State(TypedDict):
    log: Annotated[list[Any], operator.add]


@pytest.mark.parametrize("more", [{}, {"resume": "yes"}, {"goto": "ask"}])
def test_the_thread_stays_readable_and_its_question_open(more: dict[str, Any]) -> None:
    def ask(state: State) -> Any:
        return {"log": [interrupt("go on?")]}

    graph = StateGraph(State).add_node(ask).add_edge(START, "ask").compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    graph.invoke({"log": []}, config)
    with pytest.raises(InvalidUpdateError, match="At key 'log'"):
        graph.invoke(Command(update={"log": None}, **more), config, on_pending="withdraw")
    state = graph.get_state(config)
    assert [i.value for i in state.interrupts] == ["go on?"]
    assert graph.invoke(Command(resume="yes"), config) == {"log": ["yes"]}
