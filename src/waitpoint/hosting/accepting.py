"""What is checked, and which answers are stored, before a run is accepted: whoever asks is told at once what is wrong.

A bare answer belongs to the one question that is open now. Answers alone are settled here, in one transaction; the run
then only has to run the thread. Answers that come with an update or a jump, or at an old checkpoint, are checked here and
settled by the run, under a token of its own, so that a second attempt of the run does not answer twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from waitpoint import codec, protocol
from waitpoint.checkpoint.base import BaseCheckpointSaver, PendingFilter, QuestionRow, Settle, ThreadChanged, ThreadKey
from waitpoint.engine import answers
from waitpoint.engine.questions import listed
from waitpoint.engine.runner import Runner
from waitpoint.errors import PendingQuestionsError
from waitpoint.hosting.requests import RunRequest
from waitpoint.records import MISSING, Answer


class Accepted(NamedTuple):
    """Whether the request's answers are stored, so that only the thread is to be run; and which questions they answer."""

    is_settled: bool
    answered: list[str]


def accepted(graph: Runner, key: ThreadKey, request: RunRequest, by: str | None, token: str) -> Accepted:
    """Check a request against its thread and store its answers.

    Raises:
        UnknownInterruptError, AlreadyAnsweredError, AmbiguousInterruptError: answers that no open question takes.
        pydantic.ValidationError: an answer that does not fit its question's schema.
        PendingQuestionsError: new input for a thread that waits for answers.
    """
    saver = graph.saver()
    assert saver is not None
    rows = saver.questions(PendingFilter(key.thread_id, key.graph))
    if request.resume is not MISSING and request.command is not None:
        asked = rows if _is_head(saver, key, request.checkpoint_id) else _asked_at(saver, key, request)
        request.command["resume"] = readable(request.resume, asked)
    if request.resume is MISSING:
        if request.command is None and request.input is not None:
            _check_free(rows, key, request)
        return Accepted(is_settled=False, answered=[])
    resume = authored(request.resume, by, request.token or token)
    if is_plain(request) and _is_head(saver, key, request.checkpoint_id):
        return Accepted(is_settled=True, answered=_settle(graph, saver, key, resume, rows))
    if not _is_head(saver, key, request.checkpoint_id):
        return Accepted(is_settled=False, answered=[])  # the fork asks anew, and then the answer is checked
    prepared = answers.prepare(resume, rows, saver, key, graph.registry)
    return Accepted(is_settled=False, answered=[s.id for s in prepared.settlements])


def readable(resume: Any, rows: Sequence[QuestionRow]) -> Any:
    """Return answers with decisions on tool calls in the form that their questions take, whichever a client sent."""
    by_id = {row.id: row for row in rows}
    if answers.is_map(resume):
        return {id_: _read(by_id[id_], value) if id_ in by_id else value for id_, value in resume.items()}
    return _read(rows[0], resume) if len(rows) == 1 else resume


def _read(row: QuestionRow, value: Any) -> Any:
    extra = codec.loads(row.extra)
    form = extra.get("form")
    if form not in (protocol.HITL_REQUEST, protocol.TOOL_APPROVAL):
        return value
    schema = {} if row.schema is None else codec.loads(row.schema)
    return protocol.from_older(value, form, codec.loads(row.value), schema, extra["form_data"])


def _asked_at(saver: BaseCheckpointSaver, key: ThreadKey, request: RunRequest) -> list[QuestionRow]:
    """Return the questions of an old checkpoint, the newest of each task."""
    found = saver.load(key, request.checkpoint_ns, request.checkpoint_id).questions
    return list({row.task_id: row for row in sorted(found, key=lambda row: row.seq)}.values())


def authored(resume: Any, by: str | None, token: str | None) -> Any:
    """Return answers as given by someone: what the payload says of its author counts for nothing."""
    if answers.is_map(resume):
        return {id_: Answer(value, by=by, token=token) for id_, value in resume.items()}
    return Answer(resume, by=by, token=token)


def is_plain(request: RunRequest) -> bool:
    """Whether the command answers and does nothing else."""
    command = request.command or {}
    return not command.get("update") and not command.get("goto")


def _settle(
    graph: Runner, saver: BaseCheckpointSaver, key: ThreadKey, resume: Any, rows: list[QuestionRow]
) -> list[str]:
    while True:
        prepared = answers.prepare(resume, rows, saver, key, graph.registry)
        if not prepared.settlements:
            return []  # the very same answers were stored before
        try:
            answers.settle(saver, Settle(key, prepared.settlements))
        except ThreadChanged:
            rows = saver.questions(PendingFilter(key.thread_id, key.graph))
        else:
            return [s.id for s in prepared.settlements]


def _is_head(saver: BaseCheckpointSaver, key: ThreadKey, checkpoint_id: str | None) -> bool:
    if checkpoint_id is None:
        return True
    row = saver.thread(key)
    return row is not None and row.head == checkpoint_id


def _check_free(rows: list[QuestionRow], key: ThreadKey, request: RunRequest) -> None:
    if rows and request.on_pending != "withdraw" and request.checkpoint_id is None:
        raise PendingQuestionsError(
            f"Thread '{key.thread_id}' waits for {len(rows)} answer{'s' if len(rows) > 1 else ''}, so new input is refused: "
            f'{listed(rows)}; answer first, or say on_pending: "withdraw" to close what is open',
            thread_id=key.thread_id,
            pending_ids=[row.id for row in rows],
        )
