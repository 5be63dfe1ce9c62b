"""A long conversation: turns of one question each on one thread, whose list of messages grows by two at each.

Told are the time of the last turns over that of the first, and the bytes on disk over those of the messages' texts. The
texts are random letters, which compress little.
"""

from __future__ import annotations

import random
import statistics
import string
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.measure import Row, clear_away, main
from benchmarks.sides import OURS, PEER, STORES, Side, config

COMPARED = 20  # turns at either end
TEXT_BYTES = 1000


@dataclass
class Talk:
    """One side's conversation: its graph, what was said, and what each turn took."""

    side: Side
    graph: Any
    seconds: list[float] = field(default_factory=list)
    payload: int = 0
    texts: random.Random = field(default_factory=lambda: random.Random(1))
    reply: str = ""

    def turn(self) -> None:
        """Say something, approve the reply, and note how long it took."""
        said, self.reply = self.text(), self.text()
        start = perf_counter()
        asked = self.graph.invoke({"messages": [("user", said)]}, config("talk"))
        answered = self.graph.invoke(self.side.types.Command(resume="send it"), config("talk"))
        self.seconds.append(perf_counter() - start)
        assert asked["__interrupt__"][0].value == {"question": "send the reply?"}
        assert len(answered["messages"]) == 2 * len(self.seconds)

    def text(self) -> str:
        """Return words of random letters."""
        words: list[str] = []
        while sum(map(len, words)) + len(words) < TEXT_BYTES:
            words.append("".join(self.texts.choices(string.ascii_lowercase, k=self.texts.randint(2, 9))))
        text = " ".join(words)[:TEXT_BYTES]
        self.payload += len(text)
        return text

    @property
    def growth(self) -> float:
        """How many times as long as the first turns the last ones took."""
        return statistics.median(self.seconds[-COMPARED:]) / statistics.median(self.seconds[:COMPARED])


def talk(side: Side, saver: Any) -> Talk:
    """Build the graph: a reply is written, then a person is asked whether to send it."""
    interrupt = side.types.interrupt

    def write(_: Any) -> dict[str, Any]:
        return {"messages": [("ai", made.reply)]}

    def gate(_: Any) -> dict[str, Any]:
        assert interrupt({"question": "send the reply?"}) == "send it"
        return {}

    graph = side.graph.StateGraph(side.graph.MessagesState).add_node("write", write).add_node("gate", gate)
    graph.add_edge("__start__", "write").add_edge("write", "gate")
    made = Talk(side, graph.compile(checkpointer=saver))
    return made


def measure(quick: bool) -> Iterator[Row]:
    """Measure on each store: once, since the peer takes minutes."""
    turns = 60 if quick else 300
    for store in STORES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with ExitStack() as stack:
                ours, peer = (talk(s, stack.enter_context(s.saver(store, folder))) for s in (OURS, PEER))
                for _ in range(turns):
                    for speaker in (ours, peer):
                        clear_away()
                        speaker.turn()
            middle = [statistics.median(t.seconds) for t in (ours, peer)]
            yield Row(f"{turns} turns: one turn", store, *middle)
            yield Row(f"{turns} turns: last / first {COMPARED}", store, ours.growth, peer.growth, False, at_most=1.3)
            if store != "memory":
                sizes = [_bytes_on_disk(folder, t) / t.payload for t in (ours, peer)]
                yield Row(f"{turns} turns: bytes / payload", store, *sizes, False, at_most=4)


def _bytes_on_disk(folder: Path, made: Talk) -> int:
    """Sum up the database and what lies beside it."""
    return sum(path.stat().st_size for path in folder.glob(f"{made.side.name}.db*"))


if __name__ == "__main__":
    main({"long_thread": measure})
