"""Older models and other methods, tried on a sample of the items; and classes, one by one."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from starlette.exceptions import HTTPException

from streamhash.base import OnlineHasher
from streamhash.classes import ClassTable
from streamhash.hashers import METHODS
from streamhash.labels import each_label
from streamhash.live import Answer, Collection, Listing
from streamhash.search import HammingIndex
from streamhash.service.batching import Found
from streamhash.service.models import ByModel, CompareBody
from streamhash.storable import check_vectors

Integers = NDArray[np.int64]
Rows = NDArray[np.float32]

NORMAL_95 = 1.96  # standard errors on each side of a mean that hold the true one 19 times of 20
PER_CLASS = 20  # queries of each class, where classes are told apart
MODELS_KEPT = 8  # older models that stay in memory
RANDOM_STATE = 0  # of the sample, and of methods


class _Sample(NamedTuple):
    """Items that models are tried on."""

    keys: Integers
    vectors: Rows
    listing: Listing

    def search(self, model: OnlineHasher, number: int, queries: Rows, k: int) -> Answer:
        """Encode the sample with a model, and search it."""
        index = HammingIndex(model.n_bits)
        index.add(self.keys, model.transform(self.vectors))
        codes = model.transform(queries)
        return Answer(number, codes, *index.search(codes, k), self.listing)

    def learn(self, name: str, n_bits: int) -> OnlineHasher:
        """Return a method that has learned from the labelled items."""
        if name not in METHODS:
            raise HTTPException(404, f"there is no method {name[:50]!r}; choose from {[*METHODS]}.")
        labels = self.listing.labels_of(self.keys)
        known = np.flatnonzero(labels >= 0)
        if len(known) == 0:
            raise HTTPException(409, "no item of the sample has a label to learn from; add some.")
        hasher = METHODS[name](n_bits=n_bits, random_state=RANDOM_STATE)
        names = self.listing.label_names_of(self.keys[known])
        are_several = isinstance(names[0], tuple)
        y: NDArray[Any] = ClassTable().matrix(names) if are_several else labels[known]
        return hasher.partial_fit(self.vectors[known], y)


class Comparison:
    """Searches with the models of a collection by their number, and with other methods."""

    def __init__(self, collection: Collection, sample_size: int) -> None:
        self._collection, self._sample_size = collection, sample_size
        self._model = lru_cache(MODELS_KEPT)(collection.model)

    def search(
        self, number: int, rows: Rows, own: Integers | None, k: int, *, metadata: bool
    ) -> Found:
        """Search with an older model; the keys ``own`` are those of the queries."""
        model, sample = self._model(number), self._draw(own)
        answer = sample.search(model, number, rows, k)
        known = self._collection.metadata(answer.keys) if metadata else {}
        return Found(answer, known, len(sample.keys))

    def compare(self, body: CompareBody) -> dict[str, Any]:
        """Return what two models or methods find for the same queries, vectors or items."""
        collection, own = self._collection, np.empty(0, np.int64)
        ids: list[Any] | None = None
        if body.queries is None:
            ids = self.draw_queries(int(body.n_queries), body.seed)
            own, rows = collection.vectors_of(ids)
        elif isinstance(body.queries, np.ndarray):
            width = collection.n_features
            rows = check_vectors(body.queries, width, "float32", place="compare: queries")
        else:
            ids = body.queries
            own, rows = collection.vectors_of(ids)
        sample = self._draw(own)
        labels = sample.listing.label_names_of(own)
        shown = len(rows) if body.shown is None else int(body.shown)
        sides, shares = {}, {}
        for name, side in (("left", body.left), ("right", body.right)):
            if isinstance(side, ByModel):
                number, method, model = side.model, None, self._model(side.model)
            else:
                number, method = 0, side.method
                model = sample.learn(method, collection.n_bits)
            answer = sample.search(model, number, rows, int(body.k))
            shares[name] = _precisions(answer, labels)
            answer = answer.rows(0, shown, int(body.k))
            found = Found(answer, collection.metadata(answer.keys))
            facts = {"model": None if method else number, "method": method}
            sides[name] = {**facts, "codes": found.codes(), "results": found.results()}
        return {
            "sample": len(sample.keys),
            "queries": len(rows),
            "ids": None if ids is None else ids[:shown],
            **sides,
            "precision": {name: _mean(each) for name, each in shares.items()},
            "difference": _difference(shares["left"], shares["right"]),
        }

    def by_class(self, k: int, seed: int) -> dict[str, Any]:
        """Return how well the model that serves finds the items of each class, the worst first."""
        collection = self._collection
        model = self._model(collection.model_number)
        n = min(self._sample_size, PER_CLASS * max(1, len(collection.label_names())))
        own, rows = collection.vectors_of(self.draw_queries(n, seed))
        sample = self._draw(own)
        labels = sample.listing.label_names_of(own)
        shares = _precisions(sample.search(model, collection.model_number, rows, k), labels)
        found: dict[Any, list[float]] = {}
        for label, share in zip(labels, shares, strict=True):
            if share is not None:
                for each in each_label(label):
                    found.setdefault(each, []).append(share)
        classes = [
            {"label": label, "queries": len(each), "precision": _mean(each)}
            for label, each in found.items()
        ]
        classes.sort(key=lambda each: each["precision"])
        facts = {"model": collection.model_number, "sample": len(sample.keys), "queries": len(own)}
        return {**facts, "precision": _mean(shares), "classes": classes}

    def draw_queries(self, n: int, seed: int) -> list[Any]:
        """Draw items from the whole collection, as many of each label as can be.

        Where no item has a label, they are drawn from all alike.
        """
        everything = np.empty(0, np.int64)

        def look(keys: Integers) -> Integers:
            nonlocal everything
            everything = keys
            return keys[:0]

        _, _, listing = self._collection.sample(look)
        rng = np.random.default_rng(seed)
        keys = rng.permutation(everything)
        numbers = listing.labels_of(keys)
        if (numbers >= 0).any():
            keys, numbers = keys[numbers >= 0], numbers[numbers >= 0]
            # The first of each class, then the second of each, and so on.
            order = np.argsort(numbers, kind="stable")
            starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
            turn = np.empty(len(keys), np.int64)
            turn[order] = np.arange(len(keys)) - np.repeat(
                starts, np.diff(np.append(starts, len(keys)))
            )
            keys = keys[np.lexsort((np.arange(len(keys)), turn))]
        return [*listing.ids_of(keys[:n]).tolist()]

    def _draw(self, without: Integers | None) -> _Sample:
        """Draw items, always the same of the same; those with the keys ``without`` are left out."""
        left_out = np.empty(0, np.int64) if without is None else without

        def choose(keys: Integers) -> Integers:
            keys = keys[~np.isin(keys, left_out)]
            if len(keys) <= self._sample_size:
                return keys
            rng = np.random.default_rng(RANDOM_STATE)
            return keys[np.sort(rng.choice(len(keys), self._sample_size, replace=False))]

        return _Sample(*self._collection.sample(choose))


def _precisions(answer: Answer, labels: list[Any]) -> list[float | None]:
    """Share of labelled neighbours with their query's label, of each query; None where unknown."""
    shares: list[float | None] = []
    for row, label in zip(answer.keys, labels, strict=False):
        near = answer.listing.labels_of(row[row >= 0])
        is_known = label is not None and (near >= 0).any()
        similar = answer.listing.are_similar(label, near[near >= 0]) if is_known else None
        shares.append(None if similar is None else float(similar.mean()))
    return shares


def _mean(shares: Sequence[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return sum(known) / len(known) if known else None


def _difference(
    left: list[float | None], right: list[float | None]
) -> dict[str, float | None] | None:
    """How much better the right side is: mean over queries, and where it lies 19 times of 20."""
    pairs = zip(left, right, strict=True)
    gaps = [b - a for a, b in pairs if a is not None and b is not None]
    if not gaps:
        return None
    mean, n = sum(gaps) / len(gaps), len(gaps)
    if n == 1:
        return {"mean": mean, "low": None, "high": None}
    spread = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / (n - 1) / n)
    return {"mean": mean, "low": mean - NORMAL_95 * spread, "high": mean + NORMAL_95 * spread}
