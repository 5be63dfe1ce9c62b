"""`step()`: run an effect once and keep its result, however often the node around it runs again."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

from waitpoint import canonical, codec, ids, runtime
from waitpoint.errors import UsageError
from waitpoint.interrupts import effects
from waitpoint.interrupts import site as sites
from waitpoint.interrupts.effects import Effect, InDoubt
from waitpoint.interrupts.journal import Journal, running

T = TypeVar("T")


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
    effect = _described(journal, fn, (args, kwargs), key, in_doubt)
    if inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None)):  # noqa: B004
        return effects.run_async(journal, effect, lambda: fn(*args, **kwargs))
    found = effects.recorded(journal, effect)
    if found.row is not None and found.answers:
        is_awaited = codec.loads(found.row.body).get("awaited")
        return effects.replayed_later(journal, found.row) if is_awaited else effects.replayed(journal, found.row)
    return effects.run(journal, effect, found.row, lambda: fn(*args, **kwargs))


def _described(
    journal: Journal, fn: Callable[..., Any], arguments: tuple[tuple[Any, ...], dict[str, Any]], key: str | None,
    in_doubt: InDoubt,
) -> Effect:  # fmt: skip
    args, kwargs = arguments
    while isinstance(fn, functools.partial):
        args, kwargs, fn = (*fn.args, *args), fn.keywords | kwargs, fn.func
    module = ids.module_name(getattr(fn, "__module__", None) or "")  # one name, run as a script or imported
    name = f"{module}.{getattr(fn, '__qualname__', type(fn).__qualname__)}"
    digest = canonical.args_digest(args, kwargs)
    strand = runtime.strand_of(journal)
    within = "" if strand is None else strand.path
    counted = f"{within}/{name}" if within else name
    with journal.lock:
        journal.check_open(f"start the step {name!r}")
        ordinal = journal.calls.get(counted, 0)
        journal.calls[counted] = ordinal + 1
    occurrence = key if key is not None else str(ordinal)
    unique = ids.hashed("step", journal.task.key.thread_id, journal.task.task_id, counted, digest, occurrence)
    shown, code = _shown(args, kwargs), sites.of_function(fn)
    return Effect(name, code, digest, key, ordinal, shown, in_doubt, unique, within=within)


def _shown(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as a person and a probe get them: plain data, live objects by their type's name."""
    return {"args": [_plain(a) for a in args], "kwargs": {k: _plain(v) for k, v in kwargs.items()}}


def _plain(value: Any) -> Any:
    try:
        return canonical.payload(value)
    except TypeError:
        return f"<{type(value).__module__}.{type(value).__qualname__}>"
