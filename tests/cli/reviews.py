"""A graph whose nodes ask for decisions on tool calls, as an agent does, and one whose effect is in doubt."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.program import Program

REVIEWS = '''
import operator
import os
import signal
from pathlib import Path
from typing import Annotated, Any, TypedDict

from waitpoint import canonical
from waitpoint.graph import START, StateGraph
from waitpoint.interrupts.journal import Question, running
from waitpoint.protocol import HITL_REQUEST, TOOL_APPROVAL, BatchCall, batch_schema, decision_schema
from waitpoint.types import Send, interrupt, step

ALL = ["approve", "edit", "reject", "respond"]
SCHEMAS = {
    "write_file": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}, "mode": {"type": "integer"}},
        "required": ["path", "content"],
    },
    "execute_sql": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}
ALLOWED = {"write_file": ALL, "execute_sql": ["approve", "reject"]}


class State(TypedDict, total=False):
    calls: list[dict[str, Any]]
    log: Annotated[list[Any], operator.add]


def ask(payload, schema, form, **data):
    row = running("ask").ask(Question(payload, None, (), canonical.payload(schema), form, data)).row
    return running("ask").read(row.answer, "answer")


def each(state):
    return [Send("review", call) for call in state["calls"]]


def review(call):
    name = call["name"]
    payload = {"type": "tool_approval", "tool_call_id": call["id"], "name": name, "args": call["args"]}
    payload["description"] = call.get("description", f"May {name} run?")
    decision = ask(payload, decision_schema(ALLOWED[name], name, SCHEMAS[name]), TOOL_APPROVAL)
    return {"log": [decision]}


def review_all(state):
    calls = state["calls"]
    payload = {
        "action_requests": [{"name": c["name"], "args": c["args"], "description": "Look."} for c in calls],
        "review_configs": [{"action_name": n, "allowed_decisions": a} for n, a in ALLOWED.items()],
    }
    entries = [BatchCall(c["id"], c["name"], ALLOWED[c["name"]], {c["name"]: SCHEMAS[c["name"]]}) for c in calls]
    answer = ask(payload, batch_schema(entries), HITL_REQUEST, tool_call_ids=[c["id"] for c in calls])
    return {"log": answer["decisions"]}


def plain(state):
    """Ask in the shape of an approval, by hand and without a schema."""
    return {"log": [interrupt({"type": "tool_approval", **call}) for call in state["calls"]]}


def pay(amount):
    if not Path("killed").exists():
        Path("killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return f"paid {amount}"


def pays(state):
    return {"log": [step(pay, 5, in_doubt="ask")]}


def graph_of(name, node):
    builder = StateGraph(State)
    builder.add_node(name, node)
    builder.add_edge(START, name)
    return builder.compile(name=name)


single = StateGraph(State)
single.add_node("plan", lambda state: {})
single.add_node("review", review)
single.add_edge(START, "plan")
single.add_conditional_edges("plan", each, ["review"])
single = single.compile(name="single")
batch = graph_of("batch", review_all)
byhand = graph_of("byhand", plain)
doubt = graph_of("doubt", pays)
'''

WRITE: dict[str, Any] = {
    "id": "call_write",
    "name": "write_file",
    "args": {"path": "orders.csv", "content": "id,total\n1,20\n"},
}
SQL: dict[str, Any] = {"id": "call_sql", "name": "execute_sql", "args": {"query": "DELETE FROM orders"}}


def install(program: Program) -> None:
    """Write the graphs into the program's folder."""
    program.write("reviews.py", REVIEWS)
    graphs = "".join(f'{name} = "reviews:{name}"\n' for name in ("single", "batch", "byhand", "doubt"))
    program.write("waitpoint.toml", f'[graphs]\n{graphs}[store]\nurl = "sqlite:///threads.db"\n')


def asked(program: Program, graph: str, *calls: dict[str, Any]) -> list[str]:
    """Start a thread `t` that asks about these calls; return the ids of its questions in the order of the calls."""
    done = program("run", graph, "--input", json.dumps({"calls": calls}), "--thread", "t", "--json")
    assert done.code == 0, done.err
    found = {json.dumps(q["value"].get("args")): q["id"] for q in done.json["questions"]}
    return [found[json.dumps(call["args"])] for call in calls] if graph != "batch" else list(found.values())


def log(program: Program) -> list[Any]:
    """Return what the nodes of thread `t` came to."""
    done = program("continue", "t", "--json")
    output: list[Any] = done.json["output"]["log"]
    return output


def set_editor(monkeypatch: pytest.MonkeyPatch, program: Program, *lines: str) -> None:
    """Make $EDITOR a script of these lines; its argument is the file."""
    path = program.write("editor.sh", "\n".join(("#!/bin/sh", *lines)) + "\n")
    path.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(path))
    monkeypatch.delenv("VISUAL", raising=False)
