"""`approve`, `edit`, `reject`, `respond` and `decide`: decisions on tool calls, sent as one answer to their question."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from waitpoint.checkpoint.base import QuestionRow, as_question
from waitpoint.cli import editor, given, lookup, questions, terminal
from waitpoint.cli.answering import ID, recorded
from waitpoint.cli.options import Choosing, Recording, command
from waitpoint.cli.place import Place
from waitpoint.codec import to_json
from waitpoint.engine import answers
from waitpoint.errors import UsageError
from waitpoint.protocol import check_type
from waitpoint.shown.calls import DECISIONS, Call, Review, review_of

_ARGS = Annotated[
    str | None, typer.Option("--args", metavar="JSON", help="All arguments anew; also @FILE, or - for stdin.")
]
_SET = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One argument; may be given several times.")
]
_WORD = re.compile(rf"(\d+)=({'|'.join(DECISIONS)})(?::(.*))?", re.DOTALL)


# --- commands ---------------------------------------------------------------------------------------------------------


@command(with_graph=True)
def approve(place: Place, id: ID, choosing: Choosing, recording: Recording) -> int:
    """Let a tool call run as it was proposed."""
    return _decided(place, id, choosing, recording, lambda _call, _files: {"type": "approve"})


@command(with_graph=True)
def edit(
    place: Place,
    id: ID,
    choosing: Choosing,
    recording: Recording,
    args: _ARGS = None,
    set: _SET = None,
) -> int:
    """Let a tool call run with other arguments; without --args and --set they open in $EDITOR."""

    def decision(call: Call, files: list[Path]) -> dict[str, Any]:
        return _edit(call, args, set or [], files)

    return _decided(place, id, choosing, recording, decision, "edit")


@command(with_graph=True)
def reject(
    place: Place,
    id: ID,
    choosing: Choosing,
    recording: Recording,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; the model is told.")] = None,
) -> int:
    """Let a tool call not run."""
    decision = _rejection(reason, "--reason")
    return _decided(place, id, choosing, recording, lambda _call, _files: decision, "reject")


@command(with_graph=True)
def respond(
    place: Place,
    id: ID,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What the tool would have given.")],
    choosing: Choosing,
    recording: Recording,
) -> int:
    """Answer in place of a tool, which does not run; the model takes the text for its result."""
    decision = {"type": "respond", "message": text}
    return _decided(place, id, choosing, recording, lambda _call, _files: decision, "respond")


@command(with_graph=True)
def decide(
    place: Place,
    id: ID,
    decisions: Annotated[
        list[str],
        typer.Argument(
            metavar="N=DECISION...", help="For each call: approve, edit[:JSON], reject[:TEXT], respond:TEXT."
        ),
    ],
    recording: Recording,
) -> int:
    """Decide on several calls of one question, each in its own way."""
    row, review = _review(place, id)
    words = _words(decisions)
    _check_complete(place, row, review, list(words))
    with _kept_unless_recorded() as files:
        decided = {call.number: _of_word(call, *words[call.number], files) for call in review.calls}
        return recorded(place, row, review.answer(decided), recording, "decisions")


# --- which calls ------------------------------------------------------------------------------------------------------


def _decided(
    place: Place,
    id: str,
    choosing: Choosing,
    recording: Recording,
    make: Callable[[Call, list[Path]], dict[str, Any]],
    kind: str = "approve",
) -> int:
    """Give the chosen calls of a question a decision each, and record them as one answer."""
    row, review = _review(place, id)
    numbers = choosing.call or []
    if choosing.all and numbers:
        raise UsageError("--all and --call were both given; give --all for all calls, or --call N for each")
    if choosing.all or (not numbers and len(review.calls) == 1):
        numbers = [call.number for call in review.calls]
    _check_complete(place, row, review, numbers)
    for call in review.calls:
        _check_allowed(call, kind)
    with _kept_unless_recorded() as files:
        decided = {call.number: make(call, files) for call in review.calls}
        return recorded(place, row, review.answer(decided), recording, "decision" if len(decided) == 1 else "decisions")


def _review(place: Place, id: str) -> tuple[QuestionRow, Review]:
    """Return a question that can be answered, and the calls it asks about."""
    saver = place.saver()
    row = lookup.question(saver, id)
    if not row.can_answer:
        raise answers.refused(saver, row)
    question = as_question(row)
    review = review_of(question)
    if review is None:
        answer = questions.commands(place, question)[0]
        raise UsageError(f"Question '{row.id}' asks for no decision on a tool call; answer it with:  {answer}")
    return row, review


def _check_complete(place: Place, row: QuestionRow, review: Review, numbers: Sequence[int]) -> None:
    """Refuse numbers that are not those of all calls, each once: an answer speaks to all."""
    known = [call.number for call in review.calls]
    short = row.id[: lookup.SHORTEST]
    wrong = next((n for n in numbers if n not in known or numbers.count(n) > 1), None)
    if wrong is not None:
        why = "twice" if wrong in known else "which is no call of it"
        of = f"calls 1 to {len(known)}" if len(known) > 1 else "one call, number 1"
        raise UsageError(f"Call {wrong} was given, {why}; question '{short}' asks about {of}")
    missing = [str(n) for n in known if n not in numbers]
    if missing:
        words = [f"{n}=DECISION" for n in known]
        which = f"call {missing[0]} has" if len(missing) == 1 else f"calls {', '.join(missing)} have"
        raise UsageError(
            f"Question '{short}' asks about {len(known)} calls and one answer decides on all, but {which} no decision; give "
            f"--all, or a decision for each:  {place.line('decide', short, *words)}"
        )


def _check_allowed(call: Call, kind: str) -> None:
    check_type({"type": kind}, call.allowed, f"decision on {call.name!r}")


# --- decisions --------------------------------------------------------------------------------------------------------


def _words(given_words: Sequence[str]) -> dict[int, tuple[str, str | None]]:
    """Read `N=DECISION[:TEXT]`; return decision and text by number."""
    found: dict[int, tuple[str, str | None]] = {}
    for word in given_words:
        match = _WORD.fullmatch(word)
        if match is None:
            raise UsageError(
                f"'{word}' is no decision on a call; write N=approve, N=edit, N=edit:JSON, N=reject, N=reject:TEXT or "
                f"N=respond:TEXT"
            )
        number, kind, text = match.groups()
        if int(number) in found:
            raise UsageError(f"Call {int(number)} was given two decisions; give it one")
        found[int(number)] = (kind, None if text is None else text.strip())
    return found


def _of_word(call: Call, kind: str, text: str | None, files: list[Path]) -> dict[str, Any]:
    _check_allowed(call, kind)
    name = f"{call.number}={kind}"
    if kind == "edit":
        return _edit(call, text, [], files)
    if kind == "reject":
        return _rejection(text, name)
    if kind == "respond":
        if text is None:
            raise UsageError(f"'{name}' says nothing in place of the tool; write {name}:TEXT")
        return {"type": "respond", "message": text}
    if text is not None:
        raise UsageError(f"'{name}' takes no text; a remark for the record goes into --comment")
    return {"type": "approve"}


def _rejection(reason: str | None, name: str) -> dict[str, Any]:
    if reason is None:
        return {"type": "reject"}
    if not reason.strip():
        raise UsageError(
            f"The reason of {name} is empty, and the model would be told nothing; give a few words, or none"
        )
    return {"type": "reject", "message": reason}


def _edit(call: Call, args_text: str | None, settings: Sequence[str], files: list[Path]) -> dict[str, Any]:
    """Return the edit of a call by what was typed, else by what the editor leaves."""
    if args_text is None and not settings:
        args, path = editor.edited(call.args, call.name)
        files.append(path)
    else:
        args = call.args if args_text is None else given.json_value(args_text, "--args")
    if not isinstance(args, dict):
        raise UsageError(f"The arguments of '{call.name}' have to be a JSON object, with a key for each")
    args = {**args, **dict(_setting(call, each) for each in settings)}
    if to_json(args) == to_json(call.args):
        if args_text is None and not settings:
            files.pop().unlink(missing_ok=True)
        raise UsageError(
            f"The arguments of '{call.name}' are what they were, so nothing was stored; `approve` lets it run as it is"
        )
    return {"type": "edit", "edited_action": {"name": call.name, "args": args}}


def _setting(call: Call, text: str) -> tuple[str, Any]:
    """Read KEY=VALUE: as text where the tool's schema wants text, else as JSON if it is any, else as text."""
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise UsageError(f"--set '{text}' names no argument and value; write --set KEY=VALUE")
    known = [*call.args, *(k for k in call.kinds if k not in call.args)]
    if key not in known:
        listed = ", ".join(map(repr, known)) or "none"
        raise UsageError(f"'{call.name}' has no argument '{key}'; it has {listed}")
    if call.kinds.get(key) != "string":
        with contextlib.suppress(ValueError):
            return key, json.loads(value, parse_constant=_no_constant)
    return key, value


def _no_constant(name: str) -> Any:
    raise ValueError(name)


@contextlib.contextmanager
def _kept_unless_recorded() -> Iterator[list[Path]]:
    """Collect files that the user wrote; remove them when all is recorded, else say where they are."""
    files: list[Path] = []
    try:
        yield files
    except Exception:
        for path in files:
            if path.exists():
                terminal.note(f"What you wrote is kept; mend it and give it as --args @{path}")
        raise
    for path in files:
        path.unlink(missing_ok=True)
