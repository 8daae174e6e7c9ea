"""What learns: a hasher that moves with every labelled item, while another model serves.

With it goes how the codes do: their quality before learning, drift, and the history of both. All of
it is durable, so that a collection opened again goes on with the same curves; for that the detector
is a few numbers, and the curve keeps a bounded number of points.
"""

import copy
import logging
import math
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, OnlineHasher, Streaming, new_generator, snapshot
from streamhash.classes import ClassTable
from streamhash.codes import Codes, unpack
from streamhash.errors import ExtremeRowsError, FileError, UnreachableError
from streamhash.estimators import clone
from streamhash.labels import neighbours
from streamhash.learned import (
    AnyOf,
    Array,
    Count,
    ItemLabels,
    Part,
    Real,
    Records,
    Table,
    Value,
)
from streamhash.live.arrow import Keys
from streamhash.live.calibration import COMING, Calibration, Judged, judge
from streamhash.live.delta import Delta
from streamhash.live.judgements import Pairs
from streamhash.parameters import Choice, Maybe, Number, Whole
from streamhash.refresh import code_gain, pair_information_gain
from streamhash.reservoir import Reservoir
from streamhash.search import HammingIndex

if TYPE_CHECKING:
    from streamhash.live.view import Moment

logger = logging.getLogger(__name__)

LOOKED_AT = 50  # neighbours that are looked at to find ten labelled ones
ASKED_ELSEWHERE = 32  # of the items of one call, where a server goes through all codes for each
ASKING = 1000  # rows that judge a model while it is learned, at most
ANSWERING = 4000  # rows that it has learned, and is judged by, at most

GAIN_HALF_LIFE = 1000  # labelled items, of what is known of the gain in precision
GAIN_QUERIES = 30  # of them, from which on it is known
CURVE = ("time", "items", "labelled", "model", "precision", "balance", "gain")
# A new serving model: when, by what, over how many items, and the share of bits that it changed.
EVENT = ("time", "model", "learned", "labelled", "items", "seconds", "gain", "flips")
COUNTS = {"model", "learned", "labelled", "items"}
REMEMBERED = 4096  # refreshes that are remembered
AT_ONCE = 8192  # rows that are read to be forgotten
LEAVE_SAMPLE = 128  # rows that are dropped from the sample together, where nothing can be forgotten
STAGE_NUMBERS = 2**24  # of the vectors of a stage, at most: they are in memory while it is learned
MOST_BYTES = 2**30  # of the keys of items that wait
NO_KEYS = np.empty(0, np.int64)
NO_DISTANCES = np.empty((0, 0), np.int32)

REFILLS = 8  # times that rows of a class are drawn to fill its share of a memory
ReadVectors = Callable[[Keys], Matrix]  # returns the vectors of stored items, in that order
Progress = Callable[[int, int], None]  # items done so far, and in all
ReadState = Callable[[int], bytes]  # returns the knowledge that is stored under a number


class Lesson(NamedTuple):
    """Items to learn from."""

    keys: Keys
    rows: NDArray[Any]
    labels: list[Any]
    are_stored: NDArray[np.bool_]  # already, and only their labels are new

    def some(self, places: list[int]) -> "Lesson":
        """Return the items at these places."""
        labels = [self.labels[i] for i in places]
        return Lesson(self.keys[places], self.rows[places], labels, self.are_stored[places])

    @classmethod
    def joined(cls, lessons: Sequence["Lesson"]) -> "Lesson":
        """Return lessons as one."""
        if len(lessons) == 1:
            return lessons[0]
        if not lessons:
            return cls(NO_KEYS, np.empty((0, 0), np.float32), [], NO_KEYS > 0)
        keys, rows, labels, are_stored = zip(*lessons, strict=True)
        return cls(
            np.concatenate(keys),
            np.concatenate(rows),
            [label for part in labels for label in part],
            np.concatenate(are_stored),
        )


class Monitor(Streaming):
    """Prequential precision: each labelled item asks the collection before it is learned.

    An answer is the share of an item's nearest labelled neighbours that have its label, or of
    several one at least. Their
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
    reverts_ : array (n, 3)
        Those of them that went back: the new model's number, that of the older one it is, and how
        much the learner had learned.
    flips_ : array (k,), or None
        Share of the items' codes in which the last refresh changed each bit.
    """

    rules = {  # noqa: RUF012
        "size": Whole(4),
        "half_life": Whole(1),
        "tolerance": Number(at_least=0),
        "alarm": Number(above=0),
    }
    learns = Table(
        points_=Array(np.float64, "points", len(CURVE), nan=True),
        stride_=Count(1),
        offered_=Count(),
        recent_=Real(nan=True),
        n_answers_=Count(),
        sum_answers_=Real(),
        n_since_alarm_=Count(),
        mean_since_alarm_=Real(),
        shortfall_=Real(),
        least_=Real(),
        drifts_=Records("time", "labelled", "precision"),
        refreshes_=Array(np.float64, "refreshes", len(EVENT), nan=True),
        reverts_=Array(np.int64, "reverts", 3, low=0, optional=True),
        flips_=AnyOf(None, Array(np.float64, "bits")),
    )

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
        self.reverts_ = np.empty((0, 3), np.int64)
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
        return [self._as_event(row) for row in self.refreshes_.tolist()]

    @property
    def last_refresh(self) -> dict[str, Any] | None:
        """The last of them."""
        return self._as_event(self.refreshes_[-1].tolist()) if len(self.refreshes_) else None

    @property
    def refresh_times(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """When each of them ended, and the seconds that it took."""
        ended, seconds = (self.refreshes_[:, EVENT.index(name)] for name in ("time", "seconds"))
        return ended, seconds

    @property
    def is_reverted(self) -> bool:
        """Whether the last of them went back to an older model."""
        last = self.last_refresh
        return last is not None and last["reverted_to"] is not None

    @property
    def learned_then(self) -> int:
        """How much had been learned at the last of them."""
        last = self.last_refresh
        if last is None:
            return 0
        return int(last["learned"]) if last["reverted_to"] is None else int(self.reverts_[-1, 2])

    def reverted(self, model: int, older: int, n_learned: int) -> None:
        """Take note that the next refresh goes back to an older model."""
        self.reverts_ = np.vstack([self.reverts_, [model, older, n_learned]])[-REMEMBERED:]

    def _as_event(self, row: list[float]) -> dict[str, Any]:
        event: dict[str, Any] = dict(zip(EVENT, row, strict=True))
        for name, value in event.items():
            event[name] = None if math.isnan(value) else int(value) if name in COUNTS else value
        older = self.reverts_[self.reverts_[:, 0] == event["model"], 1]
        return {**event, "reverted_to": int(older[-1]) if len(older) else None}

    def series(self) -> list[dict[str, float]]:
        """Return the curve, a dict a point."""
        return [dict(zip(CURVE, row, strict=True)) for row in self.points_.tolist()]


class Knowledge(Streaming):
    """What was learned, the heavy part of a learner: it is stored only when it has changed.

    Attributes
    ----------
    hasher_ : OnlineHasher
    reservoir_ : Reservoir
    classes_ : ClassTable
        Where items have several labels: the columns of the 0/1 matrices that are learned.
    """

    hasher_: OnlineHasher
    reservoir_: Reservoir
    learns = Table(
        hasher_=Part(OnlineHasher, started=False),
        reservoir_=Part(Reservoir, started=False),
        classes_=Part(ClassTable, optional=True),
    )

    def __init__(self) -> None:
        """Know nothing yet."""
        self.classes_ = ClassTable()


class Learner(Streaming):
    """A hasher, a sample of its stream, and the keys of the items that wait to be learned.

    Items may come one by one; a method learns from stages. So they wait until there are as many as
    the method wants (``OnlineHasher.next_stage``), and what is learned does not depend on the size
    of the pieces. What waits is stored anyway, as items: vectors and labels are read from there
    when their stage is full. An item that is deleted until then is not learned; one that gets
    another label is learned with that.

    ``to_bytes`` holds all but the ``knowledge``, which is read when it is first needed.

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
    is_ready_ : bool
        Whether it can encode.
    several_ : bool, or None while no label has come
        Whether items have several labels.
    monitor_ : Monitor
    calibration_ : Calibration
        How often neighbours have the query's label.
    waiting_ : array of uint8
        The keys of items that wait, packed.
    leaving_rows_, leaving_labels_ : array (n, d), list
        What is still to be forgotten of items that are gone.
    n_learned_ : int
        Items learned here.
    gain_ : float, or None while nothing was measured since another model served
        Bits of information by which this model beat the serving one on the last stage.
    missed_ : float
        The gain of every item that came since the serving model serves, summed up: bits.
    gains_ : array (3,)
        What labelled items gained in precision since the serving model serves: how many they are,
        the sum, and that of squares; all fade with a half-life of GAIN_HALF_LIFE.
    n_items_ : int
        Items in the collection at the last stage.
    n_clipped_, n_left_out_ : int
        Extreme values that were replaced, and items too extreme to be learned.
    n_judged_ : int
        Numbers that judged pairs were given so far.
    judged_to_ : int
        The number of the first pair that waits to be learned.
    n_pairs_ : int
        Pairs learned here.
    leaving_pairs_ : array (n, d)
        Rows that pairs have taught, still to be forgotten.
    waiting_rows_, waiting_labels_ : array (n, d), list
        Only where version 0.1 has stored what waits: it did so without keys.
    """

    rules = {"reservoir_size": Whole(2), "random_state": Maybe(Whole(0))}  # noqa: RUF012
    learns = Table(
        monitor_=Part(Monitor),
        calibration_=Part(Calibration, optional=True),
        n_learned_=Count(),
        gain_=AnyOf(None, Real(nan=True)),
        missed_=Real(optional=True),
        gains_=Array(np.float64, 3, optional=True),
        n_items_=Count(optional=True),
        n_clipped_=Count(optional=True),
        n_left_out_=Count(optional=True),
        n_judged_=Count(optional=True),
        judged_to_=Count(optional=True),
        n_pairs_=Count(optional=True),
        leaving_pairs_=Array(np.float32, "leaving_pairs", "pair_width", optional=True),
        # Not yet in files of version 0.1, which has the last four instead.
        is_ready_=Value(Choice(True, False), optional=True),
        several_=Value(Choice(None, True, False), optional=True),
        waiting_=Array(np.uint8, "bytes", optional=True),
        leaving_rows_=AnyOf(
            Array(np.float32, "leaving", "width"),
            Array(np.float16, "leaving", "width"),
            optional=True,
        ),
        leaving_labels_=ItemLabels("leaving", optional=True),
        hasher_=Part(OnlineHasher, started=False, optional=True),
        reservoir_=Part(Reservoir, started=False, optional=True),
        waiting_rows_=Array(np.float32, "waiting", "old_width", optional=True),
        waiting_labels_=ItemLabels("waiting", optional=True),
    )

    delta: Delta | None = None  # what makes it of the one that it is the twin of, if that is little
    _shares_knowledge = False  # with that one, so that it is not to be changed
    _unpacked: tuple[NDArray[np.uint8], Keys] | None = None  # what waits, packed and not

    def __init__(
        self, hasher: OnlineHasher, *, reservoir_size: int = 1000, random_state: int | None = None
    ) -> None:
        self.hasher = hasher
        self.reservoir_size = reservoir_size
        self.random_state = random_state
        self._knowledge: Knowledge | None = Knowledge()
        self._read_state: ReadState | None = None
        self.state: int | None = None  # the number that the knowledge is stored under

    def start(self, *, several: bool | None = None) -> None:
        """Set up what is learned; it may be known that items have several labels, or one."""
        self.check_parameters()
        seed = int(new_generator(self.random_state).integers(2**32))
        self.hasher_ = snapshot(self.hasher) if is_fitted(self.hasher) else clone(self.hasher)
        self.hasher = clone(self.hasher)
        self.reservoir_ = Reservoir(self.reservoir_size, random_state=seed)
        self.several_ = several
        self.is_ready_ = is_fitted(self.hasher_)
        self.monitor_, self.calibration_ = Monitor(), Calibration(self.hasher.n_bits)
        if not self.is_ready_:
            self.calibration_.begin()
        self.waiting_ = pack_keys(NO_KEYS)
        self.leaving_rows_: Matrix = np.empty((0, 0), np.float32)
        self.leaving_labels_: list[Any] = []
        self.n_learned_ = 0
        self.gain_: float | None = None
        self.missed_, self.gains_ = 0.0, np.zeros(3)
        self.n_items_ = 0
        self.n_clipped_, self.n_left_out_ = 0, 0
        self._start_judging()

    def _start_judging(self) -> None:
        self.n_judged_, self.judged_to_, self.n_pairs_ = 0, 0, 0
        self.leaving_pairs_: Matrix = np.empty((0, 0), np.float32)

    @classmethod
    def stored(
        cls,
        content: bytes,
        state: int | None,
        read_state: ReadState,
        deltas: Iterable[Delta] = (),
        *,
        place: str,
    ) -> "Learner":
        """Return the learner that is stored; up to version 0.1, the knowledge is in its content."""
        learner: Learner = cls.from_bytes(content, place=place)
        if state is not None:
            learner._knowledge, learner.state, learner._read_state = None, state, read_state
        if not hasattr(learner, "waiting_"):
            learner.waiting_ = pack_keys(NO_KEYS)
            learner.leaving_rows_, learner.leaving_labels_ = np.empty((0, 0), np.float32), []
            learner.is_ready_ = is_fitted(learner.hasher_)
        if not hasattr(learner, "gains_"):
            learner.gains_ = np.zeros(3)
        if not hasattr(learner, "n_clipped_"):
            learner.n_clipped_, learner.n_left_out_ = 0, 0
        if not hasattr(learner, "n_judged_"):
            learner._start_judging()
        if not hasattr(learner, "several_"):
            learner.several_ = False if learner.is_ready_ or learner.n_waiting else None
        if not hasattr(learner, "calibration_"):
            learner.calibration_ = Calibration(learner.hasher.n_bits)
        for delta in deltas:
            learner.apply(delta)
        return learner

    def copy(self) -> "Learner":
        """Return a twin to learn with; nothing that this one holds is written to."""
        twin: Learner = snapshot(self)
        twin.delta, twin._shares_knowledge = None, False
        return twin

    def _light_copy(self) -> "Learner":
        """Return a twin with the same knowledge, until it changes that."""
        twin = copy.copy(self)
        twin.monitor_, twin.calibration_ = snapshot(self.monitor_), snapshot(self.calibration_)
        twin.delta, twin._shares_knowledge = Delta(), True
        return twin

    def _own_knowledge(self) -> None:
        """Have knowledge of its own, which is about to change: more than a delta could say."""
        self.delta = None
        if self._shares_knowledge:
            self._knowledge, self._shares_knowledge = snapshot(self.knowledge), False

    def apply(self, delta: Delta) -> None:
        """Be what a twin was that differed by this."""
        self.monitor_.answers(delta.precisions, time=delta.time, labelled=delta.labelled)
        if delta.counted is not None:
            self.calibration_.add(delta.counted)
        if delta.several is not None:
            self.several_ = delta.several
        self._let_wait(delta.waits, delta.left)
        self._rename(*delta.renamed)
        if len(delta.leaving_labels):
            self._leave(delta.leaving_rows, delta.leaving_labels)

    def _let_wait(self, keys: Keys, left: Keys = NO_KEYS) -> None:
        """Let items wait, after the others; those that have ``left`` wait no more."""
        if not (len(keys) or len(left)):
            return
        waiting = self.waiting_keys
        before = waiting[~np.isin(waiting, np.concatenate([left, keys]))]  # they may wait anew
        self._set_waiting(np.concatenate([before, keys]))

    def _set_waiting(self, keys: Keys) -> None:
        self.waiting_ = pack_keys(keys)
        self._unpacked = self.waiting_, keys

    def become(self, other: "Learner") -> None:
        """Be another, which was stored; in one step, as other threads may look."""
        if other._knowledge is None and other.state == vars(self).get("state"):
            other._knowledge = self._knowledge
        self.__dict__ = other.__dict__

    @property
    def knowledge(self) -> Knowledge:
        """What was learned; what changes it sets ``state`` to None."""
        if self._knowledge is None:
            assert self._read_state is not None
            assert self.state is not None
            self._knowledge = Knowledge.from_bytes(
                self._read_state(self.state), place=f"state {self.state}"
            )
        return self._knowledge

    @property
    def hasher_(self) -> OnlineHasher:
        """The model that learns."""
        return self.knowledge.hasher_

    @hasher_.setter
    def hasher_(self, hasher: OnlineHasher) -> None:
        self.knowledge.hasher_ = hasher

    @property
    def reservoir_(self) -> Reservoir:
        """The sample."""
        return self.knowledge.reservoir_

    @reservoir_.setter
    def reservoir_(self, reservoir: Reservoir) -> None:
        self.knowledge.reservoir_ = reservoir

    @property
    def is_ready(self) -> bool:
        """Whether it can encode: it has learned something, and not forgotten all of it again."""
        return self.is_ready_

    @property
    def waiting_keys(self) -> Keys:
        """The keys of the items that wait, in the order in which they are learned."""
        if self._unpacked is None or self._unpacked[0] is not self.waiting_:
            self._unpacked = self.waiting_, unpack_keys(self.waiting_)
        return self._unpacked[1]

    @property
    def n_waiting(self) -> int:
        """Items that wait for their stage to be full."""
        return len(self.waiting_keys) + len(self._waiting_before()[1])

    @property
    def n_leaving(self) -> int:
        """Rows that are still to be forgotten."""
        return len(self.leaving_labels_) + len(self.leaving_pairs_)

    @property
    def _stage(self) -> int:
        """How many rows are learned next; whole batches, so that all pieces are cut alike."""
        hasher = self.hasher_
        most = STAGE_NUMBERS // getattr(hasher, "n_features_in_", 1)
        return max(1, min(hasher.next_stage, most) // hasher.batch_size) * hasher.batch_size

    @property
    def n_until_stage(self) -> int:
        """How many items more there must be for the next stage to be learned."""
        return max(0, self._stage - self.n_waiting)

    @property
    def n_until_forgotten(self) -> int:
        """How many rows more have to leave for all that leave to be forgotten."""
        return max(0, self._leave_together - self.n_leaving)

    @property
    def _leave_together(self) -> int:
        """How many rows leave together."""
        return int(self.hasher.batch_size) if self.hasher.can_forget else LEAVE_SAMPLE

    # --------------------------------------------------------------------- items come, and go

    def taught(
        self,
        moment: "Moment",
        lesson: Lesson,
        codes: Codes | None,
        read: ReadVectors,
        *,
        gone: Keys = NO_KEYS,
        renamed: tuple[Keys, Keys] = (NO_KEYS, NO_KEYS),
        n_items: int,
        forget: bool = True,
    ) -> "Learner | None":
        """Return a twin that has learned from these items, None if there is nothing to learn.

        Labelled items ask for their neighbours first, by their ``codes`` of the serving model.
        Items that are ``gone`` are let go before (see ``let_go``), and those that are ``renamed``
        are known by their new keys afterwards. There are ``n_items`` with these. ``read`` returns
        the vectors of items that are stored.
        """
        twin = self.let_go(moment, gone, read, forget=forget)
        twin = self._taught(twin, moment, lesson, codes, read, n_items)
        if np.isin((twin or self).waiting_keys, renamed[0]).any():
            twin = twin or self._light_copy()
            twin._rename(*renamed)
            if twin.delta is not None:
                twin.delta = twin.delta._replace(renamed=renamed)
        return twin

    def _taught(
        self,
        twin: "Learner | None",
        moment: "Moment",
        lesson: Lesson,
        codes: Codes | None,
        read: ReadVectors,
        n_items: int,
    ) -> "Learner | None":
        """Return the twin that has let items go, or else a new one, as it is after a lesson."""
        now, directory, serving = time.time(), moment.directory, moment.model
        known = [i for i, label in enumerate(lesson.labels) if label is not None]
        chosen = known if self.hasher.needs_labels else [*range(len(lesson.keys))]
        if not chosen:
            return twin
        place = "Collection.label" if lesson.are_stored[0] else "Collection.add"
        rows = lesson.rows[chosen].astype(np.float32, copy=False)
        self.hasher_.refuse_extremes(rows, place, chosen)
        twin, labelled = twin or self._loaded()._light_copy(), directory.n_labelled + len(known)
        is_light = twin.delta is not None and twin.n_until_stage > len(chosen)
        delta = twin.delta or Delta()
        delta = delta._replace(waits=lesson.keys[chosen], time=now, labelled=labelled)
        if known:
            twin.several_ = isinstance(lesson.labels[known[0]], tuple)
            delta = delta._replace(several=twin.several_)
        if codes is not None and known:
            own = np.where(lesson.are_stored, lesson.keys, -1)[known]
            names = [lesson.labels[i] for i in known]
            judged = _judged(moment, codes[known], names, own)
            twin.monitor_.answers(judged.precisions, time=now, labelled=labelled)
            counted = twin.calibration_.count(moment.number, judged)
            delta = delta._replace(precisions=judged.precisions, counted=counted)
        if is_light:
            twin._let_wait(delta.waits)
            twin.delta = delta
            return twin
        twin.delta = None
        twin._wait(lesson.some(chosen), moment, read, n_items)
        if twin.n_learned_ > self.n_learned_ and serving is not None:
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

    def let_go(
        self, moment: "Moment", keys: Keys, read: ReadVectors, *, forget: bool
    ) -> "Learner | None":
        """Return a twin without these items, None if they have left no trace.

        Those that wait are not learned any more. What was learned from others is forgotten, if that
        is wanted and the method can; and they are dropped from the sample. To forget is to store
        all that was learned anew, so that a few rows leave together: before the next stage is
        learned, or a model is made, or when they are as many as a batch.
        """
        waiting = self.waiting_keys
        there = np.isin(waiting, keys)
        twin = None
        if there.any():
            twin = self._light_copy()
            twin.delta = Delta(left=waiting[there])
            twin._let_wait(NO_KEYS, waiting[there])
        if not forget or not self.is_ready:
            return twin
        learned = keys[~np.isin(keys, waiting)]
        if self.hasher.needs_labels:
            learned = learned[moment.directory.listing.labels_of(learned) >= 0]
        for start in range(0, len(learned), AT_ONCE):
            some = learned[start : start + AT_ONCE]
            twin = twin or self._light_copy()
            X, names = read(some), moment.directory.listing.label_names_of(some)
            if twin.delta is not None:
                twin.delta = twin.delta.leave(X, names)
            twin._leave(X, names)
        return twin

    def _rename(self, old: Keys, new: Keys) -> None:
        """Know items that wait by other keys."""
        waiting, order = self.waiting_keys, np.argsort(old)
        there = np.isin(waiting, old)
        if there.any():
            waiting = waiting.copy()
            waiting[there] = new[order[np.searchsorted(old, waiting[there], sorter=order)]]
            self._set_waiting(waiting)

    def _leave(self, X: Matrix, names: Sequence[Any]) -> None:
        """Let rows leave; when there are enough of them, they are forgotten."""
        there = [self.leaving_rows_] if self.leaving_labels_ else []
        self.leaving_rows_ = np.concatenate([*there, X])
        self.leaving_labels_ = [*self.leaving_labels_, *names]
        if self.n_leaving >= self._leave_together:
            self.forget_leaving()

    def forget_leaving(self) -> None:
        """Forget the rows that leave, if the method can, and drop them from the sample."""
        self._own_knowledge()
        self._forget_leaving_pairs()
        if not self.leaving_labels_:
            return
        X, names = self.leaving_rows_, self.leaving_labels_
        known = [i for i, name in enumerate(names) if name is not None]
        if self.hasher_.can_forget:
            y = names if self.several_ else as_labels(names)
            self.hasher_.forget(X, self._targets(y) if self.hasher_.needs_labels else None)
            self.state = None
            if not getattr(self.hasher_, "n_samples_seen_", 0):  # of all it knew, nothing is left
                self.hasher_, self.is_ready_ = clone(self.hasher), False
        if self.reservoir_.drop(X[known]):
            self.state = None
        self.leaving_rows_, self.leaving_labels_ = X[:0], []

    # ----------------------------------------------------------------------------- judged pairs

    @property
    def has_waiting_pairs(self) -> bool:
        """Whether judged pairs wait that the method can learn."""
        return self.n_judged_ > self.judged_to_ and self.hasher.learns_pairs

    def judged(
        self, n: int, pairs: Callable[[int], Pairs], serving: OnlineHasher | None
    ) -> "Learner":
        """Return a twin that knows ``n`` judged pairs more, and learns those that fill a stage.

        ``pairs`` returns those from one number on that are there.
        """
        twin = self._loaded().copy()
        twin.n_judged_ += n
        if twin.n_judged_ - twin.judged_to_ >= max(twin._stage // 2, 1):
            twin.learn_pairs(pairs(twin.judged_to_), serving=serving)
        return twin

    def learn_pairs(
        self, pairs: Pairs, *, serving: OnlineHasher | None = None, all_now: bool = False
    ) -> int:
        """Learn the pairs that wait, stage by stage; return how many were learned.

        What does not fill a stage is left, unless all are to be learned now. The pairs also tell
        which model serves better: this one as it was before it learned them, or the serving one.
        """
        self._own_knowledge()
        n, total = 0, len(pairs.good)
        before = snapshot(self.hasher_.settle()) if serving is not None and self.is_ready else None
        while n < total and (all_now or total - n >= max(self._stage // 2, 1)):
            stage = slice(n, n + max(self._stage // 2, 1))
            self.forget_leaving()
            self._learn_pair_rows(pairs.some(stage))
            n = min(stage.stop, total)
        if n == 0:
            return 0
        if before is not None and serving is not None:
            done = pairs.some(slice(n))
            self.gain_ = pair_information_gain(before, serving, done.queries, done.items, done.good)
            self.missed_ = max(0.0, self.missed_ + n * self.gain_)
        self.judged_to_ = int(pairs.numbers[n - 1]) + 1 if n < total else self.n_judged_
        self.n_pairs_ += n
        self.n_learned_ += n
        self.n_clipped_ = self.hasher_.n_clipped_
        self.is_ready_, self.state = is_fitted(self.hasher_), None
        return n

    def _learn_pair_rows(self, pairs: Pairs) -> None:
        """Learn a stage of pairs; those with rows too extreme for it are left out."""
        if self.several_ and self.hasher_.can_forget:  # its classes are columns of a matrix
            return self._learn_as_labelled(pairs)
        while len(pairs.good):
            try:
                self.hasher_.partial_fit_pairs(
                    pairs.queries, pairs.items, pairs.good, pairs.query_labels, pairs.labels
                )
            except ExtremeRowsError as error:
                n = len(error.rows)
                if not n:  # the first rows of all were extreme
                    n, self.hasher_ = self.hasher_.n_samples_seen_, clone(self.hasher)
                else:
                    kept = np.setdiff1d(np.arange(len(pairs.good)), error.rows)
                    pairs = pairs.some(kept)
                self.n_left_out_ += n
                logger.warning("%d judged pairs are not learned from: %s", n, error)
            else:
                return None
        return None

    def _learn_as_labelled(self, pairs: Pairs) -> None:
        """Learn rows that belong with one that has several labels as rows with these labels."""
        rows, names = [], []
        sides = (pairs.queries, pairs.query_labels), (pairs.items, pairs.labels)
        for (X, own), (_, others) in (sides, sides[::-1]):
            for i in np.flatnonzero(pairs.good).tolist():
                if own[i] is None and others[i] is not None:
                    rows.append(X[i])
                    names.append(others[i])
        if rows:
            self._learn_rows(np.array(rows), self._targets(names))

    @property
    def forgets_pairs(self) -> bool:
        """Whether rows that pairs have taught can be forgotten."""
        return bool(self.hasher.can_forget) and not self.several_

    def leave_pairs(self, X: Matrix) -> None:
        """Let rows leave that pairs have taught, if the method can forget them."""
        if len(X) and self.forgets_pairs:
            self._own_knowledge()
            self.leaving_pairs_ = np.concatenate([self.leaving_pairs_.reshape(-1, X.shape[1]), X])
            if len(self.leaving_pairs_) >= self.hasher.batch_size:
                self.forget_leaving()

    def _forget_leaving_pairs(self) -> None:
        if len(self.leaving_pairs_):
            X, self.leaving_pairs_ = self.leaving_pairs_, np.empty((0, 0), np.float32)
            if is_fitted(self.hasher_):
                self.hasher_.forget_pairs(X)
                if not is_fitted(self.hasher_):
                    self.hasher_, self.is_ready_ = clone(self.hasher), False
                self.state = None

    @property
    def lacks_rows(self) -> bool:
        """Whether its memory has places that forgotten rows have left."""
        return self.is_ready and bool(self.hasher_.missing())

    def refill(self, moment: "Moment", read: ReadVectors) -> None:
        """Let the method's memory draw stored items in the place of those that were forgotten."""
        missing, listing = self.hasher_.missing(), moment.directory.listing
        if not missing:
            return
        self._own_knowledge()
        of_class: dict[Any, list[int]] = {}
        for number, name in enumerate(listing.names):
            for each in name if self.several_ else [name]:
                of_class.setdefault(each, []).append(number)
        names = self.knowledge.classes_.labels_ if self.several_ else None
        wanted = {c: of_class.get([*names][c] if names else c, []) for c in missing}
        drawn: dict[Any, list[Keys]] = {c: [np.empty(0, np.int64)] for c in missing}
        for keys in moment.directory.live_keys.pieces():
            keys = keys[~np.isin(keys, self.waiting_keys)]  # what waits was not learned
            numbers = listing.labels_of(keys)
            for c in missing:
                drawn[c].append(keys[np.isin(numbers, wanted[c])])
        generator = np.random.default_rng(self.n_learned_)  # the same again after a crash
        for c in missing:
            order = generator.permutation(np.concatenate(drawn.pop(c)))
            for _ in range(REFILLS):  # of what is drawn, part is there already
                n = self.hasher_.missing().get(c, 0)
                some, order = order[: 2 * n], order[2 * n :]
                if not len(some):
                    break
                labels = listing.label_names_of(some)
                self.hasher_.refill(
                    read(some), self._targets(labels if self.several_ else as_labels(labels))
                )
                self.state = None

    def _loaded(self) -> "Learner":
        """Return this learner, its knowledge read, so that a twin need not do so."""
        assert self.knowledge
        return self

    def _wait(self, lesson: Lesson, moment: "Moment", read: ReadVectors, n_items: int) -> None:
        """Let items wait, and learn those whose stage is full."""
        self._let_wait(lesson.keys)
        if self.n_waiting < self._stage:
            return
        waiting = self.waiting_keys[: -len(lesson.keys)]
        before, names = self._read_waiting(waiting, moment, read)
        rows = np.concatenate([*before, lesson.rows.astype(np.float32)])
        n = self.learn(rows, [*names, *lesson.labels], serving=moment.model, n_items=n_items)
        self._waited(n)

    def learn_waiting(self, moment: "Moment", read: ReadVectors) -> int:
        """Learn what waits, though it does not fill a stage."""
        if self.n_waiting == 0:
            return 0
        rows, names = self._read_waiting(self.waiting_keys, moment, read)
        n = self.learn(np.concatenate(rows), names, n_items=len(moment.directory), all_now=True)
        self._waited(n)
        return n

    def _read_waiting(
        self, keys: Keys, moment: "Moment", read: ReadVectors
    ) -> tuple[list[Matrix], list[Any]]:
        """Return the vectors of items that wait, and their labels."""
        rows, names = self._waiting_before()
        if len(keys):
            rows = [*rows, read(keys)]
            names = [*names, *moment.directory.listing.label_names_of(keys)]
        return rows, names

    def _waiting_before(self) -> tuple[list[Matrix], list[Any]]:
        """Return what version 0.1 has left waiting."""
        names = getattr(self, "waiting_labels_", [])
        return [self.waiting_rows_] if names else [], names

    def _waited(self, n: int) -> None:
        """Let the first ``n`` that wait go, as they were learned."""
        n_before = len(self._waiting_before()[1])
        if n_before:
            assert n >= n_before  # they were less than a stage
            del self.waiting_rows_, self.waiting_labels_
        self._set_waiting(self.waiting_keys[n - n_before :])

    # -------------------------------------------------------------------------------- learning

    def relearned(
        self,
        hasher: OnlineHasher,
        moment: "Moment",
        read: ReadVectors,
        pairs: Callable[[int], Pairs],
        progress: Progress,
    ) -> "Learner":
        """Return a learner that knows the stored items alone, in the order in which they came.

        Judged pairs come after them, if the method learns from pairs. How the codes did so far
        stays known.
        """
        twin = Learner(hasher, reservoir_size=self.reservoir_size, random_state=self.random_state)
        twin.start(several=self.several_)
        twin.monitor_ = self.monitor_
        if hasher.n_bits == self.calibration_.n_bits:
            twin.calibration_ = snapshot(self.calibration_)
        twin.calibration_.begin()
        listing, keys = moment.directory.listing, moment.directory.keys
        if hasher.needs_labels:
            keys = keys[listing.labels_of(keys) >= 0]
        n, n_items = 0, len(moment.directory)
        while len(keys) - n >= twin._stage:
            if n and twin.calibration_.wants(n):
                parts = keys[n : n + ASKING], keys[max(0, n - ANSWERING) : n]
                twin._judge(*((read(part), listing.label_names_of(part)) for part in parts))
            stage = keys[n : n + twin._stage]
            n += twin.learn(read(stage), listing.label_names_of(stage), n_items=n_items)
            progress(n, len(keys))
        twin._set_waiting(keys[n:])
        twin.n_judged_ = self.n_judged_
        if twin.has_waiting_pairs:
            twin.learn_pairs(pairs(0))
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
        """Learn from rows and their labels, stage by stage; return how many were learned.

        What does not fill a stage is left, unless all are to be learned now. Labels may be None
        where the method needs none. The rows also tell which model serves better a collection of
        ``n_items``: this one as it was before it learned them, or the ``serving`` one.
        """
        self._own_knowledge()
        if all_now or len(X) >= self._stage:
            self.forget_leaving()
        known = np.array([name is not None for name in labels], bool)
        y: Any = [name for name in labels if name is not None]
        y = y if self.several_ else as_labels(y)
        place = np.cumsum(known) - known  # of each row among those with labels
        sample, n = self.reservoir_, 0
        weighing = serving is not None and hasattr(sample, "rows_") and is_fitted(self.hasher_)
        before = snapshot(self.hasher_.settle()) if weighing and not self._is_serving else None
        while n < len(X) and (all_now or len(X) - n >= self._stage):
            end = min(n + self._stage, len(X))
            if n and self.calibration_.wants(n):
                parts = slice(n, n + ASKING), slice(max(0, n - ANSWERING), n)
                self._judge(*((X[part], labels[part]) for part in parts))
            names = y[place[n] : place[n] + known[n:end].sum()]
            self._learn_rows(X[n:end], self._targets(names) if self.hasher_.needs_labels else None)
            n = end
        if n == 0:
            return 0
        rows, names = X[:n][known[:n]], self._targets(y[: known[:n].sum()])
        if len(rows):
            if before is not None and serving is not None:
                self._weigh(before, serving, rows, names, max(n, n_items - self.n_items_))
            sample.take(rows, names)
        self.n_items_ = n_items
        self.n_learned_ += n
        self.n_clipped_ = self.hasher_.n_clipped_
        if weighing:  # for the next rows to weigh, or a refresh: whichever comes first
            self.hasher_.settle()
        self.is_ready_, self.state = is_fitted(self.hasher_), None
        return n

    def _targets(self, y: Any) -> NDArray[Any]:
        """Return labels of rows as a method learns them: several as a row of a 0/1 matrix."""
        return self.knowledge.classes_.matrix(y) if self.several_ else y

    def _learn_rows(self, X: Matrix, y: NDArray[Any] | None) -> None:
        """Learn a stage; rows too extreme for it are left out, as they are stored already."""
        while len(X):
            try:
                self.hasher_.partial_fit(X, y)
            except ExtremeRowsError as error:
                n = len(error.rows)
                if n:
                    X = np.delete(X, error.rows, axis=0)
                    y = None if y is None else np.delete(y, error.rows, axis=0)
                else:  # the first rows of all were extreme: what was learned from them is of no use
                    n = self.hasher_.n_samples_seen_
                    self.hasher_ = clone(self.hasher)
                self.n_left_out_ += n
                logger.warning("%d items are not learned from: %s", n, error)
            else:
                return

    def _judge(self, later: tuple[Matrix, list[Any]], earlier: tuple[Matrix, list[Any]]) -> None:
        """Let the model to come answer rows that it has not learned, by some that it has."""
        (X, labels), (rows, theirs) = later, earlier
        known = [i for i, label in enumerate(labels) if label is not None]
        if not known or not is_fitted(self.hasher_):
            return
        model = snapshot(self.hasher_.settle())
        index = HammingIndex(model.n_bits)
        index.add(None, model.transform(rows))
        codes, own = model.transform(X[known]), [labels[i] for i in known]
        distances, places = index.search(codes, min(LOOKED_AT, len(rows)))
        found = [[theirs[place] for place in row] for row in places.tolist()]
        self.calibration_.begin(self.hasher_.n_samples_seen_)
        self.calibration_.count(COMING, judge(codes, own, distances, found))

    def _weigh(
        self, new: OnlineHasher, serving: OnlineHasher, X: Matrix, y: NDArray[Any], n: int
    ) -> None:
        """Measure the gain on rows that were not learned yet, and count it for ``n`` items.

        The rows are queries: they are like those to come, also after a change. What they are asked
        about is the sample: it is like all that is stored, however old.
        """
        sample = self.reservoir_
        if sample.labels is None:
            return
        step = -(-len(X) // self.reservoir_size)  # of a large piece, as many as in the sample
        asked = sample.numbered(y[::step])
        assert asked is not None
        same = neighbours(asked, sample.labels)
        gain = code_gain(new, serving, sample.rows, same, X[::step])
        self.gain_ = gain.bits
        self.missed_ = max(0.0, self.missed_ + n * self.gain_)
        each, fade = gain.precisions, 0.5 ** (len(same) / GAIN_HALF_LIFE)
        self.gains_ = fade * self.gains_ + [len(each), each.sum(), np.square(each).sum()]

    @property
    def _is_serving(self) -> bool:
        """Whether this is the model that serves, which has nothing to gain."""
        monitor = self.monitor_
        return self.n_learned_ == monitor.learned_then and not monitor.is_reverted

    @property
    def gain(self) -> float | None:
        """By how many bits it beat the serving model, when that was measured; None if never."""
        return 0.0 if self._is_serving else self.gain_

    @property
    def precision_gain(self) -> tuple[float, float] | None:
        """By how much precision beat that of the serving model, and the standard error.

        Measured on labelled items before they were learned; None if they are few.
        """
        n, total, squares = self.gains_.tolist()
        if n < GAIN_QUERIES:
            return None
        mean = total / n
        return mean, math.sqrt(max(squares / n - mean**2, 0.0) / n)

    def served(
        self,
        event: dict[str, Any],
        flips: NDArray[np.float64] | None,
        n_bits: int,
        older: int | None = None,
    ) -> None:
        """Take note that this model serves now, or an older one again, and the length of codes."""
        if older is not None:
            self.monitor_.reverted(event["model"], older, self.n_learned_)
        self.gain_, self.missed_, self.gains_ = None, 0.0, np.zeros(3)
        self.monitor_.refreshed(event, flips)
        if n_bits != self.calibration_.n_bits:  # an older model has codes of another length
            self.calibration_ = Calibration(n_bits)
        self.calibration_.serves(event["model"], older)

    def balance(self, serving: OnlineHasher) -> float:
        """Return the mean over bits of 1 − |2 share of ones − 1|, on the sample: 1 is best."""
        if not hasattr(self.reservoir_, "rows_"):
            return float("nan")
        bits = unpack(serving.transform(self.reservoir_.rows), serving.n_bits)
        return float((1 - np.abs(2 * bits.mean(axis=0) - 1)).mean())


def pack_keys(keys: Keys) -> NDArray[np.uint8]:
    """Return keys in few bytes: their steps, which are much alike, compressed."""
    return np.frombuffer(zlib.compress(np.diff(keys, prepend=0).tobytes(), 1), np.uint8)


def unpack_keys(packed: NDArray[np.uint8]) -> Keys:
    """Undo ``pack_keys``."""
    opened = zlib.decompressobj()
    steps = opened.decompress(packed.tobytes(), MOST_BYTES)
    if not opened.eof or len(steps) % 8:
        raise FileError("the keys of the items that wait to be learned are damaged")
    return np.cumsum(np.frombuffer(steps, np.int64))


def is_fitted(hasher: OnlineHasher) -> bool:
    """Whether a hasher has seen data, and so can encode."""
    return hasattr(hasher, "n_features_in_")


def as_labels(names: list[Any]) -> NDArray[Any]:
    """Return labels as an array: of numbers, of strings, or else of objects."""
    if all(type(name) is int for name in names) or all(type(name) is str for name in names):
        return np.array(names)
    return np.fromiter(names, object, len(names))


def _judged(moment: "Moment", codes: Codes, labels: list[Any], own: NDArray[np.int64]) -> Judged:
    """What labelled items find now; where nobody gets an answer, none is judged."""
    backend, directory, n = moment.backend, moment.directory, min(LOOKED_AT, len(moment.directory))
    if backend is None or n == 0:
        return judge(codes[:0], [], NO_DISTANCES, [])
    if backend.is_shared:
        some = slice(None, None, -(-len(codes) // ASKED_ELSEWHERE) or 1)
        codes, labels, own = codes[some], labels[some], own[some]
    try:
        distances, keys = backend.search_soon(codes, n)
    except UnreachableError:
        return judge(codes[:0], [], NO_DISTANCES, [])
    there = directory.has(keys) if backend.is_shared else keys >= 0
    there &= keys != own[:, None]
    names = iter(directory.listing.label_names_of(keys[there]))
    found = [[next(names) if each else None for each in row] for row in there.tolist()]
    return judge(codes, labels, np.where(there, distances, -1), found)
