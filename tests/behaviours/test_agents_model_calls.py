"""What a model is called with, and middleware made of functions around it."""

from __future__ import annotations

import asyncio
from typing import Any, NotRequired

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage
from langchain_core.tools import tool
from pydantic import BaseModel, Field

from tests.agents.scripted import Scripted, calls
from tests.behaviours.conftest import Call, _ainvoke, _invoke
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    after_agent,
    after_model,
    before_agent,
    before_model,
    dynamic_prompt,
    wrap_model_call,
    wrap_tool_call,
)
from waitpoint.agents.structured_output import ProviderStrategy, ToolStrategy
from waitpoint.errors import ConfigError, UsageError

GO: Any = {"messages": [("user", "go")]}


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"saw {at}"


class Mood(BaseModel):
    """A mood."""

    good: bool


class Bound(Scripted):
    """Notes what it is bound with: the names of tools, and everything else."""

    settings: list[dict[str, Any]] = Field(default_factory=list)

    def bind_tools(self, tools: Any, **settings: Any) -> Any:
        self.settings.append({"tools": [t.name for t in tools], **settings})
        return self

    def bind(self, **settings: Any) -> Any:
        self.settings.append(settings)
        return self


# --- what the model is bound with -------------------------------------------------------------------------------------

RIGHT = calls(("Mood", "r1", {"good": True}))
FORMAT = {"type": "json_schema", "json_schema": {"name": "Mood", "schema": Mood.model_json_schema()}}


@pytest.mark.parametrize(
    ("said", "tools", "format", "expected"),
    [
        ("ok", [], None, []),
        ("ok", [look], None, [{"tools": ["look"]}]),
        (RIGHT, [look], ToolStrategy(Mood), [{"tools": ["look", "Mood"], "tool_choice": "any"}]),
        (RIGHT, [], Mood, [{"tools": ["Mood"], "tool_choice": "any"}]),
        ('{"good": true}', [look], ProviderStrategy(Mood), [{"tools": ["look"], "response_format": FORMAT}]),
        ('{"good": true}', [], ProviderStrategy(Mood), [{"tools": [], "response_format": FORMAT}]),
    ],
    ids=["nothing", "tools", "by a tool", "by a tool alone", "by the provider", "by the provider alone"],
)
def test_a_model_is_bound_with_its_tools_and_what_a_typed_result_takes(
    said: Any, tools: Any, format: Any, expected: Any, call: Call
) -> None:
    model = Bound(said)
    call(create_agent(model, tools, response_format=format), GO)
    assert model.settings == expected


def test_strict_is_said_to_the_provider_if_it_is_asked_for(call: Call) -> None:
    model = Bound('{"good": true}')
    call(create_agent(model, response_format=ProviderStrategy(Mood, strict=True)), GO)
    assert model.settings[0]["response_format"]["json_schema"]["strict"] is True


def test_middleware_sets_what_a_model_is_called_with(call: Call) -> None:
    model, other = Bound(), Bound("ok")

    @wrap_model_call
    def changed(request: Any, handler: Any) -> Any:
        return handler(
            request.override(model=other, tool_choice="look", model_settings={"temperature": 0.5, "parallel": False})
        )

    call(create_agent(model, [look], middleware=[changed]), GO)
    assert other.settings == [{"tools": ["look"], "tool_choice": "look", "temperature": 0.5, "parallel": False}]
    assert model.settings == []


def test_settings_without_tools_are_bound_too(call: Call) -> None:
    model = Bound("ok")
    cooler = wrap_model_call(lambda request, handler: handler(request.override(model_settings={"temperature": 0})))
    call(create_agent(model, middleware=[cooler]), GO)
    assert model.settings == [{"temperature": 0}]


def test_what_one_turn_changes_is_not_there_in_the_next(call: Call) -> None:
    seen: list[Any] = []

    @wrap_model_call
    def spoiling(request: Any, handler: Any) -> Any:
        seen.append(([t.name for t in request.tools], dict(request.model_settings), len(request.messages)))
        request.tools.clear()
        request.model_settings["temperature"] = 2
        return handler(request)

    result = call(create_agent(Scripted(calls(("look", "c1", {"at": "sky"})), "ok"), [look], middleware=[spoiling]), GO)
    assert seen == [(["look"], {}, 1), (["look"], {}, 3)]
    assert [m.content for m in result["messages"]] == ["go", "", "saw sky", "ok"]


def test_messages_appended_to_a_request_stay_in_the_conversation_and_overridden_ones_do_not(call: Call) -> None:
    @wrap_model_call
    def reminding(request: Any, handler: Any) -> Any:
        request.messages.append(HumanMessage("kindly"))
        return handler(request.override(messages=[*request.messages, HumanMessage("just now")]))

    model = Scripted("ok")
    result = call(create_agent(model, middleware=[reminding]), GO)
    assert [m.content for m in model.shown[0]] == ["go", "kindly", "just now"]
    assert [m.content for m in result["messages"]] == ["go", "kindly", "ok"]


def test_a_request_is_overridden_by_a_copy() -> None:
    request: Any = ModelRequest(model=Scripted(), messages=[], system_prompt="one")
    other = request.override(system_prompt="two", messages=[HumanMessage("x")])
    assert (request.system_prompt, request.messages) == ("one", [])
    assert (other.system_prompt, other.system_message) == ("two", SystemMessage("two"))
    assert request.override(system_message=None).system_prompt is None
    request.system_prompt = "three"
    assert request.system_message == SystemMessage("three")
    with pytest.raises(ValueError, match="Cannot specify both system_prompt and system_message"):
        request.override(system_prompt="x", system_message=SystemMessage("y"))


# --- what comes back --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [AIMessage("mine"), ModelResponse([AIMessage("mine")]), ModelResponse(result=[AIMessage("mine")])],
    ids=["a message", "a response", "by name"],
)
def test_middleware_may_answer_for_the_model(given: Any, call: Call) -> None:
    agent = create_agent(Scripted(), middleware=[wrap_model_call(lambda request, handler: given)])
    assert [m.content for m in call(agent, GO)["messages"]] == ["go", "mine"]


def test_the_handler_of_outer_middleware_gives_a_response_whatever_the_inner_one_gave(call: Call) -> None:
    seen: list[Any] = []

    @wrap_model_call
    def outer(request: Any, handler: Any) -> Any:
        seen.append(handler(request))
        return seen[-1]

    inner = wrap_model_call(lambda request, handler: AIMessage("mine"), name="inner")
    call(create_agent(Scripted(), middleware=[outer, inner]), GO)
    assert [(type(r), r.result[0].content) for r in seen] == [(ModelResponse, "mine")]


def test_what_is_no_response_is_refused(call: Call) -> None:
    with pytest.raises(UsageError, match="str"):
        call(create_agent(Scripted(), middleware=[wrap_model_call(lambda request, handler: "text")]), GO)


def test_a_chunk_that_a_model_gives_is_stored_as_a_message(call: Call) -> None:
    result = call(create_agent(Scripted(AIMessageChunk("ok")), [look]), GO)
    assert type(result["messages"][-1]) is AIMessage


def test_a_typed_result_reaches_middleware_around_the_model(call: Call) -> None:
    seen: list[Any] = []

    @wrap_model_call
    def noting(request: Any, handler: Any) -> Any:
        response = handler(request)
        seen.append(response.structured_response)
        return ModelResponse(result=response.result, structured_response=Mood(good=False))

    agent = create_agent(Scripted(RIGHT), middleware=[noting], response_format=ToolStrategy(Mood))
    assert call(agent, GO)["structured_response"] == Mood(good=False)
    assert seen == [Mood(good=True)]


# --- middleware of functions ------------------------------------------------------------------------------------------

NODES = {
    "before_agent": before_agent,
    "before_model": before_model,
    "after_model": after_model,
    "after_agent": after_agent,
}


class More(AgentState[Any]):
    """A state with a note."""

    note: NotRequired[str]


@pytest.mark.parametrize("hook", NODES)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_function_becomes_middleware_of_its_name(hook: str, is_async: bool) -> None:
    def blocking(state: Any, runtime: Any) -> Any:
        """Note."""
        return {"note": hook}

    async def awaiting(state: Any, runtime: Any) -> Any:
        """Note later."""
        await asyncio.sleep(0)
        return {"note": hook}

    function = awaiting if is_async else blocking
    plain = NODES[hook](function)
    assert isinstance(plain, AgentMiddleware)
    assert plain.name == function.__name__
    made = NODES[hook](state_schema=More, tools=[look], name="named")(function)
    assert (made.name, made.tools, made.state_schema) == ("named", [look], More)
    agent = create_agent(Scripted("ok"), middleware=[made])
    assert (_ainvoke if is_async else _invoke)(agent, GO)["note"] == hook


def test_wrappers_of_async_functions_run_under_ainvoke() -> None:
    ran: list[str] = []

    @wrap_model_call
    async def around_model(request: Any, handler: Any) -> Any:
        ran.append("model")
        return await handler(request)

    @wrap_tool_call
    async def around_tool(request: Any, handler: Any) -> Any:
        ran.append(request.tool_call["name"])
        return await handler(request)

    @dynamic_prompt
    async def prompt(request: Any) -> str:
        await asyncio.sleep(0)
        return "be kind"

    model = Scripted(calls(("look", "c1", {"at": "sky"})), "ok")
    _ainvoke(create_agent(model, [look], middleware=[around_model, around_tool, prompt]), GO)
    assert ran == ["model", "look", "model"]
    assert [shown[0].content for shown in model.shown] == ["be kind", "be kind"]


def test_two_lambdas_need_names() -> None:
    with pytest.raises(ConfigError, match="name"):
        create_agent(Scripted(), middleware=[before_model(lambda s, r: None), after_model(lambda s, r: None)])
    create_agent(Scripted(), middleware=[before_model(lambda s, r: None), after_model(lambda s, r: None, name="other")])


def test_tools_of_middleware_are_the_agents(call: Call) -> None:
    model = Scripted(calls(("look", "c1", {"at": "sky"})), "ok")
    agent = create_agent(model, middleware=[before_model(lambda s, r: None, tools=[look], name="has")])
    assert [m.content for m in call(agent, GO)["messages"]] == ["go", "", "saw sky", "ok"]
