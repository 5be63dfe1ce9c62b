"""Starting on a new input: the first checkpoints, and what the input finds on the thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from waitpoint import canonical, clock, codec, ids
from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    EventRow,
    Loaded,
    Move,
    OutcomeRow,
    Writes,
)
from waitpoint.core.apply import Result, apply_writes, next_control
from waitpoint.core.channels import initial
from waitpoint.core.plan import Control, due_tasks
from waitpoint.core.spec import GraphSpec
from waitpoint.engine import heads, outcomes, owner
from waitpoint.engine.commands import Store
from waitpoint.engine.heads import ROOT, Head, ItemWriter, Numbers
from waitpoint.engine.invocation import Invocation, Opened, Opening, claimed, run_of
from waitpoint.engine.leaving import before_input, left_behind
from waitpoint.engine.questions import listed
from waitpoint.engine.resuming import tasks_of
from waitpoint.engine.run import Run
from waitpoint.engine.segment import Segment, event, withdrawals
from waitpoint.engine.tasks import Body, Outcome, Task, places
from waitpoint.errors import (
    EmptyInputError,
    PendingQuestionsError,
    ThreadBusyError,
    UnknownInterruptError,
)
from waitpoint.records import START, Command

WITHDRAWN_BY_INPUT = "new input came"
WITHDRAWN_BY_MOVE = "the thread was moved to another checkpoint"


def unsaved(call: Invocation) -> Run:
    """Return a run without a checkpointer: nothing is stored, and nothing can be continued."""
    if call.input is None:
        raise EmptyInputError("None as input continues a thread, and this graph has no checkpointer; give an input")
    if isinstance(call.input, Command) and (
        call.input.has_resume or (call.input.update is None and not call.input.goto)
    ):
        raise UnknownInterruptError(
            "A graph without a checkpointer has nothing to resume; compile it with one, for instance "
            "compile(checkpointer=InMemorySaver())"
        )
    started = first_step(call, None, None)
    return started.run(call, None)


@dataclass(slots=True, eq=False, repr=False)
class _Start:
    head: Head
    tasks: list[Task]
    rows: list[Any] = field(default_factory=list)
    outcomes: list[OutcomeRow] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    entry: tuple[Head, str] | None = None  # the checkpoint of the input, and its task, where `head` lies past it

    def run(self, call: Invocation, segment: Segment | None) -> Run:
        """Return the run that begins with these tasks; its first values are shown if the input wrote any."""
        run = run_of(call, self.head, segment, self.tasks)
        run.shows_start = not self.written.isdisjoint(run.part_keys)
        run.entry = self.entry
        return run


def first_step(
    call: Invocation, before: Head | None, writer: ItemWriter | None, ns: str = "", left: Sequence[tuple[str, Any]] = ()
) -> _Start:
    """Return the first checkpoints of a run on a new input, and its first tasks."""
    spec = call.spec
    result = input_result(spec, call.input)
    if left:
        result = before_input(spec, prepared_writes(spec, list(left)), result)
    values = dict(before.values) if before is not None else initial(spec.channels)
    digest = canonical.args_digest((call.input,), {}) if ns else ""
    step = -1 if before is None else before.step + 1
    if spec.is_function:
        return _called(call, before, writer, result, _head(call, before, step, "input", values, Control(), ns), digest)
    entry = spec.nodes[START]
    control = Control(due=(START,))
    first = _head(call, before, step, "input", values, control, ns)
    first.refs = dict(before.refs) if before is not None else {}
    first.input_digest = digest
    if writer is not None and before is None:
        first.refs = heads.store_values(spec, None, values, values, writer)
    (due,) = due_tasks(first.id, ns, control)
    task = Task(due, entry, body=Body(result), result=result)
    if entry.branches:
        rows = [heads.to_row(first, writer)] if writer is not None else []
        pending = [start_row(spec, first, task, "waiting", writer)] if writer is not None else []
        return _Start(first, [task], rows, pending)
    after, written = apply_writes(spec, values, [result])
    second = _head(call, first, step + 1, "loop", after, next_control(spec, control, [result], ran_deferred=False), ns)
    second.input_digest = digest
    rows, done = [], []
    if writer is not None:
        second.refs = heads.store_values(spec, first, after, written, writer)
        rows = [heads.to_row(first, writer), heads.to_row(second, writer)]
        done = [start_row(spec, first, task, "done", writer)]
    return _Start(second, tasks_of(spec, second), rows, done, written, (first, due.id))


def _called(
    call: Invocation, before: Head | None, writer: ItemWriter | None, result: Result, head: Head, digest: str
) -> _Start:
    """Return the one checkpoint at which a function has its input and is due."""
    spec = call.spec
    head.values, written = apply_writes(spec, head.values, [result])
    head.control, head.input_digest = next_control(spec, Control(due=(START,)), [result], ran_deferred=False), digest
    rows = []
    if writer is not None:
        head.refs = heads.store_values(spec, before, head.values, written, writer)
        rows = [heads.to_row(head, writer)]
    return _Start(head, tasks_of(spec, head), rows, [], written)


def input_result(spec: GraphSpec, given: Any) -> Result:
    """Return what an input writes; a command as input writes its update and goes where it says."""
    if isinstance(given, Command):
        result = Result(START, prepared_writes(spec, spec.to_writes(given.update)) if given.update is not None else [])
        result.gotos = places(spec, START, given.goto)
        return result
    return Result(
        START, prepared_writes(spec, [w for w in spec.to_writes(spec.make_input(given)) if w[0] in spec.input_keys])
    )


def prepared_writes(spec: GraphSpec, writes: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Make of an input what is recorded: messages get their ids, once."""
    return [
        (k, v if (prepare := spec.channels[k].prepare) is None else prepare(v)) for k, v in writes
    ]  # fmt: skip


def start_row(spec: GraphSpec, head: Head, task: Task, status: Any, writer: ItemWriter | None) -> OutcomeRow:
    """Encode what the entry of a graph came to."""
    from_start = Outcome("done", task.result if status == "done" else None, body=task.body, attempt=0)
    assert writer is not None
    return outcomes.to_row(spec, head, task, from_start, status, writer)


def _head(call: Invocation, before: Head | None, step: int, source: str, values: dict[str, Any], control: Control,
          ns: str) -> Head:  # fmt: skip
    parent = None if before is None else before.id
    head = Head(ids.checkpoint_id(parent), ns, parent, step, source, clock.now(), values, {}, control)
    head.metadata = call.metadata
    head.origin = call.origin or (before.origin if before is not None else ROOT)
    return head


def given(call: Invocation, saver: BaseCheckpointSaver, loaded: Loaded, base: Loaded) -> Opening:
    """Open a run on new input: refused while the thread has something else to do, unless that is to be withdrawn."""
    closed = cleared(call, loaded, forking=base is not loaded)
    before = None
    if base.checkpoint is not None:
        before = yield Store(heads.read, (saver, call.key, base.checkpoint, call.registry))
        if base is not loaded and loaded.thread is not None:
            call.origin = before.origin.branched(before.id, ids.checkpoint_id(loaded.thread.head))
    left = yield from left_behind(call, saver, base, before, forking=base is not loaded)
    return (yield from begun(call, saver, loaded, before, closed, left))


def cleared(call: Invocation, loaded: Loaded, *, forking: bool) -> list[tuple[str, str]]:
    """Return the questions that new input closes; raises if the thread takes none."""
    thread, key = loaded.thread, call.key
    if thread is None or key is None:
        return []
    withdraw = call.on_pending == "withdraw"
    if thread.status == "running" and not owner.is_dead(thread):
        raise ThreadBusyError(
            f"Thread {key.thread_id!r} of graph {key.graph!r} is running and takes no new input; wait for it to rest",
            thread_id=key.thread_id,
            status="running",
        )
    if thread.status in ("ready", "running") and not withdraw and _has_work(loaded):
        raise ThreadBusyError(
            f"Thread {key.thread_id!r} of graph {key.graph!r} still has work to do, which new input would drop; continue it "
            f'with invoke(None), or pass on_pending="withdraw"',
            thread_id=key.thread_id,
            status=thread.status,
        )
    open_rows = [q for q in loaded.questions if q.status == "open"]
    if open_rows and not withdraw and not forking:
        raise PendingQuestionsError(
            f"Thread {key.thread_id!r} of graph {key.graph!r} waits for answers, and new input would drop its questions: "
            f'{listed(open_rows)}; answer them with Command(resume=...), or pass on_pending="withdraw"',
            thread_id=key.thread_id,
            pending_ids=[q.id for q in open_rows],
        )
    reason = WITHDRAWN_BY_MOVE if forking else WITHDRAWN_BY_INPUT
    return [(q.id, reason) for q in open_rows]


def _has_work(loaded: Loaded) -> bool:
    """Whether the stored checkpoint has anything due; a run that died before its first save leaves none."""
    if loaded.checkpoint is None:
        return False
    body = codec.loads(loaded.checkpoint.body)
    return any(k in body for k in ("d", "s", "f")) or bool(loaded.outcomes)


def _started(call: Invocation, head: str) -> EventRow:
    context = call.around.context
    return event("started", head) if context is None else event("started", head, context=type(context).__name__)


def begun(call: Invocation, saver: BaseCheckpointSaver, loaded: Loaded, before: Head | None,
           closed: list[tuple[str, str]], left: Sequence[tuple[str, Any]] = ()) -> Opening:  # fmt: skip
    """Store the first checkpoints together with the claim; `left` is written before the input."""
    assert call.key is not None
    thread = loaded.thread
    numbers = Numbers(thread.next_item if thread is not None else 0)
    writer = ItemWriter(numbers, call.registry)
    started = first_step(call, before, writer, left=left)
    writes = Writes(checkpoints=started.rows, items=writer.taken(), outcomes=started.outcomes, withdrawn=closed)
    writes.final = [q.id for q in loaded.questions if q.replaceable]
    writes.events = [*withdrawals(closed), _started(call, started.head.id)]
    segment_items = writes.items
    saves = call.durability != "exit"
    if not saves:
        writes.checkpoints, writes.items, writes.outcomes = (), (), ()
    then = claimed(call, thread, started.head.id if saves else None, numbers.next if saves else None)
    yield Store(saver.move, (Move(call.key, thread, then, writes, durable=False),))
    segment = Segment(saver, then, call.durability)
    segment.numbers.next = numbers.next
    segment.root_checkpoint = started.head.id
    if not saves:
        for row in started.rows:
            segment.keep(row, segment_items)
            segment_items = ()
    return Opened(started.run(call, segment))
