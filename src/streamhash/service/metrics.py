"""Metrics for Prometheus: requests, searches, and how the collection does."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from streamhash.live import Collection
from streamhash.service.batching import SearchBatcher

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The measures of one service; routes are the service's own, so there are few of them."""

    def __init__(self, collection: Collection, searches: SearchBatcher) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(_CollectionMetrics(collection, searches))
        self.requests = Counter(
            "streamhash_requests",
            "Requests by route and status.",
            ["route", "status"],
            registry=registry,
        )
        self.seconds = Histogram(
            "streamhash_request_seconds",
            "Seconds from a request's head to the end of its answer.",
            ["route"],
            buckets=BUCKETS,
            registry=registry,
        )
        self.running = Gauge(
            "streamhash_requests_running", "Requests being answered.", registry=registry
        )

    def text(self) -> bytes:
        """Return all of it as Prometheus reads it."""
        return generate_latest(self._registry)


class _CollectionMetrics(Collector):
    """Reads what is cheap to read, when it is asked for."""

    def __init__(self, collection: Collection, searches: SearchBatcher) -> None:
        self._collection, self._searches = collection, searches

    def collect(self) -> Iterator[Metric]:
        """Yield the measures of now."""
        collection, history = self._collection, self._collection.history()
        for name, text, n in (
            ("search_batches", "Batches searched.", self._searches.n_batches),
            ("search_queries", "Queries searched in them.", self._searches.n_queries),
            ("refreshes", "Models that have come to serve.", len(history.refreshes)),
            ("drifts", "Alarms of drift.", len(history.drifts)),
        ):
            yield CounterMetricFamily(f"streamhash_{name}", text, n)
        recent = "Share of right neighbours of recent labelled items, before they were learned."
        for name, text, value in (
            ("items", "Items stored.", len(collection)),
            ("serving_model", "Number of the model that serves.", collection.model_number),
            ("writable", "Whether writes are taken.", int(not collection.read_only)),
            *(("prequential_precision", recent, at["precision"]) for at in history.series[-1:]),
        ):
            yield GaugeMetricFamily(f"streamhash_{name}", text, value)
