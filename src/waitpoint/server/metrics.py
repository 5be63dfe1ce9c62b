"""What Prometheus may read: counts kept as things happen, and what the store says when it is asked.

waitpoint_requests_total{method, route, status}    waitpoint_request_seconds{route}
waitpoint_runs_ended_total{graph, status}           waitpoint_run_seconds{graph}
waitpoint_runs{status}   pending (the queue) and running, in all processes of the store
waitpoint_open_questions{graph}                     waitpoint_oldest_question_seconds
waitpoint_runs_here   waitpoint_open_streams   waitpoint_log_waiting (entries that are not stored yet)
"""

from __future__ import annotations

from collections import Counter as Counted

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from waitpoint import clock
from waitpoint.checkpoint.base import PendingFilter
from waitpoint.hosting.executing import Ended
from waitpoint.hosting.host import Host
from waitpoint.ledger.base import RunRow

_LONG = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600)


class Metrics:
    """The numbers of one application, in a registry of its own: several may live in a process."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "waitpoint_requests", "Requests that were answered.", ["method", "route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "waitpoint_request_seconds", "How long requests took, streams aside.", ["route"], registry=registry
        )
        self._ended = Counter("waitpoint_runs_ended", "Runs that ended here.", ["graph", "status"], registry=registry)
        self._run_seconds = Histogram(
            "waitpoint_run_seconds", "From request to end of a run.", ["graph"], buckets=_LONG, registry=registry
        )
        self._runs = Gauge("waitpoint_runs", "Runs that are not over.", ["status"], registry=registry)
        self._open = Gauge(
            "waitpoint_open_questions", "Questions that wait for an answer.", ["graph"], registry=registry
        )
        self._oldest = Gauge("waitpoint_oldest_question_seconds", "Age of the oldest open question.", registry=registry)
        self._here = Gauge("waitpoint_runs_here", "Runs that this process executes.", registry=registry)
        self._streams = Gauge("waitpoint_open_streams", "Responses that are being sent.", registry=registry)
        self._log = Gauge("waitpoint_log_waiting", "Log entries that are not stored yet.", registry=registry)
        host.on_ended.append(self._run_ended)

    def requested(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """Count a request; `route` is its pattern, so that ids make no numbers of their own."""
        known = method if method in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS") else "other"
        self._requests.labels(known, route, str(status)).inc()
        if seconds is not None:
            self._seconds.labels(route).observe(seconds)

    def _run_ended(self, run: RunRow, ended: Ended) -> None:
        self._ended.labels(run.graph, ended.status).inc()
        self._run_seconds.labels(run.graph).observe(max(0.0, clock.now() - run.created_at))

    def text(self, open_streams: int) -> bytes:
        """Return all numbers as Prometheus reads them. Asks the store, so it is called outside the event loop."""
        ledger, saver = self._host.ledger, self._host.saver
        for status in ("pending", "running"):
            self._runs.labels(status).set(ledger.count_runs(status=[status]))
        questions = saver.questions(PendingFilter())
        self._open.clear()
        for graph, count in Counted(row.key.graph for row in questions).items():
            self._open.labels(graph).set(count)
        oldest = min((row.asked_at for row in questions), default=None)
        self._oldest.set(0.0 if oldest is None else max(0.0, clock.now() - oldest))
        self._here.set(len(self._host.dispatcher.running))
        self._streams.set(open_streams)
        self._log.set(self._host.journal.waiting)
        return generate_latest(self._registry)
