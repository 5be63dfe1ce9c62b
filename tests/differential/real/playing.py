"""Makes calls of a real program in this process, and tells all that can be seen of them, without ids, as JSON.

Arguments: the program's file, its folder, the numbers of the calls.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage

MODES = ["updates", "values", "messages"]


def told(value: Any) -> Any:
    """Return a value without its ids and without the library that its types come from."""
    kind = type(value).__name__
    if isinstance(value, BaseMessage):
        fields = ("content", "tool_calls", "tool_call_id", "tool_call_chunks", "name", "status", "additional_kwargs")
        return [kind, {name: told(found) for name in fields if (found := getattr(value, name, None))}]
    if kind == "Interrupt":
        return [kind, told(value.value), told(value.response_schema)]
    if kind == "Send":
        return [kind, value.node, told(value.arg)]
    if isinstance(value, dict):
        return {str(key): told(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [told(each) for each in value]
    assert value is None or isinstance(value, str | int | float | bool), value
    return value


def told_part(part: Any) -> Any:
    """Return a part of a stream: where it comes from, its mode, what it says."""
    namespace, mode, payload = part
    if mode == "messages":
        message, metadata = payload
        payload = [message, {name: metadata.get(name) for name in ("langgraph_node", "langgraph_step")}]
    return [[name.split(":")[0] for name in namespace], mode, told(payload)]


def told_state(snapshot: Any) -> dict[str, Any]:
    """Return a snapshot, and those of the graphs nested in it."""
    tasks = [
        {
            "name": task.name,
            "error": task.error and repr(task.error),
            "asks": told(task.interrupts),
            "result": told(task.result),
            "nested": told_state(task.state) if hasattr(task.state, "tasks") else task.state is not None,
        }
        for task in snapshot.tasks
    ]
    return {
        "values": told(snapshot.values),
        "next": sorted(snapshot.next),
        "metadata": snapshot.metadata and {name: snapshot.metadata[name] for name in ("source", "step")},
        "has parent": snapshot.parent_config is not None,
        "tasks": sorted(tasks, key=lambda task: repr((task["name"], task["asks"], task["result"]))),
        "asks": sorted(told(snapshot.interrupts), key=repr),
    }


def played(graph: Any, given: Any, config: Any) -> dict[str, Any]:
    """Make a call, and return what it shows and what the thread holds after it."""
    parts = [told_part(part) for part in graph.stream(given, config, stream_mode=MODES, subgraphs=True)]
    state = told_state(graph.get_state(config, subgraphs=True))
    return {"parts": parts, "state": state, "history": [told_state(s) for s in graph.get_state_history(config)]}


def main(program: str, folder: str, *numbers: str) -> None:
    """Make the calls."""
    sys.path.insert(0, str(Path(program).parent))
    module = importlib.import_module(Path(program).stem)
    with module.opened(Path(folder)) as graph:
        calls = [played(graph, *module.CALLS[int(number)](graph)) for number in numbers]
    libraries = sorted({"langgraph", "langchain", "waitpoint"} & set(sys.modules))
    json.dump({"calls": calls, "libraries": libraries}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
