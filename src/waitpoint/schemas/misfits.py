"""What is wrong with an answer, in the terms of the person who gave it, and never with the answer itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import jsonschema_rs
    from pydantic import ValidationError
    from pydantic_core import InitErrorDetails

Misfit = tuple[tuple[str | int, ...], str, str]
"""Where, which rule, and what is wrong."""


def misfits(error: jsonschema_rs.ValidationError, answer: Any) -> Iterator[Misfit]:
    """Yield what is wrong in the terms of a person: the missing or unexpected key, the branch that was meant."""
    kind: Any = error.kind
    place = tuple(error.instance_path)
    if kind.name in {"oneOf", "anyOf"} and getattr(kind, "context", None):
        yield from _in_branches(kind.context, error, answer)
    elif kind.name == "required":
        yield (*place, kind.property), "missing", "Field required"
    elif kind.name in {"additionalProperties", "unevaluatedProperties"}:
        for name in kind.unexpected:
            yield (*place, name), "extra_forbidden", "Extra inputs are not permitted"
    elif kind.name == "falseSchema" and error.schema_path[-1] == "additionalProperties":
        for name in _at(answer, error.instance_path):
            yield (*place, name), "extra_forbidden", "Extra inputs are not permitted"
    elif kind.name == "propertyNames":
        yield place, kind.name, "a key of the answer is not allowed here"
    else:
        yield place, kind.name, error.message


def _in_branches(
    branches: list[list[jsonschema_rs.ValidationError]],
    error: jsonschema_rs.ValidationError,
    answer: Any,
) -> Iterator[Misfit]:
    """Report the one branch that can have been meant: the others fail at a constant key, or by their very type."""
    depth = len(error.instance_path)
    meant = [branch for branch in branches if not any(_rules_out(each, depth) for each in branch)]
    tags = {key: value for branch in branches for each in branch for key, value in _constant(each, depth)}
    if len(meant) == 1:
        name = _tag_in(answer, error.instance_path, tags)
        yield from (_shifted(line, depth, name) for each in meant[0] for line in misfits(each, answer))
        return
    place = tuple(error.instance_path)
    if not meant and len(tags) == 1:
        expected = sorted({repr(v) for branch in branches for each in branch for _, v in _constant(each, depth)})
        text = f"{next(iter(tags))!r} does not match any of the expected tags: {', '.join(expected)}"
        yield place, "union_tag_invalid", text
    elif (key := _missed_by_all(branches, depth)) is not None:
        yield (*place, key), "missing", "Field required"
    else:
        yield place, error.kind.name, error.message


def _rules_out(error: jsonschema_rs.ValidationError, depth: int) -> bool:
    at = len(error.instance_path) - depth
    return (at == 0 and error.kind.name in {"type", "const", "enum"}) or (at == 1 and error.kind.name == "const")


def _constant(error: jsonschema_rs.ValidationError, depth: int) -> Iterator[tuple[str, Any]]:
    kind: Any = error.kind
    if kind.name == "const" and len(error.instance_path) == depth + 1:
        yield str(error.instance_path[-1]), kind.expected_value


def _missed_by_all(branches: list[list[jsonschema_rs.ValidationError]], depth: int) -> str | None:
    """Return the first key that every branch asks for and the answer lacks: without it no branch can be meant."""
    missed = [
        [str(cast("Any", each.kind).property) for each in branch if _lacks_key(each, depth)] for branch in branches
    ]
    return next((key for key in missed[0] if all(key in keys for keys in missed)), None) if missed else None


def _lacks_key(error: jsonschema_rs.ValidationError, depth: int) -> bool:
    return error.kind.name == "required" and len(error.instance_path) == depth


def _tag_in(answer: Any, path: list[str | int], tags: dict[str, Any]) -> str | None:
    """Return the tag by which the answer chose its branch, if there is one key for that."""
    if len(tags) != 1:
        return None
    chosen = _at(answer, path)
    tag = chosen.get(next(iter(tags))) if isinstance(chosen, dict) else None
    return tag if isinstance(tag, str) else None


def _at(answer: Any, path: list[str | int]) -> Any:
    for step in path:
        answer = answer[step]
    return answer


def _shifted(line: Misfit, depth: int, name: str | None) -> Misfit:
    """Put the tag of the branch into the path, as pydantic does."""
    place, rule, message = line
    return (place if name is None else (*place[:depth], name, *place[depth:])), rule, message


def validation_error(title: str, lines: list[Misfit]) -> ValidationError:
    """Return pydantic's error for these misfits; it holds nothing of the answer."""
    from pydantic import ValidationError
    from pydantic_core import PydanticCustomError

    details: list[InitErrorDetails] = [
        {"type": PydanticCustomError(cast("Any", rule), cast("Any", message)), "loc": place, "input": None}
        for place, rule, message in lines
    ]
    return ValidationError.from_exception_data(title, details, hide_input=True)
