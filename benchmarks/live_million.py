"""A million items in a live collection, beside faiss with a hand-written loop of encoding anew.

Made-up vectors of 128 dimensions around a hundred centres, one in twenty with a label; codes of 64
bits by SDOH. The peer is what a person would write: faiss's IndexBinaryIDMap2, a file of vectors
mapped to memory, one lock for adding and searching, and a loop that encodes all vectors and builds
the index anew. It is not durable (a crash loses or mixes what was being written), may lose rows
that come while it swaps, holds no labels and does not know when to refresh. Each runs in a process
of its own, one thread for every part.

    python benchmarks/live_million.py [--quick] [--float16]

``--quick`` takes 100,000 items. Read the ratios: they hold on other machines, the seconds do not.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _machine import describe_machine
from streamhash import SDOH, set_threads
from streamhash.live import Collection
from streamhash.threads import single_threaded_blas

DIMENSIONS, CLASSES, LABELLED, BITS, BATCH = 128, 100, 0.05, 64, 1_000
SINGLES, SEARCHES, K, BESIDE = 300, 500, 10, 60  # BESIDE: batches added while others search
SMALL_CALLS = 100  # calls that get, label or delete K items

Batch = tuple[NDArray[np.int64], NDArray[np.float32], list[int | None]]
Facts = dict[str, float]


def batch(number: int, n: int = BATCH) -> Batch:
    """Ids, vectors and labels, the same in every process."""
    centres = np.random.default_rng(0).standard_normal((CLASSES, DIMENSIONS), np.float32)
    rng = np.random.default_rng([1, number])
    y = rng.integers(0, CLASSES, n)
    X = centres[y] + rng.standard_normal((n, DIMENSIONS), np.float32)
    known = rng.random(n) < LABELLED
    labels = [int(label) if is_known else None for label, is_known in zip(y, known, strict=True)]
    return np.arange(number * BATCH, number * BATCH + n), X, labels


def percentiles(seconds: list[float], name: str) -> Facts:
    p50, p99 = np.quantile(seconds, [0.5, 0.99]) * 1e3
    return {f"{name} p50, ms": p50, f"{name} p99, ms": p99, f"{name} most, ms": max(seconds) * 1e3}


def timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def memory(name: str) -> float:
    """A line of /proc/self/status, in MB: RssAnon leaves out mapped files."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1e3


def searching(search: Callable[[NDArray[Any]], Any], stop: Callable[[], bool]) -> list[float]:
    """One query after the other: how long each took."""
    queries = batch(10**6)[1]
    seconds: list[float] = []
    while not stop():
        at = len(seconds) % len(queries)
        seconds.append(timed(lambda at=at: search(queries[at : at + 1])))  # type: ignore[misc]
    return seconds


def while_running(work: Callable[[], Any], search: Callable[[NDArray[Any]], Any]) -> list[float]:
    """Search in this thread while another works."""
    thread = threading.Thread(target=work)
    thread.start()
    seconds = searching(search, lambda: not thread.is_alive())
    thread.join()
    return seconds


def measure(
    add: Callable[[Batch], Any],
    search: Callable[[NDArray[Any]], Any],
    refresh: Callable[[], Any],
    n: int,
) -> Iterator[Facts]:
    """What both are asked for."""
    seconds = []
    for number in range(n // BATCH):
        rows = batch(number)
        seconds.append(timed(lambda rows=rows: add(rows)))  # type: ignore[misc]
    yield {"add, batches of 1,000: items/s": n / sum(seconds)}
    yield percentiles(seconds[len(seconds) // 2 :], "add of a batch")
    yield {
        "memory when filled, MB": memory("RssAnon"),
        "peak of memory so far, MB": memory("VmHWM"),
    }
    last = n // BATCH
    singles = [batch(last + i, 1) for i in range(SINGLES)]
    seconds = [timed(lambda rows=rows: add(rows)) for rows in singles]  # type: ignore[misc]
    yield {
        "add, single rows: items/s": SINGLES / sum(seconds),
        **percentiles(seconds, "add of a row"),
    }
    last += SINGLES
    count = iter(range(SEARCHES))
    yield percentiles(searching(search, lambda: next(count, None) is None), "search")
    several = [batch(last + i) for i in range(BESIDE)]
    last += BESIDE
    yield percentiles(while_running(lambda: [add(b) for b in several], search), "search, adding")
    yield {"refresh, s": timed(refresh)}
    add(batch(last))  # so that there is something new to serve
    last += 1
    yield percentiles(while_running(refresh, search), "search, refreshing")
    add(batch(last))
    waits: list[float] = []
    thread = threading.Thread(target=refresh)
    thread.start()
    while thread.is_alive() and len(waits) < 5 * BESIDE:  # else by hand they never meet
        last += 1
        rows = batch(last)
        waits.append(timed(lambda rows=rows: add(rows)))  # type: ignore[misc]
    thread.join()
    yield percentiles(waits, "add of a batch, refreshing")
    yield {"peak of memory, MB": memory("VmHWM")}


def collection(folder: Path, n: int, kind: str) -> Iterator[Facts]:
    """Ours."""
    hasher = SDOH(BITS, random_state=0)
    items = Collection.create(folder / "items", hasher, vectors=kind, refresh="manual")
    yield from measure(
        lambda rows: items.add(*rows), lambda X: items.search(X, K), items.refresh, n
    )
    items.add(*batch(2 * 10**6))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(abs, [1, 2]))  # started before the clock
        yield {"refresh by two processes, s": timed(lambda: items.refresh(executor=pool))}
    chosen = np.random.default_rng(2).choice(n, (3, SMALL_CALLS, K), replace=False).tolist()
    for verb, call, ids in (
        ("get", items.get, chosen[0]),
        ("label", lambda some: items.label(some, [0] * K), chosen[1]),
        ("delete", items.delete, chosen[2]),
    ):
        seconds = [timed(partial(call, some)) for some in ids]
        yield percentiles(seconds, f"{verb} {K} items")
    yield {"status, s": timed(items.status)}
    yield {"disk, bytes an item": items.status()["disk_bytes"] / len(items)}
    items.close()


def reopened(folder: Path) -> Iterator[Facts]:
    """Ours, opened by another process."""
    found: list[Collection] = []
    yield {"open again, s": timed(lambda: found.append(Collection.open(folder / "items")))}
    yield {"memory when opened, MB": memory("RssAnon")}
    found[0].close()


def by_hand(folder: Path, n: int, kind: str) -> Iterator[Facts]:
    """faiss and a loop."""
    import faiss

    faiss.omp_set_num_threads(1)
    room = n + 10 * BESIDE * BATCH
    vectors = np.lib.format.open_memmap(
        folder / "vectors.npy", "w+", np.dtype(kind), (room, DIMENSIONS)
    )
    ids = np.empty(room, np.int64)
    hasher, size, lock = SDOH(BITS, random_state=0), 0, threading.Lock()
    serving: Any = None
    index = faiss.IndexBinaryIDMap2(faiss.IndexBinaryFlat(BITS))
    waiting: list[tuple[NDArray[Any], int]] = []

    def add(rows: Batch) -> None:
        nonlocal size, waiting
        names, X, labels = rows
        vectors[size : size + len(X)] = X
        ids[size : size + len(X)] = names
        size += len(X)
        waiting += [(x, y) for x, y in zip(X, labels, strict=True) if y is not None]
        if len(waiting) >= hasher.next_stage:
            hasher.partial_fit(np.array([x for x, _ in waiting]), np.array([y for _, y in waiting]))
            waiting = []
            if serving is None:
                refresh()
                return
        if serving is not None:
            with lock:
                index.add_with_ids(serving.transform(X), names)

    def search(X: NDArray[Any]) -> Any:
        with lock:
            return index.search(serving.transform(X), K)

    def refresh() -> None:
        nonlocal serving, index
        model = hasher.encoder()
        new = faiss.IndexBinaryIDMap2(faiss.IndexBinaryFlat(BITS))
        done = 0
        while done < size:
            last = min(done + 8192, size)
            new.add_with_ids(model.transform(vectors[done:last].astype(np.float32)), ids[done:last])
            done = last
        with lock:
            serving, index = model, new

    yield from measure(add, search, refresh, n)
    vectors.flush()
    yield {"disk, bytes an item": float(DIMENSIONS * vectors.itemsize)}  # no ids, no codes


def part(name: str, folder: Path, n: int, kind: str) -> None:
    """Measure in this process, and print facts as they come."""
    set_threads(1)
    parts = {
        "collection": lambda: collection(folder, n, kind),
        "reopened": lambda: reopened(folder),
        "by hand": lambda: by_hand(folder, n, kind),
    }
    with single_threaded_blas():
        for facts in parts[name]():
            print(json.dumps(facts), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--float16", action="store_true")
    parser.add_argument("--part", nargs=2, metavar=("NAME", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    n, kind = 100_000 if options.quick else 1_000_000, "float16" if options.float16 else "float32"
    if options.part:
        part(options.part[0], Path(options.part[1]), n, kind)
        return
    print(describe_machine("pylance", "faiss-cpu"))
    print(
        f"{n:,} items, {DIMENSIONS} dimensions, {kind}, {LABELLED:.0%} labelled, {BITS} bits, SDOH"
    )
    facts: dict[str, Facts] = {"collection": {}, "by hand": {}}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("collection", "reopened", "by hand"):
            again = [sys.executable, __file__, *sys.argv[1:], "--part", name, folder]
            environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
            done = subprocess.run(
                again, stdout=subprocess.PIPE, text=True, check=True, env=environment
            )
            side = facts["by hand" if name == "by hand" else "collection"]
            for line in done.stdout.splitlines():
                side |= json.loads(line)
    print(f"\n{'':<38}{'collection':>12}{'faiss, by hand':>16}{'ratio':>8}")
    for name, ours in facts["collection"].items():
        theirs = facts["by hand"].get(name)
        beside = f"{'–':>16}" if theirs is None else f"{theirs:>16,.2f}{ours / theirs:>8.2f}"
        print(f"{name:<38}{ours:>12,.2f}{beside}")


if __name__ == "__main__":
    main()
