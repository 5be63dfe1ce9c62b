"""Weaves tracers into a run: where the chains and spans of graphs, steps and waits begin and end.

A run that nobody traces has no `Tracing`, and pays for one look. Spans are begun and ended at once; chains are told by
`Moment`s, which each driver obeys in its own form, since handlers may be coroutine functions.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from waitpoint import codec
from waitpoint.checkpoint.base import BaseCheckpointSaver, PendingFilter, QuestionRow, Settlement
from waitpoint.engine.commands import Moment, Steps, Stopped
from waitpoint.engine.invocation import Invocation
from waitpoint.engine.run import Run
from waitpoint.errors import GraphBubbleUp
from waitpoint.tracing import spans
from waitpoint.tracing.chains import Chain, are_heard
from waitpoint.tracing.spans import Span

logger = logging.getLogger("waitpoint.tracing")


@dataclass(slots=True, eq=False, repr=False)
class Tracing:
    """Who hears of one graph's run: its chain and its span, and the span of its present step."""

    chain: Chain | None
    span: Span | None
    step: Span | None = None

    def opened(self, run: Run) -> None:
        """Link what asked the questions whose answers this run goes on with, perhaps in another process."""
        if self.span is None:
            return
        self.span.put({"waitpoint.resumed": run.resumed, "waitpoint.checkpoint.id": run.head.id})
        if run.segment is not None and run.is_root:
            asked = (_asked_in(q) for q in run.segment.questions.values() if q.settle_seq is not None)
            for traceparent in dict.fromkeys(asked):
                if traceparent:
                    self.span.link(traceparent)


def traced(call: Invocation, steps: Steps, given_run: Callable[[], Run | None]) -> Steps:
    """Take the steps of a graph's run, and tell those who trace it."""
    tracing: Tracing = call.around.tracing
    chain, error = tracing.chain, None
    try:
        if chain is not None:
            yield Moment(partial(chain.start, call.input), partial(chain.start_later, call.input))
        yield from steps
    except GeneratorExit:
        raise
    except BaseException as failure:
        error = failure
        if chain is not None and not isinstance(failure, GraphBubbleUp):
            what = failure.error if isinstance(failure, Stopped) else failure
            yield careful(partial(chain.fail, what), partial(chain.fail_later, what))
        elif chain is not None:
            yield from _put_out(chain, given_run())
        raise
    else:
        if chain is not None:
            yield from _put_out(chain, given_run())
    finally:
        if tracing.span is not None:
            run = given_run()
            tracing.span.put({"waitpoint.run.end": run.end if run is not None and error is None else None})
            tracing.span.end(error)


def _put_out(chain: Chain, run: Run | None) -> Steps:
    output = None if run is None else run.output()
    yield careful(partial(chain.end, output), partial(chain.end_later, output))


def begun(call: Invocation, *, inner: bool) -> Tracing | None:
    """Return who traces a call of a graph, `inner` in another one; None, as mostly, if nobody does."""
    config, tracer = call.around.config, spans.tracer()
    heard = are_heard(config)
    if tracer is None and not heard:
        return None
    name = call.spec.name
    # A graph inside another has no id of its own in its config: that one is the outermost run's.
    chain = Chain.of_graph(config, name, None if inner else config.get("run_id")) if heard else None
    span = None if tracer is None else _graph_span(tracer, call, inner=inner)
    return None if chain is None and span is None else Tracing(chain, span)


def _graph_span(tracer: Any, call: Invocation, *, inner: bool) -> Span:
    around = spans.current()
    if around is None and call.around.within is not None and call.around.within.span is not None:
        around = call.around.within.span.context  # called on a thread of the node's own making
    config = call.around.config
    run_id, thread_id = config.get("run_id"), config.get("configurable", {}).get("thread_id")
    return Span(
        tracer,
        f"run {call.spec.name}",
        {
            "waitpoint.graph": call.spec.name,
            "waitpoint.thread.id": None if thread_id is None else str(thread_id),
            "waitpoint.run.id": None if run_id is None else str(run_id),
            "waitpoint.ns": "|".join(call.shown_ns) if inner else None,
        },
        around,
    )


# --- steps ------------------------------------------------------------------------------------------------------------


def stepped(run: Run, steps: Generator[Any, Any, BaseException | None]) -> Generator[Any, Any, BaseException | None]:
    """Run the tasks of a superstep in a span of its own."""
    tracing: Tracing = run.around.tracing
    if tracing.span is None:
        return (yield from steps)
    tracing.step = tracing.span.inside("step", {"waitpoint.step": run.head.step + 1, "waitpoint.graph": run.spec.name})
    failure: BaseException | None = None
    try:
        failure = yield from steps
        return failure
    except BaseException as error:
        failure = error
        raise
    finally:
        tracing.step.end(failure)
        tracing.step = None


# --- waits ------------------------------------------------------------------------------------------------------------


def waits(saver: BaseCheckpointSaver, settled: Sequence[Settlement], resumes: Span | None = None) -> None:
    """Write a span for each wait that ended: from the question, as stored, to its answer; linked to what goes on."""
    tracer = spans.tracer()
    if tracer is None or not settled:
        return
    try:
        rows = {q.id: q for q in saver.questions(PendingFilter(ids=[s.id for s in settled], answerable=False))}
        for each in settled:
            if each.id in rows:
                _wait(tracer, rows[each.id], each, resumes)
    except Exception:  # the answers are stored, and who gave them must not hear otherwise
        logger.exception("waits could not be traced")


def _wait(tracer: Any, row: QuestionRow, settled: Settlement, resumes: Span | None) -> None:
    traceparent = _asked_in(row)
    wait = Span(
        tracer,
        f"wait {row.node}",
        {
            "waitpoint.interrupt.id": row.id,
            "waitpoint.interrupt.status": settled.status,
            "waitpoint.answer.by": settled.by,
            "waitpoint.node": row.node,
            "waitpoint.task.id": row.task_id,
            "waitpoint.thread.id": row.key.thread_id,
            "waitpoint.graph": row.key.graph,
        },
        spans.far_context(traceparent) if traceparent else None,
        links=[resumes.traceparent] if resumes is not None else [],
        start=row.asked_at,
    )
    wait.end(at=settled.at)


def _asked_in(row: QuestionRow) -> str:
    """Return the `traceparent` of the task that asked a question, "" if nobody traced it."""
    found: str = codec.loads(row.extra).get("traceparent", "")
    return found


# --- telling ----------------------------------------------------------------------------------------------------------


def careful(blocking: Callable[[], Any], awaiting: Callable[[], Awaitable[Any]]) -> Moment:
    """Return a moment at an end: what a handler raises there is logged, since what ended is on its way to the record."""

    async def later() -> None:
        await quietly_later(awaiting())

    return Moment(partial(quietly, blocking), later)


def quietly(tell: Callable[[], Any]) -> None:
    """Tell; what a handler raises is logged."""
    try:
        tell()
    except Exception:
        logger.exception("a callback handler failed")


async def quietly_later(telling: Awaitable[Any]) -> None:
    """Do the same from an event loop."""
    try:
        await telling
    except Exception:
        logger.exception("a callback handler failed")
