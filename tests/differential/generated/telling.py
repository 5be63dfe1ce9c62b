"""Tells parts and snapshots in words that hold for both libraries: ids become the order in which they appear."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from tests.differential import play

HEX = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")


class Names:
    """Gives each id a number of its own, in the order of appearance."""

    def __init__(self, *, numbered: bool) -> None:
        self.numbered = numbered
        self.known: dict[str, int] = {}

    def text(self, text: str) -> str:
        """Return a text with its ids numbered."""
        if not self.numbered:
            return HEX.sub("#", text)
        return HEX.sub(lambda found: f"#{self.known.setdefault(found[0], len(self.known))}", text)

    def namespace(self, namespace: Sequence[str]) -> tuple[str, ...]:
        return tuple(self.text(part) for part in namespace)


def told(value: Any) -> Any:
    """Return a value without ids and classes."""
    if isinstance(value, BaseMessage):
        return (value.type, value.content)
    if isinstance(value, dict):
        return {key: told(part) for key, part in value.items()}
    if type(value) in {list, tuple}:
        return type(value)(told(part) for part in value)
    return play.told(value)


def questions(found: Any) -> list[Any]:
    """Return the values of questions, which some modes show as dicts."""
    return [told(q["value"] if isinstance(q, dict) else q.value) for q in found]


def told_error(error: Any) -> Any:
    """Return an error as a text: some modes have the exception."""
    return error if error is None or isinstance(error, str) else repr(error)


def told_metadata(metadata: Any) -> Any:
    return None if metadata is None else {"source": metadata["source"], "step": metadata["step"],
                                          "parents": [HEX.sub("#", ns) for ns in metadata["parents"]]}  # fmt: skip


def told_snapshot(snapshot: Any) -> dict[str, Any]:
    """Return a snapshot, with those of graphs inside."""
    return {
        "values": told(snapshot.values),
        "next": sorted(snapshot.next),
        "metadata": told_metadata(snapshot.metadata),
        "has_parent": snapshot.parent_config is not None,
        "where": sorted(HEX.sub("#", ns) for ns in snapshot.config["configurable"].get("checkpoint_map", ())),
        "interrupts": sorted(questions(snapshot.interrupts)),
        "tasks": in_order([told_task(task) for task in snapshot.tasks]),
    }


def in_order(tasks: list[Any]) -> list[Any]:
    """Return the tasks of a step in an order of their own, equal names as they come."""
    return sorted(tasks, key=lambda task: task["name"])


def told_task(task: Any) -> dict[str, Any]:
    """Return a task of a snapshot."""
    state: Any = task.state
    if isinstance(state, dict):
        state = place(state)
    elif state is not None:
        state = told_snapshot(state)
    return {
        "name": task.name,
        "error": told_error(task.error),
        "interrupts": questions(task.interrupts),
        "result": told(task.result),
        "state": state,
    }


def place(config: Any) -> str:
    """Return the names of the nodes that lead to a graph: that of a memory is without ids here."""
    return re.sub(":[^|]*", "", config["configurable"]["checkpoint_ns"])


def told_part(mode: str, data: Any, names: Names) -> Any:
    """Return the payload of a part."""
    if mode == "debug":
        kind = {"task": "tasks", "task_result": "tasks", "checkpoint": "checkpoints"}[data["type"]]
        return {"type": data["type"], "step": data["step"], "payload": told_part(kind, data["payload"], names)}
    if mode == "tasks":
        found = {key: told(part) for key, part in data.items() if key not in {"id", "interrupts", "error", "metadata"}}
        if "triggers" in found:
            led = [f"branch:to:{found['name']}" if trigger == "__start__" else trigger for trigger in found["triggers"]]
            found["triggers"] = sorted({re.sub("^join:.*:", "branch:to:", trigger) for trigger in led})
        found["id"] = names.text(data["id"])
        if "interrupts" in data:
            found |= {"interrupts": questions(data["interrupts"]), "error": told_error(data["error"])}
        return found
    if mode == "checkpoints":
        return {
            "values": told(data["values"]),
            "next": sorted(data["next"]),
            "metadata": told_metadata(data["metadata"]),
            "has_parent": data["parent_config"] is not None,
            "tasks": in_order([told_listed(task) for task in data["tasks"]]),
        }
    if mode == "messages":
        message, metadata = data
        return told(message), metadata["langgraph_node"], metadata["langgraph_step"]
    return told(data)


def told_listed(task: Any) -> dict[str, Any]:
    """Return a task of a checkpoint that was shown."""
    found = {key: told(part) for key, part in task.items() if key not in {"id", "interrupts", "error", "state"}}
    state = task.get("state")
    found["state"] = place(state) if state else None
    return {**found, "interrupts": questions(task.get("interrupts", ()))[-1:], "error": told_error(task.get("error"))}
