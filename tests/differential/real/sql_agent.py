"""An agent for a shop's database: answers questions by queries that a person may see first, and changes rows if allowed.

A question goes through fixed steps (tables, schema, query, check, run); changes are an agent's, with its calls reviewed.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain.tools import ToolRuntime, tool
from langchain_core.messages import BaseMessage
from langchain_core.tools import InjectedToolArg
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, RetryPolicy, interrupt
from offline import Offline, call

SHOP = """
CREATE TABLE artists (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE albums (id INTEGER PRIMARY KEY, artist INTEGER REFERENCES artists, title TEXT, price REAL, stock INTEGER);
CREATE TABLE log (what TEXT);
INSERT INTO artists VALUES (1, 'Nina Simone'), (2, 'Can'), (3, 'Moondog');
INSERT INTO albums VALUES (1, 1, 'Pastel Blues', 12.5, 3), (2, 1, 'Wild Is the Wind', 14, 0),
  (3, 2, 'Tago Mago', 19, 7), (4, 2, 'Future Days', 17.5, 2), (5, 3, 'Moondog', 21, 1);
"""
REVIEW = (
    """Look at this query for common mistakes: NULLs, UNION for UNION ALL, wrong joins, tables that are not there."""
)


class State(MessagesState):
    queries: int


# --- the model --------------------------------------------------------------------------------------------------------


def says(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
    """Reply as a model would that follows its instructions."""
    last, number = messages[-1], sum(1 for m in messages if isinstance(m, AIMessage))
    if tools == ["get_schema"]:
        return AIMessage("", tool_calls=[call("get_schema", number, tables=["artists", "albums"])])
    if messages[0].text == REVIEW:
        return AIMessage("", tool_calls=[call("run_query", "checked", query=last.text.replace("titel", "title"))])
    if "run_query" in tools:
        return explains(messages, number)
    if isinstance(last, HumanMessage) and last.text.startswith("Count"):
        kinds = ("albums", "artists", "nothing")
        return AIMessage("", tool_calls=[call("count_rows", kind, table=kind) for kind in kinds])
    if isinstance(last, HumanMessage):
        changes = [
            ("change_rows", {"statement": "UPDATE albums SET price = price * 2 WHERE artist = 2"}),
            ("change_rows", {"statement": "DELETE FROM albums WHERE stock = 0"}),
            ("order_copies", {"title": "Moondog", "copies": 50}),
        ]
        return AIMessage("", tool_calls=[call(name, n, **args) for n, (name, args) in enumerate(changes)])
    since = max(n for n, m in enumerate(messages) if isinstance(m, HumanMessage))
    results = [m for m in messages[since:] if isinstance(m, ToolMessage)]
    if isinstance(last, ToolMessage) and last.name in ("log_change", "count_rows"):
        return AIMessage(f"All done after {len(results)} results.")
    failed = [m.name for m in results if m.status == "error"]
    return AIMessage("Noted.", tool_calls=[call("log_change", number, what=f"not done: {', '.join(map(str, failed))}")])


def explains(messages: list[BaseMessage], number: int) -> AIMessage:
    """Reply with a query, or with the answer that its rows give."""
    last = messages[-1]
    asked = [m for m in messages if isinstance(m, HumanMessage)][-1].text
    if isinstance(last, ToolMessage) and last.name == "run_query":
        if last.text.startswith("Error"):
            retried = "SELECT title FROM albums WHERE stock > 0 ORDER BY stock DESC LIMIT 1"
            return AIMessage("That was wrong.", tool_calls=[call("run_query", number, query=retried)])
        return AIMessage(f"The rows say: {last.text}")
    if "expensive" in asked:
        query = "SELECT titel, price FROM albums ORDER BY price DESC LIMIT 2"
    else:
        query = "SELECT title FROM discs ORDER BY stock DESC LIMIT 1"
    return AIMessage("I shall look.", tool_calls=[call("run_query", number, query=query)])


# --- tools ------------------------------------------------------------------------------------------------------------


def tools_of(path: Path) -> dict[str, Any]:
    """Return the tools of a database."""

    def rows(statement: str, *values: Any) -> list[Any]:
        with closing(sqlite3.connect(path)) as connection, connection:
            return connection.execute(statement, values).fetchall()

    @tool
    def list_tables() -> str:
        """List the tables."""
        return ", ".join(name for (name,) in rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"))

    @tool
    def get_schema(tables: list[str]) -> str:
        """Return the statements that made tables."""
        found = rows("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name")
        return "\n".join(sql for name, sql in found if name in tables)

    @tool
    def run_query(query: str) -> str:
        """Run a query, once a person has seen it."""
        if not re.match(r"\s*SELECT\b", query, re.IGNORECASE):
            return "Error: only SELECT"
        answer = interrupt({"action": "run_query", "args": {"query": query}, "allowed": ["accept", "edit", "response"]})
        if answer["type"] == "response":
            return f"Error: the reviewer says: {answer['args']}"
        try:
            return str(rows(answer["args"]["query"] if answer["type"] == "edit" else query))
        except sqlite3.OperationalError as error:
            return f"Error: {error}"

    @tool
    def change_rows(statement: str) -> str:
        """Change rows."""
        rows(statement)
        rows("INSERT INTO log VALUES (?)", statement)
        return f"Changed by {statement}"

    @tool
    def count_rows(table: Literal["artists", "albums"], unit: Annotated[str, InjectedToolArg] = "rows") -> str:
        """Count the rows of a table."""
        return f"{rows(f'SELECT count(*) FROM {table}')[0][0]} {unit}"

    @tool
    def order_copies(title: str, copies: int) -> str:
        """Order copies of an album from its label."""
        rows("UPDATE albums SET stock = stock + ? WHERE title = ?", copies, title)
        rows("INSERT INTO log VALUES (?)", f"ordered {copies} of {title}")
        return f"Ordered {copies} of {title}"

    @tool
    def log_change(what: str, runtime: ToolRuntime) -> Command[Any]:
        """Write into the log of the shop."""
        rows("INSERT INTO log VALUES (?)", what)
        told = ToolMessage("Logged.", tool_call_id=runtime.tool_call_id, name="log_change")
        return Command(update={"messages": [told]})

    made = (list_tables, get_schema, run_query, change_rows, count_rows, order_copies, log_change)
    return {each.name: each for each in made}


# --- the graph --------------------------------------------------------------------------------------------------------


def answering(tools: dict[str, Any], builder: Any) -> None:
    """Add the steps by which a question is answered."""
    model = Offline(says=says)

    def list_tables(state: State) -> dict[str, Any]:
        made = call("list_tables", len(state["messages"]))
        found = tools["list_tables"].invoke(made)
        return {"messages": [AIMessage("", tool_calls=[made]), found, AIMessage(f"There are: {found.text}")]}

    def call_get_schema(state: State) -> dict[str, Any]:
        return {"messages": [model.bind_tools([tools["get_schema"]]).invoke(state["messages"])]}

    def generate_query(state: State) -> dict[str, Any]:
        system = SystemMessage("Write one SQLite query at a time; when its rows are there, answer.")
        reply = model.bind_tools([tools["run_query"]]).invoke([system, *state["messages"]])
        return {"messages": [reply], "queries": state.get("queries", 0) + len(reply.tool_calls)}

    def check_query(state: State) -> dict[str, Any]:
        written = state["messages"][-1]
        query = HumanMessage(written.tool_calls[0]["args"]["query"])
        checked = model.bind_tools([tools["run_query"]], tool_choice="any").invoke([SystemMessage(REVIEW), query])
        made = {**checked.tool_calls[0], "id": written.tool_calls[0]["id"]}
        return {"messages": [AIMessage(written.content, tool_calls=[made], id=written.id)]}

    def goes_on(state: State) -> Literal["check_query", "__end__"]:
        if state.get("queries", 0) > 8:
            raise GraphRecursionError("too many queries")
        return "check_query" if state["messages"][-1].tool_calls else END

    builder.add_node("list_tables", list_tables)
    builder.add_node("call_get_schema", call_get_schema, retry_policy=RetryPolicy(max_attempts=2))
    builder.add_node("get_schema", ToolNode([tools["get_schema"]], name="get_schema"))
    builder.add_node("generate_query", generate_query)
    builder.add_node("check_query", check_query)
    builder.add_node("run_query", ToolNode([tools["run_query"]], name="run_query"))
    builder.add_edge("list_tables", "call_get_schema")
    builder.add_edge("call_get_schema", "get_schema")
    builder.add_edge("get_schema", "generate_query")
    builder.add_conditional_edges("generate_query", goes_on)
    builder.add_edge("check_query", "run_query")
    builder.add_edge("run_query", "generate_query")


def changing(tools: dict[str, Any]) -> Any:
    """Return the agent that changes rows, with a person between it and the database."""
    review = HumanInTheLoopMiddleware(
        interrupt_on={
            "change_rows": {
                "allowed_decisions": ["approve", "edit", "reject"],
                "description": lambda made, state, runtime: f"Run on the shop: {made['args']['statement']}",
            },
            "order_copies": {
                "allowed_decisions": ["approve", "edit", "respond"],
                "description": "Costs money",
                "when": lambda request: request.tool_call["args"]["copies"] > 10,
            },
            "log_change": {"allowed_decisions": ["approve", "reject"], "description": "Goes into the log"},
        }
    )
    given = [tools[name] for name in ("change_rows", "count_rows", "order_copies", "log_change")]
    return create_agent(Offline(says=says), given, system_prompt="Keep the shop.", middleware=[review], name="keeper")


@contextmanager
def opened(folder: Path) -> Iterator[Any]:
    """Open the agent of a shop, which is made if it is not there."""
    shop = folder / "shop.db"
    if not shop.exists():
        with closing(sqlite3.connect(shop)) as connection, connection:
            connection.executescript(SHOP)
    tools = tools_of(shop)

    def starts(state: State) -> Literal["list_tables", "keeper"]:
        return "keeper" if state["messages"][-1].text.startswith(("Change", "Count")) else "list_tables"

    builder = StateGraph(State)
    answering(tools, builder)
    builder.add_node("keeper", changing(tools))
    builder.add_conditional_edges(START, starts)
    builder.add_edge("keeper", END)
    with SqliteSaver.from_conn_string(str(folder / "threads.db")) as saver:
        yield builder.compile(checkpointer=saver)


# --- an afternoon of it -----------------------------------------------------------------------------------------------

Call = Callable[[Any], tuple[Any, Any]]


def asks(thread: str, text: str) -> Call:
    """Return the call that a question makes."""
    return lambda graph: ({"messages": [HumanMessage(text, id=text)]}, {"configurable": {"thread_id": thread}})


def reviews(thread: str, kind: str, args: Any = None) -> Call:
    """Return the call that a review of a query makes."""
    return lambda graph: (Command(resume={"type": kind, "args": args}), {"configurable": {"thread_id": thread}})


def decides(thread: str, *decisions: dict[str, Any]) -> Call:
    """Return the call that decisions on tool calls make, which name their question."""

    def answers(graph: Any) -> tuple[Any, Any]:
        config: Any = {"configurable": {"thread_id": thread}}
        (question,) = graph.get_state(config).interrupts
        return Command(resume={question.id: {"decisions": list(decisions)}}), config

    return answers


CHEAPER = {"name": "change_rows", "args": {"statement": "UPDATE albums SET price = price + 1 WHERE artist = 2"}}
CALLS = [
    asks("desk", "What are the most expensive albums?"),
    reviews("desk", "accept"),
    asks("desk", "Of what is there most?"),
    reviews("desk", "accept"),
    reviews("desk", "response", "count only what is there"),
    reviews("desk", "edit", {"query": "SELECT title, stock FROM albums ORDER BY stock DESC LIMIT 1"}),
    asks("desk", "Change the prices, clear the shelf, order Moondog."),
    decides("desk", {"type": "edit", "edited_action": CHEAPER}, {"type": "approve"}, {"type": "approve"}),
    decides("desk", {"type": "approve"}),
    asks("night", "Change it all once more."),
    decides(
        "night",
        {"type": "reject", "message": "not now"},
        {"type": "reject"},
        {"type": "respond", "message": "Sold out."},
    ),
    decides("night", {"type": "reject", "message": "nothing happened"}),
    asks("night", "Count what there is."),
]
