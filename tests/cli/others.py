"""Graphs that stop, wait, fail and ask in ways that few do."""

from __future__ import annotations

OTHERS = '''
import asyncio
import os
import signal
from pathlib import Path
from typing import TypedDict

from waitpoint.errors import QuestionWithdrawn
from waitpoint.graph import START, StateGraph
from waitpoint.types import interrupt


class State(TypedDict, total=False):
    count: int
    gate: str


def first(state):
    return {"count": state.get("count", 0) + 1}


def stops(state):
    """Be stopped by Ctrl-C once."""
    if Path("stopped").exists():
        return {"count": 100}
    Path("stopped").touch()
    os.kill(os.getpid(), signal.SIGINT)
    return {"count": 0}


async def stops_async(state):
    if Path("stopped").exists():
        return {"count": 100}
    Path("stopped").touch()
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.Event().wait()


def leaves(state):
    raise SystemExit(7)


def gate(state):
    """Say that it runs, and run until told to go on."""
    print("running", flush=True)
    with open(state["gate"]) as fifo:
        fifo.read()
    return {}


async def asks_async(state):
    return {"count": interrupt("How many? 多少")}


def told(state):
    try:
        return {"count": interrupt("How many?")}
    except QuestionWithdrawn as withdrawn:
        return {"gate": withdrawn.reason}


def picky(state):
    return {"count": interrupt("Even?", response_schema=Even).value}


def inner(state):
    return {"count": interrupt("Deep?") + 1}


def calls_two(state):
    first = chain(inner).invoke({"count": 1})
    return chain(inner).invoke({"count": first["count"]})


from dataclasses import dataclass


@dataclass
class Even:
    value: int

    def __post_init__(self):
        if self.value % 2:
            raise ValueError("that is odd")


def chain(*nodes, **options):
    builder = StateGraph(State)
    builder.add_sequence(list(nodes))
    builder.add_edge(START, nodes[0].__name__)
    return builder.compile(name="-".join(n.__name__ for n in nodes), **options)


stopped = chain(first, stops)
stopped_async = chain(first, stops_async)
gated = chain(gate)
async_asks = chain(first, asks_async)
breaks = chain(first, told, interrupt_before=["told"])
withdrawn = chain(told)
evens = chain(picky)
leaving = chain(first, leaves)
nested = chain(first, calls_two)
memory = chain(inner, checkpointer=True)


def remembers(state):
    memory.invoke({"count": 1})
    return memory.invoke({"count": 2})


remembered = chain(first, remembers)
'''
