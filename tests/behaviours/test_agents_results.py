"""Typed results of agents: by a tool or by the provider, of every kind of schema, and what becomes of misfits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel
from typing_extensions import TypedDict

from tests.agents.scripted import Scripted, calls
from tests.behaviours.conftest import Call
from waitpoint.agents import create_agent
from waitpoint.agents.errors import MultipleStructuredOutputsError, StructuredOutputValidationError
from waitpoint.agents.middleware import wrap_model_call
from waitpoint.agents.structured_output import AutoStrategy, ProviderStrategy, ToolStrategy
from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.errors import ConfigError
from waitpoint.types import Command, interrupt

CONFIG: Any = {"configurable": {"thread_id": "t"}}
GO: Any = {"messages": [("user", "go")]}


class Weather(BaseModel):
    """The weather."""

    sky: str
    degrees: int


@dataclass
class Place:
    """A place."""

    name: str
    tags: list[str] = field(default_factory=list)


class Mood(TypedDict):
    """A mood."""

    good: bool


COUNT = {
    "title": "count",
    "description": "A count.",
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
}

KINDS: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "Weather": (Weather, {"sky": "blue", "degrees": 20}, Weather(sky="blue", degrees=20)),
    "Place": (Place, {"name": "here"}, Place("here")),
    "Mood": (Mood, {"good": True}, {"good": True}),
    "count": (COUNT, {"n": 1}, {"n": 1}),
}


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"saw {at}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tools", [[], [look]], ids=["alone", "beside a tool"])
def test_a_result_comes_by_a_tool_that_stands_for_its_schema(kind: str, tools: Any, call: Call) -> None:
    schema, args, value = KINDS[kind]
    model = Scripted(calls((kind, "r1", args)))
    result = call(create_agent(model, tools, response_format=ToolStrategy(schema)), GO)
    assert result["structured_response"] == value
    assert [m.type for m in result["messages"]] == ["human", "ai", "tool"]
    assert [t.name for t in model.bound[0]] == [*(t.name for t in tools), kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_comes_by_the_providers_own_way(kind: str, call: Call) -> None:
    schema, _, value = KINDS[kind]
    text = {"Weather": '{"sky": "blue", "degrees": 20}', "Place": '{"name": "here"}', "Mood": '{"good": true}'}.get(
        kind, '{"n": 1}'
    )
    result = call(create_agent(Scripted(text), [look], response_format=ProviderStrategy(schema)), GO)
    assert result["structured_response"] == value
    assert [m.type for m in result["messages"]] == ["human", "ai"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_survives_the_store(kind: str, call: Call, saver: BaseCheckpointSaver) -> None:
    schema, args, value = KINDS[kind]
    agent = create_agent(Scripted(calls((kind, "r1", args))), response_format=schema, checkpointer=saver)
    call(agent, GO, CONFIG)
    assert agent.get_state(CONFIG).values["structured_response"] == value


def test_a_bare_schema_goes_the_way_that_the_model_can(call: Call) -> None:
    able = Scripted('{"sky": "blue", "degrees": 20}', profile={"structured_output": True})
    assert call(create_agent(able, [look], response_format=Weather), GO)["structured_response"].degrees == 20
    other = Scripted(calls(("Weather", "r1", {"sky": "blue", "degrees": 20})))
    assert call(create_agent(other, response_format=AutoStrategy(Weather)), GO)["structured_response"].degrees == 20


@pytest.mark.parametrize(
    ("name", "tools", "way"),
    [
        ("gemini-2.5-pro", [look], "tool"),
        ("gemini-2.5-pro", [], "provider"),
        ("gemini-3-pro", [look], "provider"),
    ],
)
def test_old_geminis_have_tools_or_structured_output_not_both(name: str, tools: Any, way: str, call: Call) -> None:
    class Gemini(Scripted):
        model_name: str = name

    said = {"tool": calls(("Weather", "r1", {"sky": "blue", "degrees": 20})), "provider": '{"sky": "b", "degrees": 20}'}
    model = Gemini(said[way], profile={"structured_output": True})
    assert call(create_agent(model, tools, response_format=Weather), GO)["structured_response"].degrees == 20


def test_a_union_gives_a_tool_for_each_of_its_schemas(call: Call) -> None:
    model = Scripted(calls(("Place", "r1", {"name": "here"})))
    result = call(create_agent(model, response_format=ToolStrategy(Weather | Place | Mood)), GO)
    assert result["structured_response"] == Place("here")
    assert [t.name for t in model.bound[0]] == ["Weather", "Place", "Mood"]


def test_a_json_schema_with_one_of_gives_a_tool_for_each(call: Call) -> None:
    other = {"title": "name", "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    model = Scripted(calls(("name", "r1", {"name": "ana"})))
    result = call(create_agent(model, response_format=ToolStrategy({"oneOf": [COUNT, other]})), GO)
    assert result["structured_response"] == {"name": "ana"}
    assert [t.name for t in model.bound[0]] == ["count", "name"]


def test_schemas_without_titles_have_tools_of_different_names(call: Call) -> None:
    one, other = ({"type": "object", "properties": {k: {"type": "integer"}}, "required": [k]} for k in "ab")
    model = Scripted(calls(("response_2", "r1", {"b": 1})))
    result = call(create_agent(model, response_format=ToolStrategy({"oneOf": [one, other]})), GO)
    assert result["structured_response"] == {"b": 1}
    assert [t.name for t in model.bound[0]] == ["response", "response_2"]


def test_the_answer_to_the_call_of_a_result_may_be_given(call: Call) -> None:
    agent = create_agent(
        Scripted(calls(("Mood", "r1", {"good": True}))),
        response_format=ToolStrategy(Mood, tool_message_content="noted"),
    )
    assert call(agent, GO)["messages"][-1].content == "noted"


def test_tools_are_used_before_the_result(call: Call) -> None:
    model = Scripted(calls(("look", "c1", {"at": "sky"})), calls(("Mood", "r1", {"good": True})))
    result = call(create_agent(model, [look], response_format=ToolStrategy(Mood)), GO)
    assert [m.type for m in result["messages"]] == ["human", "ai", "tool", "ai", "tool"]
    assert result["structured_response"] == {"good": True}


def test_tools_called_beside_the_result_run_and_the_agent_ends(call: Call) -> None:
    model = Scripted(calls(("look", "c1", {"at": "sky"}), ("Mood", "r1", {"good": True})))
    result = call(create_agent(model, [look], response_format=ToolStrategy(Mood)), GO)
    answers = {m.tool_call_id: m.content for m in result["messages"] if isinstance(m, ToolMessage)}
    assert answers["c1"] == "saw sky"
    assert set(answers) == {"c1", "r1"}
    assert result["structured_response"] == {"good": True}


# --- misfits ----------------------------------------------------------------------------------------------------------

COLD = calls(("Weather", "r1", {"sky": "grey", "degrees": "cold"}))
TWO = calls(("Weather", "r1", {"sky": "grey", "degrees": 1}), ("Weather", "r2", {"sky": "blue", "degrees": 2}))
RIGHT = calls(("Weather", "r3", {"sky": "grey", "degrees": 3}))


@pytest.mark.parametrize("wrong", [COLD, TWO], ids=["a misfit", "two results"])
@pytest.mark.parametrize(
    ("handle", "told"),
    [
        (True, "Please fix your mistakes."),
        ("say it again", "say it again"),
        (lambda error: type(error).__name__, "Error"),
        (ValueError, None),
        ((MultipleStructuredOutputsError, StructuredOutputValidationError), "Please fix your mistakes."),
    ],
    ids=["true", "text", "function", "type", "types"],
)
@pytest.mark.parametrize("tools", [[], [look]], ids=["alone", "beside a tool"])
def test_misfits_are_told_to_the_model_which_tries_again(
    wrong: AIMessage, handle: Any, told: str | None, tools: Any, call: Call
) -> None:
    model = Scripted(wrong, RIGHT)
    agent = create_agent(model, tools, response_format=ToolStrategy(Weather, handle_errors=handle))
    if told is None and wrong is TWO:  # two results are no ValueError
        with pytest.raises(MultipleStructuredOutputsError):
            call(agent, GO)
        return
    result = call(agent, GO)
    assert result["structured_response"] == Weather(sky="grey", degrees=3)
    answers = [m for m in model.shown[1] if isinstance(m, ToolMessage)]
    assert [m.tool_call_id for m in answers] == [c["id"] for c in wrong.tool_calls]
    assert {m.status for m in answers} == {"error"}
    assert all((told or "Weather") in m.content for m in answers)


def test_misfits_that_nobody_handles_fail_the_run_and_carry_what_was_said(call: Call) -> None:
    strategy = ToolStrategy(Weather, handle_errors=False)
    with pytest.raises(StructuredOutputValidationError, match="Weather") as one:
        call(create_agent(Scripted(COLD), response_format=strategy), GO)
    assert (one.value.tool_name, one.value.ai_message.tool_calls) == ("Weather", COLD.tool_calls)
    assert "degrees" in str(one.value.source)
    with pytest.raises(MultipleStructuredOutputsError, match=r"Weather.*Weather") as several:
        call(create_agent(Scripted(TWO), response_format=strategy), GO)
    assert several.value.tool_names == ["Weather", "Weather"]
    assert several.value.ai_message.tool_calls == TWO.tool_calls


def test_a_handler_is_asked_once_for_an_error(call: Call) -> None:
    errors: list[Exception] = []

    def told(error: Exception) -> str:
        errors.append(error)
        return "again"

    call(create_agent(Scripted(TWO, RIGHT), response_format=ToolStrategy(Weather, handle_errors=told)), GO)
    assert [type(e) for e in errors] == [MultipleStructuredOutputsError]


@pytest.mark.parametrize("text", ["no JSON", '{"sky": 1}'])
def test_what_a_provider_gives_must_fit(text: str, call: Call) -> None:
    with pytest.raises(StructuredOutputValidationError, match="Weather") as misfit:
        call(create_agent(Scripted(text), response_format=ProviderStrategy(Weather)), GO)
    assert misfit.value.ai_message.content == text


def test_a_raw_schema_is_enforced(call: Call) -> None:
    model = Scripted(calls(("count", "r1", {"n": "many"})), calls(("count", "r2", {"n": 2})))
    assert call(create_agent(model, response_format=ToolStrategy(COUNT)), GO)["structured_response"] == {"n": 2}


# --- over time --------------------------------------------------------------------------------------------------------


def test_the_result_of_an_earlier_input_is_not_that_of_a_later_one(call: Call, saver: BaseCheckpointSaver) -> None:
    model = Scripted(calls(("Mood", "r1", {"good": True})), "no mood today")
    agent = create_agent(model, [look], response_format=ToolStrategy(Mood), checkpointer=saver)
    assert call(agent, GO, CONFIG)["structured_response"] == {"good": True}
    assert call(agent, GO, CONFIG)["structured_response"] is None


def test_a_question_on_the_way_does_not_change_the_result(call: Call, saver: BaseCheckpointSaver) -> None:
    @tool
    def ask(about: str) -> str:
        """Ask."""
        return str(interrupt(about))

    model = Scripted(calls(("ask", "c1", {"about": "sky"}), ("Mood", "r1", {"good": True})))
    agent = create_agent(model, [ask], response_format=ToolStrategy(Mood), checkpointer=saver)
    assert [i.value for i in call(agent, GO, CONFIG)["__interrupt__"]] == ["sky"]
    assert call(agent, Command(resume="blue"), CONFIG)["structured_response"] == {"good": True}
    assert len(model.shown) == 1


# --- chosen by middleware ---------------------------------------------------------------------------------------------


def _asking_for(what: Any) -> Any:
    return wrap_model_call(lambda request, handler: handler(request.override(response_format=what)), name="chooser")


def test_middleware_may_narrow_the_results(call: Call) -> None:
    model = Scripted(calls(("Mood", "r1", {"good": True})))
    middleware = [_asking_for(ToolStrategy(Mood))]
    agent = create_agent(model, middleware=middleware, response_format=ToolStrategy(Mood | Place))
    assert call(agent, GO)["structured_response"] == {"good": True}
    assert [t.name for t in model.bound[0]] == ["Mood"]


def test_middleware_may_ask_for_a_bare_schema(call: Call) -> None:
    model = Scripted('{"good": true}', profile={"structured_output": True})
    assert call(create_agent(model, middleware=[_asking_for(Mood)]), GO)["structured_response"] == {"good": True}


def test_a_result_that_the_agent_was_not_made_for_is_refused(call: Call) -> None:
    agent = create_agent(Scripted(), middleware=[_asking_for(ToolStrategy(Place))], response_format=ToolStrategy(Mood))
    with pytest.raises(ConfigError, match=r"'Place'.*response_format"):
        call(agent, GO)


@pytest.mark.parametrize("schema", [int, "Weather", 3, list[str]])
def test_what_is_no_schema_is_refused_where_it_is_given(schema: Any) -> None:
    with pytest.raises(ConfigError, match="response_format"):
        create_agent(Scripted(), response_format=schema)


@pytest.mark.parametrize("wanted", [ToolStrategy(Weather), Weather], ids=["by a tool", "by either way"])
def test_a_result_of_a_tools_name_is_refused_because_calls_of_the_tool_would_be_taken_for_it(wanted: Any) -> None:
    @tool("Weather")
    def asked() -> str:
        """Look up the weather."""
        return "fine"

    with pytest.raises(ConfigError, match=r"'Weather'.*rename"):
        create_agent(Scripted(), [asked], response_format=wanted)
