"""Metrics of the server itself, for Prometheus. No tenant, no id, no content."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import fields, replace
from pathlib import Path
from time import monotonic

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from muniment.database.replica import Replica
from muniment.http.metrics_folder import live_processes
from muniment.job import JobResult
from muniment.recall.scope_index import Counts, ScopeIndexes
from muniment.worker.due import Due

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# How often the figures of the index are written down for the other processes.
_INDEX_SECONDS = 1.0


class ServerMetrics:
    """The metrics of one server process; with the `folder` that several share, those of all of them."""

    def __init__(self, folder: Path | None = None) -> None:
        self._registry = CollectorRegistry()
        self._shown = CollectorRegistry() if folder is not None else self._registry
        if folder is not None:
            MultiProcessCollector(self._shown, str(folder))
            self._shown.register(_Processes(folder))
        else:
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
        self._in_flight = self._gauge("muniment_http_requests_in_flight", "Requests being answered.")
        self._streams = self._gauge("muniment_event_streams", "Event streams that are open.")
        self._jobs = Counter(
            "muniment_jobs_total", "Jobs that the worker inside ran.", ("name", "outcome"), registry=self._registry
        )

        self._index_events = Counter(
            "muniment_recall_index_total",
            "Recalls ranked from the index in memory (used), its parts built and refreshed, answers it had wrong.",
            ("what",),
            registry=self._registry,
        )
        self._index_bytes = self._gauge("muniment_recall_index_bytes", "Memory that the index takes, in bytes.")
        self._replica_lag = Gauge(
            "muniment_replica_lag_seconds",
            "How far behind the standby was at the last read that it was asked for.",
            registry=self._registry,
            multiprocess_mode="livemax",
        )
        self._replica_reads = Counter(
            "muniment_replica_reads_total",
            "Reads that the standby answered (standby), and why the primary answered others.",
            ("answered",),
            registry=self._registry,
        )
        self._replica: Replica | None = None
        self._replica_counted: dict[str, int] = {}
        self._index: ScopeIndexes | None = None
        self._index_counted = Counts()
        self._index_counted_at = 0.0

    def _gauge(self, name: str, about: str) -> Gauge:
        return Gauge(name, about, registry=self._registry, multiprocess_mode="livesum")

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
        if monotonic() - self._index_counted_at > _INDEX_SECONDS:
            self._count_index()

    def follow_index(self, index: ScopeIndexes) -> None:
        """Show what the index of this process does from now on."""
        self._index = index

    def follow_replica(self, replica: Replica | None) -> None:
        """Show how far behind the standby is, and where reads go, from now on."""
        self._replica = replica

    def _count_reads(self) -> None:
        if self._replica is None:
            return
        for answered, count in self._replica.reads.items():
            self._replica_reads.labels(answered).inc(count - self._replica_counted.get(answered, 0))
            self._replica_counted[answered] = count
        if self._replica.lag is not None:
            self._replica_lag.set(self._replica.lag)

    def _count_index(self) -> None:
        self._count_reads()
        if self._index is None:
            return
        now = replace(self._index.counts)
        for field in fields(Counts):
            self._index_events.labels(field.name).inc(
                getattr(now, field.name) - getattr(self._index_counted, field.name)
            )
        self._index_bytes.set(self._index.size)
        self._index_counted, self._index_counted_at = now, monotonic()

    def count_job(self, due: Due, done: JobResult | None) -> None:
        """Count a job that ran (`done`) or failed (None)."""
        self._jobs.labels(due.job, "done" if done is not None else "failed").inc()

    def text(self) -> bytes:
        """The metrics in Prometheus' text format."""
        self._count_index()
        return generate_latest(self._shown)


class _Processes(Collector):
    """Memory, time and files of every process, by its id."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def describe(self) -> Iterator[Metric]:
        yield from ()

    def collect(self) -> Iterator[Metric]:
        found: dict[str, Metric] = {}
        for pid in sorted(live_processes(self._folder)):
            for metric in ProcessCollector(pid=lambda pid=pid: pid, registry=None).collect():
                merged = found.setdefault(metric.name, Metric(metric.name, metric.documentation, metric.type))
                for sample in metric.samples:
                    merged.add_sample(sample.name, {**sample.labels, "pid": pid}, sample.value)
        yield from found.values()
