"""Names of nodes: how they are given, and what to say when one is unknown."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, Final

UNNAMED: Final = "LangGraph"
"""The name of graphs that were compiled without one."""


def node_name(given: Any) -> Any:
    """Return the name that an `Enum` member stands for; anything else as it is."""
    return str(given.value) if isinstance(given, Enum) else given


def suggestion(name: object, known: Iterable[object]) -> str:
    """Return "; did you mean 'search'?" if a known name looks like this one, else "; known: 'a', 'b'"."""
    import difflib

    names = [str(k) for k in known]
    close = difflib.get_close_matches(str(name), names, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    if not names:
        return "; there are none yet"
    listed = ", ".join(f"'{n}'" for n in names[:10])
    return f"; known: {listed}{', ...' if len(names) > 10 else ''}"
