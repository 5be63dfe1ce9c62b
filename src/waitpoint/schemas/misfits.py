"""What is wrong with an answer, in the terms of the person who gave it, and never with the answer itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from waitpoint.schemas.branches import Tagged, tagged

if TYPE_CHECKING:
    import jsonschema_rs
    from pydantic import ValidationError
    from pydantic_core import InitErrorDetails

Misfit = tuple[tuple[str | int, ...], str, str]
"""Where, which rule, and what is wrong."""


def misfits(error: jsonschema_rs.ValidationError, answer: Any, schema: Mapping[str, Any]) -> Iterator[Misfit]:
    """Yield what is wrong in the terms of a person: the missing or unexpected key, the branch that was meant."""
    kind: Any = error.kind
    place = _place(answer, error.instance_path)
    if kind.name in {"oneOf", "anyOf"} and getattr(kind, "context", None):
        yield from _in_branches(error, answer, schema)
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


def _in_branches(error: jsonschema_rs.ValidationError, answer: Any, schema: Mapping[str, Any]) -> Iterator[Misfit]:
    """Report the one branch that was meant: the one that the answer's tag names, or that its form leaves possible."""
    kind: Any = error.kind
    branches: list[list[jsonschema_rs.ValidationError]] = kind.context
    depth = len(error.instance_path)
    tag = tagged(schema, error.schema_path)
    chosen = _at(answer, error.instance_path)
    if tag is not None and isinstance(chosen, dict) and (tag.is_required or tag.key in chosen):
        yield from _by_tag(error, answer, schema, tag)
        return
    meant = [branch for branch in branches if not any(_rules_out(each, depth) for each in branch)]
    if len(meant) == 1:
        yield from (line for each in meant[0] for line in misfits(each, answer, schema))
    elif (key := _missed_by_all(branches, depth)) is not None:
        yield (*_place(answer, error.instance_path), key), "missing", "Field required"
    elif all(_is_of_another_type(branch, depth) for branch in branches) and branches:
        first = branches[0][0]
        same = all(branch[0].message == first.message for branch in branches)
        yield (
            _place(answer, error.instance_path),
            "type" if same else kind.name,
            first.message if same else error.message,
        )
    else:
        yield _place(answer, error.instance_path), kind.name, error.message


def _by_tag(
    error: jsonschema_rs.ValidationError, answer: Any, schema: Mapping[str, Any], tag: Tagged
) -> Iterator[Misfit]:
    kind: Any = error.kind
    place = _place(answer, error.instance_path)
    chosen = _at(answer, error.instance_path)
    if tag.key not in chosen:
        yield (*place, tag.key), "missing", "Field required"
        return
    number = next((n for n, values in enumerate(tag.values) if _is_among(chosen[tag.key], values)), None)
    if number is None:
        expected = ", ".join(repr(value) for values in tag.values for value in values)
        yield place, "union_tag_invalid", f"{tag.key!r} does not match any of the expected tags: {expected}"
        return
    name = chosen[tag.key] if isinstance(chosen[tag.key], str) else None
    lines = [line for each in kind.context[number] for line in misfits(each, answer, schema)]
    # Invariant: what does not fit yields at least one line, or it would be taken for an answer that does.
    yield from [_shifted(line, len(place), name) for line in lines] or [(place, kind.name, error.message)]


def _is_among(value: Any, values: Sequence[Any]) -> bool:
    """Whether a value is one of these by the rules of JSON, where true is not 1."""
    return any(value == each and isinstance(value, bool) == isinstance(each, bool) for each in values)


def _rules_out(error: jsonschema_rs.ValidationError, depth: int) -> bool:
    at = len(error.instance_path) - depth
    return (at == 0 and error.kind.name in {"type", "const", "enum"}) or (at == 1 and error.kind.name == "const")


def _is_of_another_type(branch: list[jsonschema_rs.ValidationError], depth: int) -> bool:
    return len(branch) == 1 and branch[0].kind.name == "type" and len(branch[0].instance_path) == depth


def _missed_by_all(branches: list[list[jsonschema_rs.ValidationError]], depth: int) -> str | None:
    """Return the first key that every branch asks for and the answer lacks: without it no branch can be meant."""
    missed = [
        [str(cast("Any", each.kind).property) for each in branch if _lacks_key(each, depth)] for branch in branches
    ]
    return next((key for key in missed[0] if all(key in keys for keys in missed)), None) if missed else None


def _lacks_key(error: jsonschema_rs.ValidationError, depth: int) -> bool:
    return error.kind.name == "required" and len(error.instance_path) == depth


def _at(answer: Any, path: list[str | int]) -> Any:
    for step in _place(answer, path):
        answer = answer[step]
    return answer


def _place(answer: Any, path: list[str | int]) -> tuple[str | int, ...]:
    """Return a path with the keys that the answer has: the validator writes digits as a number and leaves out empty keys."""
    place: list[str | int] = []
    for step in path:
        while isinstance(answer, dict) and (key := _key(answer, step)) is None and "" in answer:
            place.append("")
            answer = answer[""]
        found = key if isinstance(answer, dict) else step
        if found is None:
            break
        place.append(found)
        answer = answer[found]
    return tuple(place)


def _key(answer: dict[str, Any], step: str | int) -> str | None:
    names = (str(step), *(name for name in answer if isinstance(step, int) and _number(name) == step))
    return next((name for name in names if name in answer), None)


def _number(name: str) -> int | None:
    digits = name.removeprefix("+")
    return int(digits) if digits.isascii() and digits.isdecimal() else None


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
