"""Nodes that fail for a while and count their runs."""

from __future__ import annotations

import asyncio
import threading

from tests.behaviours.graphs import State


class Flaky:
    """Nodes of which one fails a number of times; they count their runs."""

    def __init__(self, failures: int = 1, error: Exception | None = None) -> None:
        self.runs: list[str] = []
        self.failures = failures
        self.error = error or ValueError("not yet")
        self.sibling_done = threading.Event()

    def steady(self, state: State) -> State:
        self.runs.append("steady")
        self.sibling_done.set()
        return {"log": ["steady"]}

    def flaky(self, state: State) -> State:
        self.sibling_done.wait(10)
        self.runs.append("flaky")
        if self.runs.count("flaky") <= self.failures:
            raise self.error
        return {"log": ["flaky"]}

    async def asteady(self, state: State) -> State:
        return self.steady(state)

    async def aflaky(self, state: State) -> State:
        await asyncio.to_thread(self.sibling_done.wait, 10)
        return self.flaky(state)
