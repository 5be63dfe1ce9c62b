"""Static breakpoints: node names before and after which a run stops, for debugging."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple

from waitpoint.core.names import suggestion
from waitpoint.engine.tasks import Task
from waitpoint.errors import GraphValidationError
from waitpoint.records import START

Names = Collection[str] | Literal["*"]


class Breakpoints(NamedTuple):
    """Where a run stops. "*" is every node."""

    names_before: Names = ()
    names_after: Names = ()

    def before(self, tasks: Sequence[Task], passed: Collection[str] = ()) -> bool:
        """Whether to stop before these tasks; nodes in `passed` were stopped at already."""
        return bool(self.names_before) and any(
            _named(t.name, self.names_before) and t.name not in passed for t in tasks
        )

    def after(self, names: Iterable[str]) -> bool:
        """Whether to stop after a superstep of these nodes."""
        return bool(self.names_after) and any(_named(n, self.names_after) for n in names)


def _named(name: str, names: Names) -> bool:
    return name != START and (names == "*" or name in names)


def checked(names: Sequence[str] | str | None, known: Collection[str], option: str) -> Names:
    """Return breakpoint names; a name that is no node is an error, since it would never stop anything."""
    if names is None:
        return ()
    if names == "*":
        return "*"
    wanted = (names,) if isinstance(names, str) else tuple(names)
    for name in wanted:
        if name not in known:
            raise GraphValidationError(f"`{option}` names unknown node {name!r}{suggestion(name, sorted(known))}")
    return wanted
