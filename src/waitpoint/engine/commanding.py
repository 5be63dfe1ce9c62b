"""Commands as input: answers, updates and places to go."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    Loaded,
    Move,
    QuestionRow,
    Settle,
    Settlement,
    ThreadRow,
    Writes,
)
from waitpoint.core.apply import Result, apply_writes
from waitpoint.engine import answers, heads, outcomes, owner
from waitpoint.engine.commands import Store
from waitpoint.engine.descent import Level, asked_at
from waitpoint.engine.forking import forked
from waitpoint.engine.heads import Head, InlineWriter
from waitpoint.engine.invocation import Invocation, Opened, Opening, claimed, thread_key
from waitpoint.engine.questions import answerable, copied
from waitpoint.engine.resuming import at_rest, continued, looked, resumed
from waitpoint.engine.segment import event, withdrawals
from waitpoint.engine.starting import begun, cleared, prepared_writes
from waitpoint.engine.tasks import places
from waitpoint.errors import ConfigError, ThreadBusyError, UnknownInterruptError
from waitpoint.records import END, INPUT, Command


def commanded(
    call: Invocation, saver: BaseCheckpointSaver, loaded: Loaded, base: Loaded, command: Command[Any]
) -> Opening:
    """Open a run on a command."""
    thread = loaded.thread
    if not command.has_resume and command.update is None and command.goto in ((), None, []):
        raise UnknownInterruptError(
            "The Command given as input is empty: it has neither resume, update nor goto; Command(resume=None) answers None",
            reason="empty_map",
        )
    if thread is None or loaded.checkpoint is None:
        if command.has_resume:
            answers.prepare(command.resume, [], saver, thread_key(call), None)
        return (yield from begun(call, saver, loaded, None, cleared(call, loaded, forking=False)))
    if base is not loaded:
        # Refused before anything runs again; what passes is checked once more against what the fork asks.
        answers_it = command.has_resume and (base.questions or not any(call.breakpoints))
        if answers_it:
            given = (command.resume, base.questions, saver, thread_key(call), call.registry)
            if not (yield Store(answers.check_old, given)).settlements:
                return (yield from _repeated(call, saver, loaded))
        opened = yield from forked(
            call, saver, loaded, base, lambda head: _patched(call, head, thread, command).outcomes
        )
        if answers_it:
            opened.answer_later = (command.resume, base.questions)
        return opened
    head = yield Store(heads.read, (saver, call.key, loaded.checkpoint, call.registry))
    if command.has_resume:
        return (yield from _answered(call, saver, loaded, head, command))
    return (yield from _redirected(call, saver, loaded, head, command))


def went_inside(call: Invocation, saver: BaseCheckpointSaver, loaded: Loaded, levels: Sequence[Level]) -> Opening:
    """Run again from an old checkpoint of a nested graph, and answer what it asks there if the input is an answer."""
    command, base = call.input, levels[0].loaded
    if command is None:
        return (yield from forked(call, saver, loaded, base, levels=levels))
    is_answer = isinstance(command, Command) and command.has_resume and command.update is None and not command.goto
    if not is_answer:
        raise ConfigError(
            f"The config names a checkpoint of subgraph {levels[-1].head.ns!r}, and new input, updates and `goto` are for the "
            f"outermost graph; leave `checkpoint_ns` and `checkpoint_id` out, or change the subgraph with update_state() and "
            f"go on with None"
        )
    asked = asked_at(levels)
    given = (command.resume, asked, saver, thread_key(call), levels[-1].registry)
    if not (yield Store(answers.check_old, given)).settlements:
        return (yield from _repeated(call, saver, loaded))
    opened = yield from forked(call, saver, loaded, base, levels=levels)
    opened.answer_later = (command.resume, asked)
    return opened


def _answered(
    call: Invocation, saver: BaseCheckpointSaver, loaded: Loaded, head: Head, command: Command[Any]
) -> Opening:
    """Store the answers and, in the same transaction, claim the thread; or wait for who runs it."""
    thread, key = loaded.thread, thread_key(call)
    assert thread is not None
    open_rows = answerable(loaded.questions)
    if not answers.is_map(command.resume):
        yield from _bound(call, saver, thread, open_rows, command.resume)
    was_moved = head.moved_at == thread.fence and not head.passed  # by an update, so no breakpoint was stopped at here
    at_breakpoint = not open_rows and thread.status == "idle" and not head.control.finished and not was_moved
    if at_breakpoint and not answers.is_map(command.resume):
        if (yield Store(answers.is_repeated, (command.resume, saver, key, call.registry))):
            return (yield from _repeated(call, saver, loaded))
        return (yield from _redirected(call, saver, loaded, head, replace(command, resume=None), even_empty=True))
    prepared = yield Store(answers.prepare, (command.resume, open_rows, saver, key, call.registry))
    if not prepared.settlements:  # all of it was stored before, under the same tokens
        return (yield from _repeated(call, saver, loaded))
    writes = _patched(call, head, thread, command)
    if writes.outcomes and thread.status == "running" and not owner.is_dead(thread):
        raise ThreadBusyError(
            f"Thread {key.thread_id!r} of graph {key.graph!r} is running, and a Command that changes its state has to wait "
            f"for its rest; send the answer alone, it is taken at once",
            thread_id=key.thread_id,
            status="running",
        )
    settled = {s.id: s for s in prepared.settlements}
    # Whoever claims acts on all answers that are there, so none of the others can be replaced any more.
    writes.final = [q.id for q in loaded.questions if q.replaceable and q.id not in settled]
    change = Settle(key, prepared.settlements, call.claim(), head.id if writes.outcomes else None, writes, thread.fence)
    row = yield Store(answers.settle, (saver, change, call.around.tracing))
    if row.owner != call.owner:
        return (yield from _taken_or_awaited(call, saver, row))
    if row.answer_seq != thread.answer_seq + 1 or row.head != thread.head or writes.outcomes:
        loaded = yield Store(saver.load, (key,))
        head = yield Store(heads.read, (saver, key, loaded.checkpoint, call.registry))
    else:
        loaded.questions = [
            _settled(question, settled[question.id], row.answer_seq) if question.id in settled else question
            for question in loaded.questions
        ]
    run = yield from resumed(call, saver, loaded, head, row)
    run.segment.claim(row)
    return Opened(run)


def _settled(question: QuestionRow, settlement: Settlement, seq: int) -> QuestionRow:
    """Return a row that was read before the settlement as the store has it now."""
    question = copied(question)
    question.status, question.replaceable, question.settle_seq = settlement.status, False, seq
    question.settled_at, question.by, question.comment = settlement.at, settlement.by, settlement.comment
    question.answer, question.token, question.reason = settlement.answer, settlement.token, settlement.reason
    return question


def _taken_or_awaited(call: Invocation, saver: BaseCheckpointSaver, row: ThreadRow) -> Opening:
    """Go on after an answer that is stored while another run has the thread: take over from a dead one, else await it."""
    if not owner.is_dead(row):
        return Opened(wait_for=row)
    call.input = None  # whoever is faster at taking over acts on the answer, which must not be given twice
    loaded = yield Store(saver.load, (thread_key(call),))
    return (yield from continued(call, saver, loaded))


def _bound(
    call: Invocation, saver: BaseCheckpointSaver, thread: ThreadRow, open_rows: Sequence[QuestionRow], resume: Any
) -> Generator[Store, Any, None]:
    """Refuse a bare value for anything but what was there when the call entered, however often it has to look again."""
    met = (thread.head, {q.id for q in open_rows})
    if call.met is None:
        call.met = met
    elif call.met != met:
        if (yield Store(answers.is_repeated, (resume, saver, thread.key, call.registry))):
            return
        raise UnknownInterruptError(
            f"Thread {thread.key.thread_id!r} of graph {thread.key.graph!r} was moved on by another run meanwhile, and what "
            f"waits there now is not what the value was given to; look at the thread again, or answer by id",
            pending_ids=[q.id for q in open_rows],
        )


def _repeated(call: Invocation, saver: BaseCheckpointSaver, loaded: Loaded) -> Opening:
    """Show what came of answers that were stored before, under the same tokens; where nothing came yet, run."""
    if loaded.thread is not None and loaded.thread.status == "idle":
        return Opened(at_rest((yield from looked(call, saver, loaded))), resting=True)
    return (yield from continued(call, saver, loaded))


def _patched(call: Invocation, head: Head, thread: ThreadRow, command: Command[Any]) -> Writes:
    """Return the rows of a command's update and places to go, laid over the checkpoint.

    They take no item numbers: another run may have the thread, and give them out, when an answer brings an update.
    """
    spec = call.spec
    if command.update is None and not command.goto:
        return Writes()
    writes = [] if command.update is None else prepared_writes(spec, spec.to_writes(command.update))
    gotos = [g for g in places(spec, INPUT, command.goto) if g != END]
    result = Result(INPUT, writes, gotos)
    apply_writes(spec, head.values, [result])  # what does not fit is refused, not stored: it would be read at each look
    order = f"{outcomes.PATCH}:{thread.fence:012d}:{thread.answer_seq:012d}"
    row = outcomes.patch_row(spec, head, order, result, thread.answer_seq, InlineWriter(call.registry))
    return Writes(outcomes=[row])


def _redirected(
    call: Invocation, saver: BaseCheckpointSaver, loaded: Loaded, head: Head, command: Command[Any], *,
    even_empty: bool = False,
) -> Opening:  # fmt: skip
    """Lay the update of a command without an answer over the checkpoint, and go on."""
    thread = loaded.thread
    assert thread is not None
    closed = [] if even_empty else cleared(call, loaded, forking=False)
    writes = _patched(call, head, thread, command)
    writes.withdrawn = closed
    writes.final = [q.id for q in loaded.questions if q.replaceable]
    writes.events = [*withdrawals(closed), event("continued", head.id)]
    then = claimed(call, thread, None, None)
    yield Store(saver.move, (Move(thread.key, thread, then, writes, durable=False),))
    if writes.outcomes or closed:
        loaded = yield Store(saver.load, (thread.key,))
    run = yield from resumed(call, saver, loaded, head, then)
    run.segment.claim(then)
    run.is_fresh = head.moved_at == thread.fence
    return Opened(run)
