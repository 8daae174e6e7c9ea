"""What Prometheus is told: requests, searches, and how the collection does."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from streamhash.service.desk import Desk

__all__ = ["Metrics"]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The measures of one service."""

    def __init__(self, desk: Desk) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(_OfCollection(desk))
        self._requests = Counter(
            "streamhash_requests",
            "Requests by route and status.",
            ["route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "streamhash_request_seconds",
            "Seconds from a request's head to the end of its answer.",
            ["route"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self.running = Gauge(
            "streamhash_requests_running", "Requests being answered.", registry=self._registry
        )

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Take note of a request; ``route`` is one of the service's own, so they stay few."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all of it as Prometheus reads it."""
        return generate_latest(self._registry)


class _OfCollection(Collector):
    """Reads what is cheap to read, when it is asked for."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def collect(self) -> Iterator[Metric]:
        """Yield the measures of now."""
        desk, collection = self._desk, self._desk.collection
        yield GaugeMetricFamily("streamhash_items", "Items stored.", len(collection))
        yield GaugeMetricFamily(
            "streamhash_serving_model", "Number of the model that serves.", collection.model_number
        )
        yield GaugeMetricFamily(
            "streamhash_writable", "Whether writes are taken.", int(not collection.read_only)
        )
        yield CounterMetricFamily(
            "streamhash_search_batches", "Batches searched.", desk.searches.n_batches
        )
        yield CounterMetricFamily(
            "streamhash_search_queries", "Queries searched in them.", desk.searches.n_queries
        )
        history = collection.history()
        yield CounterMetricFamily(
            "streamhash_refreshes", "Models that have come to serve.", len(history.refreshes)
        )
        yield CounterMetricFamily("streamhash_drifts", "Alarms of drift.", len(history.drifts))
        if history.series:
            yield GaugeMetricFamily(
                "streamhash_prequential_precision",
                "Share of right neighbours of recent labelled items, before they were learned.",
                history.series[-1]["precision"],
            )

    def describe(self) -> list[Metric]:
        """Say nothing beforehand: the collection may not be ready."""
        return []
