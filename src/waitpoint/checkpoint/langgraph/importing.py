"""Carries a thread that LangGraph left paused over to a saver of Waitpoint, with its state and its open questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from waitpoint import canonical, clock, codec, ids
from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    Move,
    OutcomeRow,
    PendingFilter,
    QuestionRow,
    ThreadChanged,
    ThreadKey,
    ThreadRow,
    Writes,
    offload,
)
from waitpoint.checkpoint.langgraph.reading import Left, pause_of, values_of
from waitpoint.config import text_id
from waitpoint.core.apply import Result, apply_writes, next_control
from waitpoint.core.channels import initial
from waitpoint.core.plan import Control, Due, due_tasks
from waitpoint.engine import heads, outcomes
from waitpoint.engine.declared import Declared
from waitpoint.engine.heads import Head, ItemWriter, Numbers
from waitpoint.engine.routing import route
from waitpoint.engine.segment import event
from waitpoint.engine.starting import prepared_writes
from waitpoint.engine.tasks import Body, Outcome, Task
from waitpoint.errors import ConfigError, ConflictError, NotFoundError
from waitpoint.records import INPUT, START, Question


class Imported(NamedTuple):
    """A thread that was carried over: its open questions, the nodes that are due, and what could not come along."""

    thread_id: str
    questions: tuple[Question, ...]
    next: tuple[str, ...]
    left_behind: tuple[str, ...]


def import_thread(graph: Any, saver: Any, thread_id: str, *, as_node: str | None = None) -> Imported:
    """Carry a thread's newest checkpoint over from a saver of LangGraph. The graph's own saver takes it; runs nothing.

    Args:
        graph: The compiled graph of Waitpoint that is to go on with the thread, with a checkpointer.
        saver: A `langgraph-checkpoint` saver, from which the thread is only read.
        thread_id: The thread's id, there and here.
        as_node: The state counts as if this node had just returned, and what follows it is due; "__start__" stands for
            the entry. For threads that wait inside graphs called by nodes, and for graphs whose nodes have other names;
            questions are then asked anew by the next run.

    Open questions keep their ids and are answered with `Command(resume=...)` as any other. An answer counts where the
    node, run again from its first line as LangGraph would, asks with the same payload. What was finished in the step is
    not run again. A node that had got answers before it paused once more asks all its questions anew: LangGraph keeps
    answers by their order and not the questions they were given to.

    Not carried over: earlier checkpoints, the progress of graphs called inside nodes, finished tasks of entrypoints, and
    values of keys that the graph does not have.

    Raises:
        NotFoundError: the saver has no such thread.
        ConflictError: the graph's saver has that thread already.
        NotSupportedError: the thread cannot be carried over; nothing was stored.
    """
    thread_id = _named(thread_id)
    return _stored(graph, saver.get_tuple(_config(thread_id)), thread_id, as_node)


async def aimport_thread(graph: Any, saver: Any, thread_id: str, *, as_node: str | None = None) -> Imported:
    """Do what `import_thread` does, from an event loop and with a saver's asynchronous methods."""
    thread_id = _named(thread_id)
    found = await saver.aget_tuple(_config(thread_id))
    store = _declared(graph).saver_of(_config(thread_id))[0]
    imported: Imported = await offload(store, _stored, graph, found, thread_id, as_node)
    return imported


def _named(thread_id: Any) -> str:
    named = text_id(thread_id, "thread_id")
    if named is None:
        raise ConfigError("`thread_id` is None; name the thread that is to be carried over")
    return named


def _config(thread_id: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}


def _declared(graph: Any) -> Declared:
    if not isinstance(graph, Declared):
        raise ConfigError(
            f"`graph` is a {type(graph).__name__}; give the compiled graph of Waitpoint that is to go on with the thread"
        )
    return graph


def _stored(graph: Any, found: Any, thread_id: str, as_node: str | None) -> Imported:
    graph = _declared(graph)
    saver, key = graph.saver_of(_config(thread_id))
    if found is None:
        raise NotFoundError(
            f"The saver of LangGraph has no thread {thread_id!r}; check the id and which store it opens"
        )
    if saver.thread(key) is not None:
        raise _exists(key)
    made = _Import(graph, saver, key, found)
    if as_node is None:
        made.with_tasks()
    else:
        made.with_values(as_node)
    questions = saver.pending(PendingFilter(thread_id, key.graph))
    return Imported(thread_id, tuple(questions), tuple(graph.get_state(_config(thread_id)).next), tuple(made.lost))


def _exists(key: ThreadKey) -> ConflictError:
    return ConflictError(
        f"Thread {key.thread_id!r} of graph {key.graph!r} exists already, and an import would write over it; delete it "
        f"with delete_thread first, or go on with it"
    )


class _Import:
    """One thread on its way."""

    def __init__(self, graph: Declared, saver: BaseCheckpointSaver, key: ThreadKey, found: Any) -> None:
        self.graph, self.saver, self.key, self.found = graph, saver, key, found
        self.writer = ItemWriter(Numbers(), graph.registry)
        self.lost = ["the checkpoints before the newest"] if found.parent_config else []

    def with_values(self, as_node: str) -> None:
        """Store the state alone, and move on from it as if a node had returned."""
        spec = self.graph.spec
        if as_node not in spec.nodes:
            known = ", ".join(repr(n) for n in spec.nodes)
            raise ConfigError(f"`as_node` is {as_node!r}, which graph {spec.name!r} has not; it has {known}")
        values, writes = values_of(self.found, spec)
        if not values:
            raise ConfigError(
                f"Thread {self.key.thread_id!r} of LangGraph holds no key of graph {spec.name!r}; give the graph it belongs to"
            )
        finished = [Result(START, prepared_writes(spec, w)) for w in writes if w]
        values, _ = apply_writes(spec, initial(spec.channels) | values, finished)
        result = route(spec, spec.nodes[as_node], values, Result(as_node), self.graph.store)
        control = next_control(spec, Control(), [result], ran_deferred=False)
        head = self._head(values, control, int((self.found.metadata or {}).get("step", 0)) + 1, "update")
        self._move(head, "idle", Writes())
        self.lost.append("open questions: the next run asks them anew")

    def with_tasks(self) -> None:
        """Store the state, the tasks that are due, what they came to, and what they ask."""
        spec, thread_id = self.graph.spec, self.key.thread_id
        pause = pause_of(self.found, spec, thread_id)
        self.lost += [f"{key!r}: graph {spec.name!r} has no value or no key of it" for key in pause.unknown]
        names = {t.node for t in pause.tasks if t.send is None}
        deferred = tuple(sorted(n for n in names if spec.nodes[n].defer))
        sends = tuple(t.send for t in pause.tasks if t.send is not None)
        control = Control(tuple(sorted(names - {*deferred})), sends, deferred, pause.joins)
        source = pause.source if pause.source in ("loop", "update", "fork", INPUT) else "loop"
        head = self._head(initial(spec.channels) | pause.values, control, pause.step, source)
        writes = Writes()
        asked: list[QuestionRow] = []
        done: list[OutcomeRow] = []
        error = None
        for due in due_tasks(head.id, "", control):
            task = _left(pause.tasks, due)
            row, questions = self._task(head, due, task)
            asked += questions
            done += [row] if row is not None else []
            error = error or task.error
        writes.outcomes, writes.questions = done, asked
        writes.events = [event("asked", q.id, node=q.node) for q in asked]
        self._move(head, "waiting" if asked else ("failed" if error else "idle"), writes, error)

    def _head(self, values: dict[str, Any], control: Control, step: int, source: str) -> Head:
        head = Head(ids.checkpoint_id(), "", None, step, source, clock.now(), values, {}, control)
        head.refs = heads.store_values(self.graph.spec, None, values, values, self.writer)
        return head

    def _task(self, head: Head, due: Due, task: Left) -> tuple[OutcomeRow | None, list[QuestionRow]]:
        spec = self.graph.spec
        run = Task(due, spec.nodes[due.name])
        if task.is_done:
            result = Result(due.name, prepared_writes(spec, task.writes), task.gotos)
            return outcomes.to_row(spec, head, run, Outcome("done", result, attempt=1), "done", self.writer), []
        if task.answers:
            self.lost.append(
                f"what node {due.name!r} was answered before it paused once more ({len(task.answers)}): it asks all anew"
            )
            return None, []
        if any(_wants_decisions(ask.value) for ask in task.asks):
            self.lost.append(
                f"the decisions that node {due.name!r} waits for: it asks anew, so that the gate knows them"
            )
            return None, []
        if not task.asks:
            return None, []
        asked = [self._question(head, due, n, *ask) for n, ask in enumerate(task.asks)]
        waiting = Outcome("waiting", None, body=Body(), attempt=1)
        return outcomes.to_row(spec, head, run, waiting, "waiting", self.writer), asked

    def _question(
        self, head: Head, due: Due, seq: int, name: str, value: Any, schema: dict[str, Any] | None
    ) -> QuestionRow:
        payload = canonical.payload(value)
        is_free = ids.is_id(name) and not self.saver.questions(PendingFilter(ids=[name], answerable=False))
        digest = canonical.digest(payload)
        return QuestionRow(
            id=name if is_free else ids.question_id(self.key, due.id, seq, digest),
            key=self.key,
            ns="",
            checkpoint_id=head.id,
            root_checkpoint=head.id,
            task_id=due.id,
            seq=seq,
            node=due.name,
            value=codec.dumps(payload, self.graph.registry, path="payload"),
            schema=None if schema is None else codec.dumps(schema),
            digest=digest,
            qkey=None,
            # No site: LangGraph does not keep where it was asked, so the payload alone tells whose the answer is.
            site=codec.dumps_plain([]),
            extra=codec.dumps_plain({"path": (due.name,)}),
            asked_at=clock.now(),
        )

    def _move(self, head: Head, status: Any, writes: Writes, error: str | None = None) -> None:
        at = clock.now()
        writes.checkpoints = [heads.to_row(head, self.writer)]
        writes.items = self.writer.taken()
        writes.events = [
            event("imported", head.id, source="langgraph", checkpoint=self.found.checkpoint["id"]),
            *writes.events,
        ]
        row = ThreadRow(
            self.key, status, 1, 0, self.writer.numbers.next, head.id, None, None, error, at, at
        )  # fmt: skip
        try:
            self.saver.move(Move(self.key, None, row, writes))
        except ThreadChanged:
            raise _exists(self.key) from None


def _wants_decisions(payload: Any) -> bool:
    """Whether a question is about tool calls: those the gate of an agent asks itself, by the ids of the calls."""
    return isinstance(payload, dict) and {"action_requests", "review_configs"} <= payload.keys()


def _left(tasks: Sequence[Left], due: Due) -> Left:
    """Return what is known of a due task: sends are told apart by their order."""
    if due.send is None:
        return next(t for t in tasks if t.send is None and t.node == due.name)
    return next(t for t in tasks if t.send is not None and t.index == due.path[1])
