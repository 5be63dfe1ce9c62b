"""Version "v2": parts that say what they are, with states as instances of the classes that declare them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from waitpoint.core.spec import GraphSpec
from waitpoint.engine.run import Run
from waitpoint.errors import ConfigError
from waitpoint.records import INTERRUPT
from waitpoint.stream.parts import GraphOutput

Make = Callable[[dict[str, Any]], Any]


def is_typed(version: str) -> bool:
    """Whether this version is the typed one. Raises `ConfigError` for one that does not exist."""
    if version not in ("v1", "v2"):
        raise ConfigError(f"`version` is {version!r}, and parts have the forms 'v1' and 'v2'; give one of these")
    return version == "v2"


def output_of(run: Run) -> GraphOutput[Any]:
    """Return what a run came to."""
    interrupts = run.interrupts()
    value = {} if interrupts and run.spec.is_function else _instance(run.spec.make_output, run.output())
    due = [t.name for t in run.tasks if t.state != "done"] or [t.name for t in run.tasks]
    return GraphOutput(value, interrupts, tuple(due))


class Parts:
    """Makes the parts of one run; a graph nested in it has the classes of its own schemas."""

    def __init__(self, spec: GraphSpec, ns: tuple[str, ...]) -> None:
        self._specs: dict[tuple[str, ...], GraphSpec | None] = {ns: spec}
        self._values: dict[tuple[str, ...], Any] = {}  # the last of each graph, for states with no place for questions

    def of(self, ns: tuple[str, ...], mode: str, payload: Any) -> dict[str, Any]:
        """Return the part of a payload."""
        if mode == "values":
            return self._of_values(ns, payload)
        if mode == "checkpoints":
            payload = self._of_checkpoint(ns, payload)
        elif mode == "debug" and payload["type"] == "checkpoint":
            payload = {**payload, "payload": self._of_checkpoint(ns, payload["payload"])}
        return {"type": mode, "ns": ns, "data": payload}

    def _of_values(self, ns: tuple[str, ...], payload: Any) -> dict[str, Any]:
        interrupts: tuple[Any, ...] = ()
        spec = self._spec(ns)
        if isinstance(payload, dict) and INTERRUPT in payload:
            interrupts = tuple(payload[INTERRUPT])
            payload = {k: v for k, v in payload.items() if k != INTERRUPT}
            if spec is not None and (spec.whole or spec.is_bare) and not spec.is_function:
                payload = self._values.get(ns)
        self._values[ns] = payload
        data = payload if spec is None else _instance(spec.make_output, payload)
        return {"type": "values", "ns": ns, "data": data, "interrupts": interrupts}

    def _of_checkpoint(self, ns: tuple[str, ...], payload: dict[str, Any]) -> dict[str, Any]:
        spec = self._spec(ns)
        return payload if spec is None else {**payload, "values": _instance(spec.make_state, payload["values"])}

    def _spec(self, ns: tuple[str, ...]) -> GraphSpec | None:
        """Return the graph of a namespace, None for one that a function called."""
        if ns not in self._specs:
            around = self._spec(ns[:-1]) if ns else None
            node = None if around is None else around.nodes.get(ns[-1].partition(":")[0])
            self._specs[ns] = node.call.fn.spec if node is not None and node.call.kind == "graph" else None
        return self._specs[ns]


def _instance(make: Make | None, values: Any) -> Any:
    """Return a state as its class has it; one that lacks what the class requires stays a dict."""
    if make is None or not isinstance(values, dict) or not values:
        return values
    try:
        return make(values)
    except (TypeError, ValueError):
        return values
