"""Who is similar among the nearest items, or among those within a radius.

Most items are far: the loops of the search pass over them many times as fast as ``ranking.py``,
which counts every item. Numbers are the same, to the last digit.
"""

# numba's cache notices a change of this file, not of those it calls: touch it after editing them.

import numpy as np
from numpy.typing import NDArray

from streamhash.kernels.compile import kernel, part
from streamhash.kernels.hamming.items import BLOCK, CHUNK, ONE, Items, in_use, look_at, sort_by_key
from streamhash.kernels.hamming.nearest import nearest
from streamhash.kernels.hamming.planes import GROUP, LANES, Distances, first_bit
from streamhash.kernels.hamming.ranking import Pairs, Side, by_blocks, pair
from streamhash.threads import run_blocks

__all__ = ["count_within", "walk_top"]

Counts = NDArray[np.int32]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

SLAB = 1024  # queries whose nearest items are held at a time


@part
def _similar(pairs: Pairs, q: int, item: int) -> bool:
    similar: bool = len(pairs.masks) == 0 and pairs.query_labels[q] == pairs.labels[item]
    for w in range(len(pairs.masks)):
        similar |= (pairs.query_masks[w, q] & pairs.masks[w, item]) != 0
    return similar


def walk_top(queries: Side, items: Side, cutoffs: Integers) -> tuple[Floats, Counts]:
    """Return the sums and hits of ``ranking.walk``, from the nearest items up to the last cutoff.

    In memory are those items for ``SLAB`` queries at a time.
    """
    n_queries, n, top = len(queries.codes), len(items.codes), int(cutoffs[-1])
    sums = np.zeros((n_queries, len(cutoffs)))
    hits = np.zeros((n_queries, len(cutoffs)), np.int32)
    column = np.searchsorted(cutoffs, np.arange(top + 1)).astype(np.int32)  # of each rank
    pairs = pair(queries, items)
    searched = Items(pairs.planes, np.arange(n), np.empty(0, np.int64), n, n, n, 0)
    for first in range(0, n_queries, SLAB):
        _, ranked = nearest(queries.codes[first : first + SLAB], searched, top)

        def look_through(
            start: int, stop: int, first: int = first, ranked: Integers = ranked
        ) -> None:
            _walk_ranked(pairs, ranked, first, start, stop, column, sums, hits)

        by_blocks(len(ranked), look_through)
    return sums.cumsum(axis=1), hits.cumsum(axis=1, dtype=np.int32)


@kernel
def _walk_ranked(
    pairs: Pairs,
    ranked: Integers,
    first: int,
    start: int,
    stop: int,
    column: Counts,
    sums: Floats,
    hits: Counts,
) -> None:
    """Walk the ``ranked`` items of the queries from ``first`` on: rows ``start`` to ``stop``."""
    n_ranks = ranked.shape[1]
    hit_ranks, precisions = np.empty(n_ranks, np.int64), np.empty(n_ranks)
    for row in range(start, stop):
        n_hits = np.int64(0)
        for i in range(n_ranks):
            if _similar(pairs, first + row, ranked[row, i]):
                hit_ranks[n_hits] = i
                n_hits += 1
                precisions[i] = n_hits / (i + 1)
        # A sum of floats depends on its order: that of ranking.walk is the order of the database.
        sort_by_key(hit_ranks[:n_hits], ranked[row])
        for i in hit_ranks[:n_hits]:
            sums[first + row, column[i + 1]] += precisions[i]
            hits[first + row, column[i + 1]] += 1


def count_within(queries: Side, items: Side, radius: int) -> Counts:
    """Count dissimilar (0) and similar (1) items at most ``radius`` away: (n_queries, 2)."""
    counts = np.zeros((len(queries.codes), 2), np.int32)
    pairs = pair(queries, items)
    limits = np.full(GROUP, min(radius, 8 * items.codes.shape[1]) + 1, np.uint16)
    starts = range(0, len(counts), BLOCK)
    run_blocks(lambda start: _count_near(pairs, start, limits, counts), starts)
    return counts


@kernel
def _count_near(pairs: Pairs, start: int, limits: Distances, counts: Counts) -> None:
    """Count near items of the ``BLOCK`` queries from ``start`` on."""
    codes, tables, planes = pairs.queries.codes, pairs.queries.tables, pairs.planes
    stop, n_items = min(start + BLOCK, len(codes)), pairs.n_items
    out, masks = np.empty(GROUP * LANES, np.uint16), np.empty(GROUP, np.uint64)
    for chunk in range(0, len(planes), CHUNK):
        q = start
        while q < stop:
            group = GROUP if stop - q >= GROUP else 1
            for block in range(chunk, min(chunk + CHUNK, len(planes))):
                if look_at(group, planes, codes, tables, block, q, limits, 0, out, masks) == 0:
                    continue
                for g in range(group):
                    mask = masks[g] & in_use(n_items, block)
                    while mask != 0:
                        similar = _similar(pairs, q + g, LANES * block + first_bit(mask))
                        counts[q + g, np.int64(similar)] += 1
                        mask &= mask - ONE
            q += group
