"""One call of a task: recognised on every run of the body, run once, shown when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import Generator, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any

from waitpoint import canonical, ids, runtime, threads
from waitpoint.engine.attempts import called, called_later
from waitpoint.engine.endings import beside_pauses, interrupts_of
from waitpoint.engine.tasks import in_context
from waitpoint.engine.trying import Pulse, seconds_to_retry, within_time
from waitpoint.errors import AsyncOnlyError, GraphBubbleUp, ReplayMismatch, UsageError
from waitpoint.func.caching import CachedCall
from waitpoint.func.crew import Crew
from waitpoint.interrupts import effects
from waitpoint.interrupts import site as sites
from waitpoint.interrupts.effects import Effect
from waitpoint.interrupts.journal import Journal, running
from waitpoint.records import CachePolicy, RetryPolicy, TimeoutPolicy

RETURN = "__return__"


@dataclass(slots=True, eq=False, repr=False)
class TaskSpec:
    """A task as declared. `wants` maps parameters to what is injected where the caller does not pass them."""

    fn: Any
    name: str
    identity: str
    is_async: bool
    retry: tuple[RetryPolicy, ...]
    timeout: TimeoutPolicy | None
    cache_policy: CachePolicy | None
    wants: Mapping[str, str]
    signature: inspect.Signature | None
    registry: Any  # of a registry: one that knows the types of the results too


def start(spec: TaskSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Start a task in the body that runs here, or recall what it came to; return its future."""
    what = f"task {spec.name!r}"
    journal = running(what, recorded=False)
    scope: Any = runtime.scope(what)
    crew = Crew.here(journal, _limit(scope))
    crew.check_open(spec.name)
    if spec.is_async and scope.loop is None:
        raise AsyncOnlyError(
            f"Task {spec.name!r} is an async function, so it cannot run under invoke() or stream(); use ainvoke() or "
            f"astream()"
        )
    call = TaskCall(spec, args, kwargs, scope, crew)
    loop = scope.loop if scope.loop is not None and _running_loop() is scope.loop else None
    if journal.recorder is not None:
        found = effects.recorded(journal, call.effect)
        if found.answers:
            return crew.recalled(partial(effects.replayed, journal, found.row, call.effect.registry), loop)
        call.earlier = found.row
    context = in_context(call.scope)
    if loop is not None:
        return crew.on_loop(call.strand, call.run_later, context)
    if spec.is_async:
        return crew.in_thread(call.strand, partial(context.run, call.run_elsewhere))
    return crew.in_thread(call.strand, partial(context.run, call.run))


def _limit(scope: Any) -> int | None:
    limit = scope.around.config.get("max_concurrency")
    return limit if isinstance(limit, int) and limit > 0 else None


def _running_loop() -> Any:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


Tries = Generator[tuple[str, Any], Any, Any]


class TaskCall:
    """A call of a task. `earlier` is the entry of a try that came to nothing."""

    def __init__(self, spec: TaskSpec, args: tuple[Any, ...], kwargs: dict[str, Any], scope: Any, crew: Crew) -> None:
        self.spec = spec
        self.args = args
        self.kwargs = kwargs
        self.crew = crew
        self.journal: Journal = crew.journal
        self.earlier: Any = None
        self.effect = self._effect()
        self.strand: runtime.Strand = self.effect.strand  # type: ignore[assignment]
        self.id = ids.hashed("call", self.journal.task.task_id, self.strand.path)
        self.scope = scope.of_call(spec.name, self.id)
        if spec.timeout is not None:
            self.scope.pulse = Pulse(spec.timeout, scope.alive)
        self.from_cache = False

    def _effect(self) -> Effect:
        """Recognise the call: by the strand that makes it, its function, its arguments and its occurrence."""
        spec, journal, within = self.spec, self.journal, self.crew.strand.path
        fn, args, kwargs = spec.fn, self.args, self.kwargs
        while isinstance(fn, partial):
            args, kwargs, fn = (*fn.args, *args), fn.keywords | kwargs, fn.func
        digest = canonical.args_digest(args, kwargs)
        calls, counted = journal.calls, f"{within}/{spec.identity}"
        alike = f"{counted}/{digest}"
        with journal.lock:
            ordinal, occurrence = calls.get(counted, 0), calls.get(alike, 0)
            calls[counted], calls[alike] = ordinal + 1, occurrence + 1
            is_alone = self.crew.is_alone
        path = ids.hashed("strand", within, spec.identity, digest, occurrence)
        registry = None if journal.registry is None else spec.registry(journal.registry)
        return Effect(
            spec.identity, sites.of_function(fn), digest, None, ordinal, {}, "rerun", path, "task",
            within=within, strand=runtime.Strand(path), is_alone=is_alone, registry=registry,
        )  # fmt: skip

    # --- the ways to run ----------------------------------------------------------------------------------------------

    def run(self) -> Any:
        """Run it in this thread, and record and show what it comes to."""
        self._show_start()
        try:
            if self.journal.recorder is not None:
                result = effects.run(self.journal, self.effect, self.earlier, self._blocking)
            else:
                result = self._unrecorded(self._blocking)
        except Exception as error:
            self._show_end(error=error)
            raise
        return self._shown(result)

    async def run_later(self) -> Any:
        """Run it on the event loop; a plain function runs in a thread."""
        if not self.spec.is_async:
            return await self._in_thread()
        self._show_start()
        try:
            if self.journal.recorder is not None:
                result = await effects.begin(self.journal, self.effect, self.earlier, self._awaiting)
            else:
                result = await self._unrecorded(self._awaiting)
        except Exception as error:
            self._show_end(error=error)
            raise
        return self._shown(result)

    def run_elsewhere(self) -> Any:
        """Run a coroutine function that was called in a worker thread of an asynchronous run."""
        return asyncio.run_coroutine_threadsafe(self.run_later(), self.scope.loop).result()

    async def _in_thread(self) -> Any:
        run = partial(copy_context().run, self.run)
        work = asyncio.get_running_loop().run_in_executor(self.crew.pool.executor, run)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            while not work.done() and not self.journal.sealed:  # a thread cannot be cancelled: what it did is recorded
                try:
                    await asyncio.wait([work])
                except asyncio.CancelledError:
                    continue
            if work.done() and not work.cancelled():
                work.exception()
            raise

    def _unrecorded(self, body: Any) -> Any:
        """Run it in a graph that keeps no record."""
        inside = runtime.Inside(self.journal, self.effect.place, self.strand, self.effect.lasting)
        if self.spec.is_async:
            return self._unrecorded_later(inside, body)
        token = runtime.inside.set(inside)
        try:
            return body()
        finally:
            runtime.inside.reset(token)

    async def _unrecorded_later(self, inside: runtime.Inside, body: Any) -> Any:
        runtime.inside.set(inside)  # the context is this call's own
        return await body()

    # --- the tries ----------------------------------------------------------------------------------------------------

    def _tries(self) -> Tries:
        """Say what to do next until there is a result: call the body, await what it started, wait to try again."""
        strand, tries = self.strand, 0
        cached = self._cached()
        if cached is not None and (found := (yield "get", cached)) is not None:
            self.from_cache = True
            return found[0]
        while True:
            tries += 1
            result, failure = yield "body", None
            if strand.crew is not None:
                failure = yield "end", failure
            if failure is None and not strand.pauses:
                break
            if failure is None or (strand.pauses and interrupts_of(failure) is None):
                failure = beside_pauses(self.journal, failure, strand.pauses)
            if not isinstance(failure, Exception) or isinstance(failure, GraphBubbleUp | ReplayMismatch):
                raise failure
            wait = None if strand.pauses else seconds_to_retry(self.spec.retry, failure, tries)
            if wait is None or self.journal.misfit is not None or self.journal.refusal is not None:
                raise failure
            self.journal.blame(failure)
            yield "sleep", wait
            self.journal.try_again(strand)
            if (inside := runtime.inside.get()) is not None:
                inside.calls = 0  # graphs that were called are found again, too
            self.scope.tries += 1
            self.scope.make_anew()
        if cached is not None and not strand.reached:
            yield "put", (cached, result)
        return result

    def _blocking(self) -> Any:
        tries = self._tries()
        reply: Any = None
        while True:
            try:
                what, told = tries.send(reply)
            except StopIteration as done:
                return done.value
            if what == "body":
                reply = self._called() if self.scope.around.tracing is None else called(*self._told(), self._called)
            elif what == "end":
                reply = self.strand.crew.end(told)
            elif what == "sleep":
                time.sleep(told)
            elif what == "get":
                reply = told.get()
            else:
                told[0].put(told[1])

    async def _awaiting(self) -> Any:
        tries = self._tries()
        reply: Any = None
        while True:
            try:
                what, told = tries.send(reply)
            except StopIteration as done:
                return done.value
            if what == "body":
                is_traced = self.scope.around.tracing is not None
                work = called_later(*self._told(), self._called_later) if is_traced else self._called_later()
                reply = await work
            elif what == "end":
                reply = await self.strand.crew.end_later(told)
            elif what == "sleep":
                await asyncio.sleep(told)
            elif what == "get":
                reply = await told.aget()
            else:
                await told[0].aput(told[1])

    def _told(self) -> tuple[Any, str, Any]:
        """Return what a tracer hears of the call: its scope, name, and arguments by name, as far as they fit."""
        given: Any = self.kwargs
        if self.spec.signature is not None:
            with contextlib.suppress(TypeError):
                given = self.spec.signature.bind_partial(*self.args, **self.kwargs).arguments
        return self.scope, self.spec.name, dict(given)

    def _called(self) -> tuple[Any, BaseException | None]:
        try:
            body = partial(self.spec.fn, *self.args, **self._keywords())
            result = threads.carried(f"Task {self.spec.name!r}", body)
            if inspect.iscoroutine(result):
                result.close()
                raise UsageError(f"Task {self.spec.name!r} returned a coroutine; write it as an `async def`")
        except BaseException as error:  # noqa: BLE001 - the tries decide what each kind means
            return None, error
        return result, None

    async def _called_later(self) -> tuple[Any, BaseException | None]:
        try:
            work = self.spec.fn(*self.args, **self._keywords())
            timeout = self.spec.timeout
            if timeout is not None:
                work = within_time(timeout, self.scope.pulse, work, self.spec.name, "Task")
            result = await work
        except BaseException as error:  # noqa: BLE001 - as above
            return None, error
        return result, None

    def _keywords(self) -> dict[str, Any]:
        """Return the keyword arguments with what is injected; what the caller passed wins."""
        wants = self.spec.wants
        if not wants:
            return self.kwargs
        passed: Mapping[str, Any] = self.kwargs
        if self.spec.signature is not None:
            try:
                passed = self.spec.signature.bind_partial(*self.args, **self.kwargs).arguments
            except TypeError:  # the call itself raises it, with a better text
                passed = self.kwargs
        given = {name: self.scope.wanted(what, None) for name, what in wants.items() if name not in passed}
        return {**given, **self.kwargs}

    # --- what is shown ------------------------------------------------------------------------------------------------

    def _show_start(self) -> None:
        self.scope.stir()
        if not self.scope.run.modes.isdisjoint(("tasks", "debug")):
            told = {"id": self.id, "name": self.spec.name, "input": (self.args, self.kwargs)}
            self.scope.show("tasks", told | {"triggers": ("__pregel_push",)})

    def _shown(self, result: Any) -> Any:
        if "updates" in self.scope.run.modes:
            extra = {"__metadata__": {"cached": True}} if self.from_cache else {}
            self.scope.show("updates", {self.spec.name: result, **extra})
        self._show_end(result={RETURN: result})
        return result

    def _show_end(self, *, error: Exception | None = None, result: Mapping[str, Any] | None = None) -> None:
        self.scope.stir()
        if not self.scope.run.modes.isdisjoint(("tasks", "debug")) and not isinstance(error, GraphBubbleUp):
            told = {"id": self.id, "name": self.spec.name, "error": None if error is None else repr(error)}
            self.scope.show("tasks", told | {"result": dict(result or {}), "interrupts": []})

    def _cached(self) -> CachedCall | None:
        """Return where the result may be cached, if the task has a policy and the graph a cache."""
        cache, policy = self.scope.around.cache, self.spec.cache_policy
        if cache is None or policy is None:
            return None
        return CachedCall(cache, policy, self.spec.identity, (self.args, self.kwargs), self.effect.registry)


for _boundary in (TaskCall.run, TaskCall.run_later):
    sites.boundary(_boundary)
