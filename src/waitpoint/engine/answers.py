"""Answering: which questions an answer speaks to, whether it may, and the one transaction that stores it.

All answers of one command are checked before any is stored, and stored all or none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from waitpoint import clock, codec, ids, schemas
from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    PendingFilter,
    QuestionRow,
    QuestionsChanged,
    Settle,
    Settlement,
    ThreadChanged,
    ThreadKey,
    ThreadRow,
)
from waitpoint.codec import Registry
from waitpoint.engine.questions import listed
from waitpoint.engine.segment import event
from waitpoint.engine.tracing import Tracing, waits
from waitpoint.errors import (
    AlreadyAnsweredError,
    AmbiguousInterruptError,
    NotFoundError,
    UnknownInterruptError,
    UnstorableValueError,
    UsageError,
)
from waitpoint.interrupts import forms
from waitpoint.records import Answer


@dataclass(slots=True, eq=False, repr=False)
class Prepared:
    """Answers that passed all checks; none are left if all were stored before, under the same tokens."""

    settlements: list[Settlement]


def is_map(resume: Any) -> bool:
    """Whether a resume value is a map of answers by question id."""
    return isinstance(resume, dict) and any(ids.is_id(k) for k in resume)


def prepare(resume: Any, open_rows: Sequence[QuestionRow], saver: BaseCheckpointSaver, key: ThreadKey,
            registry: Registry | None) -> Prepared:  # fmt: skip
    """Check a resume value against the questions that can be answered. Nothing is stored.

    Raises:
        UnknownInterruptError: it names no such question, or a bare value finds none.
        AmbiguousInterruptError: a bare value finds several.
        pydantic.ValidationError: an answer does not fit its question's schema.
    """
    if is_map(resume):
        return _prepare_map(resume, open_rows, saver, key, registry)
    if is_repeated(resume, saver, key, registry):
        return Prepared([])
    if not open_rows:
        raise UnknownInterruptError(
            f"Nothing is pending on thread {key.thread_id!r} of graph {key.graph!r}, so there is nothing to answer; the "
            f"value was not stored. Send it as input if it is a new message; go on with work that is due by invoke(None)",
            reason="not_pending",
        )
    if len(open_rows) > 1:
        raise AmbiguousInterruptError(
            f"When there are multiple pending interrupts, you must specify the interrupt id when resuming. There are "
            f"multiple pending interrupts on thread {key.thread_id!r}: {listed(open_rows)}",
            reason="ambiguous",
            pending_ids=[r.id for r in open_rows],
        )
    return Prepared([_settlement(open_rows[0], resume, registry)])


def _prepare_map(
    answers: Mapping[Any, Any], open_rows: Sequence[QuestionRow], saver: BaseCheckpointSaver, key: ThreadKey,
    registry: Registry | None,
) -> Prepared:  # fmt: skip
    by_id = {row.id: row for row in open_rows}
    wrong = [k for k in answers if k not in by_id]
    pending = list(by_id)
    if wrong:
        known = {
            q.id: q for q in saver.questions(PendingFilter(ids=[k for k in wrong if ids.is_id(k)], answerable=False))
        }
        refused = [k for k in wrong if not _is_repetition(known.get(k), answers[k], registry)]
        if not refused:
            rest = {k: v for k, v in answers.items() if k in by_id}
            return Prepared([_settlement(by_id[k], v, registry) for k, v in rest.items()])
        raise refusal(refused, known, pending, key, saver.thread(key))
    return Prepared([_settlement(by_id[k], v, registry) for k, v in answers.items()])


def check_old(resume: Any, rows: Sequence[QuestionRow], saver: BaseCheckpointSaver, key: ThreadKey,
              registry: Registry | None) -> Prepared:  # fmt: skip
    """Check a resume value against the questions of an old checkpoint, before that is run again to ask them anew.

    A bare value is for the one that is asked first; of several tasks it is refused. Raises what `prepare` raises.
    """
    by_id = {row.id: row for row in rows}
    if is_map(resume) and all(_is_repetition(by_id.get(k), v, registry) for k, v in resume.items()):
        return Prepared([])
    if not rows and not is_map(resume) and not is_repeated(resume, saver, key, registry):
        raise UnknownInterruptError(
            f"Nothing was asked at that checkpoint of thread {key.thread_id!r} of graph {key.graph!r}, so there is nothing to "
            f"answer and nothing was run; run again from it by invoke(None, config)",
            reason="not_pending",
        )
    first = {row.task_id: row for row in sorted(rows, key=lambda row: -row.seq)}
    return prepare(resume, rows if is_map(resume) else list(first.values()), saver, key, registry)


def is_repeated(resume: Any, saver: BaseCheckpointSaver, key: ThreadKey, registry: Registry | None) -> bool:
    """Whether a bare answer was given to this thread before, under its token; so it is not one to what is open now.

    Raises `AlreadyAnsweredError` if the token came with another value.
    """
    if not isinstance(resume, Answer) or resume.token is None:
        return False
    asked = saver.questions(PendingFilter(key.thread_id, key.graph, answerable=False))
    found = [q for q in asked if q.token == resume.token and not q.can_answer]
    if found and not any(_is_repetition(q, resume, registry) for q in found):
        pending = [q.id for q in asked if q.can_answer]
        raise refusal([found[0].id], {found[0].id: found[0]}, pending, key, saver.thread(key))
    return bool(found)


def _is_repetition(row: QuestionRow | None, answer: Any, registry: Registry | None) -> bool:
    """Whether this very answer was stored before: same token, same value."""
    if row is None or not isinstance(answer, Answer) or answer.token is None or row.token != answer.token:
        return False
    try:
        value = _as_read(row, answer.value)
    except ValueError:  # its form refuses it, so it never was stored
        return False
    return row.answer == _stored(row, value, registry)


def _settlement(row: QuestionRow, answer: Any, registry: Registry | None) -> Settlement:
    given = answer if isinstance(answer, Answer) else Answer(answer)
    for name in ("by", "comment", "token"):
        value = getattr(given, name)
        if value is not None and not isinstance(value, str):
            raise UsageError(f"`{name}` of the answer to {row.id!r} is a {type(value).__name__}; give text")
    if given.shown_digest is not None and given.shown_digest != row.digest:
        raise UnknownInterruptError(
            f"The question {row.id!r} is not the one that was shown: its payload's digest is {row.digest!r}, the answer was "
            f"given to {given.shown_digest!r}; show it again and ask anew",
            reason="not_pending",
            interrupt_ids=[row.id],
        )
    value = _as_read(row, given.value)
    if row.schema is not None:
        schemas.check_answer(codec.loads(row.schema), _plain(value), title=f"answer to {row.id}")
    data = _stored(row, value, registry)
    return Settlement(row.id, "answered", clock.now(), data, given.by, given.comment, given.token)


def _as_read(row: QuestionRow, value: Any) -> Any:
    """Return an answer in the shape of the question's form, if it has one that this process knows."""
    extra = codec.loads(row.extra)
    read = forms.read(extra["form"]) if "form" in extra else None
    if read is None:
        return value
    schema = {} if row.schema is None else codec.loads(row.schema)
    return read(codec.loads(row.value), schema, extra["form_data"], _plain(value))


def _stored(row: QuestionRow, value: Any, registry: Registry | None) -> bytes:
    """Encode an answer: as it is if the node takes what it gets and its type can be stored, else as plain data."""
    if row.schema is None:
        with contextlib.suppress(UnstorableValueError):
            return codec.dumps(value, registry, path="answer")
    return codec.dumps(_plain(value), registry, path="answer")


def _plain(value: Any) -> Any:
    try:
        return schemas.plain_answer(value)
    except RecursionError:
        raise UnstorableValueError(
            "'answer' cannot be stored - it contains itself, or nests too deep - give ids that refer to the parts",
            path="answer",
        ) from None


def refusal(
    wrong: Sequence[Any], known: Mapping[str, QuestionRow], pending: Sequence[str], key: ThreadKey | None,
    thread: ThreadRow | None,
) -> UnknownInterruptError:  # fmt: skip
    """Return the error for answers to questions that cannot be answered; it names the first."""
    first = next((k for k in wrong if k in known and known[k].status == "answered"), wrong[0])
    row = known.get(first)
    lead = f"Unknown or already-consumed interrupt: {first}"
    waits = f"; pending are {', '.join(map(repr, sorted(pending)))}" if pending else "; nothing is pending"
    texts = [str(w) for w in wrong]
    if row is None:
        return UnknownInterruptError(
            f"{lead} is no question of this thread{waits}", interrupt_ids=texts, pending_ids=pending
        )
    if key is not None and row.key != key:
        where = f"thread {row.key.thread_id!r} of graph {row.key.graph!r}"
        return UnknownInterruptError(
            f"{lead} belongs to {where}; answer it there", interrupt_ids=texts, pending_ids=pending
        )
    if row.status == "answered":
        at = clock.iso(row.settled_at or 0.0)
        who = f"by {row.by!r} " if row.by is not None else ""
        running = thread is not None and thread.status in ("ready", "running")
        yet = ", and the thread has yet to act on it" if running else ""
        return AlreadyAnsweredError(
            f"{lead} was answered {who}at {at}; the first answer stands{yet}",
            interrupt_ids=texts,
            pending_ids=pending,
            answered_by=row.by,
            answered_at=at,
            still_to_run=running,
        )
    why = f"was withdrawn: {row.reason}" if row.status == "withdrawn" else "cannot be answered any more"
    return UnknownInterruptError(f"{lead} {why}{waits}", interrupt_ids=texts, pending_ids=pending)


def settle(saver: BaseCheckpointSaver, change: Settle, tracing: Tracing | None = None) -> ThreadRow:
    """Store answers, and tell tracers of the waits that they end; a loser is told who won. `tracing`: of who goes on."""
    change.writes.events = [
        *change.writes.events,
        *(event(s.status, s.id, by=s.by, comment=s.comment, reason=s.reason) for s in change.settlements),
    ]
    try:
        row = saver.settle(change)
    except QuestionsChanged as lost:
        wanted = [s.id for s in change.settlements]
        known = {q.id: q for q in lost.questions}
        gone = [i for i in wanted if i not in known or not known[i].can_answer]
        if gone and all(_is_same(known.get(s.id), s) for s in change.settlements if s.id in gone):
            raise ThreadChanged("The same answer came twice at once; look again", thread=lost.thread) from None
        pending = [q.id for q in saver.questions(PendingFilter(change.key.thread_id, change.key.graph))]
        raise refusal(gone or wanted, known, pending, change.key, saver.thread(change.key)) from None
    waits(saver, change.settlements, None if tracing is None else tracing.span)
    return row


def _is_same(row: QuestionRow | None, settlement: Settlement) -> bool:
    is_token = settlement.token is not None and row is not None and row.token == settlement.token
    return is_token and row is not None and row.answer == settlement.answer


def answer(saver: BaseCheckpointSaver, question_id: str, value: Any) -> ThreadRow:
    """Record an answer to a question of any thread, without running anything. `value` may be an `Answer`."""
    row = find(saver, question_id)
    if not row.can_answer and _is_repetition(row, value, None):
        thread = saver.thread(row.key)
        assert thread is not None
        return thread
    if not row.can_answer:
        raise refused(saver, row)
    try:
        return settle(saver, Settle(row.key, [_settlement(row, value, None)]))
    except ThreadChanged:
        return answer(saver, question_id, value)  # it was being given under the same token at the same time


def refused(saver: BaseCheckpointSaver, row: QuestionRow) -> UnknownInterruptError:
    """Return the error for an answer to a question that cannot be answered any more."""
    pending = [q.id for q in saver.questions(PendingFilter(row.key.thread_id, row.key.graph))]
    return refusal([row.id], {row.id: row}, pending, row.key, saver.thread(row.key))


def withdraw(saver: BaseCheckpointSaver, question_id: str, reason: str, by: str | None = None) -> ThreadRow:
    """Close an open question without an answer; its node goes on with `QuestionWithdrawn` when the thread runs."""
    row = find(saver, question_id)
    settlement = Settlement(question_id, "withdrawn", clock.now(), by=by, reason=reason)
    return settle(saver, Settle(row.key, [settlement]))


def find(saver: BaseCheckpointSaver, question_id: str) -> QuestionRow:
    """Return a question of any thread. Raises `NotFoundError`."""
    found = saver.questions(PendingFilter(ids=[question_id], answerable=False))
    if not found:
        raise NotFoundError(
            f"Unknown question {question_id!r}: this store has none of that id; list what waits to see ids"
        )
    return found[0]
