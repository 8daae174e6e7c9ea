"""A collection that a newcomer can watch: the embedded digits, arriving one after the other."""

import threading
from collections.abc import Iterator
from itertools import islice
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from streamhash.hashers import SDOH
from streamhash.live import Collection

__all__ = ["DigitStream", "create_digits"]

BITS = 32
SIDE = 8  # pixels
FIRST = 1000  # digits that are there from the beginning, without labels
STAGE = 20  # labelled digits that the learner takes at a time: few, so that its start is seen
STAGE_SECONDS = 1.0  # between two stages
MAX_ITEMS = 20_000  # after that, the oldest are replaced


def create_digits(path: str | PathLike[str], seed: int = 0) -> Collection:
    """Make a collection of digits, most of which have no label yet."""
    hasher = SDOH(BITS, batch_size=STAGE, random_state=seed)
    collection = Collection.create(path, hasher, background=True, random_state=seed)
    X, y = _take(_digits(seed), FIRST)
    collection.add(range(FIRST), X, metadata=_metadata(y))
    # One class after the other is a hard beginning: what is learned first is of little use.
    first = np.argsort(y, kind="stable")[: 2 * STAGE]
    collection.label(first, y[first])
    return collection


def _metadata(y: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Say that the vectors are pictures, and of which digit, for people to see: none learns it."""
    image = {"width": SIDE, "height": SIDE}
    return [{"image": image, "digit": digit} for digit in y.tolist()]


class DigitStream:
    """A thread that adds labelled digits to a collection, inside its ``with`` block."""

    def __init__(self, collection: Collection, seed: int = 0, every: float = STAGE_SECONDS) -> None:
        self._collection, self._every = collection, every
        self._digits = _digits(seed + 1)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="digits", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        number = len(self._collection)
        while not self._stop.wait(self._every):
            X, y = _take(self._digits, STAGE)
            ids = np.arange(number, number + STAGE) % MAX_ITEMS
            self._collection.add(ids, X, y, metadata=_metadata(y), existing="replace")
            number += STAGE


def _digits(seed: int) -> Iterator[tuple[NDArray[np.float32], np.int64]]:
    """Yield scikit-learn's 1,797 digits in a random order; from the second round on, changed."""
    rng = np.random.default_rng(seed)
    X, y = load_digits(return_X_y=True)
    while True:
        order = rng.permutation(len(X))
        yield from zip(X[order].astype(np.float32), y[order], strict=True)
        X = np.clip(X + rng.normal(0, 1, X.shape), 0, 16)


def _take(digits: Iterator[tuple[NDArray[np.float32], np.int64]], n: int) -> tuple[Any, Any]:
    """Return the next digits and their labels."""
    X, y = zip(*islice(digits, n), strict=True)
    return np.array(X), np.array(y)
