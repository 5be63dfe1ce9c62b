"""What a running task can reach: its journal, config, runtime and writer. Parts are made when first asked for."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from waitpoint import clock
from waitpoint.cache.base import BaseCache
from waitpoint.checkpoint.base import JournalRow, QuestionRow
from waitpoint.core.spec import PREVIOUS
from waitpoint.engine.trying import Pulse
from waitpoint.errors import NodeError
from waitpoint.interrupts.journal import Journal, Recorder, TaskIdentity
from waitpoint.runtime import ExecutionInfo, RunControl, Runtime, server_of
from waitpoint.stream.listener import heard_by, witness
from waitpoint.stream.said import Said

# What mode `messages` tells of the config, beside its metadata; other keys may be secrets.
TOLD = ("thread_id", "run_id", "checkpoint_id", "checkpoint_ns", "task_id", "assistant_id", "graph_id")


@dataclass(slots=True, eq=False, repr=False)
class Surroundings:
    """What all tasks of one graph run share."""

    config: dict[str, Any]  # the run's config, as given
    context: Any = None
    store: Any = None
    control: RunControl | None = None
    recorder: Recorder | None = None
    registry: Any = None
    emit_custom: Callable[[Any], None] | None = None
    within: Journal | None = None  # of the attempt that called this graph
    callers: tuple[Any, ...] = ()  # the graphs around this one, outermost first
    live: Any = None  # takes parts while tasks run
    live_modes: frozenset[str] = frozenset()  # modes that nested graphs show there
    say: Callable[[Any], None] | None = None  # takes what is said in mode `messages`, if somebody listens
    listen: Callable[[Any, Any], Any] | None = None  # adds to a task's callbacks what hears its models and tools
    cache: BaseCache[Any] | None = None
    show: Callable[[str, Any], None] | None = None  # takes what tasks show while they run, if that goes out at once
    shows_output: bool = False  # `values` and `updates` show no more than what the run returns
    tracing: Any = None  # who hears of the run, if anybody does
    pulse: Pulse | None = None  # of the task that called this graph, if somebody cancels it when it is silent


@dataclass(slots=True, eq=False, repr=False)
class TaskScope:
    """The scope of one task's attempt."""

    run: Any
    around: Surroundings
    task: TaskIdentity
    triggers: tuple[str, ...]
    step: int
    attempt: int
    answers_read_before: int
    node_metadata: Any = None
    journal: Journal = field(init=False)
    started_at: float = field(default_factory=clock.now)
    tries: int = 1
    pushed: list[tuple[str, Any]] = field(default_factory=list)  # messages to be written with what the body returns
    sent_up: bool = False  # the task's result is a command that a graph inside it sent to its parent
    loop: Any = None  # of the driver, if that is asynchronous
    pulse: Pulse | None = None  # of this try, if it has a timeout
    callbacks: Any = None  # of what runs in the task; None: those of the run
    _config: dict[str, Any] | None = None
    _runtime: Runtime[Any] | None = None

    def begin(self, questions: Any = (), entries: Any = ()) -> None:
        """Open the journal of the attempt."""
        self.journal = Journal(self.task, self.attempt, self.around.recorder, questions, entries)
        self.journal.registry, self.journal.outer = self.around.registry, self.around.within

    def try_again(self, error: Exception) -> None:
        """Open the journal of a retry: it sees what this attempt recorded."""
        before = self.journal
        before.blame(error)
        before.sealed = True
        self.attempt += 1
        self.tries += 1
        questions: list[QuestionRow] = [a.row for a in before.asked]
        entries: list[JournalRow] = list(before.entries.values())
        self.make_anew()
        self.pushed = []
        self.begin(questions, entries)

    def of_call(self, name: str, call_id: str) -> TaskScope:
        """Return this scope as a recorded task sees it that is called here: its config and runtime name that task."""
        inner, task = copy.copy(self), self.task
        own = f"{task.node}:{task.task_id}"
        inner.task = task._replace(node=name, task_id=call_id, ns=f"{task.ns}|{own}" if task.ns else own)
        inner.triggers, inner.started_at, inner.tries = ("__pregel_push",), clock.now(), 1
        inner.make_anew()
        return inner

    def make_anew(self) -> None:
        """Let config and runtime be made again when they are asked for: what they tell has changed."""
        self._config = self._runtime = None

    @property
    def values(self) -> dict[str, Any]:
        """The state at the start of this superstep; lists and dicts are fresh."""
        return {key: value.copy() if type(value) in (list, dict) else value for key, value in self.run.values.items()}

    @property
    def specs(self) -> tuple[Any, ...]:
        """The graphs that this task runs in, innermost first."""
        return (self.run.spec, *reversed(self.around.callers))

    @property
    def node(self) -> str:
        """The node's name."""
        return self.task.node

    @property
    def config(self) -> dict[str, Any]:
        """The node's own config: the run's, with where it runs."""
        if self._config is None:
            given, task = self.around.config, self.task
            ns = f"{task.ns}|{task.node}:{task.task_id}" if task.ns else f"{task.node}:{task.task_id}"
            where = {
                "langgraph_step": self.step,
                "langgraph_node": task.node,
                "langgraph_triggers": self.triggers,
                "langgraph_path": ("__pregel_pull", task.node),
                "langgraph_checkpoint_ns": ns,
            }
            configurable = {**given.get("configurable", {}), "checkpoint_ns": ns}
            metadata = {**given.get("metadata", {}), **(self.node_metadata or {}), **where}
            self._config = {**given, "configurable": configurable, "metadata": metadata}
            for name in ("run_id", "run_name"):  # they name the graph's run, and nothing that runs in it
                self._config.pop(name, None)
            if self.callbacks is not None:
                self._config["callbacks"] = self.callbacks
            if self.around.listen is not None:
                self._config["callbacks"] = self.around.listen(self, self._config.get("callbacks"))
            if self.alive is not None:
                self._config["callbacks"] = heard_by(self._config.get("callbacks"), witness(self.stir))
        return self._config

    @property
    def told(self) -> dict[str, Any]:
        """What mode `messages` tells of each message of this task."""
        config = self.config
        configurable = config["configurable"]
        return {**config["metadata"], **{k: configurable[k] for k in TOLD if k in configurable}}

    @property
    def runtime(self) -> Runtime[Any]:
        """The node's runtime."""
        if self._runtime is None:
            configurable, task, around = self.around.config.get("configurable", {}), self.task, self.around
            run_id = configurable.get("run_id", self.around.config.get("run_id"))
            info = ExecutionInfo(
                thread_id=configurable.get("thread_id"),
                run_id=None if run_id is None else str(run_id),
                checkpoint_id=task.checkpoint_id,
                checkpoint_ns=task.ns,
                task_id=task.task_id,
                node_attempt=self.tries,
                node_first_attempt_time=self.started_at,
            )
            self._runtime = Runtime(
                context=around.context,
                store=around.store,
                stream_writer=self.writer,
                heartbeat=self.beat,
                previous=self.previous,
                execution_info=info,
                server_info=server_of(configurable),
                control=around.control,
            )
        return self._runtime

    @property
    def writer(self) -> Callable[[Any], None]:
        """Emits in stream mode `custom`; does nothing when nobody listens."""
        emit = self.around.emit_custom or _silent
        if self.alive is None:
            return emit

        def emit_alive(value: Any) -> None:
            self.stir()
            emit(value)

        return emit_alive

    # --- signs of life ---

    @property
    def alive(self) -> Pulse | None:
        """The pulse that what runs here keeps up: the try's own, or that of the task around this graph."""
        return self.pulse or self.around.pulse

    def beat(self) -> None:
        """Say that the body is alive."""
        if self.alive is not None:
            self.alive.beat()

    def stir(self) -> None:
        """Show that the body is alive, by something that it did."""
        if self.alive is not None:
            self.alive.stir()

    @property
    def previous(self) -> Any:
        """What the thread's last run saved for this one, in an entrypoint."""
        found = self.run.values.get(PREVIOUS)
        return found.copy() if type(found) in (list, dict) else found

    def show(self, mode: str, payload: Any) -> None:
        """Show a part of the run from inside the task, if that mode was asked for."""
        self.stir()
        if mode in self.run.modes and self.around.show is not None:
            self.around.show(mode, payload)
        elif mode in self.run.modes:
            self.run.told.append((mode, payload))
        if mode == "tasks" and "debug" in self.run.modes:
            kind = "task_result" if "result" in payload else "task"
            self.show("debug", in_envelope(kind, payload, self.step, clock.now()))

    def push(self, message: Any, key: str | None) -> None:
        """Show a message now; it is written to `key` with what the body returns."""
        self.stir()
        if key is not None:
            self.pushed.append((key, message))
        if self.around.say is not None:
            self.around.say(Said("whole", message, self.told))

    def wanted(self, what: str, error: NodeError | None) -> Any:
        """Return the value of an injected parameter."""
        if what == "error":
            return error
        if what == "store":
            return self.around.store
        return getattr(self, what)


def in_envelope(kind: str, payload: Any, step: int, at: float) -> dict[str, Any]:
    """Return a part as mode `debug` shows it."""
    return {"step": step, "timestamp": clock.iso(at), "type": kind, "payload": payload}


def _silent(_: Any) -> None:
    """Nobody listens to mode `custom`."""
