"""Older models and other methods, tried on a sample of the items."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from starlette.exceptions import HTTPException

from streamhash.base import OnlineHasher
from streamhash.classes import ClassTable
from streamhash.hashers import METHODS
from streamhash.live import Answer, Collection, Listing, check_vectors
from streamhash.search import HammingIndex
from streamhash.service.batching import Found
from streamhash.service.models import ByModel, CompareBody

Integers = NDArray[np.int64]
Rows = NDArray[np.float32]

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
        if isinstance(body.queries, np.ndarray):
            width = collection.n_features
            rows = check_vectors(body.queries, width, "float32", place="compare: queries")
        else:
            own, rows = collection.vectors_of(body.queries)
        sample = self._draw(own)
        labels = sample.listing.label_names_of(own)
        sides, precision = {}, {}
        for name, side in (("left", body.left), ("right", body.right)):
            if isinstance(side, ByModel):
                number, method, model = side.model, None, self._model(side.model)
            else:
                number, method = 0, side.method
                model = sample.learn(method, collection.n_bits)
            answer = sample.search(model, number, rows, int(body.k))
            found = Found(answer, collection.metadata(answer.keys))
            facts = {"model": None if method else number, "method": method}
            sides[name] = {**facts, "codes": found.codes(), "results": found.results()}
            precision[name] = _precision(answer, labels)
        return {"sample": len(sample.keys), **sides, "precision": precision}

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


def _precision(answer: Answer, labels: list[Any]) -> float | None:
    """Share of labelled neighbours with their query's label, over all queries that have one."""
    shares = []
    for row, label in zip(answer.keys, labels, strict=False):
        near = answer.listing.labels_of(row[row >= 0])
        if label is not None and (near >= 0).any():
            shares.append(answer.listing.are_similar(label, near[near >= 0]).mean())
    return float(np.mean(shares)) if shares else None
