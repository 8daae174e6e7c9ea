"""Rankings by Hamming distance, seen from the queries: who is similar, how far, at which rank.

Average precision needs no sort. Counting the items at each distance tells where each group of
equal distance begins; within a group, items rank in the order in which the database holds them.

``count_by_distance`` and ``walk`` look at all items. Where a question is about near items only,
most are far, and the loops of the search pass over them many times as fast: ``walk_top`` and
``count_within`` give the same numbers, to the last digit.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes
from streamhash.kernels.compile import kernel, part
from streamhash.kernels.hamming.items import Items, in_use
from streamhash.kernels.hamming.planes import (
    ITEMS_PER_BLOCK,
    N_MASKS,
    QUERIES_PER_GROUP,
    Distances,
    Planes,
    Queries,
    as_queries,
    first_bit,
    group_size,
    look,
    measure,
    plain_distances,
    telling_bytes,
    to_planes,
)
from streamhash.kernels.hamming.scan import (
    BLOCKS_PER_CHUNK,
    QUERIES_PER_BATCH,
    nearest,
    sort_by_key,
)
from streamhash.threads import run_blocks

Words = NDArray[np.uint64]
Counts = NDArray[np.int32]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

BLOCKS_MEASURED = 64  # at a time: 8 KB of distances
ITEMS_MEASURED = ITEMS_PER_BLOCK * BLOCKS_MEASURED
QUERIES_PER_CALL = 16  # that one call of a kernel handles
QUERIES_HELD = 1024  # whose nearest items are in memory at a time


class Side(NamedTuple):
    """The queries, or the items: their codes, and what makes two of them similar.

    With rows in ``masks``, two are similar when they share a bit of them; else when ``labels`` are
    equal.
    """

    codes: Codes  # (n, n_bytes)
    labels: Counts  # (n,)
    masks: Words  # (n_mask_words, n)


class _Pairs(NamedTuple):
    """What the kernels read of both sides: not nested, which would make them a tenth slower."""

    queries: Queries
    planes: Planes
    query_labels: Counts
    query_masks: Words
    labels: Counts
    masks: Words


def _pair(queries: Side, items: Side) -> _Pairs:
    return _Pairs(as_queries(queries.codes), to_planes(items.codes), *queries[1:], *items[1:])


@kernel
def _measure(pairs: _Pairs, q: int, chunk: int, distances: Distances, similar: Distances) -> int:
    """Distances of query ``q`` from the items of a chunk; 1 for those that are similar, else 0.

    Returns how many items the chunk has.
    """
    size, first = min(BLOCKS_MEASURED, len(pairs.planes) - chunk), ITEMS_PER_BLOCK * chunk
    n = min(ITEMS_PER_BLOCK * size, len(pairs.labels) - first)
    measure(pairs.queries, q, pairs.planes, chunk, size, distances)
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
    return n


def count_by_distance(queries: Side, items: Side) -> Counts:
    """Count dissimilar (0) and similar (1) items at each distance: (n_queries, 2, bits + 1)."""
    counts = np.zeros((len(queries.codes), 2, 8 * items.codes.shape[1] + 1), np.int32)
    pairs = _pair(queries, items)
    run_blocks(lambda start: _count(pairs, start, counts), range(0, len(counts), QUERIES_PER_CALL))
    return counts


@kernel
def _count(pairs: _Pairs, start: int, counts: Counts) -> None:
    n_buckets = np.uint16(counts.shape[2])
    distances, similar = np.empty(ITEMS_MEASURED, np.uint16), np.empty(ITEMS_MEASURED, np.uint16)
    for q in range(start, min(start + QUERIES_PER_CALL, len(counts))):
        tally = counts[q].ravel()  # dissimilar, then similar
        for chunk in range(0, len(pairs.planes), BLOCKS_MEASURED):
            n = _measure(pairs, q, chunk, distances, similar)
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


def _plain_pairs(queries: Side, items: Side) -> Iterator[tuple[Integers, NDArray[np.bool]]]:
    planes, n_items = to_planes(items.codes), len(items.codes)
    for q, distances in enumerate(plain_distances(queries.codes, planes, n_items)):
        if len(items.masks):
            shared = queries.masks[:, q : q + 1] & items.masks
            yield distances, np.any(shared != 0, axis=0)
        else:
            yield distances, items.labels == queries.labels[q]


def walk(queries: Side, items: Side, cutoffs: Integers) -> tuple[Floats, Counts, Counts]:
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
    pairs = _pair(queries, items)
    starts = range(0, n_queries, QUERIES_PER_CALL)
    run_blocks(lambda start: _walk(pairs, start, column, sums, hits, counts), starts)
    return sums[:, :-1].cumsum(axis=1), hits[:, :-1].cumsum(axis=1, dtype=np.int32), counts


@kernel
def _walk(
    pairs: _Pairs, start: int, column: Counts, sums: Floats, hits: Counts, counts: Counts
) -> None:
    n_items, n_buckets = len(pairs.labels), counts.shape[2]
    distances, similar = np.empty(ITEMS_MEASURED, np.uint16), np.empty(ITEMS_MEASURED, np.uint16)
    # Of the similar items, in their order: the distance, and the place among all that are as far.
    hit_distance, hit_place = np.empty(n_items + 1, np.uint32), np.empty(n_items + 1, np.int32)
    items_before, hits_before = np.empty(n_buckets, np.int64), np.empty(n_buckets, np.int64)
    for q in range(start, min(start + QUERIES_PER_CALL, len(counts))):
        seen, found = counts[q, 0], counts[q, 1]
        n_hits = np.uint64(0)
        for chunk in range(0, len(pairs.planes), BLOCKS_MEASURED):
            n = _measure(pairs, q, chunk, distances, similar)
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


def plain_walk(queries: Side, items: Side, cutoffs: Integers) -> tuple[Floats, Counts, Counts]:
    """Do as ``walk``, by sorting."""
    sums, hits = [], []
    ranks = np.arange(1, len(items.codes) + 1)
    for distances, similar in _plain_pairs(queries, items):
        ranked = similar[np.argsort(distances, kind="stable")]
        found = ranked.cumsum()
        hits.append(found[cutoffs - 1])
        sums.append(np.cumsum(ranked * found / ranks)[cutoffs - 1])
    return np.array(sums), np.array(hits, np.int32), plain_count_by_distance(queries, items)


# --------------------------------------------------------------------------------- near items only


@part
def _similar(pairs: _Pairs, q: int, item: int) -> bool:
    similar: bool = len(pairs.masks) == 0 and pairs.query_labels[q] == pairs.labels[item]
    for w in range(len(pairs.masks)):
        similar |= (pairs.query_masks[w, q] & pairs.masks[w, item]) != 0
    return similar


def walk_top(queries: Side, items: Side, cutoffs: Integers) -> tuple[Floats, Counts]:
    """Return the sums and hits of ``walk``, from the nearest items up to the last cutoff.

    In memory are those items for ``QUERIES_HELD`` queries at a time.
    """
    n_queries, n, top = len(queries.codes), len(items.codes), int(cutoffs[-1])
    sums = np.zeros((n_queries, len(cutoffs)))
    hits = np.zeros((n_queries, len(cutoffs)), np.int32)
    column = np.searchsorted(cutoffs, np.arange(top + 1)).astype(np.int32)  # of each rank
    pairs = _pair(queries, items)
    searched = Items(pairs.planes, np.arange(n), np.empty(0, np.int64), n, n, n, 0)
    for first in range(0, n_queries, QUERIES_HELD):
        _, ranked = nearest(queries.codes[first : first + QUERIES_HELD], searched, top)

        def walk_rows(start: int) -> None:
            _walk_ranked(pairs, ranked, first, start, column, sums, hits)  # noqa: B023

        run_blocks(walk_rows, range(0, len(ranked), QUERIES_PER_CALL))
    return sums.cumsum(axis=1), hits.cumsum(axis=1, dtype=np.int32)


@kernel
def _walk_ranked(
    pairs: _Pairs, ranked: Integers, at: int, start: int, column: Counts, sums: Floats, hits: Counts
) -> None:
    """Walk the ``ranked`` items of the queries from ``at`` on: some rows from ``start`` on."""
    n_ranks = ranked.shape[1]
    hit_ranks, precisions = np.empty(n_ranks, np.int64), np.empty(n_ranks)
    for row in range(start, min(start + QUERIES_PER_CALL, len(ranked))):
        n_hits = np.int64(0)
        for i in range(n_ranks):
            if _similar(pairs, at + row, ranked[row, i]):
                hit_ranks[n_hits] = i
                n_hits += 1
                precisions[i] = n_hits / (i + 1)
        # A sum of floats depends on its order: that of walk is the order of the database.
        sort_by_key(hit_ranks[:n_hits], ranked[row])
        for i in hit_ranks[:n_hits]:
            sums[at + row, column[i + 1]] += precisions[i]
            hits[at + row, column[i + 1]] += 1


def count_within(queries: Side, items: Side, radius: int) -> Counts:
    """Count dissimilar (0) and similar (1) items at most ``radius`` away: (n_queries, 2)."""
    counts = np.zeros((len(queries.codes), 2), np.int32)
    pairs = _pair(queries, items)
    limits = np.full(QUERIES_PER_GROUP, min(radius, 8 * items.codes.shape[1]) + 1, np.uint16)
    starts = range(0, len(counts), QUERIES_PER_BATCH)
    run_blocks(lambda start: _count_near(pairs, start, limits, counts), starts)
    return counts


@kernel
def _count_near(pairs: _Pairs, start: int, limits: Distances, counts: Counts) -> None:
    """Count near items of the ``QUERIES_PER_BATCH`` queries from ``start`` on."""
    codes, tables, planes = pairs.queries.codes, pairs.queries.tables, pairs.planes
    stop, n_items = min(start + QUERIES_PER_BATCH, len(codes)), len(pairs.labels)
    telling = telling_bytes(limits[0], codes.shape[1])
    out = np.empty(QUERIES_PER_GROUP * ITEMS_PER_BLOCK, np.uint16)
    masks = np.zeros(N_MASKS, np.uint64)
    for chunk in range(0, len(planes), BLOCKS_PER_CHUNK):
        q = start
        while q < stop:
            group = group_size(stop - q)
            for block in range(chunk, min(chunk + BLOCKS_PER_CHUNK, len(planes))):
                some = look(group, planes, codes, tables, block, q, limits, 0, telling, out, masks)
                if some == 0:
                    continue
                for g in range(group):
                    mask = masks[g] & in_use(n_items, block)
                    while mask != 0:
                        similar = _similar(pairs, q + g, ITEMS_PER_BLOCK * block + first_bit(mask))
                        counts[q + g, np.int64(similar)] += 1
                        mask &= mask - np.uint64(1)
            q += group
