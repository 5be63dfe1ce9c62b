"""An agent whose letters wait for a decision."""

from importlib.util import find_spec
from typing import Any

try:
    from langchain.agents import create_agent
    from langchain.agents.middleware import HumanInTheLoopMiddleware
except ImportError:
    create_agent = None
from langchain.messages import AIMessage, ContentBlock, HumanMessage
from langchain.tools import tool
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

LETTERS: list[str] = []
Blocks = list[ContentBlock]


class Model(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self


@tool
def send(to: str) -> str:
    """Send a letter."""
    LETTERS.append(to)
    return f"sent to {to}"


def main() -> list[Any]:
    LETTERS.clear()
    assert find_spec("langchain_core")
    call = {"name": "send", "args": {"to": "Ana"}, "id": "c1", "type": "tool_call"}
    model = Model(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("It is sent.")]))
    agent = create_agent(
        model, [send], middleware=[HumanInTheLoopMiddleware({"send": True})], checkpointer=InMemorySaver()
    )
    config = {"configurable": {"thread_id": "1"}}
    (asked,) = agent.invoke({"messages": [HumanMessage("Write to Ana.")]}, config)["__interrupt__"]
    done = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
    request = asked.value["action_requests"][0]
    return [request["name"], request["args"], [(m.type, m.text) for m in done["messages"]], list(LETTERS)]
