"""What must hold of a thread whenever it rests, read from its rows."""

from __future__ import annotations

from waitpoint.checkpoint.base import BaseCheckpointSaver, PendingFilter, QuestionRow, ThreadKey


def unread_answers(saver: BaseCheckpointSaver, key: ThreadKey) -> list[str]:
    """List settled questions of the present step that no attempt has read, although the thread rests.

    A failed thread runs whatever is due when it is continued, and so reads what a cancelled sibling had yet to read.
    """
    thread = saver.thread(key)
    if thread is None or thread.status in {"ready", "running", "failed"}:
        return []
    return [q.id for q in saver.load(key).questions if q.settle_seq is not None and _is_unread(saver, q)]


def _is_unread(saver: BaseCheckpointSaver, question: QuestionRow) -> bool:
    """Whether neither the task that asked nor the outermost one around it has run since the question was settled."""
    root = question.ns.split("|")[0].rpartition(":")[2] or question.task_id
    places = {(question.ns, question.checkpoint_id, question.task_id), ("", question.root_checkpoint, root)}
    read = [
        row.answer_seq
        for ns, checkpoint, task in places
        for row in saver.load(question.key, ns, checkpoint).outcomes
        if row.task_id == task
    ]
    return max(read, default=-1) < (question.settle_seq or 0)


def all_questions(saver: BaseCheckpointSaver, thread_id: str) -> list[QuestionRow]:
    """List the questions of a thread, settled ones too, oldest first."""
    return saver.questions(PendingFilter(thread_id, answerable=False))
