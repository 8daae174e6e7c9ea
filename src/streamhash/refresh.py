"""When to encode anew: a hasher kept in two states, the one that learns and the one that encodes.

Codes stored yesterday and a query encoded today can be compared only if one model made both. So the
model that made the stored codes is kept as a snapshot, apart from the one that goes on learning,
and a sample of the stream tells when the step from the one to the other is worth the work of
encoding everything anew (Cakir et al., ICCV 2017).
"""

from typing import Any, Self

import numpy as np
from sklearn.base import clone

from streamhash.base import (
    HasherAround,
    Matrix,
    NotStartedError,
    OnlineHasher,
    new_generator,
    snapshot,
)
from streamhash.codes import Codes
from streamhash.errors import InputError
from streamhash.kernels.learning.information import code_information
from streamhash.parameters import Choice, Number, Whole
from streamhash.reservoir import Reservoir, neighbours

__all__ = ["SnapshotHasher"]


class SnapshotHasher(HasherAround):
    """Any hasher, encoding with a snapshot that is renewed when it is worth it.

    It feeds the stream to the hasher and to a sample of fixed size. ``transform`` uses the
    snapshot, so that its codes go with those stored before, until the next refresh. How good a
    model is is measured on the sample: the mutual information of the Hamming distance of two items
    and of their being neighbours (a class in common), in bits.

    Used alone it refreshes by itself, as the reference does: compare ``n_refreshes_`` before and
    after a piece, and encode stored items anew when it has grown. A collection that must say itself
    when it switches passes ``automatic=False``, asks ``worth_refreshing()``, encodes its items with
    ``hasher_`` and then calls ``refresh()``.

    Parameters
    ----------
    hasher : OnlineHasher
        What learns the codes; its ``batch_size`` cuts the stream.
    trigger : "mi" or "fix", default="mi"
        A refresh is worth it when the information has grown by more than ``threshold``; or whenever
        ``interval`` instances have come. Reference: "mi" for MIHash, "fix" for all others.
    threshold : float, default=0.0
        Gain in bits that a refresh must bring. Reference: 0.
    interval : int, default=100
        With ``automatic``, the trigger is looked at when so many instances have come since it was
        last: after the stage that completes them. Reference: 100 (SDOH 2000).
    reservoir_size : int, default=200
        Items in the sample. Reference: 200; 1000 to 5000 with MIHash.
    automatic : bool, default=True
        Refresh while learning, whenever the trigger says so.
    random_state : int, RandomState or None
        Seed of the sample.

    Attributes
    ----------
    hasher_ : OnlineHasher
        The model that learns.
    snapshot_ : OnlineHasher
        The model that encodes. The first is taken after the first stage.
    reservoir_ : Reservoir
        The sample.
    n_refreshes_ : int
        Snapshots taken, with the first one.
    n_since_refresh_, n_since_look_ : int
        Instances since the last snapshot, and since the trigger was last looked at.

    Notes
    -----
    With trigger "mi" labels are needed even if the hasher needs none. No refresh is worth it while
    every item of the sample has the same code under both models. An item counts as its own
    neighbour, distances k − 1 and k fall into one bin, as in the reference.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import MIHash, SnapshotHasher
    >>> X, y = load_digits(return_X_y=True)
    >>> model = SnapshotHasher(MIHash(n_bits=32, random_state=0), automatic=False, random_state=0)
    >>> stored = model.partial_fit(X[:200], y[:200]).transform(X[:200])
    >>> _ = model.partial_fit(X[200:1000], y[200:1000])
    >>> bool((model.transform(X[:200]) == stored).all())  # still the model that made them
    True
    >>> model.worth_refreshing(), model.gain() > 0.1
    (True, True)
    >>> stored = model.refresh().transform(X[:200])
    >>> model.worth_refreshing()
    False
    """

    rules = {  # noqa: RUF012
        "trigger": Choice("mi", "fix"),
        "threshold": Number(at_least=0),
        "interval": Whole(1),
        "reservoir_size": Whole(2),
        "automatic": Choice(True, False),
    }

    def __init__(
        self,
        hasher: OnlineHasher,
        *,
        trigger: str = "mi",
        threshold: float = 0.0,
        interval: int = 100,
        reservoir_size: int = 200,
        automatic: bool = True,
        random_state: Any = None,
    ) -> None:
        self.hasher = hasher
        self.trigger = trigger
        self.threshold = threshold
        self.interval = interval
        self.reservoir_size = reservoir_size
        self.automatic = automatic
        self.random_state = random_state

    @property
    def needs_labels(self) -> bool:  # type: ignore[override]
        """Whether the hasher or the trigger needs labels."""
        return self.hasher.needs_labels or self.trigger == "mi"

    def gain(self) -> float:
        """Return by how many bits of information a refresh would improve the sample's codes."""
        new, old, labels = self._sampled("gain")
        if labels is None:
            raise InputError(
                "SnapshotHasher.gain: the stream came without labels, and nothing tells which "
                'items are neighbours; use trigger="fix", or pass labels.'
            )
        same = neighbours(labels, labels)
        return code_information(new, same, self.n_bits) - code_information(old, same, self.n_bits)

    def worth_refreshing(self) -> bool:
        """Whether the trigger says that stored codes should be encoded anew."""
        new, old, _ = self._sampled("worth_refreshing")
        if np.array_equal(new, old):
            return False
        if self.trigger == "fix":
            return self.n_since_refresh_ >= self.interval
        return self.gain() > self.threshold

    def refresh(self) -> Self:
        """Encode with what has been learned so far, from now on."""
        self._sampled("refresh")
        self._take_snapshot()
        return self

    def _sampled(self, verb: str) -> tuple[Codes, Codes, Any]:
        """Return codes of the sample by the learning model and by the snapshot, and its labels."""
        if not hasattr(self, "snapshot_"):
            raise NotStartedError(
                f"SnapshotHasher.{verb}: this SnapshotHasher has not seen any data; "
                "call partial_fit or fit first."
            )
        sample = self.reservoir_
        codes = (model.transform(sample.rows) for model in (self.hasher_, self.snapshot_))
        return *codes, sample.labels

    def _take_snapshot(self) -> None:
        self.snapshot_ = snapshot(self.hasher_)  # shares its arrays: nobody writes into them
        self.n_refreshes_ += 1
        self.n_since_refresh_ = 0

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        self.hasher_ = clone(self.hasher)
        self.reservoir_ = Reservoir(
            self.reservoir_size,
            random_state=int(new_generator(self.random_state).integers(2**32)),
        )
        self.n_refreshes_, self.n_since_refresh_, self.n_since_look_ = 0, 0, 0

    def _learn(self, X: Matrix, y: Any) -> None:
        self.hasher_.partial_fit(X, y)
        self.reservoir_.take(X, y)
        self.n_since_refresh_ += len(X)
        self.n_since_look_ += len(X)
        if self.n_refreshes_ == 0:
            self._take_snapshot()
        elif self.automatic and self.n_since_look_ >= self.interval:
            self.n_since_look_ = 0
            if self.worth_refreshing():
                self._take_snapshot()

    def _project(self, X: Matrix) -> Matrix:
        projections: Matrix = self.snapshot_.project_rows(X)
        return projections
