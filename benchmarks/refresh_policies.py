"""What each refresh policy finds and costs: a stream of labelled items, searched all the while.

    python benchmarks/refresh_policies.py [--data mnist] [--items 20000] [--method sdoh]

The same stream goes to one collection after the other, 200 items at a time. Every 1,000 items, 500
rows that the stream holds back ask for their ten nearest: precision is the share that has their
label, its mean along the stream says what users saw. *refreshing* is the share of the time that
refreshes took. Rows of the stream alone are used, no test query.
"""

import argparse
import tempfile
import time

import numpy as np

from streamhash.base import Matrix
from streamhash.lab import make_hasher
from streamhash.lab.datasets import load_data
from streamhash.live import Collection

BATCH, LOOK, QUERIES = 200, 1000, 500


def run(
    policy: str, method: str, X: Matrix, y: list[int], held: tuple[Matrix, list[int]]
) -> tuple[float, float, int, float]:
    """Take the stream; return precision along it, refreshes and the share of time they took."""
    seen: list[float] = []
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        hasher = make_hasher(method, 32, 0)
        items = Collection.create(f"{folder}/items", hasher, refresh=policy, random_state=0)
        for at in range(0, len(X), BATCH):
            items.add(
                range(at, at + len(X[at : at + BATCH])), X[at : at + BATCH], y[at : at + BATCH]
            )
            if (at + BATCH) % LOOK == 0:
                found = items.search(held[0], 10)
                if found.model:
                    right = [
                        np.mean([label == wanted for label in row])
                        for row, wanted in zip(found.labels, held[1], strict=True)
                    ]
                    seen.append(float(np.mean(right)))
        took = time.monotonic() - start
        refreshes = items.history().refreshes
        items.close()
    seconds = sum(event["seconds"] for event in refreshes)
    return float(np.mean(seen)), seen[-1], len(refreshes), seconds / took


def main() -> None:
    """Print a line for each policy."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--method", default="sdoh")
    parser.add_argument("--policies", default="gain,auto,auto=0.02,200")
    given = parser.parse_args()
    data = load_data(given.data)
    order = np.random.default_rng(0).permutation(len(data.X))[: given.items + QUERIES]
    X, y = data.X[order], np.asarray(data.y)[order].tolist()
    held = X[:QUERIES], y[:QUERIES]
    n = len(X) - QUERIES
    print(f"{given.data}, {given.method}, 32 bits, {n:,} items, {BATCH} at a time")
    print("refresh    precision@10  at the end  refreshes  refreshing")
    for policy in given.policies.split(","):
        mean, last, count, share = run(policy, given.method, X[QUERIES:], y[QUERIES:], held)
        print(f"{policy:<10} {mean:>12.3f} {last:>11.3f} {count:>10} {share:>11.1%}", flush=True)


if __name__ == "__main__":
    main()
