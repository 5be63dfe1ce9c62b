"""What may be taken away of a thread, and what a copy of one is: decisions on its rows, the same for every saver.

Rule: a thread goes on exactly as it would have, whatever was pruned. So what stays is the checkpoint that it stands at,
those of graphs inside that have not ended, the newest that each memory can see from there, with all that hangs on them,
and what open questions belong to. A copy never acts on a decision that was made for the original.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from waitpoint import clock, codec, ids
from waitpoint.checkpoint.rows import (
    CheckpointRow,
    Cut,
    EventRow,
    ItemRow,
    JournalRow,
    Move,
    OutcomeRow,
    QuestionRow,
    ThreadKey,
    Whole,
    Writes,
)

CHECKPOINTS_AT_ONCE = 500
ITEMS_AT_ONCE = 5_000

_T = TypeVar("_T")

NOT_REACHED = "asked after an answer that a copy of the thread does not have"

_LAST = "~"  # sorts after every id

Place = tuple[str, str]  # namespace and id of a checkpoint


@dataclass(frozen=True, slots=True)
class Doomed:
    """What is to go: checkpoints, oldest first, ranges of item numbers, entries of journals, and the head to go back to."""

    checkpoints: Sequence[Place]
    items: Sequence[tuple[int, int]]
    journal: Sequence[tuple[str, str, str, int]] = ()
    head: str | None = None

    @property
    def item_count(self) -> int:
        """How many items go."""
        return sum(end - start for start, end in self.items)

    @property
    def is_nothing(self) -> bool:
        """Whether all can stay as it is."""
        return not (self.checkpoints or self.items or self.journal)


# --- pruning ----------------------------------------------------------------------------------------------------------


def all_but_the_latest(whole: Whole) -> Doomed:
    """Return what a thread can do without: all but what it stands at, and needs to go on from there."""
    stay = needed(whole, whole.thread.head)
    gone = [(row.ns, row.id) for row in whole.checkpoints if (row.ns, row.id) not in stay]
    return _doomed(whole, gone)


def made_by(whole: Whole, run_ids: Collection[str]) -> Doomed | None:
    """Return what these runs left in a thread, with the checkpoint before them if it stands at one of theirs.

    None: nothing would be left of the thread.
    """
    theirs = {(row.ns, row.id) for row in whole.checkpoints if _run_of(row) in run_ids}
    if not theirs:
        return Doomed((), ())
    head, back = whole.thread.head, None
    if head is not None and ("", head) in theirs:
        rows = {row.id: row for row in whole.checkpoints if row.ns == ""}
        back = rows[head].parent_id
        while back is not None and (back not in rows or ("", back) in theirs):
            back = rows[back].parent_id if back in rows else None
        if back is None:
            return None
    stay = needed(whole, head) if back is None else needed(whole, back, without=theirs)
    inside = {(row.ns, row.id) for row in whole.checkpoints if set(_origin(row).parents.items()) & theirs}
    gone = [place for row in whole.checkpoints if (place := (row.ns, row.id)) in (theirs | inside) - stay]
    return _doomed(whole, gone, back)


def cuts(whole: Whole, doomed: Doomed) -> Iterator[Cut]:
    """Return the transitions that take it away: each is small, and a thread is whole after any number of them.

    What was read of the thread stands for what is believed; each cut takes the next item number.
    """
    believed = whole.thread
    note = EventRow(
        "pruned", clock.now(), believed.head or "", codec.dumps_plain({"checkpoints": len(doomed.checkpoints)})
    )
    parts: list[dict[str, Any]] = []
    if doomed.head is not None:  # first of all, and in one: what the thread stands at must not be missing
        note = replace(note, kind="rolled_back", ref=doomed.head)
        parts.append({"checkpoints": doomed.checkpoints, "journal": doomed.journal, "head": doomed.head})
    else:
        parts += [{"checkpoints": some} for some in _batches(doomed.checkpoints, CHECKPOINTS_AT_ONCE)]
        if doomed.journal:
            parts.append({"journal": doomed.journal})
    parts += [{"items": some} for some in _portions(doomed.items)]
    for number, part in enumerate(parts):
        yield Cut(believed.key, believed, events=[note] if number == 0 else (), **part)
        back = {"head": doomed.head, "status": "idle"} if doomed.head is not None else {}
        believed = replace(believed, next_item=believed.next_item + 1, **back)  # type: ignore[arg-type]


def needed(whole: Whole, head: str | None, without: Collection[Place] = ()) -> set[Place]:
    """Return the checkpoints that a thread needs to go on at `head`."""
    lines: dict[str, list[CheckpointRow]] = {}
    for row in whole.checkpoints:
        if (row.ns, row.id) not in without:
            lines.setdefault(row.ns, []).append(row)
    stored = {(row.ns, row.id): row for rows in lines.values() for row in rows}
    stay = {("", head)} & set(stored) if head is not None else set()
    for question in whole.questions:
        if question.can_answer:
            stay |= {("", question.root_checkpoint), (question.ns, question.checkpoint_id)} & set(stored)
    for ns in sorted(lines, key=lambda ns: (ns.count("|"), ns)):
        if ns:
            lines[ns].sort(key=lambda row: row.id, reverse=True)
            views = [_Origin(), *(view for place in stay for view in _views(stored[place]))]
            seen = {view.newest(lines[ns]) for view in views}
            stay |= {place for place in seen if place is not None and _is_called_from(stored[place], stay)}
    return stay


def _doomed(whole: Whole, gone: Sequence[Place], head: str | None = None) -> Doomed:
    """Return these checkpoints with all that nothing refers to without them."""
    going, known = set(gone), {(row.ns, row.id) for row in whole.checkpoints}
    stays = known - going
    used: set[int] = set()
    for row in whole.checkpoints:
        if (row.ns, row.id) in stays:
            used.update(_items_of_checkpoint(row))
    for outcome in whole.outcomes:
        if (outcome.ns, outcome.checkpoint_id) not in going:
            used.update(_items_of_outcome(outcome))
    created = {row.id: row.created_at for row in whole.checkpoints if row.ns == ""}
    since = created.get(head or whole.thread.head or "", 0.0)
    journal = [
        (row.ns, row.checkpoint_id, row.task_id, row.seq)
        for row in whole.journal
        if (row.ns, row.checkpoint_id) not in known and _is_spent(row, since)
    ]
    return Doomed(gone, _ranges(n for n in whole.items if n not in used), journal, head)


def _is_spent(row: JournalRow, since: float) -> bool:
    """Whether a permit was used up before the thread came to where it stands."""
    return row.kind == "permit" and row.state == "done" and row.at < since


# --- what rows say ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a checkpoint comes from, as `waitpoint.engine.heads` writes it; of none: what sees every checkpoint."""

    parents: Mapping[str, str] = field(default_factory=dict)
    gaps: tuple[str, ...] = ()

    def newest(self, line: Sequence[CheckpointRow]) -> Place | None:
        """Return the first of a line, newest first, that lies on this branch."""
        until = _LAST
        for row in line:
            if row.id < until:
                start = next((a for a, b in zip(self.gaps[::2], self.gaps[1::2], strict=True) if a < row.id < b), None)
                if start is None:
                    return row.ns, row.id
                until = start
        return None


def _origin(row: CheckpointRow) -> _Origin:
    body = codec.loads(row.body)
    if "o" not in body:
        return _Origin()
    parents, _, gaps = body["o"]
    return _Origin(dict(parents), tuple(gaps))


def _views(row: CheckpointRow) -> list[_Origin]:
    """Return what can be seen from a checkpoint: by what goes on there, and by what begins there anew."""
    origin = _origin(row)
    return [origin, replace(origin, gaps=(*origin.gaps, row.id, _LAST))]


def _is_called_from(row: CheckpointRow, stay: Collection[Place]) -> bool:
    """Whether the task in which a graph runs belongs to a checkpoint that stays; a memory outlives its tasks."""
    parts = row.ns.split("|")
    tasks = [n for n, part in enumerate(parts) if ":" in part]
    if not tasks:
        return True
    around = "|".join(parts[: tasks[-1]])
    parent = _origin(row).parents.get(around)
    return parent is None or (around, parent) in stay


def _run_of(row: CheckpointRow) -> Any:
    return codec.loads(row.body).get("m", {}).get("run_id")


def _items_of_checkpoint(row: CheckpointRow) -> Iterator[int]:
    body = codec.loads(row.body)
    for ref in body["v"].values():
        yield from _numbers(ref)
    for _, ref, _ in body.get("s", ()):
        yield from _numbers(ref)


def _items_of_outcome(row: OutcomeRow) -> Iterator[int]:
    body = codec.loads(row.body)
    for part in ("r", "b"):
        if part in body:
            writes, gotos = body[part][:2]
            for _, ref in writes:
                yield from _numbers(ref)
            for goto in gotos:
                yield from () if isinstance(goto, str) else _numbers(goto[1])


def _numbers(ref: Any) -> Iterable[int]:
    """Return the items behind a reference: a number, flat ranges of numbers, or the value itself."""
    if isinstance(ref, int):
        return (ref,)
    if isinstance(ref, list):
        return (n for start, end in zip(ref[::2], ref[1::2], strict=True) for n in range(start, end))
    return ()


def _ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Join numbers, in order, into half-open ranges."""
    found: list[tuple[int, int]] = []
    for n in numbers:
        if found and found[-1][1] == n:
            found[-1] = (found[-1][0], n + 1)
        else:
            found.append((n, n + 1))
    return found


def _portions(ranges: Iterable[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Split ranges so that no portion names too many numbers."""
    portion: list[tuple[int, int]] = []
    room = ITEMS_AT_ONCE
    for start, end in ranges:
        while start < end:
            stop = min(end, start + room)
            portion.append((start, stop))
            room -= stop - start
            start = stop  # noqa: PLW2901 - the rest of the range
            if room == 0:
                yield portion
                portion, room = [], ITEMS_AT_ONCE
    if portion:
        yield portion


def _batches(rows: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    for first in range(0, len(rows), size):
        yield rows[first : first + size]


# --- copying ----------------------------------------------------------------------------------------------------------


def copied(whole: Whole, items: Mapping[int, bytes], target: ThreadKey) -> Move:
    """Return the transition that makes a copy of a thread.

    Checkpoints, values and what tasks came to are the same, and an effect in doubt is in doubt in the copy too. Permits
    stay behind, and what was answered in tasks that have not ended is asked again, under ids of the copy's own: a decision
    on the original decides nothing here.
    """
    source, at = whole.thread, clock.now()
    questions = _questions_again(whole, target)
    waits = source.status == "ready" and any(q.status == "open" for q in questions)
    then = replace(
        source, key=target, status="waiting" if waits else source.status, fence=1, owner=None, lease_until=None,
        created_at=at, updated_at=at,
    )  # fmt: skip
    writes = Writes(
        checkpoints=[_under_first_fence(row, source.fence) for row in whole.checkpoints],
        items=[ItemRow(seq, data) for seq, data in items.items()],
        outcomes=whole.outcomes,
        journal=[row for row in whole.journal if row.kind != "permit"],
        questions=questions,
        events=[EventRow("copied", at, source.head or "", codec.dumps_plain({"source": source.key.thread_id}))],
    )
    return Move(target, None, then, writes)


def _questions_again(whole: Whole, key: ThreadKey) -> list[QuestionRow]:
    """Return the questions as those of a copy: in tasks that have not ended, as before the first answer."""
    done = {(o.ns, o.checkpoint_id, o.task_id) for o in whole.outcomes if o.status == "done"}
    present = needed(whole, whole.thread.head)  # steps behind these are over, whatever their last outcomes say
    first: dict[str, float] = {}  # by task: when the first of its answers was given
    for q in whole.questions:
        task = q.ns, q.checkpoint_id, q.task_id
        if q.status == "answered" and task not in done and task[:2] in present:
            first[q.task_id] = min(first.get(q.task_id, q.settled_at or 0.0), q.settled_at or 0.0)
    again = []
    for q in whole.questions:
        is_over = (q.ns, q.checkpoint_id) not in present or (q.ns, q.checkpoint_id, q.task_id) in done
        since = None if is_over else min((first[t] for t in _tasks_around(q) if t in first), default=None)
        again.append(_question_again(q, key, since))
    return again


def _tasks_around(row: QuestionRow) -> list[str]:
    """Return the task that asked, and those in which its graph was called."""
    at = row.ns
    if at and ":" not in at:  # a memory: its namespace does not tell the tasks
        at = codec.loads(row.extra).get("called_in", at)
    return [row.task_id, *(part.rpartition(":")[2] for part in at.split("|") if ":" in part)]


def _question_again(row: QuestionRow, key: ThreadKey, since: float | None) -> QuestionRow:
    """Return a question for a copy; `since`: its task, or one around it, has not ended and was first answered then."""
    again = replace(row, id=ids.question_id(key, row.task_id, row.seq, row.digest), key=key, replaceable=False)
    if since is None or row.status == "withdrawn":
        return again
    again = replace(
        again,
        status="open",
        settled_at=None,
        settle_seq=None,
        by=None,
        comment=None,
        answer=None,
        token=None,
        reason=None,
    )
    if row.asked_at < since:
        return again
    # It was asked on what was answered before, and will be again.
    return replace(again, status="withdrawn", settled_at=clock.now(), reason=NOT_REACHED)


def _under_first_fence(row: CheckpointRow, fence: int) -> CheckpointRow:
    """Return a checkpoint as it is in a thread that begins: an update that no run has seen is one there too."""
    body = codec.loads(row.body)
    moved_at = body.pop("u", None)
    if moved_at is None:
        return row
    if moved_at >= fence:
        body["u"] = 1 + moved_at - fence
    return replace(row, body=codec.dumps_plain(body))
