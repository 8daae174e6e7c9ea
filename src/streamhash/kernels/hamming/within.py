"""Every item within a radius: counted first, then written to its place, so memory is exact.

``plain_within`` is the plain NumPy twin, of the same signature, that says by sorting what
``within`` computes.
"""

# numba's cache notices a change of this file, not of those it calls: touch it after editing them.

import numpy as np

from streamhash.codes import Codes
from streamhash.kernels.compile import kernel
from streamhash.kernels.hamming.items import (
    CHUNK,
    ONE,
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
)
from streamhash.kernels.hamming.planes import (
    GROUP,
    LANES,
    Queries,
    as_queries,
    bits_in,
    first_bit,
)
from streamhash.threads import run_blocks

__all__ = ["plain_within", "within"]


def within(codes: Codes, items: Items, radius: int) -> tuple[Integers, Counts, Integers]:
    """Find every item at most ``radius`` from each code, nearest first, then the lowest key first.

    Returns limits, distances, positions: those of query ``q`` stand from ``limits[q]`` on.
    """
    # A read-only array would be another type to the kernels.
    queries, n_queries = as_queries(np.array(codes, order="C")), len(codes)
    radius = min(radius, 8 * codes.shape[1])
    blocks = query_blocks(n_queries)
    ranges = item_ranges(items.size, len(blocks))
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
                if look_at(group, planes, codes, tables, block, q, limits, q, out, masks) == 0:
                    continue
                for g in range(group):
                    mask = masks[g] & in_use(size, block)
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
        arrange(packed[begin:end], items, top, distances[begin:end], positions[begin:end])


def plain_within(codes: Codes, items: Items, radius: int) -> tuple[Integers, Counts, Integers]:
    """Do as ``within``, by sorting."""
    near = [(d[d <= radius], p[d <= radius]) for d, p in plain_rankings(codes, items)]
    limits = np.cumsum([0, *(len(distances) for distances, _ in near)])
    distances = np.concatenate([np.empty(0, np.int32), *(d.astype(np.int32) for d, _ in near)])
    return limits, distances, np.concatenate([np.empty(0, np.int64), *(p for _, p in near)])
