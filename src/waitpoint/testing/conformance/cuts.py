"""What a `Cut` promises, and that a thread is read whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    Commit,
    Cut,
    EventRow,
    Move,
    PendingFilter,
    Rest,
    ThreadChanged,
    ThreadKey,
    ThreadRow,
    Whole,
    Writes,
)
from waitpoint.errors import StoreError, UsageError
from waitpoint.testing.conformance.rows import (
    BELOW,
    C1,
    C2,
    C3,
    KEY,
    OTHER,
    answer,
    begin,
    checkpoint,
    commit,
    entry,
    everything,
    item,
    outcome,
    question,
    refused,
    row_of,
)


def furnished(saver: BaseCheckpointSaver, key: ThreadKey = KEY, **fields: Any) -> ThreadRow:
    """Create a thread at rest at `C3`, after `C1` and `C2`, with rows of every kind at each of them."""
    names, last = (C1, C2, C3), key.thread_id
    fields = {"status": "waiting", "owner": None, "lease_until": None, "head": C3, "next_item": 6, **fields}
    return begin(
        saver,
        key,
        checkpoints=[checkpoint(name, ns) for name in names for ns in ("", BELOW)],
        items=[item(seq) for seq in range(6)],
        outcomes=[replace(outcome(at_checkpoint=name), ns=ns) for name in names for ns in ("", BELOW)],
        journal=[
            *(entry(checkpoint_id=name) for name in names),
            entry("permit", checkpoint_id="permits", kind="permit"),
            entry("permit", 1, checkpoint_id="permits", kind="permit"),
        ],
        questions=[
            question(f"{last} {n} {ns}", key, ns=ns, checkpoint_id=name, root_checkpoint=name, status="answered")
            for n, name in enumerate(names)
            for ns in ("", BELOW)
        ],
        events=[EventRow("begun", 1.0)],
        **fields,
    )


class CutConformance:
    """Tests of `cut` and `whole`."""

    def test_a_thread_is_read_whole(self, saver: BaseCheckpointSaver) -> None:
        row = furnished(saver)
        furnished(saver, OTHER)
        whole = saver.whole(KEY)
        assert whole is not None
        places = [(ns, name) for ns in ("", BELOW) for name in (C1, C2, C3)]
        assert whole.thread == row
        assert [(c.ns, c.id) for c in whole.checkpoints] == places
        assert list(whole.items) == list(range(6))
        assert [(o.ns, o.checkpoint_id) for o in whole.outcomes] == places
        assert [(e.checkpoint_id, e.task_id, e.seq) for e in whole.journal] == [
            *((name, "task-1", 0) for name in (C1, C2, C3)),
            ("permits", "permit", 0),
            ("permits", "permit", 1),
        ]
        assert whole.questions == saver.questions(PendingFilter(KEY.thread_id, answerable=False))
        assert len(whole.questions) == 6

    def test_a_thread_that_does_not_exist_is_nothing(self, saver: BaseCheckpointSaver) -> None:
        assert saver.whole(KEY) is None
        with refused(UsageError):
            saver.whole(ThreadKey(1, "graph"))  # type: ignore[arg-type]

    def test_cut_takes_what_it_names_and_nothing_else(self, saver: BaseCheckpointSaver) -> None:
        row = furnished(saver)
        furnished(saver, OTHER)
        before, other = saver.whole(KEY), saver.whole(OTHER)
        assert before is not None
        saver.cut(
            Cut(
                KEY,
                row,
                [("", C1), (BELOW, C2)],
                [(0, 2), (3, 4)],
                [("", "permits", "permit", 0)],
                [EventRow("pruned", 9.0, "ref", b"data")],
            )
        )

        def stays(ns: str, name: str) -> bool:
            return (ns, name) not in {("", C1), (BELOW, C2)}

        now = replace(row, next_item=7)
        assert saver.whole(KEY) == Whole(
            now,
            [c for c in before.checkpoints if stays(c.ns, c.id)],
            [2, 4, 5],
            [o for o in before.outcomes if stays(o.ns, o.checkpoint_id)],
            [e for e in before.journal if stays(e.ns, e.checkpoint_id) and (e.task_id, e.seq) != ("permit", 0)],
            [q for q in before.questions if stays(q.ns, q.checkpoint_id)],
        )
        assert saver.items(KEY, [(0, 9)]) == dict.fromkeys((2, 4, 5), b"item")
        assert saver.load(KEY, BELOW).checkpoint == checkpoint(C3, BELOW)
        assert saver.load(KEY, "", C1).checkpoint is None
        assert [e.kind for e in saver.events(KEY)] == ["begun", "pruned"]
        assert saver.whole(OTHER) == other

    def test_the_newest_checkpoint_of_a_namespace_can_go(self, saver: BaseCheckpointSaver) -> None:
        saver.cut(Cut(KEY, furnished(saver), [(BELOW, C3)]))
        assert saver.load(KEY, BELOW).checkpoint == checkpoint(C2, BELOW)
        saver.cut(Cut(KEY, row_of(saver), [(BELOW, C1), (BELOW, C2)]))
        assert saver.load(KEY, BELOW).checkpoint is None

    def test_what_was_cut_can_be_written_anew(self, saver: BaseCheckpointSaver) -> None:
        row = furnished(saver)
        saver.cut(Cut(KEY, row, [("", C1)], [(0, 1)]))
        again = question(f"{KEY.thread_id} 0 ", asked_at=7.0)
        writes = Writes([checkpoint(C1, body=b"new")], [item(0, b"new")], questions=[again])
        saver.move(Move(KEY, row_of(saver), replace(row, fence=2), writes))
        assert saver.load(KEY, "", C1).checkpoint == checkpoint(C1, body=b"new")
        assert [q for q in saver.load(KEY, "", C1).questions if not q.ns] == [again]
        assert saver.items(KEY, [(0, 1)]) == {0: b"new"}

    def test_an_open_question_goes_with_its_checkpoint(self, saver: BaseCheckpointSaver) -> None:
        row = begin(
            saver, status="waiting", head=C2, checkpoints=[checkpoint(), checkpoint(C2)], questions=[question()]
        )
        saver.cut(Cut(KEY, row, [("", C1)]))
        assert saver.questions(PendingFilter()) == saver.questions(PendingFilter(answerable=False)) == []
        assert saver.count(PendingFilter()) == 0

    def test_cut_can_take_a_thread_back(self, saver: BaseCheckpointSaver) -> None:
        row = furnished(saver, status="failed", error="text")
        saver.cut(Cut(KEY, row, [("", C3)], head=C2))
        assert saver.thread(KEY) == replace(row, head=C2, status="idle", error=None, next_item=7)
        assert saver.load(KEY).checkpoint == checkpoint(C2)

    def test_cut_can_take_a_thread_altogether(self, saver: BaseCheckpointSaver) -> None:
        furnished(saver, OTHER)
        before = everything(saver)
        row = furnished(saver)
        second = ThreadKey(KEY.thread_id, "graph 2")
        begin(saver, second)
        saver.cut(Cut(KEY, row, whole=True))
        assert saver.whole(KEY) is None
        assert saver.events(KEY) == []
        assert saver.thread(second) is not None
        saver.delete_thread(KEY.thread_id)
        assert everything(saver) == before

    def test_cut_is_refused_if_the_thread_is_not_as_believed(self, saver: BaseCheckpointSaver) -> None:
        row = furnished(saver)
        before = everything(saver)
        for believed in (
            replace(row, fence=2),
            replace(row, answer_seq=1),
            replace(row, status="idle"),
            replace(row, head=C2),
            replace(row, next_item=7),
        ):
            for whole in (False, True):
                with refused(ThreadChanged) as refusal:
                    saver.cut(Cut(KEY, believed, [("", C1)], [(0, 6)], events=[EventRow("e", 1.0)], whole=whole))
                assert refusal.error.thread == row
        with refused(ThreadChanged) as refusal:
            saver.cut(Cut(OTHER, replace(row, key=OTHER)))
        assert refusal.error.thread is None
        assert everything(saver) == before

    def test_cut_of_a_thread_that_runs_and_of_its_head_is_refused(self, saver: BaseCheckpointSaver) -> None:
        running, resting = begin(saver, OTHER), furnished(saver)
        before = everything(saver)
        with refused(StoreError):
            saver.cut(Cut(OTHER, running, whole=True))
        with refused(StoreError):
            saver.cut(Cut(KEY, resting, [("", C1), ("", C3)]))
        with refused(StoreError):
            saver.cut(Cut(KEY, resting, [("", C1)], head=C1))
        assert everything(saver) == before

    # Each of two changes that meet is made on what its writer read; whichever is second finds that out.

    def test_who_read_a_thread_before_a_cut_does_not_build_on_what_is_gone(self, saver: BaseCheckpointSaver) -> None:
        row = furnished(saver)
        saver.cut(Cut(KEY, row, [("", C1)]))
        with refused(ThreadChanged):
            saver.move(Move(KEY, row, replace(row, fence=2)))
        with refused(ThreadChanged):
            saver.cut(Cut(KEY, row, [("", C2)]))
        saver.move(Move(KEY, row_of(saver), replace(row, fence=2)))

    def test_a_claim_that_is_first_keeps_a_cut_out_until_the_thread_rests(self, saver: BaseCheckpointSaver) -> None:
        row = furnished(saver)
        saver.move(Move(KEY, row, replace(row, fence=2, status="running")))
        with refused(ThreadChanged):
            saver.cut(Cut(KEY, row, [("", C1)]))
        commit(saver, 2, items=[item(6)])
        saver.commit(Commit(KEY, 2, Writes(), 5.0, next_item=7, rest=Rest("idle", 0)))
        with refused(ThreadChanged):
            saver.cut(Cut(KEY, row, [("", C1)]))
        saver.cut(Cut(KEY, row_of(saver), [("", C1)]))
        assert [c.id for c in saver.history(KEY)] == [C3, C2]

    def test_an_answer_that_is_first_keeps_a_cut_out(self, saver: BaseCheckpointSaver) -> None:
        row = furnished(saver)
        row = begin(saver, OTHER, status="waiting", questions=[question("open", OTHER)])
        answer(saver, "open", key=OTHER)
        with refused(ThreadChanged):
            saver.cut(Cut(OTHER, row, whole=True))
        assert row_of(saver, OTHER).status == "ready"

    def test_a_run_whose_thread_is_cut_altogether_was_not_running(self, saver: BaseCheckpointSaver) -> None:
        row = furnished(saver)
        saver.cut(Cut(KEY, row, whole=True))
        with refused(ThreadChanged):
            saver.move(Move(KEY, row, replace(row, fence=2, status="running")))
        assert saver.threads() == []

    def test_threads_are_listed_by_the_time_of_their_last_change(self, saver: BaseCheckpointSaver) -> None:
        old, new = begin(saver, updated_at=3.0), begin(saver, OTHER, updated_at=5.0)
        assert saver.threads(changed_before=3.0) == []
        assert saver.threads(changed_before=5.0) == [old]
        assert saver.threads(changed_before=6.0) == [new, old]
        assert saver.threads(changed_before=6.0, thread_id=KEY.thread_id) == [old]
        assert saver.threads(changed_before=6.0, status="running", limit=1) == [new]
