"""Encoding the items of a collection anew, as a refresh does: by whom, and how many times as fast.

    python benchmarks/reencoding.py
    python benchmarks/reencoding.py --items 128:2000000,784:2000000,4096:250000 --rounds 2

The same stored items are read, encoded by SDOH as it comes (64 bits) and written as a new column,
in turns by one thread, by the threads of the process (what ``refresh`` does by itself), by two
processes of ``ProcessPoolExecutor`` and by two workers of Dask. A process has one thread then, as
there is one for each core. Workers are there before the clock starts. What is around encoding in a
refresh (working out the model before it, the commit and reading the codes after it) is the same
for all, and left out.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, wait
from contextlib import ExitStack, contextmanager, nullcontext
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _machine import describe_machine
from streamhash import SDOH
from streamhash.live import Collection
from streamhash.live.journal import Journal
from streamhash.live.refresh import Work, encode_fragments
from streamhash.threads import set_threads, using_threads

BITS, LABELLED, CLASSES, WORKERS = 64, 2000, 20, 2
STORED_NUMBERS = 2**25  # of vectors, at a time
WAYS = ("one thread", "threads", "processes", "Dask")


def rows(n: int, d: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Items around the centres of classes."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(0).standard_normal((CLASSES, d), dtype=np.float32)
    y = random.integers(CLASSES, size=n)
    return centres[y] + random.standard_normal((n, d), dtype=np.float32), y


def store(path: Path, n: int, d: int) -> None:
    """Make a collection of items with codes, of which the first are learned from."""
    with Collection.create(
        path, SDOH(BITS, random_state=0), refresh="manual", durability="process"
    ) as items:
        X, y = rows(LABELLED, d, seed=1)
        items.add(range(LABELLED), X, y)
    journal = Journal(str(path))
    journal.open(read_only=False)
    journal.load()[-1].release()
    serving = journal.read_model(journal.serving)
    journal.append_model(serving._replace(number=serving.number + 1))  # as a refresh begins
    for first in range(LABELLED, n, STORED_NUMBERS // d):
        size = min(STORED_NUMBERS // d, n - first)
        X, _ = rows(size, d, seed=first)
        codes = np.zeros((size, BITS // 8), np.uint8)  # nobody looks at them
        nothing: list[Any] = [None] * size
        journal.append_items(np.arange(first, first + size), X, nothing, nothing, codes)
    journal.release()


def encode(path: Path, executor: Executor | None) -> None:
    """Encode all items, and leave the new column out of the collection."""
    journal = Journal(str(path))
    fragments = [each.fragment_id for each in journal.fragments()]
    name = str(time.monotonic_ns())
    work = Work(str(path), None, None, None, journal.version("items"), journal.last_model, name)
    found: dict[int, Any] = {}
    encode_fragments(work, fragments, executor, found.__setitem__)
    assert sum(each["rows"] for each in found.values()) == journal.n_rows


@contextmanager
def processes() -> Iterator[Executor]:
    """Two processes, started and imported."""
    with ProcessPoolExecutor(WORKERS, get_context("spawn"), set_threads, (1,)) as pool:
        wait([pool.submit(time.sleep, 1) for _ in range(WORKERS)])
        yield pool


def start_cluster(
    folder: Path, workers: int, **variables: str
) -> tuple[str, list[subprocess.Popen[bytes]]]:
    """Start a scheduler and workers of Dask, each a process with one thread."""
    file = folder / "scheduler.json"
    command = [sys.executable, "-W", "ignore", "-m", "dask"]
    single = {"OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", **variables}
    quiet: dict[str, Any] = {"stderr": subprocess.DEVNULL, "env": {**os.environ, **single}}
    where = ["--host=127.0.0.1", "--port=0", f"--scheduler-file={file}", "--no-dashboard"]
    processes = [subprocess.Popen([*command, "scheduler", *where], **quiet)]
    while not (file.exists() and file.read_text().strip().endswith("}")):
        time.sleep(0.1)
    address = str(json.loads(file.read_text())["address"])
    one = ["--nthreads=1", "--no-nanny", "--no-dashboard", f"--local-directory={folder}"]
    for _ in range(workers):
        processes.append(subprocess.Popen([*command, "worker", address, *one], **quiet))
    return address, processes


@contextmanager
def dask(folder: Path) -> Iterator[Executor]:
    """Two workers of Dask that have streamhash imported."""
    from distributed import Client

    address, started = start_cluster(folder, WORKERS, STREAMHASH_THREADS="1")
    try:
        client: Any = Client(address, set_as_default=False)  # type: ignore[no-untyped-call]
        with client:
            client.wait_for_workers(WORKERS)
            client.run(__import__, "streamhash.live.refresh")
            yield client.get_executor()
    finally:
        for process in started:
            process.kill()
            process.wait()


def measure(path: Path, rounds: int) -> dict[str, float]:
    """Seconds by each way, the least of some rounds in which they take turns."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        executors: dict[str, Executor | None] = {
            "one thread": None,
            "threads": None,
            "processes": stack.enter_context(processes()),
            "Dask": stack.enter_context(dask(Path(folder))),
        }
        found: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way, executor in executors.items():
                with using_threads(1) if way == "one thread" else nullcontext():
                    start = time.perf_counter()
                    encode(path, executor)
                    found[way].append(time.perf_counter() - start)
    return {way: min(seconds) for way, seconds in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", default="128:200000,784:200000,4096:50000", help="d:items")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--folder", help="for the items, if not a temporary one")
    chosen = parser.parse_args()
    print(describe_machine("pylance", "distributed"))
    print(f"\nitems encoded anew by SDOH({BITS}): seconds, least of {chosen.rounds}; load before\n")
    heads = ("d", "items", "load", *WAYS)
    print("".join(f"{head:>11}" for head in heads) + "   times as fast as one thread")
    for d, n in (map(int, each.split(":")) for each in chosen.items.split(",")):
        with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
            path = Path(chosen.folder or folder) / f"items-{d}-{n}"
            if not path.exists():
                store(path, n, d)
            load = os.getloadavg()[0]
            found = measure(path, chosen.rounds)
        one = found["one thread"]
        print(
            f"{d:>11}{n:>11,}{load:>11.1f}"
            + "".join(f"{found[way]:>11.1f}" for way in WAYS)
            + "".join(f"{one / found[way]:>8.2f}" for way in WAYS[1:]),
            flush=True,
        )


if __name__ == "__main__":
    main()
