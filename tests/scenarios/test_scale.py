"""Scenarios of the section "scale/perf": what a long thread costs on disk, and what waiting costs."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.world import Shelf, State, the_id, thread
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.graph import START, MessagesState, StateGraph
from waitpoint.types import Command, interrupt

# --- S185 -------------------------------------------------------------------------------------------------------------

TURN = "".join(chr(33 + (n * n * 7 + n) % 90) for n in range(2048))  # 2 KB that compress badly


def size(path: Path) -> int:
    """Return the bytes of what is in the file, once the log is folded into it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        (page,) = connection.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * page)


@pytest.mark.parametrize("kind", ["log", "messages"])
def test_s185_storage_does_not_grow_with_the_square_of_the_turns(disk: Shelf, kind: str) -> None:
    key = "log" if kind == "log" else "messages"

    def turn(state: Any) -> Any:
        answer = interrupt({"turn": len(state[key])})
        text = f"{len(state[key])} {answer} {TURN}"
        return {key: [text if kind == "log" else {"role": "assistant", "content": text}]}

    schema: Any = State if kind == "log" else MessagesState
    saver = disk.open()
    assert isinstance(saver, SqliteSaver)
    graph = StateGraph(schema).add_node(turn).add_edge(START, "turn").compile(checkpointer=saver)
    config, sizes = thread(), {}
    for number in range(1, 101):
        said: Any = f"hello {number}"
        graph.invoke({key: [said if kind == "log" else {"role": "user", "content": said}]}, config)
        graph.invoke(Command(resume="yes"), config)
        if number in (10, 50, 100):
            assert disk.path is not None
            sizes[number] = size(disk.path)
    assert len(graph.get_state(config).values[key]) == 200
    early, late = (sizes[50] - sizes[10]) / 40, (sizes[100] - sizes[50]) / 50
    assert late <= 1.2 * early, sizes  # bytes for a turn, near the end and near the start
    assert sizes[100] <= 4 * 100 * len(TURN), sizes


# --- S186 -------------------------------------------------------------------------------------------------------------

WAITING = 1000


class Held:
    """What this process holds now."""

    def __init__(self, graph: Any) -> None:
        gc.collect()
        self.threads = threading.active_count()
        self.files = len(list(Path("/proc/self/fd").iterdir()))
        self.references = sys.getrefcount(graph)
        self.objects = len(gc.get_objects())


def test_s186_waiting_holds_nothing(shelf: Shelf) -> None:
    def ask(state: State) -> State:
        return {"value": interrupt({"text": state["value"]})}

    saver = shelf.open()
    graph = StateGraph(State).add_node(ask).add_edge(START, "ask").compile(checkpointer=saver)
    first = the_id(graph.invoke({"value": "first"}, thread("first")))
    for number in range(300):  # caches fill, connections open
        graph.invoke({"value": f"text {number}"}, thread(f"warm {number}"))
    before = Held(graph)
    for number in range(WAITING):
        graph.invoke({"value": f"text {number}"}, thread(f"waits {number}"))
    after = Held(graph)
    assert after.threads <= before.threads
    assert after.files <= before.files  # connections are files
    assert after.references <= before.references
    if shelf.path is not None:
        assert after.objects - before.objects < WAITING / 10  # they wait on disk, not here
    assert len(saver.pending(limit=2 * WAITING)) == WAITING + 301
    assert graph.invoke(Command(resume={first: "yes"}), thread("first"))["value"] == "yes"
    assert graph.invoke(Command(resume="yes"), thread(f"waits {WAITING - 1}"))["value"] == "yes"


async def test_s186_waiting_holds_no_task_of_the_event_loop(shelf: Shelf) -> None:
    async def ask(state: State) -> State:
        return {"value": interrupt("go?")}

    graph = StateGraph(State).add_node(ask).add_edge(START, "ask").compile(checkpointer=shelf.open())
    for number in range(50):
        await graph.ainvoke({"value": number}, thread(f"waits {number}"))
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert (await graph.ainvoke(Command(resume="yes"), thread("waits 7")))["value"] == "yes"
