"""Exact search by Hamming distance, without sorting and in small memory.

Every item is looked at (``planes.look``: 64 items of 4 queries at a time), and those nearer than a
bound are kept. A count of the kept by distance lowers the bound as soon as enough are nearer, and
a look at a small share of the items gives a good bound to begin with: nearly all work is then the
looking. Chunks of items stay in the innermost cache while all queries of a block pass over them.

Of equal distances, the item with the lowest *key* wins. Items up to ``ordered`` stand in the order
of their keys, so there one that is as far as the bound comes too late, and need not be kept;
beyond it, ties are kept and settled by key.

Each public function has a plain NumPy twin of the same signature, ``plain_…``, that says by sorting
what it computes.
"""

# numba's cache notices a change of this file, not of planes.py: touch it after editing that.

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes
from streamhash.kernels._compile import kernel, part
from streamhash.kernels.planes import (
    GROUP,
    LANES,
    Distances,
    Planes,
    Queries,
    as_queries,
    bits_in,
    first_bit,
    look,
    look_once,
    n_blocks,
    plain_distances,
)
from streamhash.threads import get_threads, run_blocks

__all__ = ["ALIVE", "Items", "nearest", "plain_nearest", "plain_within", "within"]

Counts = NDArray[np.int32]
Integers = NDArray[np.int64]
Packed = NDArray[np.uint64]  # a distance in the upper 16 bits, a position in the lower 48

ALIVE = np.iinfo(np.int64).max  # in ``removed``: not removed yet
LAST_KEY = np.iinfo(np.int64).max
CHUNK = 32  # blocks: 2,048 items, 16 KB of 64-bit codes
BLOCK = 64  # queries that pass over a chunk one after the other
SHARE = 32  # one block of so many is looked at for a first bound
RANGE = 1 << 16  # items that are worth a thread of their own
SHIFT, POSITION = np.uint64(48), np.uint64((1 << 48) - 1)
ONE = np.uint64(1)


class Items(NamedTuple):
    """What a search sees. Places from ``size`` on may be written to meanwhile, by other threads."""

    planes: Planes
    keys: Integers  # (capacity,)
    removed: Integers  # (capacity,) when each was removed, or (0,) if none ever was
    size: int  # places in use
    live: int  # items, without those removed
    ordered: int  # up to here, keys ascend
    moment: int  # what was removed later than this is still there


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
    queries = as_queries(codes)

    blocks = _query_blocks(len(codes))
    ranges = _item_ranges(items.size, len(blocks))

    def search(block: tuple[int, int], parts: list[tuple[int, int]]) -> None:
        def collect(of_items: tuple[int, int]) -> tuple[Packed, Integers]:
            return _candidates(queries, items, k, *block, *of_items)

        found = run_blocks(collect, parts) if len(parts) > 1 else [collect(*parts)]
        _finish(found, items, block[0], distances, positions)

    if len(ranges) > 1:
        for block in blocks:
            search(block, ranges)
    else:
        run_blocks(lambda block: search(block, ranges), blocks)
    return distances, positions


def _query_blocks(n_queries: int) -> list[tuple[int, int]]:
    """Cut queries into blocks of equal size: at least as many as threads, if that makes sense."""
    parts = max(-(-n_queries // BLOCK), min(get_threads(), -(-n_queries // (4 * GROUP))))
    size = -(-n_queries // max(parts, 1))
    size = -(-size // GROUP) * GROUP
    return [(start, min(start + size, n_queries)) for start in range(0, n_queries, max(size, 1))]


def _item_ranges(n_items: int, n_blocks_of_queries: int) -> list[tuple[int, int]]:
    """Cut items into ranges of blocks, where there are more threads than blocks of queries."""
    parts = 1 if n_blocks_of_queries >= get_threads() else min(get_threads(), n_items // RANGE)
    stops = [n_blocks(n_items) * (i + 1) // max(parts, 1) for i in range(max(parts, 1))]
    return list(zip([0, *stops], stops, strict=False))


def _candidates(
    queries: Queries, items: Items, k: int, start: int, stop: int, first: int, last: int
) -> tuple[Packed, Integers]:
    """Collect candidates among the blocks from ``first`` to ``last``: the nearest ``k`` at least.

    Returns them for each query from ``start`` to ``stop``, and how many they are.
    """
    n_items = min(last * LANES, items.size) - first * LANES
    capacity = min(2 * k + 256, n_items)
    kept = np.empty((stop - start, capacity), np.uint64)
    n_kept = np.zeros(stop - start, np.int64)
    share = k // SHARE + 1
    enough = share + 3 * int(np.sqrt(share)) + 3  # nearest of the sample: farther than the k-th
    if n_items < SHARE * LANES * 8 or enough * SHARE > n_items // 4:
        enough = 0
    _collect_block(queries, items, k, enough, start, stop, first, last, kept, n_kept)
    return kept, n_kept


@kernel
def _collect_block(
    queries: Queries,
    items: Items,
    k: int,
    enough: int,
    start: int,
    stop: int,
    first: int,
    last: int,
    kept: Packed,
    n_kept: Integers,
) -> None:
    n, top = stop - start, 8 * queries.codes.shape[1] + 1
    search = _begin(kept, n_kept, np.full(n, top, np.int64), top)
    if enough > 0:
        spare = np.empty((n, 2 * enough + 256), np.uint64)
        sample = _begin(spare, np.zeros(n, np.int64), np.full(n, top, np.int64), top)
        _collect(queries, start, items, first, last, SHARE, enough, sample)
        search = _begin(kept, n_kept, np.minimum(sample.bound + 1, top), top)
    _collect(queries, start, items, first, last, 1, k, search)
    if enough > 0:
        for q in range(n):
            first_bound = min(sample.bound[q] + 1, top)
            if search.bound[q] == first_bound < top:  # too few are nearer: once more, without it
                n_kept[q] = 0
                alone = _begin(kept[q : q + 1], n_kept[q : q + 1], np.full(1, top, np.int64), top)
                _collect(queries, start + q, items, first, last, 1, k, alone)


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
    start: int,
    items: Items,
    first: int,
    last: int,
    stride: int,
    k: int,
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
                if group == GROUP:
                    some = look(planes, codes, tables, block, q, limits, at, out, masks)
                else:
                    some = look_once(planes, codes, tables, block, q, limits, at, out, masks)
                if some == 0:
                    continue
                for g in range(group):
                    mask = masks[g] & _in_use(size, block)
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


@part
def _in_use(size: int, block: int) -> np.uint64:
    """A mask of the places of a block that are in use."""
    n = size - LANES * block
    return ~np.uint64(0) if n >= LANES else (ONE << np.uint64(n)) - ONE


@kernel
def _shrink(kept: Packed, q: int, bound: int, wanted: int, keys: Integers, worst: Integers) -> int:
    """Drop what is farther than the bound, and as far all but the ``wanted`` lowest keys."""
    ties, n_ties = np.empty(kept.shape[1], np.int64), 0
    for packed in kept[q]:
        if np.int64(packed >> SHIFT) == bound:
            ties[n_ties] = keys[packed & POSITION]
            n_ties += 1
    worst[q] = np.partition(ties[:n_ties], wanted - 1)[wanted - 1]
    n = 0
    for packed in kept[q]:
        distance = np.int64(packed >> SHIFT)
        if distance < bound or (distance == bound and keys[packed & POSITION] <= worst[q]):
            kept[q, n] = packed
            n += 1
    return n


def _finish(
    found: list[tuple[Packed, Integers]],
    items: Items,
    start: int,
    distances: Counts,
    positions: Integers,
) -> None:
    """Put the nearest of the candidates of every range into their rows, from ``start`` on."""
    kept = (
        np.concatenate([of_range for of_range, _ in found], axis=1)
        if len(found) > 1
        else found[0][0]
    )
    widths = np.array([of_range.shape[1] for of_range, _ in found])
    n_kept = np.array([n for _, n in found])
    _arrange_block(kept, widths, n_kept, items, start, distances, positions)


@kernel
def _arrange_block(
    kept: Packed,
    widths: Integers,
    n_kept: Integers,
    items: Items,
    start: int,
    distances: Counts,
    positions: Integers,
) -> None:
    for q in range(len(kept)):
        n, at = 0, 0
        for r in range(len(widths)):  # close the gaps between the ranges
            for i in range(n_kept[r, q]):
                kept[q, n] = kept[q, at + i]
                n += 1
            at += widths[r]
        top = 8 * items.planes.shape[1] + 1
        _arrange(kept[q, :n], items, top, distances[start + q], positions[start + q])


@kernel
def _arrange(
    packed: Packed, items: Items, top: int, distances: Counts, positions: Integers
) -> None:
    """Put the nearest in order: by distance, then by key."""
    ends = np.zeros(top + 1, np.int64)  # where the next item at each distance goes
    for one in packed:
        ends[(one >> SHIFT) + ONE] += 1
    for distance in range(top):
        ends[distance + 1] += ends[distance]
    placed, loose = np.empty(len(packed), np.int64), False
    for one in packed:
        distance, position = one >> SHIFT, np.int64(one & POSITION)
        placed[ends[distance]] = position
        ends[distance] += 1
        if position >= items.ordered:
            loose = True
    begin = np.int64(0)
    for distance in range(top):
        end = ends[distance]
        if begin >= len(positions):
            break
        if loose and end - begin > 1:
            run = placed[begin:end].copy()
            placed[begin:end] = run[np.argsort(items.keys[run])]
        for i in range(begin, min(end, len(positions))):
            distances[i], positions[i] = distance, placed[i]
        begin = end


def within(codes: Codes, items: Items, radius: int) -> tuple[Integers, Counts, Integers]:
    """Find every item at most ``radius`` from each code, nearest first, then the lowest key first.

    Returns limits, distances, positions: those of query ``q`` stand from ``limits[q]`` on.
    """
    queries, n_queries = as_queries(codes), len(codes)
    radius = min(radius, 8 * codes.shape[1])
    blocks = _query_blocks(n_queries)
    ranges = _item_ranges(items.size, len(blocks))
    cells = [(block, i) for block in blocks for i in range(len(ranges))]
    starts = np.zeros((n_queries, len(ranges)), np.int64)
    counting = (np.empty(0, np.uint64), starts)

    def look_around(cell: tuple[tuple[int, int], int], packed: Packed, filled: Integers) -> None:
        block, i = cell
        _gather(queries, items, radius, *block, *ranges[i], packed, filled[:, i].copy(), filled, i)

    run_blocks(lambda cell: look_around(cell, *counting), cells)
    ends = starts.cumsum().reshape(starts.shape)
    packed = np.empty(starts.sum(), np.uint64)
    limits = np.append(0, ends[:, -1])
    if len(packed):
        run_blocks(lambda cell: look_around(cell, packed, ends - starts), cells)
    distances, positions = np.empty(len(packed), np.int32), np.empty(len(packed), np.int64)
    run_blocks(
        lambda block: _arrange_rows(packed, items, limits, *block, distances, positions), blocks
    )
    return limits, distances, positions


@kernel
def _gather(
    queries: Queries,
    items: Items,
    radius: int,
    start: int,
    stop: int,
    first: int,
    last: int,
    packed: Packed,
    at: Integers,
    counts: Integers,
    column: int,
) -> None:
    """Write items within the radius to ``packed`` from ``at[q]`` on; if it is empty, count them."""
    n = stop - start
    codes, tables = queries.codes[start:stop], queries.tables[start:stop]
    planes, _, removed, size, _, _, moment = items
    limits = np.full(n, radius + 1, np.uint16)
    out, masks = np.empty(GROUP * LANES, np.uint16), np.empty(GROUP, np.uint64)
    for chunk in range(first, last, CHUNK):
        q = 0
        while q < n:
            group = GROUP if n - q >= GROUP else 1
            for block in range(chunk, min(chunk + CHUNK, last)):
                if group == GROUP:
                    some = look(planes, codes, tables, block, q, limits, q, out, masks)
                else:
                    some = look_once(planes, codes, tables, block, q, limits, q, out, masks)
                if some == 0:
                    continue
                for g in range(group):
                    mask = masks[g] & _in_use(size, block)
                    r = start + q + g
                    if len(packed) == 0 and len(removed) == 0:
                        at[r] += bits_in(mask)
                        continue
                    while mask != 0:
                        lane = first_bit(mask)
                        mask &= mask - ONE
                        position = LANES * block + lane
                        if len(removed) > 0 and removed[position] <= moment:
                            continue
                        if len(packed) > 0:
                            distance = np.uint64(out[LANES * g + lane])
                            packed[at[r]] = (distance << SHIFT) | np.uint64(position)
                        at[r] += 1
            q += group
    if len(packed) == 0:
        for q in range(start, stop):
            counts[q, column] = at[q]


@kernel
def _arrange_rows(
    packed: Packed,
    items: Items,
    limits: Integers,
    start: int,
    stop: int,
    distances: Counts,
    positions: Integers,
) -> None:
    top = 8 * items.planes.shape[1] + 1
    for q in range(start, stop):
        begin, end = limits[q], limits[q + 1]
        _arrange(packed[begin:end], items, top, distances[begin:end], positions[begin:end])


# ------------------------------------------------------------------------------------ plain twins


def _plain_rankings(codes: Codes, items: Items) -> Iterator[tuple[Integers, Integers]]:
    """Distances and positions of what is there, in order, for one code after the other."""
    there = np.arange(items.size)
    if len(items.removed):
        there = there[items.removed[: items.size] > items.moment]
    for distances in plain_distances(codes, items.planes, items.size):
        order = there[np.lexsort((items.keys[there], distances[there]))]
        yield distances[order], order


def plain_nearest(codes: Codes, items: Items, k: int) -> tuple[Counts, Integers]:
    """Do as ``nearest``, by sorting."""
    k = min(k, items.live)
    distances = np.empty((len(codes), k), np.int32)
    positions = np.empty((len(codes), k), np.int64)
    for q, (ranked, order) in enumerate(_plain_rankings(codes, items)):
        distances[q], positions[q] = ranked[:k], order[:k]
    return distances, positions


def plain_within(codes: Codes, items: Items, radius: int) -> tuple[Integers, Counts, Integers]:
    """Do as ``within``, by sorting."""
    near = [(d[d <= radius], p[d <= radius]) for d, p in _plain_rankings(codes, items)]
    limits = np.cumsum([0, *(len(distances) for distances, _ in near)])
    distances = np.concatenate([np.empty(0, np.int32), *(d.astype(np.int32) for d, _ in near)])
    return limits, distances, np.concatenate([np.empty(0, np.int64), *(p for _, p in near)])
