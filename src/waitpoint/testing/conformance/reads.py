"""What `load`, `items`, `history` and `events` return."""

from __future__ import annotations

from waitpoint.checkpoint.base import BaseCheckpointSaver, EventRow, Loaded
from waitpoint.testing.conformance.rows import (
    BELOW,
    C1,
    C2,
    C3,
    KEY,
    OTHER,
    begin,
    checkpoint,
    commit,
    entry,
    item,
    outcome,
    question,
)


class ReadConformance:
    """Tests of what is read of one thread."""

    def test_a_thread_that_does_not_exist_loads_as_nothing(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, OTHER)
        assert saver.thread(KEY) is None
        assert saver.load(KEY) == Loaded(None, None, [], [], [])
        assert saver.load(KEY, BELOW, C1) == Loaded(None, None, [], [], [])
        assert saver.items(KEY, [(0, 9)]) == {}
        assert saver.history(KEY) == []
        assert saver.events(KEY) == []

    def test_the_root_loads_at_its_head_and_not_at_the_newest(self, saver: BaseCheckpointSaver) -> None:
        row = begin(saver, head=C2, checkpoints=[checkpoint(name) for name in (C1, C2, C3)])
        assert saver.load(KEY) == Loaded(row, checkpoint(C2), [], [], [])
        assert saver.load(KEY, "", C3).checkpoint == checkpoint(C3)

    def test_a_root_without_head_or_with_an_unknown_checkpoint_has_none(self, saver: BaseCheckpointSaver) -> None:
        row = begin(saver, head=None, questions=[question()], outcomes=[outcome()])
        nothing = Loaded(row, None, [], [], [])
        assert saver.load(KEY) == nothing
        assert saver.load(KEY, "", C2) == nothing
        assert saver.load(KEY, BELOW) == nothing
        assert saver.load(KEY, BELOW, C1) == nothing

    def test_another_namespace_loads_at_its_newest(self, saver: BaseCheckpointSaver) -> None:
        points = [checkpoint(C3, BELOW), checkpoint(C1, BELOW), checkpoint(C1), checkpoint(C3, f"{BELOW}|x:y")]
        begin(saver, checkpoints=[*points, checkpoint(C2, BELOW)])
        assert saver.load(KEY, BELOW).checkpoint == checkpoint(C3, BELOW)
        assert saver.load(KEY, BELOW, C1).checkpoint == checkpoint(C1, BELOW)

    def test_outcomes_and_journal_come_oldest_first(self, saver: BaseCheckpointSaver) -> None:
        outcomes = [outcome("b", at=1.0), outcome("a", at=2.0), outcome("c", at=2.0)]
        journal = [entry("b", 1, at=1.0), entry("a", 2, at=2.0), entry("b", 0, at=2.0), entry("b", 2, at=2.0)]
        begin(saver, outcomes=list(reversed(outcomes)), journal=list(reversed(journal)))
        assert saver.load(KEY).outcomes == outcomes
        assert saver.load(KEY).journal == journal

    def test_outcomes_and_journal_are_those_of_the_checkpoint(self, saver: BaseCheckpointSaver) -> None:
        begin(
            saver,
            checkpoints=[checkpoint(C1), checkpoint(C2), checkpoint(C1, BELOW)],
            outcomes=[outcome(), outcome(at_checkpoint=C2), outcome(ns=BELOW)],
            journal=[entry(), entry(checkpoint_id=C2), entry(ns=BELOW)],
        )
        for ns, name in (("", C1), ("", C2), (BELOW, C1)):
            loaded = saver.load(KEY, ns, name)
            assert [(row.ns, row.checkpoint_id) for row in loaded.outcomes] == [(ns, name)]
            assert [(row.ns, row.checkpoint_id) for row in loaded.journal] == [(ns, name)]

    def test_the_root_shows_the_questions_of_all_its_children(self, saver: BaseCheckpointSaver) -> None:
        mine = question("mine")
        childs = question("child's", ns=BELOW, checkpoint_id=C3, asked_at=3.0)
        older = question("older", checkpoint_id=C2, root_checkpoint=C2)
        points = [checkpoint(C1), checkpoint(C2), checkpoint(C3, BELOW), checkpoint(C1, BELOW)]
        begin(saver, checkpoints=points, questions=[mine, childs, older])
        begin(saver, OTHER, questions=[question("other's", OTHER)])
        assert saver.load(KEY).questions == [childs, mine]
        assert saver.load(KEY, "", C2).questions == [older]
        assert saver.load(KEY, BELOW).questions == [childs]
        assert saver.load(KEY, BELOW, C1).questions == []

    def test_questions_load_in_the_order_they_were_asked(self, saver: BaseCheckpointSaver) -> None:
        asked = [
            question("e", asked_at=1.0, ns="z"),
            question("d", asked_at=2.0, ns="a", task_id="t", seq=9),
            question("c", asked_at=2.0, ns="b", task_id="s", seq=9),
            question("b", asked_at=2.0, ns="b", task_id="t", seq=2),
            question("a", asked_at=2.0, ns="b", task_id="t", seq=10),
        ]
        begin(saver, questions=list(reversed(asked)))
        assert saver.load(KEY).questions == asked

    def test_items_are_read_by_half_open_ranges(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, items=[item(n, b"%d" % n) for n in range(20)])
        begin(saver, OTHER, items=[item(n, b"other") for n in range(3)])
        assert saver.items(KEY, [(3, 5), (7, 8)]) == {3: b"3", 4: b"4", 7: b"7"}
        assert saver.items(KEY, [(18, 30), (5, 5), (18, 19)]) == {18: b"18", 19: b"19"}
        assert saver.items(KEY, []) == {}
        assert list(saver.items(OTHER, [(0, 9)])) == [0, 1, 2]

    def test_history_is_newest_first_and_pages(self, saver: BaseCheckpointSaver) -> None:
        points = {name: checkpoint(name, step=n) for n, name in enumerate((C1, C2, C3))}
        begin(saver, checkpoints=[points[C2], points[C3], points[C1], checkpoint(C1, BELOW)])
        assert saver.history(KEY) == [points[C3], points[C2], points[C1]]
        assert saver.history(KEY, limit=2) == [points[C3], points[C2]]
        assert saver.history(KEY, before=C3) == [points[C2], points[C1]]
        assert saver.history(KEY, before=C3, limit=1) == [points[C2]]
        assert saver.history(KEY, before=C1) == []
        assert saver.history(KEY, limit=0) == []
        assert saver.history(KEY, BELOW) == [checkpoint(C1, BELOW)]

    def test_events_come_in_order_and_pages(self, saver: BaseCheckpointSaver) -> None:
        begin(saver)
        begin(saver, OTHER, events=[EventRow("other", 1.0)])
        commit(saver, events=[EventRow(kind, 1.0) for kind in "abcde"])
        assert [row.kind for row in saver.events(KEY)] == list("abcde")
        assert [(row.kind, row.seq) for row in saver.events(KEY, after=2, limit=2)] == [("c", 3), ("d", 4)]
        assert saver.events(KEY, after=5) == []
        assert saver.events(KEY, limit=0) == []
        assert saver.events(KEY, after=77) == []

    def test_a_big_row_comes_back_whole(self, saver: BaseCheckpointSaver) -> None:
        body = bytes(range(256)) * 20_000
        begin(saver, checkpoints=[checkpoint(body=body)], items=[item(0, body), item(1, b"")])
        assert saver.load(KEY).checkpoint == checkpoint(body=body)
        assert saver.items(KEY, [(0, 2)]) == {0: body, 1: b""}
