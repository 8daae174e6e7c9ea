"""Older models and other methods, tried on a sample of the items."""

import threading
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.base import OnlineHasher
from streamhash.hashers import METHODS
from streamhash.live import Answer, Collection, Listing
from streamhash.search import HammingIndex
from streamhash.service.errors import Refusal

__all__ = ["Sample", "Versions"]

Integers = NDArray[np.int64]

MODELS = 8  # older models that are kept ready
SEED = 0  # of the sample, and of methods


class Sample(NamedTuple):
    """Items that models are tried on."""

    keys: Integers
    vectors: NDArray[np.float32]
    listing: Listing

    def search(
        self, model: OnlineHasher, number: int, queries: NDArray[np.float32], k: int
    ) -> Answer:
        """Encode the sample with a model, and search it."""
        index = HammingIndex(model.n_bits)
        index.add(self.keys, model.transform(self.vectors))
        codes = model.transform(queries)
        return Answer(number, codes, *index.search(codes, k), self.listing)


class Versions:
    """The models of a collection by number, and methods learned from its items."""

    def __init__(self, collection: Collection, size: int) -> None:
        self._collection, self._size = collection, size
        self._read = lru_cache(MODELS)(collection.model)
        self._reading = threading.Lock()

    def model(self, number: int) -> OnlineHasher:
        """Return a model by its number."""
        with self._reading:
            if number not in {there for there, _ in self._collection.models()}:
                raise Refusal(404, f"there is no model {number}; GET /api/models lists them.")
            return self._read(number)

    def sample(self, without: Integers | None = None) -> Sample:
        """Draw items, always the same of the same; those with the keys ``without`` are left out."""
        left_out = np.empty(0, np.int64) if without is None else without
        return Sample(*self._collection.sample(lambda keys: self._draw(keys, left_out)))

    def _draw(self, keys: Integers, without: Integers) -> Integers:
        keys = keys[~np.isin(keys, without)]
        if len(keys) <= self._size:
            return keys
        chosen = np.random.default_rng(SEED).choice(len(keys), self._size, replace=False)
        return keys[np.sort(chosen)]

    def method(self, name: str, sample: Sample) -> OnlineHasher:
        """Return a method that has learned from the labelled items of the sample."""
        if name not in METHODS:
            raise Refusal(404, f"there is no method {name[:50]!r}; choose from {[*METHODS]}.")
        labels = sample.listing.labels_of(sample.keys)
        known = np.flatnonzero(labels >= 0)
        if len(known) == 0:
            raise Refusal(409, "no item of the sample has a label to learn from; add some.")
        hasher = METHODS[name](n_bits=self._collection.n_bits, random_state=SEED)
        return hasher.partial_fit(sample.vectors[known], labels[known])
