"""One retrieval experiment, query by query; and the papers' metrics, means over the queries."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamhash.codes import check_codes, to_words
from streamhash.errors import InputError
from streamhash.kernels.hamming import ranking
from streamhash.kernels.hamming.ranking import Side
from streamhash.labels import check_labels, group
from streamhash.metrics.ties import expected_hits, expected_precision_sum
from streamhash.parameters import Choice, Maybe, Whole, check_parameters

Floats = NDArray[np.float64]
TIES = Choice("index", "expected")
NORMALIZERS = Maybe(Choice("total", "retrieved", "min"))
# What is near, so that a search is quicker than a count of all items: a rank, if the database has
# so many times as many items; a radius, if codes have so many times as many bits.
NEAR_ITEMS, NEAR_BITS = 32, 3
RANKS = (1, 5, *range(10, 101, 10))  # the ranks of the papers' precision curves
MAP_RANK = 1000  # the papers' mAP@1000


class Retrieval:
    """Queries against a database, measured query by query; NaN marks what is not defined.

    Inputs are checked and copied once; distances are counted when first needed, and kept.

    Parameters
    ----------
    query_codes, database_codes : uint8 arrays (n, bytes)
        Packed codes of equal width, from a hasher's ``transform``.
    query_labels, database_labels : arrays (n,) or (n, classes)
        Labels of any type; or 0/1 matrices, where sharing one label makes an item relevant.
    caller : str
        What error messages call this.

    >>> from streamhash.codes import pack
    >>> database = pack(np.array([[1, 1, -1], [1, -1, -1], [-1, 1, 1], [-1, -1, 1]]))
    >>> retrieval = Retrieval(database[:1], ["cat"], database, ["cat", "dog", "cat", "cat"])
    >>> retrieval.average_precision().round(4)  # (1/1 + 2/3 + 3/4) / 3
    array([0.8056])
    >>> retrieval.precision_within(radius=1)
    array([0.5])
    """

    def __init__(
        self,
        query_codes: ArrayLike,
        query_labels: Any,
        database_codes: ArrayLike,
        database_labels: Any,
        *,
        caller: str = "Retrieval",
    ) -> None:
        queries = check_codes(query_codes, name=f"{caller}: query_codes")
        items = check_codes(database_codes, name=f"{caller}: database_codes")
        if queries.shape[1] != items.shape[1] or not items.shape[1]:
            raise InputError(
                f"{caller}: query_codes have {queries.shape[1]} bytes a row and database_codes "
                f"{items.shape[1]}; encode both with the same model."
            )
        if not len(queries) or not len(items):
            raise InputError(
                f"{caller}: {len(queries)} queries and {len(items)} database items came; "
                "pass at least one of each."
            )
        self.n_queries, self.n_items = len(queries), len(items)
        self.n_bits = 8 * items.shape[1]  # with the bits that fill up the last byte
        asked, held = _compare_labels(
            query_labels, database_labels, self.n_queries, self.n_items, caller
        )
        self._queries, self._items = Side(queries.copy(), *asked), Side(items.copy(), *held)
        self._caller = caller
        self._counts: NDArray[np.int32] | None = None
        self._ranked: dict[int, tuple[Floats, NDArray[np.int32]]] = {}

    def average_precision(
        self, top: int | None = None, ties: str = "index", normalizer: str | None = None
    ) -> Floats:
        """Average precision of each query: precisions at its relevant items, added and divided.

        Parameters
        ----------
        top : int, optional
            Look at the ``top`` nearest items only; all by default.
        ties : "index" or "expected"
            Items at equal distance stand in database order, or in every order, on average.
        normalizer : "total", "retrieved" or "min"
            What the sum is divided by: all relevant items R, those found within ``top``, or
            min(R, top). By default, if ``top`` is given: "retrieved", as the papers' code does, and
            "min" if ``ties`` is "expected", where the number found depends on the order of ties.
            Queries for which it is 0 give NaN.
        """
        values = {"ties": ties, "normalizer": normalizer}
        check_parameters(self._caller, values, {"ties": TIES, "normalizer": NORMALIZERS})
        cut = self.n_items if top is None else self._check_rank("top", top)
        if normalizer is None and top is not None:
            normalizer = "retrieved" if ties == "index" else "min"
        if ties == "index":
            # The nearest items are enough, unless the divisor counts them all.
            self.rank([cut], count=normalizer != "retrieved")
            sums, retrieved = self._ranked[cut]
            if normalizer == "retrieved":
                return _divide(sums, retrieved)
        elif normalizer == "retrieved" and cut < self.n_items:
            raise InputError(
                f"{self._caller}: ties='expected' with normalizer='retrieved' has no closed form, "
                f"as the number of relevant items within top={top} depends on the order of ties; "
                "pass normalizer='min' or 'total', or ties='index'."
            )
        else:
            sums = expected_precision_sum(*self._totals(), cut)
        relevant = self._totals()[1].sum(axis=1)
        return _divide(sums, np.minimum(relevant, cut) if normalizer == "min" else relevant)

    def precision_within(self, radius: int = 2) -> Floats:
        """Fraction relevant of the items at distance ≤ ``radius``; NaN if there are none."""
        check_parameters(self._caller, {"radius": radius}, {"radius": Whole(0)})
        if self._counts is None and NEAR_BITS * radius <= self.n_bits:
            near = ranking.count_within(self._queries, self._items, radius)
        else:
            near = self._count()[:, :, : radius + 1].sum(axis=2)
        return _divide(near[:, 1], near.sum(axis=1))

    def precision_at(self, ranks: int | Iterable[int], ties: str = "index") -> Floats:
        """Fraction relevant of the first R items, for each R of ``ranks``: (n_queries, n_ranks)."""
        each = ranks if isinstance(ranks, Iterable) else [ranks]
        wanted = [self._check_rank("ranks", rank) for rank in each]
        check_parameters(self._caller, {"ties": ties}, {"ties": TIES})
        if not wanted:
            raise InputError(f"{self._caller}: ranks is empty; pass at least one rank.")
        if ties == "expected":
            hits = expected_hits(*self._totals(), np.array(wanted))
        else:
            self.rank(wanted)
            hits = np.stack([self._ranked[rank][1] for rank in wanted], axis=1, dtype=np.float64)
        return np.divide(hits, wanted)

    def histograms(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count similar and dissimilar pairs at each distance 0..n_bits, over all queries."""
        dissimilar, similar = self._count().sum(axis=0, dtype=np.int64)
        return similar, dissimilar

    def curve(self) -> tuple[Floats, Floats]:
        """Precision and recall within each radius 0..n_bits, pooled over all pairs."""
        similar, dissimilar = self.histograms()
        found = similar.cumsum()
        return _divide(found, found + dissimilar.cumsum()), _divide(found, similar.sum())

    def rank(self, cutoffs: Sequence[int], *, count: bool = False) -> None:
        """Walk the ranking, ties in database order, for all ``cutoffs`` that are not known yet.

        If the last of them is near, and nobody wants the counts of all, only the nearest items.
        """
        new = sorted(set(cutoffs) - set(self._ranked))
        if new:
            ranks = np.array(new, np.int64)
            if new[-1] * NEAR_ITEMS <= self.n_items and not count:
                sums, hits = ranking.walk_top(self._queries, self._items, ranks)
            else:
                sums, hits, self._counts = ranking.walk(self._queries, self._items, ranks)
            self._ranked.update(zip(new, zip(sums.T, hits.T, strict=True), strict=True))

    def _count(self) -> NDArray[np.int32]:
        if self._counts is None:
            self._counts = ranking.count_by_distance(self._queries, self._items)
        return self._counts

    def _totals(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """All items, and the relevant ones, at each distance: (n_queries, n_bits + 1)."""
        counts = self._count()
        return counts.sum(axis=1, dtype=np.int32), counts[:, 1]

    def _check_rank(self, name: str, rank: Any) -> int:
        if not Whole(1, self.n_items).allows(rank):
            raise InputError(
                f"{self._caller}: {name}={rank!r} is not a rank in this database; pass a whole "
                f"number from 1 to {self.n_items}, its number of items."
            )
        return int(rank)


def _divide(numerator: NDArray[Any], denominator: Any) -> Floats:
    """Divide, with NaN where there is nothing to divide by."""
    result = np.full(np.shape(numerator), np.nan)
    np.divide(numerator, denominator, out=result, where=np.asarray(denominator) > 0)
    return result


Comparable = tuple[
    NDArray[np.int32], NDArray[np.uint64]
]  # class numbers (n,), and masks of classes


def _compare_labels(
    query_labels: Any, database_labels: Any, n_queries: int, n_items: int, caller: str
) -> tuple[Comparable, Comparable]:
    """Give equal labels equal numbers on either side; with several labels each, make masks."""
    queries = check_labels(query_labels, n_queries, place=caller, name="query_labels", rows="codes")
    items = check_labels(
        database_labels, n_items, place=caller, name="database_labels", rows="codes"
    )
    if queries.shape[1:] != items.shape[1:]:
        raise InputError(
            f"{caller}: query_labels of shape {queries.shape} and database_labels of shape "
            f"{items.shape} differ in kind; pass one label each for both, or two 0/1 matrices "
            "with the same classes as columns."
        )
    if queries.ndim == 2:
        return _masks(queries), _masks(items)
    if queries.dtype.kind != items.dtype.kind:  # else NumPy would turn 1 into "1"
        queries, items = queries.astype(object), items.astype(object)
    try:
        numbers = group(np.concatenate([queries, items])).astype(np.int32)
    except InputError as error:
        raise InputError(f"{caller}: {error}") from error
    no_masks = np.zeros((0, 0), np.uint64)
    return (numbers[:n_queries], no_masks), (numbers[n_queries:], no_masks)


def _masks(matrix: NDArray[np.uint8]) -> Comparable:
    return np.zeros(len(matrix), np.int32), to_words(np.packbits(matrix, axis=1)).T.copy()


def mean_average_precision(
    query_codes: ArrayLike,
    query_labels: Any,
    database_codes: ArrayLike,
    database_labels: Any,
    *,
    top: int | None = None,
    ties: str = "index",
    normalizer: str | None = None,
    no_relevant: str = "drop",
) -> float:
    """Average precision (see ``Retrieval.average_precision``), mean over the queries.

    ``no_relevant``: queries without a relevant item are dropped from the mean (as in the papers),
    or count as "zero". Without any query left, the mean is NaN.

    >>> codes = np.array([[0], [1], [3]], dtype=np.uint8)
    >>> mean_average_precision(codes[:1], [7], codes, [7, 8, 7])  # (1/1 + 2/3) / 2
    0.8333...
    """
    _check_undefined("mean_average_precision", no_relevant=no_relevant)
    data = query_codes, query_labels, database_codes, database_labels
    retrieval = Retrieval(*data, caller="mean_average_precision")
    return _mean(retrieval.average_precision(top, ties, normalizer), no_relevant)


def precision_within_radius(
    query_codes: ArrayLike,
    query_labels: Any,
    database_codes: ArrayLike,
    database_labels: Any,
    *,
    radius: int = 2,
    empty: str = "zero",
) -> float:
    """Fraction relevant of the items at Hamming distance ≤ ``radius``, mean over the queries.

    ``empty``: queries without any item that near count as "zero" (as in the papers), or are left
    out of the mean ("drop").

    >>> codes = np.array([[0], [1], [255]], dtype=np.uint8)
    >>> precision_within_radius(codes[:1], [7], codes, [7, 8, 7])
    0.5
    """
    _check_undefined("precision_within_radius", empty=empty)
    data = query_codes, query_labels, database_codes, database_labels
    retrieval = Retrieval(*data, caller="precision_within_radius")
    return _mean(retrieval.precision_within(radius), empty)


def precision_at_ranks(
    query_codes: ArrayLike,
    query_labels: Any,
    database_codes: ArrayLike,
    database_labels: Any,
    *,
    ranks: int | Iterable[int] = RANKS,
    ties: str = "index",
) -> NDArray[np.float64]:
    """Fraction relevant of the first R items, mean over the queries, for each R of ``ranks``.

    >>> codes = np.array([[0], [1], [3]], dtype=np.uint8)
    >>> precision_at_ranks(codes[:1], [7], codes, [7, 8, 7], ranks=[1, 2])
    array([1. , 0.5])
    """
    data = query_codes, query_labels, database_codes, database_labels
    retrieval = Retrieval(*data, caller="precision_at_ranks")
    means: NDArray[np.float64] = retrieval.precision_at(ranks, ties).mean(axis=0)
    return means


def evaluate(
    query_codes: ArrayLike,
    query_labels: Any,
    database_codes: ArrayLike,
    database_labels: Any,
    *,
    ties: str = "index",
    normalizer: str | None = None,
    no_relevant: str = "drop",
    empty: str = "zero",
) -> dict[str, float]:
    """All metrics of the papers from one pass over the distances, by name.

    ``map``; ``map@1000`` if the database has more than 1000 items (divided by "retrieved" as in the
    papers, by "min" with ``ties="expected"``, unless you pass a normalizer); ``precision@h2``; and
    ``precision@1``, ``@5``, ``@10``, ``@20`` to ``@100`` as far as the database goes.

    >>> codes = np.array([[0], [1], [3]], dtype=np.uint8)
    >>> evaluate(codes[:1], [7], codes, [7, 8, 7])
    {'map': 0.8333..., 'precision@h2': 0.6666..., 'precision@1': 1.0}
    """
    _check_undefined("evaluate", no_relevant=no_relevant, empty=empty)
    data = query_codes, query_labels, database_codes, database_labels
    by_query, names, at_ranks = _by_query(Retrieval(*data, caller="evaluate"), ties, normalizer)
    undefined = {"precision@h2": empty}
    means = {n: _mean(values, undefined.get(n, no_relevant)) for n, values in by_query.items()}
    # Summed as a matrix: each digit is that of version 0.1.
    averages = dict(zip(names, at_ranks.mean(axis=0).tolist(), strict=True))
    return means | averages


def evaluate_by_class(
    query_codes: ArrayLike,
    query_labels: Any,
    database_codes: ArrayLike,
    database_labels: Any,
    *,
    ties: str = "index",
    normalizer: str | None = None,
    no_relevant: str = "drop",
    empty: str = "zero",
) -> dict[Any, dict[str, float]]:
    """The metrics of ``evaluate`` for the queries of each class, by its label, in their order.

    Of labels in a 0/1 matrix, a class is a column, and a query counts for each of its labels. The
    mean over the classes, in which a rare one counts as much as a frequent one, is the mean of
    these. ``queries`` tells how many a class has.

    >>> codes = np.array([[0], [1], [3]], dtype=np.uint8)
    >>> found = evaluate_by_class(codes, ["cat", "dog", "cat"], codes, ["cat", "dog", "cat"])
    >>> {label: round(each["map"], 3) for label, each in found.items()}
    {'cat': 0.833, 'dog': 1.0}
    """
    place = "evaluate_by_class"
    _check_undefined(place, no_relevant=no_relevant, empty=empty)
    data = query_codes, query_labels, database_codes, database_labels
    by_query, names, at_ranks = _by_query(Retrieval(*data, caller=place), ties, normalizer)
    by_query |= dict(zip(names, at_ranks.T, strict=True))
    labels = check_labels(query_labels, len(np.asarray(query_codes)), place=place)
    if labels.ndim == 2:
        members = {c: labels[:, c] > 0 for c in range(labels.shape[1]) if labels[:, c].any()}
    else:
        found = list(dict.fromkeys(labels.tolist()))
        found = found if labels.dtype == object else sorted(found)
        members = {label: np.array([one == label for one in labels.tolist()]) for label in found}
    undefined = {"precision@h2": empty}
    return {
        label: {
            "queries": int(own.sum()),
            **{
                name: _mean(values[own], undefined.get(name, no_relevant))
                for name, values in by_query.items()
            },
        }
        for label, own in members.items()
    }


def mean_over_classes(values: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean over the classes of the means of their queries: a rare one counts as any.

    Parameters
    ----------
    values : (n,) a metric, query by query; NaN where it is not defined, which is left out
    labels : (n,) labels of the queries, or a 0/1 matrix (n, C): a query counts for each of its own

    >>> mean_over_classes([1, 0.5, 0], ["cat", "cat", "dog"])
    0.375
    """
    by_query, asked = np.asarray(values, np.float64), np.asarray(labels)
    members = asked.T > 0 if asked.ndim == 2 else asked == np.unique(asked)[:, None]  # (C, n)
    known = [by_query[own & ~np.isnan(by_query)] for own in members]
    means = [float(own.mean()) for own in known if len(own)]
    return float(np.mean(means)) if means else float("nan")


def _by_query(
    retrieval: Retrieval, ties: str, normalizer: str | None
) -> tuple[dict[str, Floats], list[str], Floats]:
    """Return all metrics query by query, NaN where one is not defined; those at ranks apart."""
    tops = [None, MAP_RANK] if retrieval.n_items > MAP_RANK else [None]
    ranks = [rank for rank in RANKS if rank <= retrieval.n_items]
    if ties == "index":
        retrieval.rank([*ranks, *(top or retrieval.n_items for top in tops)])
    found = {
        "map" if top is None else f"map@{top}": retrieval.average_precision(top, ties, normalizer)
        for top in tops
    }
    found["precision@h2"] = retrieval.precision_within(2)
    names = [f"precision@{rank}" for rank in ranks]
    return found, names, retrieval.precision_at(ranks, ties)


def area_under_curve(instances: ArrayLike, values: ArrayLike, *, method: str = "mean") -> float:
    """Area under a metric's ``values`` at checkpoints, after so many ``instances`` of the stream.

    "mean", as in the papers' code, is the plain mean over the checkpoints, however they are
    spaced. "trapezoid" is the area under the straight lines between them, divided by the range of
    ``instances``: it does not depend on the spacing.

    >>> area_under_curve([100, 200, 400], [0.25, 0.5, 0.75])
    0.5
    >>> area_under_curve([100, 200, 400], [0.25, 0.5, 0.75], method="trapezoid")
    0.5416...
    """
    rule = Choice("mean", "trapezoid")
    check_parameters("area_under_curve", {"method": method}, {"method": rule})
    x, y = np.asarray(instances, np.float64), np.asarray(values, np.float64)
    if x.ndim != 1 or x.shape != y.shape or not len(x):
        raise InputError(
            f"area_under_curve: instances of shape {x.shape} and values of shape {y.shape} came; "
            "pass one value for each of at least one checkpoint."
        )
    if not np.isfinite(x).all() or not np.isfinite(y).all():
        raise InputError(
            "area_under_curve: instances or values have NaN or infinity; leave out checkpoints "
            "without a value."
        )
    if (np.diff(x) <= 0).any():
        raise InputError(
            "area_under_curve: instances must rise from checkpoint to checkpoint; sort them, and "
            "keep one value for each."
        )
    if method == "mean":
        return float(y.mean())
    if len(x) == 1:
        raise InputError(
            "area_under_curve: method='trapezoid' needs two checkpoints, but one came; "
            "pass method='mean'."
        )
    return float(np.trapezoid(y, x) / (x[-1] - x[0]))


def _check_undefined(caller: str, **options: str) -> None:
    check_parameters(caller, options, dict.fromkeys(options, Choice("drop", "zero")))


def _mean(values: NDArray[np.float64], undefined: str) -> float:
    if undefined == "zero":
        return float(np.nan_to_num(values).mean())
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")
