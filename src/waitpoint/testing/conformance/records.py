"""What a `Record` promises: the late outcome of an execution finds its entry, whoever runs the thread now."""

from __future__ import annotations

from dataclasses import replace

from waitpoint.checkpoint.base import BaseCheckpointSaver, JournalRow, Move, Record
from waitpoint.testing.conformance.rows import BELOW, C2, KEY, OTHER, begin, commit, entry, everything, row_of

DONE = entry(state="done", at=8.0, body=b"result")


class RecordConformance:
    """Tests of `record`."""

    def test_record_closes_the_entry_of_its_own_execution(self, saver: BaseCheckpointSaver) -> None:
        old = begin(saver, journal=[entry()])
        assert saver.record(Record(KEY, DONE, 9.0)) is True
        assert saver.load(KEY).journal == [DONE]
        assert saver.thread(KEY) == replace(old, updated_at=9.0)

    def test_record_needs_no_fence(self, saver: BaseCheckpointSaver) -> None:
        old = begin(saver, journal=[entry()])
        saver.move(Move(KEY, old, replace(old, fence=2)))
        assert saver.record(Record(KEY, DONE, 9.0)) is True
        assert saver.load(KEY).journal == [DONE]
        assert row_of(saver).fence == 2

    def test_record_is_refused_once_the_outcome_is_known_or_another_executes(self, saver: BaseCheckpointSaver) -> None:
        others: list[JournalRow] = [
            entry(state="done"),
            entry(state="raised"),
            entry(state="not_happened"),
            entry(execution="second"),
        ]
        begin(saver, journal=[replace(other, seq=n) for n, other in enumerate(others)])
        before = everything(saver)
        for n in range(len(others)):
            assert saver.record(Record(KEY, replace(DONE, seq=n), 9.0)) is False
        assert everything(saver) == before

    def test_record_of_an_unknown_entry_stores_nothing(self, saver: BaseCheckpointSaver) -> None:
        assert saver.record(Record(KEY, DONE, 9.0)) is False
        begin(saver, journal=[entry()])
        before = everything(saver)
        for other in (
            replace(DONE, seq=1),
            replace(DONE, task_id="task-2"),
            replace(DONE, ns=BELOW),
            replace(DONE, checkpoint_id=C2),
        ):
            assert saver.record(Record(KEY, other, 9.0)) is False
        assert saver.record(Record(OTHER, DONE, 9.0)) is False
        assert everything(saver) == before

    def test_record_is_accepted_once(self, saver: BaseCheckpointSaver) -> None:
        begin(saver)
        commit(saver, journal=[entry()])
        assert saver.record(Record(KEY, DONE, 9.0)) is True
        assert saver.record(Record(KEY, replace(DONE, body=b"twice"), 9.0)) is False
        assert saver.load(KEY).journal == [DONE]
