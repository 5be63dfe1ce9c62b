"""A question that wants decisions on tool calls, or word of an effect in doubt, as a card: all of it, nothing cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from waitpoint.cli import safe
from waitpoint.shown import payloads
from waitpoint.shown.calls import Call, Review

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
    main = payloads.main_argument(args)
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
    return safe.lines(call.own_words) or "It has no description."


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
        yield f"{name}{payloads.kind(value)}  {first}"
        yield from (" " * len(name) + line for line in more)


# --- in doubt ---------------------------------------------------------------------------------------------------------


def doubt_summary(payload: Mapping[str, Any]) -> str:
    """Return the question of an effect in doubt in one line."""
    return f"Did this happen? {short_call(payload['name'], payloads.doubted_arguments(payload))}"


def doubt_lines(payload: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that show an effect in doubt."""
    what = "tool call" if payload.get("kind") == "tool" else "step"
    yield f"Did the {what} {safe.line(payload['name'])} happen? It was begun, and its end is not on record."
    yield ""
    yield from (f"  {line}".rstrip() for line in argument_lines(payloads.doubted_arguments(payload)))
    yield ""
    for key, value in payload.items():
        if key not in {"type", "kind", "name", "args"}:
            yield f"  {safe.line(key)}: {safe.json_text(value, indent=None)}"


def doubt_choice(answer: Mapping[str, Any]) -> str:
    """Say in words what an answer to such a question means."""
    return _DOUBT.get(str(answer.get("type")), "Or:")
