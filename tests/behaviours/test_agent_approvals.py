"""Approval of tool calls in agents, in both modes: what runs, what the model is told, what the state has."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from pydantic import AfterValidator, ValidationError

from tests.agents.posting import APPROVE, REJECT, START, Post, agent_with, answered, edit, results
from tests.agents.scripted import Scripted, calls
from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import thread
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import HumanInTheLoopMiddleware, ToolCallRequest
from waitpoint.agents.tool_node.request import InjectedState, ToolRuntime
from waitpoint.errors import AlreadyAnsweredError, UsageError
from waitpoint.runtime import Runtime
from waitpoint.types import Command

modes = pytest.mark.parametrize("mode", ["batched", "per_call"])
ONE = calls(("send", "c1", {"to": "ann", "cc": "carol"}))
NOTICE = "Do not re-issue your original call. Executed instead: "


# --- each decision ----------------------------------------------------------------------------------------------------


@modes
@pytest.mark.parametrize(
    ("decision", "did", "status", "text"),
    [
        (APPROVE, ["send ann carol"], "success", "sent to ann"),
        (edit("send", to="bob"), ["send bob None"], "success", "sent to bob"),
        (REJECT, [], "error", "no"),
        ({"type": "respond", "message": "already sent"}, [], "success", "already sent"),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_a_decision_runs_the_call_or_takes_the_place_of_its_result(
    saver: Any, call: Call, mode: Any, decision: Any, did: list[str], status: str, text: str
) -> None:
    """B242, B243, B251, B253, B254, B261: an edit's arguments replace all of the model's"""
    post, model, config = Post(), Scripted(ONE, "done"), thread()
    agent = post.agent(saver, model, {"send": True}, interrupt_mode=mode)
    state = call(agent, answered(call(agent, START, config), decision), config)
    assert post.did == did
    (message,) = [m for m in state["messages"] if isinstance(m, ToolMessage)]
    assert (message.status, message.name, message.tool_call_id) == (status, "send", "c1")
    assert message.text.endswith(text)
    kind = decision["type"]
    assert (NOTICE in message.text) is (kind == "edit")
    assert ("ann" in message.text or "carol" in message.text) is (kind == "approve")
    marks = {"lc_source": "hitl_interrupt_decision", "lc_data": {"decision": kind}}
    assert message.additional_kwargs == (marks if kind in ("reject", "respond") else {})
    assert state["messages"][1].tool_calls == ONE.tool_calls
    assert [m.text for m in model.shown[1]][-1] == message.text


@modes
@pytest.mark.parametrize("decision", [APPROVE, edit("send", to="bob"), REJECT], ids=lambda d: d["type"])
def test_keys_in_camel_case_are_taken_as_well(saver: Any, call: Call, mode: Any, decision: Any) -> None:
    """B241: what is inside the arguments stays as it is"""
    seen: list[Any] = []

    @tool
    def put(editedAction: str, toolCallId: str) -> str:
        """Put."""
        seen.append((editedAction, toolCallId))
        return "put"

    model, config = Scripted(calls(("put", "c1", {"editedAction": "a", "toolCallId": "b"})), "done"), thread()
    agent = agent_with(saver, model, [put], {"put": True}, interrupt_mode=mode)
    result = call(agent, START, config)
    given = {"type": "edit", "editedAction": {"name": "put", "args": {"editedAction": "x", "toolCallId": "y"}}}
    if mode == "batched":
        given["toolCallId"] = "c1"
    call(agent, answered(result, given), config)
    assert seen == [("x", "y")]


@modes
def test_several_calls_of_one_tool_get_each_its_own_decision(saver: Any, call: Call, mode: Any) -> None:
    """B255"""
    same = {"to": "ann"}
    model = Scripted(calls(*(("send", i, same) for i in ("c1", "c2", "c3", "c4"))), "done")
    post, config = Post(), thread()
    agent = post.agent(saver, model, {"send": True}, interrupt_mode=mode)
    result = call(agent, START, config)
    given = [APPROVE, REJECT, edit("send", to="bob"), {"type": "respond", "message": "done before"}]
    state = call(agent, answered(result, *given), config)
    assert sorted(post.did) == ["send ann None", "send bob None"]
    told = results(state)
    assert list(told) == ["c1", "c2", "c3", "c4"]
    assert [told["c1"], told["c2"], told["c4"]] == [
        ("success", "sent to ann"),
        ("error", "no"),
        ("success", "done before"),
    ]
    assert told["c3"][1].endswith("sent to bob")
    assert state["messages"][1].tool_calls == model.replies[0].tool_calls


@modes
@pytest.mark.parametrize("given", ["", None], ids=repr)
def test_a_call_without_an_id_gets_one(saver: Any, call: Call, mode: Any, given: Any) -> None:
    """B249: its answer would belong to no call"""
    post, config = Post(), thread()
    nameless = AIMessage("", tool_calls=[{"name": "send", "args": {"to": n}, "id": given} for n in ("ann", "bob")])
    agent = post.agent(saver, Scripted(nameless, "done"), {"send": True}, interrupt_mode=mode)
    state = call(agent, answered(call(agent, START, config), APPROVE, REJECT), config)
    assert post.did == ["send ann None"]
    ids = [c["id"] for c in state["messages"][1].tool_calls]
    assert all(ids)
    assert results(state) == {ids[0]: ("success", "sent to ann"), ids[1]: ("error", "no")}


@modes
def test_what_needs_no_decision_is_not_held_up_by_an_edit_or_a_rejection(saver: Any, call: Call, mode: Any) -> None:
    """B258"""
    proposed = calls(("read", "r", {"box": "in"}), ("send", "s", {"to": "ann"}), ("draft", "d", {"to": "bob"}))
    post, config = Post(), thread()
    agent = post.agent(saver, Scripted(proposed, "done"), {"send": True}, interrupt_mode=mode)
    result = call(agent, START, config)
    free = {"r": ("success", "mails in in"), "d": ("success", "drafted to bob")}
    assert results(result) == (free if mode == "per_call" else {})
    state = call(agent, answered(result, REJECT), config)
    assert results(state) == free | {"s": ("error", "no")}
    assert sorted(post.did) == ["draft bob", "read in"]


# --- turns after each other -------------------------------------------------------------------------------------------


@modes
def test_each_turn_asks_anew_and_no_edit_outlives_its_turn(saver: Any, call: Call, mode: Any) -> None:
    """B250: the same call id in a later turn"""
    post, config = Post(), thread()
    reads = calls(("read", "c1", {"box": "in"}))
    model = Scripted(ONE, reads, ONE, "done")
    agent = post.agent(saver, model, {"send": True}, interrupt_mode=mode)
    first = call(agent, START, config)
    second = call(agent, answered(first, edit("send", to="bob")), config)
    assert first["__interrupt__"][0].id != second["__interrupt__"][0].id
    assert post.did == ["send bob None", "read in"]
    state = call(agent, answered(second, APPROVE), config)
    assert post.did == ["send bob None", "read in", "send ann carol"]
    texts = [m.text for m in state["messages"] if isinstance(m, ToolMessage)]
    assert [NOTICE in text for text in texts] == [True, False, False]


@modes
def test_an_answer_is_taken_once(saver: Any, call: Call, mode: Any) -> None:
    post, config = Post(), thread()
    agent = post.agent(saver, Scripted(ONE, "done"), {"send": True}, interrupt_mode=mode)
    result = call(agent, START, config)
    (question,) = result["__interrupt__"]
    call(agent, answered(result, APPROVE), config)
    given = APPROVE if mode == "per_call" else {"decisions": [APPROVE]}
    with pytest.raises(AlreadyAnsweredError):
        call(agent, Command(resume={question.id: given}), config)
    assert post.did == ["send ann carol"]


@modes
@pytest.mark.parametrize("decision", [APPROVE, edit("send", to="bob"), REJECT], ids=lambda d: d["type"])
def test_another_process_takes_the_answer_and_goes_on(store: Store, call: Call, mode: Any, decision: Any) -> None:
    """B265"""
    post, config = Post(), thread()
    result = call(post.agent(store.saver, Scripted(ONE), {"send": True}, interrupt_mode=mode), START, config)
    again, model = Post(), Scripted("done")
    agent = again.agent(store.again(), model, {"send": True}, interrupt_mode=mode)
    state = call(agent, answered(result, decision), config)
    assert post.did == []
    assert again.did == {"approve": ["send ann carol"], "edit": ["send bob None"], "reject": []}[decision["type"]]
    assert results(state) == results(model.shown[0])  # type: ignore[arg-type]
    assert state["messages"][-1].text == "done"


# --- edits ------------------------------------------------------------------------------------------------------------


def small(number: int) -> int:
    if number > 10:
        raise ValueError("at most 10")
    return number * 100


@modes
def test_a_tools_validators_run_on_the_edit_as_it_was_sent(saver: Any, call: Call, mode: Any) -> None:
    """B261: what they make of it is not put through them again"""
    paid: list[int] = []

    @tool
    def pay(amount: Annotated[int, AfterValidator(small)], runtime: ToolRuntime) -> str:
        """Pay."""
        paid.append(amount)
        return f"paid {amount} for {runtime.tool_call_id}"

    config = thread()
    agent = agent_with(
        saver, Scripted(calls(("pay", "c1", {"amount": 1})), "done"), [pay], {"pay": True}, interrupt_mode=mode
    )
    result = call(agent, START, config)
    with pytest.raises(ValidationError, match="at most 10") as refused:
        call(agent, answered(result, edit("pay", amount=11)), config)
    assert refused.value.errors()[0]["loc"][-3:] == ("edited_action", "args", "amount")
    assert paid == []
    state = call(agent, answered(result, edit("pay", amount=2)), config)
    assert paid == [200]
    assert results(state)["c1"][1].endswith('{"amount":2}.\n\nTool response:\npaid 200 for c1')


@modes
def test_a_person_sees_and_edits_only_what_the_model_sees(saver: Any, call: Call, mode: Any) -> None:
    """B259, B261"""

    @tool
    def post(
        text: str,
        state: Annotated[Any, InjectedState],
        call_id: Annotated[str, InjectedToolCallId],
        runtime: ToolRuntime,
    ) -> str:
        """Post a text."""
        return f"{text} {len(state['messages'])} {call_id} {runtime.tool_call_id}"

    config = thread()
    agent = agent_with(
        saver, Scripted(calls(("post", "c1", {"text": "a"})), "done"), [post], {"post": True}, interrupt_mode=mode
    )
    result = call(agent, START, config)
    assert "call_id" not in str(result["__interrupt__"]).replace("tool_call_id", "")
    assert "runtime" not in str(result["__interrupt__"])
    state = call(agent, answered(result, edit("post", text="b")), config)
    assert results(state)["c1"][1].endswith('{"text":"b"}.\n\nTool response:\nb 2 c1 c1')


@modes
def test_an_edited_call_that_answers_by_a_command_is_told_in_its_own_message(saver: Any, call: Call, mode: Any) -> None:
    """B246"""

    @tool
    def note(text: str, call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Note a text."""
        said = [ToolMessage(f"noted {text}", tool_call_id=call_id), AIMessage("aside")]
        return Command(update={"messages": said})

    config = thread()
    agent = agent_with(
        saver, Scripted(calls(("note", "c1", {"text": "a"})), "done"), [note], {"note": True}, interrupt_mode=mode
    )
    state = call(agent, answered(call(agent, START, config), edit("note", text="b")), config)
    assert results(state)["c1"][1].endswith('note with arguments {"text":"b"}.\n\nTool response:\nnoted b')
    assert [m.text for m in state["messages"]].count("aside") == 1


# --- predicates and descriptions --------------------------------------------------------------------------------------


@modes
def test_a_predicate_gets_the_call_the_state_and_the_runtime_of_the_run(saver: Any, call: Call, mode: Any) -> None:
    """B257: the tool itself only where the call is about to run"""
    seen: list[ToolCallRequest] = []
    post, config = Post(), thread()
    when = {"allowed_decisions": ["approve"], "when": lambda request: seen.append(request) or True}
    middleware = HumanInTheLoopMiddleware({"send": when}, interrupt_mode=mode)  # type: ignore[dict-item]
    agent = create_agent(
        Scripted(ONE), post.tools, middleware=[middleware], checkpointer=saver, context_schema=dict[str, str]
    )
    call(agent, START, config, context={"user": "eve"})
    (request,) = seen
    assert request.tool_call == ONE.tool_calls[0]
    assert request.tool is (post.tools[0] if mode == "per_call" else None)
    assert [m.type for m in request.state["messages"]] == ["human", "ai"]
    assert isinstance(request.runtime, ToolRuntime)
    assert request.runtime.tool_call_id == "c1"
    assert request.runtime.context == {"user": "eve"}
    assert [each.name for each in request.runtime.tools] == ["send", "draft", "read"]
    assert request.runtime.config["configurable"]["thread_id"] == config["configurable"]["thread_id"]


@modes
@pytest.mark.parametrize("found", [True, False, None, 0, "no", KeyError("path")], ids=repr)
def test_only_an_explicit_false_lets_a_call_pass(saver: Any, call: Call, mode: Any, found: Any) -> None:
    def when(request: ToolCallRequest) -> Any:
        if isinstance(found, Exception):
            raise found
        return found

    post, config = Post(), thread()
    agent = post.agent(
        saver, Scripted(ONE, "done"), {"send": {"allowed_decisions": ["reject"], "when": when}}, interrupt_mode=mode
    )
    result = call(agent, START, config)
    assert ("__interrupt__" in result) is (found is not False)
    if found is not False:
        call(agent, answered(result, REJECT), config)
    assert post.did == (["send ann carol"] if found is False else [])


@modes
def test_predicates_and_descriptions_are_worked_out_once(saver: Any, call: Call, mode: Any) -> None:
    log: list[str] = []
    config = {
        "allowed_decisions": ["approve", "reject"],
        "when": lambda request: log.append("when") or True,
        "description": lambda tool_call, state, runtime: log.append("description") or f"number {len(log)}",
    }
    post, given = Post(), thread()
    agent = post.agent(saver, Scripted(ONE, "done"), {"send": config}, interrupt_mode=mode)
    result = call(agent, START, given)
    assert log == ["when", "description"]
    with pytest.raises(ValueError):
        call(agent, answered(result, {"type": "edit"}), given)
    assert agent.get_state(given).interrupts == tuple(result["__interrupt__"])
    call(agent, answered(result, APPROVE), given)
    assert log == ["when", "description"]
    assert post.did == ["send ann carol"]


@modes
def test_a_call_that_passed_is_not_asked_about_when_another_is_answered(saver: Any, call: Call, mode: Any) -> None:
    """The table of differences: a verdict is stored, also one that lets a call pass"""
    asked: list[str] = []

    def when(request: ToolCallRequest) -> bool:
        asked.append(request.tool_call["id"] or "")
        return request.tool_call["id"] == "c1" or asked.count("c2") > 1

    post, config = Post(), thread()
    proposed = calls(("send", "c1", {"to": "ann"}), ("send", "c2", {"to": "bob"}))
    agent = post.agent(
        saver,
        Scripted(proposed, "done"),
        {"send": {"allowed_decisions": ["reject"], "when": when}},
        interrupt_mode=mode,
    )
    state = call(agent, answered(call(agent, START, config), REJECT), config)
    assert "__interrupt__" not in state
    assert sorted(asked) == ["c1", "c2"]
    assert post.did == ["send bob None"]


@modes
def test_a_description_gets_the_runtime_of_the_graph(saver: Any, call: Call, mode: Any) -> None:
    """B239, B264"""
    seen: list[Any] = []
    config = {"allowed_decisions": ["approve"], "description": lambda *given: seen.append(given) or "text"}
    middleware = HumanInTheLoopMiddleware({"send": config}, interrupt_mode=mode)  # type: ignore[dict-item]
    agent = create_agent(
        Scripted(ONE), Post().tools, middleware=[middleware], checkpointer=saver, context_schema=dict[str, str]
    )
    call(agent, START, thread(), context={"user": "eve"})
    ((tool_call, state, runtime),) = seen
    assert tool_call == ONE.tool_calls[0]
    assert [m.type for m in state["messages"]] == ["human", "ai"]
    assert isinstance(runtime, Runtime)
    assert runtime.context == {"user": "eve"}


@modes
@pytest.mark.parametrize("which", ["when", "description"])
def test_coroutine_functions_work_under_asyncio_and_are_refused_elsewhere(
    saver: Any, call: Call, mode: Any, which: str, request: Any
) -> None:
    """B265"""

    async def later(*_: Any) -> Any:
        return True

    post, config = Post(), thread()
    agent = post.agent(
        saver, Scripted(ONE, "done"), {"send": {"allowed_decisions": ["approve"], which: later}}, interrupt_mode=mode
    )
    if "ainvoke" in request.node.callspec.id:
        call(agent, answered(call(agent, START, config), APPROVE), config)
        assert post.did == ["send ann carol"]
    else:
        with pytest.raises(UsageError, match="coroutine function"):
            call(agent, START, config)
        assert post.did == []
