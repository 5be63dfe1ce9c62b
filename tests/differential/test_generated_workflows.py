"""Generated workflows of entrypoints and tasks come to the same on Waitpoint and on LangGraph."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.differential.generated.comparing import same, tried
from tests.differential.generated.workflows import Player, Workflow, workflows
from tests.differential.play import LANGGRAPH, WAITPOINT


@tried(40)
@given(workflow=workflows, runs=st.integers(1, 3))
def test_a_generated_workflow_comes_to_the_same(workflow: Workflow, runs: int) -> None:
    same(Player(WAITPOINT, workflow).play(runs), Player(LANGGRAPH, workflow).play(runs))


@pytest.mark.proof
@pytest.mark.timeout(3600)
@tried(2000, shrinks=True)
@given(workflow=workflows, runs=st.integers(1, 3))
def test_thousands_of_generated_workflows_come_to_the_same(workflow: Workflow, runs: int) -> None:
    same(Player(WAITPOINT, workflow).play(runs), Player(LANGGRAPH, workflow).play(runs))
