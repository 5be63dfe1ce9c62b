"""`step()`: run an effect once and keep its result, however often the node around it runs again.

An effect is recognised by its function, the digest of its arguments and its occurrence, or by its `key`. Between the
effect and its record lies a window in which a crash leaves it unknown whether it happened; `in_doubt` says what then.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar, cast, overload

from waitpoint import canonical, clock, codec, ids
from waitpoint.checkpoint.base import JournalRow
from waitpoint.errors import (
    GraphBubbleUp,
    ReplayMismatch,
    StepInDoubtError,
    UnstorableValueError,
    UsageError,
)
from waitpoint.interrupts import raised
from waitpoint.interrupts import site as sites
from waitpoint.interrupts.journal import Journal, Question, running
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
class _Call:
    """One call of `step()`, as it is recognised and shown."""

    function: str
    code: sites.Frame | None  # two lambdas of one place share a name, so what they do tells them apart
    digest: str
    key: str | None
    ordinal: int  # among this function's calls in the task, counted at the call
    args: dict[str, Any]
    in_doubt: InDoubt
    idempotency_key: str


class _Found(NamedTuple):
    """The entry of an earlier attempt that is this call. `answers`: its record stands, so nothing is to be run."""

    row: JournalRow | None
    answers: bool


@overload
def step(
    fn: Callable[..., Awaitable[T]], /, *args: Any, key: str | None = None, in_doubt: InDoubt = "rerun", **kwargs: Any
) -> Awaitable[T]: ...
@overload
def step(
    fn: Callable[..., T], /, *args: Any, key: str | None = None, in_doubt: InDoubt = "rerun", **kwargs: Any
) -> T: ...
def step(
    fn: Callable[..., Any], /, *args: Any, key: str | None = None, in_doubt: InDoubt = "rerun", **kwargs: Any
) -> Any:
    """Run `fn(*args, **kwargs)` as a recorded effect and return its result; a later run of the node gets the record.

    A function that gives an awaitable, such as an `async def`, gives one here. `in_doubt` decides what happens after a
    crash between the effect and its record: "rerun" runs it again (at least once), "ask" asks a person, and a function
    `probe(idempotency_key, args)` returns `Happened(result)`, `NotHappened()` or None (does not know: then a person is
    asked). With "ask" or a probe an effect never happens twice unasked. `args` is `{"args": [...], "kwargs": {...}}` as
    plain data.

    An exception is recorded too, and raised again on replay if the node went on after it; otherwise the effect is tried
    again. Without a checkpointer `fn` simply runs.

    Raises:
        ReplayMismatch: the effect recorded at this place had other arguments, so nothing was run.
        StepInDoubtError: a person decided to stop here.
    """
    journal = running("step()", recorded=False)
    if not callable(fn):
        raise UsageError(
            f"step() was given a {type(fn).__name__}, which cannot be called; pass the function and its arguments"
        )
    if key is not None and not isinstance(key, str):
        raise UsageError(f"`key` of step() is {key!r}; give text")
    if not (in_doubt in ("rerun", "ask") or callable(in_doubt)):
        raise UsageError(f'`in_doubt` of step() is {in_doubt!r}; give "rerun", "ask" or a probe function')
    if journal.recorder is None:
        return fn(*args, **kwargs)
    call = _described(journal, fn, (args, kwargs), key, in_doubt)
    if inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None)):  # noqa: B004
        return _run_async(journal, call, lambda: fn(*args, **kwargs))
    found = _recorded(journal, call)
    if found.row is not None and found.answers:
        is_awaited = codec.loads(found.row.body).get("awaited")
        return _replayed_later(journal, found.row) if is_awaited else _replayed(journal, found.row)
    return _run(journal, call, found.row, lambda: fn(*args, **kwargs))


def _described(
    journal: Journal, fn: Callable[..., Any], arguments: tuple[tuple[Any, ...], dict[str, Any]], key: str | None,
    in_doubt: InDoubt,
) -> _Call:  # fmt: skip
    args, kwargs = arguments
    while isinstance(fn, functools.partial):
        args, kwargs, fn = (*fn.args, *args), fn.keywords | kwargs, fn.func
    module = ids.module_name(getattr(fn, "__module__", None) or "")  # one name, run as a script or imported
    name = f"{module}.{getattr(fn, '__qualname__', type(fn).__qualname__)}"
    digest = canonical.args_digest(args, kwargs)
    with journal.lock:
        journal.check_open(f"start the step {name!r}")
        ordinal = journal.calls.get(name, 0)
        journal.calls[name] = ordinal + 1
    occurrence = key if key is not None else str(ordinal)
    unique = ids.hashed("step", journal.task.key.thread_id, journal.task.task_id, name, digest, occurrence)
    return _Call(name, sites.of_function(fn), digest, key, ordinal, _shown(args, kwargs), in_doubt, unique)


def _shown(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as a person and a probe get them: plain data, live objects by their type's name."""
    return {"args": [_plain(a) for a in args], "kwargs": {k: _plain(v) for k, v in kwargs.items()}}


def _plain(value: Any) -> Any:
    try:
        return canonical.payload(value)
    except TypeError:
        return f"<{type(value).__module__}.{type(value).__qualname__}>"


def _recorded(journal: Journal, call: _Call) -> _Found:
    """Find this call's entry and settle its doubt, if it is in any."""
    with journal.lock:
        row = _matching(journal, call)
        if row is None:
            _refuse_other_arguments(journal, call)
            return _Found(None, answers=False)
        journal.matched.add(row.seq)
    if row.state == "done" or (row.state == "raised" and _went_on(journal, row)):
        return _Found(row, answers=True)
    if row.state == "executing" and call.in_doubt != "rerun":
        closed = _settle_doubt(journal, call, row)
        if closed is not None:
            return _Found(closed, answers=True)
    return _Found(row, answers=False)


def _matching(journal: Journal, call: _Call) -> JournalRow | None:
    changed: JournalRow | None = None
    for row in sorted(journal.entries.values(), key=lambda r: r.seq):
        if row.kind != "step" or row.seq in journal.matched:
            continue
        body = codec.loads(row.body)
        if body["function"] != call.function or body["key"] != call.key or body["digest"] != call.digest:
            continue
        if _code_of(body) in (call.code, None):
            return row
        if changed is None and _may_be(call, body):
            changed = row
    return changed


def _may_be(call: _Call, body: dict[str, Any]) -> bool:
    """Whether an entry of this name can be this function: not if it did something else that is still there to do it."""
    recorded = _code_of(body)
    return recorded is None or call.code is None or recorded == call.code or sites.is_stale((recorded,))


def _code_of(body: dict[str, Any]) -> sites.Frame | None:
    code = body.get("code")
    return None if code is None else sites.Frame(*code)


def _refuse_other_arguments(journal: Journal, call: _Call) -> None:
    """Effects never run again by mismatch: what is recorded at this call's own ordinal must be this call."""
    for row in journal.entries.values():
        if row.kind != "step" or row.state == "not_happened" or row.seq in journal.matched:
            continue
        body = codec.loads(row.body)
        same_place = body["key"] == call.key and (call.key is not None or body["ordinal"] == call.ordinal)
        if body["function"] == call.function and same_place and _may_be(call, body) and row.attempt < journal.attempt:
            raise ReplayMismatch(
                f"step({call.function}) in node {journal.task.node!r} was recorded with other arguments than it is "
                f"called with now, and effects are not repeated by mismatch; make the arguments the same on every run "
                f"(record what varies with a step of its own), or give distinct effects a `key`",
                node=journal.task.node,
                site=call.function,
            )


def _went_on(journal: Journal, row: JournalRow) -> bool:
    """Whether the attempt that saw this exception did anything after it, so that the body must see it again."""
    if codec.loads(row.body).get("went_on"):
        return True
    later = any(r.seq > row.seq and r.attempt == row.attempt for r in journal.entries.values())
    return later or any(a.row.seq > row.seq for a in journal.asked if not a.new)


def _replayed(journal: Journal, row: JournalRow | None) -> Any:
    assert row is not None
    body = codec.loads(row.body)
    what = f"result of step {body['function']}"
    if row.state == "raised":
        raise raised.again(body, lambda data, registry: journal.read(data, what, registry), journal.registry)
    if "lost" in body:
        raise UnstorableValueError(
            f"step({body['function']}) in node {journal.task.node!r} is on record and is not repeated, but its result could "
            f"not be kept: {body['lost']}; let the step return what can be stored",
            path=what,
        )
    return journal.read(body["result"], what)


async def _replayed_later(journal: Journal, row: JournalRow) -> Any:
    return _replayed(journal, row)


# --- running ---


def _run(journal: Journal, call: _Call, earlier: JournalRow | None, thunk: Callable[[], T]) -> T:
    row = _started(journal, call, earlier)
    try:
        result = thunk()
    except BaseException as error:
        _failed(journal, row, call, error)
        raise
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        _ended(journal, row, call, "not_happened", {})
        raise UsageError(
            f"step({call.function}) in node {journal.task.node!r} returned a generator, so its effect has not begun; use it up "
            f"inside the function, and return what it yields"
        )
    if inspect.isawaitable(result):  # a lambda or a wrapper around a coroutine function: the effect is yet to come
        return cast("T", _awaited(journal, row, call, result))
    _finished(journal, row, call, result)
    return result


async def _run_async(journal: Journal, call: _Call, thunk: Callable[[], Awaitable[T]]) -> T:
    """Do the same for a coroutine function; every store call runs in a worker thread and survives cancellation."""
    found = await _off(_recorded, journal, call)
    if found.answers:
        return cast("T", _replayed(journal, found.row))
    begun: list[JournalRow] = []
    try:
        await _off(lambda: begun.append(_started(journal, call, found.row)))
    except BaseException:
        if begun:  # cancelled at the last moment: no doubt about what was not begun
            await _off(_ended, journal, begun[0], call, "not_happened", {})
        raise
    return await _awaited(journal, begun[0], call, thunk())


async def _awaited(journal: Journal, row: JournalRow, call: _Call, work: Awaitable[T]) -> T:
    try:
        result = await work
    except BaseException as error:
        await _off(_failed, journal, row, call, error)
        raise
    await _off(_finished, journal, row, call, result, is_awaited=True)
    return result


async def _off(fn: Callable[..., T], *args: Any, **options: Any) -> T:
    """Call in a worker thread; a cancellation arrives after the call, so that nobody goes on while it still writes."""
    import asyncio

    # Begun at once and no task of the loop: a loop that closes cancels all its tasks, and would lose the record.
    call = functools.partial(contextvars.copy_context().run, fn, *args, **options)
    work = asyncio.get_running_loop().run_in_executor(None, call)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([work])
        raise


def _started(journal: Journal, call: _Call, earlier: JournalRow | None) -> JournalRow:
    """Give the effect its place (that of the earlier try, if any); where doubt is to be avoided, record its start."""
    with journal.lock:
        journal.check_open(f"start the step {call.function!r}")
        seq = journal.next_seq() if earlier is None else earlier.seq
        body = {
            "function": call.function,
            "code": None if call.code is None else list(call.code),
            "digest": call.digest,
            "key": call.key,
            "ordinal": call.ordinal,
            "idempotency_key": call.idempotency_key,
        }
        task = journal.task
        row = JournalRow(
            task.ns, task.checkpoint_id, task.task_id, seq, "step", "executing", journal.attempt, clock.now(),
            os.urandom(8).hex(), codec.dumps(body),
        )  # fmt: skip
        journal.entries[seq] = row
        journal.matched.add(seq)
    if call.in_doubt != "rerun":
        assert journal.recorder is not None
        journal.recorder.record(row)
    return row


def _finished(journal: Journal, row: JournalRow, call: _Call, result: Any, *, is_awaited: bool = False) -> None:
    try:
        more: dict[str, Any] = {"result": codec.dumps(result, journal.registry, path=f"result of step {call.function}")}
    except UnstorableValueError as error:
        # The effect happened, so the record must say so: losing the value is better than doing it twice.
        more = {"result": codec.dumps(codec.UnknownValue("waitpoint:lost", f"{error}")), "lost": f"{error}"}
    _ended(journal, row, call, "done", more | {"awaited": True} if is_awaited else more)


def _failed(journal: Journal, row: JournalRow, call: _Call, error: BaseException) -> None:
    if isinstance(error, GraphBubbleUp):
        _ended(journal, row, call, "not_happened", {})  # it paused inside: no doubt about it on re-entry
    elif isinstance(error, Exception):
        _ended(journal, row, call, "raised", raised.kept(error, journal.registry))
    elif call.in_doubt == "rerun":
        with journal.lock:
            journal.entries.pop(row.seq, None)


def _ended(journal: Journal, row: JournalRow, call: _Call, state: Any, more: dict[str, Any]) -> None:
    body = codec.loads(row.body) | more
    ended = JournalRow(
        row.ns, row.checkpoint_id, row.task_id, row.seq, "step", state, row.attempt, clock.now(), row.token,
        codec.dumps(body),
    )  # fmt: skip
    assert journal.recorder is not None
    with journal.lock:
        journal.entries[row.seq] = ended
    if call.in_doubt == "rerun":
        journal.recorder.record(ended)
    else:
        journal.recorder.conclude(ended)


# --- in doubt ---


def _settle_doubt(journal: Journal, call: _Call, row: JournalRow) -> JournalRow | None:
    """Find out whether an effect whose record stops at its start took place: by the probe, else by asking."""
    if callable(call.in_doubt):
        found = call.in_doubt(call.idempotency_key, call.args)
        if isinstance(found, Happened):
            return _closed(journal, row, found.result)
        if isinstance(found, NotHappened):
            return None
        if found is not None:
            raise UsageError(
                f"The probe of step({call.function}) returned a {type(found).__name__}; return Happened(result), "
                f"NotHappened() or None"
            )
    answer = _asked(journal, call, row)
    if answer["type"] == "happened":
        return _closed(journal, row, answer.get("result"))
    if answer["type"] == "stop":
        raise StepInDoubtError(
            f"step({call.function}) in node {journal.task.node!r} was in doubt after a crash, and the answer was to stop; "
            f"answer the question again to decide otherwise"
        )
    return None


def _asked(journal: Journal, call: _Call, row: JournalRow) -> dict[str, Any]:
    payload = {
        "type": "in_doubt",
        "kind": "step",
        "name": call.function,
        "args": call.args,
        "idempotency_key": call.idempotency_key,
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
