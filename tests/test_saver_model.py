"""SQLite equals the memory saver, the model, after any transitions in any order, with the file reopened in between."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from waitpoint.checkpoint.base import (
    CheckpointRow,
    Commit,
    Cut,
    EventRow,
    ItemRow,
    JournalRow,
    Move,
    OutcomeRow,
    PendingFilter,
    QuestionRow,
    Record,
    Rest,
    Settle,
    Settlement,
    ThreadKey,
    ThreadRow,
    Writes,
)
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.errors import WaitpointError
from waitpoint.testing.conformance.rows import everything

KEYS = [ThreadKey("a", "g"), ThreadKey("a", "h"), ThreadKey("b\ud800'", "g")]
POINTS = ["01970000-0000-7000-8000-00000000000a", "01970000-0000-7000-8000-00000000000b", "c"]
QUESTIONS = ["q1", "q2", "q3", "q4"]
STATUSES = ["idle", "ready", "running", "waiting", "failed"]

keys = st.sampled_from(KEYS)
namespaces = st.sampled_from(["", "child:task-9"])
points = st.sampled_from(POINTS)
tasks = st.sampled_from(["t1", "t2"])
few = st.integers(0, 2)
times = st.sampled_from([1.0, 2.5, 3.0])
bodies = st.sampled_from([b"", b"x", b"y" * 3000])
texts = st.sampled_from(["", "one", "two\0", "\udcff"])
maybe = st.none() | texts
statuses = st.sampled_from(STATUSES)

threads = st.builds(
    ThreadRow, keys, statuses, few, few, few, st.none() | points, maybe, st.none() | times, maybe, times, times
)
mostly = st.sampled_from([True] * 9 + [False])
checkpoints = st.builds(
    lambda ns, name, alike, odd: CheckpointRow(ns, name, name, 1, "\udcff", 1.0, b"x") if alike else odd,
    namespaces,
    points,
    mostly,
    st.builds(CheckpointRow, namespaces, points, st.none() | points, few, texts, times, bodies),
)
items = st.builds(lambda seq, alike: ItemRow(seq, b"x" if alike else b"odd"), st.integers(0, 5), mostly)
outcomes = st.builds(
    OutcomeRow,
    namespaces,
    points,
    tasks,
    texts,
    st.sampled_from(["done", "waiting", "failed", "patch"]),
    few,
    few,
    times,
    bodies,
)
journals = st.builds(
    JournalRow,
    namespaces,
    points,
    tasks,
    few,
    st.sampled_from(["step", "child"]),
    st.sampled_from(["executing", "done", "raised", "not_happened"]),
    few,
    times,
    texts,
    bodies,
)
events = st.builds(EventRow, texts, times, texts, bodies)
names = st.sampled_from(QUESTIONS)


@st.composite
def questions(draw: st.DrawFn, key: ThreadKey) -> QuestionRow:
    """Draw a question, open as a rule; each name has few contents, so that some are asked twice alike."""
    name = draw(names)
    n = QUESTIONS.index(name)
    ns = ["", "child:task-9"][n % 2]
    row = QuestionRow(
        name, key, ns, POINTS[n % 3], POINTS[0], "t1", n, "node", b"v", None, "d", None, b"", b"", float(n // 2)
    )
    if not draw(mostly):
        row = replace(row, value=b"w", qkey="k", schema=b"s", status=draw(st.sampled_from(["open", "answered"])))
    return row


def up_to_two(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(strategy, max_size=2)


@st.composite
def writes(draw: st.DrawFn, key: ThreadKey) -> Writes:
    return Writes(
        draw(up_to_two(checkpoints)),
        draw(up_to_two(items)),
        draw(up_to_two(outcomes)),
        draw(up_to_two(journals)),
        draw(up_to_two(questions(key))),
        draw(up_to_two(st.tuples(names, texts))),
        draw(up_to_two(names)),
        draw(up_to_two(names)),
        draw(up_to_two(names)),
        draw(up_to_two(events)),
    )


settlements = st.builds(
    Settlement,
    names,
    st.sampled_from(["answered", "answered", "withdrawn"]),
    times,
    st.none() | bodies,
    maybe,
    maybe,
    maybe,
    maybe,
)
filters = st.builds(
    PendingFilter,
    thread_id=st.none() | st.sampled_from([key.thread_id for key in KEYS]),
    graph=st.none() | st.sampled_from(["g", "h"]),
    node=st.none() | st.sampled_from(["node", "other"]),
    ids=st.none() | st.lists(names),
    answerable=st.booleans(),
    newest_first=st.booleans(),
    limit=st.none() | few,
    offset=few,
    id_prefix=st.none() | st.sampled_from(["", "q", "q1", "r"]),
)


def said(saver: Any, call: str, *args: Any) -> Any:
    """Return what a call returns, or all that its refusal says."""
    try:
        return getattr(saver, call)(*args)
    except WaitpointError as error:
        return type(error), str(error), getattr(error, "thread", None), getattr(error, "questions", None)


class Savers(RuleBasedStateMachine):
    """Does the same to both savers."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "threads.db"
        self.model = InMemorySaver()
        self.saver = SqliteSaver(self.path)

    def teardown(self) -> None:
        self.saver.close()
        self.folder.cleanup()

    def both(self, call: str, *args: Any) -> None:
        assert said(self.saver, call, *args) == said(self.model, call, *args)

    @initialize(first=questions(KEYS[0]), second=questions(KEYS[1]))
    def begin(self, first: QuestionRow, second: QuestionRow) -> None:
        """Begin where most transitions succeed."""
        for key, asked in zip(KEYS[:2], (first, second), strict=True):
            row = ThreadRow(key, "running", 1, 0, 0, POINTS[0], "one", 1.0, None, 1.0, 1.0)
            rows = Writes([CheckpointRow("", POINTS[0], None, 0, "loop", 1.0, b"x")], questions=[asked])
            self.both("move", Move(key, None, row, rows))

    @rule(data=st.data(), key=keys, then=threads, knows=mostly, durable=st.booleans())
    def move(self, data: st.DataObject, key: ThreadKey, then: ThreadRow, knows: bool, durable: bool) -> None:
        believed = self.model.thread(key) if knows else data.draw(st.none() | threads)
        then = replace(then, key=key, fence=1 if believed is None else believed.fence + 1)
        self.both("move", Move(key, believed, then, data.draw(writes(key)), durable))

    @rule(data=st.data(), key=keys, knows=mostly, head=st.none() | points, next_item=st.none() | few)
    def commit(self, data: st.DataObject, key: ThreadKey, knows: bool, head: str | None, next_item: int | None) -> None:
        now = self.model.thread(key)
        fence = now.fence if now is not None and knows else 0
        answers = data.draw(few) if now is None or not data.draw(mostly) else now.answer_seq
        rest = data.draw(st.none() | st.builds(Rest, statuses, st.just(answers), maybe))
        change = Commit(key, fence, data.draw(writes(key)), data.draw(times), head, next_item, rest)
        self.both("commit", change)

    @rule(data=st.data(), key=keys, knows=mostly, more=st.lists(settlements, max_size=2))
    def settle(self, data: st.DataObject, key: ThreadKey, knows: bool, more: list[Settlement]) -> None:
        now = self.model.thread(key)
        open_ones = [row.id for row in self.model.questions(PendingFilter()) if row.key == key]
        if knows and open_ones:
            more = [replace(data.draw(settlements), id=name) for name in open_ones[: data.draw(st.integers(1, 2))]]
        head = data.draw(st.sampled_from([None, None, now and now.head, POINTS[1]]))
        claim = data.draw(st.none() | st.tuples(texts, times))
        self.both("settle", Settle(key, more, claim, head, data.draw(writes(key))))

    @rule(data=st.data(), key=keys, entry=journals, at=times, knows=mostly)
    def record(self, data: st.DataObject, key: ThreadKey, entry: JournalRow, at: float, knows: bool) -> None:
        stored = [row for point in POINTS for row in self.model.load(key, entry.ns, point).journal]
        if knows and stored:
            entry = replace(data.draw(st.sampled_from(stored)), state=entry.state, body=entry.body)
        self.both("record", Record(key, entry, at))

    @rule(data=st.data(), key=keys, knows=mostly, spares=mostly)
    def cut(self, data: st.DataObject, key: ThreadKey, knows: bool, spares: bool) -> None:
        believed = self.model.thread(key) if knows else data.draw(threads)
        if believed is not None:
            gone = data.draw(st.lists(st.tuples(namespaces, points), max_size=3))
            ranges = data.draw(st.lists(st.tuples(few, st.integers(0, 7)), max_size=2))
            entries = data.draw(st.lists(st.tuples(namespaces, points, tasks, few), max_size=2))
            head = data.draw(st.sampled_from([None, None, *POINTS]))
            said = data.draw(up_to_two(events))
            self.both("cut", Cut(key, believed, gone, ranges, entries, said, head, whole=not spares))

    @rule(owner=texts, until=times)
    def beat(self, owner: str, until: float) -> None:
        self.both("beat", owner, until)

    @rule(key=keys, spares=mostly)
    def delete_thread(self, key: ThreadKey, spares: bool) -> None:
        if not spares:
            self.both("delete_thread", key.thread_id)

    @rule(wanted=filters)
    def list_questions(self, wanted: PendingFilter) -> None:
        self.both("questions", wanted)
        self.both("count", wanted)

    @rule(key=keys, ns=namespaces, point=st.none() | points, ranges=st.lists(st.tuples(few, st.integers(0, 7))))
    def read(self, key: ThreadKey, ns: str, point: str | None, ranges: list[tuple[int, int]]) -> None:
        self.both("thread", key)
        self.both("whole", key)
        self.both("load", key, ns, point)
        self.both("items", key, ranges)

    @rule()
    def reopen(self) -> None:
        self.saver.close()
        self.saver = SqliteSaver.from_conn_string(str(self.path))

    @invariant()
    def hold_the_same(self) -> None:
        assert everything(self.saver) == everything(self.model)


@pytest.mark.slow
@pytest.mark.timeout(300)
class TestSavers(Savers.TestCase):
    settings = settings(stateful_step_count=30)
