"""Metrics of the server itself, for Prometheus. No tenant, no id, no content."""

from contextlib import AbstractContextManager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from muniment.job import JobResult
from muniment.worker.due import Due

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class ServerMetrics:
    """The metrics of one server process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter(
            "muniment_http_requests_total", "Requests answered.", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "muniment_http_request_seconds",
            "Time to answer.",
            ("method", "route"),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._in_flight = Gauge("muniment_http_requests_in_flight", "Requests being answered.", registry=self._registry)
        self._streams = Gauge("muniment_event_streams", "Event streams that are open.", registry=self._registry)
        self._jobs = Counter(
            "muniment_jobs_total", "Jobs that the worker inside ran.", ("job", "outcome"), registry=self._registry
        )

    def in_flight(self) -> AbstractContextManager[None]:
        """Count a request as in flight."""
        return self._in_flight.track_inprogress()

    def stream(self) -> AbstractContextManager[None]:
        """Count an event stream as open."""
        return self._streams.track_inprogress()

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answered request and its time."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def count_job(self, due: Due, done: JobResult | None) -> None:
        """Count a job that ran (`done`) or failed (None)."""
        self._jobs.labels(due.job, "done" if done is not None else "failed").inc()

    def text(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return generate_latest(self._registry)
