"""What a user does with a thread, as data: calls in some form, answers, updates, steps back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

MODES = ("values", "updates", "custom", "messages", "tasks", "checkpoints", "debug")


@dataclass(frozen=True)
class How:
    """The form of a call: without modes it is `invoke`. `later` is the async form."""

    modes: tuple[str, ...] = ()
    subgraphs: bool = False
    typed: bool = False
    later: bool = False


@dataclass(frozen=True)
class Step:
    """One thing that a user does. `number` chooses: which checkpoint, which questions, which node."""

    kind: str
    number: int = 0
    how: How = How()


@dataclass(frozen=True)
class Script:
    """The steps, and what is asked of the history at the end."""

    steps: tuple[Step, ...]
    limit: int | None = None
    source: str | None = None
    before: int | None = None
    durability: str | None = None


FORWARD = ("input", "answer", "go_on")
BACK = ("replay", "fork", "update", "copy", "bulk", "clear")


@st.composite
def hows(draw: Any) -> How:
    """Draw the form of a call."""
    modes = tuple(draw(st.lists(st.sampled_from(MODES), unique=True, max_size=3)))
    flags = [draw(st.booleans()) for _ in range(3)] if modes else [False, False, draw(st.booleans())]
    return How(modes, *flags)


@st.composite
def scripts(draw: Any, kinds: tuple[str, ...]) -> Script:
    """Draw a script of these kinds of steps, which begins with an input."""
    numbers = st.integers(0, 7)
    step = st.builds(Step, st.sampled_from(("answer", *kinds)), numbers, hows())
    first = Step("input", 0, draw(hows()))
    steps = (first, *draw(st.lists(step, min_size=1, max_size=6)))
    source = draw(st.sampled_from([None, None, "loop", "input", "update", "fork"]))
    durability = draw(st.sampled_from([None, None, "sync", "exit"] if set(kinds) <= set(FORWARD) else [None, "sync"]))
    limit, before = draw(st.sampled_from([None, None, 1, 3])), draw(st.sampled_from([None, None, 0, 2]))
    return Script(steps, limit, source, before, durability)
