"""What a collection says of itself: plain values, for people, programs and the web page."""

from typing import TYPE_CHECKING, Any

import numpy as np

from streamhash.records import History

if TYPE_CHECKING:
    from streamhash.live.reading import Reading

__all__ = ["describe_history", "describe_status"]

GUESS = 1e-6  # seconds an item and feature of the first refresh, before one was measured


def describe_history(collection: "Reading") -> History:
    """Return the history of a collection."""
    monitor = collection._learner.monitor_
    return History(monitor.refreshes, monitor.drifts_, monitor.series())


def describe_status(collection: "Reading") -> dict[str, Any]:
    """Return how a collection does."""
    view, learner, store = collection._view, collection._learner, collection._store
    monitor = learner.monitor_
    last = monitor.last_refresh
    return {
        "address": store.address,
        "items": len(view.directory),
        "labelled": view.directory.n_labelled,
        "classes": view.directory.n_classes,
        "bits": collection.n_bits,
        "features": collection.n_features,
        "vectors": collection._settings["vectors"],
        "disk_bytes": store.disk_bytes(),
        "version": store.version("items"),
        "learner": {
            "method": type(learner.hasher_).__name__,
            "learned": learner.n_learned_,
            "waiting": learner.n_waiting,
        },
        "serving": {
            "model": view.number,
            "learned": None if last is None else last["learned"],
            "since": None if last is None else last["time"],
        },
        "home": (collection._homes if view.index is None else view.index).status(),
        "refresh": {
            "policy": str(collection._policy),
            "due": collection.is_refresh_due(),
            "running": collection._refreshing.locked(),
            "progress": _progress(collection),
            "interrupted": collection._pending() is not None,
            "gain": collection.gain(),
            "missed": learner.missed_,
            "worth": _worth(collection),
            "cost_items": len(view.directory),
            "cost_seconds": _cost(collection, last),
            "error": None if collection._refresh_error is None else str(collection._refresh_error),
        },
        "quality": {
            "precision": _finite(monitor.recent_),
            "answers": monitor.n_answers_,
            "drifts": len(monitor.drifts_),
            "last_drift": monitor.drifts_[-1] if monitor.drifts_ else None,
        },
        "codes": {
            "ones": None if view.index is None else view.index.share_of_ones(),
            "flips": None if monitor.flips_ is None else np.round(monitor.flips_, 4).tolist(),
        },
    }


def _progress(collection: "Reading") -> dict[str, int] | None:
    """How far a running refresh is: items encoded, and in all."""
    if not collection._refreshing.locked():
        return None
    return dict(zip(("done", "total"), collection._progress, strict=True))


def _worth(collection: "Reading") -> float | None:
    """What a refresh is worth in parts of what it costs: from 1 on it is due."""
    price, items = collection._policy.price, len(collection._view.directory)
    return collection._learner.missed_ / (price * items) if price and items else None


def _cost(collection: "Reading", last: dict[str, Any] | None) -> float:
    """Seconds that a refresh would take, about: as long an item as the last one took."""
    items = len(collection._view.directory)
    if last is not None and last["items"] >= 1000:
        return float(items * last["seconds"] / last["items"])
    return items * GUESS * (collection.n_features or 0)


def _finite(value: float) -> float | None:
    return None if np.isnan(value) else value
