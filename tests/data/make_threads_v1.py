"""Makes `threads_v1.db`, a database of schema version 1, which every later version must open.

Run once, with the release that wrote that schema: `python tests/data/make_threads_v1.py`. Never run it again with a
newer one: the file is what it is.
"""

from __future__ import annotations

from pathlib import Path

from waitpoint.checkpoint.base import Commit, EventRow, Rest, Settle, Settlement, ThreadKey, Writes
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.testing.conformance.rows import BELOW, C1, C2, begin, checkpoint, entry, item, outcome, question

PATH = Path(__file__).with_name("threads_v1.db")
KEY = ThreadKey("Zoë's thread", "LangGraph")


def main() -> None:
    """Write one thread with rows of every kind."""
    with SqliteSaver(PATH) as saver:
        begin(
            saver,
            KEY,
            items=[item(0, b"first"), item(1, bytes(3000))],
            journal=[entry(state="done")],
            outcomes=[outcome("task-1")],
            questions=[question("a" * 32, KEY), question("b" * 32, KEY, seq=2), question("c" * 32, KEY, seq=3)],
            events=[EventRow("begun", 1.0, C1)],
        )
        answers = [
            Settlement("a" * 32, "answered", 6.0, b"yes", "ana", "looks fine", "token-1"),
            Settlement("b" * 32, "withdrawn", 6.0, reason="no longer needed"),
        ]
        saver.settle(Settle(KEY, answers, writes=Writes(events=[EventRow("answered", 6.0, "a" * 32)])))
        rows = Writes(checkpoints=[checkpoint(C2, parent_id=C1, step=1), checkpoint(C1, BELOW)], items=[item(2)])
        saver.commit(Commit(KEY, 1, rows, 7.0, head=C1, next_item=3, rest=Rest("waiting", 1), durable=True))


if __name__ == "__main__":
    main()
