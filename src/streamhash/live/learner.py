"""The model that learns: it moves with every labelled item, while another one serves."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from streamhash.base import Matrix, OnlineHasher, Streaming, new_generator, snapshot
from streamhash.codes import unpack
from streamhash.kernels.learning.information import code_information
from streamhash.live.monitor import Monitor
from streamhash.parameters import Maybe, Whole
from streamhash.reservoir import Reservoir, neighbours

__all__ = ["Learner"]


class Learner(Streaming):
    """A hasher, a sample of its stream, and the labelled items that wait for a whole stage.

    Items may come one by one; a method learns from stages of its ``batch_size``. So they wait here
    until a stage is full, and what is learned does not depend on the size of the pieces.

    Parameters
    ----------
    hasher : OnlineHasher
        What learns; one that has learned already goes on from there.
    reservoir_size : int, default=1000
        Items in the sample, on which two models are compared.
    random_state : int or None
        Seed of the sample.

    Attributes
    ----------
    hasher_ : OnlineHasher
    reservoir_ : Reservoir
    monitor_ : Monitor
    waiting_rows_, waiting_labels_ : array (n, d), list
        Items that wait.
    n_learned_ : int
        Items learned here.
    gain_ : float, or None while no other model serves
        Bits of information by which this model beat the serving one on the last stage.
    missed_ : float
        The gain of every item that came since the serving model serves, summed up: bits.
    n_items_ : int
        Items in the collection at the last stage.
    """

    rules = {"reservoir_size": Whole(2), "random_state": Maybe(Whole(0))}  # noqa: RUF012

    def __init__(
        self, hasher: OnlineHasher, *, reservoir_size: int = 1000, random_state: int | None = None
    ) -> None:
        self.hasher = hasher
        self.reservoir_size = reservoir_size
        self.random_state = random_state

    def start(self) -> None:
        """Set up what is learned."""
        self.check_parameters()
        seed = int(new_generator(self.random_state).integers(2**32))
        self.hasher_ = snapshot(self.hasher) if is_fitted(self.hasher) else clone(self.hasher)
        self.hasher = clone(self.hasher)
        self.reservoir_ = Reservoir(self.reservoir_size, random_state=seed)
        self.monitor_ = Monitor()
        self.waiting_rows_: Matrix | None = None
        self.waiting_labels_: list[Any] = []
        self.n_learned_ = 0
        self.gain_: float | None = None
        self.missed_ = 0.0
        self.n_items_ = 0

    def copy(self) -> "Learner":
        """Return a twin to learn with; nothing that this one holds is written to."""
        twin: Learner = snapshot(self)
        return twin

    @property
    def is_ready(self) -> bool:
        """Whether it can encode."""
        return is_fitted(self.hasher_)

    @property
    def n_waiting(self) -> int:
        """Items that wait for their stage to be full."""
        return len(self.waiting_labels_)

    def learn(
        self,
        X: Matrix,
        labels: list[Any],
        *,
        serving: OnlineHasher | None = None,
        n_items: int = 0,
        all_now: bool = False,
    ) -> int:
        """Learn from rows and their labels; return how many were learned.

        What does not fill a stage waits, unless all are to be learned now. Labels may be None
        where the method needs none. Before they are learned, rows tell which model serves better
        a collection of ``n_items``: this one or the ``serving`` one.
        """
        rows = X if self.waiting_rows_ is None else np.concatenate([self.waiting_rows_, X])
        names = [*self.waiting_labels_, *labels]
        size = self.hasher_.batch_size
        n = len(rows) if all_now else len(rows) // size * size
        if n:
            known = [i for i, name in enumerate(names[:n]) if name is not None]
            y = as_labels([names[i] for i in known])
            if serving is not None and known:
                self._weigh(rows[known], y, serving, max(n, n_items - self.n_items_))
            self.n_items_ = n_items
            self.hasher_.partial_fit(rows[:n], y if self.hasher_.needs_labels else None)
            if known:
                self.reservoir_.take(rows[known], y)
            self.n_learned_ += n
        self.waiting_rows_, self.waiting_labels_ = rows[n:].copy(), names[n:]
        return n

    def learn_waiting(self) -> int:
        """Learn what waits, though it does not fill a stage."""
        if self.waiting_rows_ is None or self.n_waiting == 0:
            return 0
        return self.learn(self.waiting_rows_[:0], [], all_now=True)

    def _weigh(self, X: Matrix, y: NDArray[Any], serving: OnlineHasher, n: int) -> None:
        """Measure the gain on rows that were not learned yet, and count it for ``n`` items.

        The rows are queries: they are like those to come, also after a change. What they are asked
        about is the sample: it is like all that is stored, however old.
        """
        sample = self.reservoir_
        if not hasattr(sample, "rows_") or sample.labels is None or not self.is_ready:
            return
        step = -(-len(X) // self.reservoir_size)  # of a large piece, as many as in the sample
        same = neighbours(sample.classes_.number(y[::step]), sample.labels)
        told = [
            code_information(
                model.transform(sample.rows), same, model.n_bits, queries=model.transform(X[::step])
            )
            for model in (self.hasher_, serving)
        ]
        self.gain_ = told[0] - told[1]
        self.missed_ = max(0.0, self.missed_ + n * self.gain_)

    def served(self, event: dict[str, Any], flips: NDArray[np.float64] | None) -> None:
        """Take note that this model serves now."""
        self.gain_, self.missed_ = 0.0, 0.0
        self.monitor_.refreshed(event, flips)

    def balance(self, serving: OnlineHasher) -> float:
        """Return the mean over bits of 1 − |2 share of ones − 1|, on the sample: 1 is best."""
        if not hasattr(self.reservoir_, "rows_"):
            return float("nan")
        bits = unpack(serving.transform(self.reservoir_.rows), serving.n_bits)
        return float((1 - np.abs(2 * bits.mean(axis=0) - 1)).mean())


def is_fitted(hasher: OnlineHasher) -> bool:
    """Whether a hasher has seen data, and so can encode."""
    return hasattr(hasher, "n_features_in_")


def as_labels(names: list[Any]) -> NDArray[Any]:
    """Return labels as an array: of numbers, of strings, or else of objects."""
    if all(type(name) is int for name in names) or all(type(name) is str for name in names):
        return np.array(names)
    return np.fromiter(names, object, len(names))
