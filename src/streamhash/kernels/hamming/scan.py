"""Exact search by Hamming distance, without sorting and in small memory: the nearest items, and all
items within a radius.

Every item is looked at (``planes.look``: 64 items of 4 queries at a time, or 8). Chunks of items
stay in the cache while all queries of a batch pass over them. Queries whose neighbours are about as
near form a group, as a block is left as soon as none of them needs more of it; where that seldom
comes before the end, as among codes whose bits go together, a group reads blocks whole. Many
queries that would not leave early are answered by ``slices``, where all bits are added up in less.

``nearest`` keeps items nearer than a bound. A count of the kept by distance lowers the bound as
soon as enough are nearer, and a look at a small share of the items gives a good bound to begin
with: nearly all work is then the looking. Of equal distances, the item with the lowest *key* wins.
Items up to ``ordered`` stand in the order of their keys, so there one that is as far as the bound
comes too late, and need not be kept; beyond it, ties are kept and settled by key.

``within`` counts, and writes what there is room for; where that was too little, it passes over the
items again and writes each to its place.

``plain_nearest`` and ``plain_within`` are the plain NumPy twins, of the same signatures, that say
by sorting what the others compute.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes
from streamhash.kernels.compile import kernel, part
from streamhash.kernels.hamming.items import (
    ONE,
    Items,
    Words,
    gathered,
    in_use,
    is_worth_gathering,
    places,
)
from streamhash.kernels.hamming.planes import (
    ITEMS_PER_BLOCK,
    N_MASKS,
    QUERIES_PER_GROUP,
    SMALLEST_GROUP,
    Distances,
    Queries,
    as_queries,
    bits_in,
    fetch,
    fetch_next,
    first_bit,
    group_size,
    look,
    plain_distances,
    telling_bytes,
)
from streamhash.kernels.hamming.slices import (
    BLOCKS_PER_SLICE,
    COST,
    LONGEST_SLICED,
    N_DIGITS,
    add_carries,
    are_nearer,
    as_choices,
    distance_of,
    first_sum,
    new_queue,
    new_table,
    put_carries,
)
from streamhash.threads import get_threads, run_blocks

Counts = NDArray[np.int32]
Integers = NDArray[np.int64]
Whole = int | np.int64
Packed = NDArray[np.uint64]  # a distance in the upper 16 bits, a position in the lower 48
Batch = tuple[int, int]  # the first query, and the one after the last

LAST_KEY = np.iinfo(np.int64).max
BLOCKS_PER_CHUNK = 32  # 2,048 items, 16 KB of 64-bit codes
CHUNK_BYTES = 1 << 17  # a quarter of the second cache, or an eighth
SHORT_CODE = 16  # bytes: such items come as fast as can be without being asked for
BYTES_AHEAD = 1 << 12  # of longer ones, for a query alone; leaving blocks early would hold it up
CHUNKS_TO_THE_END = 15  # that queries read whole, before they try once more to leave blocks early
QUERIES_PER_BATCH = 256  # they pass over a chunk one after the other
QUERIES_WORTH_SLICING = 64  # slicing costs what some 50 queries gain by it
SEEN_AT_A_TIME = 4096  # items that were seen to be near, before the nearest are kept
ITEMS_PER_THREAD = 1 << 19  # worth a thread of its own: a few tenths of a millisecond
SAMPLE_STRIDE = 32  # one block of so many is looked at for a first bound
FIRST_ROOM = 1 << 20  # items that a first pass of ``within`` may write in all, 8 MB,
ROOM_OF_QUERY = 1 << 12  # and for one query
DISTANCE_SHIFT, POSITION_MASK = np.uint64(48), np.uint64((1 << 48) - 1)


class _Candidates(NamedTuple):
    """What was kept for each query of a batch, and how far the search of it has come."""

    kept: Packed  # (n_queries, capacity)
    n_kept: Integers
    tally: Integers  # (n_queries, n_bits + 2) kept items by distance
    nearer: Integers  # kept items nearer than the bound
    bound: Integers  # the distance of the last of the wanted, once so many are kept
    limits: Distances  # (2 n_queries,) what is kept is nearer: than the bound; than the bound + 1
    worst: Integers  # as far as the bound, a key above this comes too late


# ------------------------------------------------------------------------------------ cutting work


def query_batches(n_queries: int) -> list[Batch]:
    """Cut queries into batches of equal size: at least as many as threads, if that makes sense."""
    few = -(-n_queries // (4 * QUERIES_PER_GROUP))
    parts = max(-(-n_queries // QUERIES_PER_BATCH), min(get_threads(), few), 1)
    groups = -(-n_queries // (parts * QUERIES_PER_GROUP))
    size = max(groups * QUERIES_PER_GROUP, 1)
    return [(start, min(start + size, n_queries)) for start in range(0, n_queries, size)]


def item_ranges(n_items: int, n_batches: int) -> list[tuple[int, int]]:
    """Cut items into ranges of blocks, where there are more threads than batches of queries."""
    spare = n_batches < get_threads()
    parts = max(min(get_threads(), n_items // ITEMS_PER_THREAD), 1) if spare else 1
    n_blocks = -(-n_items // ITEMS_PER_BLOCK)
    return [(n_blocks * i // parts, n_blocks * (i + 1) // parts) for i in range(parts)]


@part
def blocks_per_chunk(n_bytes: int) -> int:
    """Blocks that stay in the second cache while all queries of a batch pass over them."""
    return max(CHUNK_BYTES // (ITEMS_PER_BLOCK * n_bytes), 1)


@part
def blocks_ahead(n_bytes: int) -> int:
    """Blocks from the one that is read to the one that is fetched, for a query that is alone."""
    return max(BYTES_AHEAD // (ITEMS_PER_BLOCK * n_bytes), 1)


@part
def leaves_early(bound: Whole, n_bytes: int) -> bool:
    """Whether a query whose neighbours are so near reads most blocks sooner than bits are added."""
    return bool(16 * telling_bytes(bound + 1, n_bytes) <= COST * n_bytes)


@part
def is_worth_slicing(n_queries: Whole, n_bytes: int) -> bool:
    """Whether queries are so many that slicing the items costs less than it saves."""
    return bool(n_queries >= QUERIES_WORTH_SLICING and n_bytes <= LONGEST_SLICED)


# ----------------------------------------------------------------------------------------- nearest


def nearest(codes: Codes, items: Items, k: int) -> tuple[Counts, Integers]:
    """Find the ``k`` nearest items of each code (all, if there are fewer), nearest first.

    Returns distances and positions, (n_queries, k). Of equal distances, the lowest key comes first.
    """
    k = min(k, items.live)
    distances = np.empty((len(codes), k), np.int32)
    positions = np.empty((len(codes), k), np.int64)
    if k == 0:
        return distances, positions
    if len(items.allowed) and is_worth_gathering(items, len(codes)):
        few, at = gathered(items)
        distances, positions = nearest(codes, few, k)
        return distances, at[positions]
    codes = np.array(codes, order="C")  # a read-only array would be another type to the kernels
    batches = query_batches(len(codes))
    ranges = item_ranges(items.size, len(batches))

    def search(batch: Batch) -> None:
        start, stop = batch
        kept = np.empty((len(ranges), stop - start, min(2 * k + 256, items.size)), np.uint64)
        n_kept = np.zeros(kept.shape[:2], np.int64)
        asked, found = codes[start:stop], (distances[start:stop], positions[start:stop])
        run_blocks(
            lambda r: _search_range(asked, items, k, *ranges[r], r, kept, n_kept, *found),
            range(len(ranges)),
        )
        if len(ranges) > 1:
            _arrange_batch(kept, n_kept, items, *found)

    if len(ranges) == 1:
        run_blocks(search, batches)
    else:  # the threads share the items of one batch after the other
        for batch in batches:
            search(batch)
    return distances, positions


@kernel
def _search_range(
    codes: Codes,
    items: Items,
    k: int,
    first: int,
    last: int,
    r: int,
    all_kept: Packed,
    all_n_kept: Integers,
    distances: Counts,
    positions: Integers,
) -> None:
    """Keep the nearest ``k`` at least, of the items in the blocks from ``first`` to ``last``.

    If there are no other ranges, put them in order at once.
    """
    # A bare 0 is a type of its own, for which kernels would be compiled once more.
    none, one, stride = np.int64(0), np.int64(1), np.int64(SAMPLE_STRIDE)
    queries, kept, n_kept = as_queries(codes), all_kept[r], all_n_kept[r]
    n, top = len(codes), 8 * codes.shape[1] + 1
    grouped = n - n % SMALLEST_GROUP  # the others are asked one by one
    share = k // SAMPLE_STRIDE + 1
    enough = share + 3 * np.int64(np.sqrt(share)) + 3  # of the sample: farther than the k-th of all
    n_items = (last - first) * ITEMS_PER_BLOCK
    large = n_items >= SAMPLE_STRIDE * ITEMS_PER_BLOCK * 8
    first_bound = np.full(grouped, top, np.int64)
    if n >= QUERIES_PER_GROUP and large and enough * SAMPLE_STRIDE <= n_items // 4:
        # Few codes are so near that have nothing to do with a query: most need not be kept at all.
        likely = 4 * codes.shape[1] - np.int64(np.sqrt(8 * codes.shape[1]))
        spare = np.empty((grouped, 2 * enough + 256), np.uint64)
        bound = np.full(grouped, likely, np.int64)
        sample = _begin(spare, np.zeros(grouped, np.int64), bound, top)
        if is_worth_slicing(grouped, codes.shape[1]):
            _collect_sliced(codes[:grouped], items, first, last, stride, enough, sample)
        else:
            _collect(queries, none, items, first, last, stride, enough, sample)
        for q in range(grouped):
            if bound[q] < likely:
                first_bound[q] = bound[q] + 1
    order = np.arange(grouped)
    sort_by_key(order, first_bound)
    bound, n_found = first_bound[order], np.zeros(grouped, np.int64)
    found = np.empty((grouped, kept.shape[1]), np.uint64)
    # Queries with near neighbours come first, and leave many blocks early; the others may be many.
    early = np.int64(0)
    while early < grouped and leaves_early(bound[early], codes.shape[1]):
        early += SMALLEST_GROUP
    if not is_worth_slicing(grouped - early, codes.shape[1]):
        early = np.int64(grouped)
    if early > 0:
        candidates = _begin(found[:early], n_found[:early], bound[:early], top)
        some = as_queries(codes[order[:early]])
        _collect(some, none, items, first, last, one, k, candidates)
    if early < grouped:
        candidates = _begin(found[early:], n_found[early:], bound[early:], top)
        _collect_sliced(codes[order[early:]], items, first, last, one, k, candidates)
    enough_found = np.zeros(n, np.bool_)
    for i in range(grouped):
        q = order[i]
        n_kept[q] = n_found[i]
        for j in range(n_found[i]):
            kept[q, j] = found[i, j]
        enough_found[q] = first_bound[q] == top or bound[i] < first_bound[q]
    for q in range(n):
        if enough_found[q]:
            continue  # else too few are nearer than its first bound: again, without it
        n_kept[q] = 0
        alone = _begin(kept[q : q + 1], n_kept[q : q + 1], np.full(1, top, np.int64), top)
        _collect_alone(queries, q, items, first, last, one, k, alone)
    if len(all_kept) == 1:
        _arrange_batch(all_kept, all_n_kept, items, distances, positions)


@kernel
def _begin(kept: Packed, n_kept: Integers, bound: Integers, top: int) -> _Candidates:
    n = len(kept)
    limits = np.empty(2 * n, np.uint16)
    for q in range(n):
        limits[q], limits[n + q] = bound[q], bound[q] + 1
    tally, nearer = np.zeros((n, top + 1), np.int64), np.zeros(n, np.int64)
    return _Candidates(kept, n_kept, tally, nearer, bound, limits, np.full(n, LAST_KEY, np.int64))


@kernel
def _shrink(
    kept: Packed, q: Whole, bound: int, wanted: int, keys: Integers, worst: Integers
) -> int:
    """Drop what is farther than the bound, and as far all but the ``wanted`` lowest keys."""
    ties, n_ties = np.empty(kept.shape[1], np.int64), 0
    for packed in kept[q]:
        if np.int64(packed >> DISTANCE_SHIFT) == bound:
            ties[n_ties] = packed & POSITION_MASK
            n_ties += 1
    sort_by_key(ties[:n_ties], keys)
    worst[q] = keys[ties[wanted - 1]]
    n = 0
    for packed in kept[q]:
        distance = np.int64(packed >> DISTANCE_SHIFT)
        if distance < bound or (distance == bound and keys[packed & POSITION_MASK] <= worst[q]):
            kept[q, n] = packed
            n += 1
    return n


@kernel
def _keep(seen: Packed, seen_by: Integers, items: Items, k: Whole, candidates: _Candidates) -> None:
    """Keep of what was seen to be near by queries what may be among their nearest ``k``."""
    keys, deleted, ordered, moment = items.keys, items.deleted, items.ordered, items.moment
    kept, n_kept, tally, nearer, bound, limits, worst = candidates
    n, capacity = kept.shape
    for i in range(len(seen)):
        packed, q = seen[i], seen_by[i]
        distance, position = np.int64(packed >> DISTANCE_SHIFT), np.int64(packed & POSITION_MASK)
        if distance > bound[q]:  # which may have fallen since
            continue
        if len(deleted) > 0 and deleted[position] <= moment:
            continue
        if distance == bound[q] and (position < ordered or keys[position] > worst[q]):
            continue
        if n_kept[q] == capacity:
            n_kept[q] = _shrink(kept, q, bound[q], k - nearer[q], keys, worst)
            if distance == bound[q] and keys[position] > worst[q]:
                continue
        kept[q, n_kept[q]] = packed
        n_kept[q] += 1
        tally[q, distance] += 1
        if distance < bound[q]:
            nearer[q] += 1
            while nearer[q] >= k:
                bound[q] -= 1
                nearer[q] -= tally[q, bound[q]]
                worst[q] = LAST_KEY
            limits[q], limits[n + q] = bound[q], bound[q] + 1


def _collecting(*, alone: bool) -> Callable[..., None]:
    """Make the loop for groups of queries, or the one for a single query, a third faster alone."""

    @kernel
    def collect(
        queries: Queries,
        start: Whole,
        items: Items,
        first: Whole,
        last: Whole,
        stride: Whole,
        k: Whole,
        candidates: _Candidates,
    ) -> None:
        """Pass over every ``stride``-th block, and keep what may be among the ``k`` nearest."""
        # All arrays get names first, and no slice gets one in the loop: numba counts references
        # each time, which would cost more than the work. For the same reason it is one long loop.
        one = np.int64(1)
        n = int(candidates.kept.shape[0])
        codes, tables = queries.codes[start : start + n], queries.tables[start : start + n]
        n_bytes = codes.shape[1]
        planes, size, ordered, allowed = items.planes, items.size, items.ordered, items.allowed
        bound, limits = candidates.bound, candidates.limits
        seen, seen_by = np.empty(SEEN_AT_A_TIME, np.uint64), np.empty(SEEN_AT_A_TIME, np.int64)
        n_seen = 0
        out = np.empty(QUERIES_PER_GROUP * ITEMS_PER_BLOCK, np.uint16)
        masks = np.zeros(N_MASKS, np.uint64)
        step, ahead = blocks_per_chunk(n_bytes) * stride, blocks_ahead(n_bytes) * stride
        is_streamed = n == 1 and n_bytes > SHORT_CODE
        whole = np.zeros(n, np.int64)  # chunks that the group from a query on still reads whole
        for chunk in range(first, last, step):
            q: Whole = 0
            while q < n:
                group: Whole = one if alone else group_size(int(n - q))
                farthest = bound[q]
                for other in range(q + 1, q + group):
                    farthest = max(farthest, bound[other])
                telling = n_bytes
                if whole[q] == 0 and not is_streamed:
                    telling = telling_bytes(farthest + 1, n_bytes)
                whole[q] = max(whole[q] - 1, 0)
                masks[QUERIES_PER_GROUP] = 0
                for block in range(chunk, min(chunk + step, last), stride):
                    if is_streamed:
                        fetch_next(planes, block + ahead)
                    elif q == 0 and group > 1:
                        fetch(planes, block + step)
                    if len(allowed) > 0 and allowed[block] == 0:
                        continue
                    at = q if ITEMS_PER_BLOCK * (block + 1) <= ordered else n + q
                    some = look(
                        group, planes, codes, tables, block, q, limits, at, telling, out, masks
                    )
                    if some == 0:
                        continue
                    for g in range(group):
                        mask = masks[g] & (
                            allowed[block] if len(allowed) > 0 else in_use(size, block)
                        )
                        while mask != 0:
                            place = first_bit(mask)
                            mask &= mask - ONE
                            distance = np.uint64(out[ITEMS_PER_BLOCK * g + place])
                            position = np.uint64(ITEMS_PER_BLOCK * block + place)
                            seen[n_seen] = (distance << DISTANCE_SHIFT) | position
                            seen_by[n_seen] = q + g
                            n_seen += 1
                    if n_seen + group * ITEMS_PER_BLOCK > SEEN_AT_A_TIME:
                        _keep(seen[:n_seen], seen_by, items, k, candidates)
                        n_seen = 0
                if n_seen > 0:
                    _keep(seen[:n_seen], seen_by, items, k, candidates)
                    n_seen = 0
                n_looks = group * (min(step, last - chunk) // stride)
                if telling < n_bytes and 3 * np.int64(masks[QUERIES_PER_GROUP]) > n_looks:
                    whole[q] = CHUNKS_TO_THE_END
                q += group

    return collect


_collect, _collect_alone = _collecting(alone=False), _collecting(alone=True)


@part
def _are_allowed(allowed: Words, start: Whole, end: Whole, stride: Whole) -> np.uint64:
    """Which of every ``stride``-th block have items that are allowed, as bits."""
    some, bit = np.uint64(0), ONE
    for block in range(start, end, stride):
        if len(allowed) == 0 or allowed[block] != 0:
            some |= bit
        bit <<= ONE
    return some


@kernel
def _collect_sliced(
    codes: Codes,
    items: Items,
    first: Whole,
    last: Whole,
    stride: Whole,
    k: Whole,
    candidates: _Candidates,
) -> None:
    """Do as ``_collect`` for many queries, by slices of the items: every bit is added up."""
    planes, size, ordered, allowed = items.planes, items.size, items.ordered, items.allowed
    limits, n, n_bytes = candidates.limits, np.int64(len(codes)), codes.shape[1]
    seen, seen_by = np.empty(SEEN_AT_A_TIME, np.uint64), np.empty(SEEN_AT_A_TIME, np.int64)
    n_seen = 0
    carries, query_parity = as_choices(codes)
    table, queue = new_table(n_bytes), new_queue(n_bytes)
    sums = np.empty((N_DIGITS + 1, BLOCKS_PER_SLICE), np.uint64)
    for start in range(first, last, BLOCKS_PER_SLICE * stride):
        end = min(start + BLOCKS_PER_SLICE * stride, last)
        there = _are_allowed(allowed, start, end, stride)
        if there == 0:
            continue
        put_carries(planes, start, end, stride, queue, table)
        at = np.int64(0) if ITEMS_PER_BLOCK * end <= ordered else n
        for q in range(n):
            limit = np.int64(limits[at + q])
            near = add_carries(table, carries, q, first_sum(limit), sums) & there
            while near != 0:
                w = first_bit(near)
                near &= near - ONE
                block, parity = start + stride * w, queue[-1, w] ^ query_parity[q]
                mask = are_nearer(sums, w, parity, limit)
                mask &= allowed[block] if len(allowed) > 0 else in_use(size, block)
                while mask != 0:
                    place = first_bit(mask)
                    mask &= mask - ONE
                    distance = np.uint64(distance_of(sums, w, parity, place, limit))
                    position = np.uint64(ITEMS_PER_BLOCK * block + place)
                    seen[n_seen] = (distance << DISTANCE_SHIFT) | position
                    seen_by[n_seen] = q
                    n_seen += 1
            if n_seen + BLOCKS_PER_SLICE * ITEMS_PER_BLOCK > SEEN_AT_A_TIME:
                _keep(seen[:n_seen], seen_by, items, k, candidates)
                n_seen = 0
    if n_seen > 0:
        _keep(seen[:n_seen], seen_by, items, k, candidates)


@kernel
def _arrange_batch(
    kept: Packed, n_kept: Integers, items: Items, distances: Counts, positions: Integers
) -> None:
    """Put the nearest of the candidates of every range into the rows of their queries."""
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
        _arrange(together, items, top, distances[q], positions[q])


# ------------------------------------------------------------------------------------------ within


def within(codes: Codes, items: Items, radius: int) -> tuple[Integers, Counts, Integers]:
    """Find every item at most ``radius`` from each code, nearest first, then the lowest key first.

    Returns limits, distances, positions: those of query ``q`` stand from ``limits[q]`` on.
    """
    if len(items.allowed) and is_worth_gathering(items, len(codes)):
        few, at = gathered(items)
        limits, distances, positions = within(codes, few, radius)
        return limits, distances, at[positions]
    codes = np.array(codes, order="C")  # a read-only array would be another type to the kernels
    radius = min(radius, 8 * codes.shape[1])
    batches = query_batches(len(codes))
    ranges = item_ranges(items.size, len(batches))
    tasks = [(slice(*batch), i) for batch in batches for i in range(len(ranges))]
    n_bytes = codes.shape[1]
    sliced = not leaves_early(radius, n_bytes) and is_worth_slicing(
        max((stop - start for start, stop in batches), default=0), n_bytes
    )
    gather_near = _gather_sliced if sliced else _gather

    def gather(packed: Packed, starts: Integers, ends: Integers) -> Integers:
        found = starts.copy()

        def gather_range(task: tuple[slice, int]) -> None:
            rows, i = task
            at = starts[rows, i].copy()
            ends_of_range = ends[rows, i].copy()
            gather_near(codes[rows], items, radius, *ranges[i], packed, at, ends_of_range)
            found[rows, i] = at

        run_blocks(gather_range, tasks)
        return found - starts

    shape = len(codes), len(ranges)
    room = min(FIRST_ROOM // max(len(codes) * len(ranges), 1), ROOM_OF_QUERY, items.size)
    packed = np.empty(room * shape[0] * shape[1], np.uint64)
    starts = room * np.arange(shape[0] * shape[1]).reshape(shape)
    counts = gather(packed, starts, starts + room)
    ends = counts.cumsum().reshape(shape)
    limits = np.append(0, ends[:, -1])
    if counts.max(initial=0) <= room:
        packed = packed.reshape(counts.size, room)[np.arange(room) < counts.reshape(-1, 1)]
    else:
        packed = np.empty(counts.sum(), np.uint64)
        gather(packed, ends - counts, ends)
    distances, positions = np.empty(len(packed), np.int32), np.empty(len(packed), np.int64)

    def arrange(batch: Batch) -> None:
        _arrange_rows(packed, items, limits[batch[0] : batch[1] + 1], distances, positions)

    run_blocks(arrange, batches)
    return limits, distances, positions


@kernel
def _gather(
    codes: Codes,
    items: Items,
    radius: int,
    first: int,
    last: int,
    packed: Packed,
    at: Integers,
    ends: Integers,
) -> None:
    """Write items within the radius to ``packed`` from ``at[q]`` on, which moves with them.

    From ``ends[q]`` on they are counted only. Items are those of the blocks ``first`` to ``last``.
    """
    n, n_bytes = codes.shape
    is_streamed = n == 1 and n_bytes > SHORT_CODE
    telling = n_bytes if is_streamed else telling_bytes(radius + 1, n_bytes)
    tables = as_queries(codes).tables
    planes, _, deleted, size, _, _, moment, allowed = items
    limits = np.full(n, radius + 1, np.uint16)
    out = np.empty(QUERIES_PER_GROUP * ITEMS_PER_BLOCK, np.uint16)
    masks = np.zeros(N_MASKS, np.uint64)
    step, ahead = blocks_per_chunk(n_bytes), blocks_ahead(n_bytes)
    for chunk in range(first, last, step):
        q = 0
        while q < n:
            group = group_size(n - q)
            for block in range(chunk, min(chunk + step, last)):
                if is_streamed:
                    fetch_next(planes, block + ahead)
                elif q == 0 and group > 1:
                    fetch(planes, block + step)
                if len(allowed) > 0 and allowed[block] == 0:
                    continue
                some = look(group, planes, codes, tables, block, q, limits, q, telling, out, masks)
                if some == 0:
                    continue
                for g in range(group):
                    mask = masks[g] & (allowed[block] if len(allowed) > 0 else in_use(size, block))
                    r = q + g
                    if at[r] >= ends[r] and len(deleted) == 0:
                        at[r] += bits_in(mask)
                        continue
                    while mask != 0:
                        place = first_bit(mask)
                        mask &= mask - ONE
                        position = ITEMS_PER_BLOCK * block + place
                        if len(deleted) > 0 and deleted[position] <= moment:
                            continue
                        if at[r] < ends[r]:
                            distance = np.uint64(out[ITEMS_PER_BLOCK * g + place])
                            packed[at[r]] = (distance << DISTANCE_SHIFT) | np.uint64(position)
                        at[r] += 1
            q += group


@kernel
def _gather_sliced(
    codes: Codes,
    items: Items,
    radius: int,
    first: int,
    last: int,
    packed: Packed,
    at: Integers,
    ends: Integers,
) -> None:
    """Do as ``_gather`` for many queries, by slices of the items."""
    planes, _, deleted, size, _, _, moment, allowed = items
    n_bytes, limit, one = codes.shape[1], np.int64(radius + 1), np.int64(1)
    carries, query_parity = as_choices(codes)
    table, queue = new_table(n_bytes), new_queue(n_bytes)
    sums = np.empty((N_DIGITS + 1, BLOCKS_PER_SLICE), np.uint64)
    for start in range(first, last, BLOCKS_PER_SLICE):
        end = min(start + BLOCKS_PER_SLICE, last)
        there = _are_allowed(allowed, start, end, one)
        if there == 0:
            continue
        put_carries(planes, start, end, one, queue, table)
        for q in range(len(codes)):
            near = add_carries(table, carries, q, first_sum(limit), sums) & there
            while near != 0:
                w = first_bit(near)
                near &= near - ONE
                block, parity = start + w, queue[-1, w] ^ query_parity[q]
                mask = are_nearer(sums, w, parity, limit)
                mask &= allowed[block] if len(allowed) > 0 else in_use(size, block)
                if at[q] >= ends[q] and len(deleted) == 0:
                    at[q] += bits_in(mask)
                    continue
                while mask != 0:
                    place = first_bit(mask)
                    mask &= mask - ONE
                    position = ITEMS_PER_BLOCK * block + place
                    if len(deleted) > 0 and deleted[position] <= moment:
                        continue
                    if at[q] < ends[q]:
                        distance = np.uint64(distance_of(sums, w, parity, place, limit))
                        packed[at[q]] = (distance << DISTANCE_SHIFT) | np.uint64(position)
                    at[q] += 1


@kernel
def _arrange_rows(
    packed: Packed, items: Items, limits: Integers, distances: Counts, positions: Integers
) -> None:
    top = 8 * items.planes.shape[1] + 1
    for q in range(len(limits) - 1):
        begin, end = limits[q], limits[q + 1]
        _arrange(packed[begin:end], items, top, distances[begin:end], positions[begin:end])


# ----------------------------------------------------------------------------------------- sorting


@kernel
def sort_by_key(positions: Integers, keys: Integers) -> None:
    """Sort positions by their keys, in place: a heap sort, as NumPy's take seconds to compile."""
    start, end = len(positions) // 2, len(positions)
    while end > 1:
        if start > 0:  # the heap is still growing
            start -= 1
        else:
            end -= 1
            positions[0], positions[end] = positions[end], positions[0]
        root = start
        while 2 * root + 1 < end:
            child = 2 * root + 1
            if child + 1 < end and keys[positions[child]] < keys[positions[child + 1]]:
                child += 1
            if keys[positions[root]] >= keys[positions[child]]:
                break
            positions[root], positions[child] = positions[child], positions[root]
            root = child


@kernel
def _arrange(
    packed: Packed, items: Items, top: int, distances: Counts, positions: Integers
) -> None:
    """Put the nearest in order: by distance, then by key."""
    ends = np.zeros(top + 1, np.int64)  # where the next item at each distance goes
    for one in packed:
        ends[(one >> DISTANCE_SHIFT) + ONE] += 1
    for distance in range(top):
        ends[distance + 1] += ends[distance]
    placed, loose = np.empty(len(packed), np.int64), False
    for one in packed:
        distance, position = one >> DISTANCE_SHIFT, np.int64(one & POSITION_MASK)
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
            sort_by_key(placed[begin:end], items.keys)
        for i in range(begin, min(end, len(positions))):
            distances[i], positions[i] = distance, placed[i]
        begin = end


# ----------------------------------------------------------------------------------- plain twins


def _plain_rankings(codes: Codes, items: Items) -> Iterator[tuple[Integers, Integers]]:
    """Distances and positions of what is there, in order, for one code after the other."""
    there = places(items)
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
