"""Which tasks a checkpoint asks for: pure arithmetic from control state to due tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from waitpoint import ids
from waitpoint.records import END, START, Send


@dataclass(slots=True, eq=False)
class Control:
    """What a checkpoint says of the future: what is due and how far the joins have come. `writers` made it.

    `deferred` nodes run when nothing else is due. `joins` maps a join's name to the sources seen so far.
    """

    due: tuple[str, ...] = ()
    sends: tuple[Send, ...] = ()
    deferred: tuple[str, ...] = ()
    joins: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    writers: tuple[str, ...] = ()

    @property
    def finished(self) -> bool:
        """Whether nothing is due."""
        return not (self.due or self.sends or self.deferred)


@dataclass(slots=True, eq=False)
class Due:
    """A task to be run: a node reached by an edge, or by a `Send` (then `send` holds its input)."""

    id: str
    name: str
    path: tuple[Any, ...]
    triggers: tuple[str, ...]
    send: Send | None = None


def due_tasks(checkpoint_id: str, ns: str, control: Control, extra: Sequence[str | Send] = ()) -> list[Due]:
    """Return the tasks of a checkpoint in their fixed order: by edge (sorted by name), then by `Send` as sent.

    `extra` are places that a command added to the checkpoint. Ids contain the checkpoint, so that a fork's tasks are
    other tasks.
    """
    if len(control.due) == 1 and not control.sends and not extra:
        return [_pulled(checkpoint_id, ns, control.due[0])]
    names = set(control.due)
    sends = list(control.sends)
    for place in extra:
        if isinstance(place, Send):
            sends.append(place)
        elif place != END:
            names.add(place)
    if not names and not sends:
        names = set(control.deferred)
    tasks = [_pulled(checkpoint_id, ns, name) for name in sorted(names)]
    if sends:
        id_of = ids.family(checkpoint_id, ns, "push")
        tasks.extend([_pushed(id_of(send.node, i), i, send) for i, send in enumerate(sends)])
    return tasks


def _pulled(checkpoint_id: str, ns: str, name: str) -> Due:
    trigger = name if name == START else f"branch:to:{name}"
    return Due(ids.hashed(checkpoint_id, ns, "pull", name), name, ("__pregel_pull", name), (trigger,))


def _pushed(task_id: str, index: int, send: Send) -> Due:
    return Due(task_id, send.node, ("__pregel_push", index), ("__pregel_push",), send)
