"""What a payload says, by its shape: its main words, whether it is about an effect in doubt, what kind its values are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from waitpoint.codec import to_json

_MAIN = ("path", "file", "filename", "query", "sql", "command", "url", "to", "name", "title", "id", "question")
_WORDS = ("question", "message", "prompt", "instruction", "title", "text", "description")


def main_argument(args: Mapping[str, Any]) -> str | None:
    """Return the name of the argument that says most about a call; None if it has none."""
    return next((key for key in _MAIN if key in args), next(iter(args), None))


def words(payload: Mapping[str, Any]) -> str | None:
    """Return the sentence in a payload, if it has one."""
    return next((payload[w].strip() for w in _WORDS if isinstance(payload.get(w), str) and payload[w].strip()), None)


def kind(value: Any) -> str:
    """Name the kind of a value."""
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


def is_in_doubt(payload: Any) -> bool:
    """Whether a question asks if an effect took place."""
    return (
        isinstance(payload, dict)
        and payload.get("type") == "in_doubt"
        and isinstance(payload.get("name"), str)
        and isinstance(payload.get("args"), dict)
    )


def doubted_arguments(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of an effect in doubt by name; those that a step was given by position are numbered."""
    args: Mapping[str, Any] = payload["args"]
    if payload.get("kind") != "step" or args.keys() != {"args", "kwargs"}:
        return args
    by_position, by_name = args["args"], args["kwargs"]
    if not isinstance(by_position, list) or not isinstance(by_name, dict):
        return args
    return {**{f"#{n}": value for n, value in enumerate(by_position, start=1)}, **by_name}
