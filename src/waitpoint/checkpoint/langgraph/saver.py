"""Keeps threads of Waitpoint in a saver written for LangGraph.

Such a saver has no transitions: it puts checkpoints, and adds writes to them, each under an id. So a thread is kept as a
log. Each transition is one write, under the number that follows the last one; a saver keeps the first of two writes with
one id, so of two writers exactly one has written that number, and the other one reads what was written and decides anew.
What a transition means is decided by the saver in memory, on a copy made by reading the log.

Numbers are spread over checkpoints ("segments"), so that what is read at a time stays short.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from waitpoint import ids
from waitpoint.checkpoint import rules
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
)
from waitpoint.checkpoint.langgraph.entries import Beat, Entry, decoded, encoded
from waitpoint.checkpoint.langgraph.peer import Peer, Place, name_of
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.errors import ConflictError

SEGMENT: Final = 64

_INDEX: Final = Place("waitpoint-index", 0)


class _Log:
    """How far this process has read a thread's log: the number of entries, and the marks of the first and the last.

    The first mark is part of all later entries' ids. So what is written to a thread that was deleted meanwhile, and perhaps
    made anew, never becomes part of the new one.
    """

    def __init__(self) -> None:
        self.length = 0
        self.first = self.last = b""

    def name(self, number: int) -> str:
        """Return the id of an entry."""
        return _as_id("0" * 32) if number == 0 else _as_id(ids.hashed("entry", self.first.hex(), number))

    def add(self, mark: bytes) -> None:
        """Count one more entry."""
        self.first, self.last = self.first or mark, mark
        self.length += 1


class LangGraphSaver(BaseCheckpointSaver):
    """Keeps threads in a `langgraph-checkpoint` saver, blocking or asynchronous.

    It keeps the promises of a saver, so far as that one lets it.

    What rests on the other saver, and is weaker than in Waitpoint's own:

    - Transitions are atomic, and of two answers one wins, as long as the saver keeps the first of two writes under one id,
      also of two at the same moment, and every process reads what was written last. Those in memory, in SQLite and in
      PostgreSQL do. Two writes one after the other are tried out at the first use; that a unique key decides between two
      at once, and that reads come from the one true copy (no replica), cannot be.
    - A saver that keeps the last one, or does not give writes back, can be used by one process at a time only. A warning
      is logged then.
    - What a commit has to survive is the saver's business: `durable` is not passed on.
    - Nothing is ever taken out of a thread's log, a thread is read from its beginning by each process, and stays in its
      memory. `pending()` and `threads()` read the new entries of all threads. What `prune` and `delete_for_runs` take
      away cannot be read any more, but its room is not freed: `delete_thread` does that, and `copy_thread` before it
      makes a log that begins with what the thread is now.
    - That no two threads have a question of one id is checked among the threads that this process has read.

    Threads are called `waitpoint:ID` in there, apart from those of LangGraph; do not prune them.
    """

    def __init__(self, saver: Any) -> None:
        self._peer = Peer(saver)
        self._copy = InMemorySaver()
        self._logs: dict[str, _Log] = {}
        self._indexed: set[str] = set()
        self._lock = threading.RLock()

    @property
    def identity(self) -> str:
        """What store this is: that of the saver it wraps."""
        return f"langgraph:{id(self._peer.saver)}"

    # --- transitions ---

    def move(self, change: Move) -> None:
        """Apply a `Move`."""
        self._apply(change.key, change, self._copy.move)

    def commit(self, change: Commit) -> None:
        """Apply a `Commit`."""
        self._apply(change.key, change, self._copy.commit)

    def settle(self, change: Settle) -> ThreadRow:
        """Apply a `Settle`."""
        row: ThreadRow = self._apply(change.key, change, self._copy.settle)
        return row

    def record(self, change: Record) -> bool:
        """Apply a `Record`."""
        with self._lock:
            self._read(change.key.thread_id)
            stored: bool = self._apply(change.key, change, self._copy.record)
            return stored

    def cut(self, change: Cut) -> None:
        """Apply a `Cut`: what it takes can no longer be read. The log itself gets longer by it."""
        self._apply(change.key, change, self._copy.cut)

    def beat(self, owner: str, lease_until: float) -> None:
        """Extend the lease of all threads that `owner` runs, among those that this process has read."""
        with self._lock:
            for row in self._copy.threads(status="running"):
                if row.owner == owner:
                    self._apply(row.key, Beat(owner, lease_until), self._beaten)

    def delete_thread(self, thread_id: str) -> None:
        """Remove all rows of a thread, of all graphs."""
        rules.check_text("thread_id", thread_id)
        with self._lock:
            self._peer.delete(name_of(thread_id))
            self._forget(thread_id)

    def _apply(self, key: ThreadKey, change: Any, do: Callable[[Any], Any]) -> Any:
        """Make a transition on the copy, then write it under the next number; where another one is there, look again."""
        rules.check_key(key)
        with self._lock:
            self._peer.try_out()
            while True:
                try:
                    result = do(change)
                except ConflictError:
                    if self._read(key.thread_id):
                        continue  # what was believed here was not the newest
                    raise
                if result is False:
                    return False
                if self._written(key.thread_id, change):
                    return result

    def _written(self, thread_id: str, change: Any) -> bool:
        """Write an entry; False if another process wrote that number before. Then, or if it fails, the copy is made anew."""
        log = self._logs.setdefault(thread_id, _Log())
        entry = Entry(os.urandom(12), change)
        number = log.length
        place, name = Place(name_of(thread_id), number // SEGMENT), log.name(number)
        won = False
        try:
            self._enter(thread_id)
            if number % SEGMENT == 0:
                self._peer.open(place)
            self._peer.write(place, name, encoded(entry))
            there = self._peer.writes(place)
            before = there if number % SEGMENT else None
            won = _is_marked(there.get(name), entry.mark) and self._is_same(thread_id, log, before)
        finally:
            if not won:
                self._forget(thread_id)
        if not won:
            self._read(thread_id)
            return False
        log.add(entry.mark)
        return True

    def _enter(self, thread_id: str) -> None:
        """List a thread in the index, before anything of it is written."""
        if thread_id not in self._indexed:
            self._peer.open(_INDEX)
            self._peer.write(
                _INDEX, _as_id(ids.hashed("thread", thread_id)), thread_id.encode("utf-8", "surrogatepass")
            )
            self._indexed.add(thread_id)

    # --- the copy ---

    def _read(self, thread_id: str) -> bool:
        """Bring the copy of a thread up to date; tell whether anything was new."""
        rules.check_text("thread_id", thread_id)
        with self._lock:
            log = self._logs.get(thread_id) or _Log()
            if log.length and not self._is_same(thread_id, log):
                self._forget(thread_id)
                self._read(thread_id)
                return True
            before = log.length
            while True:
                entries = self._peer.writes(Place(name_of(thread_id), log.length // SEGMENT))
                while (data := entries.get(log.name(log.length))) is not None:
                    self._replay(decoded(data), log)
                    if log.length % SEGMENT == 0:
                        break
                else:
                    break
            if log.length:
                self._logs[thread_id] = log
            return log.length != before

    def _is_same(self, thread_id: str, log: _Log, there: Mapping[str, Any] | None = None) -> bool:
        """Whether the last entry that was read is still there: else the thread was deleted, and perhaps made anew."""
        if log.length == 0:
            return True
        last = log.length - 1
        if there is None:
            there = self._peer.writes(Place(name_of(thread_id), last // SEGMENT))
        return _is_marked(there.get(log.name(last)), log.last)

    def _replay(self, entry: Entry, log: _Log) -> None:
        change = entry.change
        if isinstance(change, Move):
            self._copy.move(change)
        elif isinstance(change, Commit):
            self._copy.commit(change)
        elif isinstance(change, Settle):
            self._copy.settle(change)
        elif isinstance(change, Record):
            self._copy.record(change)
        elif isinstance(change, Cut):
            self._copy.cut(change)
        else:
            self._beaten(change)
        log.add(entry.mark)

    def _beaten(self, change: Beat) -> None:
        self._copy.beat(change.owner, change.lease_until)

    def _forget(self, thread_id: str) -> None:
        self._logs.pop(thread_id, None)
        self._copy.delete_thread(thread_id)

    def _read_all(self) -> None:
        with self._lock:
            for data in self._peer.writes(_INDEX).values():
                self._read(bytes(data).decode("utf-8", "surrogatepass"))

    # --- reads ---

    def thread(self, key: ThreadKey) -> ThreadRow | None:
        """Read a thread's row."""
        self._read(key.thread_id)
        return self._copy.thread(key)

    def load(self, key: ThreadKey, ns: str = "", checkpoint_id: str | None = None) -> Loaded:
        """Read a namespace at its newest checkpoint (the root: at the thread's head) or at the one named."""
        self._read(key.thread_id)
        return self._copy.load(key, ns, checkpoint_id)

    def entry(self, key: ThreadKey, ns: str, checkpoint_id: str, task_id: str, seq: int) -> JournalRow | None:
        """Read one journal entry."""
        self._read(key.thread_id)
        return self._copy.entry(key, ns, checkpoint_id, task_id, seq)

    def whole(self, key: ThreadKey) -> Whole | None:
        """Read all of a thread in one snapshot; the data of items is left out."""
        self._read(key.thread_id)
        return self._copy.whole(key)

    def items(self, key: ThreadKey, ranges: Sequence[tuple[int, int]]) -> dict[int, bytes]:
        """Read items by half-open ranges of numbers."""
        self._read(key.thread_id)
        return self._copy.items(key, ranges)

    def history(
        self, key: ThreadKey, ns: str = "", *, before: str | None = None, limit: int | None = None
    ) -> list[CheckpointRow]:
        """List checkpoints of a namespace, newest first, with ids smaller than `before`."""
        self._read(key.thread_id)
        return self._copy.history(key, ns, before=before, limit=limit)

    def questions(self, wanted: PendingFilter) -> list[QuestionRow]:
        """List questions over all threads, by the time they were asked, then by (ns, task_id, seq, id)."""
        self._read_wanted(wanted)
        return self._copy.questions(wanted)

    def count(self, wanted: PendingFilter) -> int:
        """Count what `questions` would list without its limit."""
        self._read_wanted(wanted)
        return self._copy.count(wanted)

    def threads(
        self, *, status: Status | None = None, thread_id: str | None = None, limit: int | None = None, offset: int = 0,
        changed_before: float | None = None,
    ) -> list[ThreadRow]:  # fmt: skip
        """List threads, newest change first, then by id and graph."""
        if thread_id is None:
            self._read_all()
        else:
            self._read(thread_id)
        return self._copy.threads(
            status=status, thread_id=thread_id, limit=limit, offset=offset, changed_before=changed_before
        )

    def events(self, key: ThreadKey, *, after: int = 0, limit: int | None = None) -> list[EventRow]:
        """List a thread's record in order, from the event after number `after`."""
        self._read(key.thread_id)
        return self._copy.events(key, after=after, limit=limit)

    def close(self) -> None:
        """Let go of what was started for the other saver, which itself stays open: whoever opened it closes it."""
        self._peer.close()

    def _read_wanted(self, wanted: PendingFilter) -> None:
        if isinstance(wanted.thread_id, str):
            self._read(wanted.thread_id)
        else:
            self._read_all()


def _is_marked(data: Any, mark: bytes) -> bool:
    return data is not None and decoded(data).mark == mark


def _as_id(digits: str) -> str:
    """Return 32 digits in the form that LangGraph's ids have."""
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))
