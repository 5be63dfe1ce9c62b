"""Rows to test with, the way to see everything that a saver holds, and the way to expect a refusal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Generic, TypeVar

from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    CheckpointRow,
    Commit,
    ItemRow,
    JournalRow,
    Move,
    OutcomeRow,
    PendingFilter,
    QuestionRow,
    Settle,
    Settlement,
    ThreadKey,
    ThreadRow,
    Writes,
)

KEY = ThreadKey("thread-1", "graph")
OTHER = ThreadKey("thread-2", "graph")
BELOW = "child:task-9"  # a namespace

C1 = "01970000-0000-7000-8000-000000000001"
C2 = "01970000-0000-7000-8000-000000000002"
C3 = "01970000-0000-7000-8000-000000000003"

E = TypeVar("E", bound=BaseException)


class Refusal(Generic[E]):
    """Holds what was raised, once it was."""

    error: E


@contextmanager
def refused(kind: type[E]) -> Iterator[Refusal[E]]:
    """Expect the block to raise exactly this class of error."""
    refusal: Refusal[E] = Refusal()
    try:
        yield refusal
    except kind as error:
        if type(error) is not kind:
            raise
        refusal.error = error
    else:
        raise AssertionError(f"{kind.__name__} was not raised")


def thread(key: ThreadKey = KEY, **fields: Any) -> ThreadRow:
    """Make the row of a thread that is running under fence 1."""
    row = ThreadRow(key, "running", 1, 0, 0, None, "owner-1", 100.0, None, 1.0, 1.0)
    return replace(row, **fields)


def checkpoint(name: str = C1, ns: str = "", **fields: Any) -> CheckpointRow:
    """Make a checkpoint."""
    return replace(CheckpointRow(ns, name, None, 0, "loop", 2.0, b"body"), **fields)


def outcome(task_id: str = "task-1", at_checkpoint: str = C1, **fields: Any) -> OutcomeRow:
    """Make the outcome of a task at the root."""
    return replace(OutcomeRow("", at_checkpoint, task_id, "node", "done", 0, 1, 3.0, b"result"), **fields)


def entry(task_id: str = "task-1", seq: int = 0, execution: str = "first", **fields: Any) -> JournalRow:
    """Make a journal entry of a step that is executing; `execution` is its token."""
    return replace(JournalRow("", C1, task_id, seq, "step", "executing", 1, 3.0, execution, b"args"), **fields)


def question(name: str = "q1", key: ThreadKey = KEY, **fields: Any) -> QuestionRow:
    """Make an open question of the root at `C1`."""
    row = QuestionRow(
        name, key, "", C1, C1, "task-1", 1, "node", b"value", None, "digest", None, b"site", b"extra", 4.0
    )
    return replace(row, **fields)


def item(seq: int, data: bytes = b"item") -> ItemRow:
    """Make an item."""
    return ItemRow(seq, data)


def begin(saver: BaseCheckpointSaver, key: ThreadKey = KEY, **fields: Any) -> ThreadRow:
    """Create a thread that is running under fence 1 at `C1`, with the rows of a `Writes` given by name."""
    names = [name for name in fields if name in Writes.__slots__]
    writes = Writes(**{"checkpoints": [checkpoint()], **{name: fields.pop(name) for name in names}})
    row = thread(key, **{"head": C1, **fields})
    saver.move(Move(key, None, row, writes))
    return row


def commit(saver: BaseCheckpointSaver, fence: int = 1, key: ThreadKey = KEY, **rows: Any) -> None:
    """Commit rows, given by the names of the fields of `Writes`, at time 5."""
    saver.commit(Commit(key, fence, Writes(**rows), 5.0))


def answer(saver: BaseCheckpointSaver, *names: str, key: ThreadKey = KEY, **fields: Any) -> ThreadRow:
    """Answer questions at time 6."""
    return saver.settle(Settle(key, [Settlement(name, "answered", 6.0, b"yes", "ana") for name in names], **fields))


def row_of(saver: BaseCheckpointSaver, key: ThreadKey = KEY) -> ThreadRow:
    """Read the row of a thread that exists."""
    row = saver.thread(key)
    assert row is not None
    return row


def question_of(saver: BaseCheckpointSaver, name: str = "q1") -> QuestionRow:
    """Read the row of a question that exists."""
    (row,) = saver.questions(PendingFilter(ids=[name], answerable=False))
    return row


def everything(saver: BaseCheckpointSaver, namespaces: tuple[str, ...] = ("", BELOW)) -> list[Any]:
    """Read all that a saver holds, to compare: of each thread its checkpoints, what hangs on them, items, events."""
    seen: list[Any] = [saver.questions(PendingFilter(answerable=False)), saver.questions(PendingFilter())]
    for row in saver.threads():
        seen += [row, saver.items(row.key, [(0, 100)]), saver.events(row.key)]
        for ns in namespaces:
            seen += [saver.load(row.key, ns), saver.history(row.key, ns)]
            seen += [saver.load(row.key, ns, found.id) for found in saver.history(row.key, ns)]
    return seen
