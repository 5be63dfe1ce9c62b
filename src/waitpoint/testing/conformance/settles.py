"""What a `Settle` promises: all or none, once each, and the thread knows that it has to run."""

from __future__ import annotations

from dataclasses import replace

from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    Commit,
    EventRow,
    QuestionsChanged,
    Rest,
    Settle,
    Settlement,
    Status,
    ThreadChanged,
    ThreadKey,
    Writes,
)
from waitpoint.errors import StoreError
from waitpoint.testing.conformance.rows import (
    C1,
    C2,
    KEY,
    OTHER,
    answer,
    begin,
    checkpoint,
    commit,
    everything,
    item,
    outcome,
    question,
    question_of,
    refused,
    row_of,
)

ANSWER = Settlement("q1", "answered", 6.0, b"yes", "ana", "fine", "token-1", "because")


class SettleConformance:
    """Tests of `settle`."""

    def test_an_answer_is_stored_with_its_circumstances(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, status="waiting", owner=None, lease_until=None, answer_seq=4, questions=[question()])
        saver.settle(Settle(KEY, [ANSWER]))
        assert question_of(saver) == replace(
            question(),
            status="answered",
            settled_at=6.0,
            settle_seq=5,
            by="ana",
            comment="fine",
            answer=b"yes",
            token="token-1",  # noqa: S106 - makes repetition harmless
            reason="because",
        )

    def test_settle_returns_the_row_as_it_is_now(self, saver: BaseCheckpointSaver) -> None:
        old = begin(saver, status="waiting", owner=None, lease_until=None, questions=[question()])
        now = saver.settle(Settle(KEY, [ANSWER]))
        assert now == replace(old, status="ready", answer_seq=1, updated_at=6.0)
        assert saver.thread(KEY) == now
        now.fence = 77
        assert row_of(saver).fence == 1

    def test_settle_makes_a_resting_thread_ready(self, saver: BaseCheckpointSaver) -> None:
        statuses: tuple[Status, ...] = ("waiting", "failed", "idle", "ready")
        for status in statuses:
            key = ThreadKey(status, "graph")
            old = begin(saver, key, status=status, owner=None, lease_until=None, questions=[question(status, key)])
            now = answer(saver, status, key=key)
            assert now == replace(old, status="ready", answer_seq=1, updated_at=6.0)

    def test_settle_with_a_claim_runs_a_resting_thread(self, saver: BaseCheckpointSaver) -> None:
        statuses: tuple[Status, ...] = ("waiting", "failed", "idle", "ready")
        for status in statuses:
            key = ThreadKey(status, "graph")
            old = begin(saver, key, status=status, owner=None, lease_until=None, questions=[question(status, key)])
            now = answer(saver, status, key=key, claim=("me", 50.0))
            claimed = replace(old, status="running", fence=2, owner="me", lease_until=50.0)
            assert now == replace(claimed, answer_seq=1, updated_at=6.0)
            assert saver.thread(key) == now

    def test_settle_leaves_a_running_thread_to_its_runner(self, saver: BaseCheckpointSaver) -> None:
        old = begin(saver, questions=[question("q1"), question("q2")])
        assert answer(saver, "q1") == replace(old, answer_seq=1, updated_at=6.0)
        assert answer(saver, "q2", claim=("me", 50.0)) == replace(old, answer_seq=2, updated_at=6.0)

    def test_questions_settled_together_share_one_number(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, questions=[question(name) for name in ("q1", "q2", "q3")])
        saver.settle(Settle(KEY, [ANSWER, Settlement("q2", "withdrawn", 7.0, reason="gone")]))
        assert answer(saver, "q3").answer_seq == 2
        assert [question_of(saver, name).settle_seq for name in ("q1", "q2", "q3")] == [1, 1, 2]
        assert question_of(saver, "q2") == replace(
            question("q2"), status="withdrawn", settled_at=7.0, settle_seq=1, reason="gone"
        )

    def test_the_second_answer_is_refused_and_carries_the_first(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, questions=[question()])
        now = answer(saver, "q1")
        before = everything(saver)
        with refused(QuestionsChanged) as refusal:
            saver.settle(Settle(KEY, [replace(ANSWER, by="bob")], writes=Writes(items=[item(0)])))
        assert refusal.error.questions == (question_of(saver),)
        assert refusal.error.questions[0].by == "ana"
        assert refusal.error.thread == now
        assert "ana" in str(refusal.error)
        assert everything(saver) == before

    def test_settle_is_all_or_none(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, questions=[question("q1"), question("q2"), question("q3")])
        answer(saver, "q2")
        before = everything(saver)
        with refused(QuestionsChanged) as refusal:
            answer(saver, "q3", "q2", "unknown", "q1", writes=Writes(items=[item(0)], events=[EventRow("e", 1.0)]))
        assert [row.id for row in refusal.error.questions] == ["q3", "q2", "q1"]
        assert [row.status for row in refusal.error.questions] == ["open", "answered", "open"]
        assert everything(saver) == before

    def test_a_settlement_names_each_question_once(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, questions=[question()])
        before = everything(saver)
        with refused(StoreError):
            saver.settle(Settle(KEY, [ANSWER, replace(ANSWER, answer=b"no")]))
        with refused(StoreError):
            saver.settle(Settle(KEY, []))
        assert everything(saver) == before

    def test_questions_of_another_thread_are_not_settled(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, questions=[question("q1")])
        begin(saver, OTHER, questions=[question("q2", OTHER)])
        before = everything(saver)
        with refused(QuestionsChanged) as refusal:
            answer(saver, "q1", "q2")
        assert [row.id for row in refusal.error.questions] == ["q1", "q2"]
        with refused(QuestionsChanged) as refusal:
            answer(saver, "q1", key=ThreadKey("nobody", "graph"))
        assert refusal.error.thread is None
        assert everything(saver) == before

    def test_an_answer_that_did_nothing_may_be_replaced(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, questions=[question()])
        answer(saver, "q1")
        saver.commit(Commit(KEY, 1, Writes(replaceable=["q1"]), 5.0, rest=Rest("failed", 1, "no")))
        with refused(QuestionsChanged):
            saver.settle(Settle(KEY, [Settlement("q1", "withdrawn", 7.0)]))
        saver.settle(Settle(KEY, [Settlement("q1", "answered", 8.0, b"no", "bob")]))
        row = question_of(saver)
        assert (row.answer, row.by, row.settled_at, row.settle_seq) == (b"no", "bob", 8.0, 2)
        assert not row.can_answer
        with refused(QuestionsChanged):
            answer(saver, "q1")

    def test_an_answer_is_not_replaced_while_a_run_acts_on_it(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, questions=[question()])
        answer(saver, "q1")
        commit(saver, replaceable=["q1"])
        before = everything(saver)
        with refused(QuestionsChanged) as refusal:
            saver.settle(Settle(KEY, [Settlement("q1", "answered", 8.0, b"no", "bob")]))
        assert refusal.error.thread is not None
        assert refusal.error.thread.status == "running"
        assert everything(saver) == before

    def test_a_withdrawn_question_is_settled_for_good(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, questions=[question()])
        saver.settle(Settle(KEY, [Settlement("q1", "withdrawn", 7.0)]))
        with refused(QuestionsChanged):
            answer(saver, "q1")
        with refused(QuestionsChanged):
            saver.settle(Settle(KEY, [Settlement("q1", "withdrawn", 7.0)]))

    def test_settle_at_another_head_is_refused(self, saver: BaseCheckpointSaver) -> None:
        old = begin(saver, questions=[question()])
        before = everything(saver)
        with refused(ThreadChanged) as refusal:
            answer(saver, "q1", head=C2, writes=Writes(outcomes=[outcome("patch", status="patch")]))
        assert refusal.error.thread == old
        assert everything(saver) == before
        answer(saver, "q1", head=C1)

    def test_an_answered_question_is_told_before_a_moved_head(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, questions=[question()])
        answer(saver, "q1")
        with refused(QuestionsChanged):
            answer(saver, "q1", head=C2)

    def test_rows_come_with_the_settlement(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, questions=[question("q1"), question("q2")])
        writes = Writes(
            checkpoints=[checkpoint(C2)],
            items=[item(0)],
            outcomes=[outcome("patch", status="patch")],
            withdrawn=[("q1", "just answered"), ("q2", "no longer needed")],
            events=[EventRow("answered", 6.0, "q1")],
        )
        assert answer(saver, "q1", writes=writes, believed_fence=1).answer_seq == 1
        loaded = saver.load(KEY)
        assert loaded.outcomes == [outcome("patch", status="patch")]
        assert [(row.status, row.settled_at) for row in loaded.questions] == [("answered", 6.0), ("withdrawn", 6.0)]
        assert saver.events(KEY) == [EventRow("answered", 6.0, "q1", seq=1)]
        assert saver.items(KEY, [(0, 1)]) == {0: b"item"}

    def test_outcomes_are_refused_on_a_thread_that_a_run_has_taken(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, questions=[question()])
        before = everything(saver)
        with refused(ThreadChanged):
            answer(saver, "q1", writes=Writes(outcomes=[outcome("patch", status="patch")]), believed_fence=0)
        assert everything(saver) == before

    def test_a_refused_row_takes_the_answer_back(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, questions=[question()], items=[item(0)])
        before = everything(saver)
        with refused(StoreError):
            answer(saver, "q1", writes=Writes(items=[item(0, b"other")]))
        assert everything(saver) == before
