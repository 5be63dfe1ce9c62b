"""Answers that nobody would think of, and good ones with a small mistake, against an agent that waits.

Guarantees: never-wedged, gate-before-effect, answers-atomic.
"""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.tools import tool
from pydantic import ValidationError

from tests.agents.gated import APPROVE, ASKED, REJECT, RESPOND, approval, edit, thread
from tests.agents.scripted import Scripted, calls
from waitpoint.agents import create_agent
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.errors import WaitpointError
from waitpoint.types import Command

PAYMENTS = [("pay", "c1", {"to": "ana", "amount": 5}), ("pay", "c2", {"to": "bob", "amount": 6})]
GOOD = [APPROVE, REJECT, {"type": "reject"}, RESPOND, edit("pay", to="cy", amount=7), edit("read", path="notes")]

# --- what may be answered ---------------------------------------------------------------------------------------------

WORDS = [
    "approve", "edit", "reject", "respond", "APPROVE", "approve ", "ok", "yes", "pay", "wipe", "read", "c1", "c2", "\ud800",
    "\x00",
]  # fmt: skip
texts = st.text(max_size=8) | st.sampled_from(WORDS)
keys = st.sampled_from(
    [
        "type", "message", "edited_action", "editedAction", "name", "args", "decisions", "tool_call_id", "toolCallId", "to",
        "amount", "path", "action", "Type", "",
    ]
) | texts  # fmt: skip
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
junk = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the places in a value, from the outside in."""
    inner: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in inner for place in places(part, (*path, key)))]


def changed(draw: Any, value: Any) -> Any:
    """Return a value with one small mistake."""
    value = copy.deepcopy(value)
    *way, last = ["", *draw(st.sampled_from(places(value)))]
    if not way:
        return draw(junk)
    holder = value
    for key in way[1:]:
        holder = holder[key]
    how = draw(st.sampled_from(["replace", "replace", "drop", "add", "rename", "wrap", "repeat", "text"]))
    if how == "drop":
        del holder[last]
    elif how == "wrap":
        holder[last] = [holder[last]]
    elif how == "text":
        holder[last] = str(holder[last])
    elif how == "add" and isinstance(holder, dict):
        holder[draw(keys)] = draw(junk)
    elif how == "rename" and isinstance(holder, dict):
        holder[draw(keys)] = holder.pop(last)
    elif how == "repeat" and isinstance(holder, list):
        holder.append(holder[last])
    else:
        holder[last] = draw(junk)
    return value


@st.composite
def near_misses(draw: Any) -> Any:
    """A good answer with up to three mistakes; some come out good again."""
    decisions = [draw(st.sampled_from(GOOD)) for _ in range(draw(st.sampled_from([2, 2, 2, 1, 3])))]
    value: Any = draw(st.sampled_from([{"decisions": decisions}, decisions[0], decisions]))
    for _ in range(draw(st.integers(0, 3))):
        value = changed(draw, value)
    return value


answers = st.lists(junk | near_misses() | near_misses(), min_size=5, max_size=5)

# --- what an answer means, read without any of the product ------------------------------------------------------------


def effects_of(decision: Any, call: dict[str, Any], mode: str) -> list[str]:
    """Return what a decision makes happen; fails for one that should not have been taken."""
    kind = decision["type"]
    assert kind in ("approve", "edit", "reject", "respond")
    if kind == "edit":
        action = decision.get("edited_action") or decision["editedAction"]
        name, args = action["name"], action["args"]
        if name == "read" and mode == "batched":
            assert type(args["path"]) is str
            return [f"read {args['path']}"]
        assert name == "pay"
        assert type(args["to"]) is str
        assert type(args["amount"]) in (int, float)
        assert args["amount"] == int(args["amount"])
        return [f"paid {int(args['amount'])} to {args['to']}"]
    return [f"paid {call['amount']} to {call['to']}"] if kind == "approve" else []


class Waiting:
    """An agent that waits, on a new thread each time that it has its answer."""

    def __init__(self, mode: Any) -> None:
        self.mode = mode
        self.calls = PAYMENTS if mode == "batched" else PAYMENTS[:1]
        self.done: list[str] = []
        self.names = itertools.count()

        @tool
        def pay(to: str, amount: int) -> str:
            """Pay somebody."""
            self.done.append(f"paid {amount} to {to}")
            return "paid"

        @tool
        def wipe(path: str) -> str:
            """Delete a file."""
            self.done.append(f"wiped {path}")
            return "wiped"

        @tool
        def read(path: str) -> str:
            """Read a file."""
            self.done.append(f"read {path}")
            return "text"

        self.tools = [pay, wipe, read]

    def ask(self) -> None:
        """Begin a thread whose agent waits."""
        self.done.clear()
        model = Scripted(calls(*self.calls), "done")
        self.agent = create_agent(model, self.tools, middleware=[approval(self.mode)], checkpointer=InMemorySaver())
        self.config = thread(str(next(self.names)))
        (self.question,) = self.agent.invoke(ASKED, self.config)["__interrupt__"]
        assert self.done == []

    def answer(self, value: Any) -> bool:
        """Answer; return whether it was taken. What then happened is what the answer says, and nothing if it was not."""
        try:
            state = self.agent.invoke(Command(resume=value), self.config)
        except (ValidationError, WaitpointError):
            assert self.done == []
            assert self.agent.get_state(self.config).interrupts == (self.question,)
            return False
        assert "__interrupt__" not in state
        assert state["messages"][-1].text == "done"
        if isinstance(value, dict) and self.question.id in value:
            value = value[self.question.id]
        decisions = value["decisions"] if self.mode == "batched" else [value]
        labels = [d.get("tool_call_id", d.get("toolCallId")) for d in decisions]
        given = [d for _, d in sorted(zip(labels, decisions, strict=True), key=lambda pair: pair[0] or "")]
        expected = [e for d, c in zip(given, self.calls, strict=True) for e in effects_of(d, c[2], self.mode)]
        assert sorted(self.done) == sorted(expected)
        return True

    def good(self, first: Any) -> Any:
        """Return an answer that is right."""
        return {"decisions": [first, REJECT]} if self.mode == "batched" else first


def play(waiting: Waiting, given: list[Any], first: Any) -> None:
    """Give answers one after the other, bare and by id, then a good one."""
    waiting.ask()
    for number, value in enumerate(given):
        if waiting.answer(value if number % 2 else {waiting.question.id: value}):
            waiting.ask()
    assert waiting.answer(waiting.good(first))


firsts = st.sampled_from([APPROVE, REJECT, RESPOND, edit("pay", to="cy", amount=7)])


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["batched", "per_call"])
def test_random_answers_never_crash_nor_wedge_it_nor_run_what_they_do_not_allow(mode: str) -> None:
    waiting = Waiting(mode)

    @settings(max_examples=60)
    @given(answers, firsts)
    def three_hundred(given: list[Any], first: Any) -> None:
        play(waiting, given, first)

    three_hundred()


@pytest.mark.proof
@pytest.mark.parametrize("mode", ["batched", "per_call"])
def test_ten_thousand_random_answers(mode: str) -> None:
    waiting = Waiting(mode)

    @settings(max_examples=2000)
    @given(answers, firsts)
    def ten_thousand(given: list[Any], first: Any) -> None:
        play(waiting, given, first)

    ten_thousand()
