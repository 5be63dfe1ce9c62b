"""Which values a filter lets through, and which namespaces meet a condition: pure, and the same in every store."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from waitpoint.errors import ConfigError
from waitpoint.store.base import ListNamespacesOp, MatchCondition

_ORDERED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def fits(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether each key of `wanted` is in the value as it has to be. Raises `ConfigError` for an unknown operator."""
    return all(_is_as(value.get(key), key, condition) for key, condition in (wanted or {}).items())


def _is_as(found: Any, key: str, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        operators = [name for name in wanted if isinstance(name, str) and name.startswith("$")]
        if operators:
            return all(_compares(found, key, name, operand) for name, operand in wanted.items())
        return isinstance(found, Mapping) and all(_is_as(found.get(k), f"{key}.{k}", w) for k, w in wanted.items())
    if isinstance(wanted, list | tuple):
        return (
            isinstance(found, list | tuple)
            and len(found) == len(wanted)
            and all(_is_as(f, key, w) for f, w in zip(found, wanted, strict=True))
        )
    return bool(found == wanted)


def _compares(found: Any, key: str, name: str, operand: Any) -> bool:
    if name == "$eq":
        return bool(found == operand)
    if name == "$ne":
        return bool(found != operand)
    compare = _ORDERED.get(name)
    if compare is None:
        raise ConfigError(
            f"The filter of {key!r} has the operator {name!r}, which does not exist; there are $eq, $ne, $gt, $gte, $lt "
            f"and $lte"
        )
    try:
        return bool(compare(found, operand))
    except TypeError:  # a text and a number, or nothing at all: neither is greater
        return False


def listed(namespaces: Iterable[tuple[str, ...]], op: ListNamespacesOp) -> list[tuple[str, ...]]:
    """Return what a listing gives of all namespaces that hold items."""
    conditions = op.match_conditions or ()
    found = {ns[: op.max_depth] for ns in namespaces if all(_meets(ns, condition) for condition in conditions)}
    return sorted(found)[op.offset : op.offset + op.limit]


def _meets(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(label in ("*", own) for label, own in zip(path, part, strict=True))
