"""What is meant to differ between agents: one rule for each, with the words of the page that tells users of it."""

from __future__ import annotations

import re
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage

from tests.differential.generated.agent_shapes import Shape
from tests.differential.generated.rules import documented

OWN_KEYS = ("hitl_remarks", "hitl_edited_tool_calls", "jump_to")  # private ones, of one library
RUN_KEYS = ("run_model_call_count", "run_tool_call_count")


def levelled(value: Any, mode: str | None) -> Any:
    """Return a value without what is meant to differ; `mode` is how an agent asks about calls."""
    if isinstance(value, ToolMessage):
        return limited(compact(unframed(misfit(value))))
    if isinstance(value, AIMessage):
        return limited(value)
    if isinstance(value, dict):
        return {key: levelled(part, mode) for key, part in value.items() if key not in OWN_KEYS and is_lasting(key)}
    if type(value) in {list, tuple}:
        parts = [levelled(part, mode) for part in value]
        return type(value)(by_calls(parts) if mode == "batched" else parts)
    return value


@documented("the limits of a run begin anew after a pause")
def is_lasting(key: Any) -> bool:
    """Return whether a key of the state counts for the thread."""
    return key not in RUN_KEYS


@documented("the limits of a run begin anew after a pause")
def beside_questions(around: tuple[str, ...]) -> tuple[str, ...]:
    """Return what may stand around an agent that pauses."""
    return tuple(name for name in around if "limit" not in name)


@documented("texts about limits that are reached are LangChain's")
def limited(message: Any) -> Any:
    """Return a message with the same words about a limit."""
    is_about = re.search("(?i)(call limits? |the limit of (model|tool) calls)", str(message.content))
    return message.model_copy(update={"content": "limited"}) if is_about else message


@documented("a misfit in the final answer is told to the model as a success")
def misfit(message: ToolMessage) -> ToolMessage:
    """Return a message with the same words about a final answer that does not fit."""
    if message.name != "Weather" or not str(message.content).startswith("Error: "):
        return message
    return message.model_copy(update={"content": "misfit", "status": "error"})


@documented("the reviewer's message is framed by a sentence")
def unframed(message: ToolMessage) -> ToolMessage:
    """Return a message with the reason of a rejection alone."""
    if message.additional_kwargs.get("lc_source") != "hitl_interrupt_decision" or message.status != "error":
        return message
    return message.model_copy(update={"content": re.sub(r"(?s)^.* with reason: ", "", str(message.content))})


@documented("the notice of an edited call shows arguments as JSON with spaces")
def compact(message: ToolMessage) -> ToolMessage:
    """Return a message whose notice, if it has one, has no spaces."""
    notice, _, rest = str(message.content).partition(" with arguments ")
    if not rest or "Executed instead" not in notice:
        return message
    return message.model_copy(update={"content": notice + rest.replace(" ", "")})


@documented("a call whose arguments do not fit its tool is put to a person in per-call mode")
@documented("an answer that a person gives for a tool with `return_direct` ends the agent")
def beside_gates(tools: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tools of an agent whose calls wait."""
    return tuple(name for name in tools if name not in {"misfit", "last"})


@documented("in batched mode, results that a reviewer gave come before those of tools")
def by_calls(parts: list[Any]) -> list[Any]:
    """Order the results that stand together by their calls."""
    out: list[Any] = []
    results: list[ToolMessage] = []
    for part in [*parts, None]:
        if isinstance(part, ToolMessage):
            results.append(part)
            continue
        out += [*sorted(results, key=lambda message: message.tool_call_id), part]
        results = []
    return out[:-1]


@documented("a call of an unknown tool beside one with `return_direct` does not reach the model again")
def said(tools: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tools that the model calls at once."""
    return tuple(name for name in tools if name != "strange") if "last" in tools else tools


@documented("a graph that a tool runs has the namespace of the tool's task")
def namespace(found: Any) -> tuple[str, ...]:
    """Return a namespace without the bodies of tools."""
    return tuple(part for part in found if ":" in part)


@documented("the input of a tool's task is a list with its call")
def without_calls(found: list[Any]) -> list[Any]:
    """Leave out what tasks of tools are given."""
    out = []
    for namespace, mode, data in found:
        task = data.get("payload", data) if mode == "debug" else data
        if mode in {"tasks", "debug"} and task.get("name") == "tools" and "input" in task:
            task = {**task, "input": None}
            data = {**data, "payload": task} if mode == "debug" else task
        out.append((namespace, mode, data))
    return out


@documented("the default description shows arguments as a Python dict")
def asked(value: Any) -> str:
    """Return a question as a text, without its descriptions."""
    if isinstance(value, dict):
        value = {key: part for key, part in value.items() if key != "description"}
        if "action_requests" in value:
            value["action_requests"] = [{k: r[k] for k in ("name", "args")} for r in value["action_requests"]]
    return repr(value)


@documented("the limits of a run begin anew after a pause")
def has_the_same_steps(shape: Shape) -> bool:
    """Return whether an agent has the same steps: that of a gate is another, a limit has one more that begins a run."""
    return shape.mode is None and not any("limit" in name for name in shape.around)
