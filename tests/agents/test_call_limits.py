"""ModelCallLimitMiddleware and ToolCallLimitMiddleware: their hooks, called by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from waitpoint.agents.middleware import ModelCallLimitMiddleware, ToolCallLimitMiddleware
from waitpoint.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse, jumps_of
from waitpoint.errors import CallLimitError, ModelCallLimitExceededError, ToolCallLimitExceededError
from waitpoint.runtime import Runtime

both = pytest.mark.parametrize("how", ["sync", "async"])


def run(middleware: Any, hook: str, state: Any, how: str = "sync") -> Any:
    if how == "sync":
        return getattr(middleware, hook)(state, Runtime())
    return asyncio.run(getattr(middleware, f"a{hook}")(state, Runtime()))


# --- calls of the model ---


def model_state(thread: int, run_: int, *messages: AnyMessage) -> Any:
    return {"messages": [*messages], "thread_model_call_count": thread, "run_model_call_count": run_}


@both
def test_a_model_below_its_limits_is_called(how: str) -> None:
    middleware = ModelCallLimitMiddleware(thread_limit=3, run_limit=2)
    assert run(middleware, "before_model", {"messages": []}, how) is None
    assert run(middleware, "before_model", model_state(2, 1), how) is None


@both
@pytest.mark.parametrize(("thread", "run_", "named"), [(3, 0, "3 in a thread"), (2, 2, "2 in a run")])
def test_a_limit_that_is_reached_ends_the_run_with_a_message_that_names_it(
    thread: int, run_: int, named: str, how: str
) -> None:
    middleware = ModelCallLimitMiddleware(thread_limit=3, run_limit=2)
    update = run(middleware, "before_model", model_state(thread, run_), how)
    assert update["jump_to"] == "end"
    (message,) = update["messages"]
    assert isinstance(message, AIMessage)
    assert message.text == f"Model call limit reached: {named}."


@both
def test_a_limit_that_is_reached_raises_with_its_numbers_if_it_is_to(how: str) -> None:
    middleware = ModelCallLimitMiddleware(thread_limit=3, run_limit=2, exit_behavior="error")
    with pytest.raises(ModelCallLimitExceededError, match="3 in a thread and 2 in a run") as raised:
        run(middleware, "before_model", model_state(3, 2), how)
    error = raised.value
    assert isinstance(error, CallLimitError)
    assert (error.thread_count, error.run_count, error.thread_limit, error.run_limit) == (3, 2, 3, 2)


def test_the_end_answers_calls_that_are_still_open() -> None:
    proposal = AIMessage("", tool_calls=[call("a", "1"), call("b", "2")])
    state = model_state(1, 1, HumanMessage("hi"), proposal, ToolMessage("done", tool_call_id="1"))
    update = run(ModelCallLimitMiddleware(run_limit=1), "before_model", state)
    answer, last = update["messages"]
    assert (answer.tool_call_id, answer.status, last.type) == ("2", "error", "ai")


@both
def test_a_call_is_counted_with_its_message_and_a_failed_one_is_not(how: str) -> None:
    response: ModelResponse[Any] = ModelResponse([AIMessage("ok")])
    request: Any = ModelRequest(model=None, messages=[], state=model_state(4, 1))  # type: ignore[arg-type]
    middleware = ModelCallLimitMiddleware(thread_limit=9)

    async def later(_: Any) -> Any:
        return response

    found: Any = (
        middleware.wrap_model_call(request, lambda _: response)
        if how == "sync"
        else asyncio.run(middleware.awrap_model_call(request, later))  # type: ignore[arg-type]
    )
    assert isinstance(found, ExtendedModelResponse)
    assert found.model_response is response
    assert found.command is not None
    assert found.command.update == {"thread_model_call_count": 5, "run_model_call_count": 2}

    def failing(_: Any) -> Any:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        middleware.wrap_model_call(request, failing)


@both
def test_a_new_run_begins_at_zero(how: str) -> None:
    update = run(ModelCallLimitMiddleware(run_limit=1), "before_agent", model_state(7, 1), how)
    assert update == {"run_model_call_count": 0}


# --- calls of tools ---


def call(name: str, call_id: str) -> Any:
    return {"name": name, "args": {}, "id": call_id, "type": "tool_call"}


def tool_state(names: str, thread: Any = None, run_: Any = None, after: Sequence[AnyMessage] = ()) -> Any:
    """A state whose last message of the model calls the tools of these letters, with ids 0, 1, 2 ..."""
    proposal = AIMessage("", tool_calls=[call(name, str(n)) for n, name in enumerate(names)])
    counts: dict[str, Any] = {"thread_tool_call_count": thread or {}, "run_tool_call_count": run_ or {}}
    return {"messages": [HumanMessage("hi"), proposal, *after], **counts}


def told(update: Any) -> list[tuple[str, str]]:
    return [(m.tool_call_id if isinstance(m, ToolMessage) else m.type, m.text) for m in update.get("messages", ())]


NO_MORE_A = "Not run: the limit of calls to 'a' is reached. Do not call it again."
NO_MORE = "Not run: the limit of tool calls is reached. Do not call tools again."
AT_END = "Not run: the agent came to its end."


@both
def test_calls_below_the_limit_are_counted_and_run(how: str) -> None:
    update = run(ToolCallLimitMiddleware(thread_limit=5), "after_model", tool_state("ab", {"__all__": 2}), how)
    assert update == {"thread_tool_call_count": {"__all__": 4}, "run_tool_call_count": {"__all__": 2}}


@both
def test_by_default_calls_beyond_the_limit_are_answered_and_the_others_run(how: str) -> None:
    middleware = ToolCallLimitMiddleware(tool_name="a", run_limit=2)
    update = run(middleware, "after_model", tool_state("abaa", {"a": 7, "b": 1}, {"a": 1}), how)
    assert told(update) == [("2", NO_MORE_A), ("3", NO_MORE_A)]
    assert all(m.status == "error" and m.name == "a" for m in update["messages"])
    assert "jump_to" not in update
    assert update["thread_tool_call_count"] == {"a": 8, "b": 1}
    assert update["run_tool_call_count"] == {"a": 2}


@both
def test_the_end_answers_every_call_and_runs_none(how: str) -> None:
    middleware = ToolCallLimitMiddleware(tool_name="a", thread_limit=1, exit_behavior="end")
    update = run(middleware, "after_model", tool_state("aba"), how)
    assert update["jump_to"] == "end"
    assert told(update) == [
        ("0", NO_MORE_A), ("2", NO_MORE_A), ("1", AT_END), ("ai", "Calls of tool 'a' are limited to 1 in a thread."),
    ]  # fmt: skip
    assert "thread_tool_call_count" not in update


@both
def test_the_error_names_tool_and_numbers_with_the_calls_asked_for(how: str) -> None:
    middleware = ToolCallLimitMiddleware(tool_name="a", thread_limit=4, run_limit=2, exit_behavior="error")
    with pytest.raises(ToolCallLimitExceededError, match="tool 'a' are limited to 2 in a run, and") as raised:
        run(middleware, "after_model", tool_state("aa", {"a": 2}, {"a": 1}), how)
    error = raised.value
    assert (error.thread_count, error.run_count, error.tool_name) == (4, 3, "a")
    assert (error.thread_limit, error.run_limit) == (4, 2)
    assert not isinstance(error, ModelCallLimitExceededError)


def test_a_limit_of_zero_lets_no_call_through() -> None:
    assert told(run(ToolCallLimitMiddleware(run_limit=0), "after_model", tool_state("ab"))) == [
        ("0", NO_MORE),
        ("1", NO_MORE),
    ]


def test_calls_that_have_an_answer_are_neither_counted_nor_answered_again() -> None:
    rejected = ToolMessage("no", tool_call_id="0", status="error")
    update = run(ToolCallLimitMiddleware(run_limit=1), "after_model", tool_state("aaa", after=[rejected]))
    assert told(update) == [("2", NO_MORE)]
    assert update["run_tool_call_count"] == {"__all__": 1}


def test_a_message_without_calls_of_the_tool_changes_nothing() -> None:
    middleware = ToolCallLimitMiddleware(tool_name="a", run_limit=1)
    assert run(middleware, "after_model", tool_state("bb", run_={"a": 1})) is None
    assert run(middleware, "after_model", {"messages": [HumanMessage("hi")]}) is None
    assert run(middleware, "after_model", {"messages": []}) is None


def test_a_new_run_begins_at_zero_for_the_limits_own_tool_only() -> None:
    state = tool_state("a", {"a": 5}, {"a": 5, "b": 3})
    assert run(ToolCallLimitMiddleware(tool_name="a", run_limit=1), "before_agent", state) == {
        "run_tool_call_count": {"a": 0, "b": 3}
    }


def test_limits_of_several_tools_have_names_of_their_own() -> None:
    assert ToolCallLimitMiddleware(run_limit=1).name == "ToolCallLimitMiddleware"
    assert ToolCallLimitMiddleware(tool_name="a", run_limit=1).name == "ToolCallLimitMiddleware[a]"


def test_both_may_jump_to_the_end_from_where_they_check() -> None:
    assert jumps_of(ModelCallLimitMiddleware(run_limit=1), "before_model") == ("end",)
    assert jumps_of(ToolCallLimitMiddleware(run_limit=1), "after_model") == ("end",)


@pytest.mark.parametrize("made", [ModelCallLimitMiddleware, ToolCallLimitMiddleware])
def test_limits_that_cannot_work_are_refused(made: Any) -> None:
    with pytest.raises(ValueError, match="give `thread_limit`, `run_limit` or both"):
        made()
    with pytest.raises(ValueError, match=r"run_limit must be >= 0"):
        made(run_limit=-1)
    with pytest.raises(ValueError, match="is 'stop'; give"):
        made(run_limit=1, exit_behavior="stop")


def test_a_run_cannot_have_more_than_its_thread() -> None:
    with pytest.raises(ValueError, match="`run_limit` is 3 and `thread_limit` 2"):
        ToolCallLimitMiddleware(thread_limit=2, run_limit=3)
