"""What this process left of a thread when it let it rest, so that its next call need not read that again.

A thread at rest changes only by transitions that change its row: fence, answers, status or head. While these are as they
were left, so are the outcomes and questions of its checkpoint. A journal is the exception, since an execution may still
tell how it ended, so a thread that has one is read.
"""

from __future__ import annotations

from operator import attrgetter

from waitpoint.checkpoint.base import BaseCheckpointSaver, Loaded, Status, ThreadKey, ThreadRow
from waitpoint.engine import heads
from waitpoint.engine.heads import Head
from waitpoint.engine.segment import Segment

FEW = 4  # questions that a store in memory tells as fast as they are recalled

_outcome_order = attrgetter("at", "task_id")
_question_order = attrgetter("asked_at", "ns", "task_id", "seq")


def load(saver: BaseCheckpointSaver, key: ThreadKey) -> Loaded:
    """Read a thread at its head, as `saver.load` does."""
    head = heads.newest(saver, key)
    if head is None or head.left is None:
        return saver.load(key)
    left, thread = head.left, saver.thread(key)
    if thread is None or _standing(thread) != _standing_of(left):
        head.left = None
        return saver.load(key)
    return Loaded(thread, left.checkpoint, left.outcomes, (), left.questions)


def keep(segment: Segment, head: Head, status: Status) -> None:
    """Note how the rest that was just stored left the thread; its row is compared, and read, before this is used."""
    if not segment.is_plain or head.row is None:
        return
    if not segment.saver.blocking and len(segment.questions) < FEW:
        return
    outcomes = [row for row in segment.outcomes.values() if row.checkpoint_id == head.id]
    questions = [row for row in segment.questions.values() if row.root_checkpoint == head.id]
    if len(outcomes) > 1:
        outcomes.sort(key=_outcome_order)
    if len(questions) > 1:
        questions.sort(key=_question_order)
    thread = ThreadRow(segment.key, status, segment.fence, segment.answer_seq, 0, head.id, None, None, None, 0.0, 0.0)
    head.left = Loaded(thread, head.row, outcomes, (), questions)


_standing = attrgetter("fence", "answer_seq", "status", "head")


def _standing_of(left: Loaded) -> object:
    return _standing(left.thread)
