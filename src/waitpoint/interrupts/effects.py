"""Recorded effects: run once, kept with their result, found again on replay, never silently repeated after a crash.

`step()` makes an effect of a function, an agent's gate one of a tool call. An effect is recognised by what it calls, the
digest of its arguments and its occurrence, or by its `key`. Between the effect and its record lies a window in which a
crash leaves it unknown whether it happened; `in_doubt` says what then.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar, cast

from waitpoint import clock, codec, ids, runtime, threads
from waitpoint.checkpoint.base import JournalRow
from waitpoint.errors import (
    GraphBubbleUp,
    PermitUsedError,
    ReplayMismatch,
    StepInDoubtError,
    UnstorableValueError,
    UsageError,
)
from waitpoint.interrupts import raised
from waitpoint.interrupts import site as sites
from waitpoint.interrupts.journal import Journal, Question
from waitpoint.records import Happened, NotHappened

T = TypeVar("T")
Probe = Callable[[str, dict[str, Any]], Happened | NotHappened | None]
InDoubt = Literal["rerun", "ask"] | Probe

IN_DOUBT_ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {"type": {"enum": ["happened", "not_happened", "run_again", "stop"]}, "result": {}},
    "required": ["type"],
    "additionalProperties": False,
}


@dataclass(slots=True, eq=False, repr=False)
class Effect:
    """One call of an effect, as it is recognised and shown. `note` is kept with its record."""

    function: str
    code: sites.Frame | None  # two lambdas of one place share a name, so what they do tells them apart
    digest: str
    key: str | None
    ordinal: int  # among this function's calls in the task, counted at the call
    args: dict[str, Any]
    in_doubt: InDoubt
    idempotency_key: str
    kind: Literal["step", "tool", "task"] = "step"
    note: Mapping[str, Any] = field(default_factory=dict)
    permits: tuple[JournalRow, ...] = ()  # rights that this execution uses up, recorded in the same commit
    within: str = ""  # the path of the strand that calls it
    strand: runtime.Strand | None = None  # the one that it is itself
    is_alone: bool = True  # nothing ran beside it, so that its ordinal is the same on every run
    registry: codec.Registry | None = None  # that knows more types of results than the graph's

    @property
    def title(self) -> str:
        """What it is called in a message."""
        return f"step({self.function})" if self.kind == "step" else f"{self.kind} {self.function!r}"

    @property
    def place(self) -> str:
        """Where in its task it is, whatever else of the task runs again."""
        if self.strand is not None:
            return self.strand.path[:8]
        if self.within:
            return ids.hashed("place", self.within, self.function, self.key or "", self.ordinal)[:8]
        return ids.hashed("place", self.function, self.key or "", self.ordinal)[:8]

    @property
    def lasting(self) -> str:
        """What it is called in every run of its node: what graphs called in it remember goes by this name."""
        name = self.function if self.kind == "tool" else self.function.rpartition(".")[2]
        which = "" if self.kind == "tool" else (self.key or (str(self.ordinal) if self.ordinal else ""))
        return re.sub(r"[|:]", "_", f"{name}.{which}" if which else name)


class Found(NamedTuple):
    """The entry of an earlier attempt that is this call. `answers`: its record stands, so nothing is to be run."""

    row: JournalRow | None
    answers: bool


def perform(journal: Journal, effect: Effect, thunk: Callable[[], T]) -> T:
    """Return the recorded result of an effect, or run it and record it."""
    found = recorded(journal, effect)
    if found.row is not None and found.answers:
        return cast("T", replayed(journal, found.row, effect.registry))
    return run(journal, effect, found.row, thunk)


def recorded(journal: Journal, effect: Effect) -> Found:
    """Find this effect's entry and settle its doubt, if it is in any."""
    with journal.lock:
        row = _matching(journal, effect)
        if row is None:
            _refuse_other_arguments(journal, effect)
            return Found(None, answers=False)
        journal.match(row.seq)
    if row.state == "done" or (row.state == "raised" and _went_on(journal, row)):
        return Found(row, answers=True)
    if row.state == "executing" and effect.in_doubt != "rerun":
        closed = _settle_doubt(journal, effect, row)
        if closed is not None:
            return Found(closed, answers=True)
    return Found(row, answers=False)


def _matching(journal: Journal, effect: Effect) -> JournalRow | None:
    changed: JournalRow | None = None
    for row in journal.loose():
        body = journal.body(row)
        if body["function"] != effect.function or body["key"] != effect.key or body["digest"] != effect.digest:
            continue
        if body.get("within", "") != effect.within:
            continue
        if _code_of(body) in (effect.code, None):
            return row
        if changed is None and _may_be(effect, body):
            changed = row
    return changed


def _may_be(effect: Effect, body: dict[str, Any]) -> bool:
    """Whether an entry of this name can be this function: not if it did something else that is still there to do it."""
    code = _code_of(body)
    return code is None or effect.code is None or code == effect.code or sites.is_stale((code,))


def _code_of(body: dict[str, Any]) -> sites.Frame | None:
    code = body.get("code")
    return None if code is None else sites.Frame(*code)


def _refuse_other_arguments(journal: Journal, effect: Effect) -> None:
    """Effects never run again by mismatch: what is recorded at this call's own ordinal must be this call."""
    for row in journal.loose():
        if row.state == "not_happened":
            continue
        body = journal.body(row)
        same_place = body["key"] == effect.key and (effect.key is not None or body["ordinal"] == effect.ordinal)
        if (
            body["function"] == effect.function
            and same_place
            and body.get("within", "") == effect.within
            and effect.is_alone
            and body.get("alone", True)
            and _may_be(effect, body)
            and row.attempt < journal.attempt
        ):
            raise ReplayMismatch(
                f"{effect.title} in node {journal.task.node!r} was recorded with other arguments than it is "
                f"called with now, and effects are not repeated by mismatch; make the arguments the same on every run "
                f"(record what varies with a step of its own), or give distinct effects a `key`",
                node=journal.task.node,
                site=effect.function,
            )


def _went_on(journal: Journal, row: JournalRow) -> bool:
    """Whether the attempt that saw this exception did anything after it, so that the body must see it again."""
    if codec.loads(row.body).get("went_on"):
        return True
    later = any(r.seq > row.seq and r.attempt == row.attempt for r in journal.entries.values())
    return later or any(a.row.seq > row.seq for a in journal.asked if not a.new)


def replayed(journal: Journal, row: JournalRow | None, registry: codec.Registry | None = None) -> Any:
    """Return the result on record, or raise the exception on record."""
    assert row is not None
    body = codec.loads(row.body)
    what = f"result of step {body['function']}"
    if row.state == "raised":
        error = raised.again(body, lambda data, known: journal.read(data, what, known), journal.registry)
        if "task" in body:
            journal.raised[row.seq] = error
        raise error
    if "lost" in body:
        raise UnstorableValueError(
            f"step({body['function']}) in node {journal.task.node!r} is on record and is not repeated, but its result could "
            f"not be kept: {body['lost']}; let the step return what can be stored",
            path=what,
        )
    return journal.read(body["result"], what, registry)


async def replayed_later(journal: Journal, row: JournalRow) -> Any:
    """Do the same for who awaits it."""
    return replayed(journal, row)


# --- running ---


def run(journal: Journal, effect: Effect, earlier: JournalRow | None, thunk: Callable[[], T]) -> T:
    """Run an effect that has no record, and record it. `earlier` is the entry of a try that came to nothing."""
    row, span = _started(journal, effect, earlier), _span(journal, effect)
    token = runtime.inside.set(_inside(journal, effect))
    try:
        result = thunk() if span is None else span.effect(effect.function, thunk)
    except BaseException as error:
        _failed(journal, row, effect, error)
        raise
    finally:
        runtime.inside.reset(token)
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        _ended(journal, row, effect, "not_happened", {})
        raise UsageError(
            f"{effect.title} in node {journal.task.node!r} returned a generator, so its effect has not begun; use it up "
            f"inside the function, and return what it yields"
        )
    if inspect.isawaitable(result):  # a lambda or a wrapper around a coroutine function: the effect is yet to come
        return cast("T", _awaited(journal, row, effect, result))
    _finished(journal, row, effect, result)
    return result


async def run_async(journal: Journal, effect: Effect, thunk: Callable[[], Awaitable[T]]) -> T:
    """Do what `perform` does for a coroutine function; every store call runs in a worker thread and survives cancellation."""
    found = recorded(journal, effect) if effect.in_doubt == "rerun" else await off(recorded, journal, effect)
    if found.answers:
        return cast("T", replayed(journal, found.row, effect.registry))
    return await begin(journal, effect, found.row, thunk)


async def begin(journal: Journal, effect: Effect, earlier: JournalRow | None, thunk: Callable[[], Awaitable[T]]) -> T:
    """Do what `run` does for a coroutine function."""
    if effect.in_doubt == "rerun":  # its start is not stored
        return await _awaited(journal, _started(journal, effect, earlier), effect, thunk())
    begun: list[JournalRow] = []
    try:
        await off(lambda: begun.append(_started(journal, effect, earlier)))
    except BaseException:
        if begun:  # cancelled at the last moment: no doubt about what was not begun
            await off(_ended, journal, begun[0], effect, "not_happened", {})
        raise
    return await _awaited(journal, begun[0], effect, thunk())


async def _awaited(journal: Journal, row: JournalRow, effect: Effect, work: Awaitable[T]) -> T:
    token, span = runtime.inside.set(_inside(journal, effect)), _span(journal, effect)
    try:
        result = await (work if span is None else span.effect_later(effect.function, work))
    except BaseException as error:
        await _kept(journal, effect, _failed, row, effect, error)
        raise
    finally:
        runtime.inside.reset(token)
    await _kept(journal, effect, _finished, row, effect, result, is_awaited=True)
    return result


async def _kept(journal: Journal, effect: Effect, fn: Callable[..., T], *args: Any, **options: Any) -> T:
    """Put on record what an effect came to; a task's never waits for threads in which bodies wait for it."""
    assert journal.recorder is not None
    if not journal.recorder.blocking:
        return fn(journal, *args, **options)
    call = functools.partial(contextvars.copy_context().run, fn, journal, *args, **options)
    return await outlived(call, threads.for_records() if effect.kind == "task" else None)


def _span(journal: Journal, effect: Effect) -> Any:
    """Return the span in which an effect gets one of its own: tools and tasks have theirs from elsewhere."""
    return journal.span if effect.kind == "step" else None


def _inside(journal: Journal, effect: Effect) -> runtime.Inside:
    return runtime.Inside(journal, effect.place, effect.strand or runtime.strand_of(journal), effect.lasting)


async def off(fn: Callable[..., T], *args: Any, **options: Any) -> T:
    """Call in a worker thread; a cancellation arrives after the call, so that nobody goes on while it still writes."""
    return await outlived(functools.partial(contextvars.copy_context().run, fn, *args, **options), None)


async def outlived(call: Callable[[], T], pool: Any) -> T:
    """Make a call in a thread of a pool (None: the loop's own), to its end, however often it is cancelled."""
    import asyncio

    # Begun at once and no task of the loop: a loop that closes cancels all its tasks, and would lose the record.
    work = asyncio.get_running_loop().run_in_executor(pool, call)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([work])
        raise


def _started(journal: Journal, effect: Effect, earlier: JournalRow | None) -> JournalRow:
    """Give the effect its place (that of the earlier try, if any); where doubt is to be avoided, record its start."""
    with journal.lock:
        journal.check_open(f"start the step {effect.function!r}")
        seq = journal.next_seq() if earlier is None else earlier.seq
        body = {
            "function": effect.function,
            "code": None if effect.code is None else list(effect.code),
            "digest": effect.digest,
            "key": effect.key,
            "ordinal": effect.ordinal,
            "idempotency_key": effect.idempotency_key,
            **effect.note,
        }
        if effect.within:
            body["within"] = effect.within
        if effect.strand is not None:
            body["task"] = effect.strand.path
        if not effect.is_alone:
            body["alone"] = False
        task = journal.task
        row = JournalRow(
            task.ns, task.checkpoint_id, task.task_id, seq, "step", "executing", journal.attempt, clock.now(),
            os.urandom(8).hex(), codec.dumps(body),
        )  # fmt: skip
        journal.entries[seq] = row
        journal.match(seq)
    if effect.in_doubt != "rerun" or effect.permits:
        assert journal.recorder is not None
        try:
            journal.recorder.record(row, *effect.permits)
        except PermitUsedError:
            with journal.lock:
                del journal.entries[row.seq]
            raise
    return row


def _finished(journal: Journal, row: JournalRow, effect: Effect, result: Any, *, is_awaited: bool = False) -> None:
    try:
        known = effect.registry or journal.registry
        more: dict[str, Any] = {"result": codec.dumps(result, known, path=f"result of step {effect.function}")}
    except UnstorableValueError as error:
        # The effect happened, so the record must say so: losing the value is better than doing it twice.
        more = {"result": codec.dumps(codec.UnknownValue("waitpoint:lost", f"{error}")), "lost": f"{error}"}
    _ended(journal, row, effect, "done", more | {"awaited": True} if is_awaited else more)


def _failed(journal: Journal, row: JournalRow, effect: Effect, error: BaseException) -> None:
    if isinstance(error, GraphBubbleUp) or journal.misfit is not None:
        # It paused inside, or the answer to its question was refused: no doubt about it on re-entry.
        _ended(journal, row, effect, "not_happened", {})
    elif isinstance(error, Exception):
        if effect.strand is not None:
            journal.raised[row.seq] = error
        _ended(journal, row, effect, "raised", raised.kept(error, journal.registry))
    elif effect.in_doubt == "rerun":
        with journal.lock:
            journal.entries.pop(row.seq, None)


def _ended(journal: Journal, row: JournalRow, effect: Effect, state: Any, more: dict[str, Any]) -> None:
    body = codec.loads(row.body) | more
    ended = JournalRow(
        row.ns, row.checkpoint_id, row.task_id, row.seq, "step", state, row.attempt, clock.now(), row.token,
        codec.dumps(body),
    )  # fmt: skip
    assert journal.recorder is not None
    with journal.lock:
        journal.entries[row.seq] = ended
    if effect.in_doubt == "rerun":
        journal.recorder.record(ended)
    else:
        journal.recorder.conclude(ended)


# --- in doubt ---


def _settle_doubt(journal: Journal, effect: Effect, row: JournalRow) -> JournalRow | None:
    """Find out whether an effect whose record stops at its start took place: by the probe, else by asking."""
    if callable(effect.in_doubt):
        found = effect.in_doubt(effect.idempotency_key, effect.args)
        if isinstance(found, Happened):
            return _closed(journal, row, found.result)
        if isinstance(found, NotHappened):
            return None
        if found is not None:
            raise UsageError(
                f"The probe of {effect.title} returned a {type(found).__name__}; return Happened(result), "
                f"NotHappened() or None"
            )
    answer = _asked(journal, effect, row)
    if answer["type"] == "happened":
        return _closed(journal, row, answer.get("result"))
    if answer["type"] == "stop":
        raise StepInDoubtError(
            f"{effect.title} in node {journal.task.node!r} was in doubt after a crash, and the answer was to stop; "
            f"answer the question again to decide otherwise"
        )
    return None


def _asked(journal: Journal, effect: Effect, row: JournalRow) -> dict[str, Any]:
    payload = {
        "type": "in_doubt",
        "kind": effect.kind,
        "name": effect.function,
        "args": effect.args,
        "idempotency_key": effect.idempotency_key,
        "started_at": clock.iso(row.at),
    }
    question = Question(payload, f"in_doubt:{row.token}", ("started_at",), IN_DOUBT_ANSWER)
    asked = journal.ask(question)
    assert asked.row.answer is not None
    return cast("dict[str, Any]", codec.loads(asked.row.answer))


def _closed(journal: Journal, row: JournalRow, result: Any) -> JournalRow:
    """Put on record that an effect in doubt did happen, with the result that was found."""
    body = codec.loads(row.body) | {"result": codec.dumps(result, journal.registry)}
    closed = JournalRow(
        row.ns, row.checkpoint_id, row.task_id, row.seq, "step", "done", row.attempt, clock.now(), row.token,
        codec.dumps(body),
    )  # fmt: skip
    assert journal.recorder is not None
    journal.recorder.conclude(closed)
    with journal.lock:
        journal.entries[row.seq] = closed
    return closed
