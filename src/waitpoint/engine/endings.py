"""What the end of a body means: a pause, a pause that was swallowed, a failure beside a pause, an answer gone by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from waitpoint import codec
from waitpoint.errors import GraphInterrupt, ReplayMismatch, SwallowedInterruptError, UsageError
from waitpoint.interrupts import site
from waitpoint.interrupts.journal import Conclusion, Journal
from waitpoint.records import Interrupt


def interrupts_of(error: BaseException | None) -> tuple[Interrupt[Any], ...] | None:
    """Return the questions of a pause, also of a group of nothing but pauses; None if this is no pause."""
    if isinstance(error, GraphInterrupt):
        return error.interrupts
    if isinstance(error, BaseExceptionGroup):
        found: list[Interrupt[Any]] = []
        for inner in error.exceptions:
            part = interrupts_of(inner)
            if part is None:
                return None
            found += part
        return tuple(found)
    return None


def beside_pauses(journal: Journal, error: BaseException | None, pauses: Sequence[str] = ()) -> BaseException:
    """Return what a body failed with that had been paused: its own error if the pause came out with it in a group.

    `pauses` are those of a strand, else they are the attempt's.
    """
    if isinstance(error, BaseExceptionGroup):
        paused, rest = error.split(GraphInterrupt)
        if paused is not None and rest is not None:
            return rest
    if error is not None and not isinstance(error, Exception):
        return error
    place = (pauses or journal.pauses)[-1]
    after = "returned" if error is None else f"raised {type(error).__name__}"
    swallowed = SwallowedInterruptError(
        f"Node {journal.task.node!r} asked a question at {place} and then {after} as if it had not: something between "
        f"there and the node's end caught the pause; let GraphInterrupt pass (it is no Exception, so `except Exception` "
        f"never catches it)",
        node=journal.task.node,
        site=place,
    )
    swallowed.__cause__ = error
    return swallowed


def foreign(journal: Journal) -> UsageError:
    """Return the failure of a body that raised a pause which nothing in this attempt had asked for."""
    return UsageError(
        f"Node {journal.task.node!r} raised a GraphInterrupt of its own making, or one kept from an earlier attempt, and "
        f"nobody could answer it; call interrupt() to ask"
    )


def drifted(journal: Journal, conclusion: Conclusion) -> ReplayMismatch:
    """Return the failure of a task whose answers meet another payload each time."""
    asked = conclusion.drifted
    assert asked is not None
    paths = tuple(codec.loads(asked.row.extra).get("changed_paths", ()))
    place = site.text(asked.site)
    return ReplayMismatch(
        f"Node {journal.task.node!r} asked something else at {place} after each of the last {asked.drift} answers, so none "
        f"was used; the payload differs at {', '.join(map(repr, paths)) or 'its whole'}: put step() around what varies, or "
        f"name it in `ignore`; the last question stays open",
        node=journal.task.node,
        site=place,
        paths=paths,
    )
