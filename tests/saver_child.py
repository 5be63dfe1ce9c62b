"""A process of its own that uses a saver: reads commands from stdin, one a line, and prints what came of each."""

from __future__ import annotations

import itertools
import os
import sys
import threading
from pathlib import Path

from waitpoint.checkpoint.base import Commit, QuestionsChanged, Settle, Settlement, Writes
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.testing.conformance.rows import KEY, begin, commit, item, row_of


def say(text: object) -> None:
    print(text, flush=True)


def create(path: str) -> None:
    """Open a database that may not exist yet, and say its schema version."""
    with SqliteSaver(path) as saver:
        say(len(saver.threads()))


def answer(path: str, name: str, by: str) -> None:
    """Answer a question; say that we begin, then who won."""
    with SqliteSaver(path) as saver:
        say("begins")
        try:
            saver.settle(Settle(KEY, [Settlement(name, "answered", 1.0, by.encode(), by)]))
        except QuestionsChanged as refusal:
            say(f"lost to {refusal.questions[0].by}")
        else:
            say("won")


def stream(path: str) -> None:
    """Commit durably for ever; say the number of each item once it is stored, and count it on the thread's row."""
    saver = SqliteSaver(path)
    for n in itertools.count():
        saver.commit(Commit(KEY, 1, Writes(items=[item(n, b"%d" % n * 500)]), 1.0, next_item=n + 1, durable=True))
        say(n)


def fork(path: str) -> None:
    """Fork with an open saver; the child commits after the parent has closed."""
    saver = SqliteSaver(path)
    begin(saver, items=[item(0, b"before")])
    saver.load(KEY)
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        commit(saver, items=[item(1, b"child, parent open")])
        assert saver.load(KEY).thread is not None
        os.read(told, 1)
        commit(saver, items=[item(2, b"child, parent closed")])
        os._exit(0)  # as if killed: nothing is closed
    commit(saver, items=[item(3, b"parent")])
    assert row_of(saver).fence == 1
    saver.close()
    os.write(tell, b"x")
    say(os.waitpid(child, 0)[1])


def fork_while_writing(path: str) -> None:
    """Fork while another thread writes; the fork waits until nobody does, and the child has a saver that works."""
    saver = SqliteSaver(path)
    begin(saver)
    enough = threading.Event()

    def write() -> None:
        for n in itertools.count():
            commit(saver, items=[item(n)])
            if n == 20:
                enough.set()
            if done.is_set():
                return

    done = threading.Event()
    writer = threading.Thread(target=write)
    writer.start()
    enough.wait()
    statuses = []
    for n in range(5):
        child = os.fork()
        if child == 0:
            commit(saver, items=[item(1_000_000 + n)])
            found = len(saver.items(KEY, [(0, 2_000_000)]))
            saver.close()
            os._exit(0 if found >= 20 else 1)
        statuses.append(os.waitpid(child, 0)[1])
    done.set()
    writer.join()
    saver.close()
    say(statuses)


def fork_in_memory(path: str) -> None:
    """Fork with a saver in memory: the child has a copy of its own."""
    saver = SqliteSaver(path)
    begin(saver)
    child = os.fork()
    if child == 0:
        commit(saver, items=[item(1)])
        os._exit(0 if saver.items(KEY, [(0, 9)]) == {1: b"item"} else 1)
    status = os.waitpid(child, 0)[1]
    say((status, saver.items(KEY, [(0, 9)])))
    saver.close()


def forget(path: str) -> None:
    """Leave a saver open and end, as scripts do."""
    global forgotten
    forgotten = SqliteSaver(path)
    begin(forgotten)
    say(sorted(p.name for p in Path(path).parent.iterdir()))


COMMANDS = (create, answer, stream, fork, fork_while_writing, fork_in_memory, forget)

if __name__ == "__main__":
    by_name = {command.__name__: command for command in COMMANDS}
    say("is there")
    for line in sys.stdin:
        name, *args = line.split()
        by_name[name](*args)
