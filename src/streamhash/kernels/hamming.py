"""Hamming distances and exact search, without sorting and in small memory.

Codes are held *word-major*, (n_words, n) of ``uint64``: the loop over items then reads one word of
many items in a row, which compilers turn into vector instructions for any code length. Distances
are made ``CHUNK`` at a time in a buffer that stays in the innermost cache; no array of queries ×
items exists. Queries are cut into fixed blocks that run on ``streamhash.threads``.

Every public kernel has a plain NumPy twin of the same signature, ``plain_…``, that says by sorting
what it computes.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from streamhash.kernels._compile import kernel
from streamhash.threads import run_blocks

__all__ = [
    "CHUNK",
    "by_blocks",
    "count_within",
    "measure",
    "nearest",
    "plain_count_within",
    "plain_distances",
    "plain_nearest",
    "word_major",
]

Words = NDArray[np.uint64]
Counts = NDArray[np.int32]
Buffer = NDArray[np.uint32]  # unsigned: an index that cannot be negative costs numba no test

CHUNK = 4096  # items: 16 KB of distances at a time
BLOCK = 16  # queries that one call of a kernel handles


def word_major(words: Words) -> Words:
    """Copy rows of words (n, n_words) into the layout of the kernels (n_words, n)."""
    return np.array(words.T, order="C", copy=True)


def by_blocks(n_queries: int, work: Callable[[int, int], Any]) -> None:
    """Call ``work(start, stop)`` on every block of queries, on as many threads as are set."""
    starts = range(0, n_queries, BLOCK)
    run_blocks(lambda start: work(start, min(start + BLOCK, n_queries)), starts)


def _count_ones(_: Any, word: Any) -> Any:
    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])  # one instruction, or a few over vectors

    return types.uint64(word), generate


_popcount: Any = intrinsic(_count_ones)


@kernel
def measure(queries: Words, q: int, items: Words, first: int, n: int, distances: Buffer) -> None:
    """Distances of query ``q`` from the ``n`` items after ``first``."""
    for w in range(len(items)):
        word, row = queries[w, q], items[w, first : first + n]
        if w == 0:
            for j in range(n):
                distances[j] = _popcount(word ^ row[j])
        else:
            for j in range(n):
                distances[j] += _popcount(word ^ row[j])


def plain_distances(queries: Words, items: Words) -> Iterator[NDArray[np.int64]]:
    """Distances of one query after the other from all items."""
    for q in range(queries.shape[1]):
        yield np.bitwise_count(queries[:, q : q + 1] ^ items).sum(axis=0, dtype=np.int64)


def count_within(queries: Words, items: Words, n_items: int, radius: int) -> NDArray[np.int64]:
    """Count the items, of the first ``n_items``, at most ``radius`` from each query."""
    counts = np.zeros(queries.shape[1], np.int64)
    by_blocks(
        len(counts),
        lambda start, stop: _count_within(queries, items, n_items, radius, start, stop, counts),
    )
    return counts


@kernel
def _count_within(
    queries: Words,
    items: Words,
    n_items: int,
    radius: int,
    start: int,
    stop: int,
    counts: NDArray[np.int64],
) -> None:
    distances = np.empty(CHUNK, np.uint32)
    for q in range(start, stop):
        for first in range(0, n_items, CHUNK):
            n = min(CHUNK, n_items - first)
            measure(queries, q, items, first, n, distances)
            for j in range(n):
                counts[q] += distances[j] <= radius


def plain_count_within(
    queries: Words, items: Words, n_items: int, radius: int
) -> NDArray[np.int64]:
    """Do as ``count_within``, plainly."""
    pairs = plain_distances(queries, items[:, :n_items])
    return np.array([(distances <= radius).sum() for distances in pairs], np.int64)


def nearest(
    queries: Words, items: Words, n_items: int, limits: NDArray[np.int64]
) -> tuple[Counts, NDArray[np.int64]]:
    """Find the nearest of the first ``n_items`` items, nearest first, ties in their given order.

    Query ``q`` gets ``limits[q + 1] - limits[q]`` of them (at most ``n_items``), whose distances
    and positions stand from ``limits[q]`` on.
    """
    distances = np.empty(limits[-1], np.int32)
    positions = np.empty(limits[-1], np.int64)
    by_blocks(
        queries.shape[1],
        lambda start, stop: _nearest(
            queries, items, n_items, limits, start, stop, distances, positions
        ),
    )
    return distances, positions


@kernel
def _nearest(
    queries: Words,
    items: Words,
    n_items: int,
    limits: NDArray[np.int64],
    start: int,
    stop: int,
    distances: Counts,
    positions: NDArray[np.int64],
) -> None:
    n_buckets = 64 * len(items) + 1
    chunk = np.empty(CHUNK, np.uint32)
    kept_distance, kept_position = np.empty(n_items, np.uint32), np.empty(n_items, np.int64)
    tally, place = np.empty(n_buckets, np.int64), np.empty(n_buckets, np.int64)
    for q in range(start, stop):
        wanted = limits[q + 1] - limits[q]
        tally[:] = 0
        n_kept = n_nearer = 0
        bound = n_buckets if wanted > 0 else 0  # as far, and it can no longer be among the wanted
        for first in range(0, n_items, CHUNK):
            n = min(CHUNK, n_items - first)
            measure(queries, q, items, first, n, chunk)
            for j in range(n):
                if chunk[j] < bound:
                    kept_distance[n_kept], kept_position[n_kept] = chunk[j], first + j
                    tally[chunk[j]] += 1
                    n_kept += 1
                    n_nearer += 1  # than the bound
                    while n_nearer >= wanted:
                        bound -= 1
                        n_nearer -= tally[bound]
        n_before = 0
        for distance in range(n_buckets):
            place[distance] = n_before
            n_before += tally[distance]
        for i in range(n_kept):
            distance = kept_distance[i]
            if place[distance] < wanted:
                distances[limits[q] + place[distance]] = distance
                positions[limits[q] + place[distance]] = kept_position[i]
            place[distance] += 1


def plain_nearest(
    queries: Words, items: Words, n_items: int, limits: NDArray[np.int64]
) -> tuple[Counts, NDArray[np.int64]]:
    """Do as ``nearest``, by sorting."""
    distances, positions = np.empty(limits[-1], np.int32), np.empty(limits[-1], np.int64)
    for q, all_distances in enumerate(plain_distances(queries, items[:, :n_items])):
        place = slice(limits[q], limits[q + 1])
        positions[place] = np.argsort(all_distances, kind="stable")[: place.stop - place.start]
        distances[place] = all_distances[positions[place]]
    return distances, positions
