"""The streaming track of big-ann-benchmarks by its rules, on our data, with faiss beside us.

Of each set 10,000 rows, sorted into six clusters by k-means, come, go and are replaced as three
runbooks say (``streamhash.lab.runbooks``); 200 rows that never come ask at every search. Each
system runs every runbook from the beginning, one thread each:

- a live collection with SDOH by default, which gets the labels with the items (the supervised
  twin: mAP by label at every search), 64 bits, and with ITQ, which gets none, 64 and 256 bits. It
  refreshes after every 1,000 items that were learned, so that runs do not depend on the clock;
- faiss IndexFlatL2, which is exact, with ids (IndexIDMap2): items are removed for good;
- faiss IndexHNSWFlat (M = 32, efConstruction = 40, efSearch = 64): items cannot be removed, so a
  deleted one stays in the graph and is left out by an IDSelector; a replaced one comes anew.

Recall is against exact Euclidean neighbours among what is there. Rows are kept in results/runbooks,
one a run, with every step; what is there is not made again. With --rows 69800 --clusters 32 MNIST
comes whole, but for the queries, in as many clusters as the track has.

    python benchmarks/runbooks.py [--data mnist,...] [--rows 10000] [--clusters 6]
        [--kinds deleting,...] [--only SYSTEM,...]
"""

import argparse
import datetime
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from streamhash import __version__, set_threads
from streamhash.cli.runbooks import LiveRun, new_collection
from streamhash.lab import (
    Judge,
    Task,
    append_row,
    make_hasher,
    make_task,
    run_runbook,
    summarise_run,
)
from streamhash.lab.datasets import load_data
from streamhash.lab.run import describe_machine
from streamhash.lab.runbooks import RULES

SETS = ("mnist", "miniplaces-features", "long-tail")
N_ITEMS, N_CLUSTERS, N_QUERIES, K, SEED = 10_000, 6, 200, 10, 0
REFRESH = 1_000  # learned items
LINKS, BUILD, LOOK = 32, 40, 64  # of HNSW
OUT = Path(__file__).parents[1] / "results" / "runbooks"

Vectors = NDArray[np.float32]
Tags = NDArray[np.int64]


class Flat:
    """faiss's exact index of vectors."""

    ways = ("exact",)

    def __init__(self, d: int) -> None:
        self.index = faiss.IndexIDMap2(faiss.IndexFlatL2(d))
        self.bytes = 4.0 * d + 8  # an item: its vector and its id

    def insert(self, tags: Tags, X: Vectors, y: Any) -> None:  # noqa: ARG002
        self.index.add_with_ids(X, tags)

    def delete(self, tags: Tags) -> None:
        self.index.remove_ids(faiss.IDSelectorBatch(tags))

    def replace(self, tags: Tags, X: Vectors, y: Any) -> None:
        self.delete(tags)
        self.insert(tags, X, y)

    def search(self, X: Vectors, k: int, way: str) -> Tags:  # noqa: ARG002
        found: Tags = self.index.search(X, k)[1]
        return found

    def rank(self, X: Vectors) -> Tags:
        return self.search(X, self.index.ntotal, "exact")


class Graph:
    """faiss's HNSW over vectors; what is deleted stays in the graph."""

    ways = ("HNSW",)

    def __init__(self, d: int) -> None:
        self.index = faiss.IndexHNSWFlat(d, LINKS)
        self.index.hnsw.efConstruction = BUILD
        self.tags = np.empty(0, np.int64)  # of every vector that ever came; -1: gone
        self.number: dict[int, int] = {}  # of the vector under each tag

    @property
    def bytes(self) -> float:
        return len(faiss.serialize_index(self.index)) / max(1, len(self.number))

    def insert(self, tags: Tags, X: Vectors, y: Any) -> None:  # noqa: ARG002
        first = len(self.tags)
        self.index.add(X)
        self.tags = np.concatenate([self.tags, tags])
        self.number.update(zip(tags.tolist(), range(first, len(self.tags)), strict=True))

    def delete(self, tags: Tags) -> None:
        self.tags[[self.number.pop(tag) for tag in tags.tolist()]] = -1

    def replace(self, tags: Tags, X: Vectors, y: Any) -> None:
        self.delete(tags)
        self.insert(tags, X, y)

    def search(self, X: Vectors, k: int, way: str) -> Tags:  # noqa: ARG002
        bitmap = np.packbits(self.tags >= 0, bitorder="little")
        chosen = faiss.IDSelectorBitmap(len(self.tags), faiss.swig_ptr(bitmap))
        options = faiss.SearchParametersHNSW(efSearch=LOOK, sel=chosen)  # type: ignore[attr-defined]
        found = self.index.search(X, k, params=options)[1]
        return np.where(found < 0, -1, self.tags[found])

    def rank(self, X: Vectors) -> None:  # noqa: ARG002
        return None


class Live(LiveRun):
    """A live collection, and what its codes take."""

    @property
    def bytes(self) -> float:
        return self.items.n_bits / 8  # of the code that is searched


@contextmanager
def live(method: str, bits: int) -> Iterator[Live]:
    hasher = make_hasher(method, bits, SEED)
    with new_collection(hasher, refresh=REFRESH, seed=SEED) as items:
        yield Live(items)


@contextmanager
def plain(make: Callable[[int], Any], d: int) -> Iterator[Any]:
    yield make(d)


SYSTEMS: dict[str, dict[str, Any]] = {
    "faiss flat": {"make": Flat},
    "faiss HNSW": {"make": Graph},
    **{
        f"{name} {bits}": {"method": name.lower(), "bits": bits}
        for name, bits in (("SDOH", 64), ("ITQ", 64), ("ITQ", 256))
    },
}


def opened(system: str, d: int) -> Any:
    how = SYSTEMS[system]
    return plain(how["make"], d) if "make" in how else live(how["method"], how["bits"])


def run(
    task: Task, judge: Judge, *, kind: str, system: str, data: str, clusters: int
) -> dict[str, Any]:
    labelled = not system.startswith("ITQ")
    start = time.process_time()
    with opened(system, task.X.shape[1]) as searched:
        steps = [*run_runbook(task, searched, judge, labelled=labelled)]
        held = float(searched.bytes)
        disk = None
        if isinstance(searched, Live):
            disk = searched.items.status()["disk_bytes"] / max(1, len(searched.items))
    return {
        "data": data,
        "runbook": kind,
        "system": system,
        "labelled": labelled and system.startswith("SDOH"),
        "rows": len(task.X),
        "features": task.X.shape[1],
        "clusters": clusters,
        "queries": len(task.queries),
        "k": judge.k,
        "refresh": REFRESH,
        "seed": SEED,
        "bytes": held,
        "disk_bytes": disk,
        "cpu": time.process_time() - start,
        **summarise_run(steps, len(task.queries)),
        "steps": [rounded(step) for step in steps],
        "version": __version__,
        "faiss": faiss.__version__,
        "machine": describe_machine(),
        "load": os.getloadavg()[0],
        "date": str(datetime.datetime.now(datetime.UTC).date()),
    }


def rounded(value: Any) -> Any:
    """Leave five digits, so that rows are short."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return float(f"{value:.5g}") if isinstance(value, float) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=",".join(SETS))
    parser.add_argument("--rows", type=int, default=N_ITEMS)
    parser.add_argument("--clusters", type=int, default=N_CLUSTERS)
    parser.add_argument("--kinds", default=",".join(RULES))
    parser.add_argument("--only", default=",".join(SYSTEMS))
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    set_threads(1)
    faiss.omp_set_num_threads(1)
    for data in arguments.data.split(","):
        found = load_data(data)
        path = arguments.out / f"{data}.jsonl"
        rows = [row for row in read(path) if ("map" in row) == ("map_by_class" in row)]
        there = set(map(identity, rows))  # a run of before mAP by class is made again
        for kind in arguments.kinds.split(","):
            task = make_task(
                kind, found.X, found.y, data=data, stream_labels=found.stream_labels,
                n_items=arguments.rows, n_clusters=arguments.clusters, n_queries=N_QUERIES,
                random_state=SEED,
            )  # fmt: skip
            judge = Judge(task, K)
            for system in arguments.only.split(","):
                if (kind, system, arguments.rows, arguments.clusters) in there:
                    continue
                row = run(
                    task, judge, kind=kind, system=system, data=data, clusters=arguments.clusters
                )
                append_row(path, row)
                show(row)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def identity(row: dict[str, Any]) -> tuple[str, str, int, int]:
    return row["runbook"], row["system"], row["rows"], row["clusters"]


def show(row: dict[str, Any]) -> None:
    ways = "  ".join(
        f"{way} {each['recall']:.3f} (right {each['precision']:.3f}, {each['ms']:.3f} ms)"
        for way, each in row["ways"].items()
    )
    quality = f"  mAP {row['map']:.3f}" if "map" in row else ""
    print(f"{row['data']}, {row['runbook']}, {row['system']}: {ways}{quality}", flush=True)
    print(f"    {row['insert']['a_second']:,.0f} inserts/s, {row['cpu']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
