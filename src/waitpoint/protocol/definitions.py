"""Puts a tool's argument schema inside a larger schema, so that what it refers to is still found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

from waitpoint import canonical

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_SCHEMAS_BY_NAME: Final = frozenset({"$defs", "definitions", "properties", "patternProperties", "dependentSchemas"})
_VALUES: Final = frozenset({"const", "enum", "default", "examples", "required"})
_NAMED: Final = re.compile(r"#/(\$defs|definitions)/([^/]+)(.*)", re.DOTALL)


class Definitions:
    """The `$defs` of a schema that others are put into. `taken` are names that it gives itself."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.schemas: dict[str, Any] = {}
        self._taken = set(taken)

    def name(self, wanted: str, owner: str) -> str:
        """Take a name: the wanted one, or if that is gone one that says whose it is."""
        free, number = wanted, 1
        while free in self._taken:
            free = f"{owner}_{wanted}" if number == 1 else f"{owner}_{wanted}_{number}"
            number += 1
        self._taken.add(free)
        return free

    @staticmethod
    def reference(name: str) -> dict[str, Any]:
        """Return the schema that stands for the definition of this name."""
        return {"$ref": f"#/$defs/{_escaped(name)}"}

    def hoist(self, schema: Mapping[str, Any], owner: str) -> dict[str, Any]:
        """Return the schema with its definitions moved here and its references changed to match.

        One of another dialect, or with an `$id`, is a document of its own inside the larger one and stays as it is.
        """
        dialect = str(schema.get("$schema", _DIALECT)).rstrip("#")
        if "$id" in schema or dialect != _DIALECT:
            return {"$id": f"urn:waitpoint:args:{canonical.digest(dict(schema))}", **schema}
        return _Hoisting(self, schema, owner).run()


class _Hoisting:
    """One schema on its way into another."""

    def __init__(self, into: Definitions, schema: Mapping[str, Any], owner: str) -> None:
        self.into = into
        self.schema = schema
        self.owner = owner
        self.whole: str | None = None  # the name of all of it, if it refers to itself or to an odd part of itself
        own = {(key, name): of for key in ("$defs", "definitions") for name, of in schema.get(key, {}).items()}
        self.names = {place: into.name(place[1], owner) for place in own}
        self.own = own

    def run(self) -> dict[str, Any]:
        for place, schema in self.own.items():
            self.into.schemas[self.names[place]] = self._moved(schema)
        body = {k: v for k, v in self.schema.items() if k not in {"$schema", "$defs", "definitions"}}
        moved: dict[str, Any] = self._moved(body)
        if self.whole is not None:
            # An odd reference may lead into the definitions too, so the whole keeps them.
            kept = {k: v for k, v in self.schema.items() if k in {"$defs", "definitions"}}
            self.into.schemas[self.whole] = moved | {k: self._by_name(v) for k, v in kept.items()}
        return moved

    def _moved(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return [self._moved(item) for item in schema]
        if not isinstance(schema, dict) or "$id" in schema:
            return schema
        moved = {}
        for key, value in schema.items():
            if key in _VALUES:
                moved[key] = value
            elif key in _SCHEMAS_BY_NAME and isinstance(value, dict):
                moved[key] = self._by_name(value)
            elif key == "$ref" and isinstance(value, str) and (value == "#" or value.startswith("#/")):
                moved[key] = self._reference(value)
            else:
                moved[key] = self._moved(value)
        return moved

    def _by_name(self, schemas: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self._moved(schema) for name, schema in schemas.items()}

    def _reference(self, ref: str) -> str:
        found = _NAMED.fullmatch(ref)
        if found is not None:
            key, name, rest = found.groups()
            new = self.names.get((key, _unescaped(name)))
            if new is not None:
                return f"#/$defs/{_escaped(new)}{rest}"
        if self.whole is None:
            self.whole = self.into.name(f"{self.owner}_args", self.owner)
        return f"#/$defs/{_escaped(self.whole)}{ref[1:]}"


def resolved(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the definition that a schema stands for, or the schema itself if it is no reference."""
    ref = schema.get("$ref")
    found: Mapping[str, Any] = schema if ref is None else defs[_unescaped(str(ref).removeprefix("#/$defs/"))]
    return found


def _escaped(name: str) -> str:
    return quote(name.replace("~", "~0").replace("/", "~1"), safe="~")


def _unescaped(name: str) -> str:
    return unquote(name).replace("~1", "/").replace("~0", "~")
