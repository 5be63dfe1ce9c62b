"""How parts of a run look to the consumer of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from waitpoint.engine.commands import Emit
from waitpoint.errors import ConfigError

MODES = ("values", "updates", "custom", "tasks")


class Shape(NamedTuple):
    """Which modes were asked for, and what is put in front of each payload."""

    modes: tuple[str, ...]
    many: bool
    subgraphs: bool

    @property
    def live(self) -> bool:
        """Whether parts come from inside running tasks."""
        return self.subgraphs or "custom" in self.modes

    def shown(self, part: Emit) -> Any:
        """Return the part as the consumer gets it."""
        if self.subgraphs:
            return (part.ns, part.mode, part.payload) if self.many else (part.ns, part.payload)
        return (part.mode, part.payload) if self.many else part.payload


def shape_of(stream_mode: str | Sequence[str] | None, subgraphs: bool) -> Shape:
    """Sort out the arguments of `stream`. Raises `ConfigError` for a mode that does not exist."""
    many = stream_mode is not None and not isinstance(stream_mode, str)
    asked = ("updates",) if stream_mode is None else (stream_mode,) if isinstance(stream_mode, str) else stream_mode
    for mode in asked:
        if mode not in MODES:
            raise ConfigError(f"Unknown stream mode {mode!r}; the modes are {', '.join(map(repr, MODES))}")
    return Shape(tuple(asked), many, subgraphs)
