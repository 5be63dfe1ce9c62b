"""Questions as people and programs see them: a line, a card, a document, and the commands that answer them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from waitpoint import clock
from waitpoint.checkpoint.base import QuestionRow, as_question
from waitpoint.cli import cards, lookup, safe, terminal, times
from waitpoint.cli.place import Place
from waitpoint.codec import to_json
from waitpoint.records import Question
from waitpoint.shown import calls, payloads, samples

CARDS = 3  # more questions than these are listed in a table
_COLUMNS = (
    terminal.Column("ID", "cyan"),
    terminal.Column("GRAPH"),
    terminal.Column("THREAD"),
    terminal.Column("NODE"),
    terminal.Column("ASKED"),
    terminal.Column("QUESTION"),
)


def decoded(rows: Sequence[QuestionRow]) -> list[Question]:
    """Decode stored questions."""
    return [as_question(row) for row in rows]


def summary(value: Any) -> str:
    """Return a payload in one line: the sentence in it if there is one, else its fields."""
    plain = to_json(value)
    if isinstance(plain, str):
        return safe.line(plain)
    if not isinstance(plain, dict):
        return safe.json_text(plain, indent=None)
    if payloads.is_in_doubt(value):
        return cards.doubt_summary(value)
    lead = payloads.words(plain)
    if lead is not None:
        return safe.line(lead)
    return ", ".join(f"{safe.line(k)}: {_short(v)}" for k, v in plain.items()) or "{}"


def headline(question: Question) -> str:
    """Return a question in one line; one about tool calls names the tools."""
    review = calls.review_of(question)
    return summary(question.value) if review is None else cards.summary(review)


def _short(value: Any) -> str:
    return safe.line(value) if isinstance(value, str) else safe.json_text(value, indent=None)


def commands(place: Place, question: Question, shown_id: str | None = None) -> list[str]:
    """Return commands that answer a question: one for each decision, or for each kind of answer its schema takes."""
    name = shown_id or question.id[: lookup.SHORTEST]
    review = calls.review_of(question)
    if review is not None:
        return _decision_commands(place, review, name)
    answers = samples.samples(question.response_schema)
    words = [safe.json_text(answer, indent=None) for answer in answers] or ["JSON"]
    return [place.line("answer", name, word) for word in words]


def _decision_commands(place: Place, review: calls.Review, name: str) -> list[str]:
    several = len(review.calls) > 1
    every = ["--all"] if several else []
    lines = []
    for kind in calls.DECISIONS:
        if not all(kind in call.allowed for call in review.calls):
            continue
        if kind == "respond":
            lines.append(place.line(kind, name, "TEXT", options=every))
        elif kind == "reject":
            lines.append(place.line(kind, name, options=[*every, "--reason", "TEXT"]))
        elif kind == "approve" or not several:
            lines.append(place.line(kind, name, options=every))
    if several:
        lines.append(place.line("decide", name, *(f"{call.number}=DECISION" for call in review.calls)))
    return lines


def document(place: Place, question: Question) -> dict[str, Any]:
    """Return a question for programs; times are UTC texts."""
    return {
        "id": question.id,
        "thread_id": question.thread_id,
        "graph": question.graph,
        "node": question.node,
        "path": list(question.path),
        "ns": question.ns,
        "status": question.status,
        "can_answer": question.can_answer,
        "value": question.value,
        "response_schema": question.response_schema,
        "asked_at": clock.iso(question.asked_at),
        "settled_at": None if question.settled_at is None else clock.iso(question.settled_at),
        "by": question.by,
        "comment": question.comment,
        "answer": question.answer,
        "reason": question.reason,
        "supersedes": question.supersedes,
        "changed_paths": list(question.changed_paths),
        "key": question.key,
        "digest": question.digest,
        "commands": commands(place, question, question.id) if question.can_answer else [],
    }


def table(listed: Sequence[Question], short: Mapping[str, str]) -> None:
    """Write questions as a table, one line each."""
    rows = [
        (
            short[q.id],
            safe.line(q.graph),
            safe.line(q.thread_id),
            safe.line(q.node),
            times.age(q.asked_at),
            headline(q),
        )
        for q in listed
    ]
    terminal.table(_COLUMNS, rows)


def waiting(place: Place, listed: Sequence[Question]) -> None:
    """Write the questions of one thread with the commands that answer them."""
    short = lookup.shortened([q.id for q in listed])
    if len(listed) > CARDS:
        table(listed, short)
        terminal.say()
        terminal.say(f"Look at one with:  {place.line('show', 'ID')}")
        if all(calls.review_of(question) for question in listed):
            terminal.say(f"Decide with:       {place.line('approve', 'ID')}   (or edit, reject, respond)")
        else:
            terminal.say(f"Answer with:       {place.line('answer', 'ID', 'JSON')}")
        return
    for question in listed:
        terminal.say(f"{short[question.id]}  {safe.line(question.node)}: {headline(question)}", "bold")
        for command in commands(place, question, short[question.id]):
            terminal.say(f"    {command}")
