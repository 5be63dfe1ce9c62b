"""Agents as data: what the model says, which tools it has, what stands around them, who decides; and how they are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.differential.generated.scripts import How, hows

DECISIONS = ("approve", "edit", "reject", "respond")
PLAIN = ("add", "count", "login", "slow")
KNOWN = (*PLAIN, "fail", "flaky", "several", "say", "last")
TOOLS = (*KNOWN, "strange", "misfit")  # one that is none, and one with arguments that do not fit
ASKING = ("ask", "clerk")
AROUND = (
    "tool retry",
    "tool error",
    "model retry",
    "fallback",
    "model limit",
    "tool limit",
    "limit of one",
    "hooks",
    "dynamic",
)


class Said(NamedTuple):
    """A reply of the model: calls by the names of their tools, or a failure. With neither it is a text."""

    tools: tuple[str, ...] = ()
    fails: bool = False


@dataclass(frozen=True)
class Shape:
    """An agent. `gated` has the decisions that are allowed for a tool, `mode` how it is asked about."""

    replies: tuple[Said, ...]
    around: tuple[str, ...] = ()
    gated: tuple[tuple[str, tuple[str, ...]], ...] = ()
    mode: str | None = None
    result: str | None = None
    prompt: bool = False


@dataclass(frozen=True)
class Use:
    """What a user does: so many inputs, how each call is made, and the numbers that choose decisions."""

    inputs: int
    hows: tuple[How, ...]
    choices: tuple[int, ...]
    some: bool  # answers some of several questions first


@dataclass(frozen=True)
class Flavour:
    """What an agent of a family may have."""

    tools: tuple[str, ...] = TOOLS
    around: tuple[str, ...] = AROUND
    modes: tuple[str | None, ...] = (None,)
    results: tuple[str | None, ...] = (None,)
    fails: bool = True
    said: Callable[[tuple[str, ...]], tuple[str, ...]] = tuple


@st.composite
def shapes(draw: Any, flavour: Flavour) -> Shape:
    """Draw an agent of a family."""
    tools = st.lists(st.sampled_from(flavour.tools), max_size=3).map(tuple).map(flavour.said)
    fails = st.sampled_from([False, False, False, flavour.fails])
    replies = draw(st.lists(st.builds(Said, tools, fails), min_size=1, max_size=5))
    around = draw(st.lists(st.sampled_from(flavour.around), unique=True, max_size=3)) if flavour.around else []
    mode = draw(st.sampled_from(flavour.modes))
    allowed = st.lists(st.sampled_from(DECISIONS), unique=True, min_size=1).map(tuple)
    gated = (
        draw(
            st.dictionaries(
                st.sampled_from([name for name in flavour.tools if name in KNOWN]), allowed, min_size=1, max_size=3
            )
        )
        if mode
        else {}
    )
    result = draw(st.sampled_from(flavour.results))
    return Shape(tuple(replies), tuple(around), tuple(gated.items()), mode, result, draw(st.booleans()))


uses = st.builds(
    Use,
    st.integers(1, 2),
    st.lists(hows(), min_size=1, max_size=4).map(tuple),
    st.lists(st.integers(0, 11), min_size=1, max_size=6).map(tuple),
    st.booleans(),
)
