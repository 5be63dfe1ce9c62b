"""Finds the key by which the branches of a `oneOf` or `anyOf` are told apart, such as a `type` that is constant in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

_MOST_REFERENCES = 16


class Tagged(NamedTuple):
    """Branches with a tag: its key, whether all ask for it, and the values it has in each branch, in their order."""

    key: str
    is_required: bool
    values: tuple[tuple[Any, ...], ...]


def tagged(root: Any, path: Sequence[str | int]) -> Tagged | None:
    """Return the tag of the branches that lie at a path of a schema; None if no key tells them all apart."""
    try:
        found = root
        for step in path:
            found = found[step]
        branches = [_resolved(each, root) for each in found]
    except (KeyError, IndexError, TypeError):
        return None  # the path is that of a document inside this one
    if len(branches) < 2:
        return None
    for key in branches[0].get("properties", {}):
        values = [_constants(branch, key, root) for branch in branches]
        every = [value for each in values for value in each]
        if all(values) and len({repr(value) for value in every}) == len(every):
            is_required = all(key in branch.get("required", ()) for branch in branches)
            return Tagged(key, is_required, tuple(values))
    return None


def _constants(branch: Mapping[str, Any], key: str, root: Any) -> tuple[Any, ...]:
    """Return the values that a key can have in a branch, if these are few and given."""
    schema = _resolved(branch.get("properties", {}).get(key), root)
    if "const" in schema:
        return (schema["const"],)
    given = schema.get("enum")
    return tuple(given) if isinstance(given, list) else ()


def _resolved(schema: Any, root: Any) -> Mapping[str, Any]:
    for _ in range(_MOST_REFERENCES):
        if not isinstance(schema, Mapping):
            return {}
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            return schema
        if not ref.startswith("#/"):
            return {}
        target = root
        for part in ref[2:].split("/"):
            target = target[unquote(part).replace("~1", "/").replace("~0", "~")]
        schema = target
    return {}
