"""Spans for OpenTelemetry: of runs, steps, tasks, effects, and of the waits between a question and its answer.

opentelemetry is never loaded here: who wants spans has loaded it, and has set a tracer provider. Spans tell where and
when and by whom, and of payloads nothing, unless `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` is "true".
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from waitpoint.errors import GraphBubbleUp
from waitpoint.version import __version__

T = TypeVar("T")

_NO_PROVIDERS = ("ProxyTracerProvider", "NoOpTracerProvider")

_known: tuple[Any, Any] = (None, None)  # the provider that was last seen, and its tracer


def tracer() -> Any:
    """Return the tracer of this process, if opentelemetry is loaded and has a provider."""
    global _known  # noqa: PLW0603 - one tracer for each provider, since making one takes time
    get_provider = getattr(sys.modules.get("opentelemetry.trace"), "get_tracer_provider", None)
    if get_provider is None:
        return None
    provider = get_provider()
    if provider is not _known[0]:
        is_none = type(provider).__name__ in _NO_PROVIDERS
        _known = (provider, None if is_none else provider.get_tracer("waitpoint", __version__))
    return _known[1]


def content_is_asked_for() -> bool:
    """Whether spans may tell what was said, as OpenTelemetry's conventions for models have it."""
    return os.environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").lower() == "true"


class Span:
    """One span. `context` is that of whatever runs in it."""

    __slots__ = ("_span", "_tracer", "context")

    def __init__(
        self, tracer: Any, name: str, attributes: Mapping[str, Any], parent: Any = None, *, kind: str = "INTERNAL",
        links: Iterable[str] = (), start: float | None = None,
    ) -> None:  # fmt: skip
        from opentelemetry import trace

        told = {key: value for key, value in attributes.items() if value is not None}
        self._tracer = tracer
        self._span = tracer.start_span(
            name, parent, trace.SpanKind[kind], told, [trace.Link(c) for c in map(_far, links) if c is not None],
            None if start is None else round(start * 1e9),
        )  # fmt: skip
        self.context = trace.set_span_in_context(self._span, parent)

    def inside(self, name: str, attributes: Mapping[str, Any], *, kind: str = "INTERNAL") -> Span:
        """Begin a span inside this one."""
        return Span(self._tracer, name, attributes, self.context, kind=kind)

    def beneath(self, name: str, attributes: Mapping[str, Any]) -> Span:
        """Begin a span inside the one that is current here, or in this one where that is lost (threads of the user's)."""
        from opentelemetry import trace

        is_lost = not trace.get_current_span().get_span_context().is_valid
        return Span(self._tracer, name, attributes, self.context if is_lost else None)

    def put(self, attributes: Mapping[str, Any]) -> None:
        """Add attributes; those that are None are left out."""
        for name, value in attributes.items():
            if value is not None:
                self._span.set_attribute(name, value)

    def link(self, traceparent: str) -> None:
        """Link a span, perhaps of another process, by its `traceparent`."""
        far = _far(traceparent)
        if far is not None:
            self._span.add_link(far)

    @property
    def traceparent(self) -> str:
        """What names this span in other processes, in the form of W3C Trace Context."""
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        carrier: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(carrier, self.context)
        return carrier.get("traceparent", "")

    def enter(self) -> Any:
        """Make it the current span; return what `leave` wants."""
        from opentelemetry import context

        return context.attach(self.context)

    def leave(self, token: Any) -> None:
        """Make the span current again that was so before."""
        from opentelemetry import context

        context.detach(token)

    def end(self, error: BaseException | None = None, at: float | None = None) -> None:
        """End it. A pause, and whatever else only bubbles up, is no error."""
        if error is not None and not isinstance(error, GraphBubbleUp):
            from opentelemetry.trace import Status, StatusCode

            self._span.set_attribute("error.type", type(error).__qualname__)
            self._span.set_status(Status(StatusCode.ERROR))
            if content_is_asked_for():  # the text of an error may hold anything
                self._span.record_exception(error)
        self._span.end(None if at is None else round(at * 1e9))

    # --- effects ------------------------------------------------------------------------------------------------------

    def effect(self, function: str, call: Callable[[], T]) -> T:
        """Run an effect in a span of its own; one that is yet to be awaited gets it then."""
        span = self.beneath(f"effect {function}", {"waitpoint.effect": function})
        token, failure = span.enter(), None
        try:
            result = call()
        except BaseException as error:
            failure = error
            raise
        finally:
            span.leave(token)
            if failure is not None:
                span.end(failure)
        if not inspect.isawaitable(result):
            span.end()
        return result

    async def effect_later(self, function: str, work: Awaitable[T]) -> T:
        """Await an effect in a span of its own."""
        span = self.beneath(f"effect {function}", {"waitpoint.effect": function})
        token, failure = span.enter(), None
        try:
            return await work
        except BaseException as error:
            failure = error
            raise
        finally:
            span.leave(token)
            span.end(failure)


def current() -> Any:
    """Return the context of the caller; None if no span is current there."""
    from opentelemetry import context, trace

    return context.get_current() if trace.get_current_span().get_span_context().is_valid else None


def far_context(traceparent: str) -> Any:
    """Return the context that a `traceparent` names."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({"traceparent": traceparent})


def _far(traceparent: str) -> Any:
    from opentelemetry import trace

    found = trace.get_current_span(far_context(traceparent)).get_span_context()
    return found if found.is_valid else None
