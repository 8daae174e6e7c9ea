"""What learns: a hasher that moves with every labelled item, while another model serves.

With it goes how the codes do: their quality before learning, drift, and the history of both. All of
it is durable, so that a collection opened again goes on with the same curves; for that the detector
is a few numbers, and the curve keeps a bounded number of points.
"""

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from streamhash.base import Matrix, OnlineHasher, Streaming, new_generator, snapshot
from streamhash.codes import Codes, unpack
from streamhash.errors import UnreachableError
from streamhash.labels import neighbours
from streamhash.parameters import Maybe, Number, Whole
from streamhash.refresh import information_gain
from streamhash.reservoir import Reservoir

if TYPE_CHECKING:
    from streamhash.live.view import Moment

NEIGHBOURS = 10  # labelled neighbours whose labels an answer is judged by
LOOKED_AT = 50  # neighbours that are looked at to find so many labelled ones

CURVE = ("time", "items", "labelled", "model", "precision", "balance", "gain")
# A new serving model: when, by what, over how many items, and the share of bits that it changed.
EVENT = ("time", "model", "learned", "labelled", "items", "seconds", "gain", "flips")
COUNTS = {"model", "learned", "labelled", "items"}
REMEMBERED = 4096  # refreshes that are remembered


class Monitor(Streaming):
    """Prequential precision: each labelled item asks the collection before it is learned.

    An answer is the share of an item's nearest labelled neighbours that have its label. Their
    recent mean forgets with a half-life of ``half_life`` items. Drift is a lasting fall of the
    answers, found by Page and Hinkley's test (Page 1954): their summed shortfall from the mean so
    far, less ``tolerance`` each, rises by more than ``alarm``. After an alarm it begins anew.

    Parameters
    ----------
    size : int, default=512
        Points of the curve that are kept; when they are used up, every other one is dropped and
        half as many are taken from then on.
    half_life : int, default=500
    tolerance : float, default=0.05
    alarm : float, default=25.0

    Attributes
    ----------
    points_ : array (n, 7)
        The curve: ``CURVE``.
    drifts_ : list of dict
        Alarms: when, after how many labelled items, and the recent precision before.
    refreshes_ : array (n, 8)
        The last changes of the serving model: ``EVENT``.
    flips_ : array (k,), or None
        Share of the items' codes in which the last refresh changed each bit.
    """

    rules = {  # noqa: RUF012
        "size": Whole(4),
        "half_life": Whole(1),
        "tolerance": Number(at_least=0),
        "alarm": Number(above=0),
    }

    def __init__(
        self, size: int = 512, *, half_life: int = 500, tolerance: float = 0.05, alarm: float = 25.0
    ) -> None:
        self.size = size
        self.half_life = half_life
        self.tolerance = tolerance
        self.alarm = alarm
        self.points_ = np.empty((0, len(CURVE)))
        self.stride_, self.offered_ = 1, 0
        self.recent_, self.n_answers_, self.sum_answers_ = math.nan, 0, 0.0
        self.n_since_alarm_, self.mean_since_alarm_, self.shortfall_, self.least_ = 0, 0.0, 0.0, 0.0
        self.drifts_: list[dict[str, Any]] = []
        self.refreshes_ = np.empty((0, len(EVENT)))
        self.flips_: NDArray[np.float64] | None = None

    def answers(self, precisions: NDArray[np.float64], *, time: float, labelled: int) -> None:
        """Take note of the precision of each query of a batch, in its order.

        ``labelled`` is how many labelled items there are, those of the batch with them.
        """
        keep = 0.5 ** (1 / self.half_life)
        for at, value in enumerate(precisions.tolist(), labelled - len(precisions) + 1):
            self.n_answers_ += 1
            self.sum_answers_ += value
            # Until a half-life has passed, the plain mean: the first answers count no more.
            weight = max(1 - keep, 1 / self.n_answers_)
            before = 0.0 if math.isnan(self.recent_) else self.recent_
            self.recent_ = before + weight * (value - before)
            if self._alarmed(value):
                drift = {"time": time, "labelled": at, "precision": self.recent_}
                self.drifts_ = [*self.drifts_, drift]

    def _alarmed(self, value: float) -> bool:
        self.n_since_alarm_ += 1
        self.mean_since_alarm_ += (value - self.mean_since_alarm_) / self.n_since_alarm_
        self.shortfall_ += self.mean_since_alarm_ - value - self.tolerance
        self.least_ = min(self.least_, self.shortfall_)
        if self.shortfall_ - self.least_ <= self.alarm:
            return False
        self.n_since_alarm_, self.mean_since_alarm_, self.shortfall_, self.least_ = 0, 0.0, 0.0, 0.0
        return True

    def point(self, **values: float) -> None:
        """Offer a point of the curve; it has a value for each of ``CURVE``."""
        self.offered_ += 1
        if self.offered_ % self.stride_:
            return
        if len(self.points_) == self.size:
            self.points_ = self.points_[1::2]
            self.stride_ *= 2
            if self.offered_ % self.stride_:
                return
        row = [values[name] for name in CURVE]
        self.points_ = np.vstack([self.points_, row])

    def refreshed(self, event: dict[str, Any], flips: NDArray[np.float64] | None) -> None:
        """Take note of a new serving model, and of the share of items whose code has each flip."""
        values = {**event, "flips": None if flips is None else flips.mean()}
        row = [math.nan if values[name] is None else float(values[name]) for name in EVENT]
        self.refreshes_ = np.vstack([self.refreshes_, row])[-REMEMBERED:]
        self.flips_ = flips

    @property
    def refreshes(self) -> list[dict[str, Any]]:
        """The refreshes, a dict each; what is not known is None."""
        return [_as_event(row) for row in self.refreshes_.tolist()]

    @property
    def last_refresh(self) -> dict[str, Any] | None:
        """The last of them."""
        return _as_event(self.refreshes_[-1].tolist()) if len(self.refreshes_) else None

    def series(self) -> list[dict[str, float]]:
        """Return the curve, a dict a point."""
        return [dict(zip(CURVE, row, strict=True)) for row in self.points_.tolist()]


def _as_event(row: list[float]) -> dict[str, Any]:
    event: dict[str, Any] = dict(zip(EVENT, row, strict=True))
    for name, value in event.items():
        event[name] = None if math.isnan(value) else int(value) if name in COUNTS else value
    return event


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

    def become(self, other: "Learner") -> None:
        """Be another, which was stored; in one step, as other threads may look."""
        self.__dict__ = other.__dict__

    @property
    def is_ready(self) -> bool:
        """Whether it can encode."""
        return is_fitted(self.hasher_)

    @property
    def n_waiting(self) -> int:
        """Items that wait for their stage to be full."""
        return len(self.waiting_labels_)

    def taught(
        self,
        moment: "Moment",
        rows: NDArray[Any],
        labels: list[Any],
        codes: Codes | None,
        keys: NDArray[np.int64] | None = None,
    ) -> "Learner | None":
        """Return a twin that has learned from these rows, None if there is nothing to learn.

        Labelled rows ask for their neighbours first, by their ``codes`` of the serving model;
        ``keys`` are theirs, if they are stored already.
        """
        now, directory, serving = time.time(), moment.directory, moment.model
        known = [i for i, label in enumerate(labels) if label is not None]
        chosen = known if self.hasher_.needs_labels else [*range(len(rows))]
        if not chosen:
            return None
        twin, labelled = self.copy(), directory.n_labelled + len(known)
        if codes is not None and known:
            own = None if keys is None else keys[known]
            precisions = _precisions(moment, codes[known], [labels[i] for i in known], own)
            twin.monitor_.answers(precisions, time=now, labelled=labelled)
        n_items = len(directory) + (0 if keys is not None else len(rows))
        names = [labels[i] for i in chosen]
        learned = twin.learn(
            rows[chosen].astype(np.float32), names, serving=serving, n_items=n_items
        )
        if learned and serving is not None:
            twin.monitor_.point(
                time=now,
                items=n_items,
                labelled=labelled,
                model=moment.number,
                precision=twin.monitor_.recent_,
                balance=twin.balance(serving),
                gain=math.nan if twin.gain_ is None else twin.gain_,
            )
        return twin

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
        self.gain_ = information_gain(self.hasher_, serving, sample.rows, same, X[::step])
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


def _precisions(
    moment: "Moment", codes: Codes, labels: list[Any], own: NDArray[np.int64] | None
) -> NDArray[np.float64]:
    """Share of each query's nearest labelled neighbours that have its label; no item, none."""
    backend, directory = moment.backend, moment.directory
    if backend is None or len(directory) == 0:
        return np.empty(0)
    try:
        keys = backend.search_soon(codes, min(LOOKED_AT, len(directory)))[1]
    except UnreachableError:
        return np.empty(0)  # answers that nobody gets are not judged
    numbers = np.full(keys.shape, -1)
    there = directory.has(keys) if backend.is_shared else keys >= 0
    numbers[there] = directory.listing.labels_of(keys[there])
    if own is not None:
        numbers[keys == own[:, None]] = -1
    precisions = []
    for row, label in zip(numbers, labels, strict=True):
        near = row[row >= 0][:NEIGHBOURS]
        if len(near):
            precisions.append((near == directory.label_number(label)).mean())
    return np.array(precisions)
