"""What an agent sends each provider when calls were malformed, and when it asks for a typed result."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from pydantic import BaseModel

from tests.providers.gemini_wire import SIGNATURE
from tests.providers.server import Call, Turn
from tests.providers.seven import Served
from waitpoint.agents import create_agent
from waitpoint.agents.structured_output import ToolStrategy

DONE = Turn(texts=("All done.",))


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"saw {at}"


def history(content: Any) -> list[Any]:
    """Return a history with a good call and one that was cut off, neither of them answered."""
    broken = {"name": "look", "args": '{"at": "sk', "id": "call_2", "error": "cut off", "type": "invalid_tool_call"}
    good = {"name": "look", "args": {"at": "sea"}, "id": "call_1", "type": "tool_call"}
    signed = {"__gemini_function_call_thought_signatures__": {"call_1": SIGNATURE}}
    said = AIMessage(content, tool_calls=[good], invalid_tool_calls=[broken], additional_kwargs=signed)
    return [HumanMessage("Look."), said, HumanMessage("Well?")]


@pytest.mark.parametrize("content", ["", [{"type": "text", "text": "I look."}]], ids=["no text", "a block"])
def test_every_provider_takes_a_history_with_calls_that_were_cut_off(served: Served, content: Any) -> None:
    with served.serve(DONE) as (provider, model):
        ended = create_agent(model, [look]).invoke({"messages": history(content)})
        assert ended["messages"][-1].text == DONE.text
        assert provider.refused == []
        assert "malformed or truncated" in str(provider.requests[0].body)


class Weather(BaseModel):
    """The weather."""

    sky: str
    degrees: int


def test_every_provider_gives_a_typed_result_by_a_tool(served: Served) -> None:
    proposed = Turn(calls=(Call("call_1", "look", {"at": "sky"}),))
    found = Turn(calls=(Call("call_2", "Weather", {"sky": "blue", "degrees": 20}),))
    with served.serve(proposed, found) as (provider, model):
        agent = create_agent(model, [look], response_format=ToolStrategy(Weather))
        ended = agent.invoke({"messages": [HumanMessage("How is it?")]})
        assert ended["structured_response"] == Weather(sky="blue", degrees=20)
        assert provider.refused == []
