"""Executes one run: its thread goes on to the next rest, and everything it shows goes to the log.

Crash window: the run is marked as running, under an owner, before anything happens, and gets its last status before its
last entry. One whose owner died in between is executed again; what it had already handed to its thread (input, answers)
is not handed over twice.
"""

from __future__ import annotations

import asyncio
import functools
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast

from waitpoint.checkpoint.base import PendingFilter, ThreadKey, offload
from waitpoint.engine import owner
from waitpoint.engine.runner import Runner
from waitpoint.hosting import accepting, encoding, recording
from waitpoint.hosting.graphs import Graphs
from waitpoint.hosting.journal import Journal
from waitpoint.hosting.recording import Recorder
from waitpoint.hosting.requests import RunRequest
from waitpoint.ledger.base import AssistantRow, Ledger, RunRow, RunStatus
from waitpoint.records import END, MISSING, Command, Send
from waitpoint.stream.traced import chain_events

ENGINE_MODES = frozenset({"values", "updates", "custom", "messages", "tasks", "tools", "checkpoints", "debug"})


@dataclass(slots=True)
class Ended:
    """How a run ended. `halted` is the thread's fence if it stopped although nothing is asked."""

    status: RunStatus
    outcome: dict[str, Any] = field(default_factory=dict)
    halted: int | None = None


class Execution:
    """One attempt at one run."""

    def __init__(self, graphs: Graphs, ledger: Ledger, journal: Journal, run: RunRow) -> None:
        self._ledger, self._journal, self.run = ledger, journal, run
        self._graph: Runner = graphs[run.graph]
        self._key: ThreadKey = graphs.key(run.graph, run.thread_id)
        self._saver = self._graph.saver()
        self.request = RunRequest.of(run.request)
        self._recorder = Recorder(run.thread_id, run.id, self.request.modes, self._graph.name)

    async def execute(self) -> Ended:
        """Run to the next rest and return how that went. A cancellation passes through, with the thread left whole."""
        start = [self._recorder.note("metadata", {"run_id": self.run.id, "attempt": self.run.attempt})]
        if answered := self.request.extra.get("answered"):
            start.append(self._recorder.note("input.answered", {"interrupt_ids": answered}))
        self._journal.put([*start, self._recorder.lifecycle("running")])
        try:
            if self.request.command is not None:
                await self._journal.flush()  # by its time a later attempt knows what this one did
            await self._driven()
            return await self._rested()
        except Exception as error:  # noqa: BLE001 - a node may raise anything; whoever reads the run is told
            return await self._failed(error)

    async def _driven(self) -> None:
        config, given, options = await self._call()
        if self.request.does_nothing_but_end:
            await self._graph.aupdate_state(config, None, as_node=END)
            await self._shown_as_it_is()
            return
        if "events" not in self.request.modes:
            async with aclosing(self._parts(given, config, options)) as parts:
                async for _ in parts:
                    pass
            return
        parts_of = functools.partial(self._parts, options=options)
        events = chain_events(self._graph.name, parts_of, given, self._graph.own(config), {})
        async with aclosing(cast("AsyncGenerator[Any]", events)) as told:
            async for event in told:
                self._journal.put([self._recorder.note("events", event)])

    async def _parts(self, given: Any, config: dict[str, Any], options: dict[str, Any]) -> AsyncGenerator[Any]:
        """Run the graph and record what it shows; yields the updates of the outermost graph."""
        modes = tuple(dict.fromkeys([*recording.ALWAYS, *(m for m in self.request.modes if m in ENGINE_MODES)]))
        async with aclosing(self._graph.araw_parts(given, config, modes, **options)) as parts:
            async for ns, mode, payload in parts:
                self._journal.put(list(self._recorder.taken(ns, mode, payload)))
                await self._journal.room()
                if mode == "updates" and not ns:
                    yield payload

    async def _shown_as_it_is(self) -> None:
        state = await self._graph.aget_state({"configurable": {"thread_id": self.run.thread_id}})
        shown = {"values": state.values, "interrupts": []}
        self._journal.put([self._recorder.note("values", shown)])

    async def _call(self) -> tuple[dict[str, Any], Any, dict[str, Any]]:
        """Return config, input and options of the call of the graph."""
        request = self.request
        found = await offload(self._ledger, self._read)
        assistant, is_begun, is_halted = found
        config = self._config(assistant)
        options: dict[str, Any] = {
            "context": {**assistant.context, **(request.context or {})} or None,
            "interrupt_before": request.interrupt_before,
            "interrupt_after": request.interrupt_after,
            "durability": request.durability,
            "on_pending": "withdraw" if request.withdraws or is_halted else request.on_pending,
        }
        if self.run.is_settled or is_begun:
            return config, None, options
        if request.checkpoint_id is not None:
            config["configurable"]["checkpoint_id"] = request.checkpoint_id
            config["configurable"]["checkpoint_ns"] = request.checkpoint_ns
        return config, self._input(), options

    def _read(self) -> tuple[AssistantRow, bool, bool]:
        """Return the assistant, whether an earlier attempt handed over the input, and whether the thread is halted."""
        found = self._ledger.assistants(ids=[self.run.assistant_id])
        assistant = (
            found[0] if found else AssistantRow(self.run.assistant_id, self.run.graph, "", None, {}, {}, {}, 1, 0, 0)
        )
        seen = self._ledger.thread(self.run.thread_id)
        halted = seen is not None and seen.row is not None and seen.record.halted == seen.row.fence
        if self.run.attempt <= 1:
            return assistant, False, halted
        if self.request.command is not None and self.request.resume is MISSING:
            return assistant, self._was_laid_over(), halted
        state = self._graph.get_state({"configurable": {"thread_id": self.run.thread_id}})
        return assistant, (state.metadata or {}).get("run_id") == self.run.id, halted

    def _was_laid_over(self) -> bool:
        """Whether an earlier attempt brought its update to the thread: an event of that is younger than its first entry."""
        first = self._ledger.log(self.run.thread_id, run_id=self.run.id, limit=1)
        events = self._saver.events(self._key) if first and self._saver is not None else []
        return any(e.at >= first[0].at and e.kind in ("continued", "started", "forked") for e in events)

    def _config(self, assistant: AssistantRow) -> dict[str, Any]:
        given = {**assistant.config, **self.request.config}
        configurable = {
            **(assistant.config.get("configurable") or {}),
            **(self.request.config.get("configurable") or {}),
        }
        configurable = {
            name: value for name, value in configurable.items() if not name.startswith(("__", "checkpoint_"))
        }
        run = self.run
        named = {"run_id": run.id, "graph_id": run.graph, "assistant_id": run.assistant_id}
        metadata = {**assistant.metadata, **(given.get("metadata") or {}), **run.metadata, **named}
        tags = [*(assistant.config.get("tags") or ()), *(self.request.config.get("tags") or ())]
        config = {
            "configurable": {**configurable, "thread_id": run.thread_id},
            "metadata": {**metadata, "thread_id": run.thread_id},
            "tags": tags,
            "run_id": uuid.UUID(run.id),
        }
        if given.get("recursion_limit") is not None:
            config["recursion_limit"] = given["recursion_limit"]
        return config

    def _input(self) -> Any:
        command = self.request.command
        if command is None:
            return self.request.input
        resume = self.request.resume
        if resume is not MISSING:
            resume = accepting.authored(resume, self.run.by, self.request.token or self.run.id)
        update = command.get("update")
        if isinstance(update, list):
            update = [tuple(write) if isinstance(write, list) else write for write in update]
        return Command(resume=resume, update=update, goto=_goto(command.get("goto")))

    # --- ends ---

    async def _rested(self) -> Ended:
        row = await offload(self._saver, self._saver.thread, self._key)  # type: ignore[arg-type, union-attr]
        config = {"configurable": {"thread_id": self.run.thread_id}}
        state = await self._graph.aget_state(config)
        outcome: dict[str, Any] = {
            "checkpoint_id": None if row is None else row.head,
            "interrupts": [interrupt.id for interrupt in state.interrupts],
            "next": list(state.next),
        }
        stopped = bool(state.interrupts or state.next)
        halted = row.fence if row is not None and state.next and not state.interrupts else None
        self._journal.put([self._recorder.lifecycle("interrupted" if stopped else "completed")])
        return Ended("success", outcome, halted)

    async def _failed(self, error: Exception) -> Ended:
        told = encoding.error_json(error)
        self._journal.put([self._recorder.note("error", told), self._recorder.lifecycle("failed", error=str(error))])
        status: RunStatus = "timeout" if type(error).__name__.endswith("TimeoutError") else "error"
        return Ended(status, {"error": told, "checkpoint_id": await self._head()})

    async def cancelled(self) -> Ended:
        """Return how a run ended that was told to stop."""
        assert self._saver is not None
        row = await offload(self._saver, self._saver.thread, self._key)
        if row is not None and row.status == "running" and owner.is_dead(row):  # the attempt before was killed
            await offload(self._saver, owner.give_back, self._saver, self._key, row.owner)
        if self.run.cancel == "rollback":
            await self._saver.adelete_for_runs([self.run.id], thread_ids=[self.run.thread_id])
        row = await offload(self._saver, self._saver.thread, self._key)
        self._journal.put([self._recorder.lifecycle("interrupted")])
        outcome = {"checkpoint_id": None if row is None else row.head, "cancelled": True}
        if row is not None:
            outcome["answer_seq"] = row.answer_seq  # an answer that comes later sets the thread going again
        # A thread that came to a question first waits for its answer as ever.
        rests = row is None or row.status == "waiting" or (self.run.cancel == "rollback" and row.status != "ready")
        return Ended("interrupted", outcome, None if rests or row is None else row.fence)

    async def _head(self) -> str | None:
        row = await offload(self._saver, self._saver.thread, self._key)  # type: ignore[arg-type, union-attr]
        return None if row is None else row.head

    async def close(self, ended: Ended, owner_id: str) -> None:
        """Store how the run ended, and in the same transaction what its readers are told last."""
        await self._journal.flush()
        is_undone = self.run.cancel == "rollback" and ended.status == "interrupted"
        told = {"run_id": self.run.id, "status": "rollback" if is_undone else ended.status}
        last = self._recorder.note("end", told)
        change = {"halted": ended.halted}
        await offload(self._ledger, _changed(self._ledger, self.run.thread_id, last.at, change))
        await offload(self._ledger, self._ledger.end_run, self.run.id, owner_id, ended.status, ended.outcome, last)
        if is_undone:
            await offload(self._ledger, self._ledger.delete_run, self.run.id)
        self._journal.told(self.run.thread_id)


def _changed(ledger: Ledger, thread_id: str, at: float, change: dict[str, Any]) -> Any:
    return lambda: ledger.change_thread(thread_id, at, **change)


def _goto(given: Any) -> Any:
    """Return where to go as the engine has it: names, and sends for `{"node": ..., "input": ...}`."""
    if given is None:
        return ()
    places: Sequence[Any] = given if isinstance(given, list) else [given]
    found = [Send(place["node"], place.get("input")) if isinstance(place, dict) else place for place in places]
    return found[0] if len(found) == 1 else found


def open_questions(graph: Runner, key: ThreadKey) -> list[str]:
    """Return the ids of what a thread asks."""
    saver = graph.saver()
    return [] if saver is None else [q.id for q in saver.questions(PendingFilter(key.thread_id, key.graph))]


async def stopped(task: asyncio.Task[Any]) -> None:
    """Cancel a task and return once it has ended, however it did."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
