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
from waitpoint.core.plan import Control, due_tasks
from waitpoint.engine import heads, owner
from waitpoint.engine.declared import Declared
from waitpoint.engine.descent import Level, again, descend, is_open, remembered
from waitpoint.engine.detailing import config_of, metadata_from
from waitpoint.engine.forking import entry_again
from waitpoint.engine.heads import Head, ItemReader, ItemWriter, Numbers
from waitpoint.engine.inner import declared_at
from waitpoint.engine.invocation import Invocation, raise_unknown_checkpoint, run_at
from waitpoint.engine.questions import unused_answers
from waitpoint.engine.resuming import lay_over, prior_of
from waitpoint.engine.routing import route
from waitpoint.engine.run import Run
from waitpoint.engine.scope import Surroundings
from waitpoint.engine.segment import Segment, called_in, event, withdrawals, within
from waitpoint.engine.snapshots import place
from waitpoint.engine.starting import WITHDRAWN_BY_MOVE, input_result, start_row
from waitpoint.engine.tasks import Body, Task, collect
from waitpoint.errors import ConfigError, InvalidUpdateError, ThreadBusyError
from waitpoint.records import COPY, END, INPUT, START, StateUpdate


def update(
    graph: Declared, config: Mapping[str, Any], supersteps: Sequence[Sequence[StateUpdate]], *, bulk: bool = False
) -> dict[str, Any]:
    """Write supersteps of updates after the thread's newest checkpoint, or after the one that the config names."""
    supersteps = _listed(supersteps)
    if not supersteps:
        raise ConfigError("No supersteps provided: give at least one list of updates")
    if any(not step for step in supersteps):
        raise ConfigError("No updates provided: a superstep is empty")
    for step in supersteps:
        _check_step(step, bulk=bulk)
    saver, key = graph.saver_of(config)
    ns, checkpoint_id = place(config)
    inside = declared_at(graph, ns)
    if inside is None:
        raise ConfigError(
            f"Subgraph {ns!r} not found: no node of graph {graph.name!r} declares a graph there; get_subgraphs(recurse=True) "
            f"lists those that are declared"
        )
    while True:
        try:
            attempt = (
                _Update(graph, saver, key, checkpoint_id)
                if not ns
                else (_UpdateInside(graph, inside, saver, key, (ns, checkpoint_id)))
            )
            attempt.metadata = metadata_from(config)
            return attempt.apply(supersteps)
        except ThreadChanged:
            continue  # someone was first: look again and write after what they left


def _listed(supersteps: Any) -> list[list[StateUpdate]]:
    """Return supersteps as lists of updates; a plain tuple of values, node and task is one too."""
    if isinstance(supersteps, list | tuple) and all(type(step) in (list, tuple) for step in supersteps):
        given = [[StateUpdate(*u) if type(u) is tuple and 0 < len(u) < 4 else u for u in s] for s in supersteps]
        if all(isinstance(u, StateUpdate) for step in given for u in step):
            return given
    raise InvalidUpdateError(
        "Supersteps of updates are a list of lists of StateUpdate(values, as_node); give such a list"
    )


def _check_step(step: Sequence[StateUpdate], *, bulk: bool) -> None:
    if len(step) > 1 and any(u.as_node is None for u in step):
        raise InvalidUpdateError(
            "Several updates of one superstep need `as_node` each, since their order is the nodes'"
        )
    if bulk and len(step) > 1 and any(u.as_node in (END, COPY) for u in step):
        raise InvalidUpdateError(
            f"{END!r} and {COPY!r} stand alone; they cannot be one of several updates of a superstep"
        )


def _with_finished(run: Run) -> tuple[dict[str, Any], set[str]]:
    """Return the values with the writes of tasks that have finished; without them if the step failed on them."""
    finished = [t.result for t in run.tasks if t.state == "done" and t.result is not None]
    try:
        return apply_writes(run.spec, run.values, finished)
    except Exception:  # noqa: BLE001 - contradicting writes, or a reducer's own error
        return dict(run.values), set()


class _Update:
    """One attempt to write updates, on the thread as it was read."""

    comes_after = 1  # fences from here to that at which nobody has been at what is written

    def __init__(self, graph: Declared, saver: BaseCheckpointSaver, key: ThreadKey, checkpoint_id: str | None) -> None:
        self.graph, self.saver, self.key, self.ns = graph, saver, key, ""
        self.store = graph.store
        loaded = saver.load(key)
        self.thread: ThreadRow | None = loaded.thread
        self.closed = [(q.id, WITHDRAWN_BY_MOVE) for q in loaded.questions if q.status == "open"]
        self.final = [q.id for q in loaded.questions if q.replaceable]
        self.explicit = checkpoint_id is not None and self.thread is not None and checkpoint_id != self.thread.head
        self.base: Loaded = saver.load(key, "", checkpoint_id) if self.explicit else loaded
        if self.explicit and self.base.checkpoint is None:
            raise_unknown_checkpoint(key, checkpoint_id or "")
        if self.thread is not None and self.thread.status == "running" and not owner.is_dead(self.thread):
            raise ThreadBusyError(
                f"Thread {key.thread_id!r} of graph {key.graph!r} is running; wait for it to rest before changing its state",
                thread_id=key.thread_id,
                status="running",
            )
        self.floor = self.thread.head if self.thread is not None else None  # ids that are made sort after it
        self.unused = unused_answers(loaded)
        self.writer = ItemWriter(Numbers(self.thread.next_item if self.thread is not None else 0), graph.registry)
        self.rows: list[Any] = []
        self.outcomes: dict[str, OutcomeRow] = {}  # by task, for checkpoints that are made here
        self.metadata: dict[str, Any] = {}  # of all that is made here

    def apply(self, supersteps: Sequence[Sequence[StateUpdate]]) -> dict[str, Any]:
        """Write all supersteps in one transition; return the config of the last checkpoint."""
        head = self._first()
        run = None if head is None or self.explicit else self._run(head)
        for step in supersteps:
            head = self._step(head, run, step)
            run = None
        assert head is not None
        then = self._then(head)
        then.next_item = self.writer.numbers.next
        writes = Writes(
            self.rows, self.writer.taken(), [*self.outcomes.values()], withdrawn=self.closed, final=self.final
        )
        writes.events = [*self.unused, *withdrawals(self.closed), event("updated", head.id, source=head.source)]
        self.saver.move(Move(self.key, self.thread, then, writes))
        return config_of(self.key, head)

    def _first(self) -> Head | None:
        """Return the checkpoint that the first update is written after."""
        if self.base.checkpoint is None:
            return None
        return heads.read(self.saver, self.key, self.base.checkpoint, self.graph.registry)

    def _then(self, head: Head) -> ThreadRow:
        """Return the thread's row once the last of what is written is its head."""
        at = clock.now()
        if self.thread is None:
            return ThreadRow(self.key, "idle", 1, 0, 0, head.id, None, None, None, at, at)
        fence = self.thread.fence + 1
        return replace(
            self.thread,
            status="idle",
            fence=fence,
            head=head.id,
            owner=None,
            lease_until=None,
            updated_at=at,
            error=None,
        )

    def _run(self, head: Head) -> Run:
        assert self.thread is not None
        graph = self.graph
        call = Invocation(graph.spec, graph.registry, None, Surroundings({}), key=self.key)
        run = run_at(call, head, Segment(self.saver, self.thread, "sync"))
        lay_over(run, head, prior_of(self.base.outcomes, ItemReader(self.saver, self.key, graph.registry)))
        return run

    def _step(self, head: Head | None, run: Run | None, step: Sequence[StateUpdate]) -> Head:
        as_node = step[0].as_node
        if as_node in (END, COPY) and step[0].values is not None:
            raise InvalidUpdateError(f"An update as {as_node!r} takes no values, since no node returns them; pass None")
        if as_node == COPY:
            if head is None:
                raise InvalidUpdateError("There is no checkpoint to copy; the thread has never run")
            return self._copied(head)
        spec = self.graph.spec
        values = dict(head.values) if head is not None else initial(spec.channels)
        written: set[str] = set() if head is not None else set(values)
        if run is not None and not self.explicit:  # what siblings finished in this step is kept
            values, more = _with_finished(run)
            written |= more | run.patched
        if as_node == INPUT:
            return self._input(head, values, written, step[0].values)
        if as_node == END or (as_node is None and step[0].values is None):
            control = Control() if as_node == END else (head.control if head is not None else Control())
            return self._made(head, values, written, control)
        results = [self._result(head, values, u) for u in step]
        if head is not None:
            self._finish(head, step, results)
        values, more = apply_writes(spec, values, results)
        control = next_control(
            spec, replace(head.control) if head is not None else Control(), results, ran_deferred=False
        )
        return self._made(head, values, written | more, control)

    def _copied(self, head: Head) -> Head:
        """Make a sibling of a checkpoint; that of an input has the same input to begin with."""
        made = self._made(head, head.values, set(), head.control, source="fork", step=head.step + 1)
        entry = Level(self.graph.spec, self.graph.registry, self.base, replace(head, id=made.id))
        for row in entry_again(self.saver, self.key, entry, self.writer):
            self.outcomes[row.task_id] = row
        return made

    def _result(self, head: Head | None, values: dict[str, Any], update: StateUpdate) -> Result:
        """Return what the update writes and where it leads: routers of `as_node` run on the corrected state."""
        spec = self.graph.spec
        node = update.as_node if update.as_node is not None else self._last_writer(head)
        if node not in spec.nodes:
            known = ", ".join(repr(n) for n in spec.nodes)
            raise InvalidUpdateError(
                f"Node {node!r} does not exist, so no update can be made as it; the graph has {known}"
            )
        result = collect(spec, node, update.values)
        return route(spec, spec.nodes[node], values, result, self.store)

    def _last_writer(self, head: Head | None) -> str:
        spec = self.graph.spec
        nodes = [n for n in spec.nodes if n != START]
        writers = head.control.writers if head is not None else ()
        if len(nodes) == 1:
            return nodes[0]
        if head is None or (head.parent_id is None and head.control.due == (START,)):
            return START  # nothing has run yet, so the update is what it begins with
        if len(writers) == 1:
            return writers[0]
        raise InvalidUpdateError(
            f"Ambiguous update, specify as_node: {'no node has' if not writers else 'several nodes have'} made the last "
            f"checkpoint"
        )

    def _finish(self, head: Head, step: Sequence[StateUpdate], results: Sequence[Result]) -> None:
        """Record the updates as what the tasks of the checkpoint before came to, if that was made here too."""
        if all(row.id != head.id for row in self.rows):
            return
        open_tasks = due_tasks(head.id, head.ns, head.control)
        for update, result in zip(step, results, strict=True):
            due = next((d for d in open_tasks if d.name == result.node and update.task_id in (None, d.id)), None)
            if due is not None:
                open_tasks.remove(due)
                task = Task(due, self.graph.spec.nodes[due.name], result=result)
                self.outcomes[due.id] = start_row(self.graph.spec, head, task, "done", self.writer)

    def _input(self, head: Head | None, values: dict[str, Any], written: set[str], given: Any) -> Head:
        """Make the checkpoint that an input would have made, with the entry due."""
        spec = self.graph.spec
        control = Control(due=(START,))
        made = self._made(head, values, written, control, source="input", step=-1 if head is None else head.step + 1)
        result = input_result(spec, given) if given is not None else Result(START)
        (due,) = due_tasks(made.id, made.ns, control)
        task = Task(due, spec.nodes[START], body=Body(result))
        self.outcomes[due.id] = start_row(spec, made, task, "waiting", self.writer)
        return made

    def _made(
        self, head: Head | None, values: dict[str, Any], written: set[str], control: Control, *, source: str = "update",
        step: int | None = None,
    ) -> Head:  # fmt: skip
        number = step if step is not None else (0 if head is None else head.step + 1)
        after = None if head is None else head.id
        parent = head.parent_id if head is not None and source == "fork" else after
        new = Head(
            ids.checkpoint_id(max(filter(None, (after, self.floor)), default=None)), self.ns, parent, number, source,
            clock.now(), values, {}, control,
        )  # fmt: skip
        new.refs = heads.store_values(self.graph.spec, head, values, written, self.writer)
        if head is not None:
            is_branch = self.explicit and head.row is self.base.checkpoint
            new.origin = head.origin.branched(head.id, new.id) if is_branch else head.origin
            new.input_digest = head.input_digest
            new.parent_ns = head.parent_ns if head.row is None and head.parent_ns is not None else None
        new.metadata = self.metadata
        new.moved_at = self.thread.fence + self.comes_after if self.thread is not None else 1
        stopped = head is not None and self.thread is not None and self.thread.status == "idle"
        if stopped and head is not None:
            new.passed = tuple(sorted(set(head.control.due) & set(control.due)))
        self.rows.append(heads.to_row(new, self.writer))
        return new


class _UpdateInside(_Update):
    """One attempt to write updates to a nested graph.

    While the call that the checkpoint belongs to is not over, the update is written to it and the graphs around it stay
    where they are. Otherwise they fork along with it.
    """

    comes_after = 2  # the next run begins with the next fence

    def __init__(
        self, outermost: Declared, graph: Declared, saver: BaseCheckpointSaver, key: ThreadKey,
        where: tuple[str, str | None],
    ) -> None:  # fmt: skip
        super().__init__(graph, saver, key, None)
        ns, named = where
        now = None if named is not None else remembered(saver, key, ns).checkpoint
        levels = descend(saver, key, (outermost.spec, outermost.registry), ns, named if now is None else now.id)
        last, thread = levels[-1], self.thread
        assert thread is not None
        newest = saver.history(key, ns, limit=1)[0].id
        self.levels, self.base, self.ns = levels, last.loaded, ns
        self.store = graph.store or outermost.store
        self.outermost: Head | None = None  # of the fork
        self.explicit = last.head.id != newest
        self.floor = max(newest, thread.head or "")
        is_memory = graph.checkpointer is True and (named is None or not self.explicit)  # also between calls
        if is_memory or is_open(saver, key, thread, levels):
            self._stay(levels)
        else:
            self.explicit, self.outermost = True, self._forked(levels[0].head, thread)

    def _stay(self, levels: Sequence[Level]) -> None:
        """Leave alone what was asked outside of this graph."""
        asked = [q for q in levels[0].loaded.questions if within(called_in(q), levels[-1].at)]
        self.closed = [(q.id, WITHDRAWN_BY_MOVE) for q in asked if q.status == "open"]
        self.final = [q.id for q in asked if q.replaceable]
        self.unused = unused_answers(Loaded(self.thread, self.base.checkpoint, self.base.outcomes, (), asked))

    def _forked(self, old: Head, thread: ThreadRow) -> Head:
        new = replace(old, id=ids.checkpoint_id(thread.head), parent_id=old.id, step=old.step + 1, source="fork",
                      created_at=clock.now(), passed=(), moved_at=thread.fence + 1)  # fmt: skip
        new.origin = old.origin.branched(old.id, new.id)
        return new

    def _first(self) -> Head:
        old = self.levels[-1].head
        if self.outermost is None:
            return old
        self.outermost.metadata = self.metadata
        *between, copy = again(self.levels, self.outermost)
        for level, head in zip(self.levels[:-1], (self.outermost, *between), strict=True):
            writer = ItemWriter(self.writer.numbers, level.registry)
            self.rows.append(heads.to_row(head, writer))
            self.writer.items.extend(writer.taken())
        self.ns, copy.id = copy.ns, old.id  # the copy is not stored: what is written goes on from the old one, here
        return copy

    def _then(self, head: Head) -> ThreadRow:
        old, then = self.thread, super()._then(self.outermost or head)
        assert old is not None
        if self.outermost is None:
            then.head, then.error = old.head, old.error
            then.status = old.status if old.status in ("idle", "waiting", "failed") else "ready"
        return then
