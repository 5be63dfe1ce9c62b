"""Small programs of all kinds come to the same on Waitpoint and on LangGraph: results, parts, states, history."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential import more_programs, subgraph_programs
from tests.differential.play import LANGGRAPH, WAITPOINT, Stage
from tests.differential.programs import PROGRAMS

assert more_programs
assert subgraph_programs  # their programs are on the list too


def programs_without(difference: str) -> pytest.MarkDecorator:
    """Return all programs but those that are meant to differ in this."""
    chosen = [make for make in PROGRAMS if difference not in make(WAITPOINT).differs]
    return pytest.mark.parametrize("make", chosen, ids=lambda make: make.__name__)


@programs_without("results")
def test_invoke_and_get_state_say_the_same(make: Any) -> None:
    assert Stage(WAITPOINT, make).invoked() == Stage(LANGGRAPH, make).invoked()


@programs_without("results")
async def test_ainvoke_and_aget_state_say_the_same(make: Any) -> None:
    assert await Stage(WAITPOINT, make).awaited() == await Stage(LANGGRAPH, make).awaited()


@programs_without("parts")
def test_values_and_updates_are_the_same_parts(make: Any) -> None:
    assert Stage(WAITPOINT, make).streamed() == Stage(LANGGRAPH, make).streamed()


@programs_without("history")
def test_histories_are_the_same(make: Any) -> None:
    assert Stage(WAITPOINT, make).history() == Stage(LANGGRAPH, make).history()
