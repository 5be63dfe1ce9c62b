"""The journal of one attempt of a task: what earlier attempts asked and did, and what this one adds.

`interrupt()` and `step()` find the journal of the running task here. The engine makes it, seals it when the attempt ends
and stores what it collected.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Protocol

from waitpoint import canonical, clock, codec, ids, runtime
from waitpoint.checkpoint.base import JournalRow, QuestionRow, ThreadKey
from waitpoint.codec import Registry
from waitpoint.errors import (
    CheckpointerRequiredError,
    GraphInterrupt,
    PayloadError,
    QuestionWithdrawn,
    SealedAttemptError,
    UnknownTagError,
)
from waitpoint.interrupts import site as sites
from waitpoint.records import Interrupt

DRIFTS_ALLOWED = 3


_REFUSES_AN_ANSWER = "__waitpoint_refuses_an_answer__"


def refuses_an_answer(error: BaseException | None) -> bool:
    """Whether an error, or one it came of, is the refusal of an answer, here or in a graph that was called from here.

    Taken for an ordinary failure and handled, it would use the answer up; raised, it opens the question again.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if getattr(error, _REFUSES_AN_ANSWER, False):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


class TaskIdentity(NamedTuple):
    """Which task of which checkpoint this is. `path` is the chain of node names from the root graph to it.

    `at` names the task's graph by the tasks in which it was called, where `ns`, which names its state, does not.
    """

    key: ThreadKey
    ns: str
    checkpoint_id: str
    root_checkpoint: str
    task_id: str
    node: str
    path: tuple[str, ...]
    at: str = ""


class Recorder(Protocol):
    """What the engine lets a journal store while the task runs. Both calls are durable when they return.

    `blocking` tells whether they may wait for a disk or another machine, and so belong in a worker thread.
    """

    blocking: bool

    def record(self, *rows: JournalRow) -> None:
        """Store entries under the run's fence, and the task's base checkpoint before them if that is not stored yet."""

    def entry(self, ns: str, checkpoint_id: str, task_id: str, seq: int) -> JournalRow | None:
        """Read an entry of the thread as it is stored now."""

    def conclude(self, row: JournalRow) -> bool:
        """Store the outcome of the execution named by the row's token; False if that execution no longer counts."""


@dataclass(slots=True, eq=False, repr=False)
class Asked:
    """A question in this attempt's eyes. `used`: reached in this attempt. `taken`: its answer was given to the body."""

    row: QuestionRow
    site: sites.Site
    match: str
    drift: int = 0
    strand: str = ""  # the path of the strand that asks it
    new: bool = False
    used: bool = False
    taken: bool = False

    @property
    def is_gone(self) -> bool:
        """Whether an attempt did not ask it (nobody withdrew it): asked once more, it is another question."""
        return self.row.status == "withdrawn" and self.row.settle_seq is None

    @classmethod
    def of(cls, row: QuestionRow) -> Asked:
        """Decode a stored question."""
        extra = codec.loads(row.extra)
        frames = tuple(sites.Frame(*frame) for frame in codec.loads(row.site))
        return cls(row, frames, extra.get("match", row.digest), extra.get("drift", 0), extra.get("strand", ""))


@dataclass(slots=True, eq=False, repr=False)
class Conclusion:
    """What an attempt's end adds to the record, and what it says of the questions that were there."""

    asked: list[QuestionRow] = field(default_factory=list)
    open: list[QuestionRow] = field(default_factory=list)  # reached and not answered, new ones too
    unreached: list[QuestionRow] = field(default_factory=list)  # open before, not asked again
    taken: list[QuestionRow] = field(default_factory=list)
    last_effect: float = -1  # journal position of the last effect, to tell which answers can still be replaced
    drifted: Asked | None = None
    # Exceptions that the body went on after, and, if it paused, rights that it was given and has not used.
    entries: list[JournalRow] = field(default_factory=list)
    known: list[JournalRow] = field(default_factory=list)  # all entries of the task, for its next attempt


@dataclass(slots=True, eq=False, repr=False)
class Question:
    """One call of `interrupt()`: payload, where, and how it may be recognised.

    `form` names how answers are read before their schema is checked (see `interrupts/forms.py`), `form_data` is what
    that needs beside the payload.
    """

    payload: Any
    key: str | None
    ignore: tuple[str, ...]
    schema: dict[str, Any] | None
    form: str | None = None
    form_data: dict[str, Any] | None = None


class Journal:
    """The record of one attempt. Safe to use from several threads of that attempt."""

    path: ClassVar[str] = ""  # as the outermost strand of the attempt: the body itself

    def __init__(
        self,
        task: TaskIdentity,
        attempt: int,
        recorder: Recorder | None,
        questions: Sequence[QuestionRow] = (),
        entries: Sequence[JournalRow] = (),
    ) -> None:
        self.task = task
        self.attempt = attempt
        self.recorder = recorder
        self.registry: Registry | None = None
        self.pauses: list[str] = []  # where the body was told to pause, for the swallow check
        self.crew: Any = None  # the tasks that the body started; the engine ends the attempt with them
        self.raised: dict[int, BaseException] = {}  # exceptions of tasks, by the position of their entries
        self.blamed: list[JournalRow] = []
        self.waiting: list[Interrupt[Any]] = []  # what those pauses ask
        self.misfit: tuple[str, BaseException] | None = None  # a question whose answer its class refused, and how
        self.refusal: PayloadError | None = None  # of a question that could not be told from another
        self.sealed = False
        self.outer: Journal | None = None  # of the attempt in which the graph of this task was called
        self.span: Any = None  # of the present try, if it is traced
        self._rows = questions
        self._asked: list[Asked] | None = None
        self.entries = {row.seq: row for row in entries}
        self.lock = threading.RLock()
        self.children = 0  # graphs called outside of effects
        self.called: set[str] = set()  # graphs called, by their number
        self.calls: dict[str, int] = {}  # how often each function was stepped in this attempt
        self.notes: dict[Any, Any] = {}  # what layers above remember for the length of this attempt
        self.matched: set[int] = set()  # entries that a step of this attempt was answered from
        self._loose: dict[int, JournalRow] | None = None
        self.bodies: dict[int, tuple[JournalRow, dict[str, Any]]] = {}  # of entries, decoded

    # --- questions ---

    @property
    def asked(self) -> list[Asked]:
        """The task's questions, decoded when first needed."""
        if self._asked is None:
            self._asked = [Asked.of(row) for row in self._rows]
        return self._asked

    def next_seq(self) -> int:
        """Return the position of the next entry; questions and other entries share one count."""
        last = max(self.entries, default=-1)
        return max([last, *(a.row.seq for a in self.asked)], default=-1) + 1

    def ask(self, question: Question) -> Asked:
        """Find the stored question that this call is, or record a new one.

        Raises `GraphInterrupt` while it is open, `QuestionWithdrawn` if it was withdrawn.
        """
        site, strand = sites.here(), runtime.strand_of(self)
        digest = canonical.digest(question.payload)
        match = canonical.digest(question.payload, ignore=question.ignore) if question.ignore else digest
        with self.lock:
            self.check_recorded("for a decision")
            self.check_open("ask a question")
            path = "" if strand is None else strand.path
            found = self._find(site, match, question.key, path)
            if found is None:
                found = self._new(question, site, digest, match, path)
            found.used = True
            if strand is not None:
                strand.reached.append(found)
        row = found.row
        if row.status == "open":
            raise self.pause([_interrupt(row, question)], sites.text(site))
        found.taken = True
        if row.status == "withdrawn":
            raise QuestionWithdrawn(
                f"The question {row.id!r} was withdrawn: {row.reason or 'no reason given'}; catch QuestionWithdrawn in "
                f"node {self.task.node!r} to go on without an answer",
                interrupt_id=row.id,
                reason=row.reason or "",
            )
        return found

    def read(self, data: bytes, what: str, registry: Registry | None = None) -> Any:
        """Decode what is on record, for the body. Raises `UnknownTagError` if it is of a type not known here."""
        before = codec.made[0]
        value = codec.loads(data, registry or self.registry)
        if codec.made[0] != before:
            for path, unknown in codec.find_unknown(value, what):
                raise UnknownTagError(
                    f"Node {self.task.node!r} needs {path!r}, which is of type {unknown.tag!r} that this process does not "
                    f"know; register the class with waitpoint.codec.register(..., tag={unknown.tag!r}), then continue the "
                    f"thread",
                    tag=unknown.tag,
                    path=path,
                )
        return value

    def pause(self, interrupts: list[Interrupt[Any]], place: str) -> GraphInterrupt:
        """Note that the body is being stopped here, and make the exception that stops it."""
        (runtime.strand_of(self) or self).pauses.append(place)
        self.waiting += interrupts
        return GraphInterrupt(interrupts)

    @property
    def must_end(self) -> bool:
        """Whether the body was told to stop, whatever it made of that."""
        return bool(self.pauses) or self.misfit is not None or self.refusal is not None

    def refuse(self, question_id: str, error: Exception) -> None:
        """Note that the body could not take an answer, which opens the question again; the error is then to be raised."""
        self.misfit = (question_id, error)
        setattr(error, _REFUSES_AN_ANSWER, True)

    def check_recorded(self, what: str) -> None:
        """Refuse to ask where no answer could be recorded."""
        if self.recorder is None:
            raise CheckpointerRequiredError(
                f"Called {what} in node {self.task.node!r} of a graph without a checkpointer, so nobody could ever answer; "
                f"compile the graph with one, for instance compile(checkpointer=InMemorySaver())"
            )

    def check_open(self, what: str) -> None:
        """Refuse to ask or act for an attempt that has ended."""
        journal: Journal | None = self
        while journal is not None:
            if journal.sealed:
                raise SealedAttemptError(
                    f"Cannot {what} in node {journal.task.node!r}: its attempt has ended, and this coroutine or thread "
                    f"outlived it; await or join it inside the node"
                )
            journal = journal.outer

    def loose(self) -> Collection[JournalRow]:
        """Return the entries of effects that no call of this attempt has been matched with, in their order."""
        if self._loose is None:
            rows = sorted(self.entries.items())
            self._loose = {seq: row for seq, row in rows if row.kind == "step" and seq not in self.matched}
        return self._loose.values()

    def match(self, seq: int) -> None:
        """Note that a call of this attempt has this entry."""
        self.matched.add(seq)
        if self._loose is not None:
            self._loose.pop(seq, None)

    def body(self, row: JournalRow) -> dict[str, Any]:
        """Return what an entry holds, decoded once."""
        known = self.bodies.get(row.seq)
        if known is None or known[0] is not row:
            known = self.bodies[row.seq] = row, codec.loads(row.body)
        return known[1]

    def try_again(self, strand: runtime.Strand) -> None:
        """Let a strand run from its start again: what it reached is to be reached again."""
        with self.lock:
            for asked in strand.reached:
                asked.used = False
            strand.reached, strand.crew, self._loose = [], None, None
            known = {seq: self.entries[seq] for seq in self.matched if seq in self.entries}
            self.matched -= {seq for seq, row in known.items() if self.body(row).get("within") == strand.path}
            for name in [name for name in self.calls if name.startswith(f"{strand.path}/")]:
                del self.calls[name]

    def blame(self, error: BaseException | None) -> None:
        """Make tries that came to nothing of the tasks whose exception a body ended with.

        So they run again when the body does, instead of failing it for ever by what is on record.
        """
        with self.lock:
            blamed = [seq for seq, raised in self.raised.items() if seq in self.entries and _came_of(error, raised)]
            rows = [replace(self.entries[seq], state="not_happened") for seq in blamed]
            self.entries.update((row.seq, row) for row in rows)
            self.blamed += rows

    def _find(self, site: sites.Site, match: str, key: str | None, strand: str) -> Asked | None:
        unused = [a for a in self.asked if not a.used and not a.is_gone and a.strand == strand]
        equal = [a for a in unused if a.match == match and a.row.qkey == key]
        for candidate in equal:
            if sites.same(candidate.site, site):
                return candidate
        return next((a for a in equal if sites.is_stale(a.site)), None)

    def _new(self, question: Question, site: sites.Site, digest: str, match: str, strand: str) -> Asked:
        task = self.task
        for other in self.asked:
            is_open = other.used and other.row.status == "open" and other.strand == strand
            if is_open and other.match == match and other.row.qkey == question.key:
                self.refusal = PayloadError(
                    f"Node {task.node!r} asks the same question twice at once: a reviewer could not tell the two apart; "
                    f"give each a `key`, or say in the payload what it is about"
                )
                raise self.refusal
        seq = self.next_seq()
        extra: dict[str, Any] = {"path": task.path, "match": match} if match != digest else {"path": task.path}
        if strand:
            extra["strand"] = strand
        if task.at:
            extra["called_in"] = task.at
        if self.span is not None and (traceparent := self.span.traceparent):
            extra["traceparent"] = traceparent
        if question.form is not None:
            extra |= {"form": question.form, "form_data": question.form_data or {}}
        row = QuestionRow(
            id=ids.question_id(task.key, task.task_id, seq, digest),
            key=task.key,
            ns=task.ns,
            checkpoint_id=task.checkpoint_id,
            root_checkpoint=task.root_checkpoint,
            task_id=task.task_id,
            seq=seq,
            node=task.node,
            value=codec.dumps(question.payload, self.registry, path="payload"),
            schema=None if question.schema is None else codec.dumps(question.schema),
            digest=digest,
            qkey=question.key,
            site=codec.dumps_plain([list(frame) for frame in site]),
            extra=codec.dumps_plain(extra),
            asked_at=clock.now(),
        )
        asked = Asked(row, site, match, strand=strand, new=True)
        self.asked.append(asked)
        return asked

    # --- the end of the attempt ---

    def conclude(self, answers_read_before: int, *, ended: bool, error: BaseException | None = None) -> Conclusion:
        """Seal the attempt and say what it changes.

        `answers_read_before` is the thread's `answer_seq` at the attempt before this one; answers given since and not
        taken, at the site of a new question, are drift. `ended`: the body returned or paused, rather than failed with
        `error`.
        """
        with self.lock:
            self.sealed = True
            if not (self._asked or self._rows or self.entries or self.called):
                return Conclusion()
            if self.raised and not ended:
                self.blame(error)
            end = Conclusion(last_effect=self._last_effect(), entries=self.blamed)
            if ended:
                end.entries += [_gone_on(r) for r in self.entries.values() if self._is_fresh_exception(r)]
            if self.pauses:
                end.entries += [r for r in self.entries.values() if r.kind == "permit" and r.attempt == self.attempt]
            end.known = list((self.entries | {r.seq: r for r in end.entries}).values())
            if self._asked is None and not self._rows:
                return end
            for a in self.asked:
                if a.new:
                    end.asked.append(self._marked_if_drifted(a, answers_read_before, end))
                if a.row.status == "open":
                    if a.used:
                        end.open.append(a.row)
                    elif ended:
                        end.unreached.append(a.row)
                elif a.taken:
                    end.taken.append(a.row)
        return end

    def _last_effect(self) -> float:
        if self.called:
            return float("inf")  # what a child graph did may lie after any answer
        effects = [r for r in self.entries.values() if r.kind == "step" and r.state != "not_happened"]
        last = max((r.seq for r in effects), default=-1)
        if any(a.strand for a in self._asked or ()):
            # What a task asked comes after its own place in the record, and is final once the task has ended.
            done = {self.body(r).get("task") for r in effects if r.state != "executing"}
            last = max([last, *(a.row.seq for a in self.asked if a.strand in done)])
        return last

    def _is_fresh_exception(self, row: JournalRow) -> bool:
        return row.state == "raised" and row.attempt == self.attempt

    def _marked_if_drifted(self, new: Asked, answers_read_before: int, end: Conclusion) -> QuestionRow:
        for old in self.asked:
            unused = old.row.status == "answered" and not old.used and (old.row.settle_seq or 0) > answers_read_before
            if unused and old.strand == new.strand and sites.same(old.site, new.site):
                new.drift = old.drift + 1
                paths = canonical.diff_paths(*(codec.loads(q.row.value, self.registry) for q in (old, new)))
                extra = codec.loads(new.row.extra)
                extra |= {"supersedes": old.row.id, "changed_paths": list(paths), "drift": new.drift}
                new.row.extra = codec.dumps_plain(extra)
                if new.drift >= DRIFTS_ALLOWED:
                    end.drifted = new
                break
        return new.row


def _came_of(error: BaseException | None, raised: BaseException) -> bool:
    """Whether an error is this exception, was raised from it, or is a group that has it."""
    while error is not None and error is not raised:
        if isinstance(error, BaseExceptionGroup) and any(_came_of(e, raised) for e in error.exceptions):
            return True
        error = error.__cause__
    return error is not None


def _gone_on(row: JournalRow) -> JournalRow:
    return replace(row, body=codec.dumps(codec.loads(row.body) | {"went_on": True}))


def _interrupt(row: QuestionRow, question: Question) -> Interrupt[Any]:
    return Interrupt(question.payload, row.id, response_schema=question.schema)


def running(what: str, *, recorded: bool = True) -> Journal:
    """Return the journal of the task that runs here, for `what` (named in the error).

    Raises:
        OutsideGraphError: no node is running here.
        CheckpointerRequiredError: `recorded`, and the graph has no checkpointer.
    """
    runtime.scope(what)
    journal: Journal = runtime.attempt.get()
    if recorded:
        journal.check_recorded(what)
    return journal
