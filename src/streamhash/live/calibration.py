"""How probable an answer is: counted on labelled items, which ask before they are learned.

A neighbour is *right* if it has the query's label, or of several labels one at least. Each labelled
item asks for its neighbours before it is learned, so how often one at distance r is right is known
for items that the model has never seen. Three things make counts into probabilities:

- **Distance and nearest distance.** Among neighbours at the same distance, those of a query whose
  nearest item is far are right less often than distance alone says (on weak codes the error of 100
  neighbours halves when this is counted too). So there is one curve for each class of nearest
  distances: 0, 1, 2 to 3, 4 to 7, and so on. All are made never to rise with the distance (pool
  adjacent violators), and lean on the curve of all queries where little was counted.
- **Rank.** Of the labelled neighbours among the 50 nearest, the one of rank j counts 1/j: the
  first, the first ten and the first hundred are then about equally well told. Farther pairs, which
  hardly come up among neighbours, are the queries of one call with each other.
- **Time.** Counts fade with a half-life of 2,000 queries. A new model begins with the counts of the
  one before, worth 200 queries at most, and so soon has its own; the first model of a collection,
  and one that was learned anew, with what later rows of the same call, or later items, said of it
  while it was still being learned.

A vote of neighbours has a score for each label: the sum of the probabilities of the neighbours that
have it, over their number. It is made into a probability in the same way: by counting how often the
best label was right, and how often the others were.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Streaming
from streamhash.codes import Codes
from streamhash.labels import each_label, share_label
from streamhash.learned import Array, Count, Table
from streamhash.parameters import Whole

NEIGHBOURS = 10  # labelled ones that an answer is judged by, and that vote
CELLS = 65  # of distances; codes of more than 64 bits have several distances in one
CLASSES = 8  # of nearest distances: 0, 1, 2 to 3, 4 to 7 ...
SCORES = 51  # of a vote: 0, .02 ... 1
BINS = 15  # of probabilities, in which they are compared with what came true
HALF_LIFE = 2000  # queries
CARRIED = 200  # queries that the counts of the model before are worth, at most
FEWEST = 30  # queries, before which nothing is known
PRIOR = 2.0  # pairs in each cell of a class that are as those of all queries
FAR = 10  # other queries of a call that each is compared with
FAR_WEIGHT = 0.02  # of such a pair: as of the neighbour of rank 50
MODELS = 4  # whose counts are kept
COMING = 0  # the number of the model that is being learned
WEAKEST = 0.1  # weight of a pair, half right, in each distance that was seen at all
COUNTS = ("queries_", "pairs_", "votes_")

Probabilities = NDArray[np.float64]
Labels = tuple[Any, ...]  # of an item: none, one or several
Ballot = list[tuple[Any, float]]  # labels and their scores, the highest first


class Judged(NamedTuple):
    """What queries whose labels are known have found, before they were learned."""

    distances: NDArray[Any]  # (n, m) of labelled neighbours, the nearest first; then -1
    right: NDArray[np.bool_]  # (n, m)
    nearest: NDArray[Any]  # (n, 1) distance of the nearest item, with a label or without
    found: list[list[Labels]]  # the labels of the first neighbours, which vote
    own: list[Labels]  # the labels of the queries
    codes: Codes  # of the queries

    @property
    def precisions(self) -> NDArray[np.float64]:
        """Share of the voting neighbours that are right, of each query that has any."""
        n = np.array([len(row) for row in self.found])
        votes = np.arange(self.right.shape[1]) < n[:, None]
        return np.asarray((self.right & votes).sum(axis=1)[n > 0] / n[n > 0])


def judge(
    codes: Codes, labels: Sequence[Any], distances: NDArray[Any], found: list[list[Any]]
) -> Judged:
    """Judge what queries have found by their labels, and by those of what they found.

    Items found without a label are passed over; those that are not there have distance -1.
    """
    there = np.where(distances < 0, np.iinfo(np.int32).max, distances)
    nearest = there.min(axis=1, keepdims=True, initial=np.iinfo(np.int32).max)
    numbers: dict[Any, int] = {}
    each = [numbers.setdefault(label, len(numbers)) for row in found for label in row]
    of_label = np.array(each, np.int64).reshape(distances.shape)
    known = of_label != numbers.get(None, -1)
    first = np.argsort(~known, axis=1, kind="stable")  # those with a label, the nearest first
    known, of_label = (np.take_along_axis(values, first, axis=1) for values in (known, of_label))
    order = np.where(known, np.take_along_axis(distances, first, axis=1), -1)
    own, names = [each_label(label) for label in labels], [*numbers]
    if any(isinstance(label, tuple) for label in chain(names, labels)):
        shared = np.array([share_label(label, names) for label in labels], bool)
        right = np.take_along_axis(shared.reshape(len(own), -1), of_label, axis=1)
    else:
        mine = np.array([numbers.get(label, -1) for label in labels], np.int64)
        right = known & (of_label == mine[:, None])
    n_voting = np.minimum(known.sum(axis=1), NEIGHBOURS).tolist()
    voting = [
        [each_label(names[number]) for number in row[:n]]
        for row, n in zip(of_label[:, :NEIGHBOURS].tolist(), n_voting, strict=True)
    ]
    return Judged(order, right, nearest, voting, own, codes)


class Counted(NamedTuple):
    """What queries add to the counts of a model."""

    model: int
    queries: int
    pairs: NDArray[np.float64]  # (2, classes, cells)
    votes: NDArray[np.float64] | None  # (2, 2, scores), if probabilities were known
    reliability: NDArray[np.float64] | None  # (2, 3, bins), if they were told


class Calibration(Streaming):
    """Counts of neighbours and votes that were right, of the last models.

    Parameters
    ----------
    n_bits : int
        Length of the codes.

    Attributes
    ----------
    models_ : array (m,)
        The numbers of the models; 0 is that which is being learned, if nothing is known of it.
    queries_ : array (m,)
        Queries that the counts of each are worth.
    pairs_ : array (m, 2, classes, cells)
        Pairs that were right, and all, by nearest distance and distance.
    votes_ : array (m, 2, 2, scores)
        Labels that were right, and all, by their score: the best of a vote, and the others.
    reliability_ : array (2, 3, bins)
        Of the ten nearest neighbours and of votes: the sums of what was said and of what came
        true, and how many, in bins of what was said.
    learned_ : int
        Rows that the model to come knew when it was last judged.
    """

    rules = {"n_bits": Whole(1, 1024)}  # noqa: RUF012
    learns = Table(
        models_=Array(np.int64, "m", low=0),
        queries_=Array(np.float64, "m", low=0),
        pairs_=Array(np.float32, "m", 2, CLASSES, CELLS, low=0),
        votes_=Array(np.float32, "m", 2, 2, SCORES, low=0),
        reliability_=Array(np.float64, 2, 3, BINS, low=0),
        learned_=Count(),
    )

    def __init__(self, n_bits: int) -> None:
        self.n_bits = n_bits
        self.models_ = np.empty(0, np.int64)
        self.queries_ = np.empty(0)
        self.pairs_ = np.empty((0, 2, CLASSES, CELLS), np.float32)
        self.votes_ = np.empty((0, 2, 2, SCORES), np.float32)
        self.reliability_ = np.zeros((2, 3, BINS))
        self.learned_ = 0
        self._known: dict[int, Curves] = {}  # by place
        # The curves used last, laid out by distances.
        self._by_distance: tuple[Curves, NDArray[np.int64], Probabilities] | None = None

    # ---------------------------------------------------------------------------------- counting

    def count(self, model: int, judged: Judged) -> Counted | None:
        """Count what queries have found by a model, and compare it with what is said of it.

        Returns what was counted, which ``add`` adds to counts that are as these were.
        """
        n = sum(1 for row in judged.found if row)  # of queries that found something
        if n == 0:
            return None
        before = self._curves(model)
        counted = Counted(model, n, self._pairs(judged), None, None)
        self._add_pairs(counted)
        curves = before or self._curves(model)
        if curves is None:
            return counted
        said = self._looked_up(curves.pairs, judged.distances, judged.nearest)
        ballots = [tally(*ballot) for ballot in zip(judged.found, said, strict=True)]
        if before is not None and model != COMING:
            voting = np.arange(said.shape[1]) < np.array([[len(row)] for row in judged.found])
            pairs = zip(ballots, judged.own, strict=True)
            best = [(ballot[0], own) for ballot, own in pairs if ballot]
            scores = np.array([score for (_, score), _ in best])
            true = np.array([label in own for (label, _), own in best], bool)
            new = binned(said[voting], judged.right[voting]), binned(before.best(scores), true)
            counted = counted._replace(reliability=np.array(new))
        counted = counted._replace(votes=_counted(ballots, judged.own))
        self._add_votes(counted)
        return counted

    def add(self, counted: Counted) -> None:
        """Add what was counted."""
        self._add_pairs(counted)
        self._add_votes(counted)

    def _add_pairs(self, counted: Counted) -> None:
        place, fade = self._begun(counted.model), 0.5 ** (counted.queries / HALF_LIFE)
        self._set(place, queries_=counted.queries, pairs_=counted.pairs, fade=fade)

    def _add_votes(self, counted: Counted) -> None:
        place, fade = self._begun(counted.model), 0.5 ** (counted.queries / HALF_LIFE)
        if counted.reliability is not None:
            self.reliability_ = self.reliability_ * fade + counted.reliability
        if counted.votes is not None:
            self._set(place, votes_=counted.votes, fade=fade)

    def _begun(self, model: int) -> int:
        """Return the place of a model's counts; those of a new model begin with the last ones."""
        if model not in self.models_:
            last = None if model == COMING else self._place(model)
            share = 1.0 if last is None else CARRIED / max(self.queries_[last], 1.0)
            self._add(model, last, share)
        return int(np.flatnonzero(self.models_ == model)[0])

    def _add(self, model: int, place: int | None, share: float) -> None:
        """Give a model a share of the counts at a place; the oldest counts may go for them."""
        kept = np.arange(len(self.models_))[-(MODELS - 1) :]
        for name in COUNTS:
            counts = getattr(self, name)
            new = np.zeros((1, *counts.shape[1:]), counts.dtype)
            if place is not None:
                new[0] = counts[place] * min(share, 1.0)
            setattr(self, name, np.concatenate([counts[kept], new]))
        self.models_, self._known = np.append(self.models_[kept], model), {}

    def _set(self, place: int, *, fade: float, **new: Any) -> None:
        """Add to the counts at a place, which fade; arrays are never written to."""
        for name, more in new.items():
            counts = getattr(self, name).copy()
            counts[place] = counts[place] * fade + more
            setattr(self, name, counts)
        self._known = {}

    def _pairs(self, judged: Judged) -> NDArray[np.float64]:
        """Pairs that are right, and all, by nearest distance and distance (2, classes, cells)."""
        n, m = judged.distances.shape
        turns = range(1, min(FAR + 1, n))
        numbers: dict[Any, int] = {}
        names = [[numbers.setdefault(each, len(numbers)) for each in own] for own in judged.own]
        own = np.full((n, max(map(len, names), default=0)), -1)
        for i, row in enumerate(names):
            own[i, : len(row)] = row
        others = (np.arange(n)[:, None] - np.array(turns, np.int64)) % max(n, 1)  # (n, turns)
        apart = np.bitwise_count(judged.codes[:, None] ^ judged.codes[others])
        far = apart.sum(axis=2, dtype=np.int64)
        mine, theirs = own[:, None, :, None], own[others][:, :, None]
        same = ((mine == theirs) & (mine >= 0)).any((2, 3))
        far[judged.distances[:, :1].max(axis=1, initial=-1) < 0] = -1  # no neighbour at all
        distances = np.concatenate([judged.distances, far], axis=1)
        right = np.concatenate([judged.right, same], axis=1)
        weights = np.append(1 / np.arange(1, m + 1), np.full(len(turns), FAR_WEIGHT))
        weights = np.broadcast_to(weights, distances.shape)
        there = distances >= 0
        rows = np.broadcast_to(self._class(judged.nearest), distances.shape)[there]
        cells, each = rows * CELLS + self._cell(distances[there]), weights[there]
        counts = [np.bincount(cells, w, CLASSES * CELLS) for w in (each * right[there], each)]
        return np.reshape(counts, (2, CLASSES, CELLS))

    def wants(self, n_learned: int) -> bool:
        """Whether the model to come is to be judged: nothing is, or it knows twice as much now."""
        return COMING in self.models_ and n_learned >= 2 * self.learned_

    def begin(self, n_learned: int = 0) -> None:
        """Nothing is known of the model to come, which has learned so much: count anew."""
        self.learned_ = n_learned
        self._drop(COMING)
        self._add(COMING, None, 1.0)

    def serves(self, model: int, older: int | None = None) -> None:
        """Take note that a model serves: the one that was to come, or an older one again."""
        if older is not None:
            if older in self.models_:
                self._add(model, int(np.flatnonzero(self.models_ == older)[0]), 1.0)
        elif COMING in self.models_:
            if self.queries_[self.models_ == COMING][0]:
                self.models_ = np.where(self.models_ == COMING, model, self.models_)
            else:
                self._drop(COMING)
        self._known = {}

    def _drop(self, model: int) -> None:
        kept = self.models_ != model
        for name in ("models_", *COUNTS):
            setattr(self, name, getattr(self, name)[kept])
        self._known = {}

    # ------------------------------------------------------------------------------ what is known

    def probabilities(self, model: int, distances: NDArray[Any]) -> Probabilities | None:
        """Probability that each neighbour of a query is right, None while nothing is known.

        ``distances`` (n, k) are those of the codes, the least of each row the nearest; NaN where
        there is no item.
        """
        curves = self._curves(model)
        if curves is None:
            return None
        there = (distances >= 0) & (distances <= self.n_bits)
        places = np.where(there, distances, self.n_bits + 1).astype(np.intp)
        nearest = places.min(axis=1, keepdims=True, initial=self.n_bits)
        classes, by_distance = self._tables(curves)
        return np.asarray(by_distance[classes[nearest], places])

    def predictions(self, model: int, ballots: list[Ballot]) -> list[Ballot]:
        """Return the labels of votes with their probabilities, NaN while nothing is known."""
        if (curves := self._curves(model)) is None:
            return [[(label, np.nan) for label, _ in ballot] for ballot in ballots]
        return [
            [
                (label, float((curves.others if i else curves.best)(score)))
                for i, (label, score) in enumerate(ballot)
            ]
            for ballot in ballots
        ]

    def reliability(self) -> dict[str, Any]:
        """Return what was said of answers before they were learned, beside what came true."""
        found: dict[str, Any] = {}
        for name, (said, true, n) in zip(("neighbours", "votes"), self.reliability_, strict=True):
            there, total = n > 0, max(n.sum(), 1.0)
            points = np.c_[said[there] / n[there], true[there] / n[there], n[there]]
            found[name] = {
                "error": float(np.abs(said - true).sum() / total) if n.any() else None,
                "points": [
                    {"predicted": round(p, 4), "observed": round(t, 4), "count": round(c, 1)}
                    for p, t, c in points.tolist()
                ],
            }
        return found

    def _place(self, model: int) -> int | None:
        """The place of the counts that tell of a model: its own, or the last ones."""
        there = np.flatnonzero(self.models_ == model)
        last = there if len(there) else np.flatnonzero(self.models_ != COMING)
        return int(last[-1]) if len(last) else None

    def _curves(self, model: int) -> "Curves | None":
        place = self._place(model)
        if place is None or self.queries_[place] < FEWEST:
            return None
        if (curves := self._known.get(place)) is None:
            curves = Curves.of(self.pairs_[place], self.votes_[place])
            self._known = {**self._known, place: curves}  # a new dict: twins share the old one
        return curves

    def _tables(self, curves: "Curves") -> tuple[NDArray[np.int64], Probabilities]:
        """Return the class of each nearest distance, and probabilities of it by distance.

        The last column is of items that are not there.
        """
        if self._by_distance is None or self._by_distance[0] is not curves:
            distances = np.arange(self.n_bits + 1)
            pairs = curves.pairs[:, self._cell(distances)]
            nan = np.full((len(pairs), 1), np.nan)
            tables = self._class(distances), np.concatenate([pairs, nan], axis=1)
            self._by_distance = curves, *tables
        return self._by_distance[1:]

    def _looked_up(
        self, curves: Probabilities, distances: NDArray[Any], nearest: NDArray[Any]
    ) -> Probabilities:
        there = (distances >= 0) & (distances <= self.n_bits)
        cells = self._cell(np.where(there, distances, self.n_bits))
        return np.where(there, curves[self._class(nearest), cells], np.nan)

    def _cell(self, distances: NDArray[Any]) -> NDArray[np.int64]:
        """The cells of distances."""
        wide = distances.astype(np.int64)
        return wide if self.n_bits < CELLS else wide * (CELLS - 1) // self.n_bits

    def _class(self, nearest: NDArray[Any]) -> NDArray[np.int64]:
        """The classes of nearest distances: 0, 1, 2 to 3, 4 to 7 ..., in cells."""
        return np.frexp(self._cell(np.minimum(nearest, self.n_bits)))[1].astype(np.int64)


class Curves(NamedTuple):
    """What counts say."""

    pairs: Probabilities  # (classes, cells)
    votes: Probabilities  # (2, scores)

    @classmethod
    def of(cls, pairs: NDArray[Any], votes: NDArray[Any]) -> "Curves":
        """Make counts into curves."""
        right, all_ = pairs.sum(axis=1).astype(float)
        seen = np.append(np.flatnonzero(all_), CELLS)  # beyond what was seen they go down to 0
        shares = (right[seen[:-1]] + 0.5 * WEAKEST) / (all_[seen[:-1]] + WEAKEST)
        fallen = np.append(falling(shares, all_[seen[:-1]]), 0.0)
        of_all = np.interp(np.arange(CELLS), seen, fallen)
        by_class = [
            falling((right + PRIOR * of_all) / (n + PRIOR), n + PRIOR) if n.any() else of_all
            for right, n in zip(*pairs.astype(float), strict=True)
        ]
        scores = np.linspace(0, 1, SCORES)
        risen = [
            falling(((right + scores) / (n + 1))[::-1], (n + 1)[::-1])[::-1]
            for right, n in votes.astype(float)
        ]
        return cls(np.clip(by_class, 0, 1), np.clip(risen, 0, 1))

    def best(self, score: Any) -> Any:
        """Probability of the best label of a vote."""
        return np.interp(score, np.linspace(0, 1, SCORES), self.votes[0])

    def others(self, score: Any) -> Any:
        """Probability of another one."""
        return np.interp(score, np.linspace(0, 1, SCORES), self.votes[1])


def falling(values: NDArray[Any], weights: NDArray[Any]) -> Probabilities:
    """Return the nearest values that never rise, by weighted squares (pool adjacent violators).

    >>> falling(np.array([0.9, 0.5, 0.7, 0.1]), np.array([1, 1, 3, 1])).round(2).tolist()
    [0.9, 0.65, 0.65, 0.1]
    """
    blocks: list[tuple[float, float, int]] = []  # mean, weight, how many
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, total, n = value, weight, 1
        while blocks and blocks[-1][0] < mean:
            other, more, before = blocks.pop()
            mean = (mean * total + other * more) / (total + more)
            total, n = total + more, n + before
        blocks.append((mean, total, n))
    return np.repeat([mean for mean, _, _ in blocks], [n for _, _, n in blocks])


def tally(found: Sequence[Labels], probabilities: Any) -> Ballot:
    """Return the labels of neighbours by their score, the highest first, of equals the nearer.

    >>> tally([("a",), ("b",), ("b", "c")], [0.9, 0.5, 0.7])
    [('b', 0.39999999999999997), ('a', 0.3), ('c', 0.2333...)]
    """
    scores: dict[Any, float] = {}
    for labels, probability in zip(found, probabilities[: len(found)], strict=True):
        for label in labels:
            scores[label] = scores.get(label, 0.0) + float(probability) / len(found)
    return sorted(scores.items(), key=lambda each: -each[1])


def _counted(ballots: list[Ballot], own: list[Labels]) -> NDArray[np.float64]:
    """Labels of votes that are right, and all: the best, and the others (2, 2, scores)."""
    cells: list[int] = []
    right: list[bool] = []
    for ballot, labels in zip(ballots, own, strict=True):
        for i, (label, score) in enumerate(ballot):
            cells.append(min(i, 1) * SCORES + round(min(score, 1.0) * (SCORES - 1)))
            right.append(label in labels)
    each = np.array([right, np.ones(len(right))])
    counts = [np.bincount(cells, weights, 2 * SCORES) for weights in each]
    return np.array(counts, np.float64).reshape(2, 2, SCORES).transpose(1, 0, 2).copy()


def binned(said: NDArray[Any], true: NDArray[Any], n: int = BINS) -> NDArray[np.float64]:
    """Sum probabilities that were said and what came true in equal bins of the first (3, n)."""
    place = np.minimum((said * n).astype(int), n - 1)
    return np.stack([np.bincount(place, values, n) for values in (said, true, np.ones(len(said)))])
