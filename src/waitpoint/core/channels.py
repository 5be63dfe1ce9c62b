"""Channels: how the writes of one superstep to one key become its next value."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from waitpoint.core.spec import Channel
from waitpoint.errors import InvalidUpdateError
from waitpoint.records import MISSING, Overwrite

OVERWRITE_KEY = "__overwrite__"

# Only values of these types can be an overwrite, so one check lets all others pass.
_MAYBE_OVERWRITE = (Overwrite, dict)


def overwritten(write: Any) -> Any:
    """Return what an `Overwrite`, or its plain form `{"__overwrite__": value}`, sets; MISSING for any other write.

    The form that JSON leaves of an `Overwrite`, `{"value": ..., "type": "__overwrite__"}`, counts too.
    """
    if isinstance(write, Overwrite):
        return write.value
    if isinstance(write, dict):
        if len(write) == 1 and OVERWRITE_KEY in write:
            return write[OVERWRITE_KEY]
        # The type is compared as a text only: a value of the user's may have an `==` of its own.
        kind = write.get("type")
        if isinstance(kind, str) and kind == OVERWRITE_KEY and "value" in write:
            return write["value"]
    return MISSING


def combine(channel: Channel, current: Any, writes: Sequence[Any]) -> Any:
    """Return the key's value after the writes of one superstep, given in task order; MISSING stands for unset.

    `current` is not changed, except by a user's reducer that changes its argument.

    Raises:
        InvalidUpdateError: two writes to a key without a reducer, two overwrites, or a non-list added to a list.
    """
    kind = channel.kind
    if kind == "last" and len(writes) == 1:
        write = writes[0]
        if not isinstance(write, _MAYBE_OVERWRITE):
            return write
        value = overwritten(write)
        return write if value is MISSING else value
    if not writes:
        return current
    value = _only_overwrite(channel, writes)
    if value is not MISSING:
        return value
    if kind == "last":
        raise InvalidUpdateError(
            f"At key '{channel.name}': Can receive only one value per step. Use an Annotated key to handle multiple "
            f"values. - It got {len(writes)} in one step and has no reducer to combine them; annotate it, for example "
            f"'{channel.name}: Annotated[list, operator.add]', or let one task write it"
        )
    if current is MISSING and channel.default is not None:
        current = channel.default()
    if kind == "append" and type(current) is list:
        return _extended(channel, current, writes)
    return _folded(channel, current, writes)


def initial(channels: Mapping[str, Channel]) -> dict[str, Any]:
    """Return the values a thread begins with: those of the channels that have a default."""
    return {name: channel.default() for name, channel in channels.items() if channel.default is not None}


def _only_overwrite(channel: Channel, writes: Sequence[Any]) -> Any:
    found = MISSING
    for write in writes:
        if isinstance(write, _MAYBE_OVERWRITE):
            value = overwritten(write)
            if value is MISSING:
                continue
            if found is not MISSING:
                raise InvalidUpdateError(
                    f"Can receive only one Overwrite value per super-step. - Two tasks of one step overwrite the key "
                    f"'{channel.name}', so neither can win; let one of them do it"
                )
            found = value
    return found


def _extended(channel: Channel, current: list[Any], writes: Sequence[Any]) -> Any:
    result: Any = current.copy()
    for write in writes:
        if type(write) is list and type(result) is list:
            result.extend(write)
        else:
            try:
                result = result + write
            except TypeError as error:
                raise InvalidUpdateError(
                    f"At key '{channel.name}': a list grows by lists, but the update is of type "
                    f"'{type(write).__name__}'; return a list, for example {{'{channel.name}': [value]}}"
                ) from error
    return result


def _folded(channel: Channel, current: Any, writes: Sequence[Any]) -> Any:
    reducer = operator.add if channel.reducer is None else channel.reducer
    rest = iter(writes)
    if current is MISSING:
        current = next(rest)
    for write in rest:
        current = reducer(current, write)
    return current
