"""Decisions on tool calls: the JSON Schemas that are shown with a question, and how an answer to it is read.

An answer is brought into one shape (snake_case keys, one decision for each call, in their order) and checked before
anything is stored. The shape is that of the schema; only what is inside `args` stays as it came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from waitpoint.interrupts import forms
from waitpoint.protocol.definitions import Definitions, resolved
from waitpoint.schemas import find_misfits, validation_error

if TYPE_CHECKING:
    from pydantic import ValidationError

TOOL_APPROVAL: Final = "tool_approval"
"""The form of an answer to one call: one decision."""

HITL_REQUEST: Final = "hitl_request"
"""The form of an answer to all calls of a turn. `form_data` has their `tool_call_ids` and, optionally, all `tools`."""

_BRANCHES: Final = {
    "approve": "ApproveDecision",
    "edit": "EditDecision",
    "reject": "RejectDecision",
    "respond": "RespondDecision",
}
_ECHOED: Final = 300

_Place = tuple[str | int, ...]


class BatchCall(NamedTuple):
    """One call of a batched question. `edit_targets`: the tools that an edit may name, with their argument schemas."""

    tool_call_id: str
    name: str
    allowed: Sequence[str]
    edit_targets: Mapping[str, Mapping[str, Any]]


# --- schemas ----------------------------------------------------------------------------------------------------------


def decision_schema(allowed: Sequence[str], name: str, args_schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of the answer to one call: a branch for each allowed decision, or the plain one if it is alone."""
    defs = Definitions(_BRANCHES.values())
    action = _action_schema(name, defs.hoist(args_schema, name)) if "edit" in allowed else {}
    branches = {_BRANCHES[kind]: _branch(kind, action) for kind in allowed}
    if len(branches) == 1:
        [schema] = branches.values()
        return _with_defs(schema, defs.schemas)
    refs = [defs.reference(branch) for branch in branches]
    return {"oneOf": refs, "$defs": branches | defs.schemas}


def batch_schema(calls: Sequence[BatchCall]) -> dict[str, Any]:
    """Return the schema of the answer to several calls: their decisions, in this order or labelled by `tool_call_id`."""
    defs = Definitions()
    actions: dict[str, dict[str, Any]] = {}  # of tools that several edits may name, so that each is written once
    entries = [_entry(call, defs, actions) for call in calls]
    decisions: dict[str, Any] = {
        "type": "array",
        "prefixItems": entries,
        "items": False,
        "minItems": len(entries),
        "maxItems": len(entries),
    }
    schema = {"type": "object", "properties": {"decisions": decisions}, "required": ["decisions"]}
    return _with_defs(schema, defs.schemas)


def _entry(call: BatchCall, defs: Definitions, actions: dict[str, dict[str, Any]]) -> dict[str, Any]:
    refs = [_shared_action(tool, schema, defs, actions) for tool, schema in call.edit_targets.items()]
    action: dict[str, Any] = refs[0] if len(refs) == 1 else {"oneOf": refs}
    label: dict[str, Any] = {"tool_call_id": {"type": "string", "const": call.tool_call_id}}
    branches = [_branch(kind, action, label) for kind in call.allowed if kind != "edit" or refs]
    return branches[0] if len(branches) == 1 else {"oneOf": branches}


def _shared_action(
    tool: str, args_schema: Mapping[str, Any], defs: Definitions, actions: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    if tool not in actions:
        name = defs.name(f"{tool}_action", tool)
        defs.schemas[name] = _action_schema(tool, defs.hoist(args_schema, tool))
        actions[tool] = defs.reference(name)
    return actions[tool]


def _action_schema(name: str, args_schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"name": {"type": "string", "const": name}, "args": args_schema},
        "required": ["name", "args"],
        "additionalProperties": False,
    }


def _branch(kind: str, action: Mapping[str, Any], label: Mapping[str, Any] | None = None) -> dict[str, Any]:
    text = {"message": {"type": "string"}}
    every: dict[str, dict[str, Any]] = {
        "approve": {},
        "edit": {"edited_action": action},
        "reject": text,
        "respond": text,
    }
    own = every[kind]
    needed = [] if kind == "reject" else list(own)
    return {
        "type": "object",
        "properties": {"type": {"type": "string", "const": kind}, **own, **(label or {})},
        "required": ["type", *needed],
        "additionalProperties": False,
    }


def _with_defs(schema: dict[str, Any], defs: Mapping[str, Any]) -> dict[str, Any]:
    return {**schema, "$defs": dict(defs)} if defs else schema


def branches_of(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the decisions that a schema allows, by type, in its order. `defs`: the `$defs` of the whole schema."""
    found: dict[str, Mapping[str, Any]] = {}
    for each in schema.get("oneOf", [schema]):
        branch = resolved(each, defs)
        kind = branch.get("properties", {}).get("type", {}).get("const")
        if isinstance(kind, str):
            found[kind] = branch
    return found


# --- answers ----------------------------------------------------------------------------------------------------------


def read_decision(answer: Any, schema: Mapping[str, Any], name: str, allowed: Sequence[str]) -> dict[str, Any]:
    """Return the decision on one call of tool `name`, checked. Raises pydantic.ValidationError."""
    title = f"decision on {name!r}"
    decision = _snake(answer, title, ())
    kind = check_type(decision, allowed, title)
    if wrong := find_misfits(schema, decision):
        defs = schema.get("$defs", {})
        branch = branches_of(schema, defs).get(kind)
        found = [] if branch is None else find_misfits({**branch, "$defs": defs}, decision)
        # Arguments for another tool are no news when the edit names another tool.
        found = [misfit for misfit in found if misfit[0] == ("edited_action", "name")] or found
        raise validation_error(title, [((kind, *place), rule, text) for place, rule, text in found] or wrong)
    return decision


def read_batch(
    answer: Any,
    payload: Mapping[str, Any],
    schema: Mapping[str, Any],
    tool_call_ids: Sequence[str],
    tools: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """Return the decisions on the calls of a batched question, in the order of the calls, checked.

    `tools` are all that the agent has, to tell one that an edit may not name from one that does not exist.
    Raises pydantic.ValidationError (a ValueError).
    """
    title = "decisions"
    given = answer.get("decisions") if isinstance(answer, dict) else None
    if not isinstance(answer, dict):
        raise _refusal(title, (), "dict_type", f'The answer is an object {{"decisions": [...]}}; got {_kind(answer)}')
    if "decisions" not in answer:
        raise _refusal(title, ("decisions",), "missing", "Field required")
    if not isinstance(given, list | tuple):
        raise _refusal(title, ("decisions",), "list_type", f"A list of decisions is wanted; got {_kind(given)}")
    actions = payload["action_requests"]
    if len(given) != len(actions):
        text = f"Number of human decisions ({len(given)}) does not match number of hanging tool calls ({len(actions)})."
        raise _refusal(title, ("decisions",), "value_error", text)
    decisions = [_snake(each, title, ("decisions", n)) for n, each in enumerate(given)]
    ordered = _in_order(decisions, tool_call_ids, title)
    entries = schema["properties"]["decisions"]["prefixItems"]
    defs = schema.get("$defs", {})
    meant = {}
    for n, entry, action in zip(ordered, entries, actions, strict=True):
        branches = branches_of(entry, defs)
        kind = _kind_in_batch(decisions[n], list(branches), action["name"], ("decisions", n))
        meant[n] = branches[kind]
        if kind == "edit":
            meant[n] = _aimed(decisions[n], branches[kind], defs, tools, ("decisions", n))
    result = [decisions[n] for n in ordered]
    if wrong := find_misfits(schema, {"decisions": result}):
        found = [
            (("decisions", n, decisions[n]["type"], *place), rule, text)
            for n in sorted(ordered)
            for place, rule, text in find_misfits({**meant[n], "$defs": defs}, decisions[n])
        ]
        raise validation_error(title, found or wrong)
    return result


def _snake(decision: Any, title: str, place: _Place) -> dict[str, Any]:
    """Return a decision with the protocol's own keys in snake_case. Nothing inside `args` is touched."""
    if not isinstance(decision, dict):
        text = f'A decision is an object such as {{"type": "approve"}}; got {_kind(decision)}'
        raise _refusal(title, place, "dict_type", text)
    renamed = {"editedAction": "edited_action", "toolCallId": "tool_call_id"}
    snake = {renamed[k] if k in renamed and renamed[k] not in decision else k: v for k, v in decision.items()}
    if isinstance(snake.get("type"), Enum):
        snake["type"] = snake["type"].value
    return snake


def check_type(decision: Mapping[str, Any], allowed: Sequence[str], title: str) -> str:
    """Return a decision's type; raises pydantic.ValidationError if it is none of the allowed."""
    if "type" not in decision:
        raise _refusal(title, (), "union_tag_not_found", "Unable to extract tag using discriminator 'type'")
    tag = decision["type"]
    if not isinstance(tag, str) or tag not in allowed:
        shown = _cut(str(tag))
        expected = ", ".join(map(repr, allowed))
        text = f"Input tag {shown!r} found using 'type' does not match any of the expected tags: {expected}"
        raise _refusal(title, (), "union_tag_invalid", text)
    return tag


def _kind_in_batch(decision: Mapping[str, Any], allowed: list[str], tool: str, place: _Place) -> str:
    if "type" not in decision:
        text = f"Unable to extract tag using discriminator 'type'; expected one of {allowed} for tool {tool!r}"
        raise _refusal("decisions", place, "union_tag_not_found", text)
    kind = decision["type"]
    if not isinstance(kind, str) or kind not in allowed:
        text = (
            f"Unexpected human decision: {_cut(repr(dict(decision)))}. Decision type '{_cut(str(kind))}' is not allowed for "
            f"tool '{tool}'. Expected one of {allowed} based on the tool's configuration."
        )
        raise _refusal("decisions", place, "value_error", text)
    return kind


def _in_order(decisions: Sequence[Mapping[str, Any]], tool_call_ids: Sequence[str], title: str) -> list[int]:
    """Return which decision is for each call: the one that bears its id, or else the one at its place."""
    taken: dict[int, int] = {}
    for n, decision in enumerate(decisions):
        label = decision.get("tool_call_id")
        calls = [n] if "tool_call_id" not in decision else [c for c, i in enumerate(tool_call_ids) if i == label]
        free = [call for call in calls if call not in taken]
        if free:
            taken[free[0]] = n
            continue
        place = ("decisions", n, "tool_call_id")
        if calls:
            text = (
                f"Decisions {taken[calls[0]] + 1} and {n + 1} are both for call {tool_call_ids[calls[0]]!r}; label every "
                f"decision with the id of its call, or none"
            )
        else:
            text = f"This question asks about no call of that id; its calls are {', '.join(map(repr, tool_call_ids))}"
        raise _refusal(title, place, "value_error", text)
    return [taken[call] for call in range(len(decisions))]


def _aimed(
    decision: dict[str, Any],
    branch: Mapping[str, Any],
    defs: Mapping[str, Any],
    tools: Sequence[str] | None,
    place: _Place,
) -> Mapping[str, Any]:
    """Return the branch of an edit for the tool that it names; refuse one that it may not name."""
    action = decision.get("edited_action")
    name = action.get("name") if isinstance(action, dict) else None
    if not isinstance(name, str):
        return branch
    targets = targets_of(branch["properties"]["edited_action"], defs)
    if name in targets:
        return {**branch, "properties": {**branch["properties"], "edited_action": targets[name]}}
    if tools is not None and name in tools:
        text = f"Tool '{name}' is there, but its policy does not let this call be edited into it"
    else:
        text = f"'{_cut(name)}' is not an available tool"
    text = f"{text}; an edit may name one of {list(targets)}"
    raise _refusal("decisions", (*place, "edit", "edited_action", "name"), "value_error", text)


def targets_of(action_schema: Mapping[str, Any], defs: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the schemas of the actions that an edit may give, by the tool they name."""
    found = {}
    for each in action_schema.get("oneOf", [action_schema]):
        schema = resolved(each, defs)
        found[schema["properties"]["name"]["const"]] = schema
    return found


def _refusal(title: str, place: _Place, rule: str, text: str) -> ValidationError:
    return validation_error(title, [(place, rule, text)])


def _kind(value: Any) -> str:
    """Name what an answer is, in the words of JSON."""
    names = {dict: "an object", str: "text", bool: "a boolean", int: "a number", float: "a number"}
    if value is None:
        return "null"
    return "a list" if isinstance(value, list | tuple) else names.get(type(value), f"a {type(value).__name__}")


def _cut(text: str) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _ECHOED else f"{text[:_ECHOED]}..."


# --- at the door ------------------------------------------------------------------------------------------------------


def _read_tool_approval(payload: Any, schema: Mapping[str, Any], _: Mapping[str, Any], answer: Any) -> Any:
    allowed = list(branches_of(schema, schema.get("$defs", {})))
    return read_decision(answer, schema, payload["name"], allowed)


def _read_hitl_request(payload: Any, schema: Mapping[str, Any], form_data: Mapping[str, Any], answer: Any) -> Any:
    ids = form_data["tool_call_ids"]
    decisions = read_batch(answer, payload, schema, ids, form_data.get("tools"))
    return {**answer, "decisions": decisions}


forms.register(TOOL_APPROVAL, _read_tool_approval)
forms.register(HITL_REQUEST, _read_hitl_request)
