"""Exact search by Hamming distance: ours against the libraries that a person could pick instead.

One thread each, all in one run, rounds interleaved, the least processor time of each; distances
are checked to be equal (ids too, where the peer breaks ties by the lowest). One query is asked
three times in a round, as a library that searches all day finds its codes where its own last
search left them, not where another library's did. Peers that are not installed are left out. Read
the ratios: they hold on other machines, the seconds do not.

*Clustered* codes lie around 1,000 centres, each bit flipped with probability 1/8; *uniform* codes
are random bits, where nothing can be left early; *learned* ones are SDOH's of MiniPlaces, 256 and
512 bits, learned from 10,000 of its rows: items are rows with noise of .3 deviations, to have
enough of them, queries are other rows. They are left out where the data set is not there.

* the k nearest of 1 and 200 queries, and all within a radius, in codes of 64 to 512 bits: faiss
* the same of 64 bits: NumPy, usearch, torch
* the kernel beside itself without the argument for a filter
* one query on two threads among ten million codes, by the clock, beside two threads that read the
  same bytes and do nothing else: what memory allows for. It means something on idle cores only.

The *limit* is the loops of ours alone (``slices``), the codes in the cache and none of them near:
what adding up all bits costs if nothing is left early.

    python benchmarks/search.py [--quick | --keep]

Two to four minutes; --quick, with 100,000 codes, half a minute. --keep writes the rows to
results/benchmarks, in place of those that this machine left there.
"""

import importlib
import inspect
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from _machine import describe_machine, keep_rows
from streamhash import SDOH, HammingIndex, set_threads
from streamhash.kernels.hamming import scan
from streamhash.kernels.hamming.planes import ITEMS_PER_BLOCK, Planes, to_planes
from streamhash.kernels.hamming.slices import (
    BLOCKS_PER_SLICE,
    N_DIGITS,
    add_carries,
    as_choices,
    first_sum,
    new_queue,
    new_table,
    put_carries,
)
from streamhash.lab.datasets import available, load_data
from streamhash.threads import run_blocks, single_threaded_blas

QUICK, KEEP = "--quick" in sys.argv, "--keep" in sys.argv
N_ITEMS, N_MANY = (100_000, 1_000_000) if QUICK else (1_000_000, 10_000_000)
BITS, QUERIES, K, N_CLUSTERS = (64, 128, 256, 512), (1, 200), 100, 1_000
LEARNED_BITS, N_LEARNED_FROM, NOISE, PIECE = (256, 512), 10_000, 0.3, 50_000
SLOW_QUERIES = 20  # that a peer that is many times slower is asked at most

Codes = NDArray[np.uint8]
Answer = tuple[NDArray[Any], NDArray[Any] | None]  # distances, and ids if ties go to the lowest
Search = Callable[[Codes, int], Answer]
Clock = Callable[[], float]
Row = dict[str, Any]


@cache
def learned(n: int, n_bits: int) -> tuple[Codes, Codes]:
    """Items and queries that SDOH has coded."""
    places, rng = load_data("miniplaces-features"), np.random.default_rng(n_bits)
    order = rng.permutation(len(places.X))
    asked, rows = order[: max(QUERIES)], order[max(QUERIES) :]
    hasher = SDOH(n_bits).fit(places.X[rows[:N_LEARNED_FROM]], places.y[rows[:N_LEARNED_FROM]])
    spread, codes = NOISE * places.X.std(axis=0), []
    for start in range(0, n, PIECE):
        drawn = places.X[rng.choice(rows, min(PIECE, n - start))]
        codes.append(hasher.transform(drawn + spread * rng.standard_normal(drawn.shape)))
    return np.concatenate(codes), hasher.transform(places.X[asked])


def make(n: int, n_bits: int, data: str) -> tuple[Codes, Codes]:
    """Items and queries, around common centres, anywhere, or learned."""
    if data == "learned":
        return learned(n, n_bits)
    rng = np.random.default_rng(n_bits)
    centres = rng.integers(0, 256, (N_CLUSTERS, n_bits // 8), dtype=np.uint8)

    def draw(n: int) -> Codes:
        if data == "uniform":
            return rng.integers(0, 256, (n, n_bits // 8), dtype=np.uint8)
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


# name: (how, the module it needs); those after faiss are many times slower
PEERS: dict[str, tuple[Callable[[Codes, int], Search], str]] = {
    "streamhash": (ours, "streamhash"),
    "faiss": (by_faiss, "faiss"),
    "NumPy": (by_numpy, "numpy"),
    "usearch": (by_usearch, "usearch"),
    "torch": (by_torch, "torch"),
}


@numba.njit(nogil=True)
def add_only(planes: Planes, codes: Codes, limit: int, times: int) -> np.uint64:
    """Do what a search does with sliced items of which none is near, and nothing else."""
    n_bytes, some = codes.shape[1], np.uint64(0)
    carries, _ = as_choices(codes)
    table, queue = new_table(n_bytes), new_queue(n_bytes)
    sums = np.empty((N_DIGITS + 1, BLOCKS_PER_SLICE), np.uint64)
    for _ in range(times):
        put_carries(planes, 0, len(planes), 1, queue, table)
        for q in range(len(codes)):
            some |= add_carries(table, carries, q, first_sum(limit), sums)
    return some


def least(calls: dict[str, Callable[[], Any]], rounds: int, clock: Clock) -> dict[str, float]:
    """The least time of each, in turns."""
    seconds = dict.fromkeys(calls, np.inf)
    for _ in range(rounds):
        for name, call in calls.items():
            start = clock()
            call()
            seconds[name] = min(seconds[name], clock() - start)
    return seconds


def in_turns(calls: dict[str, Callable[[], Any]], n_queries: int, rounds: int) -> dict[str, float]:
    """The least processor time of each; one query is asked in threes."""
    if n_queries > 1:
        return least(calls, 5 if rounds > 5 else 2, time.process_time)
    seconds = dict.fromkeys(calls, np.inf)
    for _ in range(rounds):
        for name, call in calls.items():
            taken = least({name: call}, 3, time.process_time)[name]
            seconds[name] = min(seconds[name], taken)
    return seconds


def limit(items: Codes, n_queries: int) -> float:
    """Seconds for all items if none is near, and none has to be brought into the cache."""
    few, codes = to_planes(items[: BLOCKS_PER_SLICE * ITEMS_PER_BLOCK]), ~items[-n_queries:]
    add_only(few, codes, 1, 1)  # compile
    taken = least({"": lambda: add_only(few, codes, 1, 10)}, 15, time.process_time)[""]
    return taken / (10 * BLOCKS_PER_SLICE * ITEMS_PER_BLOCK) * len(items)


def same(answers: dict[str, Answer]) -> None:
    distances, ids = answers["streamhash"]
    for name, (found, positions) in answers.items():
        np.testing.assert_array_equal(found, distances, err_msg=name)
        if positions is not None:
            np.testing.assert_array_equal(positions, ids, err_msg=name)


def nearest(data: str, n_bits: int, names: Sequence[str], n_queries: int) -> Iterator[Row]:
    """Ours and peers, the k nearest of one query or several."""
    items, queries = make(N_ITEMS, n_bits, data)
    queries = queries[:n_queries]
    searches = {name: PEERS[name][0](items, n_bits) for name in names}
    answers: dict[str, Answer] = {}

    def asking(name: str) -> Callable[[], None]:
        return lambda: answers.update({name: searches[name](queries, K)})

    calls = {name: asking(name) for name in names}
    seconds = in_turns(calls, n_queries, rounds=20 if len(names) == 2 else 5)
    same(answers)
    facts = {"part": "nearest", "data": data, "items": N_ITEMS, "bits": n_bits, "k": K}
    facts["queries"] = n_queries
    for name in names:
        row = {**facts, "who": name, "seconds": seconds[name]}
        if name == "streamhash" and n_queries > 1:
            row["limit"] = limit(items, n_queries)
        yield row


def within(data: str, n_bits: int, n_queries: int) -> Iterator[Row]:
    """All items as near as the hundredth of the middle query, ours and faiss's."""
    import faiss

    items, queries = make(N_ITEMS, n_bits, data)
    index, peer = HammingIndex(n_bits), faiss.IndexBinaryFlat(n_bits)
    index.add(None, items)
    peer.add(items)
    radius = int(np.median(index.search(queries, K)[0][:, -1]))
    queries = queries[:n_queries]
    seconds = in_turns(
        {
            "streamhash": lambda: index.range_search(queries, radius),
            "faiss": lambda: peer.range_search(queries, radius + 1),  # which is strict
        },
        n_queries,
        rounds=20,
    )
    found, limits = index.range_search(queries, radius), peer.range_search(queries, radius + 1)[0]
    np.testing.assert_array_equal(found[0], limits.astype(np.int64))
    facts = {"part": "within", "data": data, "items": N_ITEMS, "bits": n_bits, "radius": radius}
    facts["queries"], facts["found"] = n_queries, len(found[1]) / n_queries
    for name, taken in seconds.items():
        yield {**facts, "who": name, "seconds": taken}


def without_filter(folder: str) -> Any:
    """The module of the search kernel, the branches of filters taken out of its text."""
    text = inspect.getsource(scan)
    text = text.replace("if len(allowed) > 0 and allowed[block] == 0:", "if False:")
    text = text.replace("if len(allowed) == 0 or allowed[block] != 0:", "if True:")
    text = text.replace("allowed[block] if len(allowed) > 0 else in_use", "in_use")
    assert "len(allowed)" not in text
    path = Path(folder) / "scan_without_filter.py"
    path.write_text(text, encoding="utf-8")
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def filters() -> Iterator[Row]:
    """The search without a filter, by the kernel that can have one and by one that cannot."""
    with tempfile.TemporaryDirectory() as folder:
        plain = without_filter(folder)
        for n_bits in (64, 256):
            items, queries = make(N_ITEMS, n_bits, "clustered")
            index = HammingIndex(n_bits)
            index.add(None, items)
            seen = index.moment().items
            for n_queries in QUERIES:
                asked = queries[:n_queries]
                calls = {
                    "with the argument": lambda: scan.nearest(asked, seen, K),  # noqa: B023
                    "without": lambda: plain.nearest(asked, seen, K),  # noqa: B023
                }
                seconds = least(calls, 200 if n_queries == 1 else 10, time.process_time)
                for name, taken in seconds.items():
                    facts = {"part": "filter", "items": N_ITEMS, "bits": n_bits, "k": K}
                    yield {**facts, "queries": n_queries, "who": name, "seconds": taken}


def threads() -> Iterator[Row]:
    """One query on one and two threads, and reading the same bytes, by the clock."""
    for n_bits in (64, 128):
        items, queries = make(N_MANY, n_bits, "uniform")
        words = items.view(np.uint64).ravel()
        index = HammingIndex(n_bits)
        index.add(None, items)

        def read(n: int) -> None:
            cuts = np.linspace(0, len(words), n + 1).astype(int)  # noqa: B023
            parts = [words[cuts[i] : cuts[i + 1]] for i in range(n)]  # noqa: B023
            run_blocks(np.bitwise_xor.reduce, parts)

        def search(_: int) -> None:
            index.search(queries[:1], K)  # noqa: B023

        def on(n: int, work: Callable[[int], None]) -> Callable[[], None]:
            def call() -> None:
                set_threads(n)
                work(n)

            return call

        work = {"search": search, "reading": read}
        calls = {f"{name} {n}": on(n, work[name]) for name in work for n in (1, 2)}
        # Few rounds seldom find both cores free.
        seconds = least(calls, 50 if QUICK else 1000, time.perf_counter)
        set_threads(1)
        for label, taken in seconds.items():
            name, n = label.split()
            facts = {"part": "threads", "items": N_MANY, "bits": n_bits, "k": K, "queries": 1}
            yield {**facts, "who": name, "threads": int(n), "seconds": taken}


def measure() -> Iterator[Row]:
    there = [name for name, (_, module) in PEERS.items() if find_spec(module)]
    for name in PEERS.keys() - set(there):
        print(f"{name}: not installed, left out")
    quick_peers = [name for name in there if name in ("streamhash", "faiss")]
    widths: dict[str, tuple[int, ...]] = {"clustered": BITS, "uniform": BITS}
    if any(card.name == "miniplaces-features" for card in available()):
        widths["learned"] = LEARNED_BITS
    for data, bits in widths.items():
        for n_bits in bits:
            for n_queries in QUERIES:
                yield from nearest(data, n_bits, quick_peers, n_queries)
                if "faiss" in there:
                    yield from within(data, n_bits, n_queries)
    for n_queries in (1, SLOW_QUERIES):
        yield from nearest("clustered", 64, there, n_queries)
    yield from filters()
    yield from threads()


def line(row: Row, ours: dict[str, float]) -> str:
    """A row as text, with how many times ours it took."""
    asked = f"{row['items']:,} of {row['bits']} bits, {row['queries']}"
    if row["part"] == "threads":
        ratio = f"{ours['one'] / row['seconds']:.2f} times as fast as one"
        told = f"threads  {asked:<34} {row['who']} on {row['threads']}"
    else:
        ratio = f"{row['seconds'] / ours['first']:.2f}"
        told = f"{row['part']:<8} {asked:<34} {row.get('data', ''):<10} {row['who']}"
    limit = f"  limit {row['limit'] * 1e3:.2f} ms" if "limit" in row else ""
    return f"{told:<76} {row['seconds'] * 1e3:>10.3f} ms  {ratio}{limit}"


def main() -> None:
    set_threads(1)
    packages = {"faiss": "faiss-cpu", "usearch": "usearch", "torch": "torch"}
    print(describe_machine(*(packages[name] for name in packages if find_spec(name))))
    print("Least processor time on one thread, and how many times ours; threads: by the clock")
    kept, ours = [], {"first": 1.0, "one": 1.0}
    for row in measure():
        if row["who"] in ("streamhash", "with the argument"):
            ours["first"] = row["seconds"]
        if row.get("threads") == 1:
            ours["one"] = row["seconds"]
        print(line(row, ours), flush=True)
        kept.append(row)
    if KEEP and not QUICK:
        keep_rows("search", kept)


if __name__ == "__main__":
    with single_threaded_blas():
        main()
