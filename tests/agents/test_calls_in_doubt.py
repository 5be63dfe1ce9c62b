"""What a model is told of a gated call that a crash left in doubt: a probe's word or a person's is the call's answer."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from langchain_core.messages import ToolMessage

from tests.agents.gated import APPROVE, ASKED, THREAD, edit, resume
from tests.agents.scripted import Scripted, calls
from waitpoint.agents import create_agent
from waitpoint.agents.decisions import EDIT_NOTICE
from waitpoint.agents.middleware import HumanInTheLoopMiddleware
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.types import Command, Happened

Mode = Literal["batched", "per_call"]
both_modes = pytest.mark.parametrize("mode", ["batched", "per_call"])


class Stopped:
    """An agent whose one call of `pay` is stopped in the middle by Ctrl-C, after a decision; then it may run."""

    def __init__(self, mode: Mode, *, decision: Any = APPROVE, **config: Any) -> None:
        self.runs = 0
        policy: Any = {"allowed_decisions": ["approve", "edit", "reject"], **config}
        self.model = Scripted(calls(("pay", "c1", {"to": "ana"})), "done")
        self.agent = create_agent(
            self.model,
            [self.pay],
            middleware=[HumanInTheLoopMiddleware({"pay": policy}, interrupt_mode=mode)],
            checkpointer=InMemorySaver(),
        )
        asked = self.agent.invoke(ASKED, THREAD)
        with pytest.raises(KeyboardInterrupt):
            self.agent.invoke(resume(asked, decision), THREAD)

    def pay(self, to: str) -> str:
        """Pay somebody."""
        self.runs += 1
        if self.runs == 1:
            raise KeyboardInterrupt
        return f"paid {to}"

    def told(self) -> ToolMessage:
        """Return the one answer that the model was shown for its call."""
        (answer,) = [m for m in self.model.shown[-1] if isinstance(m, ToolMessage)]
        return answer


@both_modes
@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("paid, says the bank", "paid, says the bank"),
        ({"receipt": 7, "from": "Zoë"}, '{"receipt": 7, "from": "Zoë"}'),
        ([1, 2], "[1, 2]"),
        (None, "The tool was executed; what it returned is not known."),
    ],
)
def test_what_a_probe_found_is_the_answer_to_the_call(mode: Mode, result: Any, text: str) -> None:
    stopped = Stopped(mode, probe=lambda key, args: Happened(result))
    state = stopped.agent.invoke(None, THREAD)
    assert state["messages"][-1].text == "done"
    assert (stopped.told().text, stopped.told().status, stopped.told().name) == (text, "success", "pay")
    assert stopped.runs == 1


@both_modes
@pytest.mark.parametrize(
    ("answer", "text", "runs"),
    [
        ({"type": "happened"}, "The tool was executed; what it returned is not known.", 1),
        ({"type": "happened", "result": "paid by hand"}, "paid by hand", 1),
        ({"type": "happened", "result": {"receipt": 7}}, '{"receipt": 7}', 1),
        ({"type": "not_happened"}, "paid ana", 2),
        ({"type": "run_again"}, "paid ana", 2),
    ],
)
def test_what_a_person_says_of_it_is_the_answer_to_the_call(mode: Mode, answer: Any, text: str, runs: int) -> None:
    stopped = Stopped(mode)
    asked = stopped.agent.invoke(None, THREAD)
    assert asked["__interrupt__"][0].value["type"] == "in_doubt"
    stopped.agent.invoke(Command(resume=answer), THREAD)
    assert (stopped.told().text, stopped.runs) == (text, runs)


@both_modes
async def test_the_same_holds_on_an_event_loop(mode: Mode) -> None:
    stopped = Stopped(mode)
    await stopped.agent.ainvoke(None, THREAD)
    await stopped.agent.ainvoke(Command(resume={"type": "happened", "result": "paid by hand"}), THREAD)
    assert (stopped.told().text, stopped.runs) == ("paid by hand", 1)


@both_modes
def test_of_a_call_that_a_person_changed_the_notice_comes_first(mode: Mode) -> None:
    stopped = Stopped(mode, decision=edit("pay", to="bob"), probe=lambda key, args: Happened(f"paid {args['to']}"))
    stopped.agent.invoke(None, THREAD)
    assert stopped.told().text.startswith(EDIT_NOTICE)
    assert stopped.told().text.endswith('{"to":"bob"}.\n\nTool response:\npaid bob')
