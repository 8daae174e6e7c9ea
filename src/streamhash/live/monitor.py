"""How the codes do, while the stream goes on: quality before learning, drift, and their history.

All of it is part of the learner's durable state, so that a collection opened again goes on with the
same curves; for that the detector is a few numbers, and the curve keeps a bounded number of points.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Streaming
from streamhash.parameters import Number, Whole

__all__ = ["Monitor"]

COLUMNS = ("time", "items", "labelled", "model", "precision", "balance", "gain")
# A new serving model: when, by what, over how many items, and the share of bits that it changed.
EVENT = ("time", "model", "learned", "labelled", "items", "seconds", "gain", "flips")
COUNTS = {"model", "learned", "labelled", "items"}
EVENTS = 4096  # refreshes that are remembered


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
        The curve: ``COLUMNS``.
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
        self,
        size: int = 512,
        *,
        half_life: int = 500,
        tolerance: float = 0.05,
        alarm: float = 25.0,
    ) -> None:
        self.size = size
        self.half_life = half_life
        self.tolerance = tolerance
        self.alarm = alarm
        self.points_ = np.empty((0, len(COLUMNS)))
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
        """Offer a point of the curve; it has a value for each of ``COLUMNS``."""
        self.offered_ += 1
        if self.offered_ % self.stride_:
            return
        if len(self.points_) == self.size:
            self.points_ = self.points_[1::2]
            self.stride_ *= 2
            if self.offered_ % self.stride_:
                return
        row = [values[name] for name in COLUMNS]
        self.points_ = np.vstack([self.points_, row])

    def refreshed(self, event: dict[str, Any], flips: NDArray[np.float64] | None) -> None:
        """Take note of a new serving model, and of the share of items whose code has each flip."""
        values = {**event, "flips": None if flips is None else flips.mean()}
        row = [math.nan if values[name] is None else float(values[name]) for name in EVENT]
        self.refreshes_ = np.vstack([self.refreshes_, row])[-EVENTS:]
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
        return [dict(zip(COLUMNS, row, strict=True)) for row in self.points_.tolist()]


def _as_event(row: list[float]) -> dict[str, Any]:
    event: dict[str, Any] = dict(zip(EVENT, row, strict=True))
    for name, value in event.items():
        event[name] = None if math.isnan(value) else int(value) if name in COUNTS else value
    return event
