"""ToolRetryMiddleware: how often, after what wait, and what the model hears in the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel, ValidationError

from waitpoint.agents.middleware import retrying
from waitpoint.agents.middleware.tool_retry import ToolRetryMiddleware
from waitpoint.agents.middleware.types import ToolCallRequest
from waitpoint.checkpoint.base import FenceLost
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.errors import (
    CheckpointerRequiredError,
    GraphDrained,
    GraphInterrupt,
    ParentCommand,
    QuestionWithdrawn,
    ReplayMismatch,
    StepInDoubtError,
    SwallowedInterruptError,
)
from waitpoint.graph import START, MessagesState, StateGraph
from waitpoint.types import Command, interrupt

THREAD = {"configurable": {"thread_id": "1"}}


def request(name: str = "search") -> ToolCallRequest:
    call: Any = {"name": name, "args": {"q": "x"}, "id": "c1", "type": "tool_call"}
    return ToolCallRequest(tool_call=call, tool=None, state={}, runtime=None)  # type: ignore[arg-type]


class Tool:
    """Fails so many times with this error, then answers; counts its calls."""

    def __init__(self, failures: int, error: BaseException | None = None) -> None:
        self.failures, self.calls = failures, 0
        self.error = error or TimeoutError("slow")

    def __call__(self, asked: ToolCallRequest) -> ToolMessage:
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error
        return ToolMessage("found", tool_call_id=asked.tool_call["id"])

    async def later(self, asked: ToolCallRequest) -> ToolMessage:
        return self(asked)


Call = Callable[[ToolRetryMiddleware, Tool], Any]


def in_turn(middleware: ToolRetryMiddleware, handler: Tool) -> Any:
    return middleware.wrap_tool_call(request(), handler)


def on_a_loop(middleware: ToolRetryMiddleware, handler: Tool) -> Any:
    return asyncio.run(middleware.awrap_tool_call(request(), handler.later))  # type: ignore[arg-type]


both = pytest.mark.parametrize("call", [in_turn, on_a_loop])


def retry(**options: Any) -> ToolRetryMiddleware:
    return ToolRetryMiddleware(**{"initial_delay": 0.0, **options})


@both
def test_a_call_that_fails_twice_succeeds_at_the_third_attempt(call: Call) -> None:
    handler = Tool(failures=2)
    assert call(retry(), handler).content == "found"
    assert handler.calls == 3


@both
def test_after_the_last_attempt_the_model_hears_the_tool_the_attempts_and_the_exception(call: Call) -> None:
    handler = Tool(failures=9)
    told = call(retry(), handler)
    assert handler.calls == 3
    assert (told.status, told.name, told.tool_call_id) == ("error", "search", "c1")
    assert told.content == "Tool 'search' failed after 3 attempts with TimeoutError: slow"


@both
def test_no_retries_are_one_attempt(call: Call) -> None:
    handler = Tool(failures=9, error=ValueError())
    assert call(retry(max_retries=0), handler).content == "Tool 'search' failed after 1 attempt with ValueError"
    assert handler.calls == 1


@both
def test_on_failure_error_raises_the_exception_itself(call: Call) -> None:
    handler = Tool(failures=9)
    with pytest.raises(TimeoutError) as raised:
        call(retry(on_failure="error"), handler)
    assert raised.value is handler.error
    assert handler.calls == 3


@both
def test_a_function_gives_the_text_for_the_model(call: Call) -> None:
    told = call(retry(max_retries=1, on_failure=lambda e: f"sorry: {e}"), Tool(failures=9))
    assert (told.content, told.status) == ("sorry: slow", "error")


@both
@pytest.mark.parametrize(
    ("retry_on", "calls"),
    [
        (TimeoutError, 3),
        ((TimeoutError, KeyError), 3),
        (lambda e: str(e) == "slow", 3),
        (KeyError, 1),
        ((KeyError,), 1),
        (lambda e: False, 1),
    ],
)
def test_only_what_retry_on_names_is_tried_again_and_the_rest_passes_at_once(
    call: Call, retry_on: Any, calls: int
) -> None:
    handler = Tool(failures=9)
    if calls == 3:
        assert call(retry(retry_on=retry_on), handler).status == "error"
    else:
        with pytest.raises(TimeoutError):
            call(retry(retry_on=retry_on), handler)
    assert handler.calls == calls


class Hopeless(Exception):
    is_retryable = False


def test_an_error_that_says_it_is_not_worth_another_try_passes_by_default() -> None:
    handler = Tool(failures=9, error=Hopeless())
    with pytest.raises(Hopeless):
        in_turn(retry(), handler)
    assert handler.calls == 1


@both
def test_only_the_named_tools_are_tried_again(call: Call) -> None:
    @tool
    def search(q: str) -> str:
        """Search."""
        return q

    for tools, calls in ([search], 3), (["search"], 3), (["other"], 1):
        handler = Tool(failures=9)
        middleware = retry(tools=tools, on_failure="error")
        assert list(middleware.tools) == []  # those it is for are not tools that it adds
        with pytest.raises(TimeoutError):
            call(middleware, handler)
        assert handler.calls == calls


class Answer(BaseModel):
    amount: int


@both
@pytest.mark.parametrize(
    "error",
    [
        GraphInterrupt(),
        GraphDrained(),
        ParentCommand(Command()),
        ReplayMismatch("changed"),
        StepInDoubtError("stop"),
        FenceLost("gone"),
        CheckpointerRequiredError("none"),
        KeyboardInterrupt(),
    ],
    ids=lambda e: type(e).__name__,
)
def test_what_the_engine_must_see_is_neither_retried_nor_swallowed(call: Call, error: BaseException) -> None:
    handler = Tool(failures=9, error=error)
    with pytest.raises(type(error)):
        call(retry(retry_on=lambda e: True), handler)
    assert handler.calls == 1


@both
def test_a_validation_error_of_the_tools_own_is_an_error_like_any_other(call: Call) -> None:
    try:
        Answer.model_validate({"amount": "much"})
    except ValidationError as error:
        own = error
    handler = Tool(failures=9, error=own)
    assert "ValidationError" in call(retry(), handler).content
    assert handler.calls == 3


@both
def test_a_withdrawn_question_is_told_to_the_model_without_another_try(call: Call) -> None:
    handler = Tool(failures=9, error=QuestionWithdrawn("withdrawn"))
    assert "after 1 attempt with QuestionWithdrawn" in call(retry(), handler).content
    assert handler.calls == 1


@pytest.mark.parametrize("name", ["max_retries", "initial_delay", "max_delay", "backoff_factor"])
def test_negative_numbers_are_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be >= 0"):
        ToolRetryMiddleware(**{name: -1})


@pytest.mark.parametrize(
    "options", [{"on_failure": "raise"}, {"retry_on": (int,)}, {"retry_on": 3}, {"retry_on": int}, {"tools": "search"}]
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        ToolRetryMiddleware(**options)


def test_the_options_are_attributes_with_these_defaults() -> None:
    made = ToolRetryMiddleware()
    assert (made.max_retries, made.on_failure, made.backoff_factor) == (2, "continue", 2.0)
    assert (made.initial_delay, made.max_delay, made.jitter) == (1.0, 60.0, True)


def waits(**options: Any) -> list[float]:
    middleware = ToolRetryMiddleware(**{"jitter": False, **options})
    return [middleware.wait_after(attempts) for attempts in range(1, 9)]


def test_waits_double_from_one_second_up_to_a_minute() -> None:
    assert waits() == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert waits(backoff_factor=3.0, initial_delay=0.5, max_delay=10.0)[:4] == [0.5, 1.5, 4.5, 10.0]
    assert waits(backoff_factor=0.0) == [1.0] * 8
    assert ToolRetryMiddleware(jitter=False).wait_after(5000) == 60.0


def test_jitter_spreads_a_wait_by_a_quarter_and_never_above_the_longest() -> None:
    spread = {ToolRetryMiddleware().wait_after(1) for _ in range(50)}
    assert len(spread) > 10
    assert all(0.75 <= wait <= 1.25 for wait in spread)
    assert all(45.0 <= ToolRetryMiddleware().wait_after(9) <= 60.0 for _ in range(50))


@both
def test_it_does_wait_before_another_attempt(call: Call) -> None:
    began = time.monotonic()
    call(retry(initial_delay=0.02, jitter=False), Tool(failures=1))
    assert time.monotonic() - began >= 0.02


async def test_others_run_while_it_waits_on_an_event_loop() -> None:
    repaired = asyncio.Event()

    async def handler(asked: ToolCallRequest) -> ToolMessage:
        if not repaired.is_set():
            asyncio.get_running_loop().call_soon(repaired.set)
            raise TimeoutError
        return ToolMessage("found", tool_call_id="c1")

    found = await retry(max_retries=1, initial_delay=0.001).awrap_tool_call(request(), handler)
    assert found.content == "found"


def test_it_must_lie_inside_the_approval() -> None:
    assert ToolRetryMiddleware.approval_order == "inside"


# --- in a running graph -----------------------------------------------------------------------------------------------


def graph_of(handler: Callable[[ToolCallRequest], Any], middleware: ToolRetryMiddleware) -> Any:
    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [middleware.wrap_tool_call(request(), handler)]}

    return StateGraph(MessagesState).add_node("call", node).add_edge(START, "call").compile(InMemorySaver())


def test_a_question_of_the_tool_is_asked_once_and_its_answer_becomes_the_result() -> None:
    def asking(asked: ToolCallRequest) -> ToolMessage:
        return ToolMessage(interrupt("sure?"), tool_call_id="c1")

    graph = graph_of(asking, retry(retry_on=Exception))
    (question,) = graph.invoke({"messages": []}, THREAD)["__interrupt__"]
    assert question.value == "sure?"
    assert graph.invoke(Command(resume="yes"), THREAD)["messages"][-1].content == "yes"


class Small(BaseModel):
    """Its JSON Schema allows what its validator does not."""

    amount: int

    def model_post_init(self, _: Any) -> None:
        if self.amount > 10:
            raise ValueError("at most 10")


@pytest.mark.parametrize("is_hidden", [False, True], ids=["as it is", "inside another error"])
@pytest.mark.parametrize("nested", [False, True], ids=["in the tool", "in a graph that the tool runs"])
def test_a_refused_answer_is_no_failure_of_the_tool_and_can_be_corrected(nested: bool, is_hidden: bool) -> None:
    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [f"{interrupt('how much?', response_schema=Small).amount}"]}

    child = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask").compile()

    def found() -> Any:
        state: Any = {"messages": []}
        return child.invoke(state)["messages"][-1].content if nested else ask(state)["messages"][0]

    def asking(asked: ToolCallRequest) -> ToolMessage:
        try:
            return ToolMessage(found(), tool_call_id="c1")
        except ValidationError as error:
            if is_hidden:
                raise RuntimeError("lookup failed") from error
            raise

    graph = graph_of(asking, retry())
    graph.invoke({"messages": []}, THREAD)
    for wrong in (11, 12):
        with pytest.raises(RuntimeError if nested and is_hidden else ValidationError):
            graph.invoke(Command(resume={"amount": wrong}), THREAD)
    assert graph.invoke(Command(resume={"amount": 3}), THREAD)["messages"][-1].content == "3"


def test_a_pause_that_the_tool_made_an_error_of_is_not_tried_again() -> None:
    calls: list[int] = []

    def hiding(asked: ToolCallRequest) -> ToolMessage:
        calls.append(1)
        try:
            return ToolMessage(interrupt("sure?"), tool_call_id="c1")
        except BaseException:
            raise RuntimeError("no answer") from None

    with pytest.raises(SwallowedInterruptError):
        graph_of(hiding, retry()).invoke({"messages": []}, THREAD)
    assert calls == [1]


def test_asking_without_a_checkpointer_reaches_the_developer_and_not_the_model() -> None:
    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [retry().wrap_tool_call(request(), lambda _: interrupt("sure?"))]}

    graph = StateGraph(MessagesState).add_node("call", node).add_edge(START, "call").compile()
    with pytest.raises(CheckpointerRequiredError):
        graph.invoke({"messages": []})


def test_nothing_must_pass_that_is_an_ordinary_error() -> None:
    assert not retrying.must_pass(ValueError())
    assert retrying.must_pass(asyncio.CancelledError())
