"""Generated workflows of entrypoints and tasks come to the same on Waitpoint and on LangGraph."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.differential.generated.comparing import same, tried
from tests.differential.generated.scripts import How
from tests.differential.generated.scripts import hows as drawn_hows
from tests.differential.generated.workflows import Player, Workflow, workflows
from tests.differential.play import LANGGRAPH, WAITPOINT

forms = st.lists(drawn_hows(), min_size=1, max_size=3).map(tuple)


@tried(40)
@given(workflow=workflows, runs=st.integers(1, 3), hows=forms)
def test_a_generated_workflow_comes_to_the_same(workflow: Workflow, runs: int, hows: tuple[How, ...]) -> None:
    same(Player(WAITPOINT, workflow).play(runs, hows), Player(LANGGRAPH, workflow).play(runs, hows))


@pytest.mark.proof
@pytest.mark.timeout(3600)
@tried(2000, shrinks=True)
@given(workflow=workflows, runs=st.integers(1, 3), hows=forms)
def test_thousands_of_generated_workflows_come_to_the_same(
    workflow: Workflow, runs: int, hows: tuple[How, ...]
) -> None:
    same(Player(WAITPOINT, workflow).play(runs, hows), Player(LANGGRAPH, workflow).play(runs, hows))
