"""Reading a thread: its present state, one of its checkpoints, and its history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from waitpoint import clock
from waitpoint.checkpoint.base import BaseCheckpointSaver, Loaded, ThreadKey
from waitpoint.config import check_count, checked_config
from waitpoint.engine import heads, outcomes
from waitpoint.engine.declared import Declared
from waitpoint.engine.descent import remembered
from waitpoint.engine.detailing import config_of, metadata_of, parent_config_of
from waitpoint.engine.heads import Head, ItemReader
from waitpoint.engine.inner import graph_in
from waitpoint.engine.invocation import Invocation, run_at
from waitpoint.engine.questions import answerable, interrupt_of
from waitpoint.engine.resuming import lay_over, prior_of
from waitpoint.engine.run import Run
from waitpoint.engine.scope import Surroundings
from waitpoint.engine.segment import Segment, called_in, within
from waitpoint.engine.tasks import Task
from waitpoint.errors import NotFoundError
from waitpoint.records import START, PregelTask, StateSnapshot


def current(graph: Declared, config: Mapping[str, Any], *, subgraphs: bool = False) -> StateSnapshot:
    """Return the thread as it stands, or the record of the checkpoint that the config names."""
    saver, key = graph.saver_of(config)
    ns, checkpoint_id = place(config)
    owner_graph = graph_at(graph, ns)
    is_newest = ns and checkpoint_id is None
    loaded = remembered(saver, key, ns) if is_newest else saver.load(key, ns, checkpoint_id)
    if loaded.checkpoint is None:
        if checkpoint_id is not None:
            raise NotFoundError(
                f"Unknown checkpoint {checkpoint_id!r} in thread {key.thread_id!r} of graph {key.graph!r}"
            )
        return _never_ran(key, ns)
    if is_newest:
        loaded.questions = _below(saver, key, ns)
    view = _View(owner_graph, saver, key, loaded, as_record=checkpoint_id is not None)
    return view.snapshot(subgraphs=subgraphs)


def history(
    graph: Declared, config: Mapping[str, Any], filter: Mapping[str, Any] | None, before: Mapping[str, Any] | None,
    limit: int | None,
) -> Iterator[StateSnapshot]:  # fmt: skip
    """Return the checkpoints of a namespace, newest first, each as the record of its step."""
    saver, key = graph.saver_of(config)
    ns, newest = place(config)
    owner_graph = graph_at(graph, ns)
    bound = None if before is None else place(before)[1]
    shown = 0
    check_count("limit", limit)
    is_filtered = bool(filter) or newest is not None  # then the store cannot tell how many rows are needed
    for row in saver.history(key, ns, before=bound, limit=None if is_filtered else limit):
        if limit is not None and shown >= limit:
            return
        if newest is not None and row.id > newest:
            continue
        loaded = saver.load(key, ns, row.id)
        if loaded.checkpoint is None:
            continue  # pruned meanwhile
        view = _View(owner_graph, saver, key, loaded, as_record=True)
        snapshot = view.snapshot()
        if all((snapshot.metadata or {}).get(k) == v for k, v in (filter or {}).items()):
            shown += 1
            yield snapshot


def waiting(graph: Declared, config: Mapping[str, Any], *, xray: bool) -> StateSnapshot | None:
    """Return the thread as it stands if the config names one that there is; with `xray` the graphs nested in it too."""
    named = (checked_config(config).get("configurable") or {}).get("thread_id") is not None
    return current(graph, config, subgraphs=xray) if named and graph.saver() is not None else None


def place(config: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the namespace and checkpoint id that a config names."""
    configurable = checked_config(config).get("configurable") or {}
    return configurable.get("checkpoint_ns") or "", configurable.get("checkpoint_id")


def graph_at(graph: Declared, ns: str) -> Declared:
    """Return the declared graph of a namespace; a graph called by a function is read with its caller's channels."""
    for part in ns.split("|") if ns else ():
        node = graph.spec.nodes.get(part.split(":")[0])
        inside = None if node is None else graph_in(node)
        graph = graph if inside is None else inside
    return graph


def _below(saver: BaseCheckpointSaver, key: ThreadKey, ns: str) -> list[Any]:
    """Return the open questions of a namespace and of those below it."""
    return [q for q in saver.load(key).questions if within(q.ns, ns)]


def _never_ran(key: ThreadKey, ns: str) -> StateSnapshot:
    where = {"configurable": {"thread_id": key.thread_id, "checkpoint_ns": ns}}
    return StateSnapshot({}, (), where, None, None, None, (), ())


class _View:
    """One checkpoint with what its tasks came to. `as_record` shows all tasks and questions of the step."""

    def __init__(
        self, graph: Declared, saver: BaseCheckpointSaver, key: ThreadKey, loaded: Loaded, *, as_record: bool
    ) -> None:
        assert loaded.checkpoint is not None
        assert loaded.thread is not None
        self.graph, self.saver, self.key, self.loaded, self.as_record = graph, saver, key, loaded, as_record
        self.head: Head = heads.read(saver, key, loaded.checkpoint, graph.registry)
        segment = Segment(saver, loaded.thread, "sync")
        segment.questions = {q.id: q for q in loaded.questions}
        call = Invocation(graph.spec, graph.registry, None, Surroundings({}), key=key)
        self.run: Run = run_at(call, self.head, segment)
        reader = ItemReader(saver, key, graph.registry)
        lay_over(self.run, self.head, prior_of(loaded.outcomes, reader))
        self.under = self.run.questions_by_task()
        self.rows = {row.task_id: row for row in loaded.outcomes}
        self.reader = reader

    def snapshot(self, *, subgraphs: bool = False) -> StateSnapshot:
        """Return the snapshot, as LangGraph shapes it."""
        run, head = self.run, self.head
        tasks = tuple(self._task(t, subgraphs=subgraphs) for t in run.tasks)
        values = head.values if self.as_record else run.visible()
        unfinished = [t for t in run.tasks if t.state != "done"]
        due = [t.name for t in (run.tasks if self.as_record else unfinished or run.tasks)]
        shown = run.shown(values)
        interrupts = tuple(i for t in tasks for i in t.interrupts)
        return StateSnapshot(
            shown,
            tuple(due),
            config_of(self.key, head),
            metadata_of(head),
            clock.iso(head.created_at),
            parent_config_of(self.key, head, head.parent_id),
            tasks,
            interrupts,
        )

    def _task(self, task: Task, *, subgraphs: bool) -> PregelTask:
        run, row = self.run, self.rows.get(task.id)
        under = self.under.get(task.id, [])
        wanted = under if self.as_record else answerable(under)
        interrupts = tuple(
            interrupt_of(q, run.registry) for q in sorted(wanted, key=lambda q: (q.asked_at, q.ns, q.seq))
        )
        error = None if row is None or row.status != "failed" else outcomes.read_error(row)
        result = None
        if task.state == "done":
            result = outcomes.shown(run.spec, task.result)
            result = {} if result is None else result
            interrupts = interrupts if self.as_record else ()
        elif task.name == START and task.body.result is not None:
            result = dict(task.body.result.writes)
        state = self._nested(task, subgraphs=subgraphs)
        return PregelTask(task.id, task.name, task.due.path, error, interrupts, state, result)

    def _nested(self, task: Task, *, subgraphs: bool) -> Any:
        """Where the graph inside a task stands: its config, or with `subgraphs` its snapshot."""
        inside = graph_in(task.node)
        if inside is None or inside.checkpointer is False:
            return None
        ns = self.run.child_ns(task)
        config = {"configurable": {"thread_id": self.key.thread_id, "checkpoint_ns": ns}}
        if not subgraphs:
            return config
        loaded = self.saver.load(self.key, ns)
        if loaded.checkpoint is None:  # it has not begun, but readers need not ask whether it has
            return StateSnapshot({}, (), config, None, None, None, (), ())
        called = self.run.call_ns(task)  # a memory in there has a namespace of its own
        loaded.questions = [q for q in self.loaded.questions if within(called_in(q), called)]
        view = _View(inside, self.saver, self.key, loaded, as_record=False)
        return view.snapshot(subgraphs=True)
