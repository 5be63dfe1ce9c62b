"""Going back inside a graph: a nested checkpoint with those around it, and the same again under a new outermost one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from waitpoint import clock, ids
from waitpoint.checkpoint.base import BaseCheckpointSaver, Loaded, QuestionRow, ThreadKey, ThreadRow
from waitpoint.codec import Registry
from waitpoint.core.spec import GraphSpec
from waitpoint.engine import heads, inner
from waitpoint.engine.heads import Head, Origin
from waitpoint.engine.invocation import raise_unknown_checkpoint
from waitpoint.engine.segment import below, called_in, within
from waitpoint.errors import ConfigError, NotFoundError


@dataclass(slots=True, eq=False, repr=False)
class Level:
    """A checkpoint of one graph on the way down, and how that graph is declared."""

    spec: GraphSpec
    registry: Registry
    loaded: Loaded
    head: Head

    @property
    def at(self) -> str:
        """The call of the graph, by the tasks in which it was made."""
        return self.head.origin.at or self.head.ns


def descend(
    saver: BaseCheckpointSaver, key: ThreadKey, around: tuple[GraphSpec, Registry], ns: str, checkpoint_id: str | None
) -> list[Level]:
    """Return a checkpoint of a nested graph, the newest or the one named, after those around it, the outermost first."""
    last = _level(saver, key, around, ns, checkpoint_id)
    if last is None and checkpoint_id is not None:
        raise_unknown_checkpoint(key, checkpoint_id)
    if last is None:
        raise NotFoundError(
            f"Subgraph {ns!r} has no checkpoint in thread {key.thread_id!r} of graph {key.graph!r}; take namespaces from "
            f"get_state(config, subgraphs=True)"
        )
    levels = [_level(saver, key, around, *above) for above in last.head.origin.parents.items()]
    found = [level for level in levels if level is not None]
    if not found or len(found) < len(levels):
        raise NotFoundError(
            f"The checkpoints around {last.head.id!r} of subgraph {ns!r} in thread {key.thread_id!r} are not known; go back "
            f"to a checkpoint of the outermost graph instead"
        )
    return [*found, last]


def _level(
    saver: BaseCheckpointSaver, key: ThreadKey, around: tuple[GraphSpec, Registry], ns: str, checkpoint_id: str | None
) -> Level | None:
    spec, registry = inner.reader_at(*around, ns)
    loaded = saver.load(key, ns, checkpoint_id)
    if loaded.checkpoint is None:
        return None
    return Level(spec, registry, loaded, heads.read(saver, key, loaded.checkpoint, registry))


def in_past(saver: BaseCheckpointSaver, key: ThreadKey, ns: str, newest: Loaded, origin: Origin) -> Loaded:
    """Return the newest checkpoint of a memory that lies in the past of a checkpoint with this origin."""
    row = newest.checkpoint
    while row is not None and (until := origin.before(row.id)) is not None:
        row = next(iter(saver.history(key, ns, before=until, limit=1)), None)
    if row is newest.checkpoint:
        return newest
    return Loaded(newest.thread, None, (), (), ()) if row is None else saver.load(key, ns, row.id)


def remembered(saver: BaseCheckpointSaver, key: ThreadKey, ns: str) -> Loaded:
    """Return a namespace at its newest checkpoint; one of a memory, as the thread's next run would find it."""
    newest = saver.load(key, ns)
    if ":" in ns.rpartition("|")[2] or newest.checkpoint is None:
        return newest
    outermost = saver.load(key).checkpoint
    return newest if outermost is None else in_past(saver, key, ns, newest, heads.origin_of(outermost))


def is_present(saver: BaseCheckpointSaver, key: ThreadKey, thread: ThreadRow, levels: Sequence[Level]) -> bool:
    """Whether these are the newest checkpoints of all their graphs, in tasks that the thread has not finished."""
    if levels[0].head.id != thread.head or any(map(_is_over, levels, levels[1:])):
        return False
    return all(saver.history(key, level.head.ns, limit=1)[0].id == level.head.id for level in levels[1:])


def is_open(saver: BaseCheckpointSaver, key: ThreadKey, thread: ThreadRow, levels: Sequence[Level]) -> bool:
    """Whether the call that the innermost checkpoint belongs to has not ended."""
    return is_present(saver, key, thread, levels[:-1]) and not _is_over(*levels[-2:])


def _is_over(above: Level, level: Level) -> bool:
    """Whether the task in which a graph was called is done."""
    name, task_id, _ = _called_as(above, level)
    return any(row.task_id == task_id and row.node == name and row.status == "done" for row in above.loaded.outcomes)


def _called_as(above: Level, level: Level) -> tuple[str, str, str]:
    """Return the node and the task in which a graph was called, and which call of that task it was."""
    first, _, more = level.at[len(above.at) :].lstrip("|").partition("|")
    name, _, task_id = first.rpartition(":")
    return name, task_id, more


def asked_at(levels: Sequence[Level]) -> list[QuestionRow]:
    """Return the questions of the step at the innermost checkpoint, and of graphs inside it."""
    last = levels[-1]
    return [
        question
        for question in levels[0].loaded.questions
        if question.checkpoint_id == last.head.id
        or (called_in(question) != last.at and within(called_in(question), last.at))
    ]


def again(levels: Sequence[Level], outermost: Head) -> list[Head]:
    """Return the nested checkpoints again, to go on at under a copy of the outermost one.

    The tasks of a new checkpoint are other tasks, so the graphs in them have other namespaces, but for those with a
    memory of their own.
    """
    made = [outermost]
    for above, level in itertools.pairwise(levels):
        made.append(_below(above, level, made[-1]))
    return made[1:]


def _below(above: Level, level: Level, around: Head) -> Head:
    """Return a nested checkpoint again, under the copy of the one above it."""
    old = level.head
    name, task_id, more = _called_as(above, level)
    before = f"{name}:{task_id}" + (f"|{more}" if more else "")
    own = f"{name}:{_task_again(above.head, around, task_id)}" + (f"|{more}" if more else "")
    ns = below(around.ns, own) if old.ns == below(above.head.ns, before) else old.ns
    at = below(around.origin.at or around.ns, own)
    new = replace(old, id=ids.checkpoint_id(around.id), ns=ns, parent_id=old.id, step=old.step + 1, source="fork",
                  created_at=clock.now(), metadata=around.metadata, passed=(), moved_at=0)  # fmt: skip
    new.parent_ns = None if ns == old.ns else old.ns
    parents = {**around.origin.parents, around.ns: around.id}
    new.origin = Origin(parents, at if at != ns else "", old.origin.branched(old.id, new.id).gaps)
    return new


def _task_again(old: Head, new: Head, task_id: str) -> str:
    for before, after in zip(old.due, new.due, strict=True):
        if before.id == task_id:
            return after.id
    raise ConfigError(
        f"Checkpoint {old.id!r} cannot be gone back into: the task around the nested graph was added to it by a Command with "
        f"`goto`; go back to a checkpoint of the outermost graph instead"
    )
