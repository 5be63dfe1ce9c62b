"""Forms made from a JSON Schema: the fields that show a value, and the value read back from what a browser sent.

What no field fits is JSON in a text field. A form that was sent is made again from what was typed, so nothing of that is
lost when something in it is wrong.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from waitpoint.inbox import marked
from waitpoint.records import MISSING
from waitpoint.shown import samples

Kind = Literal["text", "integer", "number", "boolean", "choice", "fixed", "group", "list", "json"]
Schema = Mapping[str, Any]
Sent = Mapping[str, str]

GIVEN, NULL, OUT = "given", "null", "out"  # whether an optional field has a value, is null, or is left out
_DEPTH = 4
_MOST_ITEMS = 200
_WHOLE = re.compile(r"\s*[-+]?\d+\s*")


@dataclass(slots=True)
class Field:
    """One field. `given` is what stands in it, `parts` are the fields inside it; `key` is its place in the value."""

    name: str
    key: str | int
    label: str
    kind: Kind
    schema: Schema
    is_required: bool = True
    is_nullable: bool = False
    about: str = ""
    given: str = ""
    state: str = GIVEN
    was: str = GIVEN  # its state before anybody typed
    choices: list[tuple[str, str]] = field(default_factory=list)
    parts: list[Field] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)  # names of entries that were removed
    error: str = ""

    @property
    def id(self) -> str:
        """Its id in the page."""
        return "f-" + re.sub(r"[^A-Za-z0-9_-]", lambda m: f"_{ord(m.group()):x}_", self.name)

    @property
    def size(self) -> int:
        """How many entries of a list its form has; those that were removed keep their numbers."""
        return len(self.parts) + len(self.dropped)

    @property
    def states(self) -> list[tuple[str, str]]:
        """The states that can be chosen; none where the field itself says it."""
        if self.kind in ("boolean", "choice", "fixed"):
            return []
        if self.kind in ("integer", "number", "json") and not self.is_nullable:
            return []  # empty is left out
        found = [(NULL, "no value (null)")] if self.is_nullable else []
        found += [] if self.is_required else [(OUT, "left out")]
        return [(GIVEN, "as given"), *found] if found else []

    @property
    def words(self) -> str:
        """What it takes, in a few words."""
        plain = {
            "text": "text", "integer": "whole number", "number": "number", "boolean": "yes/no", "choice": "one of these",
            "group": "object", "list": "list", "json": "JSON", "fixed": "fixed",
        }  # fmt: skip
        return plain[self.kind] + ("" if self.is_required else ", optional")

    @property
    def rows(self) -> int:
        """How many lines its text field has at first."""
        return min(16, self.given.count("\n") + 1 + len(self.given) // 90)

    def has_errors(self) -> bool:
        """Whether something is wrong in it."""
        return bool(self.error) or any(part.has_errors() for part in self.parts)


class Form:
    """Makes fields of one schema, filled with a value or with what was sent."""

    def __init__(self, root: Schema, sent: Sent | None = None) -> None:
        self._root, self._sent = root, sent

    def field(
        self, name: str, schema: Any, value: Any = MISSING, *, label: str = "", key: str | int = "", required: bool = True,
        depth: int = 0,
    ) -> Field:  # fmt: skip
        """Make the field of a schema; `value` is a JSON value that it holds at first."""
        schema, is_nullable = self._plain(schema)
        made = Field(name, key, label, _kind(schema, value, depth), schema, required, is_nullable)
        made.about = str(schema.get("description") or "")
        if value is MISSING and "default" in schema:
            value = schema["default"]
        made.was = made.state = OUT if value is MISSING and not required else NULL if value is None else GIVEN
        if made.kind == "json" and value is None and not is_nullable:
            made.was = made.state = GIVEN  # null as JSON
        self._choose(made, value)
        if made.kind == "group":
            self._grouped(made, {} if value is MISSING or value is None else value, depth)
        elif made.kind == "list":
            self._listed(made, [] if value is MISSING or value is None else value, depth)
        else:
            made.given = _shown(made, value)
        if self._sent is not None:
            self._fill(made, self._sent)
        return made

    def _fill(self, made: Field, sent: Sent) -> None:
        typed = sent.get(made.name)
        if typed is not None:
            made.given = typed.replace("\r\n", "\n")
        chosen = sent.get(f"{made.name}:is")
        if chosen in (GIVEN, NULL, OUT):
            made.state = chosen
        if made.state == OUT == made.was and made.given and made.kind not in ("group", "list"):
            made.state = GIVEN  # typed into a field that was left out

    def _grouped(self, made: Field, value: Mapping[str, Any], depth: int) -> None:
        properties: Mapping[str, Any] = made.schema.get("properties", {})
        required = made.schema.get("required", ())
        for key, of in properties.items():
            part = self.field(
                f"{made.name}/{_escaped(key)}", of, value.get(key, MISSING), label=key, key=key, required=key in required,
                depth=depth + 1,
            )  # fmt: skip
            made.parts.append(part)
        for key, extra in value.items():
            if key not in properties:
                name = f"{made.name}/{_escaped(key)}"
                made.parts.append(self.field(name, {}, extra, label=key, key=key, required=False, depth=depth + 1))

    def _listed(self, made: Field, value: list[Any], depth: int) -> None:
        count = len(value)
        if self._sent is not None:
            typed = self._sent.get(f"{made.name}:n", "")
            count = min(int(typed), _MOST_ITEMS) if typed.isdecimal() and len(typed) < 6 else count
            if self._sent.get("add") == made.name:
                count += 1
                made.state = GIVEN
        for n in range(count):
            if self._sent is not None and f"{made.name}/{n}:drop" in self._sent:
                made.dropped.append(f"{made.name}/{n}")
                continue
            item = value[n] if n < len(value) else MISSING
            of = made.schema.get("items", {})
            made.parts.append(self.field(f"{made.name}/{n}", of, item, label=f"{n + 1}", key=n, depth=depth + 1))

    def _choose(self, made: Field, value: Any) -> None:
        """Give a field its choices, by the JSON of each."""
        if made.kind == "boolean":
            made.choices = [("true", "yes"), ("false", "no")]
        elif made.kind == "choice":
            values = made.schema["enum"]
            made.choices = [
                (json.dumps(each), marked.plain(each if isinstance(each, str) else json.dumps(each))) for each in values
            ]
            made.is_nullable = made.is_nullable and None not in values
        else:
            return
        if made.is_nullable:
            made.choices.append(("null", "no value (null)"))
        if not made.is_required:
            made.choices.insert(0, ("", "left out"))
        elif value is MISSING:
            made.choices.insert(0, ("", "choose"))

    def _plain(self, schema: Any) -> tuple[Schema, bool]:
        """Return a schema without its references, and apart from it whether null is allowed."""
        schema = samples.resolved(schema, self._root)
        for word in ("anyOf", "oneOf"):
            branches = schema.get(word)
            if not isinstance(branches, list):
                continue
            plain = [samples.resolved(each, self._root) for each in branches]
            others = [each for each in plain if each.get("type") != "null"]
            if len(others) == 1 and len(plain) > 1:
                outer = {k: v for k, v in schema.items() if k != word}
                return {**others[0], **outer}, True
        given = schema.get("type")
        if isinstance(given, list) and "null" in given and len(given) == 2:
            return {**schema, "type": next(each for each in given if each != "null")}, True
        return schema, False


def _kind(schema: Schema, value: Any, depth: int) -> Kind:
    """Choose the kind of field for a schema, as far as the value fits into it."""
    is_new = value is MISSING or value is None
    if "const" in schema:
        return "fixed" if is_new or value == schema["const"] else "json"
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return "choice" if is_new or value in schema["enum"] else "json"
    if any(word in schema for word in ("anyOf", "oneOf", "allOf", "not", "if", "prefixItems")):
        return "json"
    found = _plain_kind(schema, is_new, value)
    return "json" if found in ("group", "list") and depth >= _DEPTH else found


def _plain_kind(schema: Schema, is_new: bool, value: Any) -> Kind:
    given = schema.get("type")
    if given == "string" and (is_new or (isinstance(value, str) and not marked.hides(value))):
        return "text"
    if given == "boolean" and (is_new or isinstance(value, bool)):
        return "boolean"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if given == "integer" and (is_new or is_number):
        return "integer"
    if given == "number" and (is_new or is_number):
        return "number"
    if isinstance(schema.get("properties"), Mapping) and (is_new or isinstance(value, Mapping)):
        return "group"
    if given == "array" and isinstance(schema.get("items"), Mapping) and (is_new or isinstance(value, list)):
        return "list"
    return "json"


def _shown(made: Field, value: Any) -> str:
    if made.kind == "fixed":
        return marked.json_text(made.schema["const"], indent=None)
    if value is MISSING:
        return ""
    if value is None:
        return "null" if made.kind in ("boolean", "choice", "json") and made.state == GIVEN else _null(made)
    if made.kind == "text":
        return str(value)
    return json.dumps(value) if made.kind in ("boolean", "choice", "integer", "number") else marked.json_text(value)


def _null(made: Field) -> str:
    return "null" if made.kind in ("boolean", "choice") else ""


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


# --- back -------------------------------------------------------------------------------------------------------------


def read(made: Field) -> Any:
    """Return the value of what stands in a field, `MISSING` if it is left out; what is wrong is noted at the fields."""
    if made.state == NULL:
        return None
    if made.state == OUT and made.kind not in ("boolean", "choice", "integer", "number", "json", "fixed"):
        return MISSING
    if made.kind == "group":
        values = {part.key: read(part) for part in made.parts}
        return {key: value for key, value in values.items() if value is not MISSING}
    if made.kind == "list":
        return [None if (value := read(part)) is MISSING else value for part in made.parts]
    if made.kind == "fixed":
        return MISSING if made.was == OUT else made.schema["const"]
    return made.given if made.kind == "text" else _parsed(made)


def _parsed(made: Field) -> Any:
    text = made.given.strip()
    if not text:
        if made.is_required:
            made.error = "Choose one" if made.kind in ("boolean", "choice") else f"A {made.words} is wanted"
        return MISSING
    if made.kind == "integer" and not _WHOLE.fullmatch(text):
        made.error = "A whole number is wanted"
        return MISSING
    try:
        value = json.loads(text.removeprefix("+"), parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        made.error = "A number is wanted" if made.kind in ("integer", "number") else f"This is no JSON: {error}"
        return MISSING
    if made.kind in ("integer", "number") and (isinstance(value, bool) or not isinstance(value, int | float)):
        made.error = "A number is wanted"
        return MISSING
    return value


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} has no form in JSON")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else float(_refuse(text))


def attach(made: Field, place: tuple[Any, ...], text: str) -> bool:
    """Note an error at the field of a place in the value, or the nearest around it; whether there is any."""
    at = made
    for step, part in enumerate(place):
        inner = next((each for each in at.parts if each.key == part), None)
        if inner is None:
            if step == 0 and at.parts:
                return False
            break
        at = inner
    at.error = f"{at.error}; {text}" if at.error else text
    return True
