"""What durability costs: milliseconds of adds, labels, deletes, refreshes, searches and openings.

    python benchmarks/fault_cost.py --against OTHER --folder .

OTHER is the source tree of another version. A process of each version stays open, and they take
turns call by call, so that what else the machine does strikes all alike. Of the calls of a kind
the lower quartile counts. A method that is quick to learn, so that storing is most of it. The row
goes to results/faults/durable.jsonl.
"""

import argparse
import inspect
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from streamhash import SDOH
from streamhash.live import Collection

D = 64
CALLS = {  # how often each is made
    "add 1": 120,
    "add 1 labelled": 120,
    "add 200 labelled": 30,
    "add 1000 labelled": 15,
    "label 1": 60,
    "delete 1": 60,
    "refresh": 8,
    "search 1": 200,
    "search 100": 100,
    "open to write": 30,
    "open to read": 30,
}


def serve(folder: str, durability: str) -> None:
    """Make a call for every line that comes, and say how long it took."""
    random = np.random.default_rng(0)
    X, y = random.standard_normal((4000, D)).astype(np.float32), random.integers(10, size=4000)
    known = "durability" in inspect.signature(Collection.create).parameters
    options: dict[str, Any] = {"durability": durability} if known else {}
    path, top, touched = f"{folder}/items", 0, 0
    hasher = SDOH(32, memory=0, features=None, random_state=0)
    items = Collection.create(path, hasher, refresh="manual", **options)

    def add(n: int, *, labelled: bool) -> None:
        nonlocal top
        ids, top = range(top, top + n), top + n
        rows = np.arange(ids.start, ids.stop) % len(X)
        items.add(ids, X[rows], y[rows].tolist() if labelled else None)

    def touch() -> int:
        nonlocal touched
        touched += 1
        return touched

    calls: dict[str, Callable[[], object]] = {
        "add 1": lambda: add(1, labelled=False),
        "add 1 labelled": lambda: add(1, labelled=True),
        "add 200 labelled": lambda: add(200, labelled=True),
        "add 1000 labelled": lambda: add(1000, labelled=True),
        "label 1": lambda: items.label([touch()], [int(y[touched] + 1)]),
        "delete 1": lambda: items.delete([touch()]),
        "refresh": lambda: items.refresh(),
        "search 1": lambda: items.search(X[:1], 10),
        "search 100": lambda: items.search(X[:100], 10),
        "open to write": lambda: Collection.open(path).close(),
        "open to read": lambda: Collection.open(path, read_only=True).close(),
    }
    add(2000, labelled=True)
    for name in map(str.strip, sys.stdin):
        if name == "refresh":
            add(100, labelled=True)  # so that there is something to refresh to
        if name.startswith("open"):
            items.close()
        start = time.perf_counter()
        calls[name]()
        print(1e3 * (time.perf_counter() - start), flush=True)


class Version:
    """A process of a version."""

    def __init__(self, tree: Path | None, folder: str, durability: str) -> None:
        environment = {**os.environ} | ({"PYTHONPATH": str(tree / "src")} if tree else {})
        command = [sys.executable, __file__, "--serve", "--folder", folder]
        self._process = subprocess.Popen(
            [*command, "--durability", durability],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self, name: str) -> float:
        """Make a call; return its milliseconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def compare(against: Path, folder: str) -> dict[str, Any]:
    """Return the row of another version and this one, by turns."""
    kinds = {"before": (against, ""), "synced": (None, "synced"), "process": (None, "process")}
    took: dict[str, dict[str, float]] = {kind: {} for kind in kinds}
    with tempfile.TemporaryDirectory(dir=folder) as place:
        versions = {}
        for kind, (tree, durability) in kinds.items():
            Path(place, kind).mkdir()
            versions[kind] = Version(tree, f"{place}/{kind}", durability)
        for name, times in CALLS.items():
            seen: dict[str, list[float]] = {kind: [] for kind in kinds}
            for _ in range(times + 2):
                for kind, version in versions.items():
                    seen[kind].append(version.call(name))
            for kind, all_ in seen.items():
                took[kind][name] = statistics.quantiles(all_[2:], n=4)[0]
        for version in versions.values():
            version.close()
    ratios = {
        kind: {name: round(took[kind][name] / ms, 2) for name, ms in took["before"].items()}
        for kind in ("synced", "process")
    }
    milliseconds = {name: round(ms, 2) for name, ms in took["before"].items()}
    return {"fault": "cost", "calls": CALLS, "before_ms": milliseconds, "ratio": ratios, "lost": []}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, help="the source tree of another version")
    parser.add_argument("--folder", default=".", help="on the disk that is measured")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--durability", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.folder, arguments.durability)
        return
    from fault_durable import keep

    start = time.perf_counter()
    keep(compare(arguments.against, arguments.folder), time.perf_counter() - start)


if __name__ == "__main__":
    main()
