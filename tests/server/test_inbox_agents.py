"""The pages for real agents and nested graphs: in their own words, per call and per turn, one question after the other."""

from __future__ import annotations

import contextlib
import html
import json
import operator
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import httpx
import pytest
from fastapi import FastAPI
from langchain_core.messages import AIMessage
from langgraph_sdk import get_client

from tests.agents.scripted import Scripted
from tests.server.serving import served
from tests.server.test_inbox import Desk
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import HumanInTheLoopMiddleware
from waitpoint.graph import START, StateGraph
from waitpoint.server import create_app
from waitpoint.types import interrupt

SENT: list[dict[str, Any]] = []


def send(to: str, subject: str) -> str:
    """Send a mail."""
    SENT.append({"to": to, "subject": subject})
    return f"sent to {to}"


def mailer(mode: Literal["batched", "per_call"]) -> Any:
    calls = [
        {"name": "send", "args": {"to": f"{who}@example.com", "subject": "Hi"}, "id": f"c_{who}"}
        for who in ("ana", "bo")
    ]
    model = Scripted(AIMessage("I will write to both, <b>politely</b>.", tool_calls=calls), "Done.")
    return create_agent(
        model, [send], middleware=[HumanInTheLoopMiddleware({"send": True}, interrupt_mode=mode)], name="mailer"
    )


@contextlib.asynccontextmanager
async def opened(path: Path, graph: Any) -> AsyncGenerator[Desk]:
    async with served(create_app({"assistant": graph}, path)) as url, httpx.AsyncClient(base_url=url) as http:
        yield Desk(url, http, path)


async def run(at: Desk, given: Any) -> str:
    async with get_client(url=at.url) as client:
        thread = (await client.threads.create())["thread_id"]
        await client.runs.wait(thread, "assistant", input=given)
        return str(thread)


async def test_the_calls_of_a_turn_are_decided_one_by_one_and_sent_as_one_answer(tmp_path: Path) -> None:
    SENT.clear()
    async with opened(tmp_path / "threads.db", mailer("batched")) as at:
        thread = await run(at, {"messages": [{"role": "user", "content": "Write to Ana and Bo"}]})
        (question,) = at.ids(thread)
        page = await at.card(question)
        assert "I will write to both, &lt;b&gt;politely&lt;/b&gt;." in page.text
        assert "mailer wants to make 2 calls: send(to: “ana@example.com”, 1 more); send(to: “bo@" in page.text
        half = await at.send(page, **{"way-1": "approve"})
        assert half.status_code == 422
        assert "Decide on call 2 too" in half.text
        chosen = {"way-1": "approve", "way-2": "reject", "2.reject": "Bo is away"}
        assert (await at.send(half, **chosen)).status_code == 303
        messages = await finished(at, thread)
        assert [each["content"] for each in messages[-3:]] == ["sent to ana@example.com", "Bo is away", "Done."]
        assert SENT == [{"to": "ana@example.com", "subject": "Hi"}]
        page = await at.http.get(f"/inbox/thread?id={thread}")
        for words in ("Write to Ana and Bo", "I will write to both", "Bo is away", "Done.", "effect done"):
            assert words in page.text


async def test_calls_that_ask_apart_are_answered_apart(tmp_path: Path) -> None:
    SENT.clear()
    async with opened(tmp_path / "threads.db", mailer("per_call")) as at:
        thread = await run(at, {"messages": [{"role": "user", "content": "Write"}]})
        for _ in range(2):
            page = await at.card(at.ids(thread)[0])
            assert (await at.send(page, way="approve")).status_code == 303
        await finished(at, thread)
        assert sorted(each["to"] for each in SENT) == ["ana@example.com", "bo@example.com"]


async def finished(at: Desk, thread: str) -> Any:
    async with get_client(url=at.url) as client:
        runs = await client.runs.list(thread)
        values: Any = await client.runs.join(thread, runs[0]["run_id"])
        return values["messages"]


class Log(TypedDict):
    log: Annotated[list[Any], operator.add]


async def test_three_questions_in_a_row_and_one_inside_a_subgraph_are_answered_by_id_alone(tmp_path: Path) -> None:
    inner = StateGraph(Log).add_node("deep", lambda state: {"log": [interrupt("Deep?")]}).add_edge(START, "deep")

    def ask(state: Log) -> Any:
        return {"log": [interrupt(f"Number {n}?") for n in range(3)]}

    graph = (
        StateGraph(Log).add_node(ask).add_node("inner", inner.compile()).add_edge(START, "ask").add_edge("ask", "inner")
    )
    async with opened(tmp_path / "threads.db", graph.compile(name="rows")) as at:
        thread = await run(at, {"log": []})
        for words in ("Number 0?", "Number 1?", "Number 2?", "Deep?"):
            (question,) = at.ids(thread)
            page = await at.card(question)
            assert words in page.text
            assert (await at.send(page, way="text", **{"1.text": f"to {words}"})).status_code == 303
            async with get_client(url=at.url) as client:
                runs = await client.runs.list(thread)
                await client.runs.join(thread, runs[0]["run_id"])
        assert "inner › deep" in (await at.http.get(f"/inbox/thread?id={thread}")).text


async def test_pages_of_a_mounted_application_stay_below_its_path(tmp_path: Path) -> None:
    inner = create_app({"assistant": mailer("batched")}, tmp_path / "threads.db")
    outer = FastAPI(lifespan=lambda _: inner.router.lifespan_context(inner))
    outer.mount("/agents", inner)
    async with served(outer) as url, httpx.AsyncClient(base_url=url) as http:
        at = Desk(f"{url}/agents", http, tmp_path / "threads.db")
        thread = await run(at, {"messages": []})
        page = await http.get("/agents/inbox")
        assert 'src="/agents/inbox/static/' in page.text
        assert 'href="/inbox' not in page.text
        (question,) = at.ids(thread)
        card = await http.get(f"/agents/inbox/questions/{question}")
        assert f'action="/agents/inbox/questions/{question}' in card.text
        assert "path=/agents/inbox" in page.headers["set-cookie"].lower()


@pytest.mark.parametrize("answer", ["1.5", "[1]", '{"a": {"b": null}}', '"text"', "null", "9" * 400])
async def test_json_by_hand_is_taken_as_it_is(tmp_path: Path, answer: str) -> None:
    async with opened(tmp_path / "threads.db", any_answer()) as at:
        (question,) = at.ids(thread := await run(at, {"log": []}))
        sent = await at.send(await at.card(question), way="json", **{"1.json": answer})
        assert sent.status_code == 303
        page = await at.card(question)
        assert f'<pre class="said">{json.dumps(json.loads(answer), indent=2)}</pre>' in html.unescape(page.text)
        assert thread in page.text


@pytest.mark.parametrize("answer", ["1e400", "-Infinity", "NaN", "{", "", "[" * 100_000, "9" * 5000])
async def test_what_is_no_json_is_refused_at_its_field(tmp_path: Path, answer: str) -> None:
    async with opened(tmp_path / "threads.db", any_answer()) as at:
        (question,) = at.ids(await run(at, {"log": []}))
        sent = await at.send(await at.card(question), way="json", **{"1.json": answer})
        assert sent.status_code == 422
        assert 'id="f-1_2e_json-error"' in sent.text
        assert f"\n{html.escape(answer)}</textarea>" in sent.text
        assert at.ids() == [question]


def any_answer() -> Any:
    graph = StateGraph(Log).add_node("ask", lambda state: {"log": [interrupt({"any": 1})]})
    return graph.add_edge(START, "ask").compile(name="any")
