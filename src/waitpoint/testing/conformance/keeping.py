"""What `prune`, `copy_thread` and `delete_for_runs` promise of threads that graphs made."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from waitpoint import codec
from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    CheckpointRow,
    Commit,
    Move,
    OutcomeRow,
    PendingFilter,
    Pruned,
    ThreadKey,
    ThreadRow,
    Writes,
)
from waitpoint.errors import NotFoundError, ThreadBusyError, UsageError
from waitpoint.testing.conformance.rows import (
    C1,
    C2,
    C3,
    KEY,
    OTHER,
    answer,
    begin,
    entry,
    everything,
    item,
    question,
    question_of,
    refused,
    row_of,
)

INSIDE = "agent:task-9"  # a graph in a task of `C2`
MEMORY = "notes"  # a graph with a memory of its own
M1, M2 = C1 + "-1", C2 + "-1"  # what it was left with in the first two steps
LATE = 1e12  # a time of last change that no sweep reaches


def made(name: str, refs: dict[str, object], ns: str = "", **more: object) -> CheckpointRow:
    """Make a checkpoint as the engine writes it: `refs` are numbers of items, or ranges, by key of the state."""
    parent = {C2: C1, C3: C2}.get(name)
    return CheckpointRow(ns, name, parent, 0, "loop", 2.0, codec.dumps_plain({"v": refs, **more}))


def wrote(at: str, ref: object, task_id: str = "task-1") -> OutcomeRow:
    """Make the outcome of a task that wrote what lies behind a reference."""
    body = codec.dumps_plain({"r": [[["key", ref]], []]})
    return OutcomeRow("", at, task_id, "node", "done", 0, 1, 3.0, body)


def lived(saver: BaseCheckpointSaver, key: ThreadKey = KEY, **fields: object) -> ThreadRow:
    """Create a thread of three steps that waits at the last with a question; it has a graph inside and a memory."""
    name = f"q of {key.thread_id}"
    rows = {
        "checkpoints": [
            made(C1, {"log": [0, 1], "doc": 1}, m={"run_id": "first"}),
            made(M1, {"doc": 7}, MEMORY, o=[[["", C1]], "notes:task-1", []]),
            made(C2, {"log": [0, 3], "doc": 3}, m={"run_id": "first"}),
            made(C2, {"doc": 8}, INSIDE, o=[[["", C2]], "", []]),
            made(M2, {"doc": 9}, MEMORY, o=[[["", C2]], "notes:task-2", []]),
            made(C3, {"log": [0, 3], "doc": 4}, m={"run_id": "second"}),
        ],
        "items": [item(n, b"item %d" % n) for n in range(10)],
        "outcomes": [wrote(C1, 5, "old"), wrote(C3, [6, 7], "new")],
        "journal": [
            entry(checkpoint_id=C1, state="done"),
            entry(checkpoint_id=C3),
            entry("used", checkpoint_id="permits", kind="permit", state="done", at=1.0),
            entry("open", checkpoint_id="permits", kind="permit", at=1.0),
        ],
        "questions": [
            question(f"old {name}", key, status="answered", task_id="old"),
            question(name, key, checkpoint_id=C3, root_checkpoint=C3, task_id="task-1"),
        ],
    }
    given = {"status": "waiting", "head": C3, "next_item": 10, "owner": None, "lease_until": None, "fence": 1}
    return begin(saver, key, **rows, **{**given, **fields})


class KeepingConformance:
    """Tests of keeping house."""

    def test_pruning_leaves_what_the_thread_needs_to_go_on(self, saver: BaseCheckpointSaver) -> None:
        lived(saver)
        before = saver.load(KEY)
        pruned = saver.prune([KEY.thread_id])
        after = saver.load(KEY)
        assert after.thread is not None
        assert before.thread is not None
        assert replace(after.thread, next_item=before.thread.next_item) == before.thread
        assert after.checkpoint == before.checkpoint
        assert (after.outcomes, after.journal, after.questions) == (before.outcomes, before.journal, before.questions)
        whole = saver.whole(KEY)
        assert whole is not None
        assert [(c.ns, c.id) for c in whole.checkpoints] == [("", C3), (MEMORY, M2)]
        assert list(whole.items) == [0, 1, 2, 4, 6, 9]
        assert [e.task_id for e in whole.journal] == ["task-1", "open"]
        assert [q.id for q in saver.questions(PendingFilter(answerable=False))] == ["q of thread-1"]
        assert pruned == Pruned(threads=1, checkpoints=4, items=4)
        assert [e.kind for e in saver.events(KEY)] == ["pruned"]

    def test_pruning_twice_takes_nothing_more(self, saver: BaseCheckpointSaver) -> None:
        lived(saver)
        saver.prune([KEY.thread_id])
        before = everything(saver)
        assert saver.prune([KEY.thread_id, "nobody"]) == Pruned()
        assert everything(saver) == before

    def test_a_graph_inside_that_has_not_ended_stays(self, saver: BaseCheckpointSaver) -> None:
        lived(saver, head=C2)
        saver.prune([KEY.thread_id])
        whole = saver.whole(KEY)
        assert whole is not None
        # The question of the step after it is open, and the first memory is what a fork from here goes on with.
        assert [(c.ns, c.id) for c in whole.checkpoints] == [
            ("", C2),
            ("", C3),
            (INSIDE, C2),
            (MEMORY, M1),
            (MEMORY, M2),
        ]

    def test_a_sweep_takes_what_is_old_and_spares_what_runs(self, saver: BaseCheckpointSaver) -> None:
        lived(saver)
        lived(saver, OTHER, updated_at=LATE)
        running = ThreadKey("thread-3", "graph")
        begin(saver, running)
        before = saver.whole(OTHER)
        pruned = saver.prune(older_than=timedelta(days=30))
        assert (pruned.threads, pruned.running) == (1, (running,))
        assert saver.whole(OTHER) == before
        assert saver.prune([OTHER.thread_id], older_than=60) == Pruned()

    def test_deleting_what_is_old_spares_open_questions_and_answers_not_acted_on(
        self, saver: BaseCheckpointSaver
    ) -> None:
        keys = [ThreadKey(f"thread-{n}", "graph") for n in range(3)]
        for key in keys:
            lived(saver, key)
        answer(saver, "q of thread-1", key=keys[1])
        idle = row_of(saver, keys[2])
        over = Writes(withdrawn=[("q of thread-2", "over")])
        saver.move(Move(keys[2], idle, replace(idle, status="idle", fence=2), over))
        pruned = saver.prune(older_than=0, strategy="delete")
        assert (pruned.threads, pruned.deleted) == (3, 1)
        assert [row.status for row in saver.threads()] == ["ready", "waiting"]
        assert saver.whole(keys[2]) is None
        assert question_of(saver, "q of thread-1").answer == b"yes"

    def test_a_named_thread_that_runs_is_not_pruned_and_nothing_else_is(self, saver: BaseCheckpointSaver) -> None:
        lived(saver)
        begin(saver, OTHER)
        before = everything(saver)
        with refused(ThreadBusyError):
            saver.prune([KEY.thread_id, OTHER.thread_id])
        assert everything(saver) == before

    def test_pruning_needs_to_be_told_what(self, saver: BaseCheckpointSaver) -> None:
        for wrong in ({}, {"thread_ids": KEY.thread_id}, {"older_than": -1}, {"older_than": 1, "strategy": "all"}):
            with refused(UsageError):
                saver.prune(**wrong)

    # --- copies ---

    def test_a_copy_is_the_same_under_another_id_and_its_question_is_its_own(self, saver: BaseCheckpointSaver) -> None:
        row = lived(saver)
        before = saver.whole(KEY)
        saver.copy_thread(KEY.thread_id, OTHER.thread_id)
        copy = saver.whole(OTHER)
        assert copy is not None
        assert before is not None
        assert saver.whole(KEY) == before
        assert (copy.checkpoints, copy.items, copy.outcomes) == (before.checkpoints, before.items, before.outcomes)
        assert saver.items(OTHER, [(0, 10)]) == saver.items(KEY, [(0, 10)])
        assert copy.thread.key == OTHER
        assert (copy.thread.status, copy.thread.head, copy.thread.next_item) == ("waiting", C3, row.next_item)
        assert [q.status for q in copy.questions] == [q.status for q in before.questions]
        assert not {q.id for q in copy.questions} & {q.id for q in before.questions}
        assert [e.kind for e in saver.events(OTHER)] == ["copied"]

    def test_an_answer_to_the_one_is_none_to_the_other(self, saver: BaseCheckpointSaver) -> None:
        lived(saver)
        saver.copy_thread(KEY.thread_id, OTHER.thread_id)
        (asked,) = saver.questions(PendingFilter(OTHER.thread_id))
        answer(saver, "q of thread-1")
        assert saver.questions(PendingFilter()) == [asked]
        assert row_of(saver, OTHER).answer_seq == 0

    def test_an_answer_given_before_the_copy_decides_nothing_in_it(self, saver: BaseCheckpointSaver) -> None:
        lived(saver)
        answer(saver, "q of thread-1")
        saver.copy_thread(KEY.thread_id, OTHER.thread_id)
        assert (row_of(saver).status, row_of(saver, OTHER).status) == ("ready", "waiting")
        (asked,) = saver.questions(PendingFilter(OTHER.thread_id))
        assert (asked.status, asked.answer, asked.by) == ("open", None, None)
        assert question_of(saver, "q of thread-1").answer == b"yes"

    def test_an_effect_in_doubt_stays_in_doubt_and_a_permit_stays_behind(self, saver: BaseCheckpointSaver) -> None:
        lived(saver)
        saver.copy_thread(KEY.thread_id, OTHER.thread_id)
        copy = saver.whole(OTHER)
        assert copy is not None
        assert [(e.checkpoint_id, e.state) for e in copy.journal] == [(C1, "done"), (C3, "executing")]

    def test_a_copy_overwrites_nothing_and_needs_a_thread_at_rest(self, saver: BaseCheckpointSaver) -> None:
        lived(saver)
        begin(saver, OTHER)
        before = everything(saver)
        with refused(UsageError):
            saver.copy_thread(KEY.thread_id, OTHER.thread_id)
        with refused(ThreadBusyError):
            saver.copy_thread(OTHER.thread_id, "new")
        with refused(NotFoundError):
            saver.copy_thread("nobody", "new")
        assert everything(saver) == before

    # --- by run ---

    def test_what_an_earlier_run_left_goes_and_the_thread_stands_where_it_was(self, saver: BaseCheckpointSaver) -> None:
        lived(saver)
        before = saver.load(KEY)
        pruned = saver.delete_for_runs(["first"])
        assert pruned.checkpoints == 4  # with the graph inside; what the memory was left with is needed
        assert saver.load(KEY).checkpoint == before.checkpoint
        assert saver.load(KEY).questions == before.questions
        assert [c.id for c in saver.history(KEY)] == [C3]

    def test_a_thread_goes_back_to_before_the_run_that_brought_it_where_it_is(self, saver: BaseCheckpointSaver) -> None:
        lived(saver)
        saver.delete_for_runs(["second"], thread_ids=[KEY.thread_id])
        row = row_of(saver)
        assert (row.status, row.head) == ("idle", C2)
        assert saver.questions(PendingFilter()) == []
        assert [c.id for c in saver.history(KEY)] == [C2, C1]
        assert saver.delete_for_runs(["second"]) == Pruned()

    def test_a_thread_of_deleted_runs_alone_is_deleted(self, saver: BaseCheckpointSaver) -> None:
        lived(saver)
        assert saver.delete_for_runs(["first", "second"]).deleted == 1
        assert saver.threads() == []

    def test_what_a_running_thread_has_of_a_run_is_not_taken(self, saver: BaseCheckpointSaver) -> None:
        row = lived(saver)
        saver.move(Move(KEY, row, replace(row, status="running", fence=2)))
        with refused(ThreadBusyError):
            saver.delete_for_runs(["first"])
        saver.commit(Commit(KEY, 2, Writes(), 5.0))
        assert saver.delete_for_runs(["nobody"]) == Pruned()
