"""One call of a graph from opening to result: the steps that a driver obeys, and what the caller gets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from waitpoint.checkpoint.base import BaseCheckpointSaver, Loaded, PendingFilter, QuestionRow, Settle, ThreadRow
from waitpoint.core.names import UNNAMED
from waitpoint.engine import answers, detailing, opening, owner, resuming, typed
from waitpoint.engine.children import Parent, open_child
from waitpoint.engine.commands import Emit, Sleep, Start, Steps, Stopped, Store
from waitpoint.engine.invocation import Invocation, Opened
from waitpoint.engine.loop import supersteps
from waitpoint.engine.questions import answerable
from waitpoint.engine.run import Run
from waitpoint.engine.tracing import begun, traced
from waitpoint.errors import GraphDrained, NodeFailedError, NotFoundError, ParentCommand, UnknownInterruptError
from waitpoint.records import INTERRUPT

POLL_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1)


@dataclass(slots=True, eq=False, repr=False)
class Session:
    """A call of a graph. `wait` False: if another run has the thread, return at once instead of awaiting its rest.

    `is_typed`: the result is a `GraphOutput`.
    """

    call: Invocation
    parent: Parent | None = None
    wait: bool = True
    is_typed: bool = False
    run: Run | None = field(default=None)

    def steps(self) -> Steps:
        """Open and run; afterwards `result` has the outcome."""
        try:
            yield from self._told("started")
            steps = self._steps() if self.parent is None else _within(self.parent, self._steps())
            self.call.around.tracing = begun(self.call, inner=self.parent is not None)
            yield from steps if self.call.around.tracing is None else traced(self.call, steps, lambda: self.run)
            yield from self._told("ended")
        except Stopped as stop:
            yield from self._given_back()
            raise stop.error from None
        except GeneratorExit:
            raise
        except BaseException as error:
            yield from self._given_back()
            yield from self._told("ended", error)
            raise
        finally:
            if self.call.owner:
                owner.release(self.call.owner)
            if self.parent is not None and self.parent.remembers and self.parent.segment is not None:
                self.parent.segment.let_go(self.parent.ns, self.parent.origin)

    def _told(self, when: Literal["started", "ended"], error: BaseException | None = None) -> Iterable[Emit]:
        """Tell an event stream of a nested graph that starts or ends."""
        call = self.call
        if self.parent is None or "lifecycle" not in call.modes:
            return
        told: dict[str, Any] = {"event": "started"}
        if when == "started":
            task = self.parent.journal.task
            told["graph_name"] = task.node if call.spec.name == UNNAMED else call.spec.name
            told["trigger_call_id"] = task.task_id
        elif isinstance(error, ParentCommand) or (
            error is None and self.run is not None and self.run.end == "finished"
        ):
            told["event"] = "completed"
        elif error is None and self.run is not None:
            told.update(event="interrupted", interrupts=self.run.interrupts())
        elif isinstance(error, GraphDrained):
            told["event"] = "drained"
        else:
            told.update(event="failed", error=str(error))
        yield Emit(call.shown_ns, "lifecycle", told)

    def _given_back(self) -> Steps:
        """Whatever ended this call before its rest, leave the thread ready for whoever comes next."""
        call = self.call
        if call.owner and call.saver is not None and call.key is not None:
            try:
                yield Store(owner.give_back, (call.saver, call.key, call.owner))
            except Exception:  # noqa: BLE001 - the store fails, and its first error is what the caller hears of
                owner.give_back_later(call.saver, call.key, call.owner)

    def _steps(self) -> Steps:
        opened: Opened = yield from self._open()
        while opened.wait_for is not None and self.wait:
            opened = yield from self._awaited()
        if opened.run is None:
            opened = yield from self._look()
        assert opened.run is not None
        self.run = opened.run
        if self.call.around.tracing is not None:
            self.call.around.tracing.opened(opened.run)
        if opened.resting:
            yield from self._show_rest(opened.run)
        else:
            yield from supersteps(opened.run)
            self._remember(opened.run)
            if opened.answer_later is not None:
                yield from self._answer_fork(opened.run, *opened.answer_later)

    def _remember(self, run: Run) -> None:
        """Keep where a graph with a memory ended, for its next call, if its steps are not stored before the run rests."""
        parent, segment = self.parent, run.segment
        if parent is not None and parent.remembers and segment is not None and run.end == "finished":
            segment.remember(run.head)

    def result(self) -> Any:
        """Return what `invoke` returns: the output, with the open questions if the run waits."""
        run = self.run
        assert run is not None
        if self.is_typed:
            return typed.output_of(run)
        shown, interrupts = run.output(), run.interrupts()
        if not interrupts:
            return shown
        if self.call.spec.is_function:
            return {INTERRUPT: list(interrupts)}
        return {**(shown if isinstance(shown, dict) else {}), INTERRUPT: list(interrupts)}

    def saver(self) -> BaseCheckpointSaver | None:
        """Return the saver that this call's transitions go to."""
        if self.parent is not None:
            return None if self.parent.segment is None else self.parent.segment.saver
        return self.call.saver

    def _open(self) -> Any:
        parent = self.parent
        if parent is None:
            return (yield from opening.open_run(self.call))
        if parent.segment is None:
            return (yield from opening.open_run(self.call))
        return (yield from open_child(self.call, parent))

    def _show_rest(self, run: Run) -> Steps:
        interrupts = run.interrupts()
        shown = None if interrupts and run.spec.is_function else run.part(run.visible())
        if "values" in run.modes:
            extra = {INTERRUPT: interrupts} if interrupts else {}
            yield Emit(run.shown_ns, "values", {**shown, **extra} if isinstance(shown, dict) else extra or shown)
        yield from detailing.resting(run)
        if "updates" in run.modes and interrupts:
            yield Emit(run.shown_ns, "updates", {INTERRUPT: interrupts})

    # --- another run has the thread ---

    def _awaited(self) -> Any:
        """Wait, holding no connection, until the thread rests; take over if its owner dies."""
        saver, key = self._store()
        polls = 0
        while True:
            thread: ThreadRow | None = yield Store(saver.thread, (key,))
            if thread is None or thread.status != "running":
                break
            if owner.is_dead(thread):
                break
            yield Sleep(POLL_SECONDS[min(polls, len(POLL_SECONDS) - 1)])
            polls += 1
        self.call.input = None
        self.call.checkpoint_id = None
        if thread is not None and thread.status in ("ready", "running"):
            return (yield from opening.open_run(self.call))
        if thread is not None and thread.status == "failed":
            raise NodeFailedError(
                f"Thread {key.thread_id!r} of graph {key.graph!r} failed in the run that took this answer: {thread.error}; "
                f"mend the cause and continue with invoke(None)",
                error=thread.error or "",
            )
        return Opened()

    def _look(self) -> Any:
        """Return the thread's state as it is, without running anything."""
        saver, key = self._store()
        loaded: Loaded = yield Store(saver.load, (key,))
        if loaded.checkpoint is None:
            raise NotFoundError(
                f"Thread {key.thread_id!r} of graph {key.graph!r} is not there any more - it was deleted while this call "
                f"waited for its rest; give an input to begin anew"
            )
        run = yield from resuming.looked(self.call, saver, loaded)
        return Opened(resuming.at_rest(run), resting=True)

    def _store(self) -> tuple[BaseCheckpointSaver, Any]:
        assert self.call.saver is not None
        assert self.call.key is not None
        return self.call.saver, self.call.key

    # --- an answer at an old checkpoint ---

    def _answer_fork(self, run: Run, resume: Any, old: Sequence[QuestionRow]) -> Steps:
        """Give the answer to the question that the fork asked in place of the old one, then go on."""
        saver, key = self._store()
        asked: list[QuestionRow] = yield Store(saver.questions, (PendingFilter(key.thread_id, key.graph),))
        mapped = _moved_to_fork(resume, old, asked)
        head = run.head.id
        prepared = yield Store(answers.prepare, (mapped, answerable(asked), saver, key, self.call.registry))
        change = Settle(key, prepared.settlements, self.call.claim(), head)
        row = yield Store(answers.settle, (saver, change, self.call.around.tracing))
        won = row.owner == self.call.owner
        self.call.input, self.call.checkpoint_id = None, None
        opened: Opened = yield from (resuming.answered(self.call, saver, row) if won else opening.open_run(self.call))
        if opened.run is not None:
            self.run = opened.run
            if not opened.resting:
                yield from supersteps(opened.run)


def _within(parent: Parent, steps: Steps) -> Steps:
    """Stop a nested graph where the attempt that called it has ended without awaiting it."""
    reply: Any = None
    failure: BaseException | None = None
    while True:
        try:
            command = steps.send(reply) if failure is None else steps.throw(failure)
        except StopIteration:
            return
        reply, failure = None, None
        try:
            if isinstance(command, Start):
                parent.journal.check_open("start a node of the graph called")
            elif isinstance(command, Store) and parent.segment is not None:
                command = Store(parent.segment.during, (parent.journal, command.call, command.args))
            reply = yield command
        except GeneratorExit:
            steps.close()
            raise
        except BaseException as error:  # noqa: BLE001 - the steps decide what it means
            failure = error


def _moved_to_fork(resume: Any, old: Sequence[QuestionRow], asked: Sequence[QuestionRow]) -> Any:
    """Read an answer to questions of an old checkpoint as one to the equal questions that a fork asked."""
    digests = {(q.node, q.digest): q.id for q in asked}
    if not answers.is_map(resume):
        equal = [digests[(q.node, q.digest)] for q in old if (q.node, q.digest) in digests]
        if len(set(equal)) == 1 and len(asked) == 1:
            return {equal[0]: resume}
        if len(asked) > 1:
            return resume  # refused as ambiguous
        raise UnknownInterruptError(
            "The checkpoint was run again, and what it asked is not what it had asked before; the answer was not stored",
            pending_ids=[q.id for q in asked],
        )
    by_id = {q.id: q for q in old}
    return {
        (digests.get((by_id[k].node, by_id[k].digest), k) if k in by_id else k): v for k, v in resume.items()
    }  # fmt: skip
