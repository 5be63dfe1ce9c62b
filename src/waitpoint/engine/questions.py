"""Stored questions as the public API shows them, and what an attempt's end does to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from waitpoint import codec
from waitpoint.checkpoint.base import EventRow, Loaded, OutcomeRow, QuestionRow, Writes
from waitpoint.engine.segment import Segment, called_in, event, withdrawals, within
from waitpoint.engine.tasks import Outcome
from waitpoint.records import Interrupt

LISTED = 20
NOT_ASKED = "its node ran again and did not ask it"
TEXT_CHARS = 60
_values = attrgetter(*QuestionRow.__slots__)
_order = attrgetter("asked_at", "ns", "task_id", "seq")
TEXT_KEYS = ("question", "text", "message", "prompt", "title", "description")


def interrupt_of(row: QuestionRow, registry: codec.Registry) -> Interrupt[Any]:
    """Return the question as callers get it."""
    schema = None if row.schema is None else codec.loads(row.schema)
    return Interrupt(codec.loads(row.value, registry), row.id, response_schema=schema)


def copied(row: QuestionRow) -> QuestionRow:
    """Return a row that can be changed: those that were read may be recalled by the next call."""
    return QuestionRow(*_values(row))


def answerable(rows: Iterable[QuestionRow]) -> list[QuestionRow]:
    """Return the questions that a person can answer, in the order they were asked."""
    found = [r for r in rows if r.can_answer]
    if len(found) > 1:
        found.sort(key=_order)
    return found


def listed(rows: Sequence[QuestionRow]) -> str:
    """Name open questions to a caller who has to choose: id, node, and how the text begins (never the whole payload)."""
    named = [f"{row.id!r} (node {row.node!r}{_text(codec.loads(row.value))})" for row in rows[:LISTED]]
    return ", ".join(named) + (f" and {len(rows) - LISTED} more" if len(rows) > LISTED else "")


def _text(payload: Any) -> str:
    if isinstance(payload, dict):
        payload = next((payload[k] for k in TEXT_KEYS if isinstance(payload.get(k), str)), None)
    if not isinstance(payload, str):
        return ""
    return f" asks {payload if len(payload) <= TEXT_CHARS else payload[: TEXT_CHARS - 1] + '…'!r}"


def conclude(writes: Writes, segment: Segment, outcome: Outcome, ns: str) -> None:
    """Add to a commit what an attempt's end says of its questions, and to the segment's view of them.

    `ns` is the namespace, named by tasks, of graphs that are nested in the task.
    """
    end = outcome.conclusion
    if outcome.misfit is not None:
        question_id, error = outcome.misfit
        writes.reopened = [*writes.reopened, question_id]
        refused = segment.questions[question_id]
        note = event("answer_refused", question_id, answer=refused.answer, by=refused.by, error=type(error).__name__)
        writes.events = [*writes.events, note]
        segment.questions[question_id] = replace(
            refused, status="open", answer=None, by=None, comment=None, settled_at=None, token=None, settle_seq=None
        )
    if end.asked:
        writes.questions = [*writes.questions, *end.asked]
        writes.events = [*writes.events, *(event("asked", q.id, node=q.node) for q in end.asked)]
    if end.entries:
        writes.journal = [*writes.journal, *end.entries]
    gone = (
        [(row.id, NOT_ASKED) for row in (*end.unreached, *_uncalled(segment, outcome, ns))] if segment.questions else []
    )
    if gone:
        writes.withdrawn = [*writes.withdrawn, *gone]
        writes.events = [*writes.events, *withdrawals(gone)]
        for question_id, reason in gone:
            row = segment.questions[question_id]
            segment.questions[question_id] = replace(row, status="withdrawn", reason=reason)
    if end.taken:
        _mark_taken(writes, segment, outcome)


def unused_answers(loaded: Loaded) -> list[EventRow]:
    """Put on record the accepted answers that no attempt has read, when the thread is moved on from under them."""
    unread = (q for q in loaded.questions if q.status == "answered" and not _was_read(q, loaded.outcomes))
    return [event("answer_unused", q.id, by=q.by) for q in unread]


def _was_read(question: QuestionRow, outcomes: Sequence[OutcomeRow]) -> bool:
    for row in outcomes:
        if row.task_id == question.task_id or f":{row.task_id}" in called_in(question):
            return row.status != "waiting" or (question.settle_seq or 0) <= row.answer_seq
    return False  # its task has no outcome yet: a run died before it stored one


def _uncalled(segment: Segment, outcome: Outcome, ns: str) -> list[QuestionRow]:
    """Return what is open in nested graphs that an attempt, having returned or paused, did not call or did not await."""
    if outcome.kind not in ("done", "waiting"):
        return []
    called = outcome.children if outcome.kind == "waiting" else frozenset()
    still_open = (q for q in segment.questions.values() if q.status == "open" and within(called_in(q), ns))
    return [q for q in still_open if _call_number(called_in(q)[len(ns) + 1 :]) not in called]


def _call_number(rest: str) -> str:
    """Return which call of a task this is, from what follows the task's namespace: the first has no number."""
    first = rest.partition("|")[0]
    return "" if ":" in first else first


def _mark_taken(writes: Writes, segment: Segment, outcome: Outcome) -> None:
    """Let an answer be replaced if the body raised after it took it and had no effect since; else it is final."""
    failed = outcome.kind == "failed" and outcome.misfit is None and outcome.body.result is None
    for row in outcome.conclusion.taken:
        if row.status != "answered":
            continue
        can = failed and row.seq > outcome.conclusion.last_effect
        if can != row.replaceable:
            if can:
                writes.replaceable = [*writes.replaceable, row.id]
            else:
                writes.final = [*writes.final, row.id]
            if row.id in segment.questions:
                segment.questions[row.id] = replace(segment.questions[row.id], replaceable=can)
