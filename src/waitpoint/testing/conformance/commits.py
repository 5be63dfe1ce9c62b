"""What a `Commit` promises, and what becomes of each kind of row that a transition writes."""

from __future__ import annotations

from dataclasses import replace

from waitpoint.checkpoint.base import (
    AnswersArrived,
    BaseCheckpointSaver,
    Commit,
    EventRow,
    FenceLost,
    Rest,
    ThreadKey,
    Writes,
)
from waitpoint.errors import StoreError
from waitpoint.testing.conformance.rows import (
    BELOW,
    C1,
    C2,
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
    question_of,
    refused,
    row_of,
)


class CommitConformance:
    """Tests of `commit`."""

    def test_commit_stores_head_and_next_item_only_when_given(self, saver: BaseCheckpointSaver) -> None:
        old = begin(saver, next_item=3)
        commit(saver)
        assert saver.thread(KEY) == replace(old, updated_at=5.0)
        saver.commit(Commit(KEY, 1, Writes(checkpoints=[checkpoint(C2)]), 6.0, head=C2, next_item=8))
        assert saver.thread(KEY) == replace(old, updated_at=6.0, head=C2, next_item=8)
        assert saver.load(KEY).checkpoint == checkpoint(C2)

    def test_commit_under_another_fence_is_refused(self, saver: BaseCheckpointSaver) -> None:
        old = begin(saver)
        commit(saver)
        before = everything(saver)
        for fence in (0, 2):
            with refused(FenceLost) as refusal:
                commit(saver, fence, items=[item(0)], events=[EventRow("e", 1.0)])
            assert refusal.error.thread == replace(old, updated_at=5.0)
        assert everything(saver) == before

    def test_commit_to_an_unknown_thread_has_lost_its_fence(self, saver: BaseCheckpointSaver) -> None:
        for _ in range(2):
            with refused(FenceLost) as refusal:
                commit(saver, items=[item(0)])
            assert refusal.error.thread is None
        assert saver.threads() == []

    def test_commit_without_rest_does_not_look_at_answers(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, questions=[question()])
        answer(saver, "q1")
        commit(saver, items=[item(0)])
        assert saver.items(KEY, [(0, 1)]) == {0: b"item"}

    def test_rest_gives_the_status_and_frees_the_thread(self, saver: BaseCheckpointSaver) -> None:
        old = begin(saver, error="old")
        saver.commit(Commit(KEY, 1, Writes(), 7.0, rest=Rest("waiting", 0)))
        assert saver.thread(KEY) == replace(
            old, status="waiting", owner=None, lease_until=None, error=None, updated_at=7.0
        )
        saver.commit(Commit(KEY, 1, Writes(), 8.0, rest=Rest("failed", 0, "boom"), durable=True))
        assert (row_of(saver).status, row_of(saver).error) == ("failed", "boom")

    def test_rest_is_refused_if_answers_came(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, questions=[question()])
        now = answer(saver, "q1")
        before = everything(saver)
        with refused(AnswersArrived) as refusal:
            saver.commit(Commit(KEY, 1, Writes(items=[item(0)]), 7.0, head=C2, rest=Rest("waiting", 0)))
        assert refusal.error.thread == now
        assert everything(saver) == before
        saver.commit(Commit(KEY, 1, Writes(), 7.0, rest=Rest("waiting", 1)))

    def test_the_fence_is_looked_at_before_the_answers(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, questions=[question()])
        answer(saver, "q1")
        with refused(FenceLost):
            saver.commit(Commit(KEY, 2, Writes(), 7.0, rest=Rest("waiting", 0)))

    def test_commit_changes_its_own_thread_only(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, questions=[question("q1")])
        begin(saver, OTHER, questions=[question("q2", OTHER)])
        before = saver.load(OTHER)
        commit(saver, withdrawn=[("q2", "not yours")], items=[item(0)], outcomes=[outcome()])
        assert saver.load(OTHER) == before
        assert saver.items(OTHER, [(0, 1)]) == {}

    # --- rows ---------------------------------------------------------------------------------------------------------

    def test_rows_that_exist_alike_may_be_stored_again(self, saver: BaseCheckpointSaver) -> None:
        rows = Writes([checkpoint(C2), checkpoint(C1, BELOW)], [item(0), item(1)], questions=[question()])
        begin(saver)
        saver.commit(Commit(KEY, 1, rows, 5.0))
        before = everything(saver)
        rows.checkpoints = [*rows.checkpoints, checkpoint(C2)]
        saver.commit(Commit(KEY, 1, rows, 5.0))
        assert everything(saver) == before
        commit(saver, items=[item(1), item(2), item(2)])
        assert saver.items(KEY, [(0, 9)]) == {0: b"item", 1: b"item", 2: b"item"}

    def test_rows_are_never_overwritten(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, items=[item(0)], questions=[question()])
        begin(saver, OTHER, checkpoints=[])
        before = everything(saver)
        for rows in (
            Writes(checkpoints=[checkpoint(C2), checkpoint(C1, body=b"other")]),
            Writes(checkpoints=[checkpoint(C2), checkpoint(C2, step=9)]),
            Writes(items=[item(1), item(0, b"other")]),
            Writes(items=[item(1), item(1, b"other")]),
            Writes(questions=[question("q2"), question("q1", value=b"other")]),
            Writes(questions=[question("q2"), question("q2", value=b"other")]),
            Writes(questions=[question("q2", OTHER)]),
        ):
            with refused(StoreError):
                saver.commit(Commit(KEY, 1, rows, 5.0, head=C2, next_item=9))
        with refused(StoreError):
            commit(saver, key=OTHER, questions=[question("q1", OTHER)])
        assert everything(saver) == before

    def test_a_settled_question_is_not_asked_again(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, questions=[question()])
        answer(saver, "q1")
        with refused(StoreError):
            commit(saver, questions=[question()])

    def test_an_outcome_takes_the_place_of_the_one_before(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, outcomes=[outcome(status="waiting"), outcome("task-2")])
        last = outcome(status="failed", attempt=2, at=9.0, body=b"error", answer_seq=4, node="renamed")
        commit(saver, outcomes=[outcome(), last])
        assert saver.load(KEY).outcomes == [outcome("task-2"), last]

    def test_an_outcome_belongs_to_namespace_checkpoint_and_task(self, saver: BaseCheckpointSaver) -> None:
        rows = [outcome(), replace(outcome(), ns=BELOW), outcome(at_checkpoint=C2)]
        begin(saver, checkpoints=[checkpoint(), checkpoint(C2), checkpoint(C1, BELOW)], outcomes=rows)
        assert saver.load(KEY, "", C1).outcomes == [rows[0]]
        assert saver.load(KEY, BELOW, C1).outcomes == [rows[1]]
        assert saver.load(KEY, "", C2).outcomes == [rows[2]]

    def test_a_journal_entry_moves_on_until_its_outcome_is_known(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, journal=[entry()])
        again = entry(execution="second", body=b"again")
        commit(saver, journal=[again])
        assert saver.load(KEY).journal == [again]
        commit(saver, journal=[entry(state="not_happened")])
        done = entry(execution="third", state="done")
        commit(saver, journal=[done])
        assert saver.load(KEY).journal == [done]

    def test_a_known_outcome_yields_to_its_own_execution_or_a_later_attempt_only(
        self, saver: BaseCheckpointSaver
    ) -> None:
        begin(saver)
        for n, state in enumerate(("done", "raised")):
            old = entry(seq=n, state=state, attempt=2)
            other = entry(seq=n, state=state, attempt=2, execution="second")
            commit(saver, journal=[old])
            commit(saver, journal=[other])
            commit(saver, journal=[replace(other, attempt=1)])
            assert saver.load(KEY).journal[n] == old
            commit(saver, journal=[replace(old, body=b"same execution")])
            assert saver.load(KEY).journal[n].body == b"same execution"
            commit(saver, journal=[replace(other, attempt=3, state="executing")])
            assert saver.load(KEY).journal[n].state == "executing"
            commit(saver, journal=[old])

    def test_events_are_numbered_from_one_without_a_gap(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, events=[EventRow("begun", 1.0)])
        begin(saver, OTHER, events=[EventRow("other", 1.0)])
        commit(saver, events=[EventRow("a", 2.0, "ref", b"data", seq=99), EventRow("b", 3.0)])
        with refused(FenceLost):
            commit(saver, 9, events=[EventRow("lost", 2.0)])
        commit(saver)
        commit(saver, events=[EventRow("c", 4.0)])
        assert saver.events(KEY) == [
            EventRow("begun", 1.0, seq=1),
            EventRow("a", 2.0, "ref", b"data", seq=2),
            EventRow("b", 3.0, seq=3),
            EventRow("c", 4.0, seq=4),
        ]

    # --- questions ----------------------------------------------------------------------------------------------------

    def test_withdrawing_closes_open_questions_only(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, questions=[question("q1"), question("q2"), question("q3")])
        answer(saver, "q2")
        answered = question_of(saver, "q2")
        commit(saver, withdrawn=[(name, "not reached") for name in ("q1", "q2", "unknown")])
        assert question_of(saver) == replace(
            question(), status="withdrawn", settled_at=5.0, settle_seq=None, reason="not reached"
        )
        assert question_of(saver, "q2") == answered
        assert question_of(saver, "q3") == question("q3")
        saver.commit(Commit(KEY, 1, Writes(withdrawn=[("q1", "later")]), 9.0))
        assert question_of(saver).reason == "not reached"
        assert row_of(saver).answer_seq == 1

    def test_only_answered_questions_become_replaceable_and_final(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, questions=[question("q1"), question("q2"), question("q3")])
        answer(saver, "q1")
        commit(saver, withdrawn=[("q3", "r")])
        commit(saver, replaceable=["q1", "q2", "q3", "unknown"])
        flags = [question_of(saver, name).replaceable for name in ("q1", "q2", "q3")]
        assert flags == [True, False, False]
        assert question_of(saver).can_answer
        commit(saver, final=["q1", "q2", "q3", "unknown"])
        assert not question_of(saver).replaceable
        assert not question_of(saver).can_answer

    def test_reopening_takes_an_answer_back(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, questions=[question("q1"), question("q2"), question("q3")])
        answer(saver, "q1")
        commit(saver, replaceable=["q1"], withdrawn=[("q3", "r")])
        withdrawn = question_of(saver, "q3")
        commit(saver, reopened=["q1", "q2", "q3", "unknown"])
        assert question_of(saver) == question()
        assert question_of(saver, "q2") == question("q2")
        assert question_of(saver, "q3") == withdrawn
        answer(saver, "q1")

    # --- copies -------------------------------------------------------------------------------------------------------

    def test_rows_are_copied_in_and_out(self, saver: BaseCheckpointSaver) -> None:
        row, asked, step, done, point = thread_rows = (
            begin(saver),
            question(),
            entry(),
            outcome(),
            checkpoint(C2),
        )
        commit(saver, questions=[asked], journal=[step], outcomes=[done], checkpoints=[point])
        before = everything(saver)
        row.fence = 77
        asked.status, asked.replaceable = "answered", True
        step.state, done.status, point.step = "done", "failed", 99
        assert everything(saver) == before
        assert len(thread_rows) == 5
        loaded = saver.load(KEY)
        assert loaded.thread is not None
        assert loaded.checkpoint is not None
        loaded.thread.fence = 77
        loaded.checkpoint.step = 77
        loaded.outcomes[0].attempt = loaded.journal[0].attempt = 77
        loaded.questions[0].status = "withdrawn"
        row_of(saver).head = "other"
        question_of(saver).digest = "other"
        saver.threads()[0].status = "idle"
        saver.history(KEY)[0].step = 77
        assert everything(saver) == before

    def test_a_refusal_carries_copies(self, saver: BaseCheckpointSaver) -> None:
        begin(saver)
        with refused(FenceLost) as refusal:
            commit(saver, 9)
        assert refusal.error.thread is not None
        refusal.error.thread.fence = 9
        with refused(FenceLost):
            commit(saver, 9)
        with refused(FenceLost):
            commit(saver, key=ThreadKey(KEY.thread_id, "nobody"))
