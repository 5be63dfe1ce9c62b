"""What a `Move` promises, and what a thread's key may be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    EventRow,
    Move,
    PendingFilter,
    ThreadChanged,
    ThreadKey,
    Writes,
)
from waitpoint.errors import StoreError, UsageError
from waitpoint.testing.conformance.rows import (
    C1,
    C2,
    KEY,
    OTHER,
    answer,
    begin,
    checkpoint,
    entry,
    everything,
    item,
    outcome,
    question,
    refused,
    row_of,
    thread,
)

STRANGE_TEXTS = (
    'it\'s "quoted"; DROP TABLE thread; --',
    "nul\0in the middle",
    "家族 👨‍👩‍👧",
    "",
    " ",
    "%",
    "lone \ud800 surrogate",
    "x" * 10_000,
)


class MoveConformance:
    """Tests of `move`."""

    def test_move_creates_a_thread(self, saver: BaseCheckpointSaver) -> None:
        row = thread(head=C1, error="text", lease_until=None, owner=None, status="idle", answer_seq=3, next_item=7)
        saver.move(Move(KEY, None, row, Writes(checkpoints=[checkpoint()])))
        assert saver.thread(KEY) == row
        assert saver.load(KEY).checkpoint == checkpoint()

    def test_move_replaces_the_whole_row(self, saver: BaseCheckpointSaver) -> None:
        old = begin(saver)
        new = thread(status="idle", fence=2, answer_seq=4, next_item=9, head=C2, owner=None, lease_until=None)
        new = replace(new, error="failed", created_at=7.0, updated_at=8.0)
        saver.move(Move(KEY, old, new))
        assert saver.thread(KEY) == new

    def test_move_creates_a_thread_only_once(self, saver: BaseCheckpointSaver) -> None:
        old = begin(saver)
        before = everything(saver)
        with refused(ThreadChanged) as refusal:
            saver.move(Move(KEY, None, thread(), Writes(items=[item(1)])))
        assert refusal.error.thread == old
        assert everything(saver) == before

    def test_move_of_a_thread_that_does_not_exist_is_refused(self, saver: BaseCheckpointSaver) -> None:
        with refused(ThreadChanged) as refusal:
            saver.move(Move(KEY, thread(), thread(fence=2), Writes(items=[item(1)])))
        assert refusal.error.thread is None
        assert everything(saver) == everything(saver)
        assert saver.thread(KEY) is None
        assert saver.items(KEY, [(0, 9)]) == {}

    def test_move_is_refused_if_fence_answers_status_head_or_next_item_differ(self, saver: BaseCheckpointSaver) -> None:
        old = begin(saver, status="waiting", fence=1, answer_seq=2)
        before = everything(saver)
        for believed in (
            replace(old, fence=2),
            replace(old, answer_seq=1),
            replace(old, status="ready"),
            replace(old, head=C2),
            replace(old, head=None),
            replace(old, next_item=77),
        ):
            new = replace(old, fence=believed.fence + 1)
            with refused(ThreadChanged) as refusal:
                saver.move(Move(KEY, believed, new, Writes(items=[item(1)], events=[EventRow("e", 1.0)])))
            assert refusal.error.thread == old
        assert everything(saver) == before

    def test_move_compares_nothing_else(self, saver: BaseCheckpointSaver) -> None:
        old = begin(saver)
        believed = replace(old, owner=None, lease_until=None, error="other", created_at=0, updated_at=0)
        saver.move(Move(KEY, believed, replace(old, fence=2)))
        assert row_of(saver).fence == 2

    def test_move_must_take_the_next_fence(self, saver: BaseCheckpointSaver) -> None:
        with refused(StoreError):
            saver.move(Move(KEY, None, thread(fence=2)))
        old = begin(saver)
        for fence in (1, 3):
            with refused(StoreError):
                saver.move(Move(KEY, old, replace(old, fence=fence)))
        assert saver.thread(KEY) == old

    def test_move_changes_the_thread_it_names(self, saver: BaseCheckpointSaver) -> None:
        with refused(StoreError):
            saver.move(Move(KEY, None, thread(OTHER)))
        assert saver.threads() == []

    def test_move_adds_rows_and_withdraws_questions(self, saver: BaseCheckpointSaver) -> None:
        old = begin(saver, questions=[question("q1"), question("q2")])
        writes = Writes(
            checkpoints=[checkpoint(C2)],
            items=[item(0), item(1)],
            outcomes=[outcome()],
            journal=[entry()],
            withdrawn=[("q1", "new input")],
            events=[EventRow("fork", 9.0, C2)],
        )
        saver.move(Move(KEY, old, replace(old, fence=2, updated_at=9.0), writes))
        loaded = saver.load(KEY)
        assert [row.id for row in saver.history(KEY)] == [C2, C1]
        assert saver.items(KEY, [(0, 9)]) == {0: b"item", 1: b"item"}
        assert (loaded.outcomes, loaded.journal) == ([outcome()], [entry()])
        assert saver.events(KEY) == [EventRow("fork", 9.0, C2, seq=1)]
        withdrawn = replace(question("q1"), status="withdrawn", settled_at=9.0, reason="new input")
        assert loaded.questions == [withdrawn, question("q2")]

    def test_move_of_a_refused_row_stores_nothing(self, saver: BaseCheckpointSaver) -> None:
        old = begin(saver, items=[item(0)])
        before = everything(saver)
        with refused(StoreError):
            saver.move(Move(KEY, old, replace(old, fence=2), Writes(items=[item(1), item(0, b"other")])))
        assert everything(saver) == before

    def test_another_graph_on_the_same_id_is_another_thread(self, saver: BaseCheckpointSaver) -> None:
        other = ThreadKey(KEY.thread_id, "other graph")
        begin(saver, questions=[question("q1")], items=[item(0, b"one")])
        begin(saver, other, questions=[question("q2", other)], items=[item(0, b"two")])
        assert [row.id for row in saver.load(KEY).questions] == ["q1"]
        assert [row.id for row in saver.load(other).questions] == ["q2"]
        assert saver.items(other, [(0, 1)]) == {0: b"two"}
        assert answer(saver, "q2", key=other).key == other
        assert row_of(saver).answer_seq == 0

    def test_ids_may_be_any_text(self, saver: BaseCheckpointSaver) -> None:
        for n, text in enumerate(STRANGE_TEXTS):
            key = ThreadKey(text, text)
            name = f"question {n} {text}"
            asked = question(name, key, node=text, qkey=text, task_id=text, digest=text)
            row = begin(saver, key, error=text, owner=text, questions=[asked], events=[EventRow(text, 1.0, text)])
            assert saver.thread(key) == row
            assert saver.load(key).questions == [asked]
            assert saver.threads(thread_id=text) == [row]
            assert saver.questions(PendingFilter(thread_id=text, graph=text, node=text)) == [asked]
            assert saver.events(key) == [EventRow(text, 1.0, text, seq=1)]
            assert answer(saver, name, key=key).answer_seq == 1
        assert len(saver.threads()) == len(STRANGE_TEXTS)

    def test_ids_must_be_text(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, ThreadKey("1", "2"))
        for key in (ThreadKey(cast("Any", 1), "2"), ThreadKey("1", cast("Any", 2)), ThreadKey(cast("Any", None), "2")):
            with refused(UsageError):
                saver.move(Move(key, None, thread(key)))
            with refused(UsageError):
                saver.load(key)
            with refused(UsageError):
                saver.thread(key)
        with refused(UsageError):
            saver.threads(thread_id=cast("Any", 1))
        with refused(UsageError):
            saver.delete_thread(cast("Any", 1))
        with refused(UsageError):
            saver.questions(PendingFilter(thread_id=cast("Any", 1)))
        assert len(saver.threads()) == 1
