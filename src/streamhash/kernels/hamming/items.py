"""What both searches share: the items, how work is cut, and how what was found is put in order."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes
from streamhash.kernels.compile import kernel, part
from streamhash.kernels.hamming.planes import (
    GROUP,
    LANES,
    Distances,
    Planes,
    look,
    look_once,
    n_blocks,
    plain_distances,
)
from streamhash.threads import get_threads

__all__ = [
    "ALIVE",
    "Items",
    "arrange",
    "in_use",
    "item_ranges",
    "look_at",
    "plain_rankings",
    "query_blocks",
    "sort_by_key",
]

Counts = NDArray[np.int32]
Integers = NDArray[np.int64]
Packed = NDArray[np.uint64]  # a distance in the upper 16 bits, a position in the lower 48

ALIVE = np.iinfo(np.int64).max  # in ``removed``: not removed yet
CHUNK = 32  # blocks: 2,048 items, 16 KB of 64-bit codes
BLOCK = 64  # queries that pass over a chunk one after the other
RANGE = 1 << 19  # items that are worth a thread of their own: a few tenths of a millisecond
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


def query_blocks(n_queries: int) -> list[tuple[int, int]]:
    """Cut queries into blocks of equal size: at least as many as threads, if that makes sense."""
    parts = max(-(-n_queries // BLOCK), min(get_threads(), -(-n_queries // (4 * GROUP))))
    size = -(-n_queries // max(parts, 1))
    size = -(-size // GROUP) * GROUP
    return [(start, min(start + size, n_queries)) for start in range(0, n_queries, max(size, 1))]


def item_ranges(n_items: int, n_blocks_of_queries: int) -> list[tuple[int, int]]:
    """Cut items into ranges of blocks, where there are more threads than blocks of queries."""
    parts = 1 if n_blocks_of_queries >= get_threads() else min(get_threads(), n_items // RANGE)
    stops = [n_blocks(n_items) * (i + 1) // max(parts, 1) for i in range(max(parts, 1))]
    return list(zip([0, *stops], stops, strict=False))


@part
def in_use(size: int, block: int) -> np.uint64:
    """A mask of the places of a block that are in use."""
    n = size - LANES * block
    return ~np.uint64(0) if n >= LANES else (ONE << np.uint64(n)) - ONE


@part
def look_at(
    group: int,
    planes: Planes,
    codes: Codes,
    tables: NDArray[np.uint8],
    block: int,
    q: int,
    limits: Distances,
    at: int,
    out: Distances,
    masks: Packed,
) -> np.uint64:
    """Do as ``look`` does for ``GROUP`` queries, or ``look_once`` for a group of one."""
    if group == GROUP:
        some: np.uint64 = look(planes, codes, tables, block, q, limits, at, out, masks)
    else:
        some = look_once(planes, codes, tables, block, q, limits, at, out, masks)
    return some


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
def arrange(packed: Packed, items: Items, top: int, distances: Counts, positions: Integers) -> None:
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
            sort_by_key(placed[begin:end], items.keys)
        for i in range(begin, min(end, len(positions))):
            distances[i], positions[i] = distance, placed[i]
        begin = end


def plain_rankings(codes: Codes, items: Items) -> Iterator[tuple[Integers, Integers]]:
    """Distances and positions of what is there, in order, for one code after the other."""
    there = np.arange(items.size)
    if len(items.removed):
        there = there[items.removed[: items.size] > items.moment]
    for distances in plain_distances(codes, items.planes, items.size):
        order = there[np.lexsort((items.keys[there], distances[there]))]
        yield distances[order], order
