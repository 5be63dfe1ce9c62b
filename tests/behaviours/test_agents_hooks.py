"""Hooks of middleware around an agent's steps: order, forms, jumps, and questions in each of them."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from tests.agents.scripted import Scripted, calls
from tests.behaviours.conftest import Call, _ainvoke, _invoke
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import (
    AgentMiddleware,
    after_agent,
    after_model,
    before_agent,
    before_model,
    dynamic_prompt,
    hook_config,
    wrap_model_call,
    wrap_tool_call,
)
from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.errors import AsyncOnlyError, ConfigError
from waitpoint.types import Command, interrupt

CONFIG: Any = {"configurable": {"thread_id": "t"}}
GO: Any = {"messages": [("user", "go")]}
LOOK = calls(("look", "c1", {"at": "sky"}))


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"saw {at}"


class Noting(AgentMiddleware[Any, Any, Any]):
    """Notes each of its hooks under its own name."""

    def __init__(self, label: str, notes: list[str]) -> None:
        self.label, self.notes = label, notes

    @property
    def name(self) -> str:
        return self.label

    def note(self, hook: str) -> None:
        self.notes.append(f"{self.label} {hook}")

    def before_agent(self, state: Any, runtime: Any) -> None:
        self.note("before agent")

    def before_model(self, state: Any, runtime: Any) -> None:
        self.note("before model")

    def after_model(self, state: Any, runtime: Any) -> None:
        self.note("after model")

    def after_agent(self, state: Any, runtime: Any) -> None:
        self.note("after agent")

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        self.note("in model")
        response = handler(request)
        self.note("out model")
        return response

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        self.note("in tool")
        answer = handler(request)
        self.note("out tool")
        return answer


TURN = [
    *("A before model", "B before model"),
    *("A in model", "B in model", "B out model", "A out model"),
    *("B after model", "A after model"),
]


def test_hooks_run_in_the_order_of_the_list_and_back_again(call: Call) -> None:
    notes: list[str] = []
    agent = create_agent(Scripted(LOOK, "ok"), [look], middleware=[Noting("A", notes), Noting("B", notes)])
    call(agent, GO)
    assert notes == [
        *("A before agent", "B before agent"),
        *TURN,
        *("A in tool", "B in tool", "B out tool", "A out tool"),
        *TURN,
        *("B after agent", "A after agent"),
    ]


def test_hooks_of_the_agent_run_once_an_input_and_not_again_for_an_answer(
    call: Call, saver: BaseCheckpointSaver
) -> None:
    notes: list[str] = []

    @tool
    def ask() -> str:
        """Ask."""
        return str(interrupt("well?"))

    model = Scripted(calls(("ask", "c1", {})), "ok", "again")
    agent = create_agent(model, [ask], middleware=[Noting("A", notes)], checkpointer=saver)
    call(agent, GO, CONFIG)
    call(agent, Command(resume="yes"), CONFIG)
    assert [notes.count(f"A {hook}") for hook in ("before agent", "before model", "after model", "after agent")] == [
        *(1, 2, 2, 1)
    ]
    call(agent, GO, CONFIG)
    assert [notes.count(f"A {hook}") for hook in ("before agent", "after agent")] == [2, 2]


# --- forms ------------------------------------------------------------------------------------------------------------


class BothForms(AgentMiddleware[Any, Any, Any]):
    """Has each hook in both forms and notes which one ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []


def _both(hook: str) -> None:
    def blocking(self: Any, one: Any, other: Any) -> Any:
        self.ran.append(hook)
        return other(one) if hook.startswith("wrap") else None

    async def awaiting(self: Any, one: Any, other: Any) -> Any:
        self.ran.append(f"a{hook}")
        return await other(one) if hook.startswith("wrap") else None

    setattr(BothForms, hook, blocking)
    setattr(BothForms, f"a{hook}", awaiting)


HOOKS = ["before_agent", "before_model", "wrap_model_call", "after_model", "wrap_tool_call", "after_agent"]
for _hook in HOOKS:
    _both(_hook)


def test_ainvoke_runs_the_async_form_and_invoke_the_other() -> None:
    for call, mark in ((_invoke, ""), (_ainvoke, "a")):
        middleware = BothForms()
        call(create_agent(Scripted(LOOK, "ok"), [look], middleware=[middleware]), GO)
        assert set(middleware.ran) == {mark + hook for hook in HOOKS}


@pytest.mark.parametrize("hook", HOOKS)
def test_what_has_only_an_async_form_is_refused_in_a_blocking_run_and_named(hook: str) -> None:
    cls = type("OnlyLater", (AgentMiddleware,), {f"a{hook}": getattr(BothForms, f"a{hook}"), "ran": []})
    with pytest.raises(NotImplementedError, match="OnlyLater") as refused:
        _invoke(create_agent(Scripted(LOOK, "ok"), [look], middleware=[cls()]), GO)
    assert isinstance(refused.value, AsyncOnlyError)
    agent: Any = create_agent(Scripted(LOOK, "ok"), [look], middleware=[cls()])
    assert _ainvoke(agent, GO)["messages"][-1].content == "ok"


@pytest.mark.parametrize("hook", HOOKS)
def test_what_has_only_a_blocking_form_runs_under_ainvoke(hook: str) -> None:
    ran: list[str] = []
    cls = type("OnlyNow", (AgentMiddleware,), {hook: getattr(BothForms, hook), "ran": ran})
    agent: Any = create_agent(Scripted(LOOK, "ok"), [look], middleware=[cls()])
    assert _ainvoke(agent, GO)["messages"][-1].content == "ok"
    assert set(ran) == {hook}


# --- jumps ------------------------------------------------------------------------------------------------------------


def test_a_jump_without_hook_config_has_no_effect(call: Call) -> None:
    agent = create_agent(Scripted(LOOK, "ok"), [look], middleware=[before_model(lambda s, r: {"jump_to": "end"})])
    assert [m.type for m in call(agent, GO)["messages"]] == ["human", "ai", "tool", "ai"]


def test_a_jump_that_is_not_declared_has_no_effect(call: Call) -> None:
    hook = after_model(lambda s, r: {"jump_to": "end"}, can_jump_to=["model"])
    agent = create_agent(Scripted(LOOK, "ok"), [look], middleware=[hook])
    assert [m.type for m in call(agent, GO)["messages"]] == ["human", "ai", "tool", "ai"]


def test_a_jump_is_in_no_state_and_no_output(call: Call, saver: BaseCheckpointSaver) -> None:
    seen: list[bool] = []

    @before_model(can_jump_to=["end"])
    def stop(state: Any, runtime: Any) -> Any:
        return {"jump_to": "end", "messages": [AIMessage("stopped")]}

    @after_agent
    def see(state: Any, runtime: Any) -> None:
        seen.append("jump_to" in state)

    agent = create_agent(Scripted(), [look], middleware=[stop, see], checkpointer=saver)
    result = call(agent, GO, CONFIG)
    assert [m.content for m in result["messages"]] == ["go", "stopped"]
    assert seen == [False]
    assert "jump_to" not in result
    assert "jump_to" not in agent.get_state(CONFIG).values


def test_a_jump_may_come_in_the_update_of_a_command(call: Call) -> None:
    hook = before_model(
        lambda s, r: Command(update={"jump_to": "end", "messages": [AIMessage("stopped")]}), can_jump_to=["end"]
    )
    assert call(create_agent(Scripted(), [look], middleware=[hook]), GO)["messages"][-1].content == "stopped"


def test_a_jump_of_a_class_is_declared_on_the_method(call: Call) -> None:
    class Stopping(AgentMiddleware[Any, Any, Any]):
        @hook_config(can_jump_to=["end"])
        def before_model(self, state: Any, runtime: Any) -> Any:
            return {"jump_to": "end"}

    assert [m.content for m in call(create_agent(Scripted(), [look], middleware=[Stopping()]), GO)["messages"]] == [
        "go"
    ]


def test_a_jump_to_the_end_skips_the_hooks_between_and_runs_those_after_the_agent(call: Call) -> None:
    notes: list[str] = []
    stop = before_agent(lambda s, r: {"jump_to": "end"}, can_jump_to=["end"])
    call(create_agent(Scripted(), [look], middleware=[stop, Noting("A", notes)]), GO)
    assert notes == ["A after agent"]


def test_a_jump_to_the_end_after_the_agent_is_the_end(call: Call) -> None:
    times: list[int] = []

    @after_agent(can_jump_to=["end"])
    def stop(state: Any, runtime: Any) -> Any:
        times.append(1)
        return {"jump_to": "end"}

    notes: list[str] = []
    call(create_agent(Scripted("ok"), [look], middleware=[Noting("A", notes), stop]), GO)
    assert times == [1]
    assert "A after agent" not in notes


def test_a_jump_to_the_tools_runs_the_calls_that_have_no_answer(call: Call) -> None:
    ran: list[str] = []

    @tool
    def note(text: str) -> str:
        """Note."""
        ran.append(text)
        return text

    @before_model(can_jump_to=["tools"])
    def prepared(state: Any, runtime: Any) -> Any:
        if len(state["messages"]) > 1:
            return None
        return {"jump_to": "tools", "messages": [calls(("note", "c1", {"text": "first"}))]}

    agent = create_agent(Scripted("ok"), [note], middleware=[prepared])
    assert [m.type for m in call(agent, GO)["messages"]] == ["human", "ai", "tool", "ai"]
    assert ran == ["first"]


@pytest.mark.parametrize("hook", [before_agent, before_model, after_model, after_agent])
def test_a_place_that_does_not_exist_is_refused_where_it_is_named(hook: Any) -> None:
    with pytest.raises(ConfigError, match="'nowhere'"):
        hook(lambda s, r: None, can_jump_to=["nowhere"])


def test_a_jump_to_the_tools_of_an_agent_without_tools_is_a_turn_of_the_model(call: Call) -> None:
    times: list[int] = []

    @before_agent(can_jump_to=["tools"])
    def jump(state: Any, runtime: Any) -> Any:
        times.append(1)
        return {"jump_to": "tools"}

    assert call(create_agent(Scripted("ok"), middleware=[jump]), GO)["messages"][-1].content == "ok"
    assert times == [1]


# --- questions in hooks -----------------------------------------------------------------------------------------------

NODES = {
    "before_agent": before_agent,
    "before_model": before_model,
    "after_model": after_model,
    "after_agent": after_agent,
}


@pytest.mark.parametrize("hook", NODES)
def test_a_hook_may_ask_and_goes_on_with_the_answer(hook: str, call: Call, saver: BaseCheckpointSaver) -> None:
    def asking(state: Any, runtime: Any) -> Any:
        if any(m.content == "answered" for m in state["messages"]):
            return None
        return {"messages": [HumanMessage("answered", additional_kwargs={"by": interrupt(f"{hook}?")})]}

    model = Scripted("ok", "ok again")
    agent = create_agent(model, [look], middleware=[NODES[hook](asking)], checkpointer=saver)
    paused = call(agent, GO, CONFIG)
    assert [i.value for i in paused["__interrupt__"]] == [f"{hook}?"]
    assert agent.get_state(CONFIG).next == (f"asking.{hook}",)
    result = call(agent, Command(resume="ana"), CONFIG)
    assert [m.additional_kwargs["by"] for m in result["messages"] if m.content == "answered"] == ["ana"]
    assert len(model.shown) == 1


def test_a_question_before_the_model_is_called_lets_it_be_called_once(call: Call, saver: BaseCheckpointSaver) -> None:
    @wrap_model_call
    def asking(request: Any, handler: Any) -> Any:
        topic = interrupt("about what?")
        return handler(request.override(messages=[*request.messages, HumanMessage(topic)]))

    model = Scripted("ok")
    agent = create_agent(model, [look], middleware=[asking], checkpointer=saver)
    assert [i.value for i in call(agent, GO, CONFIG)["__interrupt__"]] == ["about what?"]
    assert model.shown == []
    assert call(agent, Command(resume="tea"), CONFIG)["messages"][-1].content == "ok"
    assert [[m.content for m in shown] for shown in model.shown] == [["go", "tea"]]


def test_a_prompt_may_depend_on_an_answer(call: Call, saver: BaseCheckpointSaver) -> None:
    @dynamic_prompt
    def prompt(request: Any) -> str:
        return f"Be {interrupt('how?')}."

    model = Scripted("ok")
    agent = create_agent(model, [look], middleware=[prompt], checkpointer=saver)
    assert [i.value for i in call(agent, GO, CONFIG)["__interrupt__"]] == ["how?"]
    call(agent, Command(resume="kind"), CONFIG)
    assert [m.content for m in model.shown[0]] == ["Be kind.", "go"]


def test_a_question_about_the_models_answer_does_not_call_it_again(call: Call, saver: BaseCheckpointSaver) -> None:
    @wrap_model_call
    def asking(request: Any, handler: Any) -> Any:
        response = handler(request)
        if interrupt(response.result[0].content) == "once more":
            return handler(request)
        return response

    model = Scripted("first", "second", "third")
    agent = create_agent(model, [look], middleware=[asking], checkpointer=saver)
    assert [i.value for i in call(agent, GO, CONFIG)["__interrupt__"]] == ["first"]
    assert call(agent, Command(resume="once more"), CONFIG)["messages"][-1].content == "second"
    assert len(model.shown) == 2


def test_a_wrapper_around_a_tool_may_ask_before_and_after_it(call: Call, saver: BaseCheckpointSaver) -> None:
    ran: list[str] = []

    @tool
    def send(to: str) -> str:
        """Send."""
        ran.append(to)
        return f"sent to {to}"

    @wrap_tool_call
    def asking(request: Any, handler: Any) -> Any:
        to = interrupt("to whom?")
        answer = handler(request.override(tool_call={**request.tool_call, "args": {"to": to}}))
        return answer.model_copy(update={"content": interrupt(answer.content)})

    agent = create_agent(
        Scripted(calls(("send", "c1", {"to": "x"})), "ok"), [send], middleware=[asking], checkpointer=saver
    )
    assert [i.value for i in call(agent, GO, CONFIG)["__interrupt__"]] == ["to whom?"]
    assert ran == []
    assert [i.value for i in call(agent, Command(resume="ana"), CONFIG)["__interrupt__"]] == ["sent to ana"]
    result = call(agent, Command(resume="well sent"), CONFIG)
    assert ran == ["ana"]
    assert [m.content for m in result["messages"] if m.type == "tool"] == ["well sent"]


@pytest.mark.parametrize("place", ["model", "tools"])
@pytest.mark.parametrize("when", ["interrupt_before", "interrupt_after"])
def test_an_agent_stops_before_or_after_its_nodes(
    when: str, place: str, call: Call, saver: BaseCheckpointSaver
) -> None:
    model = Scripted(LOOK, "ok")
    agent = create_agent(model, [look], checkpointer=saver, **{when: [place]})  # type: ignore[arg-type]
    stops = [call(agent, GO, CONFIG)["messages"][-1].type]
    while agent.get_state(CONFIG).next:
        stops.append(call(agent, None, CONFIG)["messages"][-1].type)
    expected = {
        ("interrupt_before", "model"): ["human", "tool", "ai"],
        ("interrupt_after", "model"): ["ai", "ai"],
        ("interrupt_before", "tools"): ["ai", "ai"],
        ("interrupt_after", "tools"): ["tool", "ai"],
    }
    assert stops == expected[when, place]
    assert len(model.shown) == 2
