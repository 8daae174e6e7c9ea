"""ann-benchmarks' protocol on Hamming data: our adapter, with faiss's binary indexes beside it.

ann-benchmarks itself runs each algorithm in a container, which needs docker. This script is ours;
it drives the same adapter (examples/ann_benchmarks) as its runner does: one process, one core,
``fit`` on the train set, ``set_query_arguments`` for each group, every query of the test set by
itself, the best of several runs; then all queries in one call (its batch mode). Recall@10 is by
distance, as its metrics have it: of an answer, what is no farther than the true tenth counts, so
that ties do no harm. Its speed is by the clock; processor time is kept beside it, which other
programs on the machine do not lengthen.

Data sets have its form (train, test, neighbors, distances, the attribute distance = hamming, in
HDF5) and lie in the cache, made here of what is at hand, 256 bits each:

- ``mnist-256-hamming``: 256 random projections of MNIST, as its sift-256-hamming has of SIFT;
- ``mnist-itq-256-hamming``, ``miniplaces-itq-256-hamming``: codes of ITQ, which has learned 5,000
  of the rows;
- ``mnist-sdoh-256-hamming``: codes of SDOH, of as many rows with labels: a class lies together.

A file of its own (sift-256-hamming.hdf5) does as well: pass its path.

    python benchmarks/ann_benchmarks.py [DATA ...] [--queries 200] [--runs 2]

Rows are kept in results/ann_benchmarks/hamming.jsonl, those of a set together, from one run; a set
that has some is not run again.
"""

import argparse
import datetime
import importlib.util
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import faiss
import h5py
import numpy as np
from numpy.typing import NDArray

from streamhash import HammingIndex, __version__, set_threads
from streamhash.codes import unpack
from streamhash.lab import append_row, make_hasher
from streamhash.lab.datasets import cache_folder, load_data
from streamhash.lab.run import describe_machine

ROOT = Path(__file__).parents[1]
ROWS = ROOT / "results" / "ann_benchmarks" / "hamming.jsonl"
BITS, COUNT, NEIGHBOURS, SEED = 256, 10, 100, 0
LEARNED, TRAIN, TEST = 5_000, 30_000, 1_000
SETS = {  # by name: data set, and the method whose codes it has
    "mnist-256-hamming": ("mnist", "lsh"),
    "mnist-itq-256-hamming": ("mnist", "itq"),
    "miniplaces-itq-256-hamming": ("miniplaces-features", "itq"),
    "mnist-sdoh-256-hamming": ("mnist", "sdoh"),
}

Bits = NDArray[np.bool_]


class Algorithm(NamedTuple):
    """A line of the plot: how it is made, and the groups of query arguments."""

    make: Callable[[], Any]
    groups: Sequence[tuple[int, ...]]


def make_data(name: str) -> Path:
    """Return the file of a data set, made if it is not there."""
    path = cache_folder() / "ann-benchmarks" / f"{name}.hdf5"
    if path.exists():
        return path
    source, method = SETS[name]
    data = load_data(source)
    order = np.random.default_rng(SEED).permutation(len(data.X))
    test, train = order[:TEST], order[TEST : TEST + TRAIN]
    hasher = make_hasher(method, BITS, SEED)
    learned = train[:LEARNED]
    hasher.partial_fit(data.X[learned], data.y[learned] if hasher.needs_labels else None)
    codes, asked = (hasher.transform(data.X[np.sort(rows)]) for rows in (train, test))
    index = HammingIndex(BITS)
    index.add(None, codes)
    distances, neighbours = index.search(asked, NEIGHBOURS)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with h5py.File(part, "w") as file:
        file.attrs.update({"distance": "hamming", "type": "dense", "dimension": BITS})
        file["train"], file["test"] = unpack(codes, BITS) != 0, unpack(asked, BITS) != 0
        file["neighbors"] = neighbours.astype(np.int32)
        file["distances"] = (distances / BITS).astype(np.float32)  # the share of bits that differ
    part.replace(path)
    return path


class FaissFlat:
    """faiss's exact binary index, as an algorithm of ann-benchmarks."""

    def fit(self, X: Bits) -> None:
        self.index = self.build(X.shape[1], np.packbits(X, axis=1))

    def build(self, bits: int, codes: NDArray[np.uint8]) -> Any:
        index = faiss.IndexBinaryFlat(bits)
        index.add(codes)
        return index

    def set_query_arguments(self, *arguments: int) -> None:
        """Take what a search is told; the exact index is told nothing."""

    def query(self, v: Bits, n: int) -> list[int]:
        return self.find(v[None], n)[0]

    def batch_query(self, X: Bits, n: int) -> None:
        self.results = self.find(X, n)

    def get_batch_results(self) -> list[list[int]]:
        return self.results

    def find(self, X: Bits, n: int) -> list[list[int]]:
        found = self.index.search(np.packbits(X, axis=1), n)[1]
        return [row[row >= 0].tolist() for row in found]

    def done(self) -> None:
        del self.index


class FaissIVF(FaissFlat):
    """faiss's binary index of buckets; its query argument is nprobe."""

    def __init__(self, n_lists: int) -> None:
        self.n_lists = n_lists

    def build(self, bits: int, codes: NDArray[np.uint8]) -> Any:
        self.quantizer = faiss.IndexBinaryFlat(bits)
        index = faiss.IndexBinaryIVF(self.quantizer, bits, self.n_lists)
        index.train(codes)
        index.add(codes)
        return index

    def set_query_arguments(self, *arguments: int) -> None:
        (self.index.nprobe,) = arguments


class FaissHNSW(FaissFlat):
    """faiss's binary graph; its query argument is efSearch."""

    def __init__(self, links: int) -> None:
        self.links = links

    def build(self, bits: int, codes: NDArray[np.uint8]) -> Any:
        index = faiss.IndexBinaryHNSW(bits, self.links)
        index.hnsw.efConstruction = 40
        index.add(codes)
        return index

    def set_query_arguments(self, *arguments: int) -> None:
        (self.index.hnsw.efSearch,) = arguments


def adapter() -> Any:
    """Return the module that plugs us into ann-benchmarks."""
    path = ROOT / "examples" / "ann_benchmarks" / "module.py"
    spec = importlib.util.spec_from_file_location("ann_benchmarks_module", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def algorithms() -> dict[str, Algorithm]:
    ours = adapter()
    probes = [(1,), (2,), (4,), (8,), (16,), (32,)]
    return {
        "streamhash-exact": Algorithm(lambda: ours.StreamhashExact("hamming"), [()]),
        "streamhash-buckets": Algorithm(lambda: ours.StreamhashBuckets("hamming", 256), probes),
        "faiss-flat": Algorithm(FaissFlat, [()]),
        "faiss-ivf": Algorithm(lambda: FaissIVF(256), probes),
        "faiss-hnsw": Algorithm(lambda: FaissHNSW(32), [(10,), (20,), (40,), (80,), (160,)]),
    }


def recall(
    answers: list[list[int]], train: Bits, test: Bits, distances: NDArray[np.float32]
) -> float:
    """Return the share of the ten that is no farther than the true tenth, as its metrics do."""
    limit = distances[:, COUNT - 1] + 1e-3
    found = [
        (np.mean(train[row[:COUNT]] != v, axis=1) <= t).sum()
        for row, v, t in zip(answers, test, limit, strict=True)
    ]
    return float(np.mean(found) / COUNT)


def run(name: str, path: Path, n_queries: int, n_runs: int) -> Iterator[dict[str, Any]]:
    with h5py.File(path, "r") as file:
        if file.attrs["distance"] != "hamming":
            raise SystemExit(f"{path}: its distance is {file.attrs['distance']}; take hamming.")
        train, test = file["train"][:], file["test"][:n_queries]
        distances = file["distances"][:n_queries]
    for algorithm, (make, groups) in algorithms().items():
        made = make()
        start, cpu = time.perf_counter(), time.process_time()
        made.fit(train)
        built = {"wall": time.perf_counter() - start, "cpu": time.process_time() - cpu}
        for arguments in groups:
            if arguments:
                made.set_query_arguments(*arguments)
            made.query(test[0], COUNT)  # compiled
            best, best_cpu, batch, batch_cpu = (float("inf"),) * 4
            for _ in range(n_runs):
                seconds, answers, cpu = 0.0, [], time.process_time()
                for v in test:
                    start = time.perf_counter()
                    answer = made.query(v, COUNT)
                    seconds += time.perf_counter() - start
                    answers.append(answer)
                best_cpu = min(best_cpu, (time.process_time() - cpu) / len(test))
                best = min(best, seconds / len(test))
                start, cpu = time.perf_counter(), time.process_time()
                made.batch_query(test, COUNT)
                batch = min(batch, (time.perf_counter() - start) / len(test))
                batch_cpu = min(batch_cpu, (time.process_time() - cpu) / len(test))
            found = [
                recall(each, train, test, distances) for each in (answers, made.get_batch_results())
            ]
            yield {
                "data": name,
                "algorithm": algorithm,
                "arguments": arguments,
                "items": len(train),
                "bits": train.shape[1],
                "queries": len(test),
                "count": COUNT,
                "runs": n_runs,
                "recall": found[0],
                "batch_recall": found[1],
                "seconds": {"query": best, "query_cpu": best_cpu},
                "batch_seconds": {"query": batch, "query_cpu": batch_cpu},
                "build_seconds": built,
                "seed": SEED,
                "version": __version__,
                "faiss": faiss.__version__,
                "machine": describe_machine(),
                "load": os.getloadavg()[0],
                "date": str(datetime.datetime.now(datetime.UTC).date()),
            }
        made.done()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=[*SETS])
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=ROWS)
    arguments = parser.parse_args()
    set_threads(1)
    faiss.omp_set_num_threads(1)
    if hasattr(os, "sched_setaffinity"):  # as its runner does
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    there = (
        {json.loads(line)["data"] for line in arguments.out.open()}
        if arguments.out.exists()
        else ()
    )
    for name in arguments.data:
        title = name if name in SETS else Path(name).stem
        if title in there:
            print(f"{title}: has rows in {arguments.out}; delete them to run it again.")
            continue
        path = make_data(name) if name in SETS else Path(name)
        rows = []
        for row in run(title, path, arguments.queries, arguments.runs):
            rows.append(row)
            print(
                f"{title}, {row['algorithm']}{row['arguments'] or ''}: recall {row['recall']:.3f}, "
                f"{1 / row['seconds']['query']:,.0f} queries/s by the clock, "
                f"{1 / row['seconds']['query_cpu']:,.0f} of processor time, "
                f"{1 / row['batch_seconds']['query_cpu']:,.0f} in batches",
                flush=True,
            )
        for row in rows:
            append_row(arguments.out, row)


if __name__ == "__main__":
    main()
