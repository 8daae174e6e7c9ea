"""Exact search by Hamming distance: ours against the libraries that a person could pick instead.

One thread each, all in one run, rounds interleaved, the least processor time of each; distances
are checked to be equal (ids too, where the peer breaks ties by the lowest). One query is asked
three times in a round, as a library that searches all day finds its codes where its own last
search left them, not where another library's did. Peers that are not installed are left out. Read
the ratios: they hold on other machines, the seconds do not.

Beside them stand limits of the machine, in codes a second, from the same run. *Reading*: every word
once from memory (or the cache, as far as it is large enough), which is what one query needs at
least. For batches, whose codes lie in the cache: *popcount*, one instruction a word and a
comparison, which is not a limit to loops that look up half bytes of 32 codes at once; and *the
inner loop*, ours, when no item is near, so that nothing has to be kept.

    python benchmarks/search.py [--quick] [--threads]
"""

import importlib
import importlib.util
import sys
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from _machine import describe_machine
from streamhash import HammingIndex, set_threads
from streamhash.kernels.hamming.planes import (
    ITEMS_PER_BLOCK,
    QUERIES_PER_GROUP,
    Planes,
    Queries,
    as_queries,
    bits_in,
    look,
    to_planes,
)
from streamhash.threads import single_threaded_blas

QUICK = "--quick" in sys.argv
SIZES = (1_000_000,) if QUICK else (1_000_000, 10_000_000)
QUERIES, NEIGHBOURS, N_CLUSTERS = (1, 100, 1_000), (100, 1_000), 1_000
FLOATS = 2e8  # what torch, which has no bits, may hold
SLOW = 2e9  # distances that a peer that is many times slower is asked for at most

Codes = NDArray[np.uint8]
Answer = tuple[NDArray[Any], NDArray[Any] | None]  # distances, and ids if ties go to the lowest
Search = Callable[[Codes, int], Answer]


def make(n: int, n_bits: int) -> tuple[Codes, Codes]:
    """Items and queries around common centres, each bit flipped with probability 1/8."""
    rng = np.random.default_rng(n_bits)
    centres = rng.integers(0, 256, (N_CLUSTERS, n_bits // 8), dtype=np.uint8)

    def draw(n: int) -> Codes:
        noise = rng.integers(0, 256, (3, n, n_bits // 8), dtype=np.uint8)
        codes: Codes = centres[rng.integers(0, N_CLUSTERS, n)] ^ (noise[0] & noise[1] & noise[2])
        return codes

    return draw(n), draw(max(QUERIES))


def ours(items: Codes, n_bits: int) -> Search:
    index = HammingIndex(n_bits)
    index.add(None, items)
    return index.search


def by_faiss(items: Codes, n_bits: int) -> Search:
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexBinaryFlat(n_bits)
    index.add(items)
    return lambda queries, k: index.search(queries, k)


def by_numpy(items: Codes, n_bits: int) -> Search:
    words = np.ascontiguousarray(items.view(np.uint64).T)

    def search(queries: Codes, k: int) -> Answer:
        found = []
        for query in queries.view(np.uint64):
            distances = np.bitwise_count(words[0] ^ query[0])
            for w in range(1, n_bits // 64):
                distances += np.bitwise_count(words[w] ^ query[w])
            found.append(np.sort(distances[np.argpartition(distances, k - 1)[:k]]))
        return np.array(found), None

    return search


def by_usearch(items: Codes, _: int) -> Search:
    usearch: Any = importlib.import_module("usearch.index")

    def find(queries: Codes, k: int) -> Answer:
        metric = usearch.MetricKind.Hamming
        found = usearch.search(items, queries, k, metric, exact=True, threads=1, dtype="b1")
        return np.reshape(found.distances, (len(queries), k)), None

    return find


def by_torch(items: Codes, n_bits: int) -> Search:
    import torch

    torch.set_num_threads(1)
    signs = torch.from_numpy(np.unpackbits(items, axis=1)).float() * 2 - 1

    def search(queries: Codes, k: int) -> Answer:
        asked = torch.from_numpy(np.unpackbits(queries, axis=1)).float() * 2 - 1
        rows = [torch.topk(signs @ query, k).values for query in asked]
        return ((n_bits - torch.stack(rows)) / 2).numpy().astype(np.int32), None

    return search


# name: (how, the module it needs, how many times slower than faiss it is, about)
PEERS: dict[str, tuple[Callable[[Codes, int], Search], str, int]] = {
    "streamhash": (ours, "streamhash", 1),
    "faiss IndexBinaryFlat": (by_faiss, "faiss", 1),
    "NumPy bitwise_count + argpartition": (by_numpy, "numpy", 10),
    "usearch exact": (by_usearch, "usearch", 20),
    "torch ±1 product + topk": (by_torch, "torch", 20),
}


@numba.njit(nogil=True)
def count(words: NDArray[np.uint64], times: int, limit: np.uint64) -> int:
    """Compare words with one word after the other by a popcount instruction each.

    None differs in more than the limit of 64 bits; but a loop that might end is not made into
    one of vectors, which would look up half bytes, as ours does.
    """
    for query in range(times):
        for word in words:
            if bits_in(word ^ np.uint64(query)) > limit:
                return query
    return times


@numba.njit(nogil=True)
def look_only(planes: Planes, queries: Queries, times: int) -> np.uint64:
    """Do what a search does with items of which none is near, and nothing else."""
    limits, some = np.zeros(QUERIES_PER_GROUP, np.uint16), np.uint64(0)
    out, masks = (
        np.empty(QUERIES_PER_GROUP * ITEMS_PER_BLOCK, np.uint16),
        np.empty(QUERIES_PER_GROUP, np.uint64),
    )
    codes, tables = queries.codes, queries.tables
    n = codes.shape[1]
    for _ in range(times):
        for q in range(0, len(codes), QUERIES_PER_GROUP):
            for block in range(len(planes)):
                some |= look(
                    QUERIES_PER_GROUP, planes, codes, tables, block, q, limits, 0, n, out, masks
                )
    return some


def least_time(call: Callable[[], Any], rounds: int = 5) -> float:
    times = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def limits(items: Codes) -> dict[str, float]:
    """Codes a second that can be read from memory; and compared, when they lie in the cache."""
    words = np.ascontiguousarray(items).view(np.uint64).ravel()
    few, times, limit, words_a_code = words[:2048], 10_000, np.uint64(64), items.shape[1] / 8
    queries, planes = as_queries(items[: 16 * QUERIES_PER_GROUP]), to_planes(items[:2048])
    count(few, 1, limit), look_only(planes, queries, 1)  # compile
    # NumPy's loop reads as fast as any found: as fast as prefetching ones at ten million codes.
    reading = len(words) / least_time(lambda: np.bitwise_xor.reduce(words), 100)
    counting = len(few) * times / least_time(lambda: count(few, times, limit))
    looking = 2048 * len(queries.codes) * 100 / least_time(lambda: look_only(planes, queries, 100))
    return {
        "reading": reading / words_a_code,
        "popcount": counting / words_a_code,
        "the inner loop": looking,
    }


def compare(searches: dict[str, Search], queries: Codes, k: int, n_items: int) -> dict[str, float]:
    """Least processor time of each; those that would take too long are left out."""
    asked = {
        name: search
        for name, search in searches.items()
        if n_items * len(queries) * PEERS[name][2] <= SLOW or PEERS[name][2] == 1
    }
    rounds = 15 if len(queries) == 1 else 5 if n_items * len(queries) <= 1e8 else 2
    calls = 3 if len(queries) == 1 else 1
    seconds = dict.fromkeys(asked, np.inf)
    answers: dict[str, Answer] = {}
    for _ in range(rounds):
        for name, search in asked.items():
            for _ in range(calls):
                start = time.process_time()
                answers[name] = search(queries, k)
                seconds[name] = min(seconds[name], time.process_time() - start)
    distances, ids = answers["streamhash"]
    for name, (found, positions) in answers.items():
        np.testing.assert_array_equal(found, distances, err_msg=name)
        if positions is not None:
            np.testing.assert_array_equal(positions, ids, err_msg=name)
    return seconds


def scaling(items: Codes, queries: Codes, n_bits: int) -> None:
    """Wall time with two threads against one: means something on idle cores only."""
    search = ours(items, n_bits)
    for n_queries in (1, 100):
        wall = {1: np.inf, 2: np.inf}
        # Few rounds seldom find both cores free: of the same search, six gave 1.4, forty 1.9.
        for _ in range(40 if len(items) * n_queries <= 1e8 else 6):
            for threads in wall:
                set_threads(threads)
                start = time.perf_counter()
                search(queries[:n_queries], 100)
                wall[threads] = min(wall[threads], time.perf_counter() - start)
        set_threads(1)
        print(f"two threads, {n_queries} queries: {wall[1] / wall[2]:.2f} times as fast (wall)")


def main() -> None:
    set_threads(1)
    installed = {name: peer for name, peer in PEERS.items() if importlib.util.find_spec(peer[1])}
    packages = {"faiss": "faiss-cpu", "usearch": "usearch", "torch": "torch"}
    print(describe_machine(*(packages[p[1]] for p in installed.values() if p[1] in packages)))
    for name in PEERS.keys() - installed.keys():
        print(f"{name}: not installed, left out")
    print("Milliseconds of processor time, one thread; in brackets, how many times ours")
    for n_items in SIZES:
        for n_bits in (64, 128):
            items, queries = make(n_items, n_bits)
            limit = limits(items)
            shown = ", ".join(f"{name} {rate / 1e9:.2f} G" for name, rate in limit.items())
            print(f"\n{n_items:,} codes of {n_bits} bits; limits, codes/s: {shown}")
            searches = {
                name: peer[0](items, n_bits)
                for name, peer in installed.items()
                if peer[1] != "torch" or n_items * n_bits <= FLOATS
            }
            for n_queries in QUERIES:
                for k in NEIGHBOURS:
                    seconds = compare(searches, queries[:n_queries], k, n_items)
                    fastest = seconds["streamhash"]
                    rate = n_items * n_queries / fastest
                    kinds = ("reading",) if n_queries == 1 else ("popcount", "the inner loop")
                    shares = ", ".join(f"{rate / limit[kind]:.0%} of {kind}" for kind in kinds)
                    asked = f"  {n_queries:>5} queries, k = {k:<5}"
                    print(f"{asked} {rate / 1e9:>5.2f} G codes/s, {shares}")
                    for name, taken in seconds.items():
                        print(f"    {name:<36}{taken * 1e3:>10.2f}  ({taken / fastest:.2f})")
            if "--threads" in sys.argv:
                scaling(items, queries, n_bits)


if __name__ == "__main__":
    with single_threaded_blas():
        main()
