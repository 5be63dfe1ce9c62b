"""Faults on purpose: a process that dies, or a store that fails, at a chosen point of a run.

`Points` numbers the places that a run passes, `FaultySaver` makes each transition pass two of them (before it and after
it), and effects of a test pass their own with `Points.reach`. A first run without a fault tells how many points there
are; then each of them can be hit.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any

from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    CheckpointRow,
    Commit,
    Cut,
    EventRow,
    JournalRow,
    Loaded,
    Move,
    PendingFilter,
    QuestionRow,
    Record,
    Settle,
    Status,
    ThreadKey,
    ThreadRow,
    Whole,
    Writes,
)
from waitpoint.errors import StoreError

Act = Callable[[str], None]


def kill(point: str) -> None:  # noqa: ARG001 - every act is told where it happens
    """End this process as a power cut would: no handler runs, nothing is flushed."""
    os.kill(os.getpid(), signal.SIGKILL)


def fail(point: str) -> None:
    """Raise what a saver raises when the disk is full."""
    raise StoreError(f"database 'test' cannot grow - the disk is full; make room, then repeat (at {point!r})")


class Points:
    """Numbers the points that a run passes, from 1, and acts at those numbered `at`.

    `act` gets the point's name; by default it kills the process. `told` is called with each name before that, for a test
    that wants to know from outside how far the process came. Safe to use from several threads.
    """

    def __init__(self, at: int | Sequence[int] = (), act: Act = kill, told: Act | None = None) -> None:
        self.at = (at,) if isinstance(at, int) else tuple(at)
        self.act = act
        self.told = told
        self.passed: list[str] = []
        self._lock = threading.Lock()

    def reach(self, name: str) -> None:
        """Pass a point."""
        with self._lock:
            self.passed.append(name)
            number = len(self.passed)
            if self.told is not None:
                self.told(name)
        if number in self.at:
            self.act(name)


class FaultySaver(BaseCheckpointSaver):
    """A saver around another one whose transitions pass points; with `reads`, its reads pass one each too."""

    def __init__(self, inner: BaseCheckpointSaver, points: Points, *, reads: bool = False) -> None:
        self.inner = inner
        self.points = points
        self.blocking = True  # a point may hold whoever passes it
        self._reads = reads

    @property
    def identity(self) -> str:
        """The store of the inner saver."""
        return self.inner.identity

    # --- transitions --------------------------------------------------------------------------------------------------

    def move(self, change: Move) -> None:
        """Apply a `Move`."""
        self._transition(f"move {_text(change.writes)}", self.inner.move, change)

    def commit(self, change: Commit) -> None:
        """Apply a `Commit`."""
        rest = "" if change.rest is None else f" rest {change.rest.status}"
        self._transition(f"commit {_text(change.writes)}{rest}", self.inner.commit, change)

    def settle(self, change: Settle) -> ThreadRow:
        """Apply a `Settle`."""
        claim = "" if change.claim is None else " and claim"
        row: ThreadRow = self._transition(f"settle {len(change.settlements)}{claim}", self.inner.settle, change)
        return row

    def record(self, change: Record) -> bool:
        """Apply a `Record`."""
        done: bool = self._transition(f"record {change.journal.state}", self.inner.record, change)
        return done

    def cut(self, change: Cut) -> None:
        """Apply a `Cut`."""
        what = "all" if change.whole else f"{len(change.checkpoints)} checkpoints, {len(change.items)} ranges of items"
        self._transition(f"cut {what}", self.inner.cut, change)

    def _transition(self, name: str, apply: Callable[[Any], Any], change: Any) -> Any:
        self.points.reach(f"before {name}")
        result = apply(change)
        self.points.reach(f"after {name}")
        return result

    # --- reads --------------------------------------------------------------------------------------------------------

    def thread(self, key: ThreadKey) -> ThreadRow | None:
        """Read a thread's row."""
        self._read("thread")
        return self.inner.thread(key)

    def load(self, key: ThreadKey, ns: str = "", checkpoint_id: str | None = None) -> Loaded:
        """Read a namespace at its newest checkpoint (the root: at the thread's head) or at the one named."""
        self._read("load")
        return self.inner.load(key, ns, checkpoint_id)

    def entry(self, key: ThreadKey, ns: str, checkpoint_id: str, task_id: str, seq: int) -> JournalRow | None:
        """Read one journal entry."""
        self._read("entry")
        return self.inner.entry(key, ns, checkpoint_id, task_id, seq)

    def whole(self, key: ThreadKey) -> Whole | None:
        """Read all of a thread in one snapshot."""
        self._read("whole")
        return self.inner.whole(key)

    def items(self, key: ThreadKey, ranges: Sequence[tuple[int, int]]) -> dict[int, bytes]:
        """Read items by half-open ranges of numbers."""
        self._read("items")
        return self.inner.items(key, ranges)

    def history(
        self, key: ThreadKey, ns: str = "", *, before: str | None = None, limit: int | None = None
    ) -> list[CheckpointRow]:
        """List checkpoints of a namespace, newest first, with ids smaller than `before`."""
        self._read("history")
        return self.inner.history(key, ns, before=before, limit=limit)

    def questions(self, wanted: PendingFilter) -> list[QuestionRow]:
        """List questions over all threads."""
        self._read("questions")
        return self.inner.questions(wanted)

    def count(self, wanted: PendingFilter) -> int:
        """Count what `questions` would list without its limit."""
        self._read("count")
        return self.inner.count(wanted)

    def threads(
        self, *, status: Status | None = None, thread_id: str | None = None, limit: int | None = None, offset: int = 0,
        changed_before: float | None = None,
    ) -> list[ThreadRow]:  # fmt: skip
        """List threads, newest change first."""
        self._read("threads")
        return self.inner.threads(
            status=status, thread_id=thread_id, limit=limit, offset=offset, changed_before=changed_before
        )

    def events(self, key: ThreadKey, *, after: int = 0, limit: int | None = None) -> list[EventRow]:
        """List a thread's record in order, from the event after number `after`."""
        self._read("events")
        return self.inner.events(key, after=after, limit=limit)

    def _read(self, name: str) -> None:
        if self._reads:
            self.points.reach(f"read {name}")

    # --- the rest passes no point -------------------------------------------------------------------------------------

    def beat(self, owner: str, lease_until: float) -> None:
        """Extend the lease of all threads that `owner` runs."""
        self.inner.beat(owner, lease_until)

    def delete_thread(self, thread_id: str) -> None:
        """Remove all rows of a thread, of all graphs."""
        self.inner.delete_thread(thread_id)

    def close(self) -> None:
        """Close the inner saver."""
        self.inner.close()


def _text(writes: Writes) -> str:
    """Tell what a transition adds, in a few words: enough to tell points apart in a failing test."""
    parts = [f"{e.kind} {e.state}" for e in writes.journal]
    parts += [f"{o.node} {o.status}" for o in writes.outcomes]
    parts += [f"asked by {q.node}" for q in writes.questions]
    parts += ["checkpoint"] * len(writes.checkpoints)
    parts += [e.kind for e in writes.events if e.kind in {"started", "continued", "interrupted"}]
    return "(" + ", ".join(parts) + ")"
