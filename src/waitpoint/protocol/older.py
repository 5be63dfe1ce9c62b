"""What older clients read in a question and how they answer it: further keys on the way out, today's form on the way in.

An inbox of the first generation answers `[{"type": "accept" | "edit" | "response" | "ignore", "args": ...}]`, and others
send a single decision, or an object of decisions by the ids of the calls. What is none of these is returned as it came,
and refused where answers are checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from waitpoint.protocol.decisions import HITL_REQUEST, branches_of
from waitpoint.protocol.definitions import resolved

_OLD: Final = frozenset({"accept", "edit", "response", "ignore"})
_DECISIONS: Final = frozenset({"approve", "edit", "reject", "respond"})


def with_aliases(payload: Any) -> Any:
    """Return a batched question's payload, as JSON values, with the keys that some clients look for beside its own."""
    if not isinstance(payload, dict):
        return payload
    actions, configs = payload.get("action_requests"), payload.get("review_configs")
    if not (isinstance(actions, list) and isinstance(configs, list)):
        return payload
    actions = [_also(each, {"arguments": "args"}) for each in actions]
    configs = [_also(each, {"actionName": "action_name", "allowedDecisions": "allowed_decisions"}) for each in configs]
    more = {"actionRequests": actions, "reviewConfigs": configs}
    return {**more, **payload, "action_requests": actions, "review_configs": configs}


def _also(document: Any, aliases: Mapping[str, str]) -> Any:
    if not isinstance(document, dict):
        return document
    return {**{alias: document[name] for alias, name in aliases.items() if name in document}, **document}


def from_older(
    answer: Any, form: str, payload: Any, schema: Mapping[str, Any], form_data: Mapping[str, Any] | None
) -> Any:
    """Return an answer in the form of its question: one decision, or `{"decisions": [...]}` for a batched one."""
    defs = schema.get("$defs", {})
    if form == HITL_REQUEST:
        entries: Sequence[Mapping[str, Any]] = schema["properties"]["decisions"]["prefixItems"]
        ids = list((form_data or {}).get("tool_call_ids", ()))
    else:
        entries, ids = [schema], [payload.get("tool_call_id")]
    found = _listed(answer, ids)
    if found is None:
        return answer
    allowed = [branches_of(entry, defs) for entry in entries]
    decisions = [
        _today(decision, allowed[n], defs) if n < len(allowed) else decision for n, decision in enumerate(found)
    ]
    if form == HITL_REQUEST:
        rest = {name: value for name, value in answer.items() if name != "decisions"} if _is_today(answer) else {}
        return {**rest, "decisions": decisions}
    return decisions[0] if len(decisions) == 1 else answer


def _is_today(answer: Any) -> bool:
    return isinstance(answer, dict) and "decisions" in answer


def _listed(answer: Any, ids: Sequence[Any]) -> list[Any] | None:
    """Return the decisions in an answer, in the order they came, or by the ids of the calls; None if it holds none."""
    if _is_today(answer):
        given = answer["decisions"]
        return list(given) if isinstance(given, list | tuple) else None
    if isinstance(answer, list):
        return list(answer) if answer and all(_is_one(each) for each in answer) else None
    if _is_one(answer):
        return [answer]
    if isinstance(answer, dict) and answer and set(answer) == set(ids) and all(map(_is_one, answer.values())):
        return [answer[id_] for id_ in ids]
    return None


def _is_one(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") in _OLD | _DECISIONS


def _today(decision: Any, allowed: Mapping[str, Mapping[str, Any]], defs: Mapping[str, Any]) -> Any:
    """Return one decision in today's words."""
    if not isinstance(decision, dict):
        return decision
    kind, args = decision.get("type"), decision.get("args")
    if kind == "accept":
        return {"type": "approve"}
    if kind == "ignore":
        return {"type": "reject"}
    if kind == "response":
        # Such an inbox offers "response" for what may be rejected: the words tell the model why.
        return {"type": "reject" if "reject" in allowed else "respond", "message": _text(args)}
    if kind == "edit" and isinstance(args, dict) and not {"edited_action", "editedAction"} & set(decision):
        name, given = args.get("action"), args.get("args")
        edit = {"name": name, "args": given}
        if isinstance(given, dict) and "edit" in allowed:
            types = _types(allowed["edit"], name, defs)
            edit["args"] = {key: _typed(value, types.get(key), defs) for key, value in given.items()}
        return {"type": "edit", "edited_action": edit}
    return decision


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _types(branch: Mapping[str, Any], name: Any, defs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schemas of the arguments of a tool that an edit names."""
    action = resolved(branch.get("properties", {}).get("edited_action", {}), defs)
    for each in action.get("oneOf", [action]):
        schema = resolved(each, defs)
        properties = schema.get("properties", {})
        if properties.get("name", {}).get("const") == name:
            found: Mapping[str, Any] = resolved(properties.get("args", {}), defs).get("properties", {})
            return found
    return {}


def _typed(value: Any, schema: Any, defs: Mapping[str, Any]) -> Any:
    """Return a value that was typed into a field of text as what its schema says it is, if that is no text."""
    if not isinstance(value, str) or not isinstance(schema, Mapping):
        return value
    wanted = _kinds(schema, defs)
    if not wanted or "string" in wanted:
        return value
    try:
        read = json.loads(value)
    except ValueError:
        return {"True": True, "False": False, "None": None}.get(value, value)
    return read


def _kinds(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> set[str]:
    """Return the JSON types that a schema allows, as far as it says."""
    whole = resolved(schema, defs)
    given = whole.get("type")
    found = {given} if isinstance(given, str) else set(given or ())
    for name in ("anyOf", "oneOf"):
        for each in whole.get(name, ()):
            found |= _kinds(each, defs) or {"string"}
    return found
