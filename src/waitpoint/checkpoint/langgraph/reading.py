"""What a checkpoint of LangGraph says: values, due tasks, what these wrote and asked, and whose is which.

Read from what a `langgraph-checkpoint` saver returns, by attribute and key, so that nothing of LangGraph is imported. The
form is that of its checkpoints of version 4 (LangGraph 1): a node is due if its channel `branch:to:NODE` holds something
that it has not seen, a `Send` stands in the channel `__pregel_tasks`, and what tasks came to are pending writes under
the tasks' ids. These ids, and those of questions, are XXH3 digests of what the task is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from waitpoint.core.names import suggestion
from waitpoint.core.spec import GraphSpec
from waitpoint.errors import MissingPackageError, NotSupportedError
from waitpoint.records import START, Send, TimeoutPolicy

OLDEST_FORM = 4

_BRANCH, _JOIN, _TASKS = "branch:to:", "join:", "__pregel_tasks"
_PULL, _PUSH = "__pregel_pull", "__pregel_push"
_INTERRUPT, _RESUME, _ERROR, _RETURN = "__interrupt__", "__resume__", "__error__", "__return__"
_OF_THE_WAY = (_INTERRUPT, _RESUME, _ERROR, "__error_source_node__", "__scheduled__")  # on record before a task's end
_NOBODY = "00000000-0000-0000-0000-000000000000"
_MAX_ORDERS = 4  # of a join's sources, whose order is part of a channel's name


class Ask(NamedTuple):
    """A question that a task of the checkpoint waits for."""

    id: str
    value: Any
    schema: dict[str, Any] | None


@dataclass(slots=True)
class Left:
    """A due task, and how far it came."""

    node: str
    send: Send | None = None
    index: int = 0  # among the sends
    writes: list[tuple[str, Any]] = field(default_factory=list)
    gotos: list[str | Send] = field(default_factory=list)
    is_done: bool = False
    asks: list[Ask] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)  # given to its earlier questions, which are not on record
    error: str | None = None


@dataclass(slots=True)
class Pause:
    """A thread of LangGraph at its newest checkpoint. `unknown`: keys and channels of which the graph has no like."""

    checkpoint_id: str
    step: int
    source: str
    values: dict[str, Any]
    tasks: list[Left]
    joins: dict[str, tuple[str, ...]]
    unknown: list[str]


def pause_of(found: Any, spec: GraphSpec, thread_id: str) -> Pause:
    """Read a checkpoint tuple for a graph of ours. Raises `NotSupportedError` where it cannot be carried over."""
    checkpoint = found.checkpoint
    form = checkpoint.get("v", 0)
    if form < OLDEST_FORM:
        raise _refused(
            thread_id, f"its checkpoint has the older form {form}", "let it take one step there with LangGraph 1 first"
        )
    if spec.is_function:
        raise _refused(
            thread_id,
            f"{spec.name!r} is an entrypoint, whose finished tasks would run again",
            "let it come to its end there",
        )
    values, versions = checkpoint["channel_values"], checkpoint["channel_versions"]
    if START in values or _NOBODY in {w[0] for w in found.pending_writes or () if w[1] not in (_RESUME, _ERROR)}:
        raise _refused(
            thread_id, "an input or a command is written and not read yet", "let it come to rest there first"
        )
    step = int((found.metadata or {}).get("step", 0))
    names = {*spec.nodes} - {START}
    tasks = [*_sent(values), *_reached(values, versions, checkpoint.get("versions_seen", {}), spec)]
    for task in tasks:
        if task.node not in names:
            raise _refused(
                thread_id,
                f"it is to go on at node {task.node!r}, which graph {spec.name!r} has not{suggestion(task.node, names)}",
                "give that graph, or import it with as_node=NODE, as whose result the state counts, and what follows is due",
            )
    _lay_over(tasks, found, step, spec, thread_id)
    return Pause(
        checkpoint["id"],
        step,
        str((found.metadata or {}).get("source", "loop")),
        {key: value for key, value in values.items() if key in spec.channels},
        tasks,
        _begun_joins(values, spec),
        sorted(key for key in {*values, *versions} if not _is_known(key, values, spec)),
    )


def values_of(found: Any, spec: GraphSpec) -> tuple[dict[str, Any], list[list[tuple[str, Any]]]]:
    """Return the state's values, and what each finished task of the step writes to it, whoever that task is."""
    values = {k: v for k, v in found.checkpoint["channel_values"].items() if k in spec.channels}
    ended = [written for written in _by_task(found).values() if _has_ended(c for c, _ in written)]
    return values, [[(c, v) for c, v in written if c in spec.channels] for written in ended]


def _is_known(key: str, values: Mapping[str, Any], spec: GraphSpec) -> bool:
    if key in spec.channels:
        return key in values or spec.channels[key].default is not None
    return key == START or key.startswith((_BRANCH, _JOIN, "__"))


# --- what is due ------------------------------------------------------------------------------------------------------


def _sent(values: Mapping[str, Any]) -> Iterator[Left]:
    for index, each in enumerate(values.get(_TASKS) or ()):
        yield Left(each.node, _send(each), index)


def _send(each: Any) -> Send:
    theirs = getattr(each, "timeout", None)
    timeout = None if theirs is None else TimeoutPolicy(theirs.run_timeout, theirs.idle_timeout, theirs.refresh_on)
    return Send(each.node, each.arg, timeout=timeout)


def _reached(
    values: Mapping[str, Any], versions: Mapping[str, Any], seen: Mapping[str, Any], spec: GraphSpec
) -> Iterator[Left]:
    """Yield the nodes that an edge leads to: a channel of theirs holds something newer than what they have seen."""
    due = set()
    for channel in values:
        if channel.startswith(_BRANCH):
            node = channel.removeprefix(_BRANCH)
        elif channel.startswith(_JOIN) and _is_full(channel, values[channel], spec):
            node = channel.rpartition(":")[2]
        else:
            continue
        before = seen.get(node, {}).get(channel)
        if channel in versions and (before is None or versions[channel] > before):
            due.add(node)
    yield from (Left(node) for node in sorted(due))


def _joins(channel: str, spec: GraphSpec) -> Iterator[Any]:
    """Yield the join of ours that a channel stands for; the order of its sources is theirs."""
    for join in spec.joins:
        if channel.startswith(_JOIN) and channel.endswith(f":{join.target}"):
            sources = channel.removeprefix(_JOIN).removesuffix(f":{join.target}")
            if any("+".join(order) == sources for order in _orders(join.sources)):
                yield join


def _orders(sources: Iterable[str]) -> Iterable[tuple[str, ...]]:
    names = sorted(sources)
    return itertools.permutations(names) if len(names) <= _MAX_ORDERS else (tuple(names), tuple(reversed(names)))


def _is_full(channel: str, seen: Any, spec: GraphSpec) -> bool:
    return any(join.sources == set(seen) for join in _joins(channel, spec))


def _begun_joins(values: Mapping[str, Any], spec: GraphSpec) -> dict[str, tuple[str, ...]]:
    return {
        join.name: tuple(sorted(seen))
        for channel, seen in values.items()
        for join in _joins(channel, spec)
        if seen and join.sources != set(seen)
    }


# --- how far the tasks came -------------------------------------------------------------------------------------------


def _by_task(found: Any) -> dict[str, list[tuple[str, Any]]]:
    written: dict[str, list[tuple[str, Any]]] = {}
    for task_id, channel, value in found.pending_writes or ():
        if task_id != _NOBODY:
            written.setdefault(task_id, []).append((channel, value))
    return written


def _lay_over(tasks: Sequence[Left], found: Any, step: int, spec: GraphSpec, thread_id: str) -> None:
    """Give each task what is written under its id."""
    written = _by_task(found)
    if not written:
        return
    ids = _Ids(found.checkpoint["id"], step + 1)
    rest = dict(written)
    left = []
    for task in tasks:
        task_id = next((i for i in ids.of(task, found, spec) if i in rest), None)
        if task_id is None:
            left.append(task)
        else:
            _take(task, task_id, rest.pop(task_id), ids, spec, thread_id)
    for task in left:  # whose id holds something unknown here: their questions tell whose they are
        for task_id in [*rest]:
            if any(c == _INTERRUPT and any(ids.asks(task, task_id, i) for i in v) for c, v in rest[task_id]):
                _take(task, task_id, rest.pop(task_id), ids, spec, thread_id)
                break
    if any(channel != _RESUME for writes in rest.values() for channel, _ in writes):
        raise _refused(
            thread_id,
            "what a task of its step wrote cannot be told from another's",
            "answer it there so far that one task is left, or import it with as_node=NODE",
        )


class _Ids:
    """The ids that LangGraph gives to tasks of a checkpoint, and to what they ask."""

    def __init__(self, checkpoint_id: str, step: int) -> None:
        try:
            import xxhash
        except ImportError:
            raise MissingPackageError(
                "The tasks of a checkpoint of LangGraph are named by XXH3 digests, and the package 'xxhash' is not "
                "installed; install it (LangGraph needs it too)",
                package="xxhash",
            ) from None
        self._hash = xxhash.xxh3_128_hexdigest
        self._prefix = bytes.fromhex(checkpoint_id.replace("-", ""))
        self._step = str(step)

    def of(self, task: Left, found: Any, spec: GraphSpec) -> Iterator[str]:
        """Yield the ids that a task can have."""
        if task.send is not None:
            yield self._id(task.node, _PUSH, str(task.index))
            return
        for triggers in self._triggers(task.node, found, spec):
            yield self._id(task.node, _PULL, *sorted(triggers))

    def asks(self, task: Left, task_id: str, interrupt: Any) -> bool:
        """Whether a question is a task's own, rather than one of a graph that the task has called."""
        own = f"{task.node}:{task_id}"
        known = [own, *(f"{own}|{n}" for n in range(1, 100))]
        return any(self._hash(name.encode()) == interrupt.id for name in known)

    def _id(self, node: str, *parts: str) -> str:
        text = "".join((node, self._step, node, *parts))
        digits = self._hash(self._prefix + text.encode())
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    @staticmethod
    def _triggers(node: str, found: Any, spec: GraphSpec) -> Iterator[list[str]]:
        own = f"{_BRANCH}{node}"
        stored = [c for c in found.checkpoint["channel_versions"] if c.startswith(_JOIN) and c.endswith(f":{node}")]
        yield [own, *stored]
        orders = [
            [f"{_JOIN}{'+'.join(order)}:{node}" for order in _orders(join.sources)]
            for join in spec.joins
            if join.target == node
        ]
        if orders and len(orders) <= 2:
            yield from ([own, *chosen] for chosen in itertools.product(*orders))


def _take(
    task: Left, task_id: str, writes: Sequence[tuple[str, Any]], ids: _Ids, spec: GraphSpec, thread_id: str
) -> None:
    """Put what was written under a task's id into the task."""
    task.is_done = _has_ended(channel for channel, _ in writes)
    for channel, value in writes:
        if channel in _OF_THE_WAY:
            if not task.is_done:
                _take_of_the_way(task, task_id, channel, value, ids, thread_id)
        elif channel == _RETURN:
            raise _refused(thread_id, f"node {task.node!r} is of the functional API", "let it come to its end there")
        elif channel == _TASKS:
            task.gotos.append(_send(value))
        elif channel.startswith(_BRANCH):
            goto = channel.removeprefix(_BRANCH)
            if goto not in spec.nodes[task.node].edges:
                task.gotos.append(goto)
        elif channel in spec.channels:
            task.writes.append((channel, value))


def _take_of_the_way(task: Left, task_id: str, channel: str, value: Any, ids: _Ids, thread_id: str) -> None:
    """Put into a task that has not ended what it asked, was answered, or failed with."""
    if channel == _RESUME:
        task.answers = list(value) if isinstance(value, list | tuple) else [value]
    elif channel == _ERROR:
        task.error = value if isinstance(value, str) else repr(value)
    elif channel == _INTERRUPT:
        for each in value:
            if not ids.asks(task, task_id, each):
                raise _refused(
                    thread_id,
                    f"the question {each.id!r} was asked in a graph that node {task.node!r} calls, whose progress would be "
                    f"lost",
                    "answer it there first, or import it with as_node=NODE, the node before it, so that it runs from its start",
                )
            task.asks.append(Ask(each.id, each.value, getattr(each, "response_schema", None)))


def _has_ended(channels: Iterable[str]) -> bool:
    """Whether a task returned: then it wrote something, if only that it has nothing to write."""
    return any(channel not in _OF_THE_WAY for channel in channels)


def _refused(thread_id: str, fact: str, cure: str) -> NotSupportedError:
    return NotSupportedError(f"Thread {thread_id!r} of LangGraph cannot be carried over: {fact}; {cure}")
