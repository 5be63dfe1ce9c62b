"""What a saver keeps, as rows, and the transitions that change them.

Rule: a thread changes only through the transitions below. Each is atomic, says what its writer believed, and raises a
typed conflict carrying what is true instead; then nothing was stored. Payloads are bytes made by the codec: a store
never decodes them. Times are UTC seconds. `ns` is a graph's namespace: "" for the root, "node:task_id" below, nested
parts joined by "|".

Five transitions suffice:
  Move     by someone who holds no fence: begin a run, take over an orphan, fork, update. Conditional on the thread row.
  Commit   by the runner: superstep, outcome, journal entry, rest. Conditional on the fence (a rest on `answer_seq` too).
  Settle   by an answerer: open questions become answered or withdrawn, all or none. Conditional on the questions.
  Record   by an execution: the outcome of its own journal entry, even with its fence gone. Conditional on its token.
  Cut      by whoever keeps house: history is taken away from a thread that nobody runs. Conditional on the thread row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from waitpoint.errors import ConflictError
from waitpoint.records import Row

Status = Literal["idle", "ready", "running", "waiting", "failed"]
Settled = Literal["answered", "withdrawn"]


class ThreadKey(NamedTuple):
    """A thread of one graph; another graph on the same thread id is another thread."""

    thread_id: str
    graph: str


@dataclass(slots=True, repr=False, eq=False)
class ThreadRow(Row):
    """A thread's own row. `fence` grows with each run, `answer_seq` with each settlement, `next_item` with each item."""

    key: ThreadKey
    status: Status
    fence: int
    answer_seq: int
    next_item: int
    head: str | None  # id of the newest root checkpoint
    owner: str | None  # who runs it: see waitpoint.engine.owner
    lease_until: float | None
    error: str | None  # of the failed step, as text
    created_at: float
    updated_at: float


@dataclass(slots=True, repr=False, eq=False)
class CheckpointRow(Row):
    """One checkpoint of one namespace; `body` holds control state and references to items."""

    ns: str
    id: str
    parent_id: str | None
    step: int
    source: str
    created_at: float
    body: bytes


@dataclass(slots=True, repr=False, eq=False)
class ItemRow(Row):
    """One stored value of a thread, written once and referred to by number."""

    seq: int
    data: bytes


@dataclass(slots=True, repr=False, eq=False)
class OutcomeRow(Row):
    """What the last attempt of a task came to; rewritten by the next attempt. Key: (ns, checkpoint_id, task_id).

    `answer_seq` is the thread's when the attempt read its answers. `status` "patch" is an update by `Command` that was
    laid over the checkpoint, in the order of `task_id`.
    """

    ns: str
    checkpoint_id: str
    task_id: str
    node: str
    status: Literal["done", "waiting", "failed", "patch"]
    answer_seq: int
    attempt: int
    at: float
    body: bytes


@dataclass(slots=True, repr=False, eq=False)
class JournalRow(Row):
    """One entry of a task's journal other than a question: a recorded step, or a permit (see interrupts/permits.py).

    Key: (ns, checkpoint_id, task_id, seq). `token` names the execution. A stored row that is done or raised is replaced
    only by one with its token or a later attempt; another one is left out and the stored row stays.
    """

    ns: str
    checkpoint_id: str
    task_id: str
    seq: int
    kind: Literal["step", "permit"]
    state: Literal["executing", "done", "raised", "not_happened"]
    attempt: int
    at: float
    token: str
    body: bytes


@dataclass(slots=True, repr=False, eq=False)
class QuestionRow(Row):
    """A question, which is also its task's journal entry number `seq`.

    `root_checkpoint` is the root's head when it was asked (equal to `checkpoint_id` for the root's own questions).
    `replaceable`: answered, but the body then raised before any effect, so another answer may take its place.
    `settle_seq` is the thread's `answer_seq` made by the settlement. `site` and `extra` are the engine's business.
    """

    id: str
    key: ThreadKey
    ns: str
    checkpoint_id: str
    root_checkpoint: str
    task_id: str
    seq: int
    node: str
    value: bytes
    schema: bytes | None
    digest: str
    qkey: str | None
    site: bytes
    extra: bytes
    asked_at: float
    status: Literal["open", "answered", "withdrawn"] = "open"
    replaceable: bool = False
    settled_at: float | None = None
    settle_seq: int | None = None
    by: str | None = None
    comment: str | None = None
    answer: bytes | None = None
    token: str | None = None
    reason: str | None = None

    @property
    def can_answer(self) -> bool:
        """Whether a person can (still) answer it."""
        return self.status == "open" or (self.status == "answered" and self.replaceable)


@dataclass(slots=True, repr=False, eq=False)
class EventRow(Row):
    """One line of a thread's record, append-only; the store gives `seq`. `ref` is the id it speaks of."""

    kind: str
    at: float
    ref: str = ""
    data: bytes = b""
    seq: int = 0


@dataclass(slots=True, eq=False)
class Writes:
    """Rows that a transition adds. `withdrawn` closes open questions: id -> reason. `reopened` takes an answer back."""

    checkpoints: Sequence[CheckpointRow] = ()
    items: Sequence[ItemRow] = ()
    outcomes: Sequence[OutcomeRow] = ()
    journal: Sequence[JournalRow] = ()
    questions: Sequence[QuestionRow] = ()
    withdrawn: Sequence[tuple[str, str]] = ()
    replaceable: Sequence[str] = ()  # answered questions that may be answered again
    final: Sequence[str] = ()  # answered questions that no longer may
    reopened: Sequence[str] = ()  # answered questions that are open again; the refused answer stays in an event
    events: Sequence[EventRow] = ()


# --- transitions ------------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Move:
    """Change a thread that nobody runs, if it is still as `believed` (None: it did not exist).

    Compared: fence, answer_seq, status, head and next_item. The stored row becomes `then` (its `fence` must be
    `believed.fence + 1`, or 1). Returns nothing. Raises `ThreadChanged`.
    """

    key: ThreadKey
    believed: ThreadRow | None
    then: ThreadRow
    writes: Writes = field(default_factory=Writes)
    durable: bool = True


@dataclass(slots=True, eq=False)
class Rest:
    """How a run comes to rest; refused if answers came that it has not read."""

    status: Status
    answer_seq: int
    error: str | None = None


@dataclass(slots=True, eq=False)
class Commit:
    """Add what the runner did, if `fence` is still the thread's. Returns nothing.

    `head` and `next_item` are stored when not None. With `rest` the thread also gets that status, loses its owner, and
    must still be at `rest.answer_seq`. Raises `FenceLost`, or `AnswersArrived` (fence fine, answer_seq moved).
    """

    key: ThreadKey
    fence: int
    writes: Writes
    at: float
    head: str | None = None
    next_item: int | None = None
    rest: Rest | None = None
    durable: bool = False


@dataclass(slots=True, repr=False, eq=False)
class Settlement(Row):
    """One question's answer or withdrawal."""

    id: str
    status: Settled
    at: float
    answer: bytes | None = None
    by: str | None = None
    comment: str | None = None
    token: str | None = None
    reason: str | None = None


@dataclass(slots=True, eq=False)
class Settle:
    """Settle questions of one thread, all or none, and make the thread ready. Always durable. Returns the ThreadRow.

    Each question must belong to `key` and be open (or, for an answer while nobody runs the thread, answered and
    replaceable). The thread's `answer_seq` grows by one and becomes the `settle_seq` of all. Status waiting, failed or
    idle becomes ready; with `claim` (owner and lease end) it becomes running under that owner with `fence + 1`, from
    ready too. Running stays. `head`, when not None, must be the thread's (a patch in `writes` belongs to it), and with
    outcomes in `writes` a running thread must have the fence that the writer saw (`believed_fence`: of a run that died).
    Raises `QuestionsChanged` with the rows of all named questions as they are now (missing ones left out), or
    `ThreadChanged`.
    """

    key: ThreadKey
    settlements: Sequence[Settlement]
    claim: tuple[str, float] | None = None
    head: str | None = None
    writes: Writes = field(default_factory=Writes)
    believed_fence: int = -1


@dataclass(slots=True, eq=False)
class Record:
    """Put the outcome of an execution in the place of its journal entry, whoever runs the thread now. Always durable.

    Returns whether it was stored: only if the stored entry of that key is still "executing" under the same token.
    """

    key: ThreadKey
    journal: JournalRow
    at: float


@dataclass(slots=True, eq=False)
class Cut:
    """Take history away from a thread at rest, if it is still as `believed`. Always durable. Returns nothing.

    Compared: what a `Move` compares. `checkpoints` (namespace and id) go with their outcomes, journal entries and
    questions, `items` by half-open ranges of numbers, `journal` entries by their key. The thread takes one item number
    that nothing has, so whoever read it before looks again, and does not build on what is gone. Events are added.

    With `head` the thread goes back to that checkpoint and is idle. With `whole` it goes altogether, its events too.
    Raises `ThreadChanged`; `StoreError` if the thread runs, or would lose its head.
    """

    key: ThreadKey
    believed: ThreadRow
    checkpoints: Sequence[tuple[str, str]] = ()
    items: Sequence[tuple[int, int]] = ()
    journal: Sequence[tuple[str, str, str, int]] = ()
    events: Sequence[EventRow] = ()
    head: str | None = None
    whole: bool = False


class ThreadChanged(ConflictError):  # noqa: N818 - names what happened
    """The thread is not as the writer believed; `thread` is its row now (None: it does not exist)."""

    code = "thread_changed"

    def __init__(self, message: str, *, thread: ThreadRow | None = None) -> None:
        super().__init__(message)
        self.thread = thread


class FenceLost(ThreadChanged):
    """Another run took this thread over; the present run must stop without writing anything more."""

    code = "fence_lost"


class AnswersArrived(ThreadChanged):
    """Answers came while the run worked; it must read them before it rests."""

    code = "answers_arrived"


class QuestionsChanged(ConflictError):  # noqa: N818 - names what happened
    """At least one question cannot be settled; `questions` are the rows as they are now."""

    code = "questions_changed"

    def __init__(self, message: str, *, questions: Sequence[QuestionRow] = (), thread: ThreadRow | None = None) -> None:
        super().__init__(message)
        self.questions = tuple(questions)
        self.thread = thread


# --- reads ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True, repr=False, eq=False)
class Loaded(Row):
    """A thread at one checkpoint of one namespace, read in one snapshot.

    `thread` is None if the thread does not exist, `checkpoint` if that namespace has none. `outcomes` and `journal` are
    those of the checkpoint, oldest first. `questions` are those whose `root_checkpoint` is the root checkpoint read
    (root namespace), or whose ns and checkpoint are those read (another namespace), by (asked_at, ns, task_id, seq).
    """

    thread: ThreadRow | None
    checkpoint: CheckpointRow | None
    outcomes: Sequence[OutcomeRow]
    journal: Sequence[JournalRow]
    questions: Sequence[QuestionRow]


@dataclass(slots=True, repr=False, eq=False)
class PendingFilter(Row):
    """Which questions `questions()` lists: by default all that can be answered, oldest first."""

    thread_id: str | None = None
    graph: str | None = None
    node: str | None = None
    ids: Sequence[str] | None = None
    answerable: bool = True  # False: all, settled ones too
    newest_first: bool = False
    limit: int | None = None
    offset: int = 0
    id_prefix: str | None = None  # how their ids begin


@dataclass(slots=True, repr=False, eq=False)
class Whole(Row):
    """All of a thread but its events, read in one snapshot. `items` are numbers; what hangs together is in order."""

    thread: ThreadRow
    checkpoints: Sequence[CheckpointRow]  # by (ns, id)
    items: Sequence[int]
    outcomes: Sequence[OutcomeRow]  # by (ns, checkpoint_id, task_id)
    journal: Sequence[JournalRow]  # by (ns, checkpoint_id, task_id, seq)
    questions: Sequence[QuestionRow]  # by (asked_at, ns, task_id, seq, id)


@dataclass(slots=True, repr=False, eq=False)
class Pruned(Row):
    """What was taken away: from how many threads, how many of these wholly, and how many checkpoints and values.

    `running` are the threads that were left alone since a run has them.
    """

    threads: int = 0
    deleted: int = 0
    checkpoints: int = 0
    items: int = 0
    running: tuple[ThreadKey, ...] = ()
