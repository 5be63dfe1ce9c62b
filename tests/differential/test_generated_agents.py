"""Generated agents, used by generated users, come to the same on Waitpoint and on LangChain.

Each family is tried in a process of its own: what other tests leave behind in one (event loops, tracers, classes that
were registered) must not reach the peer.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.differential.agents import LANGCHAIN, WAITPOINT
from tests.differential.generated import agent_rules
from tests.differential.generated.agent_playing import Player
from tests.differential.generated.agent_shapes import AROUND, ASKING, PLAIN, TOOLS, Flavour, shapes, uses
from tests.differential.generated.comparing import same, tried

FAMILIES = {
    "tools": Flavour(around=(), fails=False),
    "middleware": Flavour(),
    "results": Flavour(around=("hooks", "dynamic"), results=("tool", "provider"), fails=False),
    "questions": Flavour(tools=(*PLAIN, *ASKING), around=agent_rules.beside_questions(AROUND), fails=False),
    "approvals of a turn": Flavour(
        tools=agent_rules.beside_gates(TOOLS),
        around=("hooks", "dynamic", "tool error"),
        modes=("batched",),
        fails=False,
    ),
    "approvals of calls": Flavour(
        tools=agent_rules.beside_gates(TOOLS), around=("hooks", "tool error"), modes=("per_call",), fails=False
    ),
}


def check(family: str, drawn: st.DataObject) -> None:
    shape, use = drawn.draw(shapes(replace(FAMILIES[family], said=agent_rules.said))), drawn.draw(uses)
    same(Player(WAITPOINT, shape).play(use), Player(LANGCHAIN, shape).play(use))


@tried(6)
@given(drawn=st.data())
def a_few(family: str, drawn: st.DataObject) -> None:
    check(family, drawn)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_generated_agent_comes_to_the_same(family: str) -> None:
    code = f"from tests.differential.test_generated_agents import a_few; a_few({family!r})"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=55)
    assert done.returncode == 0, done.stderr[-5000:]


@pytest.mark.proof
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("family", FAMILIES)
@tried(1000, shrinks=True)
@given(drawn=st.data())
def test_thousands_of_generated_agents_come_to_the_same(family: str, drawn: st.DataObject) -> None:
    check(family, drawn)
