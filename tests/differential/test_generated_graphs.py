"""Generated graphs, played by generated scripts, come to the same on Waitpoint and on LangGraph."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.differential.generated import agent_rules, rules
from tests.differential.generated.comparing import same, tried
from tests.differential.generated.graph_playing import Player
from tests.differential.generated.graph_shapes import Flavour, graphs
from tests.differential.generated.scripts import BACK, FORWARD, scripts
from tests.differential.play import LANGGRAPH, WAITPOINT

ALL = (*FORWARD, *BACK)
MEMORIES = (None, None, True, False)
FAMILIES = {
    "side by side": (Flavour(joins=True), FORWARD),
    "contradictions": (Flavour(asks=False), FORWARD),
    "failures": (Flavour(linear=True, fails=True), ALL),
    "failures side by side": (Flavour(fails=True, defers=True), FORWARD),
    "time travel": (Flavour(), ALL),
    "breakpoints": (Flavour(linear=True, stops=True), ALL),
    "graphs in graphs": (Flavour(depth=1), FORWARD),
    "upward": (Flavour(depth=2, linear=True, upward=True), FORWARD),
    "three deep": (Flavour(depth=2, linear=True, memories=MEMORIES), ALL),
}


def check(family: str, drawn: st.DataObject) -> None:
    flavour, kinds = FAMILIES[family]
    graph, script = drawn.draw(graphs(flavour)), drawn.draw(scripts(kinds))
    same(Player(WAITPOINT, graph).play(script), Player(LANGGRAPH, graph).play(script))


@pytest.mark.parametrize("family", FAMILIES)
@tried(25)
@given(drawn=st.data())
def test_a_generated_graph_comes_to_the_same(family: str, drawn: st.DataObject) -> None:
    check(family, drawn)


@pytest.mark.proof
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("family", FAMILIES)
@tried(2000, shrinks=True)
@given(drawn=st.data())
def test_thousands_of_generated_graphs_come_to_the_same(family: str, drawn: st.DataObject) -> None:
    check(family, drawn)


def test_every_difference_is_documented() -> None:
    assert agent_rules  # whose rules are in the same table
    page = (Path(__file__).parents[2] / "docs" / "from-langgraph.md").read_text(encoding="utf-8")
    assert [sentence for sentence in rules.DOCUMENTED if sentence not in page] == []
