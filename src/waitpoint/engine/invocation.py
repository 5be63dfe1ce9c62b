"""One call of a graph, sorted out, and what opening it comes to."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from waitpoint import clock
from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    ThreadKey,
    ThreadRow,
)
from waitpoint.codec import Registry
from waitpoint.core.spec import GraphSpec
from waitpoint.engine import owner
from waitpoint.engine.breakpoints import Breakpoints
from waitpoint.engine.commands import Store
from waitpoint.engine.heads import Head, Origin
from waitpoint.engine.run import Run
from waitpoint.engine.scope import Surroundings
from waitpoint.engine.segment import Segment
from waitpoint.engine.tasks import Task
from waitpoint.errors import (
    ConfigError,
    NotFoundError,
)
from waitpoint.records import START, Durability, OnPending


@dataclass(slots=True, eq=False, repr=False)
class Invocation:
    """One call of invoke or stream, sorted out."""

    spec: GraphSpec
    registry: Registry
    input: Any
    around: Surroundings
    breakpoints: Breakpoints = field(default_factory=Breakpoints)
    saver: BaseCheckpointSaver | None = None
    key: ThreadKey | None = None
    checkpoint_id: str | None = None
    checkpoint_ns: str = ""  # of that checkpoint, if it belongs to a nested graph
    durability: Durability = "async"
    on_pending: OnPending = "refuse"
    modes: frozenset[str] = frozenset()
    recursion_limit: int = 10_000
    step_timeout: float | None = None
    debug: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)  # of every checkpoint of this run
    shown_ns: tuple[str, ...] = ()
    live: Any = None  # where parts of this run go while tasks run: the outermost consumer's

    lacks_context: bool = False  # the graph knows a context, and this call brings none
    origin: Origin | None = None  # of its first checkpoint; None: that of the checkpoint before it
    owner: str = ""
    met: tuple[Any, ...] | None = None  # the head and the open questions that a bare answer found at its first look

    def claim(self) -> tuple[str, float]:
        """Who claims the thread for this call, and until when."""
        if not self.owner:
            assert self.saver is not None
            self.owner = owner.claim(self.saver)
        return self.owner, clock.now() + owner.LEASE_SECONDS

    def output_keys(self, keys: str | Sequence[str]) -> None:
        """Show only these keys of the state; of one that is given as a string, the value itself."""
        wanted = (keys,) if isinstance(keys, str) else tuple(keys)
        for key in wanted:
            if key not in self.spec.channels:
                raise ConfigError(f"`output_keys` names {key!r}, which is no key of graph {self.spec.name!r}")
        shown = self.spec._replace(output_keys=wanted, shown_keys=wanted, is_bare=isinstance(keys, str))
        self.spec = shown._replace(make_state=None, make_output=None)


@dataclass(slots=True, eq=False, repr=False)
class Opened:
    """What an opening came to: a run, one that only shows where the thread rests, or (`wait_for`) someone else's run."""

    run: Run | None = None
    resting: bool = False
    wait_for: ThreadRow | None = None
    answer_later: Any = None  # an answer for the question that a fork is going to ask


Opening = Generator[Store, Any, Opened]


def raise_unknown_checkpoint(key: ThreadKey, checkpoint_id: str) -> None:
    """Refuse a checkpoint id that the thread does not have."""
    from_thread = f"thread {key.thread_id!r} of graph {key.graph!r}"
    raise NotFoundError(f"Unknown checkpoint {checkpoint_id!r} in {from_thread}; take ids from get_state_history()")


def claimed(call: Invocation, thread: ThreadRow | None, head: str | None, next_item: int | None) -> ThreadRow:
    """Return the thread's row once this call runs it."""
    at = clock.now()
    who, lease = call.claim()
    if thread is None:
        return ThreadRow(thread_key(call), "running", 1, 0, next_item or 0, head, who, lease, None, at, at)
    head = thread.head if head is None else head
    next_item = thread.next_item if next_item is None else next_item
    fence, seq, created_at = thread.fence + 1, thread.answer_seq, thread.created_at
    return ThreadRow(thread.key, "running", fence, seq, next_item, head, who, lease, None, created_at, at)


def run_at(call: Invocation, head: Head, segment: Segment) -> Run:
    """Return a run at a checkpoint, without tasks yet."""
    return run_of(call, head, segment, [])


def run_of(call: Invocation, head: Head, segment: Segment | None, tasks: list[Task]) -> Run:
    """Make a run at a checkpoint with these tasks."""
    around = call.around  # this call's alone
    around.recorder, around.registry = segment, call.registry
    run = Run(
        call.spec, call.registry, head, segment, around, call.breakpoints, call.modes, call.shown_ns, tasks=tasks,
        step_timeout=call.step_timeout, debug=call.debug, metadata=call.metadata,
    )  # fmt: skip
    entry = 1 if head.control.due == (START,) else 0
    run.step_limit = head.step + entry + call.recursion_limit
    return run


def thread_key(call: Invocation) -> ThreadKey:
    """Return the thread of a call that has one."""
    assert call.key is not None
    return call.key
