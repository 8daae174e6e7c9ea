"""Exact search for real-valued queries: the nearest items by asymmetric distance.

A query is a row of projections p, whose signs would be its code. Its distance from an item is the
sum of |p_j| over the bits j in which the item differs from these signs: a bit that the query is
sure of counts much, one near zero next to nothing. It is that of the scan when all |p_j| are 1.

The sum is exact before it is rounded to float32: |p_j| are whole multiples of a unit of the query,
2^-52 of all of them together. So no order of adding changes it, and items whose distances are equal
rank by their keys, the lowest first.

Most items are ruled out by a bound from below, in the loop of the scan (``planes.look_weighted``):
the query's tables hold, for each value of a half byte, how far it is, rounded down to a byte's
number; they are made anew as the distance of the k-th nearest falls, to which 254 of them belong.
For codes that are too long for this, weights are 63 at most and sums have 16 bits. Only items
whose bound is no farther are measured. Of learned codes many are equal: among items in the order of
their keys, one with the code of the last of the nearest comes too late, and none is nearer than 0.

``plain_nearest`` is the plain NumPy twin.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes, pack
from streamhash.kernels.compile import kernel
from streamhash.kernels.hamming.items import (
    ONE,
    Items,
    gathered,
    in_use,
    is_worth_gathering,
    places,
)
from streamhash.kernels.hamming.planes import (
    ITEMS_PER_BLOCK,
    LARGEST_WEIGHT,
    QUERIES_PER_GROUP,
    SATURATED_BYTES,
    Distances,
    equal_to,
    first_bit,
    from_planes,
    group_size,
    look_weighted,
)
from streamhash.kernels.hamming.scan import (
    BLOCKS_PER_CHUNK,
    SAMPLE_STRIDE,
    Batch,
    Integers,
    Whole,
    item_ranges,
    query_batches,
)
from streamhash.threads import run_blocks

Floats = NDArray[np.float32]
Reals = NDArray[np.float64]

MOST = 254  # what the distance of the k-th nearest is in the tables: 255 is too far
STALE = 0.9  # tables are made anew when that distance has fallen to this share
ROUNDING = 1 + 2.0**-22  # more than a distance can gain or lose by being rounded


class _Queries(NamedTuple):
    """What the loops read of queries. Tables have a row of 16 for each half byte, as those of the
    scan: sums in units, and these rounded down to bytes.
    """

    codes: Codes  # (n, n_bytes)
    sums: Integers  # (n, 2 n_bytes, 16)
    tables: Codes  # (n, 2 n_bytes, 16)
    units: Reals  # (n,)


class _Found(NamedTuple):
    """The nearest items of each query so far: a heap each, the farthest first."""

    distances: Floats  # (n, k)
    positions: Integers  # (n, k)
    n_found: Integers
    bounds: Floats  # farther items come too late
    scales: Reals  # of the tables: units of a byte's number
    scaled: Floats  # the bounds that the tables were made for
    limits: (
        Distances  # (2 n,) sums of what may be near are lower: in order; beyond, where ties count
    )
    last: Codes  # (n, n_bytes) of the farthest


def nearest(projections: Floats, items: Items, k: int) -> tuple[Floats, Integers]:
    """Find the ``k`` nearest items of each query (n, n_bits); all, if there are fewer.

    Returns distances and positions, (n_queries, k), nearest first, then the lowest key.
    """
    k, n = min(k, items.live), len(projections)
    if k == 0:
        return np.empty((n, 0), np.float32), np.empty((n, 0), np.int64)
    if len(items.allowed) and is_worth_gathering(items, n):
        few, at = gathered(items)
        distances, positions = nearest(projections, few, k)
        return distances, at[positions]
    projections = np.array(projections, np.float32, order="C")
    codes = pack(projections)
    batches = query_batches(n)
    ranges = item_ranges(items.size, len(batches))
    distances = np.empty((len(ranges), n, k), np.float32)
    positions = np.empty((len(ranges), n, k), np.int64)
    n_found = np.zeros((len(ranges), n), np.int64)

    def search(task: tuple[Batch, int]) -> None:
        (start, stop), r = task
        rows, found = slice(start, stop), (each[r] for each in (distances, positions, n_found))
        queries = projections[rows], codes[rows]
        _search_range(*queries, items, *ranges[r], *(each[rows] for each in found))

    run_blocks(search, [(batch, r) for batch in batches for r in range(len(ranges))])
    _arrange(distances, positions, n_found, items.keys)
    return distances[0], positions[0]


@kernel
def _weigh(projections: Floats, codes: Codes) -> _Queries:
    n, n_bits = projections.shape
    n_bytes = codes.shape[1]
    sums, units = np.zeros((n, 2 * n_bytes, 16), np.int64), np.ones(n, np.float64)
    weights = np.zeros(8 * n_bytes, np.int64)
    for q in range(n):
        total = 0.0
        for j in range(n_bits):
            total += abs(np.float64(projections[q, j]))
        if total > 0:
            units[q] = math.ldexp(1.0, math.frexp(total)[1] - 52)
        for j in range(n_bits):
            weights[j] = np.int64(np.rint(abs(np.float64(projections[q, j])) / units[q]))
        for b in range(n_bytes):
            for value in range(16):
                for bit in range(4):
                    for half in range(2):
                        if ((codes[q, b] >> (4 * half)) ^ value) >> bit & 1:
                            sums[q, 2 * b + half, value] += weights[8 * b + 7 - 4 * half - bit]
    return _Queries(codes, sums, np.zeros(sums.shape, np.uint8), units)


@kernel
def _search_range(
    projections: Floats,
    codes: Codes,
    items: Items,
    first: int,
    last: int,
    distances: Floats,
    positions: Integers,
    n_found: Integers,
) -> None:
    """Find the nearest of the items in the blocks from ``first`` to ``last``."""
    none, one, stride = np.int64(0), np.int64(1), np.int64(SAMPLE_STRIDE)
    queries = _weigh(projections, codes)
    n, k = distances.shape
    n_bytes = codes.shape[1]
    share = k // SAMPLE_STRIDE + 1
    enough = share + 3 * np.int64(np.sqrt(share)) + 3  # of the sample: farther than the k-th of all
    n_items = (last - first) * ITEMS_PER_BLOCK
    bounds = np.full(n, np.inf, np.float32)
    if n_items >= SAMPLE_STRIDE * ITEMS_PER_BLOCK * 8 and enough * SAMPLE_STRIDE <= n_items // 4:
        spare = np.empty((n, enough), np.float32), np.empty((n, enough), np.int64)
        sample = _begin(spare[0], spare[1], np.zeros(n, np.int64), bounds, n_bytes)
        _collect(queries, none, items, first, last, stride, sample)
        bounds = sample.bounds
    found = _begin(distances, positions, n_found, bounds, n_bytes)
    _collect(queries, none, items, first, last, one, found)
    for q in range(n):
        if n_found[q] < k and bounds[q] < np.inf:  # too few are nearer: again, without it
            n_found[q] = 0
            farthest = np.full(1, np.inf, np.float32)
            rows = distances[q : q + 1], positions[q : q + 1], n_found[q : q + 1]
            alone = _begin(rows[0], rows[1], rows[2], farthest, n_bytes)
            _collect(queries, q, items, first, last, one, alone)


@kernel
def _begin(
    distances: Floats, positions: Integers, n_found: Integers, bounds: Floats, n_bytes: int
) -> _Found:
    n = len(distances)
    return _Found(
        distances,
        positions,
        n_found,
        bounds.copy(),
        np.zeros(n, np.float64),
        np.full(n, np.inf, np.float32),
        np.zeros(2 * n, np.uint16),
        np.zeros((n, n_bytes), np.uint8),
    )


@kernel
def _set_limit(queries: _Queries, start: Whole, found: _Found, r: Whole, anew: bool) -> None:
    """Set which sums of the tables may be near: make the tables anew if it is worth it."""
    q, n_bytes = start + r, queries.codes.shape[1]
    units = max(np.float64(found.bounds[r]) * ROUNDING / queries.units[q], 0.5)  # 0 alone is below
    short = n_bytes <= SATURATED_BYTES
    if anew or (short and found.bounds[r] < found.scaled[r] * STALE):
        largest = np.int64(1)
        for half in range(2 * n_bytes):
            for value in range(16):
                largest = max(largest, queries.sums[q, half, value])
        scale = MOST / units if short else LARGEST_WEIGHT / largest
        for half in range(2 * n_bytes):
            for value in range(16):
                number = min(queries.sums[q, half, value] * scale, 255.0)
                queries.tables[q, half, value] = np.uint8(number)
        found.scales[r], found.scaled[r] = scale, found.bounds[r]
    most = MOST if short else 65_534
    number = units * found.scales[r] * ROUNDING if found.bounds[r] < np.inf else np.inf
    limit = np.uint16(1 + (number if number < most else most))
    n, k = found.distances.shape
    none_is_nearer = found.bounds[r] == 0 and found.n_found[r] == k
    found.limits[r], found.limits[n + r] = np.uint16(0) if none_is_nearer else limit, limit


@kernel
def _collect(
    queries: _Queries,
    start: Whole,
    items: Items,
    first: Whole,
    last: Whole,
    stride: Whole,
    found: _Found,
) -> None:
    """Pass over every ``stride``-th block, and keep the nearest."""
    # Arrays get names first, and no slice gets one in the loop: see the scan.
    n, k = found.distances.shape
    n_bytes = queries.codes.shape[1]
    codes, tables = queries.codes[start : start + n], queries.tables[start : start + n]
    sums, units = queries.sums[start : start + n], queries.units[start : start + n]
    planes, keys, deleted, size, _, ordered, moment, allowed = items
    distances, positions, n_found, bounds, _, _, limits, last_codes = found
    out = np.empty(QUERIES_PER_GROUP * ITEMS_PER_BLOCK, np.uint16)
    masks = np.empty(QUERIES_PER_GROUP, np.uint64)
    for r in range(n):
        _set_limit(queries, start, found, r, True)
    for chunk in range(first, last, BLOCKS_PER_CHUNK * stride):
        q = 0
        while q < n:
            group = group_size(n - q)
            for block in range(chunk, min(chunk + BLOCKS_PER_CHUNK * stride, last), stride):
                if len(allowed) > 0 and allowed[block] == 0:
                    continue
                in_order = ITEMS_PER_BLOCK * (block + 1) <= ordered
                at = q if in_order else n + q
                if group == 1 and limits[at] == 0:
                    continue
                some = look_weighted(
                    group, planes, codes, tables, block, q, limits, at, n_bytes, out, masks
                )
                if some == 0:
                    continue
                for g in range(group):
                    mask = masks[g] & (allowed[block] if len(allowed) > 0 else in_use(size, block))
                    r = q + g
                    if n_found[r] == k and in_order:
                        # As far as the last, with a higher key: of learned codes, many are equal.
                        mask &= ~equal_to(planes, last_codes, block, r)
                    while mask != 0:
                        place = first_bit(mask)
                        mask &= mask - ONE
                        position = ITEMS_PER_BLOCK * block + place
                        if len(deleted) > 0 and deleted[position] <= moment:
                            continue
                        total = np.int64(0)
                        for b in range(n_bytes):
                            byte = planes[block, b, place]
                            total += sums[r, 2 * b, byte & 15] + sums[r, 2 * b + 1, byte >> 4]
                        distance = np.float32(total * units[r])
                        if distance > bounds[r]:
                            continue
                        if n_found[r] < k:
                            _rise(distances, positions, n_found, keys, r, distance, position)
                        elif distance < distances[r, 0] or keys[position] < keys[positions[r, 0]]:
                            _sink(distances, positions, k, keys, r, distance, position)
                        if n_found[r] == k:
                            of = positions[r, 0] // ITEMS_PER_BLOCK
                            last_place = positions[r, 0] % ITEMS_PER_BLOCK
                            for b in range(n_bytes):
                                last_codes[r, b] = planes[of, b, last_place]
                            if distances[r, 0] <= bounds[r]:
                                bounds[r] = distances[r, 0]
                                _set_limit(queries, start, found, r, False)
            q += group


# ------------------------------------------------------------------------------------------- heaps


@kernel
def _rise(
    distances: Floats,
    positions: Integers,
    n_found: Integers,
    keys: Integers,
    r: int,
    distance: np.float32,
    position: int,
) -> None:
    """Add an item to a heap."""
    i = n_found[r]
    n_found[r] += 1
    while i > 0:
        parent = (i - 1) // 2
        above, key = distances[r, parent], keys[positions[r, parent]]
        if above > distance or (above == distance and key > keys[position]):
            break
        distances[r, i], positions[r, i] = above, positions[r, parent]
        i = parent
    distances[r, i], positions[r, i] = distance, position


@kernel
def _sink(
    distances: Floats,
    positions: Integers,
    n: int,
    keys: Integers,
    r: int,
    distance: np.float32,
    position: int,
) -> None:
    """Put an item in place of the first of a heap of ``n``."""
    i = 0
    while 2 * i + 1 < n:
        child = 2 * i + 1
        other = child + 1
        if other < n and (
            distances[r, other] > distances[r, child]
            or (
                distances[r, other] == distances[r, child]
                and keys[positions[r, other]] > keys[positions[r, child]]
            )
        ):
            child = other
        below, key = distances[r, child], keys[positions[r, child]]
        if distance > below or (distance == below and keys[position] > key):
            break
        distances[r, i], positions[r, i] = below, positions[r, child]
        i = child
    distances[r, i], positions[r, i] = distance, position


@kernel
def _arrange(
    all_distances: NDArray[np.float32],
    all_positions: NDArray[np.int64],
    all_n_found: NDArray[np.int64],
    keys: Integers,
) -> None:
    """Join the heaps of the ranges in the first, and put these in order."""
    distances, positions, n_found = all_distances[0], all_positions[0], all_n_found[0]
    n, k = distances.shape
    for q in range(n):
        for r in range(1, len(all_distances)):
            for i in range(all_n_found[r, q]):
                distance, position = all_distances[r, q, i], all_positions[r, q, i]
                last, key = distances[q, 0], keys[positions[q, 0]]
                if n_found[q] < k:
                    _rise(distances, positions, n_found, keys, q, distance, position)
                elif distance < last or (distance == last and keys[position] < key):
                    _sink(distances, positions, k, keys, q, distance, position)
        for end in range(k - 1, 0, -1):
            distance, position = distances[q, end], positions[q, end]
            distances[q, end], positions[q, end] = distances[q, 0], positions[q, 0]
            _sink(distances, positions, end, keys, q, distance, position)


# -------------------------------------------------------------------------------------- plain twin


def plain_nearest(projections: Floats, items: Items, k: int) -> tuple[Floats, Integers]:
    """Do as ``nearest``, by sorting; sums are of float64."""
    there, k = places(items), min(k, items.live)
    bits = np.unpackbits(from_planes(items.planes, there), axis=1, count=projections.shape[1])
    distances = np.empty((len(projections), k), np.float32)
    positions = np.empty((len(projections), k), np.int64)
    for q, row in enumerate(projections):
        differ = bits != (row > 0)
        sums = (differ * np.abs(row.astype(np.float64))).sum(axis=1).astype(np.float32)
        order = np.lexsort((items.keys[there], sums))[:k]
        distances[q], positions[q] = sums[order], there[order]
    return distances, positions
