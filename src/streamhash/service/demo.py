"""A collection that a newcomer can watch: news or digits, which arrive a few at a time.

The news are those of the data set ``reuters``, in their order and with their topics, if its file is
there. Else the digits that scikit-learn has come in random order.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from streamhash.base import OnlineHasher
from streamhash.errors import MissingDataError
from streamhash.hashers import SDOH
from streamhash.lab.datasets import DataSet, load_data
from streamhash.labels import label_lists
from streamhash.live import Collection

STAGE = 20  # items that arrive, and are learned, at a time: few, so that the start is seen
STAGE_SECONDS = 1.0  # between two of these
FIRST_NEWS = 500  # news that are there from the beginning
FIRST_DIGITS = 1000  # digits so too, most of them without labels
MAX_DIGITS = 20_000  # after that, the oldest are replaced
SIDE = 8  # pixels


class Piece(NamedTuple):
    """Items that arrive together."""

    ids: list[int]
    vectors: NDArray[Any]
    labels: list[Any]
    metadata: list[dict[str, Any]]


class Demo(NamedTuple):
    """What learns, and from what."""

    hasher: OnlineHasher
    pieces: Iterator[Piece]  # the first of them is there from the beginning
    source: str | None = None  # that is to be named

    def create(self, path: str | PathLike[str]) -> Collection:
        """Make the collection."""
        seed: int = self.hasher.get_params()["random_state"]
        collection = Collection.create(path, self.hasher, background=True, random_state=seed)
        _add(collection, next(self.pieces))
        return collection

    @contextmanager
    def streaming(self, collection: Collection, seconds: float = STAGE_SECONDS) -> Iterator[None]:
        """Add the other items to the collection, inside the ``with`` block."""
        stop = threading.Event()

        def add() -> None:
            while not stop.wait(seconds) and (piece := next(self.pieces, None)) is not None:
                _add(collection, piece)

        thread = threading.Thread(target=add, name="demo", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


def _add(collection: Collection, piece: Piece) -> None:
    ids, vectors, labels, metadata = piece
    collection.add(ids, vectors, labels, metadata=metadata, existing="replace")


def make_demo(random_state: int = 0) -> Demo:
    """Return the demo of news if their file is there, else that of digits."""
    try:
        news = load_data("reuters")
    except MissingDataError:
        hasher = SDOH(32, batch_size=STAGE, random_state=random_state)
        return Demo(hasher, _digits(random_state))
    # Single stages: what was learned is weighed with every piece, which takes no second.
    hasher = SDOH(64, batch_size=STAGE, memory=0, features=None, random_state=random_state)
    return Demo(hasher, _news(news), f"{news.card.source}; {news.card.licence}.")


def _news(news: DataSet) -> Iterator[Piece]:
    """Yield the news as they came, with title, place and time where they are known."""
    path = Path(str(news.card.where)) / news.card.files[0]
    with np.load(path) as columns:
        known = {name: columns[name].tolist() for name in ("id", "title", "place", "time")}
        labels = label_lists(news.y, columns["topics"].tolist())
    start, stop = 0, FIRST_NEWS
    while start < len(labels):
        ids, *texts = (values[start:stop] for values in known.values())
        metadata = [
            {name: text for name, text in zip([*known][1:], row, strict=True) if text}
            for row in zip(*texts, strict=True)
        ]
        yield Piece(ids, news.X[start:stop], labels[start:stop], metadata)
        start, stop = stop, stop + STAGE


def _digits(random_state: int) -> Iterator[Piece]:
    """Yield digits, all that are there from the beginning without labels, but for a few."""
    X, y = next(_shuffled_digits(random_state, FIRST_DIGITS))
    # One class after the other is a hard beginning: what is learned first is of little use.
    order = np.argsort(y, kind="stable")
    order = np.concatenate([order[: 2 * STAGE], np.sort(order[2 * STAGE :])])
    X, digits = X[order], y[order].tolist()
    labels = [*digits[: 2 * STAGE], *[None] * (FIRST_DIGITS - 2 * STAGE)]
    yield Piece([*range(FIRST_DIGITS)], X, labels, _pictures(digits))
    number = FIRST_DIGITS
    for X, y in _shuffled_digits(random_state + 1, STAGE):
        ids = [i % MAX_DIGITS for i in range(number, number + STAGE)]
        yield Piece(ids, X, y.tolist(), _pictures(y.tolist()))
        number += STAGE


def _pictures(digits: list[int]) -> list[dict[str, Any]]:
    """Say that the vectors are pictures, and of which digit, for people to see: none learns it."""
    image = {"width": SIDE, "height": SIDE}
    return [{"image": image, "digit": digit} for digit in digits]


def _shuffled_digits(
    random_state: int, n: int
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
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
