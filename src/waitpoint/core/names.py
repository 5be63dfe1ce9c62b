"""Names of nodes: how they are given, and what to say when one is unknown."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from enum import Enum
from typing import Any

from waitpoint.errors import GraphValidationError


def node_name(given: Any) -> Any:
    """Return the name that an `Enum` member stands for; anything else as it is."""
    return str(given.value) if isinstance(given, Enum) else given


def suggestion(name: object, known: Iterable[object]) -> str:
    """Return "; did you mean 'search'?" if a known name looks like this one, else "; known: 'a', 'b'"."""
    names = [str(k) for k in known]
    close = difflib.get_close_matches(str(name), names, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    if not names:
        return "; there are none yet"
    listed = ", ".join(f"'{n}'" for n in names[:10])
    return f"; known: {listed}{', ...' if len(names) > 10 else ''}"


def breakpoints(given: Any, nodes: Collection[str], argument: str) -> tuple[str, ...] | str:
    """Return the nodes that `interrupt_before` or `interrupt_after` (`argument`) names, or "*" for all.

    Raises:
        GraphValidationError: a name is unknown.
    """
    if given is None:
        return ()
    if isinstance(given, str) and given == "*":
        return "*"
    names = tuple(node_name(g) for g in ((given,) if isinstance(given, str) else given))
    for name in names:
        if name not in nodes:
            raise GraphValidationError(
                f"Interrupt node `{name}` not found - {argument} names it, but the graph has no such node"
                f"{suggestion(name, nodes)}"
            )
    return names
