"""Updates: how what a node returns, or a caller puts in, becomes (key, value) pairs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any

from waitpoint.errors import InvalidUpdateError
from waitpoint.graph.schema import ROOT, Schema, is_model
from waitpoint.records import MISSING

Writes = list[tuple[str, Any]]


def writer(keys: Collection[str], *, is_whole: bool) -> Callable[[Any], Writes]:
    """Return `to_writes` of a graph with these keys; keys of an update that are not among them are dropped."""
    if is_whole:
        return lambda update: [] if update is None else [(ROOT, update)]
    known = frozenset(keys)
    fields: dict[type, tuple[str, ...]] = {}

    def to_writes(update: Any) -> Writes:
        if isinstance(update, dict):
            return [(key, value) for key, value in update.items() if key in known]
        if update is None:
            return []
        if isinstance(update, list | tuple) and _are_pairs(update):
            return [(key, value) for key, value in update if key in known]
        kind = type(update)
        names = fields.get(kind)
        if names is None:
            names = fields[kind] = tuple(name for name in annotated_names(kind) if name in known)
        if not names:
            raise InvalidUpdateError(
                f"Expected dict, got '{kind.__name__}' - an update is a dict of keys of the state (or None, a Command, "
                f"an instance of a state schema); return for example {{'{next(iter(keys), 'key')}': value}}"
            )
        return _set_fields(update, names)

    return to_writes


def input_maker(schema: Schema) -> Callable[[Any], Any]:
    """Return `make_input`: it refuses an input whose own values do not fit a pydantic schema, and changes nothing.

    What an input leaves out may be in the thread already, so only what it gives is checked here; a node's model is
    validated as a whole when the node starts.
    """
    declared = schema.declared
    if not is_model(declared):
        return _unchanged

    def make_input(given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        from pydantic import ValidationError

        known = {key: value for key, value in given.items() if key in schema.channels}
        try:
            declared.model_validate(known)
        except ValidationError as error:
            places = [problem["loc"] for problem in error.errors(include_url=False, include_input=False)]
            is_complete = len(known) == len(schema.channels)
            if any(place[0] in known if place else is_complete for place in places):
                raise
        return given

    return make_input


def annotated_names(kind: type) -> tuple[str, ...]:
    """Return the fields that a class and its bases annotate, in order."""
    if is_model(kind):
        return tuple(kind.model_fields)  # type: ignore[attr-defined]
    names: dict[str, None] = {}
    for base in reversed(kind.__mro__):
        names.update(dict.fromkeys(inspect.get_annotations(base)))
    return tuple(names)


def _unchanged(given: Any) -> Any:
    return given


def _are_pairs(update: Sequence[Any]) -> bool:
    return all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in update)


def _set_fields(update: Any, names: tuple[str, ...]) -> Writes:
    """Return the values of an instance; of a model's Nones only those that were set or are not the default."""
    values = [(name, value) for name in names if (value := getattr(update, name, MISSING)) is not MISSING]
    if not is_model(type(update)):
        return values
    was_set = update.model_fields_set
    fields = type(update).model_fields
    return [
        (name, value)
        for name, value in values
        if value is not None or name in was_set or fields[name].default is not None
    ]
