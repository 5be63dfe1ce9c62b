"""What a run came to: the values its thread had at its end, what it asks, what it failed with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from waitpoint.checkpoint.base import BaseCheckpointSaver, PendingFilter
from waitpoint.engine.questions import interrupt_of
from waitpoint.engine.runner import Runner
from waitpoint.hosting import encoding
from waitpoint.ledger.base import Ledger, RunRow


class RunResult(NamedTuple):
    """The end of a run, as JSON values."""

    values: Any
    interrupts: list[dict[str, Any]]
    error: dict[str, Any] | None

    def document(self) -> Any:
        """Return it in one value: the state, with questions or an error under keys of their own."""
        if self.error is not None:
            return {"__error__": self.error}
        if not self.interrupts:
            return self.values
        values = self.values if isinstance(self.values, Mapping) else {}
        return {**values, "__interrupt__": self.interrupts}


def result_of(run: RunRow, graph: Runner, ledger: Ledger, saver: BaseCheckpointSaver) -> RunResult:
    """Return what a run came to: what it showed last, or if that is no longer kept, what its last checkpoint holds."""
    error = run.outcome.get("error")
    last = ledger.last_entry(run.id, "values")
    if last is not None:
        told = encoding.loads(last.data)
        return RunResult(told["values"], told["interrupts"], error)
    checkpoint_id = run.outcome.get("checkpoint_id")
    if checkpoint_id is None:
        return RunResult({}, [], error)
    place = {"thread_id": run.thread_id, "checkpoint_id": checkpoint_id}
    values = encoding.jsonable(graph.get_state({"configurable": place}).values)
    asked = list(run.outcome.get("interrupts") or ())
    rows = saver.questions(PendingFilter(ids=asked, answerable=False)) if asked else []
    return RunResult(values, [encoding.interrupt_json(interrupt_of(row, graph.registry)) for row in rows], error)
