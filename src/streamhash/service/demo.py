"""Collections that a newcomer can watch, and that say what they show.

- **news**, if the file of the data set ``reuters`` is there, in their order and with their topics;
  else **digits**, those that scikit-learn has, each once and in random order.
- **long-tail**: embeddings as shops and archives have them, few classes with many items and many
  with few; they are synthetic, and some labels are wrong.

All labels are what the stream says, nothing is put in an order that flatters, and what has arrived
once does not come again.
"""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from streamhash.base import OnlineHasher
from streamhash.errors import MissingDataError
from streamhash.hashers import SDOH
from streamhash.lab.datasets import DataSet, LongTailStream, load_data
from streamhash.labels import label_lists
from streamhash.live import Collection
from streamhash.service.display import write_display

STAGE = 20  # items that arrive, and are learned, at a time: few, so that the start is seen
STAGE_SECONDS = 1.0  # between two of these
FIRST_NEWS = 500  # news that are there from the beginning
FIRST_DIGITS = 60  # digits so too,
LABELLED_DIGITS = 40  # and how many of each hundred that arrive have a label
FIRST_ROWS = 1000  # of the long tail
ROWS_AT_ONCE = 200  # that arrive of it, every ten seconds: what they teach takes a second to weigh
ROWS_SECONDS = 10.0
MOST_ROWS = 20_000
SIDE = 8  # pixels


class Piece(NamedTuple):
    """Items that arrive together."""

    ids: list[Any]
    vectors: NDArray[Any]
    labels: list[Any]
    metadata: list[dict[str, Any]]


class Demo(NamedTuple):
    """What learns, from what, and what is said of it."""

    name: str
    about: str
    hasher: OnlineHasher
    pieces: Iterator[Piece]  # the first of them is there from the beginning
    display: dict[str, Any]
    seconds: float = STAGE_SECONDS  # between two pieces
    source: str | None = None  # that is to be named

    def create(self, folder: str | PathLike[str]) -> Collection:
        """Make the collection, in a folder."""
        seed: int = self.hasher.get_params()["random_state"]
        path = Path(folder) / self.name
        collection = Collection.create(path, self.hasher, background=True, random_state=seed)
        _add(collection, next(self.pieces))
        write_display(collection, {**self.display, "about": self.about})
        return collection

    @contextmanager
    def streaming(self, collection: Collection) -> Iterator[None]:
        """Add the other items to the collection, inside the ``with`` block."""
        stop = threading.Event()

        def add() -> None:
            while not stop.wait(self.seconds) and (piece := next(self.pieces, None)) is not None:
                _add(collection, piece)

        thread = threading.Thread(target=add, name="demo", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


@contextmanager
def streaming_all(demos: list[Demo], folder: str | PathLike[str]) -> Iterator[list[Collection]]:
    """Make the collections, and have their items arrive, inside the ``with`` block."""
    with ExitStack() as opened:
        collections = [opened.enter_context(demo.create(folder)) for demo in demos]
        for demo, collection in zip(demos, collections, strict=True):
            opened.enter_context(demo.streaming(collection))
        yield collections


def _add(collection: Collection, piece: Piece) -> None:
    ids, vectors, labels, metadata = piece
    collection.add(ids, vectors, labels, metadata=metadata)


def make_demos(random_state: int = 0) -> list[Demo]:
    """Return the demo of news if their file is there, else that of digits; and the long tail."""
    # Single stages: what was learned is weighed with every piece, which takes no second.
    staged = partial(SDOH, batch_size=STAGE, memory=0, features=None, random_state=random_state)
    try:
        news = load_data("reuters")
    except MissingDataError:
        first = Demo(
            "digits",
            "Handwritten digits: the 1,797 pictures of 8 × 8 pixels that scikit-learn has, each "
            f"once, in random order. {FIRST_DIGITS} are there at the start, {STAGE} arrive every "
            f"second; {LABELLED_DIGITS} % have a label, which the model learns from.",
            staged(32),
            _digits(random_state),
            {"title": None, "subtitle": [], "image": "image"},
        )
    else:
        first = Demo(
            "news",
            "News of 1987 with their topics (Reuters-21578), in the order in which they appeared. "
            f"{FIRST_NEWS} are there at the start, {STAGE} arrive every second.",
            staged(64),
            _news(news),
            {"title": "title", "subtitle": ["place", "time"], "image": None},
            source=f"{news.card.source}; {news.card.licence}.",
        )
    tail = Demo(
        "long-tail",
        "Synthetic embeddings of 384 numbers in 50 classes, from 22 % of the items down to 0.4 %; "
        "5 % of the labels are wrong, and true_class says what is right. "
        f"{FIRST_ROWS:,} are there at the start, {ROWS_AT_ONCE} arrive every ten seconds.",
        SDOH(64, random_state=random_state),
        _rows(random_state),
        {"title": None, "subtitle": ["true_class"], "image": None},
        seconds=ROWS_SECONDS,
    )
    return [first, tail]


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
    """Yield scikit-learn's digits in random order, each once; some have labels."""
    rng = np.random.default_rng(random_state)
    X, y = load_digits(return_X_y=True)
    order, has_label = rng.permutation(len(X)), rng.random(len(X)) < LABELLED_DIGITS / 100
    start, stop = 0, FIRST_DIGITS
    while start < len(X):
        rows = order[start:stop]
        digits = y[rows].tolist()
        labels = [
            digit if has_label[row] else None for digit, row in zip(digits, rows, strict=True)
        ]
        # What digit it is, for people to see: none learns it.
        image = {"width": SIDE, "height": SIDE}
        metadata = [{"image": image, "digit": digit} for digit in digits]
        ids = [*range(start, start + len(rows))]
        yield Piece(ids, X[rows].astype(np.float32), labels, metadata)
        start, stop = stop, stop + STAGE


def _rows(random_state: int) -> Iterator[Piece]:
    """Yield rows of the long tail, with what the stream says of them."""
    stream = LongTailStream(random_state=random_state)
    start, stop = 0, FIRST_ROWS
    while stop <= MOST_ROWS:
        X, y = stream.take(stop - start, start)
        said = [f"class {label}" for label in stream.labels(stop - start, start).tolist()]
        metadata = [{"true_class": f"class {label}"} for label in y.tolist()]
        yield Piece([f"row-{i}" for i in range(start, stop)], X, said, metadata)
        start, stop = stop, stop + ROWS_AT_ONCE
