"""Values that the engine fills in: `RemainingSteps` and `IsLastStep`, declared like keys of the state."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple


class ManagedValue(NamedTuple):
    """Marks a key that no node writes; `what` says what a task finds there."""

    what: Literal["remaining_steps", "is_last_step"]


RemainingSteps = Annotated[int, ManagedValue("remaining_steps")]
IsLastStep = Annotated[bool, ManagedValue("is_last_step")]
