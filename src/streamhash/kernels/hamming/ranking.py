"""Rankings by Hamming distance, seen from the queries: who is similar, how far, at which rank.

Average precision needs no sort. Counting the items at each distance tells where each group of
equal distance begins; within a group, items rank in the order in which the database holds them.

Everything here looks at all items; ``near_ranking.py`` is for questions about the near ones only.
"""

# numba's cache notices a change of this file, not of planes.py: touch it after editing that.

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes
from streamhash.kernels.compile import kernel
from streamhash.kernels.hamming.planes import (
    LANES,
    Distances,
    Planes,
    Queries,
    as_queries,
    measure,
    plain_distances,
    to_planes,
)
from streamhash.threads import run_blocks

__all__ = [
    "Pairs",
    "Side",
    "by_blocks",
    "count_by_distance",
    "pair",
    "plain_count_by_distance",
    "plain_walk",
    "walk",
]

Words = NDArray[np.uint64]
Counts = NDArray[np.int32]

CHUNK = 64  # blocks of items: 8 KB of distances at a time
BLOCK = 16  # queries that one call of a kernel handles


class Side(NamedTuple):
    """The queries, or the items: their codes, and what makes two of them similar.

    With rows in ``masks``, two are similar when they share a bit of them; else when ``labels`` are
    equal.
    """

    codes: Codes  # (n, n_bytes)
    labels: Counts  # (n,)
    masks: Words  # (n_mask_words, n)


class Pairs(NamedTuple):
    """What the kernels read of both sides."""

    queries: Queries
    planes: Planes
    n_items: int
    query_labels: Counts
    labels: Counts
    query_masks: Words
    masks: Words


def pair(queries: Side, items: Side) -> Pairs:
    """Lay both sides out."""
    return Pairs(
        as_queries(queries.codes),
        to_planes(items.codes),
        len(items.codes),
        queries.labels,
        items.labels,
        queries.masks,
        items.masks,
    )


def by_blocks(n_queries: int, work: Callable[[int, int], Any]) -> None:
    """Call ``work(start, stop)`` on every block of queries, on as many threads as are set."""
    starts = range(0, n_queries, BLOCK)
    run_blocks(lambda start: work(start, min(start + BLOCK, n_queries)), starts)


@kernel
def _compare(pairs: Pairs, q: int, first: int, n: int, similar: Distances) -> None:
    """1 for each of the ``n`` items after ``first`` that is similar to query ``q``, else 0."""
    if len(pairs.masks) == 0:
        label, labels = pairs.query_labels[q], pairs.labels[first : first + n]
        for j in range(n):
            similar[j] = labels[j] == label
    else:
        similar[:n] = 0
        for w in range(len(pairs.masks)):
            mask, row = pairs.query_masks[w, q], pairs.masks[w, first : first + n]
            for j in range(n):
                similar[j] |= (row[j] & mask) != 0


def count_by_distance(queries: Side, items: Side) -> Counts:
    """Count dissimilar (0) and similar (1) items at each distance: (n_queries, 2, bits + 1)."""
    counts = np.zeros((len(queries.codes), 2, 8 * items.codes.shape[1] + 1), np.int32)
    pairs = pair(queries, items)
    by_blocks(len(counts), lambda start, stop: _count(pairs, start, stop, counts))
    return counts


@kernel
def _count(pairs: Pairs, start: int, stop: int, counts: Counts) -> None:
    n_buckets = np.uint16(counts.shape[2])
    distances, similar = np.empty(LANES * CHUNK, np.uint16), np.empty(LANES * CHUNK, np.uint16)
    for q in range(start, stop):
        tally = counts[q].ravel()  # dissimilar, then similar
        for chunk in range(0, len(pairs.planes), CHUNK):
            size = min(CHUNK, len(pairs.planes) - chunk)
            n = min(LANES * size, pairs.n_items - LANES * chunk)
            measure(pairs.queries, q, pairs.planes, chunk, size, distances)
            _compare(pairs, q, LANES * chunk, n, similar)
            for j in range(n):
                distances[j] += n_buckets * similar[j]
            for j in range(n):
                tally[distances[j]] += 1


def plain_count_by_distance(queries: Side, items: Side) -> Counts:
    """Do as ``count_by_distance``, plainly."""
    n_buckets = 8 * items.codes.shape[1] + 1
    return np.array(
        [
            [np.bincount(distances[similar == side], minlength=n_buckets) for side in (0, 1)]
            for distances, similar in _plain_pairs(queries, items)
        ],
        np.int32,
    )


def _plain_pairs(
    queries: Side, items: Side
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool]]]:
    planes, n_items = to_planes(items.codes), len(items.codes)
    for q, distances in enumerate(plain_distances(queries.codes, planes, n_items)):
        if len(items.masks):
            shared = queries.masks[:, q : q + 1] & items.masks
            yield distances, np.any(shared != 0, axis=0)
        else:
            yield distances, items.labels == queries.labels[q]


def walk(
    queries: Side, items: Side, cutoffs: NDArray[np.int64]
) -> tuple[NDArray[np.float64], Counts, Counts]:
    """Rank the items of every query by distance, ties in their given order, and look at the top.

    For each query and each of the rising ``cutoffs``: the sum of (similar items up to here) / rank
    over the similar items ranked within it, (n_queries, n_cutoffs), and their number. Also returns
    what ``count_by_distance`` does.
    """
    n_queries, n_items = len(queries.codes), len(items.codes)
    counts = np.zeros((n_queries, 2, 8 * items.codes.shape[1] + 1), np.int32)
    sums = np.zeros((n_queries, len(cutoffs) + 1))  # the last column: beyond all cutoffs
    hits = np.zeros((n_queries, len(cutoffs) + 1), np.int32)
    column = np.searchsorted(cutoffs, np.arange(n_items + 1)).astype(np.int32)  # of each rank
    pairs = pair(queries, items)
    by_blocks(n_queries, lambda start, stop: _walk(pairs, start, stop, column, sums, hits, counts))
    return sums[:, :-1].cumsum(axis=1), hits[:, :-1].cumsum(axis=1, dtype=np.int32), counts


@kernel
def _walk(
    pairs: Pairs,
    start: int,
    stop: int,
    column: Counts,
    sums: NDArray[np.float64],
    hits: Counts,
    counts: Counts,
) -> None:
    n_items, n_buckets = pairs.n_items, counts.shape[2]
    distances, similar = np.empty(LANES * CHUNK, np.uint16), np.empty(LANES * CHUNK, np.uint16)
    # Of the similar items, in their order: the distance, and the place among all that are as far.
    hit_distance, hit_place = np.empty(n_items + 1, np.uint32), np.empty(n_items + 1, np.int32)
    items_before, hits_before = np.empty(n_buckets, np.int64), np.empty(n_buckets, np.int64)
    for q in range(start, stop):
        seen, found = counts[q, 0], counts[q, 1]
        n_hits = np.uint64(0)
        for chunk in range(0, len(pairs.planes), CHUNK):
            size = min(CHUNK, len(pairs.planes) - chunk)
            n = min(LANES * size, n_items - LANES * chunk)
            measure(pairs.queries, q, pairs.planes, chunk, size, distances)
            _compare(pairs, q, LANES * chunk, n, similar)
            for j in range(n):
                distance = distances[j]
                hit_distance[n_hits] = distance  # kept only if similar: cheaper than a branch
                hit_place[n_hits] = seen[distance] = seen[distance] + 1
                n_hits += similar[j]
        for i in range(n_hits):
            found[hit_distance[i]] += 1
        n_before = n_found = 0
        for distance in range(n_buckets):
            items_before[distance], hits_before[distance] = n_before, n_found
            n_before += seen[distance]
            n_found += found[distance]
            seen[distance] -= found[distance]  # from here on: the dissimilar
        for i in range(n_hits):
            distance = hit_distance[i]
            rank = items_before[distance] + hit_place[i]
            hits_before[distance] += 1
            sums[q, column[rank]] += hits_before[distance] / rank
            hits[q, column[rank]] += 1


def plain_walk(
    queries: Side, items: Side, cutoffs: NDArray[np.int64]
) -> tuple[NDArray[np.float64], Counts, Counts]:
    """Do as ``walk``, by sorting."""
    sums, hits = [], []
    ranks = np.arange(1, len(items.codes) + 1)
    for distances, similar in _plain_pairs(queries, items):
        ranked = similar[np.argsort(distances, kind="stable")]
        found = ranked.cumsum()
        hits.append(found[cutoffs - 1])
        sums.append(np.cumsum(ranked * found / ranks)[cutoffs - 1])
    return np.array(sums), np.array(hits, np.int32), plain_count_by_distance(queries, items)
