"""A collection that a newcomer can watch: the embedded digits, arriving one after the other."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from streamhash.hashers import SDOH
from streamhash.live import Collection

BITS = 32
SIDE = 8  # pixels
FIRST = 1000  # digits that are there from the beginning, without labels
STAGE = 20  # labelled digits that the learner takes at a time: few, so that its start is seen
STAGE_SECONDS = 1.0  # between two stages
MAX_ITEMS = 20_000  # after that, the oldest are replaced


def create_digits(path: str | PathLike[str], random_state: int = 0) -> Collection:
    """Make a collection of digits, most of which have no label yet."""
    hasher = SDOH(BITS, batch_size=STAGE, random_state=random_state)
    collection = Collection.create(path, hasher, background=True, random_state=random_state)
    X, y = next(_digits(random_state, FIRST))
    collection.add(range(FIRST), X, metadata=_metadata(y))
    # One class after the other is a hard beginning: what is learned first is of little use.
    first = np.argsort(y, kind="stable")[: 2 * STAGE]
    collection.label(first, y[first])
    return collection


def _metadata(y: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Say that the vectors are pictures, and of which digit, for people to see: none learns it."""
    image = {"width": SIDE, "height": SIDE}
    return [{"image": image, "digit": digit} for digit in y.tolist()]


@contextmanager
def stream_digits(
    collection: Collection, random_state: int = 0, seconds: float = STAGE_SECONDS
) -> Iterator[None]:
    """Add labelled digits to a collection, a few at a time, inside the ``with`` block."""
    stop = threading.Event()

    def add() -> None:
        number = len(collection)
        for X, y in _digits(random_state + 1, STAGE):
            if stop.wait(seconds):
                return
            ids = np.arange(number, number + STAGE) % MAX_ITEMS
            collection.add(ids, X, y, metadata=_metadata(y), existing="replace")
            number += STAGE

    thread = threading.Thread(target=add, name="digits", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _digits(random_state: int, n: int) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
    """Yield scikit-learn's digits in random order, ``n`` at a time; noisy from the second round."""
    rng = np.random.default_rng(random_state)
    digits, y = load_digits(return_X_y=True)
    X = digits
    while True:
        order = rng.permutation(len(X))
        for start in range(0, len(X) - n + 1, n):
            rows = order[start : start + n]
            yield X[rows].astype(np.float32), y[rows]
        X = np.clip(digits + rng.normal(0, 1, digits.shape), 0, 16)
