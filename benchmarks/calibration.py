"""Are probabilities true? A collection learns a stream, then answers rows that it never gets.

Of the neighbours that are said to have the query's label with a probability of 80 %, how many have
it, and of the labels that a vote predicts? The mean difference, by fifteen equal bins of what was
said, is the expected calibration error. It is measured at the end of the stream, and once more
after a refresh by hand, when the new model has answered nothing yet.

    python benchmarks/calibration.py [--quick] [--tune] [--out results/answers/calibration.jsonl]

MNIST: 10,000 rows in random order, queries from its test rows. Reuters: news in order of time, the
last 2,280 are the queries, with several labels an item. ``--tune`` asks rows set aside from those
of the stream instead, for decisions. Rows are appended to ``--out``; those there are not run again.
"""

import argparse
import itertools
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import streamhash
from streamhash.hashers import METHODS
from streamhash.lab.datasets import available, load_data
from streamhash.lab.rows import to_json
from streamhash.lab.run import describe_machine
from streamhash.labels import each_label, label_lists
from streamhash.live import Collection
from streamhash.live.calibration import binned

NEIGHBOURS = (1, 10, 100)
QUERIES = 2_000
STREAM = {"mnist": 10_000, "reuters": 9_000, "digits": 1_200}

Row = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One collection on one stream."""

    data: str
    method: str
    bits: int
    seed: int
    queries: str  # "test", or "stream" to decide by
    batch: int = 200


def draw(cell: Cell) -> tuple[NDArray[Any], list[Any], NDArray[Any], list[Any]]:
    """Rows and labels of the stream in its order, and those of the queries."""
    data, n = load_data(cell.data), STREAM[cell.data]
    labels = data.y.tolist() if data.y.ndim == 1 else label_lists(data.y)
    random = np.random.default_rng(cell.seed)
    if cell.data == "reuters":  # in order of time
        stream, rest = np.arange(n), np.arange(n, len(labels))
        if cell.queries == "stream":
            stream, rest = stream[: n - QUERIES], stream[n - QUERIES :]
    else:
        last = 10_000 if cell.data == "mnist" else len(labels) // 3  # of MNIST, its test rows
        rows = random.permutation(len(labels) - last)
        stream, rest = rows[:n], len(labels) - last + random.permutation(last)[:QUERIES]
        if cell.queries == "stream":
            rest = rows[n : n + QUERIES]
    pick = [[labels[i] for i in rows] for rows in (stream, rest)]
    X = np.asarray(data.X, np.float32)
    return X[stream], pick[0], X[rest], pick[1]


def judged(said: NDArray[Any], true: NDArray[Any]) -> Row:
    """The calibration error, and the points of a reliability plot."""
    sums = binned(said, true)
    there = sums[2] > 0
    points = (sums[:2, there] / sums[2, there]).T.round(4).tolist()
    return {
        "error": float(np.abs(sums[0] - sums[1]).sum() / sums[2].sum()),
        "said": float(said.mean()),
        "true": float(true.mean()),
        "points": [[*point, int(n)] for point, n in zip(points, sums[2, there], strict=True)],
    }


def ask(items: Collection, X: NDArray[Any], labels: list[Any]) -> Row:
    """Ask rows that are not in the collection."""
    own = [{*each_label(tuple(each) if isinstance(each, list) else each)} for each in labels]
    found = items.search(X, max(NEIGHBOURS))
    assert found.probabilities is not None
    right = np.array(
        [
            [
                not mine.isdisjoint(each if isinstance(each, list | tuple) else [each])
                for each in row
            ]
            for mine, row in zip(own, found.labels, strict=True)
        ]
    )
    asked = {
        f"neighbours {k}": judged(found.probabilities[:, :k].ravel(), right[:, :k].ravel())
        for k in NEIGHBOURS
    }
    predicted, probabilities = items.predict(X)
    pairs = [
        (p, label in mine)
        for mine, names, chances in zip(own, predicted, probabilities, strict=True)
        for label, p in zip(np.atleast_1d(names).tolist(), np.atleast_1d(chances), strict=True)
    ]
    said, true = np.array(pairs, float).T
    sure = found.probabilities[:, :10] >= 0.9
    asked["predict"] = {
        **judged(said, true),
        "above 0.9": float(right[:, :10][sure].mean()),
        "share above 0.9": float(sure.mean()),
    }
    return asked


def run(cell: Cell) -> Row:
    """Let a collection take a stream; return how true its probabilities are."""
    streamhash.set_threads(1)
    X, y, Xq, yq = draw(cell)
    hasher = METHODS[cell.method](n_bits=cell.bits, random_state=cell.seed)
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        items = Collection.create(f"{folder}/items", hasher, random_state=cell.seed)
        for first in range(0, len(X), cell.batch):
            piece = slice(first, first + cell.batch)
            items.add(None, X[piece], y[piece])
        seconds, own = time.process_time() - start, items.status()["quality"]["reliability"]
        models = [items.model_number]
        asked = {"end": ask(items, Xq, yq)}
        if items.refresh():
            asked["refreshed"] = ask(items, Xq, yq)
            models.append(items.model_number)
        items.close()
    return {
        "benchmark": "calibration",
        **vars(cell),
        "items": len(X),
        "asked": len(Xq),
        "models": models,
        "version": streamhash.__version__,
        "machine": describe_machine(),
        "cpu_seconds": round(seconds, 2),
        "in the collection": {name: own[name]["error"] for name in own},
        **asked,
    }


def cells(options: argparse.Namespace) -> Iterator[Cell]:
    """Everything there is to run."""
    here = {card.name for card in available() if card.here}
    data: list[str] = [name for name in ("mnist", "reuters") if name in here] or ["digits"]
    queries = "stream" if options.tune else "test"
    seeds = [100] if options.tune else [0]
    methods = [("sdoh", 32), ("sdoh", 64), ("hcoh", 32), ("mihash", 32), ("lsh", 64)]
    for seed, name, (method, bits) in itertools.product(
        seeds, data, methods[: 1 if options.quick else 9]
    ):
        if name != "reuters" or METHODS[method].multi_label or not METHODS[method].needs_labels:
            yield Cell(name, method, bits, seed, queries)


def show(rows: list[Row]) -> None:
    """Print the calibration errors."""
    for row in rows:
        print(f"{row['data']}, {row['method']}, {row['bits']} bits, {row['queries']} queries")
        for when in ("end", "refreshed"):
            errors = {name: each["error"] for name, each in row.get(when, {}).items()}
            if errors:
                print(f"  {when:<10}", ", ".join(f"{name} {e:.3f}" for name, e in errors.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows: list[Row] = []
    if options.out and options.out.exists():
        rows = [json.loads(line) for line in options.out.read_text(encoding="utf-8").splitlines()]
    names = Cell.__dataclass_fields__
    done = {tuple(row[name] for name in names) for row in rows}
    for cell in cells(options):
        if tuple(vars(cell).values()) in done:
            continue
        rows.append(run(cell))
        show(rows[-1:])
        if options.out:
            options.out.parent.mkdir(parents=True, exist_ok=True)
            with options.out.open("a", encoding="utf-8") as file:
                file.write(to_json(rows[-1]) + "\n")
    if not rows:
        print("nothing to run")


if __name__ == "__main__":
    main()
