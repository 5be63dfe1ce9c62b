"""A client creates a thread, runs it, is asked, answers: through the Python SDK, over real HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.errors import ConflictError

from tests.server.graphs import asking
from tests.server.serving import served
from waitpoint.server import create_app


async def test_a_run_stops_at_a_question_and_goes_on_with_the_answer(tmp_path: Path) -> None:
    async with served(create_app({"asking": asking()}, tmp_path / "threads.db")) as url, get_client(url=url) as client:
        thread = (await client.threads.create())["thread_id"]
        first = [p async for p in client.runs.stream(thread, "asking", input={"log": ["in"]}, stream_mode="values")]
        assert [p.event for p in first] == ["metadata", "values", "values", "values", "end"]
        (question,) = first[-2].data["__interrupt__"]
        assert question["value"] == {"text": "Go on?"}
        assert (await client.threads.get(thread))["status"] == "interrupted"
        answer = {question["id"]: "yes"}
        second = [p async for p in client.runs.stream(thread, "asking", command={"resume": answer})]
        assert second[-2].data == {"log": ["in", "plan", "yes", "act"]}
        assert (await client.threads.get(thread))["status"] == "idle"


async def test_an_answer_that_comes_too_late_is_refused_with_what_is_true(tmp_path: Path) -> None:
    async with served(create_app({"asking": asking()}, tmp_path / "threads.db")) as url, get_client(url=url) as client:
        thread = (await client.threads.create())["thread_id"]
        parts = [p async for p in client.runs.stream(thread, "asking", input={"log": []}, stream_mode="values")]
        (question,) = parts[-2].data["__interrupt__"]
        command = {"resume": {question["id"]: "yes"}}
        await client.runs.create(thread, "asking", command=command)
        with pytest.raises(ConflictError, match="was answered at"):
            await client.runs.create(thread, "asking", command=command)
