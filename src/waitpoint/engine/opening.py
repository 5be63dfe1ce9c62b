"""Opening a run: from an input, a command or nothing to a claimed thread at a checkpoint.

Generators of store commands, like the loop. Each ends in a `Run`, or in None where there is nothing to run or another
run must be waited for.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from waitpoint import canonical, clock, codec, ids
from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    Loaded,
    Move,
    OutcomeRow,
    QuestionRow,
    Settle,
    ThreadChanged,
    ThreadKey,
    ThreadRow,
    Writes,
)
from waitpoint.codec import Registry
from waitpoint.core.apply import Result, apply_writes, next_control
from waitpoint.core.channels import initial
from waitpoint.core.plan import Control, due_tasks
from waitpoint.core.spec import GraphSpec
from waitpoint.engine import answers, heads, outcomes, owner
from waitpoint.engine.breakpoints import Breakpoints
from waitpoint.engine.commands import Store
from waitpoint.engine.heads import Head, ItemReader, ItemWriter, Numbers
from waitpoint.engine.questions import answerable, interrupt_of
from waitpoint.engine.run import Run
from waitpoint.engine.scope import Surroundings
from waitpoint.engine.segment import Segment, event
from waitpoint.engine.tasks import Body, Task, places
from waitpoint.errors import (
    ConfigError,
    EmptyInputError,
    PendingQuestionsError,
    ReplayMismatch,
    ThreadBusyError,
    UnknownInterruptError,
)
from waitpoint.records import END, INPUT, START, Command, Durability, OnPending, Send

WITHDRAWN_BY_INPUT = "new input came"
WITHDRAWN_BY_MOVE = "the thread was moved to another checkpoint"


@dataclass(slots=True)
class Invocation:
    """One call of invoke or stream, sorted out."""

    spec: GraphSpec
    registry: Registry
    input: Any
    around: Surroundings
    breakpoints: Breakpoints = field(default_factory=Breakpoints)
    saver: BaseCheckpointSaver | None = None
    key: ThreadKey | None = None
    checkpoint_id: str | None = None
    durability: Durability = "async"
    on_pending: OnPending = "refuse"
    modes: frozenset[str] = frozenset()
    recursion_limit: int = 10_000
    step_timeout: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)  # of every checkpoint of this run
    shown_ns: tuple[str, ...] = ()
    live: Any = None  # where parts of this run go while tasks run: the outermost consumer's

    owner: str = ""

    def claim(self) -> tuple[str, float]:
        """Who claims the thread for this call, and until when."""
        if not self.owner:
            assert self.saver is not None
            self.owner = owner.claim(self.saver)
        return self.owner, clock.now() + owner.LEASE_SECONDS

    def output_keys(self, keys: str | Sequence[str]) -> None:
        """Show only these keys of the state."""
        wanted = (keys,) if isinstance(keys, str) else tuple(keys)
        for key in wanted:
            if key not in self.spec.channels:
                raise ConfigError(f"`output_keys` names {key!r}, which is no key of graph {self.spec.name!r}")
        self.spec = replace(self.spec, output_keys=wanted)


@dataclass(slots=True)
class Opened:
    """What an opening came to: a run, one that only shows where the thread rests, or (`wait_for`) someone else's run."""

    run: Run | None = None
    resting: bool = False
    wait_for: ThreadRow | None = None
    answer_later: Any = None  # an answer for the question that a fork is going to ask


Opening = Generator[Store, Any, Opened]


def open_run(call: Invocation) -> Opening:
    """Open a root run."""
    if call.saver is None:
        return Opened(_unsaved(call))
    while True:
        try:
            return (yield from _open(call, call.saver))
        except ThreadChanged:
            continue  # someone was first; look again and decide anew


def _open(call: Invocation, saver: BaseCheckpointSaver) -> Opening:
    assert call.key is not None
    loaded: Loaded = yield Store(saver.load, (call.key,))
    thread = loaded.thread
    base = loaded
    if call.checkpoint_id is not None and thread is not None and call.checkpoint_id != thread.head:
        base = yield Store(saver.load, (call.key, "", call.checkpoint_id))
        if base.checkpoint is None:
            raise_unknown_checkpoint(call.key, call.checkpoint_id)
    forking = base is not loaded
    if isinstance(call.input, Command):
        return (yield from _commanded(call, saver, loaded, base, call.input))
    if call.input is not None:
        return (yield from _given(call, saver, loaded, base))
    if thread is None or loaded.checkpoint is None:
        raise EmptyInputError(
            f"Thread {call.key.thread_id!r} of graph {call.key.graph!r} has never run, so None has nothing to continue; "
            f"give an input"
        )
    if forking:
        return (yield from _forked(call, saver, loaded, base))
    return (yield from _continued(call, saver, loaded))


def raise_unknown_checkpoint(key: ThreadKey, checkpoint_id: str) -> None:
    """Refuse a checkpoint id that the thread does not have."""
    from_thread = f"thread {key.thread_id!r} of graph {key.graph!r}"
    raise EmptyInputError(f"Unknown checkpoint {checkpoint_id!r} in {from_thread}; take ids from get_state_history()")


# --- new input --------------------------------------------------------------------------------------------------------


def _unsaved(call: Invocation) -> Run:
    """A run without a checkpointer: nothing is stored, and nothing can be continued."""
    if call.input is None:
        raise EmptyInputError("None as input continues a thread, and this graph has no checkpointer; give an input")
    if isinstance(call.input, Command) and (
        call.input.has_resume or (call.input.update is None and not call.input.goto)
    ):
        raise UnknownInterruptError(
            "A graph without a checkpointer has nothing to resume; compile it with one, for instance "
            "compile(checkpointer=InMemorySaver())"
        )
    started = _started(call, None, None)
    return _run(call, started.head, None, started.tasks)


@dataclass(slots=True)
class _Start:
    head: Head
    tasks: list[Task]
    rows: list[Any] = field(default_factory=list)
    outcomes: list[OutcomeRow] = field(default_factory=list)


def _started(call: Invocation, before: Head | None, writer: ItemWriter | None, ns: str = "") -> _Start:
    """The first checkpoints of a run on a new input, and its first tasks."""
    spec = call.spec
    result = _input_result(spec, call.input)
    values = dict(before.values) if before is not None else initial(spec.channels)
    digest = canonical.args_digest((call.input,), {}) if ns else ""
    step = -1 if before is None else before.step + 1
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
        pending = [_start_row(spec, first, task, "waiting", writer)] if writer is not None else []
        return _Start(first, [task], rows, pending)
    after, written = apply_writes(spec, values, [result])
    second = _head(call, first, step + 1, "loop", after, next_control(spec, control, [result], ran_deferred=False), ns)
    second.input_digest = digest
    rows, done = [], []
    if writer is not None:
        second.refs = heads.store_values(spec, first, after, written, writer)
        rows = [heads.to_row(first, writer), heads.to_row(second, writer)]
        done = [_start_row(spec, first, task, "done", writer)]
    return _Start(second, tasks_of(spec, second), rows, done)


def _input_result(spec: GraphSpec, given: Any) -> Result:
    """What an input writes; a command as input writes its update and goes where it says."""
    if isinstance(given, Command):
        result = Result(START, _prepared(spec, spec.to_writes(given.update)) if given.update is not None else [])
        result.gotos = places(spec, START, given.goto)
        return result
    return Result(
        START, _prepared(spec, [w for w in spec.to_writes(spec.make_input(given)) if w[0] in spec.input_keys])
    )


def _prepared(spec: GraphSpec, writes: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return [
        (k, v if (prepare := spec.channels[k].prepare) is None else prepare(v)) for k, v in writes
    ]  # fmt: skip


def _start_row(spec: GraphSpec, head: Head, task: Task, status: Any, writer: ItemWriter | None) -> OutcomeRow:
    from_start = outcomes.Outcome("done", task.result if status == "done" else None, body=task.body, attempt=0)
    assert writer is not None
    return outcomes.to_row(spec, head, task, from_start, status, writer)


def _head(call: Invocation, before: Head | None, step: int, source: str, values: dict[str, Any], control: Control,
          ns: str) -> Head:  # fmt: skip
    parent = None if before is None else before.id
    head = Head(ids.checkpoint_id(parent), ns, parent, step, source, clock.now(), values, {}, control)
    head.metadata = call.metadata
    return head


def _given(call: Invocation, saver: BaseCheckpointSaver, loaded: Loaded, base: Loaded) -> Opening:
    """New input: refused while the thread has something else to do, unless that is to be withdrawn."""
    thread = loaded.thread
    closed = _cleared(call, saver, loaded, forking=base is not loaded)
    before = None
    if base.checkpoint is not None:
        before = yield Store(heads.read, (saver, call.key, base.checkpoint, call.registry))
    return (yield from _begun(call, saver, thread, before, closed))


def _cleared(call: Invocation, saver: BaseCheckpointSaver, loaded: Loaded, *, forking: bool) -> list[tuple[str, str]]:
    """The questions that new input closes; raises if the thread takes none."""
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
        listed = ", ".join(f"{q.id!r} (of node {q.node!r})" for q in open_rows)
        raise PendingQuestionsError(
            f"Thread {key.thread_id!r} of graph {key.graph!r} waits for answers, and new input would drop its questions: "
            f'{listed}; answer them with Command(resume=...), or pass on_pending="withdraw"',
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


def _begun(call: Invocation, saver: BaseCheckpointSaver, thread: ThreadRow | None, before: Head | None,
           closed: list[tuple[str, str]]) -> Opening:  # fmt: skip
    assert call.key is not None
    numbers = Numbers(thread.next_item if thread is not None else 0)
    writer = ItemWriter(numbers, call.registry)
    started = _started(call, before, writer)
    writes = Writes(checkpoints=started.rows, items=writer.taken(), outcomes=started.outcomes, withdrawn=closed)
    writes.final = [q for q, _ in closed]
    writes.events = [event("started", started.head.id)]
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
    return Opened(_run(call, started.head, segment, started.tasks))


def claimed(call: Invocation, thread: ThreadRow | None, head: str | None, next_item: int | None) -> ThreadRow:
    """The thread's row once this call runs it."""
    at = clock.now()
    who, lease = call.claim()
    if thread is None:
        return ThreadRow(_key(call), "running", 1, 0, next_item or 0, head, who, lease, None, at, at)
    return replace(
        thread, status="running", fence=thread.fence + 1, owner=who, lease_until=lease, updated_at=at, error=None,
        head=thread.head if head is None else head, next_item=thread.next_item if next_item is None else next_item,
    )  # fmt: skip


# --- going on ---------------------------------------------------------------------------------------------------------


def _continued(call: Invocation, saver: BaseCheckpointSaver, loaded: Loaded) -> Opening:
    """Run what needs no new answer; nothing if every unfinished task waits."""
    thread, checkpoint = loaded.thread, loaded.checkpoint
    assert thread is not None and checkpoint is not None
    if thread.status == "running" and not owner.is_dead(thread):
        return Opened(wait_for=thread)
    head = yield Store(heads.read, (saver, call.key, checkpoint, call.registry))
    run = yield from _resumed(call, saver, loaded, head, None)
    if (
        thread.status in ("idle", "waiting", "failed")
        and not any(t.state == "due" for t in run.tasks)
        and not run.patched
    ):
        return Opened(at_rest(run), resting=True)
    then = claimed(call, thread, None, None)
    writes = Writes(events=[event("continued", checkpoint.id)])
    yield Store(saver.move, (Move(thread.key, thread, then, writes, durable=False),))
    run.segment.claim(then)
    run.resumed = thread.status in ("idle", "waiting", "failed")
    return Opened(run)


def at_rest(run: Run) -> Run:
    """A run that is not run: it shows where the thread rests."""
    run.end = "waiting" if run.interrupts() else "finished"
    return run


def _resumed(call: Invocation, saver: BaseCheckpointSaver, loaded: Loaded, head: Head, thread: ThreadRow | None) -> Any:
    """The run that goes on at a checkpoint, with what its tasks came to so far. It holds no claim yet."""
    row = thread if thread is not None else loaded.thread
    assert row is not None and call.key is not None
    segment = Segment(saver, row, call.durability)
    segment.root_checkpoint = head.id
    segment.questions = {q.id: q for q in loaded.questions}
    reader = ItemReader(saver, call.key, call.registry)
    prior = yield Store(prior_of, (loaded.outcomes, reader))
    run = _run(call, head, segment, [])
    lay_over(run, head, prior)
    _open_journals(run, loaded)
    run.resumed = True
    return run


def looked(call: Invocation, saver: BaseCheckpointSaver, loaded: Loaded) -> Any:
    """A run that holds no claim, at what was read."""
    assert loaded.checkpoint is not None
    head = yield Store(heads.read, (saver, call.key, loaded.checkpoint, call.registry))
    return (yield from _resumed(call, saver, loaded, head, None))


def answered(call: Invocation, saver: BaseCheckpointSaver, claimed_row: ThreadRow) -> Opening:
    """The run after answers that were stored together with the claim."""
    loaded = yield Store(saver.load, (call.key,))
    run = yield from looked(call, saver, loaded)
    run.segment.claim(claimed_row)
    return Opened(run)


@dataclass(slots=True)
class Prior:
    """An outcome row with its decoded parts."""

    row: OutcomeRow
    result: Result | None
    body: Body


def prior_of(rows: Sequence[OutcomeRow], reader: ItemReader) -> list[Prior]:
    """Decode outcome rows."""
    return [Prior(r, outcomes.read_result(r, reader), outcomes.read_body(r, reader)) for r in rows]


def lay_over(run: Run, head: Head, prior: Sequence[Prior]) -> None:
    """Put the tasks of a checkpoint into the state that earlier attempts and commands left them in."""
    patches = [p.result for p in prior if p.row.status == outcomes.PATCH and p.result is not None]
    gotos: list[str | Send] = [g for p in patches for g in p.gotos]
    run.values, run.patched = head.values, set()
    if patches:
        run.values, run.patched = apply_writes(run.spec, head.values, patches)
    run.tasks = tasks_of(run.spec, head, gotos)
    by_id = {p.row.task_id: p for p in prior}
    for task in run.tasks:
        found = by_id.get(task.id)
        if found is not None:
            _restore(run, task, found)


def _open_journals(run: Run, loaded: Loaded) -> None:
    if loaded.journal:
        for task in run.tasks:
            task.entries = [entry for entry in loaded.journal if entry.task_id == task.id]


def _restore(run: Run, task: Task, found: Prior) -> None:
    row = found.row
    task.attempt, task.answer_seq, task.body = row.attempt, row.answer_seq, found.body
    if row.status == "done":
        task.state, task.result, task.cached = "done", found.result, task.name != START
    elif row.status == "waiting":
        under = run.questions_under(task)
        waits = [q for q in under if q.status == "open"]
        news = any((q.settle_seq or 0) > row.answer_seq for q in under)
        if waits and not news:
            task.state = "waiting"
            task.interrupts = tuple(interrupt_of(q) for q in answerable(waits))


def tasks_of(spec: GraphSpec, head: Head, gotos: Sequence[str | Send] = ()) -> list[Task]:
    """The tasks of a checkpoint, none of them run yet."""
    return [Task(due, spec.nodes[due.name]) for due in due_tasks(head.id, head.ns, head.control, gotos) if due.name in
            spec.nodes]  # fmt: skip


def run_at(call: Invocation, head: Head, segment: Segment) -> Run:
    """A run at a checkpoint, without tasks yet."""
    return _run(call, head, segment, [])


def _run(call: Invocation, head: Head, segment: Segment | None, tasks: list[Task]) -> Run:
    around = replace(call.around, recorder=segment, registry=call.registry)
    run = Run(
        call.spec, call.registry, head, segment, around, call.breakpoints, call.modes, call.shown_ns, tasks=tasks,
        step_timeout=call.step_timeout,
    )  # fmt: skip
    entry = 1 if head.control.due == (START,) else 0
    run.step_limit = head.step + entry + call.recursion_limit
    return run


# --- graphs nested in a node -------------------------------------------------------------------------------------------


def open_child(call: Invocation, segment: Segment, ns: str, path: tuple[str, ...]) -> Opening:
    """Open a graph that runs inside a task: at its input, or where an earlier attempt of the task left it."""
    saver, key = segment.saver, segment.key
    loaded: Loaded = yield Store(saver.load, (key, ns))
    if loaded.checkpoint is None:
        writer = ItemWriter(segment.numbers, call.registry)
        started = _started(call, None, writer, ns)
        yield Store(segment.start_child, (started.rows, writer.taken(), started.outcomes))
        run = _run(call, started.head, segment, started.tasks)
    else:
        head = yield Store(heads.read, (saver, key, loaded.checkpoint, call.registry))
        if call.input is not None and head.input_digest != canonical.args_digest((call.input,), {}):
            raise ReplayMismatch(
                f"Graph {call.spec.name!r}, called in node {path[-1]!r}, was called with another input before the node ran "
                f"again; make the input the same on every run (record what varies with step())",
                node=path[-1],
            )
        prior = yield Store(prior_of, (loaded.outcomes, ItemReader(saver, key, call.registry)))
        run = _run(call, head, segment, [])
        lay_over(run, head, prior)
        _open_journals(run, loaded)
        run.resumed = True
    run.is_root, run.path = False, path
    return Opened(run)


# --- commands ---------------------------------------------------------------------------------------------------------


def _commanded(
    call: Invocation, saver: BaseCheckpointSaver, loaded: Loaded, base: Loaded, command: Command[Any]
) -> Opening:
    thread = loaded.thread
    if not command.has_resume and command.update is None and command.goto in ((), None, []):
        raise UnknownInterruptError(
            "The Command given as input is empty: it has neither resume, update nor goto; Command(resume=None) answers None",
            reason="empty_map",
        )
    if thread is None or loaded.checkpoint is None:
        if command.has_resume:
            answers.prepare(command.resume, [], saver, _key(call), None)
        return (yield from _begun(call, saver, thread, None, []))
    if base is not loaded:
        opened = yield from _forked(call, saver, loaded, base)
        if command.has_resume:
            opened.answer_later = (command.resume, base.questions)
        return opened  # type: ignore[no-any-return]
    head = yield Store(heads.read, (saver, call.key, loaded.checkpoint, call.registry))
    if command.has_resume:
        return (yield from _answered(call, saver, loaded, head, command))
    return (yield from _redirected(call, saver, loaded, head, command))


def _key(call: Invocation) -> ThreadKey:
    assert call.key is not None
    return call.key


def _answered(
    call: Invocation, saver: BaseCheckpointSaver, loaded: Loaded, head: Head, command: Command[Any]
) -> Opening:
    """Store the answers and, in the same transaction, claim the thread; or wait for who runs it."""
    thread, key = loaded.thread, _key(call)
    assert thread is not None
    open_rows = answerable(loaded.questions)
    resting = thread.status in ("idle", "waiting", "failed", "ready")
    at_breakpoint = not open_rows and resting and not head.control.finished
    if at_breakpoint and not answers.is_map(command.resume):
        return (yield from _redirected(call, saver, loaded, head, replace(command, resume=None), even_empty=True))
    prepared = yield Store(answers.prepare, (command.resume, open_rows, saver, key, call.registry))
    if not prepared.settlements:  # all of it was stored before, under the same tokens
        return (yield from _continued(call, saver, loaded))
    writer = ItemWriter(Numbers(thread.next_item), call.registry)
    writes = _patched(call, head, thread, command, writer)
    change = Settle(key, prepared.settlements, call.claim(), head.id if writes.outcomes else None, writes)
    row = yield Store(answers.settle, (saver, change))
    if row.owner != call.owner:
        return (yield from _taken_or_awaited(call, saver, row))
    if row.answer_seq != thread.answer_seq + 1 or row.head != thread.head or writes.outcomes:
        loaded = yield Store(saver.load, (key,))
        head = yield Store(heads.read, (saver, key, loaded.checkpoint, call.registry))
    else:
        settled = {s.id: s for s in prepared.settlements}
        loaded.questions = [_settled(q, settled.get(q.id), row.answer_seq) for q in loaded.questions]
    run = yield from _resumed(call, saver, loaded, head, row)
    run.segment.claim(row)
    return Opened(run)


def _settled(question: QuestionRow, settlement: Any, seq: int) -> QuestionRow:
    if settlement is None:
        return question
    return replace(
        question, status=settlement.status, settled_at=settlement.at, settle_seq=seq, by=settlement.by,
        comment=settlement.comment, answer=settlement.answer, token=settlement.token, reason=settlement.reason,
    )  # fmt: skip


def _taken_or_awaited(call: Invocation, saver: BaseCheckpointSaver, row: ThreadRow) -> Opening:
    """The answer is stored, and another run has the thread: take over from a dead one, else await its rest."""
    if not owner.is_dead(row):
        return Opened(wait_for=row)
    loaded = yield Store(saver.load, (_key(call),))
    return (yield from _continued(call, saver, loaded))


def _patched(call: Invocation, head: Head, thread: ThreadRow, command: Command[Any], writer: ItemWriter) -> Writes:
    """The rows of a command's update and places to go, laid over the checkpoint."""
    spec = call.spec
    if command.update is None and not command.goto:
        return Writes()
    writes = [] if command.update is None else _prepared(spec, spec.to_writes(command.update))
    gotos = [g for g in places(spec, INPUT, command.goto) if g != END]
    result = Result(INPUT, writes, gotos)
    order = f"{outcomes.PATCH}:{thread.fence:012d}:{thread.answer_seq:012d}"
    row = outcomes.patch_row(spec, head, order, result, thread.answer_seq, writer)
    return Writes(outcomes=[row], items=writer.taken())


def _redirected(
    call: Invocation, saver: BaseCheckpointSaver, loaded: Loaded, head: Head, command: Command[Any], *,
    even_empty: bool = False,
) -> Opening:  # fmt: skip
    """A command without an answer: lay its update over the checkpoint and go on."""
    thread = loaded.thread
    assert thread is not None
    closed = [] if even_empty else _cleared(call, saver, loaded, forking=False)
    writer = ItemWriter(Numbers(thread.next_item), call.registry)
    writes = _patched(call, head, thread, command, writer)
    writes.withdrawn = closed
    writes.events = [event("continued", head.id)]
    then = claimed(call, thread, None, writer.numbers.next)
    yield Store(saver.move, (Move(thread.key, thread, then, writes, durable=False),))
    if writes.outcomes or closed:
        loaded = yield Store(saver.load, (thread.key,))
    run = yield from _resumed(call, saver, loaded, head, then)
    run.segment.claim(then)
    return Opened(run)


# --- forks ------------------------------------------------------------------------------------------------------------


def _forked(call: Invocation, saver: BaseCheckpointSaver, loaded: Loaded, base: Loaded) -> Opening:
    """Run again from an old checkpoint: a new one beside its first continuation, whose tasks ask anew."""
    thread, key = loaded.thread, _key(call)
    assert thread is not None and base.checkpoint is not None
    if thread.status == "running" and not owner.is_dead(thread):
        raise ThreadBusyError(
            f"Thread {key.thread_id!r} of graph {key.graph!r} is running; wait for it to rest before going back",
            thread_id=key.thread_id,
            status="running",
        )
    old = yield Store(heads.read, (saver, key, base.checkpoint, call.registry))
    writer = ItemWriter(Numbers(thread.next_item), call.registry)
    head = replace(old, id=ids.checkpoint_id(thread.head), parent_id=old.id, step=old.step + 1, source="fork",
                   created_at=clock.now(), metadata=call.metadata, passed=())  # fmt: skip
    closed = [(q.id, WITHDRAWN_BY_MOVE) for q in loaded.questions if q.status == "open"]
    row = heads.to_row(head, writer)
    outcome_rows = yield Store(_entry_again, (call, saver, base, head, writer))
    writes = Writes(checkpoints=[row], items=writer.taken(), outcomes=outcome_rows, withdrawn=closed)
    writes.final = [q.id for q in loaded.questions if q.replaceable]
    writes.events = [event("forked", head.id, base=old.id)]
    then = claimed(call, thread, head.id, writer.numbers.next)
    yield Store(saver.move, (Move(key, thread, then, writes),))
    after = Loaded(then, row, outcome_rows, (), ())
    run = yield from _resumed(call, saver, after, head, then)
    run.segment.claim(then)
    run.resumed = False
    return Opened(run)


def _entry_again(
    call: Invocation, saver: BaseCheckpointSaver, base: Loaded, head: Head, writer: ItemWriter
) -> list[OutcomeRow]:
    """A fork of an input checkpoint begins with the same input."""
    if head.control.due != (START,):
        return []
    reader = ItemReader(saver, _key(call), call.registry)
    (due,) = due_tasks(head.id, head.ns, head.control)
    for row in base.outcomes:
        if row.node == START:
            result = outcomes.read_result(row, reader) or outcomes.read_body(row, reader).result
            task = Task(due, call.spec.nodes[START], body=Body(result), result=result)
            return [_start_row(call.spec, head, task, "waiting", writer)]
    return []
