"""`inbox`, `show` and `threads`: what waits, over all threads, and one question in full."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from waitpoint import clock
from waitpoint.checkpoint.base import PendingFilter, ThreadRow, as_question
from waitpoint.cli import cards, exits, lookup, questions, safe, terminal, times
from waitpoint.cli.options import command
from waitpoint.cli.place import Place
from waitpoint.engine import owner
from waitpoint.errors import UsageError
from waitpoint.records import Question
from waitpoint.shown import calls, payloads, samples

_LIMIT = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="List at most so many.")]
_THREADS = (
    terminal.Column("THREAD", "cyan"),
    terminal.Column("GRAPH"),
    terminal.Column("STATUS"),
    terminal.Column("CHANGED"),
    terminal.Column("QUESTIONS"),
    terminal.Column("ERROR"),
)
_FIELDS = (
    terminal.Column("FIELD", "cyan"),
    terminal.Column("VALUE"),
    terminal.Column("NEEDED"),
    terminal.Column("ABOUT"),
)


@command()
def inbox(
    place: Place,
    thread: Annotated[str | None, typer.Option("--thread", metavar="ID", help="Only those of this thread.")] = None,
    limit: _LIMIT = 50,
) -> int:
    """List the questions that wait for an answer, over all threads, oldest first."""
    saver = place.saver()
    thread_id = None if thread is None else lookup.thread(saver, thread, None).key.thread_id
    wanted = PendingFilter(thread_id, limit=limit)
    listed = questions.decoded(saver.questions(wanted))
    if place.as_json:
        terminal.document(
            {
                "questions": [questions.document(place, q) for q in listed],
                "count": saver.count(PendingFilter(thread_id)),
            }
        )
        return exits.DONE
    if not listed:
        terminal.say("Nothing waits.")
        return exits.DONE
    questions.table(listed, lookup.shortened([q.id for q in listed]))
    more = saver.count(PendingFilter(thread_id)) - len(listed) if len(listed) == limit else 0
    terminal.say()
    if more:
        terminal.say(f"... and {more} more; --limit lists them.")
    terminal.say(f"Look at one with:  {place.line('show', 'ID')}")
    return exits.DONE


@command()
def show(
    place: Place, id: Annotated[str, typer.Argument(metavar="ID", help="The question's id, or the beginning of it.")]
) -> int:
    """Show one question in full, what an answer may be, and the command that gives it."""
    question = as_question(lookup.question(place.saver(), id))
    if place.as_json:
        terminal.document(questions.document(place, question))
        return exits.DONE
    terminal.say(f"Question {question.id}", "bold")
    for name, text in _facts(question):
        terminal.say(f"  {name:<8} {text}")
    terminal.say()
    review = calls.review_of(question)
    if review is not None:
        _say_all(cards.review_lines(review))
    elif payloads.is_in_doubt(question.value):
        _say_all(cards.doubt_lines(question.value))
    else:
        terminal.say(safe.json_text(question.value))
    if question.can_answer and review is not None:
        _say_commands("Decide with:", questions.commands(place, question))
    elif question.can_answer and payloads.is_in_doubt(question.value):
        _say_choices(place, question)
    elif question.can_answer:
        _say_how(place, question)
    elif question.status == "answered":
        terminal.say()
        terminal.say("Answer:")
        terminal.say(safe.json_text(question.answer))
    return exits.DONE


@command()
def threads(place: Place, context: typer.Context, limit: _LIMIT = 50) -> int:
    """List the threads, newest change first; or keep house among them."""
    if context.invoked_subcommand is not None:
        if place.store_flag or place.config_flag or place.as_json:
            raise UsageError(f"Options stand behind the command: `waitpoint threads {context.invoked_subcommand} ...`")
        return exits.DONE
    saver = place.saver()
    found = saver.threads(limit=limit + 1)
    rows = found[:limit]
    counts = {row.key: saver.count(PendingFilter(row.key.thread_id, row.key.graph)) for row in rows}
    if place.as_json:
        terminal.document({"threads": [_thread_document(row, counts[row.key]) for row in rows]})
        return exits.DONE
    if not rows:
        terminal.say("There are no threads yet.")
        return exits.DONE
    cells = [
        (
            safe.line(row.key.thread_id),
            safe.line(row.key.graph),
            status_of(row),
            times.age(row.updated_at),
            str(counts[row.key] or ""),
            safe.line(row.error or ""),
        )
        for row in rows
    ]
    terminal.table(_THREADS, cells)
    if len(found) > limit:
        terminal.say()
        terminal.say("There are more; --limit lists them.")
    return exits.DONE


def _field_cells(field: samples.Field) -> tuple[str, str, str, str]:
    needed = "yes" if field.is_required else "no"
    return safe.line(field.name), safe.line(field.kind), needed, safe.line(field.about)


def status_of(row: ThreadRow) -> str:
    """Return a thread's status; one whose process is gone does not run, whatever its row says."""
    return "stopped" if row.status == "running" and owner.is_dead(row) else row.status


def _thread_document(row: ThreadRow, count: int) -> dict[str, Any]:
    return {
        "thread_id": row.key.thread_id,
        "graph": row.key.graph,
        "status": status_of(row),
        "questions": count,
        "error": row.error,
        "created_at": clock.iso(row.created_at),
        "updated_at": clock.iso(row.updated_at),
    }


def _facts(question: Question) -> list[tuple[str, str]]:
    where = " > ".join(map(safe.line, question.path)) or safe.line(question.node)
    facts = [
        ("thread", safe.line(question.thread_id)),
        ("graph", safe.line(question.graph)),
        ("node", where),
        ("asked", times.with_age(question.asked_at)),
        ("status", question.status),
    ]
    if question.key is not None:
        facts.append(("key", safe.line(question.key)))
    if question.settled_at is not None:
        facts.append((question.status, times.with_age(question.settled_at)))
    if question.by is not None:
        facts.append(("by", safe.line(question.by)))
    if question.comment:
        facts.append(("comment", safe.line(question.comment)))
    if question.reason:
        facts.append(("reason", safe.line(question.reason)))
    if question.supersedes is not None:
        paths = ", ".join(map(safe.line, question.changed_paths))
        facts.append(("instead", f"of {question.supersedes[: lookup.SHORTEST]}, whose payload changed at {paths}"))
    return facts


def _say_how(place: Place, question: Question) -> None:
    terminal.say()
    if question.response_schema is not None:
        fields = samples.fields(question.response_schema)
        if len(fields) == 1 and not fields[0].name:
            terminal.say(f"The answer is: {safe.line(fields[0].kind)}")
        else:
            terminal.say("The answer is an object:")
            terminal.table(_FIELDS, [_field_cells(field) for field in fields])
        terminal.say()
    _say_commands("Answer with:", questions.commands(place, question))


def _say_choices(place: Place, question: Question) -> None:
    """Say what the answers to an effect in doubt mean."""
    terminal.say()
    answers = samples.samples(question.response_schema)
    for answer, each in zip(answers, questions.commands(place, question), strict=True):
        terminal.say(cards.doubt_choice(answer))
        terminal.say(f"  {each}")


def _say_commands(title: str, commands: Iterable[str]) -> None:
    terminal.say(title)
    _say_all(f"  {each}" for each in commands)


def _say_all(lines: Iterable[str]) -> None:
    for each in lines:
        terminal.say(each)
