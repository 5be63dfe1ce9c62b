"""The tool calls that a question wants decisions on, known by the shape of its payload, and the answer made of those."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from waitpoint.codec import to_json
from waitpoint.protocol import branches_of, targets_of
from waitpoint.protocol.definitions import resolved
from waitpoint.records import Question

DECISIONS = ("approve", "edit", "reject", "respond")


class Call(NamedTuple):
    """One tool call that waits for a decision. `kinds`: the JSON type of an argument, where its schema says one."""

    number: int
    name: str
    args: dict[str, Any]
    description: str
    allowed: tuple[str, ...]
    kinds: Mapping[str, Any]
    more: dict[str, Any]  # whatever else the payload says of it

    @property
    def own_words(self) -> str:
        """The description; of the default one only what it says beside the tool and its arguments."""
        told = f"\n\nTool: {self.name}\nArgs: {json.dumps(to_json(self.args), indent=2, ensure_ascii=False)}"
        return self.description.removesuffix(told)


class Review(NamedTuple):
    """All calls of one question."""

    calls: tuple[Call, ...]
    is_batched: bool

    def answer(self, decisions: Mapping[int, dict[str, Any]]) -> Any:
        """Return the answer that gives each call, by its number, a decision."""
        in_order = [decisions[call.number] for call in self.calls]
        return {"decisions": in_order} if self.is_batched else in_order[0]


def review_of(question: Question) -> Review | None:
    """Return the calls that a question asks about; None if it asks something else."""
    payload, schema = question.value, question.response_schema
    if not isinstance(payload, dict):
        return None
    try:
        if payload.get("type") == "tool_approval":
            return _single(payload, schema)
        if isinstance(payload.get("action_requests"), list):
            return _batched(payload, schema)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None  # only the shape is like it; it is shown as any other
    return None


def _single(payload: dict[str, Any], schema: Mapping[str, Any] | None) -> Review | None:
    if not isinstance(payload.get("tool_call_id"), str):
        return None
    defs = {} if schema is None else schema.get("$defs", {})
    call = _call(1, payload, DECISIONS, schema, defs)
    more = {k: v for k, v in call.more.items() if k != "type"}
    return Review((call._replace(more=more),), is_batched=False) if call.allowed else None


def _batched(payload: dict[str, Any], schema: Mapping[str, Any] | None) -> Review | None:
    requests, configs = payload["action_requests"], payload["review_configs"]
    entries: Sequence[Any] = [None] * len(requests)
    if schema is not None:
        entries = schema["properties"]["decisions"]["prefixItems"]
    defs = {} if schema is None else schema.get("$defs", {})
    allowed = {config["action_name"]: tuple(config["allowed_decisions"]) for config in configs}
    calls = [
        _call(n, request, allowed[request["name"]], entry, defs)
        for n, (request, entry) in enumerate(zip(requests, entries, strict=True), start=1)
    ]
    return Review(tuple(calls), is_batched=True) if calls and all(call.allowed for call in calls) else None


def _call(
    number: int,
    request: Mapping[str, Any],
    allowed: Sequence[str],
    schema: Mapping[str, Any] | None,
    defs: Mapping[str, Any],
) -> Call:
    """Return one call; raises TypeError if the request is no such thing."""
    name, args, description = request["name"], request["args"], request.get("description", "")
    if not (isinstance(name, str) and isinstance(args, dict) and isinstance(description, str)):
        raise TypeError("no tool call")
    branches = {} if schema is None else branches_of(schema, defs)
    known = ("name", "args", "description")
    more = {k: v for k, v in request.items() if k not in known}
    kinds = _kinds(branches, name, defs)
    return Call(number, name, args, description, tuple(branches) if schema is not None else tuple(allowed), kinds, more)


def _kinds(branches: Mapping[str, Any], name: str, defs: Mapping[str, Any]) -> dict[str, Any]:
    if "edit" not in branches:
        return {}
    action = targets_of(branches["edit"]["properties"]["edited_action"], defs).get(name)
    args = resolved(action["properties"]["args"], defs) if action is not None else {}
    return {key: resolved(of, defs).get("type") for key, of in args.get("properties", {}).items()}
