"""Example answers for a question's JSON Schema, ready to be typed, and its fields in words."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from waitpoint import schemas

MOST = 4
_DEPTH = 6

Schema = Mapping[str, Any]


class Field(NamedTuple):
    """One field of an answer, for people."""

    name: str
    kind: str
    is_required: bool
    about: str


def samples(schema: Schema | None) -> list[Any]:
    """Return up to four answers that the schema takes; none if it says too little, or too much, to make one up."""
    if schema is None:
        return []
    made = itertools.islice(_samples(schema, schema, 0), MOST)
    return [answer for answer in made if _fits(schema, answer)]


def _fits(schema: Schema, answer: Any) -> bool:
    try:
        schemas.check_answer(dict(schema), answer, title="")
    except ValueError:
        return False
    return True


def fields(schema: Schema) -> list[Field]:
    """List the fields of an answer that is an object; of any other the answer itself, under no name."""
    whole = resolved(schema, schema)
    properties = whole.get("properties")
    if not isinstance(properties, Mapping):
        return [Field("", kind(whole, schema), True, _text(whole.get("description")))]
    required = whole.get("required", ())
    return [
        Field(name, kind(each, schema), name in required, _text(resolved(each, schema).get("description")))
        for name, each in properties.items()
    ]


def kind(schema: Any, root: Schema) -> str:
    """Say in a few words what a schema takes."""
    schema = resolved(schema, root)
    if "const" in schema:
        return repr(schema["const"])
    if isinstance(schema.get("enum"), list):
        return " | ".join(repr(each) for each in schema["enum"])
    for branches in (schema.get("anyOf"), schema.get("oneOf")):
        if isinstance(branches, list) and branches:
            return " | ".join(dict.fromkeys(kind(each, root) for each in branches))
    given = schema.get("type")
    if given == "array":
        return f"list of {kind(schema['items'], root)}" if isinstance(schema.get("items"), Mapping) else "list"
    if isinstance(given, list):
        return " | ".join(str(each) for each in given)
    return {"string": "text", "boolean": "true | false", "null": "null"}.get(str(given), str(given or "any value"))


def _samples(schema: Any, root: Schema, depth: int) -> Iterator[Any]:
    schema = resolved(schema, root)
    if depth > _DEPTH:
        yield None
    elif "const" in schema:
        yield schema["const"]
    elif isinstance(schema.get("enum"), list):
        yield from schema["enum"]
    elif isinstance(branches := schema.get("oneOf") or schema.get("anyOf"), list):
        for branch in branches:
            yield from itertools.islice(_samples(branch, root, depth + 1), 1 if len(branches) > 1 else None)
    elif isinstance(schema.get("properties"), Mapping):
        yield from _objects(schema, root, depth)
    else:
        yield from _plain(schema, root, depth)


def _objects(schema: Schema, root: Schema, depth: int) -> Iterator[Any]:
    """Yield objects with their required fields; the first field that has a choice shows its choices."""
    required = [name for name in schema.get("required", ()) if name in schema["properties"]]
    names = required or list(schema["properties"])[:1]
    choices = {n: list(itertools.islice(_samples(schema["properties"][n], root, depth + 1), MOST)) for n in names}
    base = {name: found[0] for name, found in choices.items() if found}
    varied = next((name for name, found in choices.items() if len(found) > 1), None)
    if varied is None:
        yield base
        return
    for choice in choices[varied]:
        yield {**base, varied: choice}


def _plain(schema: Schema, root: Schema, depth: int) -> Iterator[Any]:
    given = schema.get("type")
    given = given[0] if isinstance(given, list) and given else given
    if "default" in schema:
        yield schema["default"]
    elif given == "boolean":
        yield from (True, False)
    elif given in ("integer", "number"):
        yield schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1 if "exclusiveMinimum" in schema else 0)
    elif given == "array":
        inner = next(_samples(schema.get("items", {}), root, depth + 1), "...")
        yield [inner] * max(1, int(schema.get("minItems", 1)))
    elif given == "object":
        yield {}
    elif given == "null":
        yield None
    elif given == "string":
        yield "..."


def resolved(schema: Any, root: Schema) -> Schema:
    """Follow references inside the document; a schema that is just true or false says nothing."""
    for _ in range(_DEPTH):
        if not isinstance(schema, Mapping):
            return {}
        pointer = schema.get("$ref")
        if not isinstance(pointer, str) or not pointer.startswith("#/"):
            return schema
        target: Any = root
        for part in pointer[2:].split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            target = target.get(name, {}) if isinstance(target, Mapping) else {}
        schema = target
    return {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
