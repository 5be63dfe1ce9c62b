"""Agents without approvals come to the same on Waitpoint and on LangChain: messages, parts, what the model is shown."""

from __future__ import annotations

import pytest

from tests.differential import agent_hook_programs
from tests.differential.agent_programs import PROGRAMS
from tests.differential.agents import LANGCHAIN, WAITPOINT, Program, Stage

assert agent_hook_programs  # its programs are on the list too

each = pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)


@each
def test_invoke_gives_the_same(make: Program) -> None:
    assert Stage(WAITPOINT, make).invoked() == Stage(LANGCHAIN, make).invoked()


@each
def test_ainvoke_gives_the_same(make: Program) -> None:
    theirs = Stage(LANGCHAIN, make).awaited()
    if theirs["result"] == "NotImplementedError":  # here hooks that block run under `ainvoke` too
        theirs = Stage(LANGCHAIN, make).invoked()
    assert Stage(WAITPOINT, make).awaited() == theirs


@each
def test_streams_have_the_same_parts(make: Program) -> None:
    assert Stage(WAITPOINT, make).streamed() == Stage(LANGCHAIN, make).streamed()
