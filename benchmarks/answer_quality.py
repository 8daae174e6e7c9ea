"""What each way of scoring finds, and how long it takes: Hamming, real-valued, rescored.

The protocol of the tables: SDOH by default learns 20,000 rows (of Reuters all but the last news),
all rows but the queries are searched, and 500 of the queries ask. Exact neighbours are those by
the cosine of the features, as faiss finds them. Beside our codes stand sign bits of the features
about the mean of the stream (what vector databases call binary quantisation), one bit a feature.

- map: mean average precision of the whole ranking, and map_by_class, its mean over the labels that
  queries have, which differs where some labels ask more often (Reuters); right: of the first ten,
  the share that has the query's label (one of its labels, on Reuters); recall: the share whose
  cosine is no less than that of the tenth exact neighbour.
- Rescored: the 40 nearest by code (4 k at k = 10) are put in the order of the cosine of features or
  of projections; the others follow in the order of their codes.
- ms: processor time of one search for one query, k = 10, one thread, everything in memory; the
  query's projections are made before.

Rows are kept in results/answers/quality.jsonl; what is there is not made again.

    python benchmarks/answer_quality.py [data set ...]
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from _machine import describe_machine
from streamhash import HammingIndex, pack, set_threads
from streamhash.base import OnlineHasher
from streamhash.lab import plan_cell
from streamhash.lab.run import prepare_split
from streamhash.metrics import mean_over_classes

SETS = ("mnist", "cifar10-features", "miniplaces-features", "reuters")
BITS, K, CANDIDATES, N_QUERIES, SEED = (32, 64, 128), 10, 40, 500, 0
ROUNDING = 1e-6  # of a cosine
BLOCK = 50  # queries whose rankings are in memory
ROWS = Path(__file__).parents[1] / "results" / "answers" / "quality.jsonl"

Matrix = NDArray[np.float32]
Order = NDArray[np.int64]
Ranking = Callable[[slice], NDArray[Any]]  # distances (n, n_items) of some queries
Row = dict[str, Any]


def unit(rows: Matrix) -> Matrix:
    """Rows of length 1."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)


class Task:
    """The items and queries of one set: features, which are relevant, the exact neighbours."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parts = prepare_split(plan_cell("sdoh", name, BITS[0], SEED))
        queries = self.parts.queries[:]
        n = len(queries)
        some = np.sort(np.random.default_rng(SEED).permutation(n)[:N_QUERIES])
        self.query_rows, self.item_rows = queries[some], self.parts.database[:]
        self.query_labels = self.parts.queries.labels[some]
        self.vectors, self.queries = unit(self.item_rows), unit(self.query_rows)
        self.exact = faiss.IndexFlatIP(self.vectors.shape[1])
        self.exact.add(self.vectors)
        self.least = self.exact.search(self.queries, K)[0][:, -1]  # cosine of the last of them

    def relevant(self, q: int) -> NDArray[np.bool_]:
        """Which items share a label with a query."""
        labels, own = self.parts.database.labels, self.query_labels[q]
        shared = labels == own if labels.ndim == 1 else (labels @ own.astype(np.int64)) > 0
        return np.asarray(shared)


class Quality:
    """Numbers of rankings, one for each query."""

    def __init__(self) -> None:
        self._numbers: dict[str, list[float]] = {"map": [], "right": [], "recall": []}
        self._asked: list[NDArray[Any]] = []  # labels of the queries

    def add(self, task: Task, q: int, order: Order, relevant: NDArray[np.bool_]) -> None:
        """Look at the ranking of one query."""
        hits = relevant[order]
        near = task.vectors[order[:K]] @ task.queries[q] >= task.least[q] - ROUNDING
        self._numbers["right"].append(hits[:K].mean())
        self._numbers["recall"].append(near.mean())
        self._asked.append(task.query_labels[q])
        ranks = np.flatnonzero(hits) + 1
        precision = (np.arange(1, len(ranks) + 1) / ranks).mean() if len(ranks) else np.nan
        self._numbers["map"].append(precision)

    def means(self) -> Row:
        """Means over the queries, of mAP over their classes too; NaN is left out."""
        found = {name: float(np.nanmean(values)) for name, values in self._numbers.items()}
        by_class = mean_over_classes(np.array(self._numbers["map"]), np.array(self._asked))
        return {**found, "map_by_class": by_class}


def measure(task: Task, distances: Ranking, *again: tuple[Matrix, Matrix]) -> list[Row]:
    """Quality of rankings by distance, then by place; and with the first of them put in the order
    of the similarity of vectors, of queries and of items.
    """
    found = [Quality() for _ in range(1 + len(again))]
    for start in range(0, len(task.queries), BLOCK):
        for q, row in enumerate(distances(slice(start, start + BLOCK)), start):
            order, relevant = np.argsort(row, kind="stable"), task.relevant(q)
            found[0].add(task, q, order, relevant)
            first = order[:CANDIDATES].copy()
            for quality, (queries, items) in zip(found[1:], again, strict=True):
                order[:CANDIDATES] = best(first, queries[q], items)
                quality.add(task, q, order, relevant)
    return [quality.means() for quality in found]


def best(candidates: Order, query: Matrix, items: Matrix) -> Order:
    """Put candidates in the order of their similarity with a query."""
    order: Order = candidates[np.argsort(-(items[candidates] @ query), kind="stable")]
    return order


def milliseconds(task: Task, search: Callable[[int], Any]) -> float:
    """Processor time of one query, the mean of 100, the least of three rounds."""
    times = []
    asked = range(min(100, len(task.queries)))
    for _ in range(3):
        start = time.process_time()
        for q in asked:
            search(q)
        times.append((time.process_time() - start) / len(asked))
    return 1e3 * min(times)


def hamming(items: NDArray[np.uint8], queries: NDArray[np.uint8]) -> Ranking:
    """Hamming distances of all items, by words."""
    pad = -items.shape[1] % 8
    words = np.pad(items, ((0, 0), (0, pad))).view(np.uint64).T.copy()
    asked = np.pad(queries, ((0, 0), (0, pad))).view(np.uint64)

    def distances(block: slice) -> NDArray[np.uint16]:
        found = np.zeros((len(asked[block]), len(items)), np.uint16)
        for w, column in enumerate(words):
            found += np.bitwise_count(column ^ asked[block, w][:, None])
        return found

    return distances


def by_codes(task: Task, hasher: OnlineHasher) -> Iterator[tuple[str, Row]]:
    """Our codes: Hamming, real-valued, rescored by vectors, rescored by projections."""
    items, queries = hasher.project(task.item_rows), hasher.project(task.query_rows)
    codes, asked = pack(items), pack(queries)
    index = HammingIndex(hasher.n_bits)
    index.add(None, codes)
    signs = np.where(np.unpackbits(codes, axis=1, count=hasher.n_bits), 1, -1).astype(np.float32)

    def real(block: slice) -> Matrix:  # half of (sum |p| - p · signs): the same order
        return -(queries[block].astype(np.float64) @ signs.T).astype(np.float32)

    def again(q: int, vectors: Matrix, asked_vectors: Matrix) -> Order:
        ids = index.search(asked[q : q + 1], CANDIDATES)[1][0]
        return best(ids, asked_vectors[q], vectors)[:K]

    by_vectors, by_projections = (task.queries, task.vectors), (unit(queries), unit(items))
    plain, vectors, projections = measure(task, hamming(codes, asked), by_vectors, by_projections)
    (asymmetric,) = measure(task, real)
    ways: dict[str, tuple[Row, Callable[[int], Any]]] = {
        "Hamming": (plain, lambda q: index.search(asked[q : q + 1], K)),
        "real-valued": (asymmetric, lambda q: index.search_real(queries[q : q + 1], K)),
        "rescored by vectors": (vectors, lambda q: again(q, *by_vectors[::-1])),
        "rescored by projections": (projections, lambda q: again(q, *by_projections[::-1])),
    }
    for name, (found, search) in ways.items():
        yield name, {**found, "ms": milliseconds(task, search)}


def by_features(task: Task) -> Iterator[tuple[str, Row]]:
    """Without learning: sign bits of the features, and the features themselves."""
    mean = task.parts.stream[:].mean(axis=0)
    codes, asked = pack(task.item_rows - mean), pack(task.query_rows - mean)
    n_bits = 8 * codes.shape[1]
    search: Any
    if n_bits <= 1024:
        index = HammingIndex(n_bits)
        index.add(None, codes)
        search = index.search
    else:
        flat = faiss.IndexBinaryFlat(n_bits)
        flat.add(codes)
        search = flat.search

    plain, again = measure(task, hamming(codes, asked), (task.queries, task.vectors))
    (exact,) = measure(task, lambda block: -(task.queries[block] @ task.vectors.T))
    ways: dict[str, tuple[Row, Callable[[int], Any]]] = {
        "sign bits": (plain, lambda q: search(asked[q : q + 1], K)),
        "sign bits, rescored by vectors": (
            again,
            lambda q: best(
                search(asked[q : q + 1], CANDIDATES)[1][0], task.queries[q], task.vectors
            )[:K],
        ),
        "float search, faiss": (exact, lambda q: task.exact.search(task.queries[q : q + 1], K)),
    }
    for name, (found, each) in ways.items():
        yield name, {**found, "ms": milliseconds(task, each)}


def main() -> None:
    set_threads(1)
    faiss.omp_set_num_threads(1)
    ROWS.parent.mkdir(exist_ok=True)
    lines = ROWS.read_text(encoding="utf-8").splitlines() if ROWS.exists() else []
    kept = map(json.loads, lines)  # those of before mAP by class are made again
    there = {(row["data"], row["bits"]) for row in kept if "map_by_class" in row}
    print(describe_machine("faiss-cpu"))
    for name in sys.argv[1:] or SETS:
        missing = [bits for bits in (0, *BITS) if (name, bits) not in there]
        if not missing:
            continue
        task = Task(name)
        facts = {
            "data": name,
            "items": len(task.vectors),
            "queries": len(task.queries),
            "features": task.vectors.shape[1],
            "seed": SEED,
        }
        for bits in missing:  # 0: the features themselves
            if bits:
                hasher = plan_cell("sdoh", name, bits, SEED).hasher()
                task.parts.learn(hasher, 0, len(task.parts.stream))
                found = by_codes(task, hasher)
            else:
                found = by_features(task)
            rows = [
                {**facts, "bits": bits, "way": way, **numbers, "machine": describe_machine()}
                for way, numbers in found
            ]
            with ROWS.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
            for row in rows:
                numbers = "  ".join(f"{x} {row[x]:.3f}" for x in ("map", "right", "recall", "ms"))
                print(f"{name}, {bits} bits, {row['way']:<32}{numbers}", flush=True)


if __name__ == "__main__":
    main()
