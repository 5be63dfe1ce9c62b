"""Random programs come to the same on Waitpoint and on LangGraph: results, states, history."""

from __future__ import annotations

import pytest

from tests.differential.play import LANGGRAPH, WAITPOINT
from tests.differential.random_programs import Player


@pytest.mark.parametrize("seed", range(60))
def test_a_random_program_comes_to_the_same(seed: int) -> None:
    assert Player(WAITPOINT, seed).play() == Player(LANGGRAPH, seed).play()


@pytest.mark.parametrize("seed", range(60, 100))
def test_a_random_programs_streams_have_the_same_parts(seed: int) -> None:
    assert Player(WAITPOINT, seed).play(streams=True) == Player(LANGGRAPH, seed).play(streams=True)


@pytest.mark.proof
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("block", range(10))
def test_thousands_of_random_programs_come_to_the_same(block: int) -> None:
    for seed in range(1000 + 200 * block, 1200 + 200 * block):
        streams = seed % 2 == 1
        ours, theirs = (Player(library, seed).play(streams=streams) for library in (WAITPOINT, LANGGRAPH))
        assert ours == theirs, f"seed {seed}"
