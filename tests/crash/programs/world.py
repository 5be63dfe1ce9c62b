"""What the programs that get killed share: effects with a witness, a store whose transitions are points, a person.

A process holds one world at a time; the functions here act in it, so that they have a name by which a step is known.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from tests.crash.checks import all_questions, unread_answers
from waitpoint import codec
from waitpoint.checkpoint.base import BaseCheckpointSaver, ThreadKey
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.testing.faults import FaultySaver, Points
from waitpoint.testing.witness import Witness
from waitpoint.types import Command, Happened, NotHappened

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "order"}}


class World:
    """A folder with a witness file, a store (by default a file in it), and the points that a run passes.

    `is_ordered`: siblings wait for each other, so that every run passes the points in the same order.
    """

    def __init__(
        self, folder: Path, points: Points, store: BaseCheckpointSaver | None = None, *, is_ordered: bool = True
    ) -> None:
        self.points = points
        self.is_ordered = is_ordered
        self.witness = Witness(folder / "witness.txt")
        self.store = store or SqliteSaver(folder / "threads.sqlite")
        self.saver = FaultySaver(self.store, points, reads=not is_ordered)
        self.ended: dict[str, Any] = {}  # the result, once there is one
        self._passed = threading.Condition()
        self._told, points.told = points.told, self._tell

    def await_point(self, part: str) -> None:
        """Wait until a point has been passed whose name has this part."""
        with self._passed:
            assert self._passed.wait_for(lambda: any(part in name for name in self.points.passed), 30)

    def _tell(self, name: str) -> None:
        if self._told is not None:
            self._told(name)
        with self._passed:
            self._passed.notify_all()

    # --- the person at the end of the line ---

    def to_the_end(self, graph: Any, **options: Any) -> dict[str, Any]:
        """Start the thread or go on with it, wherever it stands; answer whatever it asks; tell how it ended."""
        key = ThreadKey("order", graph.name)
        while True:
            state = graph.get_state(CONFIG)
            assert unread_answers(self.store, key) == [], "the thread rests with an answer that no attempt has read"
            if state.created_at is None:
                graph.invoke({"log": []}, CONFIG, **options)
            elif state.interrupts:
                graph.invoke(self.answer(state.interrupts), CONFIG, **options)
            elif state.next:
                graph.invoke(None, CONFIG, **options)
            else:
                return self.result(state)

    async def to_the_end_async(self, graph: Any, **options: Any) -> dict[str, Any]:
        """Do the same with the asyncio forms."""
        key = ThreadKey("order", graph.name)
        while True:
            state = await graph.aget_state(CONFIG)
            assert unread_answers(self.store, key) == [], "the thread rests with an answer that no attempt has read"
            if state.created_at is None:
                await graph.ainvoke({"log": []}, CONFIG, **options)
            elif state.interrupts:
                await graph.ainvoke(self.answer(state.interrupts), CONFIG, **options)
            elif state.next:
                await graph.ainvoke(None, CONFIG, **options)
            else:
                return self.result(state)

    def answer(self, interrupts: Any) -> Command[Any]:
        """Answer the oldest question: bare if it is the only one and an ordinary one, by its id otherwise."""
        asked = interrupts[0]
        if isinstance(asked.value, dict) and asked.value.get("type") == "in_doubt":
            name = asked.value["args"]["args"][0]
            happened = name in self.witness.lines()
            found = {"type": "happened", "result": f"did {name}"} if happened else {"type": "not_happened"}
            return Command(resume={asked.id: found})
        given = f"yes to {asked.value}"
        return Command(resume=given if len(interrupts) == 1 else {asked.id: given})

    def result(self, state: Any) -> dict[str, Any]:
        """Tell how the thread ended: its state, what was asked and answered, and what really happened."""
        asked = [(q.node, codec.loads(q.value), q.status, q.answer) for q in all_questions(self.store, "order")]
        answers = [[n, v, s, None if a is None else codec.loads(a)] for n, v, s, a in asked]
        doubts = [v["args"]["args"][0] for _, v, _, _ in answers if isinstance(v, dict) and v.get("type") == "in_doubt"]
        ordinary = [a for a in answers if not (isinstance(a[1], dict) and a[1].get("type") == "in_doubt")]
        return {"values": state.values, "answers": ordinary, "doubts": doubts, "counts": self.witness.counts()}


_world: World | None = None


def enter(world: World) -> World:
    """Make this the world of the process."""
    global _world
    _world = world
    return world


def here() -> World:
    """Return the world of the process."""
    assert _world is not None
    return _world


def effect(name: str) -> str:
    """Do something that cannot be undone, between two points."""
    world = here()
    world.points.reach(f"before effect {name}")
    world.witness.append(name)
    world.points.reach(f"after effect {name}")
    return f"did {name}"


async def effect_async(name: str) -> str:
    """Do the same in a coroutine."""
    return effect(name)


def probe(key: str, args: dict[str, Any]) -> Happened | NotHappened:
    """Look whether an effect happened."""
    (name,) = args["args"]
    return Happened(f"did {name}") if name in here().witness.lines() else NotHappened()
