"""Races made certain: a run is held at a named point until the test lets it go."""

from __future__ import annotations

from collections.abc import Callable

from waitpoint.testing.faults import Points


class Gate(Points):
    """Points that hold a run at the next one whose name starts so; `wait` returns when it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self._holds: list[tuple[str, Callable[[], object]]] = []

    def hold(self, start: str, wait: Callable[[], object]) -> None:
        """Hold the run once."""
        self._holds.append((start, wait))

    def reach(self, name: str) -> None:
        """Pass a point, when the gate is open."""
        super().reach(name)
        for hold in [h for h in self._holds if name.startswith(h[0])]:
            self._holds.remove(hold)
            hold[1]()
