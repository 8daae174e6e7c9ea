"""How the cost of a live collection grows with items, bits and features.

Each cell runs in a process of its own: it makes a collection, adds items without labels in calls of
10,000 (the first 2,000 with labels, to learn from), refreshes, searches, and opens it again.

    python benchmarks/scale.py                              10^5 and 10^6 items
    python benchmarks/scale.py --sizes 100000,1000000,10000000

Memory is measured apart, in a process that opens a collection, searches, adds, labels, deletes and
refreshes. Items have 16 features and one of 100 labels, and are stored as ``add`` stores them, but
not learned from. Ids are whole numbers that ascend, any whole numbers, or strings of 21 characters;
``mapped`` is ``mmap=True``. Another version's folder ``src`` is measured in turns with this one.

    python benchmarks/scale.py --memory 100000,10000000 --ids ascending,any,mapped --before SRC
"""

import argparse
import gc
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _machine import describe_machine
from streamhash import SDOH
from streamhash.live import Collection
from streamhash.live.journal import Journal

TOGETHER, LABELLED, CLASSES = 10_000, 2_000, 20
BITS, FEATURES = 64, 128
OTHER_BITS, OTHER_FEATURES = (32, 64, 128, 256, 1024), (32, 128, 512, 2048)
MIB = 2**20
STORED, STORED_FEATURES, STORED_CLASSES, CHANGED = 250_000, 16, 100, 1000


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


def peak() -> float:
    """The most memory this process has used, in MiB."""
    status = Path("/proc/self/status")
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
    found: dict[str, float] = json.loads(in_process("--cell", f"{n},{bits},{d}"))
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


# ------------------------------------------------------------------------------------------ memory


def ids_of(kind: str, first: int, n: int) -> NDArray[Any]:
    """Ids of the items from the ``first`` on."""
    numbers = np.arange(first, first + n)
    if kind == "ascending":
        return numbers
    scattered = (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(1)
    if kind == "strings":
        return np.array([f"item-{number:016x}" for number in scattered.tolist()], object)
    return scattered.astype(np.int64)


def store(path: Path, n: int, kind: str, backend: str | None = None) -> None:
    """Make a collection, whose items are learned from at the beginning only."""
    hasher = SDOH(BITS, memory=0, features=None, random_state=0)
    items = Collection.create(path, hasher, refresh="manual", durability="process", backend=backend)
    X, y = rows(LABELLED, STORED_FEATURES, seed=1)
    items.add(ids_of(kind, 0, LABELLED), X, y)
    items.close()
    journal = Journal(str(path))
    journal.open(read_only=False)
    journal.load()[-1].release()
    model = journal.read_model(journal.serving).hasher()
    for first in range(LABELLED, n, STORED):
        size = min(STORED, n - first)
        X, _ = rows(size, STORED_FEATURES, seed=first)
        y = np.random.default_rng(first).integers(STORED_CLASSES, size=size)
        journal.append_items(
            ids_of(kind, first, size), X, y.tolist(), [None] * size, model.transform(X)
        )
    journal.release()
    if backend is None:
        Collection.open(path).close()  # it says that no id is there twice, as after every closing


class Peak(threading.Thread):
    """Looks at this process's memory all the while, in MiB: its own, and all."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.own = self.all = 0.0
        self._stop_looking = threading.Event()

    def run(self) -> None:
        while not self._stop_looking.wait(0.005):
            self.look()

    def look(self) -> None:
        self.own, self.all = max(self.own, used("RssAnon")), max(self.all, used("VmRSS"))

    def __enter__(self) -> "Peak":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_looking.set()
        self.join()
        self.look()


def used(line: str) -> float:
    """A line of /proc/self/status, in MiB: RssAnon leaves mapped files out, VmRSS does not."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(li.split()[1]) for li in lines if li.startswith(line)) / 1024


def opened(path: Path, kind: str) -> dict[str, float]:
    """Open a collection and use it; a small one first, so that everything is loaded."""
    options: dict[str, Any] = {"mmap": True} if kind == "mapped" else {}
    X, y = rows(CHANGED, STORED_FEATURES, seed=5)

    def change(items: Collection, first: int) -> None:
        ids = ids_of(kind, first, CHANGED)
        items.add(ids, X, y)
        items.label(ids[: CHANGED // 2], [0] * (CHANGED // 2))
        items.delete(ids[CHANGED // 2 :])

    with Collection.open(f"{path}-small", **options) as small:
        small.search(X[:1], 10)
        change(small, 10**9)
        small.refresh()
    gc.collect()
    base, base_all = used("RssAnon"), used("VmRSS")
    with Peak() as opening:
        start, cpu = time.perf_counter(), time.process_time()
        items = Collection.open(path, **options)
        items.search(X[:1], 10)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    n = len(items)
    steady = used("RssAnon"), used("VmRSS")
    start = time.perf_counter()
    items.get(items.search(X[:1], 10).ids[0])
    with Peak() as changing:
        change(items, 2 * 10**9 if kind == "ascending" else 10**8)
    changed = used("RssAnon"), used("VmRSS")
    with Peak() as refreshing:
        items.refresh()
    items.search(X, 10)
    after = used("RssAnon"), used("VmRSS")
    items.close()
    return {
        "n": n,
        "base": base,
        "base_all": base_all,
        "open_s": seconds,
        "open_cpu_s": cpu,
        "own": steady[0],
        "all": steady[1],
        "item_bytes": (steady[0] - base) * MIB / n,
        "open_peak": opening.own / steady[0],
        "changed": changed[0],
        "change_peak": changing.own / changed[0],
        "refreshed": after[0],
        "refresh_peak": refreshing.own / after[0],
        "most_all": max(opening.all, changing.all, refreshing.all, after[1]),
    }


def memory(sizes: list[int], kinds: list[str], before: str | None) -> None:
    """Print what collections take, this version's and perhaps another's."""
    print(
        "\nMiB of memory of its own, and all with mapped files (the programs' own are among them);"
    )
    print("bytes an item beyond a small collection, codes of 8 with them; peaks as ratios\n")
    heads = [
        "items",
        "ids",
        "version",
        "open s",
        "CPU s",
        "own",
        "bytes/item",
        "all",
        "peak",
        "changed",
    ]
    heads += ["peak", "refreshed", "peak", "most, all"]
    print("".join(f"{head:>11}" for head in heads), flush=True)
    for n in sizes:
        for kind in kinds:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "items"
                real = "any" if kind == "mapped" else kind
                for name, size in ((path, n), (Path(f"{path}-small"), 10_000)):
                    in_process("--store", f"{name},{size},{real}")
                versions = {"this": None} | ({"before": before} if before else {})
                found: dict[str, dict[str, float]] = {}
                for version, source in versions.items():
                    if version == "before" and kind == "mapped":
                        continue
                    with tempfile.TemporaryDirectory() as copies:
                        for each in ("items", "items-small"):
                            shutil.copytree(Path(folder) / each, Path(copies) / each)
                        said = in_process("--opened", f"{copies}/items,{kind}", source=source)
                    c = found[version] = json.loads(said)
                    print(
                        f"{n:>11,}{kind:>11}{version:>11}{c['open_s']:>11.2f}{c['open_cpu_s']:>11.2f}"
                        f"{c['own']:>11.0f}{c['item_bytes']:>11.1f}{c['all']:>11.0f}"
                        f"{c['open_peak']:>11.2f}{c['changed']:>11.0f}{c['change_peak']:>11.2f}"
                        f"{c['refreshed']:>11.0f}{c['refresh_peak']:>11.2f}{c['most_all']:>11.0f}",
                        flush=True,
                    )
                if len(found) == 2:
                    print(f"{'':>22}{'ratio':>11}" + ratios(found["this"], found["before"]))


def ratios(this: dict[str, float], other: dict[str, float]) -> str:
    """This version's figures as parts of another's."""
    names = ("open_s", "open_cpu_s", "own", "item_bytes", "all")
    return "".join(f"{this[name] / other[name]:>11.3f}" for name in names)


def in_process(*arguments: str, source: str | None = None) -> str:
    """Run a part of this file in a process of its own, perhaps by another version."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    if source is not None:
        environment["PYTHONPATH"] = source
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="100000,1000000")
    parser.add_argument("--memory", help="sizes: measure memory, and nothing else")
    parser.add_argument("--ids", default="ascending,any,strings,mapped")
    parser.add_argument("--before", metavar="SRC", help="of another version, to compare with")
    for part in ("--cell", "--store", "--opened"):
        parser.add_argument(part, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.store:
        path, n, kind = chosen.store.split(",")
        store(Path(path), int(n), kind)
        return
    if chosen.opened:
        path, kind = chosen.opened.split(",")
        print(json.dumps(opened(Path(path), kind)))
        return
    if chosen.cell:
        print(json.dumps(cell(*map(int, chosen.cell.split(",")))))
        return
    print(describe_machine("pylance"))
    if chosen.memory:
        memory([*map(int, chosen.memory.split(","))], chosen.ids.split(","), chosen.before)
        return
    sizes = [int(size) for size in chosen.sizes.split(",")]
    small = min(sizes)
    print("\nmicroseconds an item to add; seconds to refresh; ms a query, k=10; peak memory\n")
    print_cells([(n, BITS, FEATURES) for n in sizes])
    print_cells([(small, bits, FEATURES) for bits in OTHER_BITS if bits != BITS])
    print_cells([(small, BITS, d) for d in OTHER_FEATURES if d != FEATURES])


if __name__ == "__main__":
    main()
