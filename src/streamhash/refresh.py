"""When to encode anew: the policy, and a hasher kept in two states, learning and encoding.

Codes stored yesterday and a query encoded today can be compared only if one model made both. So the
model that made the stored codes is kept as a snapshot, apart from the one that goes on learning,
and a sample of the stream tells when the step from the one to the other is worth the work of
encoding everything anew (Cakir et al., ICCV 2017).
"""

import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from streamhash.base import (
    HasherAround,
    Matrix,
    NotStartedError,
    OnlineHasher,
    new_generator,
)
from streamhash.codes import Codes
from streamhash.errors import InputError
from streamhash.estimators import clone
from streamhash.kernels.learning.information import code_information, plain_information_gradient
from streamhash.labels import neighbours
from streamhash.learned import Count, Part, Table
from streamhash.parameters import SEED, Choice, Number, Whole
from streamhash.reservoir import Reservoir
from streamhash.search import HammingIndex

PRICE = 0.001  # bits of information that encoding an item of a collection anew is worth
SHARE = 0.2  # of the time, that refreshes may take
LEAST_GAIN = 0.002  # in precision, that is worth a refresh
LEAST_GROWTH = 0.1  # of what was learned, that is worth one unless it is known to gain nothing
SAVED_SECONDS = 5.0  # for refreshes, that a quiet time leaves at most
NEIGHBOURS = 10  # among which precision is measured


class Prospect(NamedTuple):
    """What a refresh would bring, and cost."""

    learned: int  # items learned since the last
    gain: float  # bits of information, summed up over the items that came
    items: int = 1  # to be encoded
    precision: float | None = None  # gained, among ten neighbours; None while it is not known
    error: float = 0.0  # standard error of that
    seconds: float = 0.0  # that it would take
    spare: float = 0.0  # seconds that there are for refreshes now; below 0, they took too much
    known: int = 0  # items learned by the last


class RefreshPolicy(NamedTuple):
    """When to encode all items anew: by hand, after every so many learned items, or when it pays.

    ``share``: when there is something to gain, and refreshes so far took no more than that share of
    the time; of a quiet time SAVED_SECONDS are left over for later. There is when a tenth more was
    learned than by the last one (LEAST_GROWTH), unless precision among ten neighbours was seen to
    lose by it; or when precision would gain LEAST_GAIN. How sure that must be depends on what the
    refresh takes of the saved time: nearly nothing, and it is enough that it may be so, by its
    standard error; all of it, and there must be so much less the error. Also when the bits of
    information are worth PRICE, as below.

    ``price``: when the bits of information that a refresh gains exceed ``price`` bits for every
    item that would be encoded anew. A collection sums up the gain over each item that came: so a
    small one refreshes soon, a large one when the gain is large or lasts.
    """

    every: int | None = None  # learned items
    price: float | None = None  # bits an item
    share: float | None = None  # of the time

    @classmethod
    def parse(cls, text: Any, *, place: str) -> "RefreshPolicy":
        """Read "manual", "auto", "auto=0.1", "gain", "gain=0.001", or a number of items."""
        name, _, value = text.partition("=") if isinstance(text, str) else ("", "", "")
        try:
            if text == "manual":
                return cls()
            if name == "auto":
                policy = cls(share=float(value or SHARE))
            elif name == "gain":
                policy = cls(price=float(value or PRICE))
            else:
                policy = cls(every=int(text))
        except (TypeError, ValueError):
            policy = cls(every=0)
        if (
            policy.every == 0
            or not all(value is None or value > 0 for value in policy)
            or (policy.share or 0) > 1
        ):
            raise InputError(
                f'{place}: refresh={text!r} must be "auto", "auto=SHARE", "gain", "gain=BITS", '
                '"manual", or a number of items from 1 up.'
            )
        return policy

    def is_due(self, prospect: Prospect) -> bool:
        """Whether to refresh."""
        return self.reason(prospect) is None

    def reason(self, prospect: Prospect) -> str | None:
        """Say why not to refresh; None if it is due."""
        if self.every is not None:
            left = self.every - prospect.learned
            return f"{left:,} more items are to be learned first" if left > 0 else None
        if self.share is not None:
            return self._gain_wanting(prospect) or self._time_wanting(prospect)
        if self.price is None:
            return "it is done by hand"
        price = self.price * prospect.items
        if prospect.gain > price:
            return None
        return f"it has missed {prospect.gain:.3g} bits so far, of {price:.3g} that it costs"

    def _gain_wanting(self, prospect: Prospect) -> str | None:
        if self._seconds_needed(prospect) is not None:
            return None
        if prospect.precision is None:
            more = math.ceil(LEAST_GROWTH * prospect.known) - prospect.learned
            return f"too little was learned since the last; {max(more, 1):,} more items will do"
        return (
            f"precision would gain {prospect.precision:+.3f} ± {prospect.error:.3f}, too little "
            f"for the {prospect.seconds:.1f} s that it takes"
        )

    def _time_wanting(self, prospect: Prospect) -> str | None:
        wait = self.wait(prospect)
        if wait is None:
            return None
        return (
            f"it takes {prospect.seconds:.1f} s, and refreshes may take {self.share:.0%} of the "
            f"time: in {max(wait, 1):,.0f} s"
        )

    def _seconds_needed(self, prospect: Prospect) -> float | None:
        """Return how much time must be saved for the gain to be worth it; None if it is not.

        It is worth it if much more was learned and nothing speaks against it, or if
        gain + (1 − 2r) error ≥ LEAST_GAIN, where r is the part that the refresh takes of the time
        that is saved, 1 at most.
        """
        gain, error = prospect.precision, prospect.error
        has_grown = prospect.learned > 0 and prospect.learned >= LEAST_GROWTH * prospect.known
        is_worse = gain is not None and gain + error < 0
        if prospect.gain > PRICE * prospect.items or (has_grown and not is_worse):
            return 0.0
        if gain is None:
            return None
        if gain - error >= LEAST_GAIN:
            return 0.0
        if gain + error <= LEAST_GAIN:
            return None
        needed = prospect.seconds * 2 / (1 - (LEAST_GAIN - gain) / error)  # seconds / r
        return needed if needed <= SAVED_SECONDS else None

    def is_worth_it(self, prospect: Prospect) -> bool:
        """Whether to refresh where nothing more comes: there is the time, and nobody else asks."""
        if self.share is None:
            return False
        if prospect.precision is None:  # it is not known what the last stage has gained
            return prospect.learned > 0
        return self._seconds_needed(prospect) is not None

    def wait(self, prospect: Prospect) -> float | None:
        """Return the seconds after which a refresh that is worth it may take its time, if any."""
        needed = self._seconds_needed(prospect)
        if self.share is None or needed is None or prospect.spare >= needed:
            return None
        return (needed - prospect.spare) / self.share

    def spare(self, ended: NDArray[np.float64], seconds: NDArray[np.float64], now: float) -> float:
        """Return the seconds that refreshes may take now, by when earlier ones ended, and took.

        Time brings ``share`` seconds a second, up to SAVED_SECONDS, and each refresh takes its own;
        below 0 the next one waits. So refreshes never take more than that share of any stretch of
        time, the saved seconds, and the last one. What seems to lie ahead, as the clock was set
        back, is forgotten.
        """
        past = ended <= now
        ended, seconds = ended[past], seconds[past]
        if self.share is None or not len(ended):
            return SAVED_SECONDS
        # As if all that can be saved was there before one of them: the least of it is what is true.
        taken = np.cumsum(seconds[::-1])[::-1]
        left = SAVED_SECONDS + self.share * (now - ended) - taken
        return min(SAVED_SECONDS, float(left.min()))

    def __str__(self) -> str:
        if self.every is not None:
            return str(self.every)
        if self.share is not None:
            return f"auto={self.share:g}"
        return "manual" if self.price is None else f"gain={self.price:g}"


class Gain(NamedTuple):
    """By how much codes of one model beat those of another."""

    bits: float  # of information
    precisions: NDArray[np.float64]  # of each query, among its nearest


def code_gain(
    new: OnlineHasher, old: OnlineHasher, sample: Matrix, same: NDArray[np.bool_], queries: Matrix
) -> Gain:
    """Measure it on a sample that queries are asked of; ``same`` tells which are neighbours."""

    def measured(model: OnlineHasher) -> Gain:
        items, asked = model.transform(sample), model.transform(queries)
        information = code_information(items, same, model.n_bits, queries=asked)
        return Gain(information, _precisions(items, asked, same, model.n_bits))

    better, worse = measured(new), measured(old)
    return Gain(better.bits - worse.bits, better.precisions - worse.precisions)


def _precisions(
    items: Codes, queries: Codes, same: NDArray[np.bool_], n_bits: int
) -> NDArray[np.float64]:
    """Return the share of neighbours among the nearest items of each query; of ties, the first.

    Of no items, as when all of the sample were replaced, it is 0.
    """
    if not len(items):
        return np.zeros(len(queries))
    index = HammingIndex(n_bits)
    index.add(None, items)
    _, nearest = index.search(queries, min(NEIGHBOURS, len(items)))
    return np.asarray(np.take_along_axis(same, nearest, axis=1).mean(axis=1))


def information_gain(
    new: OnlineHasher, old: OnlineHasher, sample: Matrix, same: NDArray[Any], queries: Any = None
) -> float:
    """Return by how many bits of information the new model's codes of a sample beat the old one's.

    ``same`` tells which items of the sample are neighbours of each query; without queries the
    sample asks itself.
    """

    def information(model: OnlineHasher) -> float:
        asked = None if queries is None else model.transform(queries)
        return code_information(model.transform(sample), same, model.n_bits, queries=asked)

    return information(new) - information(old)


def pair_information_gain(
    new: OnlineHasher, old: OnlineHasher, X1: Matrix, X2: Matrix, similar: NDArray[np.bool_]
) -> float:
    """Return the same of judged pairs: the information that their distances have of their kind."""

    def information(model: OnlineHasher) -> float:
        apart = np.bitwise_count(model.transform(X1) ^ model.transform(X2)).sum(axis=1)
        return plain_information_gradient(apart, similar, model.n_bits, model.n_bits)[0]

    return information(new) - information(old)


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
        last: after the stage that completes them, and no sooner than after as many as the hasher
        wants to gather (``next_stage``). Reference: 100 (SDOH 2000).
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
        "random_state": SEED,
    }
    learns = Table(
        hasher_=Part(OnlineHasher, n_features_in_="d", n_bits="k"),
        snapshot_=Part(OnlineHasher, n_features_in_="d", n_bits="k"),
        reservoir_=Part(Reservoir, size="reservoir_size", d="d"),
        n_refreshes_=Count(1),
        n_since_refresh_=Count(),
        n_since_look_=Count(),
    )

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
        sample = self._sample("gain")
        if sample.labels is None:
            raise InputError(
                "SnapshotHasher.gain: the stream came without labels, and nothing tells which "
                'items are neighbours; use trigger="fix", or pass labels.'
            )
        same = neighbours(sample.labels, sample.labels)
        return information_gain(self.hasher_, self.snapshot_, sample.rows, same)

    def worth_refreshing(self) -> bool:
        """Whether the trigger says that stored codes should be encoded anew."""
        rows = self._sample("worth_refreshing").rows
        if np.array_equal(self.hasher_.transform(rows), self.snapshot_.transform(rows)):
            return False
        if self.trigger == "fix":
            return RefreshPolicy(every=self.interval).is_due(Prospect(self.n_since_refresh_, 0.0))
        return RefreshPolicy(price=self.threshold).is_due(
            Prospect(self.n_since_refresh_, self.gain())
        )

    def refresh(self) -> Self:
        """Encode with what has been learned so far, from now on."""
        self._sample("refresh")
        self._take_snapshot()
        return self

    def _sample(self, verb: str) -> Reservoir:
        if not hasattr(self, "snapshot_"):
            raise NotStartedError(
                f"SnapshotHasher.{verb}: this SnapshotHasher has not seen any data; "
                "call partial_fit or fit first."
            )
        return self.reservoir_

    def _take_snapshot(self) -> None:
        self.snapshot_ = self.hasher_.encoder()  # shares its arrays: nobody writes into them
        self.n_refreshes_ += 1
        self.n_since_refresh_ = 0

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        self.hasher_ = clone(self.hasher)
        self.reservoir_ = Reservoir(
            self.reservoir_size, random_state=int(new_generator(self.random_state).integers(2**32))
        )
        self.n_refreshes_, self.n_since_refresh_, self.n_since_look_ = 0, 0, 0

    def _learn(self, X: Matrix, y: Any) -> None:
        self.hasher_.partial_fit(X, y)
        self.reservoir_.take(X, y)
        self.n_since_refresh_ += len(X)
        self.n_since_look_ += len(X)
        if self.n_refreshes_ == 0:
            self._take_snapshot()
        elif self.automatic and self.n_since_look_ >= max(self.interval, self.hasher_.next_stage):
            self.n_since_look_ = 0
            if self.worth_refreshing():
                self._take_snapshot()

    def _project(self, X: Matrix) -> Matrix:
        projections: Matrix = self.snapshot_.project_rows(X)
        return projections
