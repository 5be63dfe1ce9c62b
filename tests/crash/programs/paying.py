"""An agent that pays once somebody said yes, in a process that may die anywhere; every effect and verdict leaves a line.

The program's name is five words: the mode of asking (`nested_` before it: another agent calls this one), what is known of
the tool (`ask`, `idempotent`, `probe`, `unsure`), the answer to a doubt, how a person answers (`inline` with the run,
`apart` from it), and `blocking` or `asyncio`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from tests.agents.scripted import calls, refuse_what_strict_providers_refuse
from tests.crash.checks import all_questions, unread_answers
from tests.crash.programs import server
from tests.crash.programs.world import World, here
from waitpoint import codec
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import HumanInTheLoopMiddleware
from waitpoint.agents.tool_node.request import ToolRuntime
from waitpoint.checkpoint.base import ThreadKey
from waitpoint.engine import answers
from waitpoint.errors import StepInDoubtError
from waitpoint.testing.witness import Witness
from waitpoint.types import Command, Happened, NotHappened

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "order"}}


class FromHistory(BaseChatModel):
    """Makes its call once, and is done when it has a result, in whatever process."""

    call: tuple[str, str, dict[str, Any]] = ("pay", "c1", {"to": "ana"})

    @property
    def _llm_type(self) -> str:
        return "from history"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        """Know the tools already."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        refuse_what_strict_providers_refuse(messages)
        reply = calls(text="done") if isinstance(messages[-1], ToolMessage) else calls(self.call)
        return ChatResult(generations=[ChatGeneration(message=reply)])


@tool
def pay(to: str, runtime: ToolRuntime) -> str:
    """Pay somebody."""
    world = here()
    world.points.reach("before effect")
    world.witness.append(f"{to} {runtime.idempotency_key}")
    world.points.reach("after effect")
    return f"paid {to}"


def when(request: Any) -> bool:
    """Ask always, and leave a line for each verdict."""
    verdicts(here()).append(request.tool_call["name"])
    return True


def verdicts(world: World) -> Witness:
    """Return the witness of the verdicts."""
    return Witness(Path(world.witness.path).with_name("verdicts.txt"))


def looked_up(key: str, args: dict[str, Any]) -> Happened | NotHappened:
    """Look whether the payment of this key happened."""
    paid = f"{args['to']} {key}" in here().witness.lines()
    return Happened(f"found that {args['to']} is paid") if paid else NotHappened()


SAFETY: dict[str, dict[str, Any]] = {
    "ask": {},
    "idempotent": {"idempotent": True},
    "probe": {"probe": looked_up},
    "unsure": {"probe": lambda key, args: None},
}


def build(world: World, mode: Any, safety: str) -> Any:
    """Return the agent."""
    policy: Any = {"allowed_decisions": ["approve", "reject"], "when": when, **SAFETY[safety]}
    if mode in ("batched", "per_call"):
        approval = HumanInTheLoopMiddleware({"pay": policy}, interrupt_mode=mode)
        return create_agent(FromHistory(), [pay], middleware=[approval], checkpointer=world.saver)
    inner = HumanInTheLoopMiddleware({"pay": policy}, interrupt_mode=mode.removeprefix("nested_"))
    hired = create_agent(FromHistory(), [pay], middleware=[inner], name="clerk")

    @tool
    def clerk(task: str) -> str:
        """Let the clerk do it."""
        return str(hired.invoke({"messages": [("user", task)]})["messages"][-1].text)

    return create_agent(FromHistory(call=("clerk", "d1", {"task": "pay"})), [clerk], checkpointer=world.saver)


def play(request: server.Request, world: World) -> dict[str, Any]:
    """Start the thread or go on with it, wherever it stands, to its end; tell how it ended."""
    mode, safety, doubt, person, how = request["program"].split()
    agent = build(world, mode, safety)
    stopped = 0
    while True:
        state = agent.get_state(CONFIG)
        assert unread_answers(world.store, ThreadKey("order", agent.name)) == []
        if state.created_at is None:
            given: Any = {"messages": [("user", "pay ana")]}
        elif state.interrupts:
            (question,) = state.interrupts
            value = answer(question.value, doubt if not stopped else "not_happened")
            if person == "apart":
                answers.answer(world.saver, question.id, value)
                given = None
            else:
                given = Command(resume={question.id: value})
        elif state.next:
            given = None
        else:
            return result(world, state, stopped)
        try:
            if how == "asyncio":
                asyncio.run(agent.ainvoke(given, CONFIG))
            else:
                agent.invoke(given, CONFIG)
        except StepInDoubtError:
            stopped += 1


def answer(asked: dict[str, Any], doubt: str) -> Any:
    """Say yes to the call; say of a doubt what this run is to say (`honest`: what the witness saw)."""
    if asked.get("type") == "in_doubt":
        if doubt == "honest":
            doubt = "happened" if here().witness.lines() else "not_happened"
        return {"type": doubt, "result": "it was paid by hand"} if doubt == "happened" else {"type": doubt}
    approve = {"type": "approve"}
    return {"decisions": [approve]} if "action_requests" in asked else approve


def result(world: World, state: Any, stopped: int) -> dict[str, Any]:
    """Tell how the thread ended: what was asked, what really happened, and what the model was told."""
    messages = state.values["messages"]
    refuse_what_strict_providers_refuse(messages)
    asked = [codec.loads(question.value) for question in all_questions(world.store, "order")]
    return {
        "effects": world.witness.lines(),
        "verdicts": len(verdicts(world).lines()),
        "doubts": [each for each in asked if each.get("type") == "in_doubt"],
        "asked": len([each for each in asked if each.get("type") != "in_doubt"]),
        "told": [[m.status, m.text] for m in messages if isinstance(m, ToolMessage)],
        "last": messages[-1].text,
        "stopped": stopped,
    }


if __name__ == "__main__":
    server.main(play)
