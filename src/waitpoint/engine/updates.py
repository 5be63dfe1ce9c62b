"""Changing a thread's state from outside: `update_state`, in one transition that also closes the old step's questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from waitpoint import clock, ids
from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    Loaded,
    Move,
    OutcomeRow,
    ThreadChanged,
    ThreadKey,
    ThreadRow,
    Writes,
)
from waitpoint.core.apply import Result, apply_writes, next_control
from waitpoint.core.channels import initial
from waitpoint.core.plan import Control
from waitpoint.engine import heads, owner
from waitpoint.engine.declared import Declared
from waitpoint.engine.heads import Head, ItemReader, ItemWriter, Numbers
from waitpoint.engine.invocation import Invocation, run_at
from waitpoint.engine.resuming import lay_over, prior_of
from waitpoint.engine.routing import route
from waitpoint.engine.run import Run
from waitpoint.engine.scope import Surroundings
from waitpoint.engine.segment import Segment, event, withdrawals
from waitpoint.engine.snapshots import place
from waitpoint.engine.starting import WITHDRAWN_BY_MOVE
from waitpoint.engine.tasks import collect
from waitpoint.errors import ConfigError, InvalidUpdateError, ThreadBusyError
from waitpoint.records import COPY, END, INPUT, START, StateUpdate


def update(
    graph: Declared, config: Mapping[str, Any], supersteps: Sequence[Sequence[StateUpdate]], *, bulk: bool = False
) -> dict[str, Any]:
    """Write supersteps of updates after the thread's newest checkpoint, or after the one that the config names."""
    if not supersteps:
        raise ConfigError("No supersteps provided: give at least one list of updates")
    if any(not step for step in supersteps):
        raise ConfigError("No updates provided: a superstep is empty")
    for step in supersteps:
        _check_step(step, bulk=bulk)
    saver, key = graph.saver_of(config)
    ns, checkpoint_id = place(config)
    if ns:
        raise ConfigError(f"Subgraph {ns!r} not found; update the state of the outermost graph")
    while True:
        try:
            return _Update(graph, saver, key, checkpoint_id).apply(supersteps)
        except ThreadChanged:
            continue  # someone was first: look again and write after what they left


def _check_step(step: Sequence[StateUpdate], *, bulk: bool) -> None:
    if len(step) > 1 and any(u.as_node is None for u in step):
        raise InvalidUpdateError(
            "Several updates of one superstep need `as_node` each, since their order is the nodes'"
        )
    if bulk and len(step) > 1 and any(u.as_node in (END, COPY) for u in step):
        raise InvalidUpdateError(
            f"{END!r} and {COPY!r} stand alone; they cannot be one of several updates of a superstep"
        )


class _Update:
    """One attempt to write updates, on the thread as it was read."""

    def __init__(self, graph: Declared, saver: BaseCheckpointSaver, key: ThreadKey, checkpoint_id: str | None) -> None:
        self.graph, self.saver, self.key = graph, saver, key
        loaded = saver.load(key)
        self.thread: ThreadRow | None = loaded.thread
        self.closed = [(q.id, WITHDRAWN_BY_MOVE) for q in loaded.questions if q.status == "open"]
        self.final = [q.id for q in loaded.questions if q.replaceable]
        self.explicit = checkpoint_id is not None and self.thread is not None and checkpoint_id != self.thread.head
        self.base: Loaded = saver.load(key, "", checkpoint_id) if self.explicit else loaded
        if self.explicit and self.base.checkpoint is None:
            raise ConfigError(
                f"Unknown checkpoint {checkpoint_id!r} in thread {key.thread_id!r} of graph {key.graph!r}"
            )
        if self.thread is not None and self.thread.status == "running" and not owner.is_dead(self.thread):
            raise ThreadBusyError(
                f"Thread {key.thread_id!r} of graph {key.graph!r} is running; wait for it to rest before changing its state",
                thread_id=key.thread_id,
                status="running",
            )
        self.writer = ItemWriter(Numbers(self.thread.next_item if self.thread is not None else 0), graph.registry)
        self.rows: list[Any] = []
        self.outcomes: list[OutcomeRow] = []

    def apply(self, supersteps: Sequence[Sequence[StateUpdate]]) -> dict[str, Any]:
        """Write all supersteps in one transition; return the config of the last checkpoint."""
        head: Head | None = None
        run: Run | None = None
        if self.base.checkpoint is not None:
            head = heads.read(self.saver, self.key, self.base.checkpoint, self.graph.registry)
            run = self._run(head)
        for step in supersteps:
            head = self._step(head, run, step)
            run = None
        assert head is not None
        at = clock.now()
        old = self.thread
        then = (
            ThreadRow(self.key, "idle", 1, 0, 0, None, None, None, None, at, at)
            if old is None
            else replace(
                old, status="idle", fence=old.fence + 1, owner=None, lease_until=None, updated_at=at, error=None
            )
        )
        then.head, then.next_item = head.id, self.writer.numbers.next
        writes = Writes(self.rows, self.writer.taken(), self.outcomes, withdrawn=self.closed, final=self.final)
        writes.events = [*withdrawals(self.closed), event("updated", head.id, source=head.source)]
        self.saver.move(Move(self.key, old, then, writes))
        return {"configurable": {"thread_id": self.key.thread_id, "checkpoint_ns": "", "checkpoint_id": head.id}}

    def _run(self, head: Head) -> Run:
        assert self.thread is not None
        graph = self.graph
        call = Invocation(graph.spec, graph.registry, None, Surroundings({}), key=self.key)
        run = run_at(call, head, Segment(self.saver, self.thread, "sync"))
        lay_over(run, head, prior_of(self.base.outcomes, ItemReader(self.saver, self.key, graph.registry)))
        return run

    def _step(self, head: Head | None, run: Run | None, step: Sequence[StateUpdate]) -> Head:
        as_node = step[0].as_node
        if as_node == COPY:
            if head is None:
                raise InvalidUpdateError("There is no checkpoint to copy; the thread has never run")
            return self._made(
                head, head.values, set(), head.control, source="fork", step=head.step + 1, parent=head.parent_id
            )
        spec = self.graph.spec
        values = dict(head.values) if head is not None else initial(spec.channels)
        written: set[str] = set() if head is not None else set(values)
        if run is not None and not self.explicit:  # what siblings finished in this step is kept
            finished = [t.result for t in run.tasks if t.state == "done" and t.result is not None]
            values, more = apply_writes(spec, run.values, finished)
            written |= more | run.patched
        if as_node == INPUT:
            return self._input(head, values, written, step[0].values)
        if as_node == END or (as_node is None and step[0].values is None):
            control = Control() if as_node == END else (head.control if head is not None else Control())
            return self._made(head, values, written, control)
        results = [self._result(head, values, u) for u in step]
        values, more = apply_writes(spec, values, results)
        control = next_control(
            spec, replace(head.control) if head is not None else Control(), results, ran_deferred=False
        )
        return self._made(head, values, written | more, control)

    def _result(self, head: Head | None, values: dict[str, Any], update: StateUpdate) -> Result:
        """Tell what the update writes and where it leads: routers of `as_node` run on the corrected state."""
        spec = self.graph.spec
        node = update.as_node if update.as_node is not None else self._last_writer(head)
        if node not in spec.nodes:
            known = ", ".join(repr(n) for n in spec.nodes)
            raise InvalidUpdateError(
                f"Node {node!r} does not exist, so no update can be made as it; the graph has {known}"
            )
        result = collect(spec, node, update.values)
        return route(spec, spec.nodes[node], values, result, self.graph.store)

    def _last_writer(self, head: Head | None) -> str:
        spec = self.graph.spec
        nodes = [n for n in spec.nodes if n != START]
        writers = head.control.writers if head is not None else ()
        if len(nodes) == 1:
            return nodes[0]
        if len(writers) == 1:
            return writers[0]
        raise InvalidUpdateError(
            f"Ambiguous update, specify as_node: {'no node has' if not writers else 'several nodes have'} made the last "
            f"checkpoint"
        )

    def _input(self, head: Head | None, values: dict[str, Any], written: set[str], given: Any) -> Head:
        """As if the thread was given an input: its checkpoint, with the entry due."""
        spec = self.graph.spec
        result = Result(START, spec.to_writes(spec.make_input(given)) if given is not None else [])
        values, more = apply_writes(spec, values, [result])
        step = -1 if head is None else head.step + 1
        control = next_control(spec, Control(), [Result(START)], ran_deferred=False)
        return self._made(head, values, written | more, control, source="input", step=step)

    def _made(
        self, head: Head | None, values: dict[str, Any], written: set[str], control: Control, *, source: str = "update",
        step: int | None = None, parent: str | None = None,
    ) -> Head:  # fmt: skip
        number = step if step is not None else (0 if head is None else head.step + 1)
        after = None if head is None else head.id
        last = self.thread.head if self.thread is not None else None
        new = Head(
            ids.checkpoint_id(max(filter(None, (after, last)), default=None)), "", parent or after, number, source,
            clock.now(), values, {}, control,
        )  # fmt: skip
        new.refs = heads.store_values(self.graph.spec, head, values, written, self.writer)
        new.moved_at = self.thread.fence + 1 if self.thread is not None else 1
        stopped = head is not None and self.thread is not None and self.thread.status == "idle"
        if stopped and head is not None:
            new.passed = tuple(sorted(set(head.control.due) & set(control.due)))
        self.rows.append(heads.to_row(new, self.writer))
        return new
