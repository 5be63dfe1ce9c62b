"""What the tests of the document on human-in-the-loop share: its three tools, its agent, and what is read of a pause."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import BaseTool, tool

from tests.agents.scripted import Scripted, calls
from tests.founding.saving import CONFIG, Saver
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import HumanInTheLoopMiddleware
from waitpoint.types import Command

Call = Callable[..., Any]

TASK = {"messages": [{"role": "user", "content": "Archive old orders, then delete them."}]}
ARCHIVE = {"path": "orders_archive.csv", "content": "id,total\n1,20\n"}
DELETE = {"query": "DELETE FROM orders WHERE created_at < '2025-01-01'"}
PROPOSED = calls(
    ("write_file", "call_write", ARCHIVE),
    ("execute_sql", "call_sql", DELETE),
    ("read_data", "call_read", {"table": "orders"}),
)
POLICY = {"write_file": True, "execute_sql": {"allowed_decisions": ["approve", "reject"]}, "read_data": False}
EVERY_DECISION = ["approve", "edit", "reject", "respond"]


class Office:
    """The tools of the document, and what they did."""

    def __init__(self) -> None:
        self.did: list[tuple[str, dict[str, Any]]] = []

        @tool
        def write_file(path: str, content: str) -> str:
            """Write content to a file."""
            self.did.append(("write_file", {"path": path, "content": content}))
            return f"Wrote {len(content)} characters to {path}"

        @tool
        def execute_sql(query: str) -> str:
            """Run a SQL query."""
            self.did.append(("execute_sql", {"query": query}))
            return "Deleted 42 rows"

        @tool
        def read_data(table: str) -> str:
            """Read rows from a table."""
            self.did.append(("read_data", {"table": table}))
            return f"3 rows from {table}"

        self.tools: list[BaseTool] = [write_file, execute_sql, read_data]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.did]


def agent_of(saver: Saver, office: Office, model: Any, policy: Any = None, **options: Any) -> Any:
    """Make the document's agent; options are those of the middleware."""
    middleware = HumanInTheLoopMiddleware(POLICY if policy is None else policy, **options)
    return create_agent(model, office.tools, middleware=[middleware], checkpointer=saver)


def per_call(saver: Saver, office: Office, model: Any = None, policy: Any = None, **options: Any) -> Any:
    """Make the document's agent that asks about each call by itself."""
    if model is None:
        model = Scripted(PROPOSED, "Done.")
    return agent_of(saver, office, model, policy, interrupt_mode="per_call", **options)


def by_tool(result: Any) -> dict[str, Any]:
    """Return the questions about single calls by the tools they are about."""
    return {question.value["name"]: question for question in result["__interrupt__"]}


def the_question(result: Any) -> Any:
    """Return the only question of a pause."""
    (question,) = result["__interrupt__"]
    return question


def received(messages: list[BaseMessage]) -> dict[str, tuple[str, Any]]:
    """Return what a model is shown of its calls, by call: status and content."""
    return {m.tool_call_id: (m.status, m.content) for m in messages if isinstance(m, ToolMessage)}


def invoke(graph: Any, given: Any, config: Any = None, **options: Any) -> Any:
    return graph.invoke(given, config or CONFIG, **options)


def ainvoke(graph: Any, given: Any, config: Any = None, **options: Any) -> Any:
    return asyncio.run(graph.ainvoke(given, config or CONFIG, **options))


def decided(call: Call, agent: Any, state: Any, *decisions: Any) -> Any:
    """Answer what waits: one question about a turn by a list, or the questions about single calls by their ids."""
    questions = state["__interrupt__"]
    if "action_requests" in questions[0].value:
        return call(agent, Command(resume={"decisions": list(decisions)}))
    return call(agent, Command(resume={q.id: d for q, d in zip(questions, decisions, strict=True)}))
