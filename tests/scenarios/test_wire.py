"""Scenarios of the wire: what is sent to a browser is data, whatever the state holds."""

from __future__ import annotations

import dataclasses
import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, TypedDict
from uuid import UUID

from langchain_core.messages import AIMessage, AnyMessage
from pydantic import BaseModel

from tests.scenarios.conftest import Call
from tests.scenarios.world import Shelf, thread
from waitpoint import codec
from waitpoint.config import get_stream_writer
from waitpoint.graph import START, StateGraph
from waitpoint.graph.message import add_messages
from waitpoint.types import Interrupt, interrupt

# --- S071 -------------------------------------------------------------------------------------------------------------

A_REPR = re.compile(
    r"\b(Interrupt|AIMessage|Decimal|UUID|Line|Order|Kind|GraphOutput|StateSnapshot)\(| object at 0x|<\w+\."
)


class Kind(Enum):
    EXPRESS = "express"


@dataclasses.dataclass
class Line:
    name: str
    price: Decimal


class Order(BaseModel):
    lines: list[Line]
    kind: Kind
    at: datetime


ORDER = Order(lines=[Line("tea", Decimal("2.50"))], kind=Kind.EXPRESS, at=datetime(2026, 1, 2, tzinfo=UTC))
ORDER_JSON = {"lines": [{"name": "tea", "price": "2.50"}], "kind": "express", "at": "2026-01-02T00:00:00+00:00"}


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    order: Order
    ids: set[int]
    key: bytes


def fill(state: State) -> State:
    get_stream_writer()({"seen": (UUID(int=1), object())})
    return {"messages": [AIMessage("May I?", id="m")], "order": ORDER, "ids": {2, 1}, "key": b"\x00"}


def ask(state: State) -> State:
    interrupt({"order": state["order"], "why": ("a", "b")}, response_schema=bool)
    return {}


def build(shelf: Shelf) -> Any:
    graph = StateGraph(State).add_node(fill).add_node(ask).add_edge(START, "fill").add_edge("fill", "ask")
    return graph.compile(checkpointer=shelf.open())


def sent(value: Any) -> Any:
    """Return what a browser reads of a value that was encoded, as strict JSON."""
    text = json.dumps(codec.to_json(value), allow_nan=False)
    assert not A_REPR.search(text)
    return json.loads(text)


QUESTION = {"order": ORDER_JSON, "why": ["a", "b"]}


def test_s071_a_result_with_questions_is_data_on_the_wire(shelf: Shelf, call: Call) -> None:
    graph, config = build(shelf), thread()
    result = call(graph, {"messages": []}, config)
    found = sent(result)
    assert {k: v for k, v in found.items() if k not in {"messages", "__interrupt__"}} == {
        "order": ORDER_JSON, "ids": [1, 2], "key": "AA==",
    }  # fmt: skip
    assert [AIMessage(**message) for message in found["messages"]] == result["messages"]
    (question,) = found["__interrupt__"]
    assert Interrupt(**question) == Interrupt(
        QUESTION, result["__interrupt__"][0].id, response_schema={"type": "boolean"}
    )
    output = sent(call(graph, None, config, version="v2"))
    assert (output["value"]["order"], output["interrupts"], output["next"]) == (ORDER_JSON, [question], ["ask"])


def test_s071_parts_and_events_are_data_on_the_wire(shelf: Shelf) -> None:
    modes = ["values", "updates", "custom", "messages", "tasks", "checkpoints", "debug"]
    parts = [sent(part) for part in build(shelf).stream({"messages": []}, thread(), stream_mode=modes, version="v2")]
    assert {part["type"] for part in parts} == set(modes)
    by_mode = {mode: [p["data"] for p in parts if p["type"] == mode] for mode in modes}
    assert by_mode["updates"][0]["fill"]["order"] == ORDER_JSON
    assert [i["value"] for i in by_mode["updates"][-1]["__interrupt__"]] == [QUESTION]
    assert [i["value"] for i in by_mode["checkpoints"][-1]["tasks"][0]["interrupts"]] == [QUESTION]
    assert by_mode["messages"][0][0]["type"] == "ai"
    (custom,) = by_mode["custom"]
    assert custom["seen"] == [
        str(UUID(int=1)),
        {"tag": "builtins:object", "value": None, "reason": "it has no form in JSON"},
    ]
    events = [sent(event) for event in build(shelf).stream_events({"messages": []}, thread(), version="v3")]
    last = next(e["params"] for e in reversed(events) if e["method"] == "values")
    assert (last["data"]["order"], [i["value"] for i in last["interrupts"]]) == (ORDER_JSON, [QUESTION])


def test_s071_snapshots_and_lists_of_questions_are_data_on_the_wire(shelf: Shelf) -> None:
    graph, config = build(shelf), thread()
    graph.invoke({"messages": []}, config)
    state = sent(graph.get_state(config))
    assert (state["values"]["order"], state["next"]) == (ORDER_JSON, ["ask"])
    assert [i["value"] for task in state["tasks"] for i in task["interrupts"]] == [QUESTION]
    (listed,) = sent(shelf.open().pending())
    assert (listed["id"], listed["status"]) == (state["interrupts"][0]["id"], "open")
    # A saver knows no graph, and so none of its classes: what it cannot name it marks.
    kind = {"tag": f"{__name__}:Kind", "value": "EXPRESS"}
    assert listed["value"] == {**QUESTION, "order": {**ORDER_JSON, "kind": kind}}
