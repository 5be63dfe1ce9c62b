"""Human-in-the-loop with each model that the document names: its provider's own class, against a server of its kind."""

from __future__ import annotations

from typing import Any

import pytest

from tests.founding.reviewed import ARCHIVE, DELETE, TASK, Office, by_tool, per_call, received
from tests.founding.saving import CONFIG, Saver
from tests.providers import server
from tests.providers.conftest import _nothing_of_the_machine  # noqa: F401 - no keys or addresses of the machine's own
from tests.providers.seven import SEVEN, Served
from waitpoint.types import Command

NAMES = [
    "google:gemini-3.6-flash",
    "openai:gpt-5.5",
    "anthropic:claude-sonnet-5",
    "openrouter:z-ai/glm-5.2",
    "fireworks:accounts/fireworks/models/glm-5p2",
    "baseten:zai-org/GLM-5.2",
    "ollama:north-mini-code-1.0",
]
PROPOSED = server.Turn(
    texts=("One moment.",),
    calls=(
        server.Call("call_write", "write_file", ARCHIVE),
        server.Call("call_sql", "execute_sql", DELETE),
        server.Call("call_read", "read_data", {"table": "orders"}),
    ),
)


async def call(agent: Any, way: str, given: Any) -> Any:
    """Call in the test's own event loop: a provider's client belongs to the one that it was first used in."""
    return agent.invoke(given, CONFIG) if way == "invoke" else await agent.ainvoke(given, CONFIG)


def test_the_seven_models_of_the_document_are_those_that_are_served() -> None:
    assert sorted(served.model for served in SEVEN) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_is_built_on_a_model_by_its_name_alone(saver: Saver, monkeypatch: Any, name: str) -> None:
    monkeypatch.setenv(f"{name.partition(':')[0].upper()}_API_KEY", "key")
    agent = per_call(saver, Office(), name)
    assert agent.get_state(CONFIG).values == {}  # nothing was sent anywhere


@pytest.mark.parametrize("served", SEVEN, ids=str)
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
async def test_the_documents_agent_runs_on_it_from_the_task_to_the_end(saver: Saver, way: str, served: Served) -> None:
    office = Office()
    with served.serve(PROPOSED, server.Turn(texts=("Done.",))) as (provider, model):
        agent = per_call(saver, office, model)
        result = await call(agent, way, TASK)
        questions = by_tool(result)
        assert {name: q.value["args"] for name, q in questions.items()} == {
            "write_file": ARCHIVE,
            "execute_sql": DELETE,
        }
        assert office.names == ["read_data"]
        answers = {
            questions["write_file"].id: {"type": "approve"},
            questions["execute_sql"].id: {"type": "reject", "message": "Archive the rows before deleting them."},
        }
        result = await call(agent, way, Command(resume=answers))
        assert provider.refused == []
        assert "Archive the rows before deleting them." in str(provider.requests[1].body)
    assert result["messages"][-1].text == "Done."
    assert sorted(text for _, text in received(result["messages"]).values()) == [
        "3 rows from orders",
        "Archive the rows before deleting them.",
        "Wrote 14 characters to orders_archive.csv",
    ]
    assert sorted(office.names) == ["read_data", "write_file"]
