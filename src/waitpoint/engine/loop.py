"""The loop, written once: supersteps from a checkpoint to the next rest.

A generator that yields commands and receives one reply for each; the drivers obey. It knows nothing of threads, event
loops, SQL or approvals. A pause is committed before it is shown, and nothing happens after the last part: a consumer may
leave at `__interrupt__`.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, Literal

from waitpoint import clock, ids
from waitpoint.checkpoint.base import AnswersArrived, CheckpointRow, EventRow, Rest, Status, Writes
from waitpoint.core.apply import apply_writes, next_control
from waitpoint.engine import detailing, lifecycle, outcomes, recall, saying
from waitpoint.engine.attempts import attempted
from waitpoint.engine.caching import cached
from waitpoint.engine.commands import Cancel, Emit, Next, Start, Steps, Stopped, Store
from waitpoint.engine.debugging import watched
from waitpoint.engine.heads import Head, cache, store_values, to_row
from waitpoint.engine.questions import conclude
from waitpoint.engine.run import Run
from waitpoint.engine.scope import TaskScope
from waitpoint.engine.segment import below, event
from waitpoint.engine.tasks import Body, Outcome, Task, attempt
from waitpoint.engine.tracing import stepped
from waitpoint.errors import GraphDrained, GraphRecursionError, ParentCommand, StepTimeoutError
from waitpoint.records import INTERRUPT, START, Command

Deciding = Generator[Any, Any, bool]


def supersteps(run: Run) -> Steps:
    """Run to the next rest. Raises the first error of a node, after everything was recorded."""
    try:
        yield from _supersteps(run)
    except Stopped as stop:  # the consumer left while it was shown something, with no task at work
        yield from _left(run, stop)
    finally:
        run.scopes = []  # they refer to the run: without that ring it is gone when its caller is done with it


def _supersteps(run: Run) -> Steps:
    yield from _greeting(run)
    if not run.tasks and not run.patched:
        if run.is_root and run.segment is not None:  # claimed, and nothing to do: what came leads nowhere
            yield from _rest(run, "idle", Writes(events=[event("finished", run.head.id)]))
        return
    first = True
    while True:
        if first and _stops_before(run, first):
            yield from _rest_at_breakpoint(run, Writes(), None)
            return
        first = False
        failure = yield from _traced(run)
        if failure is not None:
            yield from _fail(run, failure)  # comes back only if answers came that mended it
        if any(t.state != "done" for t in run.tasks):
            if (yield from _pause(run)):
                return
        elif (yield from _advance(run)):
            return


def _greeting(run: Run) -> Steps:
    """Tell what a consumer sees first: the values at the start, and what finished in an earlier run."""
    yield from lifecycle.resumed(run)
    if run.modes:
        yield from detailing.entered(run)
    if "values" in run.modes and run.shows_start:
        yield Emit(run.shown_ns, "values", run.part(run.values))
    if run.modes:
        yield from detailing.reached(run)
        yield from saying.known(run)
    for task in run.tasks if "updates" in run.modes else ():
        if task.cached:
            update = {task.name: outcomes.shown(run.spec, task.result, run.part_keys), "__metadata__": {"cached": True}}
            yield from run.emit("updates", update)


def _stops_before(run: Run, first: bool) -> bool:
    """Whether a breakpoint holds before these tasks; one that let go at this checkpoint does not hold again."""
    if first and run.resumed and not run.is_fresh:
        return False
    return run.breakpoints.before(run.tasks, run.head.passed)


# --- running tasks ----------------------------------------------------------------------------------------------------


def _traced(run: Run) -> Generator[Any, Any, BaseException | None]:
    return _run_due(run) if run.around.tracing is None else stepped(run, _run_due(run))


def _run_due(run: Run) -> Generator[Any, Any, BaseException | None]:
    """Start what is due and take in every end; return the first error."""
    due = [t for t in run.tasks if t.state == "due"]
    pending = 0
    failure: BaseException | None = None
    run.scopes = []
    try:
        for task in due:
            scope = run.open_scope(task)
            run.scopes.append(scope)
            if run.modes:
                yield from _announced(run, task)
            yield Start(task, scope, _calls(run, task, scope))
            pending += 1
        ends = None if run.step_timeout is None else time.monotonic() + run.step_timeout
        while pending:
            task, outcome = yield Next(None if ends is None else max(0.0, ends - time.monotonic()))
            pending -= 1
            yield from _take_in(run, task, outcome, last=pending == 0)
            if outcome.kind == "stopped" and failure is None:
                raise Stopped(outcome.error or KeyboardInterrupt())
            if failure is None and outcome.kind in ("failed", "parent") and outcome.misfit is None:
                failure = outcome.error
                if pending:
                    pending = yield Cancel(abandon=False)
    except StepTimeoutError as late:
        failure = failure or late
        for scope in run.scopes:
            scope.journal.sealed = True
        yield from _collect(run, (yield Cancel(abandon=True)))
    except Stopped as stop:
        yield from _wind_down(run, stop)
    except GeneratorExit:
        raise
    except BaseException:  # the store failed: nobody else may have the thread while siblings are still at work
        yield from _joined(run)
        raise
    return failure or next(
        (t.outcome.error for t in due if t.outcome is not None and t.outcome.misfit is not None), None
    )


def _announced(run: Run, task: Task) -> Steps:
    yield from detailing.started(run, task)
    yield from saying.sent(run, task)


def _calls(run: Run, task: Task, scope: TaskScope) -> Generator[Any, Any, Outcome]:
    calls = attempt(run.spec, task, run.values, scope)
    if run.around.tracing is not None and task.name != START:
        calls = attempted(calls, task, scope)
    if task.node.cache_policy is not None and run.around.cache is not None:
        calls = cached(calls, run.spec, task, scope)
    return watched(calls, run.spec, task.node, scope) if run.debug else calls


def _take_in(run: Run, task: Task, outcome: Outcome, *, last: bool) -> Steps:
    """Take in how a task ended, store it if siblings are still to end, and show it."""
    while run.told:
        yield Emit(run.shown_ns, *run.told.pop(0))
    if run.around.pulse is not None:
        run.around.pulse.stir()
    _note(run, task, outcome)
    task.interrupts, task.error, task.result = outcome.interrupts, outcome.error, outcome.result
    task.children, task.entries = outcome.children, outcome.conclusion.known or task.entries
    if task.state == "done":
        if task.children and run.segment is not None:
            run.segment.forget(below(run.head.ns, f"{task.name}:{task.id}"))
        fused = last and all(t.state == "done" for t in run.tasks)
        if run.segment is not None and not fused:
            writes = Writes()
            _record(run, task, writes)
            try:
                yield Store(run.segment.save, (writes, run.writer.taken(), False))
            except BaseException:
                task.outcome = outcome  # not on record: the commit that ends the run tries again
                raise
        if run.modes:
            yield from saying.returned(run, task)
        if "updates" in run.modes and task.name != START:
            from_cache = {"__metadata__": {"cached": True}} if outcome.body.is_cached else {}
            update = outcomes.shown(run.spec, outcome.result, run.part_keys)
            yield Emit(run.shown_ns, "updates", {task.name: update, **from_cache})
    if run.modes and not outcome.body.is_cached:
        if task.state == "waiting":
            run.paused.append(task)  # shown once what it asks is on record
        else:
            yield from detailing.ended(run, task)


def _note(run: Run, task: Task, outcome: Outcome) -> None:
    """Encode an outcome as it comes in: a value that cannot be stored is the failure of the node that returned it."""
    mark = run.writer.mark()
    try:
        _encode(run, task, outcome)
    except Exception as error:  # noqa: BLE001 - whatever an encoder raises, nothing half-stored may remain
        run.writer.rewind(mark)
        outcome.kind, outcome.error, outcome.misfit = "failed", error, None
        outcome.result, outcome.body, outcome.interrupts = None, Body(), ()
        outcome.conclusion.asked = []
        _encode(run, task, outcome)
    task.outcome, task.attempt, task.body = outcome, outcome.attempt, outcome.body
    task.state = _state(outcome)


def _encode(run: Run, task: Task, outcome: Outcome) -> None:
    if run.segment is not None and outcome.kind != "stopped":
        outcome.row = outcomes.to_row(run.spec, run.head, task, outcome, _state(outcome), run.writer)


def _state(outcome: Outcome) -> Literal["done", "waiting", "failed"]:
    if outcome.kind == "done" and outcome.misfit is None:
        return "done"
    return "waiting" if outcome.kind == "waiting" or outcome.misfit is not None else "failed"


def _record(run: Run, task: Task, writes: Writes) -> None:
    """Add a task's outcome to a commit, once."""
    outcome = task.outcome
    if outcome is None or run.segment is None:
        return
    if outcome.row is not None:
        writes.outcomes = [*writes.outcomes, outcome.row]
        conclude(writes, run.segment, outcome, run.call_ns(task))
    task.outcome = None


def _collect(run: Run, pending: int) -> Steps:
    """Take in tasks that still end."""
    while pending:
        task, outcome = yield Next()
        pending -= 1
        yield from _take_in(run, task, outcome, last=False)


def _joined(run: Run) -> Steps:
    """Let started work end and record it, as far as the store still can; shows nothing."""
    pending = yield Cancel(abandon=False)
    while pending:
        task, outcome = yield Next()
        pending -= 1
        _note(run, task, outcome)
    if run.segment is not None:
        try:
            yield Store(run.segment.save, (_all_outcomes(run), run.writer.taken(), True))
        except Exception:  # noqa: BLE001 - the first error is what the caller hears of
            return


def _wind_down(run: Run, stop: Stopped) -> Steps:
    """Let started work end, record it, and leave the thread ready to go on; if all that is left waits, so does it."""
    yield from _collect(run, (yield Cancel(abandon=False)))
    done = bool(run.tasks) and all(t.state == "done" for t in run.tasks)
    try:
        if done and (yield from _advance(run)):
            raise stop.error  # nothing was left to do
        if run.is_root and run.only_waits and (yield from _pause(run)):
            raise stop.error
    except Exception:  # noqa: BLE001 - it is on record; who left wants to hear of leaving
        raise stop.error from None
    yield from _left(run, stop)


def _left(run: Run, stop: Stopped) -> Steps:
    """Leave the thread ready to go on, unless it rests already, and tell who left why."""
    if run.is_root and run.segment is not None and not run.segment.rests:
        writes = _all_outcomes(run)
        writes.events = [*writes.events, event("interrupted", error=type(stop.error).__name__)]
        yield from _rest(run, "ready", writes)
    raise stop.error


# --- the ends of a superstep ------------------------------------------------------------------------------------------


def _advance(run: Run) -> Deciding:
    """Make the next checkpoint from the results; True if the run rests there."""
    spec, head = run.spec, run.head
    results = [t.result for t in run.tasks if t.result is not None]
    row: CheckpointRow | None = None
    mark = run.writer.mark()
    try:
        values, written = apply_writes(spec, run.values, results)
        deferred = bool(run.tasks) and not (head.control.due or head.control.sends)
        control = next_control(spec, head.control, results, deferred)
        at = clock.now()
        new = Head(ids.checkpoint_id(head.id), head.ns, head.id, head.step + 1, "loop", at, values, {}, control)
        new.metadata, new.input_digest, new.origin = run.metadata, head.input_digest, head.origin
        if run.segment is not None:
            new.refs = store_values(spec, head, values, written | run.patched, run.writer)
            row = to_row(new, run.writer)
    except Exception as error:  # writes contradict each other, a reducer failed or made what cannot be stored
        run.writer.rewind(mark)
        yield from _fail(run, error)
        raise
    names = [t.name for t in run.tasks]
    writes = Writes()
    for task in run.tasks:
        _record(run, task, writes)
    run.head, run.values, run.patched = new, values, set()
    run.tasks = _tasks(run)
    over = new.step >= run.step_limit
    stops = run.breakpoints.after(names) or run.breakpoints.before(run.tasks)
    rests = not run.tasks or stops or over
    run.end = "breakpoint" if stops else "finished"
    yield from _save_step(run, row, writes, rests=rests and not (over and run.tasks))
    if "values" in run.modes and not written.isdisjoint(run.part_keys):
        yield Emit(run.shown_ns, "values", run.part(values))
    if run.modes:
        yield from detailing.reached(run)
    if over:
        yield from _over_limit(run)
    if stops:
        yield from lifecycle.paused(run, "interrupt_after" if run.breakpoints.after(names) else "interrupt_before")
        yield from run.emit("updates", {INTERRUPT: ()})
    elif run.tasks and run.around.control is not None and run.around.control.drain_reason is not None:
        yield from _drain(run, run.around.control.drain_reason)
    return rests


def _save_step(run: Run, row: CheckpointRow | None, writes: Writes, *, rests: bool) -> Steps:
    """Store the new checkpoint; the one that lets the thread rest is durable, and one commit."""
    segment = run.segment
    if segment is None or row is None:
        return
    if rests and run.is_root:
        cache(segment.saver, segment.key, run.head)
        writes.events = [*writes.events, event("finished" if not run.tasks else "breakpoint", run.head.id)]
        yield from _rest(run, "idle", writes, row)
        return
    yield Store(segment.save_step, (row, run.writer.taken(), writes))
    run.writer.forget()


def _tasks(run: Run) -> list[Task]:
    """Return the tasks of a checkpoint that this run made itself: none has run yet."""
    nodes = run.spec.nodes
    return [Task(due, nodes[due.name]) for due in run.head.due]


def _pause(run: Run) -> Deciding:
    """Rest with open questions, unless answers came meanwhile; True if the run rests."""
    run.end = "waiting" if any(t.state == "waiting" and t.interrupts for t in run.tasks) else "breakpoint"
    segment = run.segment
    if segment is not None:
        writes = _all_outcomes(run)
        if not run.is_root:
            yield Store(segment.save, (writes, run.writer.taken(), False))
            run.show_nested()
            yield from detailing.paused(run)
            return True
        cache(segment.saver, segment.key, run.head)
        status: Status = "waiting" if run.end == "waiting" else "idle"
        writes.events = [*writes.events, event("paused", run.head.id)]
        goes_on = yield from _rest(run, status, writes)
        run.show_nested()
        if goes_on:
            yield from detailing.paused(run)
            return False
    yield from lifecycle.paused(run, "pending")
    if run.modes:
        yield from detailing.paused(run)
        yield from detailing.resting(run)
    interrupts = run.interrupts() if run.modes else ()
    yield from run.emit("updates", {INTERRUPT: interrupts})
    if interrupts and "values" in run.modes:
        shown = None if run.spec.is_function else run.part(run.visible())
        yield from run.emit("values", {**(shown if isinstance(shown, dict) else {}), INTERRUPT: interrupts})
    return True


def _rest_at_breakpoint(run: Run, writes: Writes, row: CheckpointRow | None) -> Steps:
    """Stop before anything of this superstep ran."""
    run.end = "breakpoint"
    if run.segment is not None and run.is_root:
        writes.events = [*writes.events, event("breakpoint", run.head.id)]
        yield from _rest(run, "idle", writes, row)
    yield from lifecycle.paused(run, "interrupt_before")
    yield from run.emit("updates", {INTERRUPT: ()})


def _fail(run: Run, error: BaseException) -> Steps:
    """Record a failed superstep and raise its error; what finished stays finished, and questions stay open.

    An answer that its class refused is no failure of the step: the question is open again, and the thread waits.
    """
    mending, misfit = run.segment is not None, False
    while mending:
        misfit = misfit or any(_is_refused(t) for t in run.tasks)
        refused = misfit and all(t.state != "failed" for t in run.tasks)
        mending = yield from _rest_failed(run, error, refused=refused)
        if mending:  # answers came meanwhile, perhaps to a question of the task that failed
            left: BaseException | None = error if refused else None
            found = (yield from _traced(run)) or _failure_of(run) or left
            if found is None:
                return
            error = found
    yield from detailing.paused(run)
    if isinstance(error, ParentCommand) and not run.is_root:
        command = error.args[0]
        raise ParentCommand(Command(update=command.update, goto=command.goto)) from None
    raise error


def _rest_failed(run: Run, error: BaseException, *, refused: bool) -> Deciding:
    """Let the thread rest with an error; True if instead answers came that make a task due again."""
    assert run.segment is not None
    writes = _all_outcomes(run)
    if not run.is_root:
        yield Store(run.segment.save, (writes, run.writer.taken(), False))
        return False
    if isinstance(error, GraphDrained):  # in a graph nested in a node: a stop that was asked for, and no failure
        writes.events = [*writes.events, event("drained", run.head.id, reason=error.reason)]
        return (yield from _rest(run, "ready", writes))
    writes.events = [*writes.events, event("refused" if refused else "failed", run.head.id, error=repr(error))]
    status: Status = "waiting" if refused else "failed"
    return (yield from _rest(run, status, writes, error=None if refused else repr(error)))


def _failure_of(run: Run) -> BaseException | None:
    """Return the error of a task that failed before, in this run."""
    errors = (t.error for t in run.tasks if t.state == "failed")
    return next((e for e in errors if isinstance(e, BaseException)), None)


def _is_refused(task: Task) -> bool:
    return task.outcome is not None and task.outcome.misfit is not None


def _rest(
    run: Run, status: Status, writes: Writes, row: CheckpointRow | None = None, error: str | None = None
) -> Deciding:
    """Let the thread rest; True if instead answers came that make a task due again."""
    segment = run.segment
    assert segment is not None
    items = run.writer.taken()
    while True:
        try:
            yield Store(segment.rest, (writes, items, Rest(status, segment.answer_seq, error), row))
        except AnswersArrived:
            items = []  # the segment keeps what it was given
            if row is None and status != "ready":
                yield Store(segment.save, (writes, items, True))
                writes = Writes()
            read = segment.answer_seq
            yield Store(segment.reload)
            if status != "ready" and _wake(run):
                return True
            writes.events = [*writes.events, *_unused(run, read)]
        else:
            if status in ("waiting", "idle"):
                recall.keep(segment, run.head, status)
            return False


def _unused(run: Run, read: int) -> list[EventRow]:
    """Put on record the answers that came when their node had already gone on without asking again."""
    assert run.segment is not None
    under = run.questions_by_task()
    done = [q for t in run.tasks if t.state == "done" for q in under.get(t.id, ())]
    return [event("answer_unused", q.id, by=q.by) for q in done if (q.settle_seq or 0) > read]


def _wake(run: Run) -> bool:
    """Make tasks due whose questions were settled since they read their answers."""
    woken, under = False, run.questions_by_task()
    for task in run.tasks:
        if task.state in ("waiting", "failed") and any(
            (q.settle_seq or 0) > task.answer_seq for q in under.get(task.id, ())
        ):
            task.state, woken = "due", True
    return woken


def _all_outcomes(run: Run) -> Writes:
    writes = Writes()
    for task in run.tasks:
        _record(run, task, writes)
    return writes


def _over_limit(run: Run) -> Steps:
    limit = run.around.config.get("recursion_limit")
    error = GraphRecursionError(
        f"Recursion limit of {limit} reached without hitting a stop condition. You can increase the limit by setting the "
        f"`recursion_limit` config key."
    )
    if run.segment is not None and run.is_root and run.tasks:
        yield from _rest(
            run, "failed", Writes(events=[event("failed", run.head.id, error=repr(error))]), None, repr(error)
        )
    raise error


def _drain(run: Run, reason: str) -> Steps:
    if run.segment is not None and run.is_root:
        yield from _rest(run, "ready", Writes(events=[event("drained", run.head.id, reason=reason)]))
    raise GraphDrained(reason)
