"""One graph's run, root or nested: where it stands in its present superstep, and how that is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from waitpoint.checkpoint.base import QuestionRow, ThreadKey
from waitpoint.codec import Registry
from waitpoint.core.apply import apply_writes
from waitpoint.core.spec import GraphSpec
from waitpoint.engine.breakpoints import Breakpoints
from waitpoint.engine.commands import Emit
from waitpoint.engine.heads import Head, ItemWriter, Numbers
from waitpoint.engine.inner import graph_in
from waitpoint.engine.questions import answerable, interrupt_of
from waitpoint.engine.scope import Surroundings, TaskScope
from waitpoint.engine.segment import Segment, below, called_in, memory_ns, within
from waitpoint.engine.tasks import Task, fresh
from waitpoint.engine.trying import Pulse
from waitpoint.interrupts.journal import TaskIdentity
from waitpoint.records import Interrupt

NOWHERE = ThreadKey("", "")


@dataclass(slots=True, eq=False, repr=False)
class Run:
    """A run from a checkpoint on. `segment` is None without a checkpointer."""

    spec: GraphSpec
    registry: Registry
    head: Head
    segment: Segment | None
    around: Surroundings
    breakpoints: Breakpoints
    modes: frozenset[str] = frozenset()
    shown_ns: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    step_limit: int = 10_000
    step_timeout: float | None = None
    resumed: bool = False  # continues from a rest: a breakpoint at this checkpoint was stopped at already
    is_fresh: bool = False  # an update made this checkpoint, and no run has been at it: breakpoints still hold
    shows_start: bool = True  # whether mode `values` begins with the values as they are
    entry: tuple[Head, str] | None = None  # the input's checkpoint and the id of its task, if the run begins past it
    is_root: bool = True
    debug: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)  # of the checkpoints that this run makes
    # the present superstep
    tasks: list[Task] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)  # the head's, with what commands laid over them
    patched: set[str] = field(default_factory=set)
    scopes: list[TaskScope] = field(default_factory=list)
    paused: list[Task] = field(default_factory=list)  # whose end is not shown yet
    told: list[tuple[str, Any]] = field(default_factory=list)  # parts that tasks showed, if they do not go out at once
    writer: ItemWriter = field(init=False)
    end: Literal["finished", "waiting", "breakpoint"] = "finished"

    def __post_init__(self) -> None:
        numbers = self.segment.numbers if self.segment is not None else Numbers()
        self.writer = ItemWriter(numbers, self.registry)
        if not self.values:
            self.values = self.head.values

    @property
    def at(self) -> str:
        """The namespace that names this run by the tasks around it; that of its state may name none."""
        return self.head.origin.at or self.head.ns

    @property
    def steps_left(self) -> int:
        """How many supersteps this run may still take after the present one."""
        return self.step_limit - self.head.step - 1

    def visible(self) -> dict[str, Any]:
        """Return the values as a caller sees them now: with the writes of tasks that have finished in this superstep."""
        done = [t.result for t in self.tasks if t.state == "done" and t.result is not None]
        try:
            return apply_writes(self.spec, self.values, done)[0] if done else self.values
        except Exception:  # noqa: BLE001 - they contradict each other, and the step has failed on it
            return self.values

    def shown(self, values: dict[str, Any]) -> Any:
        """Return these values as streams and snapshots show them; the containers are fresh."""
        return self._picked(values, self.spec.shown_keys)

    @property
    def part_keys(self) -> tuple[str, ...]:
        """The keys that modes `values` and `updates` show: of a graph that is invoked inside a task, those of its output."""
        return self.spec.output_keys if self.around.shows_output else self.spec.shown_keys

    def part(self, values: dict[str, Any]) -> Any:
        """Return these values as mode `values` shows them; the containers are fresh."""
        return self._picked(values, self.part_keys)

    def output(self) -> Any:
        """Return what `invoke` returns; the containers are fresh."""
        return self._picked(self.visible(), self.spec.output_keys)

    def _picked(self, values: dict[str, Any], keys: Sequence[str]) -> Any:
        if self.spec.whole or self.spec.is_bare:
            return fresh(values.get(keys[0]))
        return {k: fresh(values[k]) for k in keys if k in values}

    def interrupts(self) -> tuple[Interrupt[Any], ...]:
        """All questions that wait in this superstep, nested ones too, in the order of the tasks."""
        return tuple(i for t in self.tasks if t.state == "waiting" for i in t.interrupts)

    @property
    def only_waits(self) -> bool:
        """Whether nothing is left to do in this superstep but to wait."""
        states = {t.state for t in self.tasks}
        return "waiting" in states and states <= {"waiting", "done"}

    def show_nested(self) -> None:
        """Show whatever the graphs called in a task ask, also those whose pause the task's body did not wait for."""
        shown = [t for t in self.tasks if t.state == "waiting" and t.children]
        under = self.questions_by_task() if shown else {}
        for task in shown:
            task.interrupts = tuple(interrupt_of(q, self.registry) for q in answerable(under.get(task.id, ())))

    def emit(self, mode: str, payload: Any) -> Iterable[Emit]:
        """Return a part for the consumer, if that mode was asked for."""
        return (Emit(self.shown_ns, mode, payload),) if mode in self.modes else ()

    def child_ns(self, task: Task) -> str:
        """Return the namespace of the state of the first graph that runs inside a task."""
        inside = graph_in(task.node)
        if inside is not None and inside.checkpointer is True:
            return memory_ns(self.head.ns, task.name)
        return below(self.head.ns, f"{task.name}:{task.id}")

    def call_ns(self, task: Task) -> str:
        """Return the namespace, named by tasks, of the first graph that is called in a task."""
        return below(self.at, f"{task.name}:{task.id}")

    def questions_by_task(self) -> dict[str, list[QuestionRow]]:
        """Return the questions of each task, and of graphs nested in it, by the task's id."""
        found: dict[str, list[QuestionRow]] = {}
        own = self.at
        for question in self.segment.questions.values() if self.segment is not None else ():
            where = called_in(question)
            if where == own:
                found.setdefault(question.task_id, []).append(question)
            elif within(where, own) or not own:
                # What follows our own namespace begins with the task's: its node's name and its id.
                part = where[len(own) :].lstrip("|").partition("|")[0]
                found.setdefault(part.rpartition(":")[2], []).append(question)
        return found

    def open_scope(self, task: Task) -> TaskScope:
        """Begin an attempt of a task."""
        segment = self.segment
        if self.around.pulse is not None:
            self.around.pulse.stir()
        before, task.answer_seq = task.answer_seq, segment.answer_seq if segment is not None else 0
        task.attempt += 1
        identity = TaskIdentity(
            segment.key if segment is not None else NOWHERE,
            self.head.ns,
            self.head.id,
            segment.root_checkpoint if segment is not None else "",
            task.id,
            task.name,
            (*self.path, task.name),
            self.head.origin.at,
        )
        scope = TaskScope(self, self.around, identity, task.due.triggers, self.head.step + 1, task.attempt, before)
        scope.node_metadata = task.node.metadata
        if (timeout := task.timeout) is not None:
            scope.pulse = Pulse(timeout, self.around.pulse)
        own: Sequence[QuestionRow] = ()
        if segment is not None and segment.questions:
            own = sorted((q for q in segment.questions.values() if q.task_id == task.id), key=lambda q: q.seq)
        scope.begin(own, task.entries)
        return scope
