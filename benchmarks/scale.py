"""How the cost of a live collection grows with items, bits, features and workers.

Each cell runs in a process of its own: it makes a collection, adds items without labels in calls of
10,000 (the first 2,000 with labels, to learn from), refreshes, searches, and opens it again. Then
the same items are encoded anew by a plain loop and by two worker processes of Dask, in turns.

    python benchmarks/scale.py                              10^5 and 10^6 items, 10^6 on the cluster
    python benchmarks/scale.py --sizes 100000,1000000,10000000 --cluster 2000000
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _machine import describe_machine
from streamhash import SDOH
from streamhash.live import Collection

TOGETHER, LABELLED, CLASSES = 10_000, 2_000, 20
BITS, FEATURES = 64, 128
OTHER_BITS, OTHER_FEATURES = (32, 64, 128, 256, 1024), (32, 128, 512, 2048)
MIB = 2**20


def rows(n: int, d: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Items around the centres of classes."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(0).standard_normal((CLASSES, d), dtype=np.float32)
    y = random.integers(CLASSES, size=n)
    return centres[y] + random.standard_normal((n, d), dtype=np.float32), y


def fill(path: Path, n: int, bits: int, d: int) -> tuple[Collection, float]:
    """Make a collection; return it, and the seconds that adding the last tenth took, an item."""
    items = Collection.create(path, SDOH(bits, random_state=0), refresh="manual")
    X, y = rows(LABELLED, d, seed=1)
    items.add(range(LABELLED), X, y)
    seconds, late = 0.0, 0
    for first in range(LABELLED, n, TOGETHER):
        size = min(TOGETHER, n - first)
        X, _ = rows(size, d, seed=first)
        start = time.perf_counter()
        items.add(range(first, first + size), X)
        if first + size > 0.9 * n:
            seconds, late = seconds + time.perf_counter() - start, late + size
    return items, seconds / max(late, 1)


def learn_more(items: Collection, d: int, seed: int) -> None:
    """Let the learner move, so that there is something to refresh."""
    X, y = rows(LABELLED, d, seed)
    items.add(range(100_000_000 + seed * LABELLED, 100_000_000 + (seed + 1) * LABELLED), X, y)


def least(function: Any, times: int = 5) -> float:
    """The least seconds of a few calls."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def peak(process: str | int = "self") -> float:
    """The most memory a process has used, in MiB."""
    status = Path(f"/proc/{process}/status")
    if status.exists():
        line = next(li for li in status.read_text().splitlines() if li.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def cell(n: int, bits: int, d: int) -> dict[str, float]:
    """Measure one collection."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items"
        items, add = fill(path, n, bits, d)
        learn_more(items, d, seed=2)
        start = time.perf_counter()
        items.refresh()
        refresh = time.perf_counter() - start
        X, _ = rows(100, d, seed=3)
        items.search(X, 10)
        one = least(lambda: items.search(X[:1], 10))
        hundred = least(lambda: items.search(X, 10), 3)
        disk = items.status()["disk_bytes"]
        items.close()
        start = time.perf_counter()
        Collection.open(path, read_only=True).close()
        return {
            "n": n,
            "bits": bits,
            "d": d,
            "add_us": 1e6 * add,
            "refresh_s": refresh,
            "refresh_us": 1e6 * refresh / n,
            "one_ms": 1e3 * one,
            "batch_ms": 1e3 * hundred / 100,
            "open_s": time.perf_counter() - start,
            "memory_mib": peak(),
            "disk_mib": disk / MIB,
        }


def in_own_process(n: int, bits: int, d: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--cell", f"{n},{bits},{d}"],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def print_cells(cells: list[tuple[int, int, int]]) -> None:
    heads = ("items", "bits", "d", "add us", "refresh s", "us/item", "1 query", "of 100", "open s")
    print("".join(f"{head:>11}" for head in (*heads, "MiB", "disk MiB")), flush=True)
    for n, bits, d in cells:
        c = in_own_process(n, bits, d)
        print(
            f"{n:>11,}{bits:>11}{d:>11}{c['add_us']:>11.1f}{c['refresh_s']:>11.2f}"
            f"{c['refresh_us']:>11.2f}{c['one_ms']:>8.2f} ms{c['batch_ms']:>8.3f} ms"
            f"{c['open_s']:>11.2f}{c['memory_mib']:>11.0f}{c['disk_mib']:>11.0f}",
            flush=True,
        )


def start_cluster(folder: Path, workers: int) -> tuple[str, list[subprocess.Popen[bytes]]]:
    """Start a scheduler and workers, each a process with one thread."""
    file = folder / "scheduler.json"
    dask = [sys.executable, "-W", "ignore", "-m", "dask"]
    quiet: dict[str, Any] = {
        "stderr": subprocess.DEVNULL,
        "env": {**os.environ, "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
    }
    where = ["--host=127.0.0.1", "--port=0", f"--scheduler-file={file}", "--no-dashboard"]
    processes = [subprocess.Popen([*dask, "scheduler", *where], **quiet)]
    while not (file.exists() and file.read_text().strip().endswith("}")):
        time.sleep(0.1)
    address = str(json.loads(file.read_text())["address"])
    one = ["--nthreads=1", "--no-nanny", "--no-dashboard", f"--local-directory={folder}"]
    for _ in range(workers):
        processes.append(subprocess.Popen([*dask, "worker", address, *one], **quiet))
    return address, processes


def cluster(n: int, bits: int, d: int, workers: int, rounds: int) -> None:
    """Encode the same items anew by a plain loop and by workers, in turns."""
    from distributed import Client

    print(
        f"\n{n:,} items of {d} features encoded anew, {bits} bits: seconds, peak MiB of processes"
    )
    with tempfile.TemporaryDirectory() as folder:
        items, _ = fill(Path(folder) / "items", n, bits, d)
        address, processes = start_cluster(Path(folder), workers)
        try:
            client: Any = Client(address, set_as_default=False)  # type: ignore[no-untyped-call]
            with client:
                client.wait_for_workers(workers)
                for turn in range(rounds):
                    for name, executor in (("loop", None), ("cluster", client.get_executor())):
                        learn_more(items, d, seed=10 + 2 * turn + (executor is not None))
                        seconds = least(lambda run=executor: items.refresh(executor=run), 1)
                        peaks = "".join(f"{peak(each.pid):>8.0f}" for each in processes)
                        print(f"  {name:<10}{seconds:>8.1f} s  this {peak():.0f}, others{peaks}")
        finally:
            for process in processes:
                process.kill()
                process.wait()
        items.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="100000,1000000")
    parser.add_argument("--cluster", type=int, default=1_000_000, help="items; 0 leaves it out")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--cell")
    chosen = parser.parse_args()
    if chosen.cell:
        print(json.dumps(cell(*map(int, chosen.cell.split(",")))))
        return
    print(describe_machine("pylance", "distributed"))
    sizes = [int(size) for size in chosen.sizes.split(",")]
    small = min(sizes)
    print("\nmicroseconds an item to add; seconds to refresh; ms a query, k=10; peak memory\n")
    print_cells([(n, BITS, FEATURES) for n in sizes])
    print_cells([(small, bits, FEATURES) for bits in OTHER_BITS if bits != BITS])
    print_cells([(small, BITS, d) for d in OTHER_FEATURES if d != FEATURES])
    if chosen.cluster:
        cluster(chosen.cluster, BITS, FEATURES, chosen.workers, chosen.rounds)


if __name__ == "__main__":
    main()
