"""An agent on each provider asks before it writes, and goes on from the answer with a history that the provider takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool

from tests.providers.gemini_wire import SIGNATURE
from tests.providers.server import Call, Turn
from tests.providers.seven import Served
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import HumanInTheLoopMiddleware
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.types import Command

THREAD: Any = {"configurable": {"thread_id": "1"}}
ASKED = {"messages": [{"role": "user", "content": "Look, then write."}]}
PROPOSED = Turn(
    texts=("I lo", "ok and write."),
    calls=(Call("call_1", "list_files", {}), Call("call_2", "write_file", {"name": "a.txt", "text": 'für "a"\n'})),
)
DONE = Turn(texts=("All ", "done."))


def agent_on(model: BaseChatModel, folder: Path, mode: Any = "per_call") -> Any:
    """Build the agent anew on the file that keeps its threads, as another process would."""

    @tool
    def list_files() -> list[str]:
        """List the files."""
        return sorted(path.name for path in folder.glob("*.txt"))

    @tool
    def write_file(name: str, text: str) -> str:
        """Write a file."""
        (folder / name).write_text(text, encoding="utf-8")
        return f"wrote {name}"

    return create_agent(
        model,
        [list_files, write_file],
        system_prompt="Keep files in order.",
        middleware=[HumanInTheLoopMiddleware({"write_file": True}, interrupt_mode=mode)],
        checkpointer=SqliteSaver.from_conn_string(str(folder / "threads.db")),
    )


async def call(agent: Any, given: Any, way: str) -> Any:
    if way == "invoke":
        return agent.invoke(given, THREAD)
    return await agent.ainvoke(given, THREAD)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
async def test_an_agent_asks_and_goes_on_to_the_end_when_its_call_is_approved(
    served: Served, way: str, tmp_path: Path
) -> None:
    with served.serve(PROPOSED, DONE) as (provider, model):
        asked = await call(agent_on(model, tmp_path), ASKED, way)
        (question,) = asked["__interrupt__"]
        assert question.value["type"] == "tool_approval"
        assert question.value["name"] == "write_file"
        assert question.value["args"] == PROPOSED.calls[1].args
        assert not (tmp_path / "a.txt").exists()

        answer = Command(resume={question.id: {"type": "approve"}})
        ended = await call(agent_on(model, tmp_path), answer, way)

        assert (tmp_path / "a.txt").read_text(encoding="utf-8") == PROPOSED.calls[1].args["text"]
        assert ended["messages"][-1].text == DONE.text
        assert "__interrupt__" not in ended
        assert provider.refused == []
        assert provider.turns == []
        assert "wrote a.txt" in str(provider.requests[1].body)
        if str(served) == "google":
            assert SIGNATURE in str(provider.requests[1].body)


@pytest.mark.parametrize(
    ("answer", "received", "status"),
    [
        ({"type": "reject", "message": "Not today."}, "Not today.", "error"),
        ({"type": "respond", "message": "It is there."}, "It is there.", "success"),
        (
            {"type": "edit", "edited_action": {"name": "write_file", "args": {"name": "b.txt", "text": "b"}}},
            "wrote b.txt",
            "success",
        ),
    ],
    ids=["reject", "respond", "edit"],
)
@pytest.mark.parametrize("mode", ["per_call", "batched"])
async def test_the_provider_takes_the_history_after_every_decision(
    served: Served, mode: str, answer: dict[str, Any], received: str, status: str, tmp_path: Path
) -> None:
    with served.serve(PROPOSED, DONE) as (provider, model):
        asked = agent_on(model, tmp_path, mode).invoke(ASKED, THREAD)
        given = answer if mode == "per_call" else {"decisions": [answer]}
        answered = Command(resume={asked["__interrupt__"][0].id: given})
        ended = agent_on(model, tmp_path, mode).invoke(answered, THREAD)

        assert ended["messages"][-1].text == DONE.text
        results = [m for m in ended["messages"] if isinstance(m, ToolMessage) and m.name == "write_file"]
        assert [result.status for result in results] == [status]
        assert provider.refused == []
        assert received in str(provider.requests[1].body)
        assert not (tmp_path / "a.txt").exists()
        assert (tmp_path / "b.txt").exists() is (answer["type"] == "edit")


@pytest.mark.parametrize("mode", ["per_call", "batched"])
async def test_the_provider_takes_the_history_after_a_new_message_that_drops_the_question(
    served: Served, mode: str, tmp_path: Path
) -> None:
    with served.serve(PROPOSED, DONE) as (provider, model):
        agent_on(model, tmp_path, mode).invoke(ASKED, THREAD)
        message = {"messages": [{"role": "user", "content": "Leave it."}]}
        ended = agent_on(model, tmp_path, mode).invoke(message, THREAD, on_pending="withdraw")

        assert ended["messages"][-1].text == DONE.text
        assert "__interrupt__" not in ended
        assert provider.refused == []
        assert "Leave it." in str(provider.requests[1].body)
        assert not (tmp_path / "a.txt").exists()


async def test_tokens_of_an_agents_turns_are_streamed(served: Served, tmp_path: Path) -> None:
    with served.serve(PROPOSED, DONE) as (provider, model):
        agent = agent_on(model, tmp_path)
        tokens = [chunk.text for chunk, _ in agent.stream(ASKED, THREAD, stream_mode="messages") if chunk.text]
        assert tokens[:2] == list(PROPOSED.texts)
        (question,) = agent.get_state(THREAD).interrupts
        answered = Command(resume={question.id: {"type": "approve"}})
        stream = agent.astream(answered, THREAD, stream_mode="messages")
        tokens = [chunk.text async for chunk, _ in stream if chunk.type == "AIMessageChunk" and chunk.text]
        assert tokens == list(DONE.texts)
        assert provider.refused == []
