"""A team that writes reports: a supervisor hands work to a researcher and a writer, which are graphs of their own.

The researcher looks in many places at once and asks before it pays for any; the writer publishes what was approved.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from langchain.agents import create_agent
from langchain.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain.tools import InjectedState, InjectedToolCallId, tool
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt
from offline import Offline, call

LIBRARY = {
    "tides.txt": "Tides follow the moon.",
    "harbours.txt": "Harbours are dredged in spring.",
    "paid/survey.txt": "A survey counted 312 boats.",
    "paid/archive.txt": "In 1890 there were 40 boats.",
}


class Note(TypedDict):
    source: str
    text: str


class Team(MessagesState):
    notes: Annotated[list[Note], operator.add]
    spent: Annotated[int, operator.add]
    report: str


class Research(TypedDict, total=False):
    messages: list[BaseMessage]
    sources: list[str]
    notes: Annotated[list[Note], operator.add]
    spent: Annotated[int, operator.add]


class Visit(TypedDict):
    source: str


class Writing(TypedDict, total=False):
    messages: list[BaseMessage]
    notes: list[Note]
    report: str
    remarks: Annotated[list[str], operator.add]


# --- the model --------------------------------------------------------------------------------------------------------


def says(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
    """Reply as a model would that follows its instructions."""
    role, last = messages[0].text.split(":")[0], messages[-1]
    if role == "Plan":
        return AIMessage("tides.txt, paid/survey.txt, paid/archive.txt, harbours.txt, lost.txt")
    if role == "Write":
        lines = [line for line in last.text.splitlines() if line]
        return AIMessage(f"{len(lines)} findings: " + " ".join(lines))
    if role == "Rewrite":
        return AIMessage(f"{last.text} (shorter)")
    turn = sum(1 for m in messages if isinstance(m, AIMessage))
    if last.name == "researcher":
        return AIMessage("Now the report.", tool_calls=[call("to_writer", turn, task="write it up", words=50)])
    if last.name == "writer":
        return AIMessage("The team is done.")
    return AIMessage("Research first.", tool_calls=[call("to_researcher", turn, task="find all on the harbour")])


# --- the supervisor ---------------------------------------------------------------------------------------------------


@tool
def to_researcher(
    task: str, state: Annotated[dict[str, Any], InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]
) -> Command[Any]:
    """Hand a task to the researcher."""
    told = ToolMessage(f"Handed over: {task}", tool_call_id=tool_call_id, name="to_researcher")
    return Command(goto="researcher", graph=Command.PARENT, update={"messages": [*state["messages"], told]})


@tool
def to_writer(
    task: str,
    words: int,
    state: Annotated[dict[str, Any], InjectedState],
    tool_call_id: Annotated[str, InjectedToolCallId],
) -> Command[Any]:
    """Hand a task to the writer."""
    told = ToolMessage(f"Handed over: {task}, {words} words", tool_call_id=tool_call_id, name="to_writer")
    return Command(goto="writer", graph=Command.PARENT, update={"messages": [*state["messages"], told]})


# --- the researcher ---------------------------------------------------------------------------------------------------


def researcher(library: Path, bills: Path) -> Any:
    """Return the graph that looks in many places at once."""
    model = Offline(says=says)

    def plan(state: Research) -> dict[str, Any]:
        reply = model.invoke([SystemMessage("Plan: which sources?"), state["messages"][-1]])
        return {"sources": reply.text.split(", ")}

    def visits(state: Research) -> list[Send]:
        return [
            Send("buy" if source.startswith("paid/") else "read", {"source": source}) for source in state["sources"]
        ]

    def read(state: Visit) -> dict[str, Any]:
        path = library / state["source"]
        text = path.read_text(encoding="utf-8") if path.exists() else "(nothing there)"
        return {"notes": [{"source": state["source"], "text": text}]}

    def buy(state: Visit) -> dict[str, Any]:
        price = 10 * len(state["source"])
        allowed = interrupt({"ask": "buy", "source": state["source"], "price": price})
        if not allowed:
            return {"notes": [{"source": state["source"], "text": "(not bought)"}]}
        with bills.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"source": state["source"], "price": price}) + "\n")
        return {**read(state), "spent": price}

    def report_back(state: Research) -> Command[Any]:
        found = [note for note in state["notes"] if not note["text"].startswith("(")]
        told = HumanMessage(
            f"Found {len(found)} of {len(state['notes'])}", name="researcher", id=f"found-{len(state['messages'])}"
        )
        update = {"messages": [told], "notes": found, "spent": state.get("spent", 0)}
        return Command(goto="supervisor", graph=Command.PARENT, update=update)

    builder = StateGraph(Research)
    builder.add_node("plan", plan)
    builder.add_node("read", read, input_schema=Visit)
    builder.add_node("buy", buy, input_schema=Visit)
    builder.add_node("report_back", report_back, defer=True)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", visits, ["read", "buy"])
    builder.add_edge("read", "report_back")
    builder.add_edge("buy", "report_back")
    return builder.compile()


# --- the writer -------------------------------------------------------------------------------------------------------


def writer(shelf: Path) -> Any:
    """Return the graph that writes, and publishes what was approved."""
    model = Offline(says=says)

    def draft(state: Writing) -> dict[str, Any]:
        notes = "\n".join(note["text"] for note in state["notes"])
        return {"report": model.invoke([SystemMessage("Write: a report"), HumanMessage(notes)]).text}

    def review(state: Writing) -> Command[Literal["rewrite", "publish"]]:
        verdict = interrupt({"ask": "publish", "report": state["report"], "remarks": state.get("remarks", [])})
        if verdict == "yes":
            return Command(goto="publish")
        return Command(goto="rewrite", update={"remarks": [verdict]})

    def rewrite(state: Writing) -> dict[str, Any]:
        system = SystemMessage(f"Rewrite: {state['remarks'][-1]}")
        return {"report": model.invoke([system, HumanMessage(state["report"])]).text}

    def publish(state: Writing) -> Command[Any]:
        name = interrupt({"ask": "name of the file"})
        shelf.mkdir(exist_ok=True)
        with (shelf / name).open("a", encoding="utf-8") as file:
            file.write(state["report"] + "\n")
        told = HumanMessage(f"Published as {name}", name="writer", id=f"published-{len(state['messages'])}")
        update = {"messages": [told], "report": state["report"]}
        return Command(goto="supervisor", graph=Command.PARENT, update=update)

    builder = StateGraph(Writing)
    builder.add_node("draft", draft)
    builder.add_node("review", review)
    builder.add_node("rewrite", rewrite)
    builder.add_node("publish", publish)
    builder.add_edge(START, "draft")
    builder.add_edge("draft", "review")
    builder.add_edge("rewrite", "review")
    return builder.compile()


# --- the team ---------------------------------------------------------------------------------------------------------


@contextmanager
def opened(folder: Path) -> Iterator[Any]:
    """Open the office of a team, with its library."""
    for name, text in LIBRARY.items():
        path = folder / "library" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    supervisor = create_agent(
        Offline(says=says),
        [to_researcher, to_writer],
        system_prompt="Lead: a researcher and a writer. Hand over one task at a time.",
        name="supervisor",
    )
    builder = StateGraph(Team)
    builder.add_node("supervisor", supervisor, destinations=("researcher", "writer", END))
    builder.add_node("researcher", researcher(folder / "library", folder / "bills.jsonl"))
    builder.add_node("writer", writer(folder / "shelf"))
    builder.add_edge(START, "supervisor")
    with SqliteSaver.from_conn_string(str(folder / "threads.db")) as saver:
        yield builder.compile(checkpointer=saver)


# --- a day of it ------------------------------------------------------------------------------------------------------

Call = Callable[[Any], tuple[Any, Any]]
CONFIG: Any = {"configurable": {"thread_id": "harbour"}}


def asks(text: str) -> Call:
    """Return the call that an order makes."""
    return lambda graph: ({"messages": [HumanMessage(text, id=text)]}, CONFIG)


def allows(**sources: bool) -> Call:
    """Return the call that permissions to buy make; those of other sources stay open."""

    def answers(graph: Any) -> tuple[Any, Any]:
        about = {q.id: Path(q.value["source"]).stem for q in graph.get_state(CONFIG).interrupts}
        return Command(resume={key: sources[name] for key, name in about.items() if name in sources}), CONFIG

    return answers


def says_of_it(answer: str) -> Call:
    """Return the call that an answer to the writer makes."""
    return lambda graph: (Command(resume=answer), CONFIG)


CALLS = [
    asks("Report on the harbour."),
    allows(survey=True),
    allows(archive=False),
    says_of_it("too long"),
    says_of_it("yes"),
    says_of_it("harbour.txt"),
    asks("And again, with all there is."),
    allows(archive=True, survey=True),
    says_of_it("yes"),
    says_of_it("again.txt"),
]
