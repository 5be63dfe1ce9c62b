"""Telling callback handlers that a graph paused, and that it goes on.

A handler is whatever among `config["callbacks"]` has `on_interrupt` or `on_resume`; the event's shape is LangGraph's.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from waitpoint.engine.commands import Steps, Tell
from waitpoint.engine.run import Run
from waitpoint.records import Interrupt, Value

GraphLifecycleStatus = Literal["pending", "interrupt_before", "interrupt_after"]

logger = logging.getLogger("waitpoint.callbacks")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class GraphInterruptEvent(Value):
    """A graph paused: at questions (status "pending"), or at a static breakpoint. `checkpoint_ns` is () at the root."""

    run_id: Any
    status: GraphLifecycleStatus
    checkpoint_id: str
    checkpoint_ns: tuple[str, ...]
    interrupts: tuple[Interrupt[Any], ...]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class GraphResumeEvent(Value):
    """A graph goes on from a checkpoint at which it rested."""

    run_id: Any
    status: GraphLifecycleStatus
    checkpoint_id: str
    checkpoint_ns: tuple[str, ...]


GraphLifecycleEvent = GraphInterruptEvent | GraphResumeEvent


def paused(run: Run, status: GraphLifecycleStatus) -> Steps:
    """Tell that the root graph rests, once its pause is stored."""
    if run.is_root and run.around.config.get("callbacks"):
        interrupts = run.interrupts() if status == "pending" else ()
        event = GraphInterruptEvent(_run_id(run), status, run.head.id, run.shown_ns, interrupts)
        yield from _told(run, "on_interrupt", event)


def resumed(run: Run) -> Steps:
    """Tell that a graph goes on where it rested."""
    if run.resumed and run.around.config.get("callbacks"):
        yield from _told(run, "on_resume", GraphResumeEvent(_run_id(run), "pending", run.head.id, run.shown_ns))


def _run_id(run: Run) -> Any:
    config = run.around.config
    return config.get("run_id") or config.get("configurable", {}).get("run_id")


def _told(run: Run, name: str, event: Any) -> Steps:
    for handler in _handlers(run.around.config["callbacks"]):
        tell = getattr(handler, name, None)
        if callable(tell):
            yield Tell(_careful(handler, tell), event)


def _handlers(callbacks: Any) -> Iterator[Any]:
    found = getattr(callbacks, "handlers", callbacks)
    yield from found if isinstance(found, list | tuple) else (found,)


def _careful(handler: Any, tell: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the call with its errors kept to itself, unless the handler says that they are to be raised."""
    if getattr(handler, "raise_error", False):
        return tell

    def called(event: Any) -> Any:
        try:
            found = tell(event)
        except Exception:
            logger.exception("callback %s failed", type(handler).__qualname__)
            return None
        return awaited(found) if inspect.isawaitable(found) else found

    async def awaited(work: Awaitable[Any]) -> None:
        try:
            await work
        except Exception:
            logger.exception("callback %s failed", type(handler).__qualname__)

    return called
