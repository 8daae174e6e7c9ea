"""One retrieval experiment, query by query."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamhash.codes import check_codes
from streamhash.errors import InputError
from streamhash.kernels.hamming.ranking import (
    Side,
    count_by_distance,
    count_within,
    walk,
    walk_top,
)
from streamhash.metrics.similarity import encode
from streamhash.metrics.ties import expected_hits, expected_precision_sum
from streamhash.parameters import Choice, Maybe, Whole, check_parameters

__all__ = ["Retrieval"]

Floats = NDArray[np.float64]
TIES = Choice("index", "expected")
# What is near, so that a search is quicker than a count of all items: a rank, if the database has
# so many times as many items; a radius, if codes have so many times as many bits.
NEAR_ITEMS, NEAR_BITS = 32, 3
NORMALIZERS = Maybe(Choice("total", "retrieved", "min"))


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
        labels = encode(query_labels, database_labels, self.n_queries, self.n_items, caller=caller)
        self._queries = Side(queries.copy(), *labels[0])
        self._items = Side(items.copy(), *labels[1])
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
            min(R, top). By default "retrieved" if ``top`` is given, as the papers' code does.
            Queries for which it is 0 give NaN.
        """
        check_parameters(
            self._caller,
            {"ties": ties, "normalizer": normalizer},
            {"ties": TIES, "normalizer": NORMALIZERS},
        )
        cut = self.n_items if top is None else self._check_rank("top", top)
        normalizer = normalizer or ("total" if top is None else "retrieved")
        if ties == "index":
            # The nearest items are enough, unless the divisor counts them all.
            self.rank([cut], count=normalizer != "retrieved")
            sums, retrieved = self._ranked[cut]
        elif normalizer == "retrieved" and cut < self.n_items:
            raise InputError(
                f"{self._caller}: ties='expected' with normalizer='retrieved' has no closed form, "
                f"as the number of relevant items within top={top} depends on the order of ties; "
                "pass normalizer='min' or 'total', or ties='index'."
            )
        else:
            sums = expected_precision_sum(self._total(), self._relevant(), cut)
            retrieved = self._relevant().sum(axis=1)
        if normalizer == "retrieved":
            return _divide(sums, retrieved)
        relevant = self._relevant().sum(axis=1)
        return _divide(sums, relevant if normalizer == "total" else np.minimum(relevant, cut))

    def precision_within(self, radius: int = 2) -> Floats:
        """Fraction relevant of the items at distance ≤ ``radius``; NaN if there are none."""
        check_parameters(self._caller, {"radius": radius}, {"radius": Whole(0)})
        if self._counts is None and NEAR_BITS * radius <= self.n_bits:
            near = count_within(self._queries, self._items, radius)
        else:
            near = self._count()[:, :, : radius + 1].sum(axis=2)
        return _divide(near[:, 1], near.sum(axis=1))

    def precision_at(self, ranks: int | Iterable[int], ties: str = "index") -> Floats:
        """Fraction relevant of the first R items, for each R of ``ranks``: (n_queries, n_ranks)."""
        wanted = [self._check_rank("ranks", rank) for rank in _as_list(ranks)]
        check_parameters(self._caller, {"ties": ties}, {"ties": TIES})
        if not wanted:
            raise InputError(f"{self._caller}: ranks is empty; pass at least one rank.")
        if ties == "expected":
            hits = expected_hits(self._total(), self._relevant(), np.array(wanted))
        else:
            self.rank(wanted)
            hits = np.stack([self._ranked[rank][1] for rank in wanted], axis=1, dtype=np.float64)
        return np.divide(hits, wanted)

    def histograms(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count similar and dissimilar pairs at each distance 0..n_bits, over all queries."""
        relevant = self._relevant().sum(axis=0, dtype=np.int64)
        return relevant, self._total().sum(axis=0, dtype=np.int64) - relevant

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
                sums, hits = walk_top(self._queries, self._items, ranks)
            else:
                sums, hits, self._counts = walk(self._queries, self._items, ranks)
            self._ranked.update(zip(new, zip(sums.T, hits.T, strict=True), strict=True))

    def _count(self) -> NDArray[np.int32]:
        if self._counts is None:
            self._counts = count_by_distance(self._queries, self._items)
        return self._counts[:, :, : self.n_bits + 1]

    def _relevant(self) -> NDArray[np.int32]:
        return self._count()[:, 1]

    def _total(self) -> NDArray[np.int32]:
        total: NDArray[np.int32] = self._count().sum(axis=1, dtype=np.int32)
        return total

    def _check_rank(self, name: str, rank: Any) -> int:
        if not Whole(1, self.n_items).allows(rank):
            raise InputError(
                f"{self._caller}: {name}={rank!r} is not a rank in this database; pass a whole "
                f"number from 1 to {self.n_items}, its number of items."
            )
        return int(rank)


def _as_list(ranks: int | Iterable[int]) -> list[int]:
    return list(ranks) if isinstance(ranks, Iterable) else [ranks]


def _divide(numerator: NDArray[Any], denominator: Any) -> Floats:
    """Divide, with NaN where there is nothing to divide by."""
    result = np.full(np.shape(numerator), np.nan)
    np.divide(numerator, denominator, out=result, where=np.asarray(denominator) > 0)
    return result
