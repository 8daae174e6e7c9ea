"""Metrics for Prometheus: requests, searches, and how each collection does."""

import logging
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from streamhash import __version__
from streamhash.errors import StreamhashError
from streamhash.service.collections import Collections
from streamhash.service.served import Served

logger = logging.getLogger(__name__)

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The measures of one service; routes are the service's own, so there are few of them."""

    def __init__(self, collections: Collections) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(_CollectionMetrics(collections))
        build = Info("streamhash_build", "The version that serves.", registry=registry)
        build.info({"version": __version__})
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
    "added_items": "Items added by requests.",
    "refreshes": "Models that have come to serve.",
    "drifts": "Alarms of drift.",
}
GAUGES = {
    "readable": "Whether what follows could be read just now.",
    "writable": "Whether writes are taken.",
    "items": "Items stored.",
    "labelled_items": "Items with a label.",
    "learned_items": "Labelled items learned from.",
    "waiting_items": "Labelled items that wait to be learned.",
    "disk_bytes": "Size of its files; of local folders only.",
    "log_bytes": "Size of the log of small changes, which are not in the datasets yet.",
    "serving_model": "Number of the model that serves.",
    "refresh_due": "Whether a refresh is due by the policy.",
    "refresh_gain": "By how much a refresh would raise precision, as far as that is known.",
    "refresh_running": "Whether a refresh runs.",
    "refresh_failed": "Whether the last refresh failed.",
    "refresh_timestamp_seconds": "When the model that serves came to serve.",
    "drift_timestamp_seconds": "When the last alarm of drift was.",
    "prequential_precision": "Share of right neighbours of recent labelled items, before they "
    "were learned.",
    "backend_reachable": "Whether what holds its codes answers.",
    "backend_lag": "Changes that what holds its codes has not got yet.",
}


class _CollectionMetrics(Collector):
    """Reads how each collection does, when it is asked for."""

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
                    if measures.get(name) is not None:
                        metric.add_metric([collection], float(measures[name]))
                yield metric


def _measure(here: Served) -> dict[str, Any]:
    """Return the measures of a collection; None where there is nothing to tell."""
    served = {
        "search_batches": here.searches.n_batches,
        "search_queries": here.searches.n_queries,
        "added_items": here.writes.n_added,
        "writable": not here.collection.read_only,
    }
    try:
        history, status = here.collection.history(), here.collection.status()
    except (StreamhashError, OSError) as error:  # of one; the others are measured all the same
        logger.error("metrics: %s cannot be read: %s", here.name, error)
        return {**served, "readable": False}
    refresh, backend, drift = status["refresh"], status["backend"], status["quality"]["last_drift"]
    return {
        **served,
        "readable": True,
        "refreshes": len(history.refreshes),
        "drifts": len(history.drifts),
        "items": status["items"],
        "labelled_items": status["labelled"],
        "learned_items": status["learner"]["learned"],
        "waiting_items": status["learner"]["waiting"],
        "disk_bytes": status["disk_bytes"],
        "log_bytes": status["log_bytes"],
        "serving_model": status["serving"]["model"],
        "refresh_due": refresh["due"],
        "refresh_gain": refresh["precision_gain"],
        "refresh_running": refresh["running"],
        "refresh_failed": refresh["error"] is not None,
        "refresh_timestamp_seconds": status["serving"]["since"],
        "drift_timestamp_seconds": None if drift is None else drift["time"],
        "prequential_precision": status["quality"]["precision"],
        "backend_reachable": backend["reachable"],
        "backend_lag": backend["lag"],
    }
