"""What durability costs: milliseconds of adds, labels, deletes, refreshes and openings.

    PYTHONPATH=other/src python benchmarks/fault_cost.py --folder . --turns 5

A method that is quick to learn, so that storing is most of it. With ``--against`` the source tree
of another version, the two take turns, and ratios are printed: one row for results/faults.
"""

import argparse
import inspect
import json
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


def quick(call: Callable[[int], object], n: int) -> float:
    """Milliseconds of a call, of the quicker ones: others work on this machine, too."""
    took = []
    for i in range(n + 2):
        start = time.perf_counter()
        call(i)
        took.append(1e3 * (time.perf_counter() - start))
    return statistics.quantiles(took[2:], n=5)[0]


def measure(folder: str, durability: str) -> dict[str, float]:
    random = np.random.default_rng(0)
    X, y = random.standard_normal((4000, D)).astype(np.float32), random.integers(10, size=4000)
    known = "durability" in inspect.signature(Collection.create).parameters
    options: dict[str, Any] = {"durability": durability} if known else {}
    top, found = 0, {}
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = f"{place}/items"
        hasher = SDOH(32, memory=0, features=None, random_state=0)
        items = Collection.create(path, hasher, refresh="manual", **options)

        def add(n: int, labelled: bool) -> Callable[[int], object]:
            def call(_: int) -> None:
                nonlocal top
                ids, top = range(top, top + n), top + n
                rows = np.arange(ids.start, ids.stop) % len(X)
                items.add(ids, X[rows], y[rows].tolist() if labelled else None)

            return call

        add(2000, True)(0)
        found["add 1"] = quick(add(1, False), 40)
        found["add 1 labelled"] = quick(add(1, True), 40)
        found["add 200 labelled"] = quick(add(200, True), 10)
        found["add 1000 labelled"] = quick(add(1000, True), 6)
        found["label 1"] = quick(lambda i: items.label([i], [int(y[i] + 1)]), 20)
        found["delete 1"] = quick(lambda i: items.delete([100 + i]), 20)
        took = []
        for _ in range(3):
            add(100, True)(0)
            start = time.perf_counter()
            items.refresh()
            took.append(1e3 * (time.perf_counter() - start))
        found["refresh"] = min(took)
        items.close()
        found["open to write"] = quick(lambda _: Collection.open(path).close(), 6)
        found["open to read"] = quick(lambda _: Collection.open(path, read_only=True).close(), 6)
    return found


def run(tree: Path | None, folder: str, durability: str) -> dict[str, float]:
    environment = {**os.environ} | ({"PYTHONPATH": str(tree / "src")} if tree else {})
    command = [sys.executable, __file__, "--folder", folder, "--durability", durability]
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", default=".", help="on the disk that is measured")
    parser.add_argument("--durability", default="synced")
    parser.add_argument("--against", type=Path, help="the source tree of another version")
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.against is None:
        print(json.dumps(measure(arguments.folder, arguments.durability)))
        return
    from fault_durable import keep

    start = time.perf_counter()
    kinds = {"before": (arguments.against, ""), "synced": (None, "synced")}
    kinds["process"] = (None, "process")
    rows: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    for _ in range(arguments.turns):
        for kind, (tree, durability) in kinds.items():
            rows[kind].append(run(tree, arguments.folder, durability))
    least = {
        kind: {name: min(row[name] for row in all_) for name in all_[0]}
        for kind, all_ in rows.items()
    }
    ratios = {
        kind: {name: round(least[kind][name] / ms, 2) for name, ms in least["before"].items()}
        for kind in ("synced", "process")
    }
    milliseconds = {name: round(ms, 1) for name, ms in least["before"].items()}
    row = {"fault": "cost", "before_ms": milliseconds, "ratio": ratios}
    keep({**row, "turns": arguments.turns, "lost": []}, time.perf_counter() - start)


if __name__ == "__main__":
    main()
