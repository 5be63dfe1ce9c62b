"""The conditions of the transitions, as decisions on rows: one place for every store, so that all refuse alike.

A store that can check a condition in its own language (a WHERE clause) does so; what it then raises is made here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

from waitpoint.checkpoint.base import (
    AnswersArrived,
    Commit,
    Cut,
    FenceLost,
    JournalRow,
    Move,
    PendingFilter,
    QuestionRow,
    QuestionsChanged,
    Settle,
    Settlement,
    ThreadChanged,
    ThreadKey,
    ThreadRow,
)
from waitpoint.config import check_count
from waitpoint.errors import StoreError, UsageError

values_of_thread = attrgetter(*ThreadRow.__slots__)
values_of_question = attrgetter(*QuestionRow.__slots__)


def check_key(key: ThreadKey) -> None:
    """Refuse a key that stores would not keep apart from another: a number is not its text."""
    thread_id, graph = key
    if type(thread_id) is not str or type(graph) is not str:
        check_text("thread_id", thread_id)
        check_text("graph", graph)


def check_text(name: str, value: object) -> None:
    """Refuse an id that is not text."""
    if not isinstance(value, str):
        raise UsageError(f"{name} is a {type(value).__name__}, not a str - ids are texts; pass str({name})")


# --- move -------------------------------------------------------------------------------------------------------------


def check_move(now: ThreadRow | None, change: Move) -> None:
    """Refuse a `Move` whose writer believed something else, or whose new row does not follow."""
    believed, then = change.believed, change.then
    if then.key != change.key:
        raise StoreError(f"{_name(change.key)} cannot become {_name(then.key)} - a row keeps its key; move one thread")
    fence = 1 if believed is None else believed.fence + 1
    if then.fence != fence:
        raise StoreError(f"{_name(change.key)} cannot get fence {then.fence} - the next one is {fence}; give that one")
    if believed is None or now is None:
        if believed is not now:
            raise thread_changed(now, change.key, believed)
    elif _believed(now) != _believed(believed):
        raise thread_changed(now, change.key, believed)


def check_cut(now: ThreadRow | None, change: Cut) -> None:
    """Refuse a `Cut` whose writer believed something else, and one that would take what the thread stands at."""
    if now is None or _believed(now) != _believed(change.believed):
        raise thread_changed(now, change.key, change.believed)
    if now.status == "running":
        raise StoreError(f"{_name(change.key)} runs - what its run needs would be taken; let it rest first")
    head = now.head if change.head is None else change.head
    if not change.whole and head is not None and ("", head) in change.checkpoints:
        raise StoreError(f"{_name(change.key)} cannot lose checkpoint '{head}' - it stands there; leave it out")


def after_cut(row: ThreadRow, change: Cut) -> None:
    """Give a thread's row what a `Cut` says of it."""
    row.next_item += 1
    if change.head is not None:
        row.head, row.status, row.error = change.head, "idle", None


_believed = attrgetter("fence", "answer_seq", "status", "head", "next_item")


def thread_changed(now: ThreadRow | None, key: ThreadKey, believed: ThreadRow | None) -> ThreadChanged:
    """Make the error for a thread that is not as believed."""
    cure = "read it again and decide"
    if now is None:
        return ThreadChanged(f"{_name(key)} does not exist (any more) - {cure}", thread=None)
    if believed is None:
        return ThreadChanged(f"{_name(key)} exists already - it is {_state(now)}; {cure}", thread=now)
    if _state(now) == _state(believed):
        how = "its head moved" if now.head != believed.head else "values were added, or history was pruned"
        return ThreadChanged(f"{_name(key)} changed - {how}; {cure}", thread=now)
    return ThreadChanged(f"{_name(key)} changed - it is {_state(now)}, not {_state(believed)}; {cure}", thread=now)


# --- commit -----------------------------------------------------------------------------------------------------------


def refuse_commit(now: ThreadRow | None, change: Commit) -> ThreadChanged | None:
    """Make the error for a `Commit` that came too late, or None if it may be stored."""
    if now is None:
        return FenceLost(f"{_name(change.key)} does not exist (any more) - it was deleted; stop this run", thread=None)
    if now.fence != change.fence:
        return FenceLost(
            f"{_name(change.key)} has fence {now.fence}, not {change.fence} - another run took it over; stop this run",
            thread=now,
        )
    if change.rest is not None and now.answer_seq != change.rest.answer_seq:
        return AnswersArrived(
            f"{_name(change.key)} is at answer {now.answer_seq}, not {change.rest.answer_seq} - "
            "answers came while the run worked; read them, then rest",
            thread=now,
        )
    return None


def after_commit(row: ThreadRow, change: Commit) -> None:
    """Give a thread's row what a `Commit` says of it."""
    row.updated_at = change.at
    if change.head is not None:
        row.head = change.head
    if change.next_item is not None:
        row.next_item = change.next_item
    if change.rest is not None:
        row.status = change.rest.status
        row.error = change.rest.error
        row.owner = row.lease_until = None


# --- settle -----------------------------------------------------------------------------------------------------------


def check_settle(now: ThreadRow | None, questions: Sequence[QuestionRow | None], change: Settle) -> ThreadRow:
    """Refuse a `Settle` that cannot be stored whole; `questions` are the rows of its settlements, None if missing."""
    ids = [settlement.id for settlement in change.settlements]
    if not ids or len(set(ids)) != len(ids):
        fact = "names no question" if not ids else "names a question twice"
        raise StoreError(f"a settlement of {_name(change.key)} {fact} - each question is settled once; name each once")
    refused = [
        (settlement.id, row)
        for settlement, row in zip(change.settlements, questions, strict=True)
        if row is None or row.key != change.key or not can_settle(row, settlement, now)
    ]
    if refused or now is None:
        listed = ", ".join(f"'{name}' ({_standing(row, change.key)})" for name, row in refused)
        raise QuestionsChanged(
            f"cannot settle {listed} - somebody was first, or the id is wrong; nothing was stored, read them again",
            questions=[row for row in questions if row is not None],
            thread=now,
        )
    if change.head is not None and now.head != change.head:
        raise ThreadChanged(f"{_name(change.key)} changed - its head moved; read it again and decide", thread=now)
    if change.writes.outcomes and now.status == "running" and change.believed_fence != now.fence:
        raise ThreadChanged(f"{_name(change.key)} changed - a run has it; read it again and decide", thread=now)
    return now


def can_settle(row: QuestionRow, settlement: Settlement, now: ThreadRow | None) -> bool:
    """Whether a question may get this settlement: an open one any, an answered one another answer if replaceable.

    A run acts on the answers that it found, so none of them is replaced while it works.
    """
    if row.status == "open":
        return True
    return settlement.status == "answered" and row.can_answer and now is not None and now.status != "running"


def after_settle(row: ThreadRow, change: Settle) -> None:
    """Give a thread's row what a `Settle` says of it."""
    row.answer_seq += 1
    row.updated_at = settled_at(change)
    if row.status == "running":
        return
    row.status = "ready"
    if change.claim is not None:
        row.status = "running"
        row.owner, row.lease_until = change.claim
        row.fence += 1


def settled_at(change: Settle) -> float:
    """When a `Settle` takes place."""
    return max(settlement.at for settlement in change.settlements)


# --- rows -------------------------------------------------------------------------------------------------------------


def may_replace(old: JournalRow, new: JournalRow) -> bool:
    """Whether a journal entry may take the place of a stored one: a recorded outcome yields to its own execution only.

    A later attempt is a new execution, which was begun knowing that outcome.
    """
    return old.state not in {"done", "raised"} or new.token == old.token or new.attempt > old.attempt


def is_executing(old: JournalRow | None, token: str) -> bool:
    """Whether a `Record` may be stored: its own execution is still the one whose outcome is awaited."""
    return old is not None and old.state == "executing" and old.token == token


def stored_otherwise(kind: str, name: object, key: ThreadKey) -> StoreError:
    """Make the error for a row that exists with other content."""
    return StoreError(
        f"{kind} '{name}' of {_name(key)} cannot be stored - that id is taken by other content; nothing was "
        "overwritten, give the new one an id of its own"
    )


def check_filter(wanted: PendingFilter) -> None:
    """Refuse a filter by something that is not text, and a range that is not of numbers."""
    check_count("limit", wanted.limit)
    check_count("offset", wanted.offset)
    for name in ("thread_id", "graph", "node", "id_prefix"):
        value = getattr(wanted, name)
        if value is not None:
            check_text(name, value)


def unique(ids: Iterable[str]) -> list[str]:
    """List ids once each, in order."""
    return list(dict.fromkeys(ids))


def _name(key: ThreadKey) -> str:
    return f"thread '{key.thread_id}' of graph '{key.graph}'"


def _state(row: ThreadRow) -> str:
    return f"{row.status} at fence {row.fence} and answer {row.answer_seq}"


def _standing(row: QuestionRow | None, key: ThreadKey) -> str:
    if row is None:
        return "unknown"
    if row.key != key:
        return f"belongs to {_name(row.key)}"
    return row.status if row.by is None else f"{row.status} by '{row.by}'"
