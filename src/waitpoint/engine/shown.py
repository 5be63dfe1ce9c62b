"""How parts of a run look to the consumer of a stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from waitpoint.core.spec import GraphSpec
from waitpoint.engine.commands import Emit
from waitpoint.engine.typed import Parts, is_typed
from waitpoint.errors import ConfigError
from waitpoint.stream.said import Chunks

MODES = ("values", "updates", "custom", "messages", "tasks", "tools", "checkpoints", "debug")


class Shape(NamedTuple):
    """Which modes were asked for, and what is put in front of each payload, or with `is_typed` around it."""

    modes: tuple[str, ...]
    many: bool
    subgraphs: bool
    is_typed: bool = False

    @property
    def live(self) -> bool:
        """Whether parts come from inside running tasks."""
        return self.subgraphs or any(mode in self.modes for mode in ("custom", "messages", "tools"))


class View:
    """One consumer's view of a run: which parts it sees, and what they look like."""

    def __init__(self, shape: Shape, spec: GraphSpec, ns: tuple[str, ...]) -> None:
        self.shape, self.ns = shape, ns
        self.messages = Chunks()
        self.typed = Parts(spec, ns) if shape.is_typed else None

    def of(self, part: Emit) -> Iterable[Any]:
        """Return what the consumer gets for a part."""
        shape = self.shape
        if part.mode not in shape.modes or (part.ns != self.ns and not shape.subgraphs):
            return ()
        payloads = self.messages.shown(part.payload) if part.mode == "messages" else (part.payload,)
        if self.typed is not None:
            return [self.typed.of(part.ns, part.mode, p) for p in payloads]
        if shape.subgraphs:
            return [(part.ns, part.mode, p) if shape.many else (part.ns, p) for p in payloads]
        return [(part.mode, p) for p in payloads] if shape.many else payloads


def event_shape(modes: Sequence[str]) -> Shape:
    """Return the shape of an event stream that needs these modes; `lifecycle` is one of its own."""
    shape_of([m for m in modes if m != "lifecycle"], subgraphs=True)
    return Shape(tuple(modes), many=True, subgraphs=True)


def shape_of(stream_mode: str | Sequence[str] | None, subgraphs: bool, version: str = "v1") -> Shape:
    """Sort out the arguments of `stream`. Raises `ConfigError` for a mode that does not exist."""
    many = stream_mode is not None and not isinstance(stream_mode, str)
    asked = ("updates",) if stream_mode is None else (stream_mode,) if isinstance(stream_mode, str) else stream_mode
    for mode in asked:
        if mode not in MODES:
            raise ConfigError(f"Unknown stream mode {mode!r}; the modes are {', '.join(map(repr, MODES))}")
    return Shape(tuple(asked), many, subgraphs, is_typed(version))
