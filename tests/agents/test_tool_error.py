"""ToolErrorMiddleware: which exceptions of tools become messages, and which go on their way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import ToolMessage

from waitpoint.agents.middleware.tool_error import ToolErrorMiddleware
from waitpoint.agents.middleware.types import ToolCallRequest
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.errors import GraphDrained, GraphInterrupt, ParentCommand
from waitpoint.graph import START, MessagesState, StateGraph
from waitpoint.types import Command, interrupt

THREAD = {"configurable": {"thread_id": "1"}}


def request() -> ToolCallRequest:
    call: Any = {"name": "search", "args": {"q": "x"}, "id": "c1", "type": "tool_call"}
    return ToolCallRequest(tool_call=call, tool=None, state={}, runtime=None)  # type: ignore[arg-type]


def run(middleware: ToolErrorMiddleware, error: BaseException | None, how: str) -> Any:
    def handler(asked: ToolCallRequest) -> ToolMessage:
        if error is not None:
            raise error
        return ToolMessage("found", tool_call_id="c1")

    async def later(asked: ToolCallRequest) -> ToolMessage:
        return handler(asked)

    if how == "sync":
        return middleware.wrap_tool_call(request(), handler)
    return asyncio.run(middleware.awrap_tool_call(request(), later))  # type: ignore[arg-type]


both = pytest.mark.parametrize("how", ["sync", "async"])


@both
def test_what_on_error_returns_becomes_the_error_message_of_the_call(how: str) -> None:
    told = run(ToolErrorMiddleware(lambda e, r: f"{r.tool_call['name']}: {e}"), ValueError("bad"), how)
    assert (told.content, told.status, told.tool_call_id, told.name) == ("search: bad", "error", "c1", "search")


@both
def test_content_blocks_stay_blocks_and_an_empty_text_is_a_text(how: str) -> None:
    blocks = [{"type": "text", "text": "bad"}]
    assert run(ToolErrorMiddleware(lambda e, r: blocks), ValueError(), how).content == blocks
    assert run(ToolErrorMiddleware(lambda e, r: ""), ValueError(), how).content == ""


@both
def test_none_lets_the_exception_go_on_its_way(how: str) -> None:
    error = ValueError("bad")
    with pytest.raises(ValueError) as raised:
        run(ToolErrorMiddleware(lambda e, r: None), error, how)
    assert raised.value is error


@both
def test_a_result_is_left_alone(how: str) -> None:
    assert run(ToolErrorMiddleware(lambda e, r: "never"), None, how).content == "found"


@both
@pytest.mark.parametrize(("tools", "is_handled"), [(["search"], True), (["other"], False), ([], False)])
def test_only_errors_of_the_named_tools_are_handled(tools: list[Any], how: str, is_handled: bool) -> None:
    middleware = ToolErrorMiddleware(lambda e, r: "told", tools=tools)
    if is_handled:
        assert run(middleware, ValueError(), how).content == "told"
    else:
        with pytest.raises(ValueError):
            run(middleware, ValueError(), how)


@both
@pytest.mark.parametrize(
    "error", [GraphInterrupt(), GraphDrained(), ParentCommand(Command())], ids=lambda e: type(e).__name__
)
def test_control_flow_never_reaches_on_error(error: BaseException, how: str) -> None:
    asked: list[BaseException] = []
    with pytest.raises(type(error)):
        run(ToolErrorMiddleware(lambda e, r: asked.append(e) or "told"), error, how)
    assert asked == []


async def told_later(error: Exception, asked: ToolCallRequest) -> str:
    return "told later"


def test_aon_error_is_preferred_in_an_async_run_and_on_error_serves_a_sync_one() -> None:
    middleware = ToolErrorMiddleware(lambda e, r: "told", aon_error=told_later)
    assert run(middleware, ValueError(), "async").content == "told later"
    assert run(middleware, ValueError(), "sync").content == "told"


def test_with_aon_error_alone_a_sync_run_is_refused_before_the_tool_runs() -> None:
    ran: list[Any] = []
    with pytest.raises(NotImplementedError, match="only `aon_error`"):
        ToolErrorMiddleware(aon_error=told_later).wrap_tool_call(request(), ran.append)
    assert ran == []
    assert run(ToolErrorMiddleware(aon_error=told_later), ValueError(), "async").content == "told later"


def test_one_of_the_two_functions_is_required() -> None:
    with pytest.raises(ValueError, match="give `on_error`, `aon_error` or both"):
        ToolErrorMiddleware()


def test_a_coroutine_function_is_refused_as_on_error() -> None:
    with pytest.raises(ValueError, match="give it as `aon_error`"):
        ToolErrorMiddleware(told_later)  # type: ignore[arg-type]


def test_a_question_of_the_tool_passes_in_a_running_graph() -> None:
    middleware = ToolErrorMiddleware(lambda e, r: "told")

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [middleware.wrap_tool_call(request(), asking)]}

    def asking(asked: ToolCallRequest) -> ToolMessage:
        return ToolMessage(interrupt("sure?"), tool_call_id="c1")

    graph = StateGraph(MessagesState).add_node("call", node).add_edge(START, "call").compile(InMemorySaver())
    assert graph.invoke({"messages": []}, THREAD)["__interrupt__"][0].value == "sure?"
    assert graph.invoke(Command(resume="yes"), THREAD)["messages"][-1].content == "yes"


def test_it_must_lie_inside_the_approval() -> None:
    assert ToolErrorMiddleware.approval_order == "inside"
