"""Which errors belong to the engine: nothing around a tool or a model makes an answer of them, or tries again."""

from __future__ import annotations

from waitpoint import runtime as runtimes
from waitpoint.checkpoint.base import FenceLost
from waitpoint.errors import (
    GraphBubbleUp,
    PermitUsedError,
    ReplayMismatch,
    SealedAttemptError,
    StepInDoubtError,
    StoreError,
    SwallowedInterruptError,
    UsageError,
)
from waitpoint.interrupts.journal import refuses_an_answer

# A paused, drained or fenced-off run, a program that changed, a store that failed: the engine has to hear of them, and
# they are as true in the next attempt. Errors in using Waitpoint are for whoever wrote the tool, not for the model.
_FOR_THE_ENGINE = (
    GraphBubbleUp,
    FenceLost,
    PermitUsedError,
    ReplayMismatch,
    SealedAttemptError,
    StepInDoubtError,
    StoreError,
    SwallowedInterruptError,
    UsageError,
)


def must_pass(error: BaseException) -> bool:
    """Whether an error belongs to the engine: no middleware may try the call again or make a message of it.

    An answer that was refused is one of them, in a nested graph too: as a message to the model the answer would be lost,
    while as an error it opens its question again.
    """
    if isinstance(error, _FOR_THE_ENGINE) or not isinstance(error, Exception):
        return True
    journal = runtimes.attempt.get()
    return (journal is not None and journal.must_end) or refuses_an_answer(error)
