"""A graph that asks questions of all kinds, for the tests of the inbox; what it is to ask stands in its input."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph_sdk import get_client
from playwright.async_api import Browser, async_playwright

from waitpoint import canonical
from waitpoint.graph import START, StateGraph
from waitpoint.interrupts.journal import Question, running
from waitpoint.protocol import HITL_REQUEST, TOOL_APPROVAL, BatchCall, batch_schema, decision_schema
from waitpoint.types import Send, interrupt

ALL = ("approve", "edit", "reject", "respond")
MAIL: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"type": "array", "items": {"type": "string"}, "description": "Who gets it."},
        "subject": {"type": "string"},
        "body": {"type": "string"},
        "priority": {"enum": ["low", "normal", "high"], "default": "normal"},
        "copies": {"type": "integer", "minimum": 0},
        "track": {"type": "boolean"},
        "options": {
            "type": "object",
            "properties": {"delay_minutes": {"type": "number"}, "reply_to": {"type": "string"}},
        },
    },
    "required": ["to", "subject", "body"],
    "additionalProperties": False,
}
MAIL_ARGS: dict[str, Any] = {
    "to": ["ana@example.com", "finance@example.com"],
    "subject": "Invoice 2041 is overdue",
    "body": "Hello Ana,\n\ninvoice 2041 over 1,280.00 EUR has been due since 1 November.\nPlease pay it within ten days.\n\n"
    "Kind regards\nAccounts",
    "priority": "high",
    "copies": 1,
}
PATH: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
DOUBT = {
    "type": "in_doubt",
    "kind": "tool",
    "name": "transfer_money",
    "args": {"to": "DE02 1203 0000 0000 2020 51", "amount": 1280.5, "currency": "EUR"},
    "idempotency_key": "b7c1",
    "started_at": "2026-11-30T09:12:00Z",
}
TRIP = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2},
        "nights": {"type": "integer", "minimum": 1, "maximum": 14},
        "breakfast": {"type": "boolean"},
        "room": {"enum": ["single", "double"]},
    },
    "required": ["city", "nights", "room"],
}


def tool(name: str, args: dict[str, Any], schema: dict[str, Any], allowed: tuple[str, ...] = ALL, **more: Any) -> Any:
    """Return what asks about one tool call."""
    payload = {"type": "tool_approval", "tool_call_id": f"call_{name}", "name": name, "args": args, "description": ""}
    payload |= more
    return {"payload": payload, "schema": decision_schema(allowed, name, schema), "form": TOOL_APPROVAL}


def batch(*calls: tuple[str, dict[str, Any], dict[str, Any]]) -> Any:
    """Return what asks about several calls at once."""
    payload = {
        "action_requests": [{"name": name, "args": args, "description": f"May {name} run?"} for name, args, _ in calls],
        "review_configs": [{"action_name": name, "allowed_decisions": list(ALL)} for name, _, _ in calls],
    }
    ids = [f"call_{n}" for n in range(len(calls))]
    entries = [BatchCall(i, name, ALL, {name: schema}) for i, (name, _, schema) in zip(ids, calls, strict=True)]
    return {"payload": payload, "schema": batch_schema(entries), "form": HITL_REQUEST, "data": {"tool_call_ids": ids}}


def plain(payload: Any, schema: dict[str, Any] | None = None) -> Any:
    """Return what asks with a payload of any shape."""
    return {"payload": payload, "schema": schema}


def send_mail() -> Any:
    """Return the call of a tool with arguments of all kinds."""
    return tool("send_mail", MAIL_ARGS, MAIL)


def files() -> Any:
    """Return three calls of one turn."""
    return batch(
        ("delete_file", {"path": "reports/2023-draft.md"}, PATH),
        ("delete_file", {"path": "reports/final.md"}, PATH),
        ("write_file", {"path": "README.md"}, PATH),
    )


def of_all_kinds() -> list[Any]:
    """Return ten questions, each of another kind."""
    return [
        send_mail(),
        files(),
        plain(DOUBT),
        plain({"type": "approval", "question": "Publish version 2.1 to everyone?", "details": {"users": 5120}}),
        plain({"type": "review_text", "instruction": "Check the release note", "content": "Faster start.\nFewer bugs."}),
        plain({"question": "Which trip shall I book?"}, TRIP),
        plain({"type": "form_input", "field": "age", "prompt": "How old are you?"}),
        plain({"type": "frontend_tool", "tool_call_id": "c9", "tool_name": "read_local_file", "args": {"name": "a.csv"}}),
        plain([{
            "action_request": {"action": "archive", "args": {"folder": "2021"}},
            "config": {"allow_accept": True, "allow_edit": True, "allow_respond": True, "allow_ignore": True},
            "description": "Archive the **old** folder",
        }]),
        plain({"rows": [1, 2, {"deep": None}], "note": "any other shape"}),
    ]  # fmt: skip


class State(TypedDict, total=False):
    asks: list[Any]
    log: Annotated[list[Any], operator.add]


def asking(name: str = "assistant") -> Any:
    """Return a graph that asks all that its input says, each in a task of its own."""

    def ask(given: Any) -> Any:
        if given.get("form"):
            asked = Question(
                given["payload"], None, (), canonical.payload(given["schema"]), given["form"], given.get("data") or {}
            )
            row = running("ask").ask(asked).row
            answer = running("ask").read(row.answer, "answer")
        else:
            answer = interrupt(given["payload"], response_schema=given["schema"])
        return {"log": [answer]}

    graph = StateGraph(State).add_node("plan", lambda state: {}).add_node("ask", ask)
    graph.add_edge(START, "plan").add_conditional_edges("plan", lambda s: [Send("ask", a) for a in s["asks"]], ["ask"])
    return graph.compile(name=name)


async def asked(url: str, *asks: Any, thread: str | None = None) -> str:
    """Start a thread that asks; return its id."""
    async with get_client(url=url) as client:
        made = await client.threads.create(thread_id=thread)
        await client.runs.wait(made["thread_id"], "assistant", input={"asks": list(asks), "log": []})
        return str(made["thread_id"])


async def log_of(url: str, thread: str) -> Any:
    """Return what the nodes of a thread came to, once its last run is over."""
    async with get_client(url=url) as client:
        runs = await client.runs.list(thread)
        values: Any = await client.runs.join(thread, runs[0]["run_id"])
        return values["log"]


@contextlib.asynccontextmanager
async def chromium(executable: Path) -> AsyncGenerator[Browser]:
    """Open a browser."""
    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=executable, args=[*options, "--disable-sync", "--no-first-run"]
        )
        try:
            yield browser
        finally:
            await browser.close()
