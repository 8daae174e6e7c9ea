"""The nearest items by Hamming distance, without sorting and in small memory.

Every item is looked at (``planes.look``: 64 items of 4 queries at a time), and those nearer than a
bound are kept. A count of the kept by distance lowers the bound as soon as enough are nearer, and
a look at a small share of the items gives a good bound to begin with: nearly all work is then the
looking. Chunks of items stay in the innermost cache while all queries of a block pass over them.

Of equal distances, the item with the lowest *key* wins. Items up to ``ordered`` stand in the order
of their keys, so there one that is as far as the bound comes too late, and need not be kept;
beyond it, ties are kept and settled by key.

``plain_nearest`` is the plain NumPy twin, of the same signature, that says by sorting what
``nearest`` computes.
"""

# numba's cache notices a change of this file, not of those it calls: touch it after editing them.

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes
from streamhash.kernels.compile import kernel
from streamhash.kernels.hamming.items import (
    CHUNK,
    ONE,
    POSITION,
    SHIFT,
    Counts,
    Integers,
    Items,
    Packed,
    arrange,
    in_use,
    item_ranges,
    look_at,
    plain_rankings,
    query_blocks,
    sort_by_key,
)
from streamhash.kernels.hamming.planes import (
    GROUP,
    LANES,
    Distances,
    Queries,
    as_queries,
    first_bit,
)
from streamhash.threads import run_blocks

__all__ = ["nearest", "plain_nearest"]

Whole = int | np.int64
Candidates = NDArray[np.uint64]  # (n_ranges, n_queries, capacity), of ``Packed``

LAST_KEY = np.iinfo(np.int64).max
SHARE = 32  # one block of so many is looked at for a first bound


class _Search(NamedTuple):
    """How far the search of each query has come."""

    kept: Packed  # (n_queries, capacity)
    n_kept: Integers
    tally: Integers  # (n_queries, n_bits + 2) kept items by distance
    nearer: Integers  # kept items nearer than the bound
    bound: Integers  # the distance of the last of the wanted, once so many are kept
    limits: Distances  # (2 n_queries,) what is kept is nearer: than the bound; than the bound + 1
    worst: Integers  # as far as the bound, a key above this comes too late


def nearest(codes: Codes, items: Items, k: int) -> tuple[Counts, Integers]:
    """Find the ``k`` nearest items of each code (all, if there are fewer), nearest first.

    Returns distances and positions, (n_queries, k). Of equal distances, the lowest key comes first.
    """
    k = min(k, items.live)
    distances = np.empty((len(codes), k), np.int32)
    positions = np.empty((len(codes), k), np.int64)
    if k == 0:
        return distances, positions
    codes = np.array(codes, order="C")  # a read-only array would be another type to the kernels
    blocks = query_blocks(len(codes))
    ranges = item_ranges(items.size, len(blocks))
    if len(ranges) == 1:
        run_blocks(lambda block: _search(codes, items, k, *block, distances, positions), blocks)
        return distances, positions
    for start, stop in blocks:
        kept, n_kept = _room(len(ranges), stop - start, k, items.size)
        tasks = [(start, stop, *limits, r) for r, limits in enumerate(ranges)]
        run_blocks(lambda task: _collect_range(codes, items, k, *task, kept, n_kept), tasks)  # noqa: B023
        _arrange_block(kept, n_kept, items, start, distances, positions)
    return distances, positions


@kernel
def _search(
    codes: Codes,
    items: Items,
    k: int,
    start: int,
    stop: int,
    distances: Counts,
    positions: Integers,
) -> None:
    """Search all items for the codes from ``start`` to ``stop``."""
    none, one = np.int64(0), np.int64(1)  # a bare 0 is a type of its own: compiled once more
    kept, n_kept = _room(one, stop - start, k, items.size)
    last = (items.size + LANES - 1) // LANES
    _collect_range(codes, items, k, start, stop, none, last, none, kept, n_kept)
    _arrange_block(kept, n_kept, items, start, distances, positions)


@kernel
def _room(
    n_ranges: Whole, n_queries: Whole, k: Whole, n_items: Whole
) -> tuple[Candidates, Integers]:
    """Space for candidates, and for their numbers."""
    capacity = min(2 * k + 256, n_items)
    kept = np.empty((n_ranges, n_queries, capacity), np.uint64)
    return kept, np.zeros((n_ranges, n_queries), np.int64)


@kernel
def _collect_range(
    codes: Codes,
    items: Items,
    k: Whole,
    start: Whole,
    stop: Whole,
    first: Whole,
    last: Whole,
    r: Whole,
    all_kept: Candidates,
    all_n_kept: Integers,
) -> None:
    """Keep the nearest ``k`` at least, of the items in the blocks from ``first`` to ``last``."""
    none, one, some = np.int64(0), np.int64(1), np.int64(SHARE)
    queries = as_queries(codes[start:stop])
    kept, n_kept = all_kept[r], all_n_kept[r]
    n, top = stop - start, 8 * codes.shape[1] + 1
    share = k // SHARE + 1
    enough = share + 3 * np.int64(np.sqrt(share)) + 3  # of the sample: farther than the k-th of all
    n_items = (last - first) * LANES
    sampled = n >= GROUP and n_items >= SHARE * LANES * 8 and enough * SHARE <= n_items // 4
    first_bound = np.full(n, top, np.int64)
    if sampled:
        spare, n_spare = np.empty((n, 2 * enough + 256), np.uint64), np.zeros(n, np.int64)
        sample = _begin(spare, n_spare, first_bound.copy(), top)
        _collect(queries, none, items, first, last, some, enough, sample)
        first_bound = np.minimum(sample.bound + 1, top)
    search = _begin(kept, n_kept, first_bound.copy(), top)
    _collect(queries, none, items, first, last, one, k, search)
    for q in range(n):
        if search.bound[q] == first_bound[q] < top:  # too few are nearer: once more, without it
            n_kept[q] = 0
            alone = _begin(kept[q : q + 1], n_kept[q : q + 1], np.full(1, top, np.int64), top)
            _collect(queries, q, items, first, last, one, k, alone)


@kernel
def _begin(kept: Packed, n_kept: Integers, bound: Integers, top: int) -> _Search:
    n = len(kept)
    limits = np.empty(2 * n, np.uint16)
    for q in range(n):
        limits[q], limits[n + q] = bound[q], bound[q] + 1
    tally, nearer = np.zeros((n, top + 1), np.int64), np.zeros(n, np.int64)
    return _Search(kept, n_kept, tally, nearer, bound, limits, np.full(n, LAST_KEY, np.int64))


@kernel
def _collect(
    queries: Queries,
    start: Whole,
    items: Items,
    first: Whole,
    last: Whole,
    stride: Whole,
    k: Whole,
    search: _Search,
) -> None:
    """Pass over every ``stride``-th block, and keep what may be among the ``k`` nearest."""
    # All arrays get names first, and no slice gets one in the loop: numba counts references each
    # time, which would cost more than the work. For the same reason this is one long loop.
    n, capacity = search.kept.shape
    codes, tables = queries.codes[start : start + n], queries.tables[start : start + n]
    planes, keys, removed, size, _, ordered, moment = items
    kept, n_kept, tally, nearer, bound, limits, worst = search
    out, masks = np.empty(GROUP * LANES, np.uint16), np.empty(GROUP, np.uint64)
    for chunk in range(first, last, CHUNK * stride):
        q = 0
        while q < n:
            group = GROUP if n - q >= GROUP else 1
            for block in range(chunk, min(chunk + CHUNK * stride, last), stride):
                at = q if LANES * (block + 1) <= ordered else n + q
                if look_at(group, planes, codes, tables, block, q, limits, at, out, masks) == 0:
                    continue
                for g in range(group):
                    mask = masks[g] & in_use(size, block)
                    r = q + g
                    while mask != 0:
                        lane = first_bit(mask)
                        mask &= mask - ONE
                        position, distance = LANES * block + lane, np.int64(out[LANES * g + lane])
                        if distance > bound[r]:  # which may have fallen since the mask was made
                            continue
                        if len(removed) > 0 and removed[position] <= moment:
                            continue
                        if distance == bound[r] and (
                            position < ordered or keys[position] > worst[r]
                        ):
                            continue
                        if n_kept[r] == capacity:
                            n_kept[r] = _shrink(kept, r, bound[r], k - nearer[r], keys, worst)
                            if distance == bound[r] and keys[position] > worst[r]:
                                continue
                        kept[r, n_kept[r]] = (np.uint64(distance) << SHIFT) | np.uint64(position)
                        n_kept[r] += 1
                        tally[r, distance] += 1
                        if distance < bound[r]:
                            nearer[r] += 1
                            while nearer[r] >= k:
                                bound[r] -= 1
                                nearer[r] -= tally[r, bound[r]]
                                worst[r] = LAST_KEY
                            limits[r], limits[n + r] = bound[r], bound[r] + 1
            q += group


@kernel
def _shrink(kept: Packed, q: int, bound: int, wanted: int, keys: Integers, worst: Integers) -> int:
    """Drop what is farther than the bound, and as far all but the ``wanted`` lowest keys."""
    ties, n_ties = np.empty(kept.shape[1], np.int64), 0
    for packed in kept[q]:
        if np.int64(packed >> SHIFT) == bound:
            ties[n_ties] = packed & POSITION
            n_ties += 1
    sort_by_key(ties[:n_ties], keys)
    worst[q] = keys[ties[wanted - 1]]
    n = 0
    for packed in kept[q]:
        distance = np.int64(packed >> SHIFT)
        if distance < bound or (distance == bound and keys[packed & POSITION] <= worst[q]):
            kept[q, n] = packed
            n += 1
    return n


@kernel
def _arrange_block(
    kept: Candidates,
    n_kept: Integers,
    items: Items,
    start: int,
    distances: Counts,
    positions: Integers,
) -> None:
    """Put the nearest of the candidates of every range into their rows, from ``start`` on."""
    top = 8 * items.planes.shape[1] + 1
    for q in range(kept.shape[1]):
        n = 0
        for r in range(len(kept)):
            n += n_kept[r, q]
        together, n = np.empty(n, np.uint64), 0
        for r in range(len(kept)):
            for i in range(n_kept[r, q]):  # assigning a slice would take seconds to compile
                together[n] = kept[r, q, i]
                n += 1
        arrange(together, items, top, distances[start + q], positions[start + q])


def plain_nearest(codes: Codes, items: Items, k: int) -> tuple[Counts, Integers]:
    """Do as ``nearest``, by sorting."""
    k = min(k, items.live)
    distances = np.empty((len(codes), k), np.int32)
    positions = np.empty((len(codes), k), np.int64)
    for q, (ranked, order) in enumerate(plain_rankings(codes, items)):
        distances[q], positions[q] = ranked[:k], order[:k]
    return distances, positions
