"""Metrics for Prometheus: requests, searches, and how each collection does."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from streamhash.service.collections import Collections
from streamhash.service.served import Served

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The measures of one service; routes are the service's own, so there are few of them."""

    def __init__(self, collections: Collections) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(_CollectionMetrics(collections))
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


COUNTERS = {
    "search_batches": "Batches searched.",
    "search_queries": "Queries searched in them.",
    "refreshes": "Models that have come to serve.",
    "drifts": "Alarms of drift.",
}
GAUGES = {
    "items": "Items stored.",
    "serving_model": "Number of the model that serves.",
    "writable": "Whether writes are taken.",
    "prequential_precision": "Share of right neighbours of recent labelled items, before they "
    "were learned.",
}


class _CollectionMetrics(Collector):
    """Reads what is cheap to read of each collection, when it is asked for."""

    def __init__(self, collections: Collections) -> None:
        self._collections = collections

    def collect(self) -> Iterator[Metric]:
        """Yield the measures of now."""
        by_name = {name: _measure(here) for name, here in self._collections.served.items()}
        families = [(CounterMetricFamily, COUNTERS), (GaugeMetricFamily, GAUGES)]
        for family, texts in families:
            for name, text in texts.items():
                metric = family(f"streamhash_{name}", text, labels=["collection"])
                for collection, measures in by_name.items():
                    if name in measures:
                        metric.add_metric([collection], measures[name])
                yield metric


def _measure(here: Served) -> dict[str, float]:
    collection, history = here.collection, here.collection.history()
    measures: dict[str, float] = {
        "search_batches": here.searches.n_batches,
        "search_queries": here.searches.n_queries,
        "refreshes": len(history.refreshes),
        "drifts": len(history.drifts),
        "items": len(collection),
        "serving_model": collection.model_number,
        "writable": int(not collection.read_only),
    }
    if history.series:
        measures["prequential_precision"] = history.series[-1]["precision"]
    return measures
