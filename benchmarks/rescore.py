"""What exact scores cost: a rescored search beside a plain one, one query at a time.

A million made-up vectors of 384 dimensions, codes of 64 bits; k = 100, and 10 candidates for each
answer: 1,000 vectors are scored. "kept" are candidates that were scored before and are in memory,
"read" those whose files the system has in memory, "disk" those that it was told to forget. Lance
is ``take`` by row addresses, and NumPy's product. Every score is compared with NumPy's.

    python benchmarks/rescore.py [--items 1000000]

Milliseconds more than the plain search, the median of all queries: by the clock, and of this
process's processor time, which other programs do not lengthen.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _machine import describe_machine
from streamhash import LSH, set_threads
from streamhash.live import Collection
from streamhash.threads import single_threaded_blas

DIMENSIONS, BITS, K, TIMES, PIECE, QUERIES = 384, 64, 100, 10, 50_000, 40

Seconds = tuple[float, float]


def pieces(n: int) -> Iterator[NDArray[np.float32]]:
    centres = np.random.default_rng(0).standard_normal((1000, DIMENSIONS), np.float32)
    for start in range(0, n, PIECE):
        rng = np.random.default_rng([1, start])
        rows = min(PIECE, n - start)
        noise = rng.standard_normal((rows, DIMENSIONS), np.float32)
        yield centres[rng.integers(0, 1000, rows)] + noise


def timed(call: Callable[[], Any]) -> Seconds:
    clock, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - clock, time.process_time() - processor


def forget_files(folder: Path) -> None:
    """Let the system forget what it has of the files in memory."""
    for path in folder.rglob("*.lance"):
        file = os.open(path, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    n = parser.parse_args().items
    set_threads(1)
    print(describe_machine("pylance"))
    with tempfile.TemporaryDirectory() as folder, single_threaded_blas():
        hasher = LSH(BITS, random_state=0)
        items = Collection.create(f"{folder}/items", hasher, durability="process")
        for rows in pieces(n):
            items.add(None, rows)
        measure(items, Path(folder))
        items.close()


def measure(items: Collection, folder: Path) -> None:
    queries = next(pieces(QUERIES)) * 1.1
    dataset = items._journal.dataset("items")

    def search(row: NDArray[Any], **options: Any) -> Any:
        return items.search(row, K, **options)

    def rescored(row: NDArray[Any], **options: Any) -> Any:
        return search(row, rescore=TIMES, **options)

    def forget_rows(_: Any, *, on_disk: bool = False) -> None:
        for cache in (items._scorer._vectors, (items._scorer._projections or (0, None))[1]):
            if cache is not None:
                cache._places.clear()
        if on_disk:
            forget_files(folder)

    def by_lance(query: NDArray[Any]) -> None:
        keys = items.answer(query, K * TIMES).keys[0]
        addresses = items._journal._addresses.find(dataset, keys).tolist()
        vectors = dataset._take_rows(addresses, columns=["vector"])["vector"].combine_chunks()
        rows = vectors.flatten().to_numpy().reshape(-1, DIMENSIONS)
        np.argsort(rows @ query[0])

    ways: dict[str, tuple[Callable[[NDArray[Any]], Any], Callable[[NDArray[Any]], Any]]] = {
        "plain search": (lambda _: None, search),
        "plain search, k = 1,000": (lambda _: None, lambda q: items.search(q, K * TIMES)),
        "real-valued query": (lambda _: None, lambda q: search(q, query="real")),
        "rescored, kept": (rescored, rescored),
        "rescored, read": (forget_rows, rescored),
        "rescored, disk": (partial(forget_rows, on_disk=True), rescored),
        "rescored by projections, kept": (
            lambda q: rescored(q, by="projections"),
            lambda q: rescored(q, by="projections"),
        ),
        "rescored by projections, read": (forget_rows, lambda q: rescored(q, by="projections")),
        "by Lance, files in memory": (lambda _: None, by_lance),
    }
    taken: dict[str, list[Seconds]] = {name: [] for name in ways}
    for _, call in ways.values():
        call(queries[:1])  # compiled, and opened
    for query in queries:
        for name, (prepare, call) in ways.items():
            prepare(query[None])
            taken[name].append(timed(lambda call=call, query=query: call(query[None])))  # type: ignore[misc]
    check(items, queries)
    plain = np.median(taken["plain search"], axis=0)
    print(f"{len(items):,} items of {DIMENSIONS} dimensions, {K * TIMES:,} candidates a query")
    print(f"{'':32}{'ms':>9}{'more':>9}{'processor':>12}{'more':>9}")
    for name, each in taken.items():
        clock, processor = np.median(each, axis=0)
        more = np.array([clock, processor]) - plain
        print(
            f"{name:32}{clock * 1e3:9.2f}{more[0] * 1e3:9.2f}{processor * 1e3:12.2f}"
            f"{more[1] * 1e3:9.2f}"
        )


def check(items: Collection, queries: NDArray[np.float32]) -> None:
    for query in queries[:5]:
        found = items.search(query[None], K, rescore=TIMES)
        among = items.search(query[None], K * TIMES).ids[0]
        vectors = np.array([item.vector for item in items.get(among)], np.float64)
        cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
        assert found.scores is not None
        assert np.allclose(np.sort(cosines)[::-1][:K], found.scores[0], atol=1e-6)


if __name__ == "__main__":
    main()
