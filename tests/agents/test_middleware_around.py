"""Agents with retries, fallbacks, error messages and limits: what runs, what the model is shown, what the caller gets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel, ValidationError

from tests.agents.scripted import Scripted, calls, refuse_what_strict_providers_refuse
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import (
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    ToolCallLimitMiddleware,
    ToolErrorMiddleware,
    ToolRetryMiddleware,
)
from waitpoint.agents.middleware.types import AgentMiddleware, AgentState, hook_config
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.errors import ModelCallLimitExceededError, ToolCallLimitExceededError
from waitpoint.graph import START, MessagesState, StateGraph
from waitpoint.prebuilt import InjectedState
from waitpoint.types import Command, interrupt

THREAD = {"configurable": {"thread_id": "1"}}
both = pytest.mark.parametrize("how", ["invoke", "ainvoke"])


class Effects:
    """Tools that fail as often as told, and what they did."""

    def __init__(self, failures: int = 0) -> None:
        self.failures, self.done = failures, []  # type: ignore[var-annotated]

        @tool
        def send(to: str) -> str:
            """Send a mail."""
            self.done.append(to)
            if len(self.done) <= self.failures:
                raise TimeoutError("slow")
            return f"sent to {to}"

        @tool
        def look(at: str) -> str:
            """Look at something."""
            return f"saw {at}"

        self.tools = [send, look]


async def run(agent: Any, how: str, given: Any) -> Any:
    if isinstance(given, str):
        given = {"messages": [("user", given)]}
    return agent.invoke(given, THREAD) if how == "invoke" else await agent.ainvoke(given, THREAD)


def results(state: Any) -> list[tuple[str, str]]:
    return [(m.status, m.text) for m in state["messages"] if isinstance(m, ToolMessage)]


SEND = calls(("send", "c1", {"to": "ana"}))


@pytest.fixture
def saver(tmp_path: Path) -> Any:
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as opened:
        yield opened


# --- tools that fail --------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    "told", [ToolRetryMiddleware(max_retries=0), ToolErrorMiddleware(lambda error, _: f"{error}")], ids=lambda m: m.name
)
@pytest.mark.parametrize("recorded", [True, False])
async def test_what_a_tool_gets_from_the_state_is_not_told_to_the_model_where_it_does_not_fit(
    recorded: bool, told: Any, how: str, saver: Any
) -> None:
    class State(AgentState[Any]):
        pin: str

    @tool
    def look(at: str, pin: Annotated[int, InjectedState("pin")]) -> str:
        """Look at something."""
        return f"saw {at}"

    model = Scripted(calls(("look", "c1", {"at": "home"})), "done")
    checkpointer = saver if recorded else None
    agent = create_agent(model, [look], middleware=[told], state_schema=State, checkpointer=checkpointer)
    state = await run(agent, how, {"messages": [("user", "go on")], "pin": "not for the model"})
    ((status, text),) = results(state)
    assert status == "error"
    assert "pin" in text
    assert "not for the model" not in text


@both
async def test_a_tool_that_fails_once_is_called_again_and_the_model_sees_its_result_only(how: str) -> None:
    effects, model = Effects(failures=1), Scripted(SEND, "done")
    agent = create_agent(model, effects.tools, middleware=[ToolRetryMiddleware(initial_delay=0)])
    assert results(await run(agent, how, "mail ana")) == [("success", "sent to ana")]
    assert effects.done == ["ana", "ana"]


@both
async def test_a_tool_that_keeps_failing_is_told_to_the_model_which_goes_on(how: str) -> None:
    effects, model = Effects(failures=9), Scripted(SEND, "I could not")
    agent = create_agent(model, effects.tools, middleware=[ToolRetryMiddleware(initial_delay=0, max_retries=1)])
    state = await run(agent, how, "mail ana")
    assert results(state) == [("error", "Tool 'send' failed after 2 attempts with TimeoutError: slow")]
    assert state["messages"][-1].text == "I could not"


class Noting(ToolRetryMiddleware):
    """Notes its waits and makes them short."""

    waits: list[int]

    def wait_after(self, attempts: int) -> float:
        self.waits.append(attempts)
        return 0.0


@both
async def test_attempts_before_a_question_are_not_made_or_waited_for_again_when_it_is_answered(
    how: str, saver: Any
) -> None:
    tries: list[str] = []

    @tool
    def book(seat: str) -> str:
        """Book a seat."""
        tries.append(seat)
        if len(tries) == 1:
            raise TimeoutError
        return f"{seat}: {interrupt('window or aisle?')}"

    retries = Noting()
    retries.waits = []
    model = Scripted(calls(("book", "c1", {"seat": "12"})), "done")
    agent = create_agent(model, [book], middleware=[retries], checkpointer=saver)
    (question,) = (await run(agent, how, "book"))["__interrupt__"]
    assert question.value == "window or aisle?"
    assert (len(tries), retries.waits) == (2, [1])
    assert results(await run(agent, how, Command(resume="aisle"))) == [("success", "12: aisle")]
    assert len(tries) == 3  # the attempt that asked, from its first line; not the one that failed
    assert retries.waits == [1]


class Small(BaseModel):
    amount: int

    def model_post_init(self, _: Any) -> None:
        if self.amount > 10:
            raise ValueError("at most 10")


def how_much(state: MessagesState) -> dict[str, Any]:
    return {"messages": [f"{interrupt('how much?', response_schema=Small).amount}"]}


def child_that_asks() -> Any:
    return StateGraph(MessagesState).add_node("ask", how_much).add_edge(START, "ask").compile()


AROUND = {
    "nothing": [],
    "retries": [ToolRetryMiddleware(initial_delay=0)],
    "errors told": [ToolErrorMiddleware(lambda e, r: "failed")],
}


@both
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("place", ["tool", "graph"])
async def test_a_refused_answer_is_raised_and_can_be_corrected(place: str, around: str, how: str, saver: Any) -> None:
    child = child_that_asks()

    @tool
    def pay() -> str:
        """Pay."""
        state: Any = {"messages": []}
        found = how_much(state)["messages"][0] if place == "tool" else child.invoke(state)["messages"][-1].text
        return f"paid {found}"

    model = Scripted(calls(("pay", "c1", {})), "done")
    agent = create_agent(model, [pay], middleware=AROUND[around], checkpointer=saver)
    await run(agent, how, "pay")
    for wrong in (11, 12):
        with pytest.raises(ValidationError):
            await run(agent, how, Command(resume={"amount": wrong}))
    assert results(await run(agent, how, Command(resume={"amount": 3}))) == [("success", "paid 3")]


@both
async def test_errors_one_chooses_are_told_to_the_model_and_others_stop_the_run(how: str) -> None:
    def on_error(error: Exception, request: Any) -> str | None:
        return f"{request.tool_call['name']} is down" if isinstance(error, TimeoutError) else None

    effects, model = Effects(failures=1), Scripted(SEND, "done")
    agent = create_agent(model, effects.tools, middleware=[ToolErrorMiddleware(on_error)])
    assert results(await run(agent, how, "mail ana")) == [("error", "send is down")]

    @tool
    def broken() -> str:
        """Fail otherwise."""
        raise KeyError("no")

    agent = create_agent(Scripted(calls(("broken", "c1", {}))), [broken], middleware=[ToolErrorMiddleware(on_error)])
    with pytest.raises(KeyError):
        await run(agent, how, "go")


@both
async def test_retries_inside_the_error_middleware_come_first(how: str) -> None:
    effects, model = Effects(failures=9), Scripted(SEND, "done")
    inside = ToolRetryMiddleware(initial_delay=0, on_failure="error")
    agent = create_agent(model, effects.tools, middleware=[ToolErrorMiddleware(lambda e, r: "down"), inside])
    assert results(await run(agent, how, "mail ana")) == [("error", "down")]
    assert len(effects.done) == 3


@both
async def test_arguments_that_do_not_fit_go_back_to_the_model_without_a_retry(how: str) -> None:
    effects, model = Effects(), Scripted(calls(("send", "c1", {"too": "ana"})), "sorry")
    agent = create_agent(model, effects.tools, middleware=[ToolRetryMiddleware(max_delay=600, initial_delay=600)])
    ((status, text),) = results(await run(agent, how, "mail ana"))
    assert status == "error"
    assert "to" in text
    assert effects.done == []


# --- models that fail -------------------------------------------------------------------------------------------------


@both
async def test_a_model_that_fails_is_asked_again(how: str) -> None:
    model = Scripted(TimeoutError("slow"), "hello")
    agent = create_agent(model, [], middleware=[ModelRetryMiddleware(initial_delay=0)])
    assert (await run(agent, how, "hi"))["messages"][-1].text == "hello"
    assert len(model.shown) == 2


@both
async def test_a_model_that_keeps_failing_ends_the_run_with_a_message(how: str) -> None:
    model = Scripted(TimeoutError("slow"), TimeoutError("slow"))
    agent = create_agent(model, [], middleware=[ModelRetryMiddleware(initial_delay=0, max_retries=1)])
    last = (await run(agent, how, "hi"))["messages"][-1]
    assert last.text == "Model call failed after 2 attempts with TimeoutError: slow"


@both
async def test_another_model_takes_over_with_the_same_tools(how: str) -> None:
    effects = Effects()
    own, other = Scripted(TimeoutError(), TimeoutError()), Scripted(SEND, "done")
    agent = create_agent(own, effects.tools, middleware=[ModelFallbackMiddleware(other)])
    assert results(await run(agent, how, "mail ana")) == [("success", "sent to ana")]
    assert (len(own.shown), len(other.shown)) == (2, 2)
    assert [t.name for t in other.bound[0]] == ["send", "look"]


# --- limits -----------------------------------------------------------------------------------------------------------


@both
async def test_calls_beyond_a_limit_are_answered_and_the_model_takes_the_history(how: str, saver: Any) -> None:
    effects = Effects()
    asked = calls(("send", "1", {"to": "ana"}), ("look", "2", {"at": "sky"}), ("send", "3", {"to": "bob"}))
    model = Scripted(asked, calls(("send", "4", {"to": "cy"})), "done", SEND, "done")
    limit = ToolCallLimitMiddleware(tool_name="send", run_limit=1, thread_limit=2)
    agent = create_agent(model, effects.tools, middleware=[limit], checkpointer=saver)
    state = await run(agent, how, "mail all")
    refused = ("error", "Not run: the limit of calls to 'send' is reached. Do not call it again.")
    assert sorted(results(state)) == sorted([("success", "sent to ana"), ("success", "saw sky"), refused, refused])
    assert not {"run_tool_call_count", "thread_tool_call_count"} & set(state)
    await run(agent, how, "again")  # another run has one call more; the thread then has none left
    assert effects.done == ["ana", "ana"]


@both
async def test_a_thread_has_its_limit_over_all_runs(how: str, saver: Any) -> None:
    effects = Effects()
    model = Scripted(SEND, "done", calls(("send", "c2", {"to": "bob"})), "done")
    limit = ToolCallLimitMiddleware(thread_limit=1)
    agent = create_agent(model, effects.tools, middleware=[limit], checkpointer=saver)
    await run(agent, how, "mail ana")
    await run(agent, how, "mail bob")
    assert effects.done == ["ana"]


@both
async def test_the_end_of_a_tool_limit_leaves_a_thread_that_goes_on_in_its_next_run(how: str, saver: Any) -> None:
    effects = Effects()
    asked = calls(("send", "1", {"to": "ana"}), ("look", "2", {"at": "sky"}), ("send", "3", {"to": "bob"}))
    model = Scripted(asked, SEND, "done")
    limit = ToolCallLimitMiddleware(tool_name="send", run_limit=1, exit_behavior="end")
    agent = create_agent(model, effects.tools, middleware=[limit], checkpointer=saver)
    state = await run(agent, how, "mail all")
    assert effects.done == []
    assert state["messages"][-1].text == "Calls of tool 'send' are limited to 1 in a run."
    refuse_what_strict_providers_refuse(state["messages"])
    assert results(await run(agent, how, "mail ana"))[-1] == ("success", "sent to ana")


@both
async def test_a_tool_limit_may_raise(how: str) -> None:
    effects = Effects()
    limit = ToolCallLimitMiddleware(run_limit=0, exit_behavior="error")
    with pytest.raises(ToolCallLimitExceededError, match="0 in a run"):
        await run(create_agent(Scripted(SEND), effects.tools, middleware=[limit]), how, "mail ana")
    assert effects.done == []


@both
async def test_limits_of_two_tools_and_of_all_hold_together(how: str) -> None:
    effects = Effects()
    asked = calls(
        *(("send", f"s{n}", {"to": f"{n}"}) for n in range(3)), *(("look", f"l{n}", {"at": f"{n}"}) for n in range(3))
    )
    limits = [
        ToolCallLimitMiddleware(run_limit=2),
        ToolCallLimitMiddleware(tool_name="look", run_limit=1),
        ToolCallLimitMiddleware(tool_name="send", run_limit=2),
    ]
    state = await run(create_agent(Scripted(asked, "done"), effects.tools, middleware=limits), how, "go")
    assert [text for status, text in results(state) if status == "success"] == ["sent to 0", "sent to 1"]
    assert len(results(state)) == 6


@both
async def test_a_model_limit_ends_a_loop_and_the_next_run_begins_anew(how: str, saver: Any) -> None:
    effects, model = Effects(), Scripted(SEND, calls(("send", "c2", {"to": "bob"})), "hello")
    limit = ModelCallLimitMiddleware(run_limit=2)
    agent = create_agent(model, effects.tools, middleware=[limit], checkpointer=saver)
    state = await run(agent, how, "mail all")
    assert state["messages"][-1].text == "Model call limit reached: 2 in a run."
    assert not {"run_model_call_count", "thread_model_call_count"} & set(state)
    refuse_what_strict_providers_refuse(state["messages"])
    assert (await run(agent, how, "hi"))["messages"][-1].text == "hello"


@both
async def test_a_model_limit_of_a_thread_holds_over_runs_and_may_raise(how: str, saver: Any) -> None:
    limit = ModelCallLimitMiddleware(thread_limit=1, exit_behavior="error")
    agent = create_agent(Scripted("hello"), [], middleware=[limit], checkpointer=saver)
    await run(agent, how, "hi")
    with pytest.raises(ModelCallLimitExceededError, match="1 in a thread"):
        await run(agent, how, "hi again")


@both
async def test_a_pause_does_not_begin_a_new_run(how: str, saver: Any) -> None:
    @tool
    def ask() -> str:
        """Ask."""
        return str(interrupt("well?"))

    model = Scripted(calls(("ask", "c1", {})), calls(("ask", "c2", {})))
    limits = [ModelCallLimitMiddleware(run_limit=2), ToolCallLimitMiddleware(run_limit=1)]
    agent = create_agent(model, [ask], middleware=limits, checkpointer=saver)
    await run(agent, how, "go")
    state = await run(agent, how, Command(resume="yes"))
    assert results(state)[0] == ("success", "yes")
    assert results(state)[1][0] == "error"
    assert state["messages"][-1].text == "Model call limit reached: 2 in a run."


@both
async def test_no_jump_of_another_middleware_goes_around_the_model_limit(how: str) -> None:
    class Again(AgentMiddleware[Any, Any, Any]):
        @hook_config(can_jump_to=["model"])
        def after_model(self, state: Any, runtime: Any) -> dict[str, Any]:
            return {"jump_to": "model"}

    model = Scripted(*["hm"] * 9)
    agent = create_agent(model, [], middleware=[ModelCallLimitMiddleware(run_limit=3), Again()])
    assert (await run(agent, how, "go"))["messages"][-1].text == "Model call limit reached: 3 in a run."
    assert len(model.shown) == 3


def test_what_a_caller_gives_for_the_counts_is_no_part_of_the_input() -> None:
    agent = create_agent(Scripted("hello"), [], middleware=[ModelCallLimitMiddleware(thread_limit=1)])
    state = agent.invoke({"messages": [("user", "hi")], "thread_model_call_count": 1})  # type: ignore[arg-type]
    assert isinstance(state["messages"][-1], AIMessage)
    assert state["messages"][-1].text == "hello"
