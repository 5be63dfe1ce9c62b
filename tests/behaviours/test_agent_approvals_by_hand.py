"""Approval middleware whose hooks a test calls itself, outside of a graph, with an `interrupt` of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from pydantic import ValidationError

from tests.agents.scripted import calls
from waitpoint.agents.middleware import HumanInTheLoopMiddleware, InterruptOnConfig, ToolCallRequest
from waitpoint.agents.tool_node.request import ToolRuntime
from waitpoint.runtime import Runtime
from waitpoint.types import Command

APPROVE = {"type": "approve"}
REJECT = {"type": "reject"}
THREE: Any = {"allowed_decisions": ["approve", "edit", "reject"]}
RUNTIME: Any = Runtime()

REJECTED = (
    "User rejected the tool call for `gated` with id 1. The tool was not executed. Do not retry this tool call unless the "
    "user explicitly requests it."
)

Hook = Callable[..., Any]


@pytest.fixture(params=["sync", "async"])
def after_model(request: pytest.FixtureRequest) -> Hook:
    """Call the hook after the model, blocking or under asyncio."""
    if request.param == "sync":
        return lambda middleware, state, runtime=RUNTIME: middleware.after_model(state, runtime)
    return lambda middleware, state, runtime=RUNTIME: asyncio.run(middleware.aafter_model(state, runtime))


@pytest.fixture(params=["sync", "async"])
def wrap_tool_call(request: pytest.FixtureRequest) -> Hook:
    """Call the hook around a tool call with a handler that returns this result, blocking or under asyncio."""

    def blocking(middleware: Any, given: Any, handler: Any) -> Any:
        return middleware.wrap_tool_call(given, handler)

    def awaited(middleware: Any, given: Any, handler: Any) -> Any:
        async def later(changed: Any) -> Any:
            return handler(changed)

        return asyncio.run(middleware.awrap_tool_call(given, later))

    return blocking if request.param == "sync" else awaited


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Stands for the person."""
    person = Mock()
    monkeypatch.setattr("waitpoint.agents.middleware.human_in_the_loop.interrupt", person)
    return person


def state(*messages: Any, **more: Any) -> Any:
    return {"messages": [HumanMessage("Hello"), *messages], **more}


def proposed(*named: str) -> AIMessage:
    """Return a message that calls these tools, with ids from 1."""
    return calls(*((name, str(n), {"input": n}) for n, name in enumerate(named, 1)), text="I'll help.")


def decisions(*given: Any) -> Any:
    return {"decisions": list(given)}


def edit(name: str, **args: Any) -> Any:
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


# --- what is not asked about ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "messages",
    [[], [AIMessage("Hi.")], [proposed("other")], [proposed("safe")], [proposed("gated"), ToolMessage("x", tool_call_id="1")]],
    ids=["nothing-said", "no-calls", "not-listed", "listed-as-false", "answered"],
)  # fmt: skip
def test_nothing_is_asked_or_written_where_nothing_is_gated(
    after_model: Hook, interrupt: Mock, messages: list[Any]
) -> None:
    """B236, B237, B250"""
    middleware = HumanInTheLoopMiddleware({"gated": THREE, "safe": False})
    assert after_model(middleware, {"messages": messages}) is None
    assert after_model(middleware, state(*messages)) is None
    interrupt.assert_not_called()


@pytest.mark.parametrize("runtime", [Runtime(), None], ids=["runtime", "none"])
def test_the_runtime_may_be_left_out(after_model: Hook, interrupt: Mock, runtime: Any) -> None:
    interrupt.return_value = decisions(APPROVE)
    asked = InterruptOnConfig(allowed_decisions=["approve"], when=lambda request: True)
    message = proposed("gated")
    assert after_model(HumanInTheLoopMiddleware({"gated": asked}), state(message), runtime) == {"messages": [message]}


# --- the question -----------------------------------------------------------------------------------------------------


def test_one_question_lists_all_gated_calls_in_their_order(after_model: Hook, interrupt: Mock) -> None:
    """B238, B239"""
    interrupt.return_value = decisions(APPROVE, APPROVE)
    middleware = HumanInTheLoopMiddleware({"a": THREE, "b": True}, description_prefix="Check this")
    after_model(middleware, state(proposed("b", "free", "a")))
    ((payload,), options) = interrupt.call_args
    assert (interrupt.call_count, options) == (1, {})
    assert payload == {
        "action_requests": [
            {"name": "b", "args": {"input": 1}, "description": 'Check this\n\nTool: b\nArgs: {\n  "input": 1\n}'},
            {"name": "a", "args": {"input": 3}, "description": 'Check this\n\nTool: a\nArgs: {\n  "input": 3\n}'},
        ],
        "review_configs": [
            {"action_name": "b", "allowed_decisions": ["approve", "edit", "reject", "respond"]},
            {"action_name": "a", "allowed_decisions": ["approve", "edit", "reject"]},
        ],
    }


def test_a_description_is_a_text_or_a_function_of_call_state_and_runtime(after_model: Hook, interrupt: Mock) -> None:
    """B239"""
    interrupt.return_value = decisions(APPROVE, APPROVE)
    seen: list[Any] = []

    def described(*given: Any) -> str:
        seen.append(given)
        return f"about {given[0]['args']}"

    middleware = HumanInTheLoopMiddleware(
        {
            "a": InterruptOnConfig(allowed_decisions=["approve"], description="fixed"),
            "b": InterruptOnConfig(allowed_decisions=["approve"], description=described),
        }
    )
    message, runtime = proposed("a", "b"), Runtime(context="of the run")
    given = state(message)
    after_model(middleware, given, runtime)
    shown = [action["description"] for action in interrupt.call_args.args[0]["action_requests"]]
    assert shown == ["fixed", "about {'input': 2}"]
    assert seen == [(message.tool_calls[1], given, runtime)]


def test_options_are_readable() -> None:
    """B235"""
    given = {"gated": THREE}
    middleware = HumanInTheLoopMiddleware(given, description_prefix="Check this", interrupt_mode="per_call")
    assert middleware.interrupt_on == given
    assert middleware.description_prefix == "Check this"
    assert middleware.interrupt_mode == "per_call"


# --- the predicate ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("risky", [True, False])
def test_a_predicate_decides_for_each_call(after_model: Hook, interrupt: Mock, risky: bool) -> None:
    """B257"""
    interrupt.return_value = decisions(APPROVE)
    config = InterruptOnConfig(allowed_decisions=["approve"], when=lambda request: request.tool_call["args"]["risky"])
    message = calls(("gated", "1", {"risky": risky}), ("gated", "2", {"risky": False}))
    found = after_model(HumanInTheLoopMiddleware({"gated": config}), state(message))
    assert found == ({"messages": [message]} if risky else None)
    assert interrupt.call_count == (1 if risky else 0)
    if risky:
        assert len(interrupt.call_args.args[0]["action_requests"]) == 1


def test_a_predicate_sees_the_call_in_its_state_and_a_tool_runtime(after_model: Hook, interrupt: Mock) -> None:
    """B257"""
    seen: list[ToolCallRequest] = []
    interrupt.return_value = decisions(APPROVE)
    config = InterruptOnConfig(allowed_decisions=["approve"], when=lambda request: seen.append(request) or True)
    message = proposed("gated")
    given, runtime = state(message), Runtime(context={"user": "ann"}, store=object())
    after_model(HumanInTheLoopMiddleware({"gated": config}), given, runtime)
    (request,) = seen
    assert request.tool_call == message.tool_calls[0]
    assert request.tool is None
    assert request.state is given
    assert isinstance(request.runtime, ToolRuntime)
    assert request.runtime.state is given
    assert (request.runtime.tool_call_id, request.runtime.tools) == ("1", [])
    assert request.runtime.context is runtime.context
    assert request.runtime.store is runtime.store


# --- the decisions ----------------------------------------------------------------------------------------------------


def test_an_approved_message_comes_back_unchanged(after_model: Hook, interrupt: Mock) -> None:
    """B242"""
    interrupt.return_value = decisions(APPROVE)
    message = proposed("gated")
    before = message.model_copy(deep=True)
    assert after_model(HumanInTheLoopMiddleware({"gated": THREE}), state(message)) == {"messages": [before]}


@pytest.mark.parametrize("key", ["edited_action", "editedAction"])
def test_an_edit_is_kept_beside_the_models_own_call(after_model: Hook, interrupt: Mock, key: str) -> None:
    """B243"""
    action = {"name": "gated", "args": {"input": "new"}}
    interrupt.return_value = decisions({"type": "edit", key: action})
    message = proposed("gated")
    found = after_model(HumanInTheLoopMiddleware({"gated": True}), state(message))
    assert found == {"messages": [message], "hitl_edited_tool_calls": {"1": action}}
    assert message.tool_calls[0]["args"] == {"input": 1}


@pytest.mark.parametrize(
    ("decision", "status", "text"),
    [
        ({**REJECT, "message": "Too dear."}, "error", "Too dear."),
        (REJECT, "error", REJECTED),
        ({"type": "respond", "message": "Blue."}, "success", "Blue."),
        ({"type": "respond", "message": ""}, "success", ""),
        ({**REJECT, "message": ""}, "error", ""),
    ],
    ids=["reason", "default", "response", "empty-response", "empty-reason"],
)
def test_what_is_not_run_is_answered_by_the_person(
    after_model: Hook, interrupt: Mock, decision: Any, status: str, text: str
) -> None:
    """B251, B252, B253, B254, B255"""
    interrupt.return_value = decisions(decision)
    message = proposed("gated")
    found = after_model(HumanInTheLoopMiddleware({"gated": True}), state(message))
    assert list(found) == ["messages"]
    same, answer = found["messages"]
    assert same == message
    assert isinstance(answer, ToolMessage)
    assert (answer.status, answer.content, answer.name, answer.tool_call_id) == (status, text, "gated", "1")
    assert answer.additional_kwargs == {
        "lc_source": "hitl_interrupt_decision",
        "lc_data": {"decision": decision["type"]},
    }


def test_several_decisions_leave_the_calls_in_their_order(after_model: Hook, interrupt: Mock) -> None:
    """B241, B255"""
    given = [APPROVE, edit("b", input="new"), {**REJECT, "message": "no"}, {"type": "respond", "message": "yes"}]
    interrupt.return_value = decisions(*given)
    message = proposed("free", "a", "b", "c", "free", "d")
    middleware = HumanInTheLoopMiddleware(dict.fromkeys("abcd", True))
    found = after_model(middleware, state(message))
    assert found["messages"][0] == message
    assert [c["name"] for c in found["messages"][0].tool_calls] == ["free", "a", "b", "c", "free", "d"]
    assert [(m.tool_call_id, m.content) for m in found["messages"][1:]] == [("4", "no"), ("6", "yes")]
    assert found["hitl_edited_tool_calls"] == {"3": {"name": "b", "args": {"input": "new"}}}


@pytest.mark.parametrize("given", [[], [APPROVE, APPROVE]], ids=len)
def test_another_number_of_decisions_is_refused(after_model: Hook, interrupt: Mock, given: list[Any]) -> None:
    """B240"""
    interrupt.return_value = decisions(*given)
    text = rf"Number of human decisions \({len(given)}\) does not match number of hanging tool calls \(1\)\."
    with pytest.raises(ValueError, match=text):
        after_model(HumanInTheLoopMiddleware({"gated": True}), state(proposed("gated")))


@pytest.mark.parametrize(
    ("decision", "allowed"),
    [
        ({"type": "unknown"}, ["approve", "edit", "reject"]),
        ({"type": "respond", "message": "x"}, ["approve", "edit", "reject"]),
        ({"type": "edit", "edited_action": {"name": "gated", "args": {"input": 2}}}, ["approve", "reject"]),
        (APPROVE, ["respond"]),
    ],
)
def test_a_decision_that_is_not_allowed_is_refused(
    after_model: Hook, interrupt: Mock, decision: Any, allowed: Any
) -> None:
    """B256"""
    interrupt.return_value = decisions(decision)
    with pytest.raises(ValueError) as refused:
        after_model(HumanInTheLoopMiddleware({"gated": {"allowed_decisions": allowed}}), state(proposed("gated")))
    assert (
        f"Unexpected human decision: {decision}. Decision type '{decision['type']}' is not allowed for tool 'gated'. "
        f"Expected one of {allowed} based on the tool's configuration."
    ) in str(refused.value)


def test_edits_of_an_earlier_turn_are_dropped_by_one_with_nothing_to_review(after_model: Hook, interrupt: Mock) -> None:
    """B250"""
    earlier = {"1": {"name": "gated", "args": {"input": "new"}}}
    given = state(proposed("free"), hitl_edited_tool_calls=earlier)
    assert after_model(HumanInTheLoopMiddleware({"gated": True}), given) == {"hitl_edited_tool_calls": {}}
    interrupt.assert_not_called()


# --- around the call --------------------------------------------------------------------------------------------------

NOTICE = (
    "Note: a human reviewer replaced this tool call before it ran. The call recorded in your message is the one you "
    "produced, not the one that executed. This was intentional and authorized. Do not re-issue your original call. "
    'Executed instead: gated with arguments {"input":"new"}.'
)
RESPONSE = f"{NOTICE}\n\nTool response:"
IMAGE = {"type": "image_url", "image_url": {"url": "u"}}


def request(edited: Any = None, of: BaseTool | None = None, runtime: Any = None) -> ToolCallRequest:
    """Return the request of a call, in a state in which a person may have changed it."""
    message = proposed("gated")
    more = {"hitl_edited_tool_calls": {"1": edited}} if edited else {}
    return ToolCallRequest(message.tool_calls[0], of, state(message, **more), runtime)


EDITED = {"name": "gated", "args": {"input": "new"}}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("wrote it", f"{RESPONSE}\nwrote it"),
        ("", NOTICE),
        ([{"type": "text", "text": "wrote it"}], [{"type": "text", "text": RESPONSE}, {"type": "text", "text": "wrote it"}]),
        ([{"type": "text", "text": "a"}, IMAGE], [{"type": "text", "text": RESPONSE}, {"type": "text", "text": "a"}, IMAGE]),
        (["wrote it"], [RESPONSE, "wrote it"]),
        ([], [{"type": "text", "text": NOTICE}]),
    ],
    ids=["text", "no-text", "block", "blocks", "strings", "no-blocks"],
)  # fmt: skip
def test_the_notice_comes_before_the_result_of_an_edited_call(wrap_tool_call: Hook, content: Any, told: Any) -> None:
    """B244, B245"""
    middleware = HumanInTheLoopMiddleware({"gated": True})
    found = wrap_tool_call(middleware, request(EDITED), lambda _: ToolMessage(content, tool_call_id="1"))
    assert found.content == told


def test_the_handler_gets_the_edited_call_under_the_same_id(wrap_tool_call: Hook) -> None:
    """B243"""
    ran: list[Any] = []
    middleware = HumanInTheLoopMiddleware({"gated": True})
    wrap_tool_call(middleware, request(EDITED), lambda r: ran.append(r.tool_call) or ToolMessage("x", tool_call_id="1"))
    assert ran == [{"name": "gated", "args": {"input": "new"}, "id": "1", "type": "tool_call"}]


def test_only_the_calls_own_message_of_a_command_is_told(wrap_tool_call: Hook) -> None:
    """B246"""
    other = ToolMessage("other", tool_call_id="99")
    command = Command(update={"messages": [ToolMessage("wrote it", tool_call_id="1"), other], "key": "kept"}, goto="x")
    found = wrap_tool_call(HumanInTheLoopMiddleware({"gated": True}), request(EDITED), lambda _: command)
    assert (found.goto, found.update["key"]) == ("x", "kept")
    assert [m.content for m in found.update["messages"]] == [f"{RESPONSE}\nwrote it", "other"]


@pytest.mark.parametrize("content", ["wrote it", ["wrote it"], [{"type": "text", "text": "a"}], [], ""], ids=repr)
def test_the_notice_is_never_added_twice(wrap_tool_call: Hook, content: Any) -> None:
    """B246"""
    middleware = HumanInTheLoopMiddleware({"gated": True})
    once = wrap_tool_call(middleware, request(EDITED), lambda _: ToolMessage(content, tool_call_id="1"))
    assert wrap_tool_call(middleware, request(EDITED), lambda _: once) == once


@pytest.mark.parametrize("content", ["wrote it", [{"type": "text", "text": "wrote it"}]], ids=["text", "blocks"])
def test_the_notice_is_ones_own_or_none(wrap_tool_call: Hook, content: Any) -> None:
    """B247"""
    result = ToolMessage(content, tool_call_id="1")
    off = HumanInTheLoopMiddleware({"gated": True}, edit_notice=None)
    assert wrap_tool_call(off, request(EDITED), lambda _: result).content == content
    own = HumanInTheLoopMiddleware({"gated": True}, edit_notice="Changed.")
    text = wrap_tool_call(own, request(EDITED), lambda _: result).text
    assert text.startswith('Changed. Executed instead: gated with arguments {"input":"new"}.')
    assert "a human reviewer" not in text


def test_a_call_that_nobody_edited_is_handed_on_as_it_is(wrap_tool_call: Hook, interrupt: Mock) -> None:
    """B242"""
    given, result = request(), ToolMessage("x", tool_call_id="1")
    seen: list[Any] = []
    middleware = HumanInTheLoopMiddleware({"gated": True})
    assert wrap_tool_call(middleware, given, lambda r: seen.append(r) or result) is result
    assert seen[0] is given
    interrupt.assert_not_called()


@tool
def gated(input: str) -> str:
    """Do it."""
    return f"did {input}"


@tool
def other(input: str) -> str:
    """Do it otherwise."""
    return f"did {input} otherwise"


def test_an_edit_into_another_tool_hands_on_that_tool(wrap_tool_call: Hook) -> None:
    """B248: also if the policy has become stricter since it was decided"""
    middleware = HumanInTheLoopMiddleware({"gated": {"allowed_decisions": ["approve"]}})
    given = request({"name": "other", "args": {"input": "new"}}, gated, SimpleNamespace(tools=[gated, other]))
    found = wrap_tool_call(
        middleware, given, lambda r: ToolMessage(r.tool.invoke(r.tool_call["args"]), tool_call_id="1")
    )
    assert found.content.endswith(
        'Executed instead: other with arguments {"input":"new"}.\n\nTool response:\ndid new otherwise'
    )


@pytest.mark.parametrize("runtime", [SimpleNamespace(tools=[gated, other]), None], ids=["tools", "no-runtime"])
def test_an_edit_into_a_tool_that_is_not_there_is_refused(wrap_tool_call: Hook, runtime: Any) -> None:
    """B248"""
    given = request({"name": "nope", "args": {"input": "new"}}, gated, runtime)
    with pytest.raises(ValueError, match="'nope', which is not an available tool"):
        wrap_tool_call(HumanInTheLoopMiddleware({"gated": True}), given, lambda _: pytest.fail("it ran"))


# --- once per call ----------------------------------------------------------------------------------------------------


@pytest.fixture
def per_call() -> HumanInTheLoopMiddleware:
    return HumanInTheLoopMiddleware({"gated": True, "never": "deny", "free": False}, interrupt_mode="per_call")


def test_the_hook_after_the_model_does_nothing(
    per_call: HumanInTheLoopMiddleware, after_model: Hook, interrupt: Mock
) -> None:
    assert after_model(per_call, state(proposed("gated", "never"))) is None
    interrupt.assert_not_called()


@pytest.mark.parametrize(
    ("decision", "ran", "content"),
    [
        (APPROVE, [{"input": 1}], "did it"),
        (edit("gated", input="new"), [{"input": "new"}], f"{RESPONSE}\ndid it"),
        ({**REJECT, "message": "no"}, [], "no"),
        ({"type": "respond", "message": "yes"}, [], "yes"),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_the_hook_around_a_call_asks_about_it(
    per_call: HumanInTheLoopMiddleware, wrap_tool_call: Hook, interrupt: Mock, decision: Any, ran: Any, content: str
) -> None:
    """B258"""
    interrupt.return_value = decision
    did: list[Any] = []

    def handler(given: ToolCallRequest) -> ToolMessage:
        did.append(given.tool_call["args"])
        return ToolMessage("did it", tool_call_id="1")

    found = wrap_tool_call(per_call, request(of=gated), handler)
    assert (did, found.content) == (ran, content)
    assert interrupt.call_args.args[0] == {
        "type": "tool_approval",
        "tool_call_id": "1",
        "name": "gated",
        "args": {"input": 1},
        "description": 'Tool execution requires approval\n\nTool: gated\nArgs: {\n  "input": 1\n}',
    }
    assert len(interrupt.call_args.kwargs["response_schema"]["oneOf"]) == 4


@pytest.mark.parametrize("wrong", [{"type": "edit"}, {"type": "aprove"}, {}, "approve", edit("gated"), edit("other")])
def test_a_wrong_decision_is_refused_by_the_hook_around_a_call(
    per_call: HumanInTheLoopMiddleware, wrap_tool_call: Hook, interrupt: Mock, wrong: Any
) -> None:
    interrupt.return_value = wrong
    with pytest.raises(ValidationError):
        wrap_tool_call(per_call, request(of=gated), lambda _: pytest.fail("it ran"))


def test_what_needs_no_decision_is_not_asked_about(
    per_call: HumanInTheLoopMiddleware, wrap_tool_call: Hook, interrupt: Mock
) -> None:
    for name, status in (("free", "success"), ("unknown", "success"), ("never", "error")):
        message = proposed(name)
        given = ToolCallRequest(message.tool_calls[0], None, state(message), None)  # type: ignore[arg-type]
        assert wrap_tool_call(per_call, given, lambda _: ToolMessage("x", tool_call_id="1")).status == status
    interrupt.assert_not_called()
