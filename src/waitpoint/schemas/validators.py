"""Compiled JSON Schemas, one for each digest. Nothing is ever fetched."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from waitpoint.canonical import digest

if TYPE_CHECKING:
    import jsonschema_rs

_MASK: Final = "the answer"
_CACHED: Final = 512


def validator(schema: Mapping[str, Any]) -> jsonschema_rs.Validator:
    """Return what checks values against a JSON Schema; raises ValueError or TypeError for an illegal one."""
    return _compiled(_Keyed(schema))


class _Keyed:
    """A schema as a key of a cache: equal schemas share one validator."""

    __slots__ = ("digest", "schema")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = dict(schema)
        self.digest = digest(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keyed) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@functools.lru_cache(maxsize=_CACHED)
def _compiled(key: _Keyed) -> jsonschema_rs.Validator:
    import json

    import jsonschema_rs

    json.dumps(key.schema, allow_nan=False)  # raises for what is no JSON and would reach a browser
    jsonschema_rs.validator_for(key.schema, retriever=_refuse)  # raises with a text that shows the schema's own fault
    return jsonschema_rs.validator_for(key.schema, mask=_MASK, retriever=_refuse)


def _refuse(uri: str) -> Any:
    # Invariant: checking an answer never opens a connection or a file; a schema may come from anyone.
    raise ValueError(f"{uri!r} is another document, and schemas are not fetched")
