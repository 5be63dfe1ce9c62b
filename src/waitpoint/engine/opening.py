"""Opening a run: from an input, a command or nothing to a claimed thread at a checkpoint.

Generators of store commands, like the loop. Each ends in a `Run`, or says whose rest to await.
"""

from __future__ import annotations

from waitpoint import codec
from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    Loaded,
    ThreadChanged,
    ThreadKey,
    ThreadRow,
)
from waitpoint.engine import recall
from waitpoint.engine.commanding import commanded, went_inside
from waitpoint.engine.commands import Store
from waitpoint.engine.descent import Level, descend, is_present
from waitpoint.engine.forking import forked
from waitpoint.engine.invocation import Invocation, Opened, Opening, raise_unknown_checkpoint
from waitpoint.engine.resuming import continued
from waitpoint.engine.starting import given, unsaved
from waitpoint.errors import EmptyInputError, UsageError
from waitpoint.records import Command


def open_run(call: Invocation) -> Opening:
    """Open a root run."""
    if call.saver is None:
        return Opened(unsaved(call))
    while True:
        try:
            return (yield from _open(call, call.saver))
        except ThreadChanged:
            continue  # someone was first; look again and decide anew


def _open(call: Invocation, saver: BaseCheckpointSaver) -> Opening:
    assert call.key is not None
    loaded: Loaded = yield Store(recall.load, (saver, call.key))
    thread = loaded.thread
    base = loaded
    if call.checkpoint_id is not None and call.checkpoint_ns and thread is not None:
        levels: list[Level] = yield Store(
            descend, (saver, call.key, (call.spec, call.registry), call.checkpoint_ns, call.checkpoint_id)
        )
        if not (yield Store(is_present, (saver, call.key, thread, levels))):
            return (yield from went_inside(call, saver, loaded, levels))
        call.checkpoint_id = None  # it is where the thread stands
    if call.checkpoint_id is not None and thread is not None and call.checkpoint_id != thread.head:
        base = yield Store(saver.load, (call.key, "", call.checkpoint_id))
        if base.checkpoint is None:
            raise_unknown_checkpoint(call.key, call.checkpoint_id)
    forking = base is not loaded
    if call.lacks_context and not forking and _goes_on(call, thread):
        yield Store(_check_context, (saver, call.key))
    if isinstance(call.input, Command):
        return (yield from commanded(call, saver, loaded, base, call.input))
    if call.input is not None:
        return (yield from given(call, saver, loaded, base))
    if thread is None or loaded.checkpoint is None:
        raise EmptyInputError(
            f"Thread {call.key.thread_id!r} of graph {call.key.graph!r} has never run, so None has nothing to continue; "
            f"give an input"
        )
    if forking:
        return (yield from forked(call, saver, loaded, base))
    return (yield from continued(call, saver, loaded))


def _goes_on(call: Invocation, thread: ThreadRow | None) -> bool:
    """Whether the call goes on with a run that another call began."""
    if thread is None or thread.status == "idle":
        return False
    if isinstance(call.input, Command):
        return call.input.has_resume
    return call.input is None and thread.status != "waiting"


def _check_context(saver: BaseCheckpointSaver, key: ThreadKey) -> None:
    """Refuse to go on without a context where the run was begun with one: it would be None, and nobody would notice."""
    begun = [codec.loads(e.data) if e.data else {} for e in saver.events(key) if e.kind == "started"]
    if begun and (name := begun[-1].get("context")):
        raise UsageError(
            f"The run of thread {key.thread_id!r} of graph {key.graph!r} was begun with a context ({name}), and contexts are "
            f"not stored; pass `context` again to go on with it"
        )
