"""A question that wants decisions on tool calls, or word of an effect in doubt, as a card: all of it, nothing cut."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from waitpoint.cli import safe
from waitpoint.codec import to_json
from waitpoint.shown.calls import Call, Review

_MAIN = ("path", "file", "filename", "query", "sql", "command", "url", "to", "name", "title", "id", "question")
_DOUBT = {
    "happened": 'It happened (add its "result", if it gave one):',
    "not_happened": "It did not happen, so run it:",
    "run_again": "Run it again, whether it happened or not:",
    "stop": "Run nothing; the node fails:",
}


# --- one line ---------------------------------------------------------------------------------------------------------


def summary(review: Review) -> str:
    """Return the calls in one line, each with its main argument."""
    calls = "; ".join(short_call(call.name, call.args) for call in review.calls)
    return f"{len(review.calls)} calls: {calls}" if len(review.calls) > 1 else calls


def short_call(name: str, args: Mapping[str, Any]) -> str:
    """Return a call in one line: its tool, its main argument, and how many more there are."""
    main = next((key for key in _MAIN if key in args), next(iter(args), None))
    if main is None:
        return f"{safe.line(name)}()"
    rest = f", +{len(args) - 1} more" if len(args) > 1 else ""
    return f"{safe.line(name)}({safe.line(main)}: {safe.json_text(args[main], indent=None)}{rest})"


# --- the whole --------------------------------------------------------------------------------------------------------


def review_lines(review: Review) -> Iterator[str]:
    """Yield the lines that show all calls of a question."""
    for call in review.calls:
        if review.is_batched:
            yield f"Call {call.number} of {len(review.calls)}: {safe.line(call.name)}"
        else:
            yield f"Tool call: {safe.line(call.name)}"
        yield ""
        yield from (f"  {line}".rstrip() for line in _sentence(call).split("\n"))
        yield ""
        if call.more:
            yield from (f"  {safe.line(key)}: {safe.json_text(value, indent=None)}" for key, value in call.more.items())
            yield ""
        yield from (f"  {line}".rstrip() for line in argument_lines(call.args))
        yield ""
        yield f"  Decisions: {', '.join(map(safe.line, call.allowed))}"
        yield ""


def _sentence(call: Call) -> str:
    """Return the description; of the default one only what it says beside the tool and its arguments."""
    told = f"\n\nTool: {call.name}\nArgs: {json.dumps(to_json(call.args), indent=2, ensure_ascii=False)}"
    return safe.lines(call.description.removesuffix(told)) or "It has no description."


def argument_lines(args: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that show arguments with their types; a text of several lines as these lines, each after a bar."""
    if not args:
        yield "It takes no arguments."
        return
    width = max(len(safe.line(key)) for key in args)
    for key, value in args.items():
        name = f"{safe.line(key):<{width}}  "
        if isinstance(value, str) and "\n" in value:
            lines = safe.lines(value).split("\n")
            yield f"{name}text of {len(lines)} lines:"
            yield from (f"  | {line}" for line in lines)
            continue
        first, *more = safe.json_text(value).split("\n")
        yield f"{name}{_kind(value)}  {first}"
        yield from (" " * len(name) + line for line in more)


def _kind(value: Any) -> str:
    plain = to_json(value)
    if plain is None:
        return "nothing"
    if isinstance(plain, bool):
        return "yes/no"
    if isinstance(plain, str):
        return "text"
    if isinstance(plain, int | float):
        return "number"
    return "list" if isinstance(plain, list) else "object"


# --- in doubt ---------------------------------------------------------------------------------------------------------


def is_in_doubt(payload: Any) -> bool:
    """Whether a question asks if an effect took place."""
    return (
        isinstance(payload, dict)
        and payload.get("type") == "in_doubt"
        and isinstance(payload.get("name"), str)
        and isinstance(payload.get("args"), dict)
    )


def doubt_summary(payload: Mapping[str, Any]) -> str:
    """Return the question of an effect in doubt in one line."""
    return f"Did this happen? {short_call(payload['name'], _named_arguments(payload))}"


def doubt_lines(payload: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that show an effect in doubt."""
    what = "tool call" if payload.get("kind") == "tool" else "step"
    yield f"Did the {what} {safe.line(payload['name'])} happen? It was begun, and its end is not on record."
    yield ""
    yield from (f"  {line}".rstrip() for line in argument_lines(_named_arguments(payload)))
    yield ""
    for key, value in payload.items():
        if key not in {"type", "kind", "name", "args"}:
            yield f"  {safe.line(key)}: {safe.json_text(value, indent=None)}"


def _named_arguments(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments by name; those that a step was given by position are numbered."""
    args: Mapping[str, Any] = payload["args"]
    if payload.get("kind") != "step" or args.keys() != {"args", "kwargs"}:
        return args
    by_position, by_name = args["args"], args["kwargs"]
    if not isinstance(by_position, list) or not isinstance(by_name, dict):
        return args
    return {**{f"#{n}": value for n, value in enumerate(by_position, start=1)}, **by_name}


def doubt_choice(answer: Mapping[str, Any]) -> str:
    """Say in words what an answer to such a question means."""
    return _DOUBT.get(str(answer.get("type")), "Or:")
