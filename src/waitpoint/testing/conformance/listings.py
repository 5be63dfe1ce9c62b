"""What is listed over all threads, and what heartbeats and deletions change."""

from __future__ import annotations

from dataclasses import replace

from waitpoint.checkpoint.base import BaseCheckpointSaver, EventRow, FenceLost, PendingFilter, ThreadKey
from waitpoint.testing.conformance.rows import (
    BELOW,
    C1,
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


def _names(saver: BaseCheckpointSaver, wanted: PendingFilter) -> list[str]:
    found = [row.id for row in saver.questions(wanted)]
    assert saver.count(replace(wanted, limit=None, offset=0)) >= len(found)
    return found


def _ask(saver: BaseCheckpointSaver) -> None:
    """Have q1 answered, q2 open, q3 withdrawn, q4 answered but replaceable, and q5 open in another thread."""
    begin(saver, questions=[question(f"q{n}", asked_at=float(n), node=f"node {n % 2}") for n in (4, 3, 2, 1)])
    begin(saver, OTHER, questions=[question("q5", OTHER, asked_at=5.0, node="node 1")])
    answer(saver, "q1", "q4")
    commit(saver, replaceable=["q4"], withdrawn=[("q3", "r")])


class ListingConformance:
    """Tests of `questions`, `count`, `threads`, `beat` and `delete_thread`."""

    def test_questions_lists_what_can_be_answered_oldest_first(self, saver: BaseCheckpointSaver) -> None:
        assert saver.questions(PendingFilter()) == []
        _ask(saver)
        assert _names(saver, PendingFilter()) == ["q2", "q4", "q5"]
        assert _names(saver, PendingFilter(newest_first=True)) == ["q5", "q4", "q2"]
        assert _names(saver, PendingFilter(answerable=False)) == ["q1", "q2", "q3", "q4", "q5"]
        assert saver.count(PendingFilter()) == 3
        assert saver.count(PendingFilter(answerable=False)) == 5

    def test_questions_filters_by_thread_graph_and_node(self, saver: BaseCheckpointSaver) -> None:
        _ask(saver)
        third = ThreadKey(KEY.thread_id, "graph 2")
        begin(saver, third, questions=[question("q6", third, asked_at=6.0)])
        assert _names(saver, PendingFilter(thread_id=KEY.thread_id)) == ["q2", "q4", "q6"]
        assert _names(saver, PendingFilter(graph="graph")) == ["q2", "q4", "q5"]
        assert _names(saver, PendingFilter(thread_id=KEY.thread_id, graph="graph 2")) == ["q6"]
        assert _names(saver, PendingFilter(node="node 1")) == ["q5"]
        assert _names(saver, PendingFilter(node="node 1", answerable=False)) == ["q1", "q3", "q5"]
        assert _names(saver, PendingFilter(thread_id="nobody")) == []
        assert saver.count(PendingFilter(thread_id=KEY.thread_id)) == 3
        assert saver.count(PendingFilter(node="node 1", answerable=False)) == 3

    def test_questions_filters_by_how_ids_begin(self, saver: BaseCheckpointSaver) -> None:
        names = ["ab", "abc", "abd", "ac", "b", "a%", "a_", "ab\U0001f600", "AB"]
        begin(saver, questions=[question(name, asked_at=float(n)) for n, name in enumerate(names)])
        answer(saver, "abc")
        begins = PendingFilter(id_prefix="ab", answerable=False)
        assert _names(saver, begins) == ["ab", "abc", "abd", "ab\U0001f600"]
        assert saver.count(begins) == 4
        assert _names(saver, PendingFilter(id_prefix="ab")) == ["ab", "abd", "ab\U0001f600"]
        assert _names(saver, PendingFilter(id_prefix="a%", answerable=False)) == ["a%"]
        assert _names(saver, PendingFilter(id_prefix="ab", ids=["abd", "b"], answerable=False)) == ["abd"]
        assert _names(saver, PendingFilter(id_prefix="abcd", answerable=False)) == []
        assert _names(saver, PendingFilter(id_prefix="ab", thread_id=KEY.thread_id, newest_first=True, limit=2)) == [
            "ab\U0001f600",
            "abd",
        ]

    def test_questions_filters_by_ids(self, saver: BaseCheckpointSaver) -> None:
        _ask(saver)
        named = ["q5", "q1", "q2", "q5", "unknown"]
        assert _names(saver, PendingFilter(ids=named)) == ["q2", "q5"]
        assert _names(saver, PendingFilter(ids=named, answerable=False)) == ["q1", "q2", "q5"]
        assert _names(saver, PendingFilter(ids=named, newest_first=True, limit=1)) == ["q5"]
        assert _names(saver, PendingFilter(ids=named, offset=1)) == ["q5"]
        assert _names(saver, PendingFilter(ids=named, thread_id=OTHER.thread_id)) == ["q5"]
        assert _names(saver, PendingFilter(ids=named, graph="no", answerable=False)) == []
        assert _names(saver, PendingFilter(ids=named, node="node 0")) == ["q2"]
        assert _names(saver, PendingFilter(ids=[])) == []
        assert saver.count(PendingFilter(ids=named)) == 2

    def test_questions_pages_without_losing_one(self, saver: BaseCheckpointSaver) -> None:
        names = [f"q{n:02}" for n in range(25)]
        begin(saver, questions=[question(name, asked_at=7.0) for name in reversed(names)])
        pages = [_names(saver, PendingFilter(limit=10, offset=offset)) for offset in (0, 10, 20, 30)]
        assert [len(page) for page in pages] == [10, 10, 5, 0]
        assert [name for page in pages for name in page] == names
        assert _names(saver, PendingFilter(limit=0)) == []
        assert _names(saver, PendingFilter(newest_first=True, limit=2, offset=1)) == ["q23", "q22"]
        assert saver.count(PendingFilter(limit=10, offset=20)) == 25

    def test_threads_lists_the_newest_change_first(self, saver: BaseCheckpointSaver) -> None:
        assert saver.threads() == []
        keys = [ThreadKey(name, "graph") for name in "cab"]
        rows = [begin(saver, key, updated_at=3.0) for key in keys]
        newest = begin(saver, KEY, updated_at=4.0, status="waiting", questions=[question()])
        assert saver.threads() == [newest, rows[1], rows[2], rows[0]]
        assert saver.threads(limit=2, offset=1) == [rows[1], rows[2]]
        assert saver.threads(limit=0) == []
        assert saver.threads(status="waiting") == [newest]
        assert saver.threads(status="running", thread_id="a") == [rows[1]]
        assert saver.threads(status="ready") == []
        ready = answer(saver, "q1")
        assert saver.threads(status="ready") == [ready]
        assert saver.threads(thread_id=KEY.thread_id) == [ready]

    def test_a_heartbeat_extends_the_leases_of_its_owner_only(self, saver: BaseCheckpointSaver) -> None:
        mine = begin(saver, owner="me", lease_until=1.0)
        others = begin(saver, OTHER, owner="you", lease_until=1.0)
        idle = begin(saver, ThreadKey("idle", "graph"), owner="me", lease_until=1.0, status="idle")
        saver.beat("me", 99.0)
        saver.beat("nobody", 88.0)
        assert saver.thread(KEY) == replace(mine, lease_until=99.0)
        assert saver.thread(OTHER) == others
        assert saver.thread(idle.key) == idle

    def test_deleting_a_thread_removes_it_from_all_graphs(self, saver: BaseCheckpointSaver) -> None:
        second = ThreadKey(KEY.thread_id, "graph 2")
        begin(saver, OTHER, questions=[question("q9", OTHER)], items=[item(0)], events=[EventRow("e", 1.0)])
        before = everything(saver)
        for key, name in ((KEY, "q1"), (second, "q2")):
            begin(
                saver,
                key,
                checkpoints=[checkpoint(), checkpoint(C1, BELOW)],
                items=[item(0), item(1)],
                outcomes=[outcome()],
                journal=[entry()],
                questions=[question(name, key)],
                events=[EventRow("e", 1.0)],
            )
        commit(saver)
        saver.delete_thread(KEY.thread_id)
        saver.delete_thread("nobody")
        assert everything(saver) == before
        with refused(FenceLost):
            commit(saver)

    def test_a_deleted_thread_begins_anew_with_nothing(self, saver: BaseCheckpointSaver) -> None:
        begin(saver, items=[item(0)], questions=[question()], events=[EventRow("e", 1.0)], outcomes=[outcome()])
        commit(saver, events=[EventRow("e", 1.0)])
        saver.delete_thread(KEY.thread_id)
        begin(saver, OTHER)
        row = begin(saver, events=[EventRow("new", 1.0)], items=[item(0, b"new")])
        loaded = saver.load(KEY)
        assert (loaded.thread, loaded.outcomes, loaded.questions) == (row, [], [])
        assert saver.items(KEY, [(0, 9)]) == {0: b"new"}
        assert saver.events(KEY) == [EventRow("new", 1.0, seq=1)]
        commit(saver)
        assert row_of(saver, OTHER).updated_at == 1.0
        assert row_of(saver).updated_at == 5.0
