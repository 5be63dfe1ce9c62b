"""What approval middleware accepts: which tools its keys mean, what is refused when the agent is built, what it needs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.agents.posting import APPROVE, START, Post, agent_with, answered, results
from tests.agents.scripted import Scripted, calls
from tests.behaviours.conftest import Call
from tests.behaviours.graphs import thread
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import HumanInTheLoopMiddleware, InterruptOnConfig
from waitpoint.errors import CheckpointerRequiredError, ConfigError
from waitpoint.graph import START as GRAPH_START
from waitpoint.graph import MessagesState, StateGraph

modes = pytest.mark.parametrize("mode", ["batched", "per_call"])
ALL = calls(("send", "s", {"to": "ann"}), ("draft", "d", {"to": "bob"}), ("read", "r", {"box": "in"}))


def names(result: Any) -> set[str]:
    """Return the names of the tools that a pause asks about."""
    values = [question.value for question in result.get("__interrupt__", ())]
    return {action["name"] for value in values for action in value.get("action_requests", [value])}


@modes
@pytest.mark.parametrize(
    ("interrupt_on", "asked", "refused"),
    [
        ({"send": True}, {"send"}, set()),
        ({"send": True, "draft": False}, {"send"}, set()),
        ({"send": {"allowed_decisions": ["approve"]}}, {"send"}, set()),
        ({"*": True}, {"send", "draft", "read"}, set()),
        ({"*": True, "read": False}, {"send", "draft"}, set()),
        ({"*d*": True, "read": False}, {"send", "draft"}, set()),
        ({"[sd]*": True}, {"send", "draft"}, set()),
        ({"*": False, "se*": True}, {"send"}, set()),
        ({"s*": False, "sen?": True}, {"send"}, set()),
        ({"send": "deny"}, set(), {"s"}),
        ({"*": "deny", "read": False, "draft": True}, {"draft"}, {"s"}),
        ({"send": False, "draft": False}, set(), set()),
    ],
)
def test_a_name_beats_a_pattern_and_a_pattern_beats_all_tools(
    saver: Any, call: Call, mode: Any, interrupt_on: Any, asked: set[str], refused: set[str]
) -> None:
    post, config = Post(), thread()
    agent = post.agent(saver, Scripted(ALL, "done"), interrupt_on, interrupt_mode=mode)
    result = call(agent, START, config)
    assert names(result) == asked
    if asked:
        assert all(word.split()[0] not in asked for word in post.did)
        result = call(agent, answered(result, *[APPROVE] * len(asked)), config)
    told = results(result)
    assert {i for i, (status, _) in told.items() if status == "error"} == refused
    assert len(post.did) == 3 - len(refused)
    for call_id in refused:
        assert "refused without asking" in told[call_id][1]


@pytest.mark.parametrize(
    ("interrupt_on", "text"),
    [
        ({"sned": True}, "'sned', which is no tool of the agent, so it would gate nothing; did you mean 'send'"),
        ({"del_*": True}, "pattern 'del_*', which matches no tool"),
        ({"Send": True}, "'Send'"),
        ({}, "is empty"),
        ([("send", True)], "is a list"),
        ({1: True}, "the key 1"),
        ({"": True}, "the key ''"),
        ({"send": None}, "`interrupt_on['send']` is None"),
        ({"send": "ask"}, "`interrupt_on['send']` is 'ask'"),
        ({"send": 1}, "`interrupt_on['send']` is 1"),
        ({"send": {}}, "no 'allowed_decisions'"),
        ({"send": {"when": lambda r: True}}, "no 'allowed_decisions'"),
        ({"send": {"alowed_decisions": ["approve"]}}, "'alowed_decisions'; did you mean 'allowed_decisions'"),
        ({"send": {"allowed_decisions": []}}, "nobody could ever answer"),
        ({"send": {"allowed_decisions": "approve"}}, "give a list"),
        ({"send": {"allowed_decisions": ["approve", "ok"]}}, "'ok'"),
        ({"send": {"allowed_decisions": ["approve"], "description": 5}}, "'description'"),
        ({"send": {"allowed_decisions": ["approve"], "when": True}}, "'when'"),
        ({"send": {"allowed_decisions": ["approve"], "idempotent": "yes"}}, "'idempotent'"),
        ({"send": {"allowed_decisions": ["approve"], "probe": "yes"}}, "'probe'"),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_what_would_not_gate_as_it_reads_is_refused_when_the_agent_is_built(interrupt_on: Any, text: str) -> None:
    """B235: a `ValueError` that names the tool, the key or the value"""
    with pytest.raises(ValueError) as refused:
        Post().agent(None, Scripted(), interrupt_on)
    assert isinstance(refused.value, ConfigError)
    assert text in str(refused.value)


@pytest.mark.parametrize("option", ["description_prefix", "edit_notice", "interrupt_mode"])
def test_other_options_of_a_wrong_kind_are_refused(option: str) -> None:
    options: Any = {option: 5}
    with pytest.raises(ValueError, match=f"`{option}`"):
        HumanInTheLoopMiddleware({"send": True}, **options)


def test_a_config_of_langchain_with_a_schema_of_arguments_is_accepted(saver: Any) -> None:
    config: Any = InterruptOnConfig(allowed_decisions=["edit", "edit"], args_schema={"type": "object"})
    agent, given = Post().agent(saver, Scripted(ALL), {"send": config}, interrupt_mode="per_call"), thread()
    (question,) = agent.invoke(START, given)["__interrupt__"]
    args = question.response_schema["properties"]["edited_action"]["properties"]["args"]
    assert list(args["properties"]) == ["to", "cc"]  # the tool's own; and listed twice is allowed once


def test_two_approval_middlewares_are_refused() -> None:
    class Another(HumanInTheLoopMiddleware):
        pass

    approvals = [HumanInTheLoopMiddleware({"send": True}), Another({"draft": True})]
    with pytest.raises(ConfigError, match="two approval middlewares"):
        create_agent(Scripted(), Post().tools, middleware=approvals)


def test_one_middleware_may_serve_several_agents(saver: Any) -> None:
    approval = HumanInTheLoopMiddleware({"send": True})
    for _ in range(2):
        agent = create_agent(Scripted(ALL), Post().tools, middleware=[approval], checkpointer=saver)
        assert names(agent.invoke(START, thread())) == {"send"}


# --- a checkpointer ---------------------------------------------------------------------------------------------------


@modes
@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
def test_an_agent_that_asks_is_refused_without_a_checkpointer_before_its_model_is_called(mode: Any, way: str) -> None:
    model = Scripted(ALL)
    agent = Post().agent(None, model, {"send": True}, interrupt_mode=mode)

    async def streamed() -> Any:
        return [part async for part in agent.astream(START, thread())]

    ways = {
        "invoke": lambda: agent.invoke(START, thread()),
        "stream": lambda: list(agent.stream(START, thread())),
        "ainvoke": lambda: asyncio.run(agent.ainvoke(START, thread())),
        "astream": lambda: asyncio.run(streamed()),
    }
    with pytest.raises(CheckpointerRequiredError, match="HumanInTheLoopMiddleware"):
        ways[way]()
    assert model.shown == []


@modes
@pytest.mark.parametrize("interrupt_on", [{"send": False}, {"send": "deny"}])
def test_an_agent_that_never_asks_needs_no_checkpointer(call: Call, mode: Any, interrupt_on: Any) -> None:
    post = Post()
    state = call(post.agent(None, Scripted(ALL, "done"), interrupt_on, interrupt_mode=mode), START)
    assert state["messages"][-1].text == "done"
    assert len(post.did) == (3 if interrupt_on["send"] is False else 2)


@modes
def test_an_agent_in_a_graph_asks_through_the_checkpointer_of_the_graph(saver: Any, call: Call, mode: Any) -> None:
    post, config = Post(), thread()
    agent = post.agent(None, Scripted(ALL, "done"), {"send": True}, interrupt_mode=mode)
    graph = StateGraph(MessagesState).add_node("agent", agent).add_edge(GRAPH_START, "agent").compile(saver)
    result = call(graph, START, config)
    assert names(result) == {"send"}
    state = call(graph, answered(result, APPROVE), config)
    assert results(state)["s"] == ("success", "sent to ann")
    assert "send ann None" in post.did


# --- calls that cannot work -------------------------------------------------------------------------------------------


@modes
@pytest.mark.parametrize("args", [{}, {"to": 5}, {"to": "ann", "cc": []}], ids=str)
def test_a_call_whose_arguments_cannot_work_goes_back_to_the_model_before_anyone_is_asked(
    saver: Any, call: Call, mode: Any, args: Any
) -> None:
    post, config = Post(), thread()
    model = Scripted(calls(("send", "bad", args)), calls(("send", "good", {"to": "ann"})), "done")
    agent = post.agent(saver, model, {"send": True}, interrupt_mode=mode)
    result = call(agent, START, config)
    assert len(model.shown) == 2
    ((call_id, (status, text)),) = results(result).items()
    assert (call_id, status) == ("bad", "error")
    assert "send" in text
    call(agent, answered(result, APPROVE), config)
    assert post.did == ["send ann None"]


@modes
def test_a_call_of_a_tool_that_is_not_there_is_answered_without_asking(saver: Any, call: Call, mode: Any) -> None:
    post = Post()
    model = Scripted(calls(("sned", "c1", {"to": "ann"})), "done")
    state = call(post.agent(saver, model, {"*": True}, interrupt_mode=mode), START, thread())
    assert results(state) == {"c1": ("error", "Error: sned is not a valid tool, try one of [send, draft, read].")}


@modes
def test_functions_may_be_gated_by_their_names(saver: Any, call: Call, mode: Any) -> None:
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    config = thread()
    model = Scripted(calls(("pay", "c1", {"amount": 3})), "done")
    agent = agent_with(saver, model, [pay], {"pay": True}, interrupt_mode=mode)
    state = call(agent, answered(call(agent, START, config), APPROVE), config)
    assert results(state) == {"c1": ("success", "paid 3")}
