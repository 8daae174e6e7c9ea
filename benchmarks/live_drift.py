"""When to refresh: live collections on streams whose classes change half-way.

Four collections take the same stream in batches: refreshed at every batch, refreshing on its own,
every N items, and frozen after its first model. Along the stream each is asked for a full ranking
of its items by queries that are no part of the stream, of all classes that came so far, and of
those that come now. Streams: "change" (half of the classes, then the other half), "join" (half of
them, then all) and "steady" (all from the beginning; for alarms of drift that are false).

    python benchmarks/live_drift.py [--quick] [--tune] [--out results/live/drift.jsonl]
        [--method sdoh,hcoh] [--bits 32 64] [--seeds 1] [--jobs 1]

Data: MNIST, or the embedded digits where it is absent. Queries are MNIST's test rows (a third of
the digits). ``--tune`` compares prices of the policy on other seeds, with queries set aside from
the rows of the stream, and never sees a test query. Rows are
appended to ``--out``, one JSON object a line, and cells that are there are not run again.

What SDOH has learned from the first n rows is the same in all four collections, and its hash
functions follow from that alone; they are worked out once (``settled_once``). So the seconds of its
rows are those of the collection that came first, the one refreshed at every batch, or less.
"""

import argparse
import importlib
import importlib.util
import itertools
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

import streamhash
from streamhash import HCOH, SDOH, MIHash
from streamhash.base import OnlineHasher
from streamhash.lab.datasets import DataSet, available, load_data
from streamhash.lab.rows import to_json
from streamhash.lab.run import describe_machine
from streamhash.live import Collection
from streamhash.live.learner import Monitor
from streamhash.metrics import mean_average_precision

STREAMS = ("change", "join", "steady")
STRATEGIES = {"every batch": "manual", "on its own": "gain", "every N": "", "frozen": "manual"}
HASHERS: dict[
    str, Callable[..., OnlineHasher]
] = {  # SDOH as it comes, and as it came up to version 0.1
    "sdoh": SDOH,
    "sdoh plain": partial(SDOH, memory=0, features=None),
    "hcoh": HCOH,
    "mihash": MIHash,
}
SETTLED = (  # what SDOH works out of what it has learned
    *("W_", "offset_", "loss_", "n_steps_", "parts_", "settled_"),
    *("score_weights_", "score_offsets_", "mean_score_"),
)
PRICES = (0.0002, 0.0005, 0.001, 0.002, 0.005)
LOOKS = 16  # at the quality along a stream
QUERIES = 500

Row = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One collection on one stream."""

    data: str
    stream: str
    method: str
    bits: int
    seed: int
    strategy: str
    refresh: str
    queries: str  # "test", or "stream" to tune by
    batch: int = 200
    length: int = 10_000


def draw(cell: Cell, data: DataSet) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows of the stream in its order, and rows of the queries."""
    rng = np.random.default_rng(cell.seed)
    n_rows = len(data.y)
    n_test = 10_000 if cell.data == "mnist" else n_rows // 3
    rows = rng.permutation(n_rows - n_test)  # MNIST's last 10,000 are its test rows
    queries = n_rows - 1 - rng.permutation(n_test)[:QUERIES]
    if cell.queries == "stream":
        queries, rows = rows[:QUERIES], rows[QUERIES:]
    classes = np.unique(data.y)
    early = np.isin(data.y[rows], classes[: len(classes) // 2])
    half = min(cell.length // 2, int(early.sum()), int((~early).sum())) // cell.batch * cell.batch
    if cell.stream == "change":
        return np.concatenate([rows[early][:half], rows[~early][:half]]), queries
    if cell.stream == "join":
        first = rows[early][:half]
        others = rng.permutation(rows[~np.isin(rows, first)])
        return np.concatenate([first, others[:half]]), queries
    return rows[: 2 * half], queries


def quality(items: Collection, X: NDArray[Any], y: NDArray[Any], Xq: Any, yq: Any) -> float:
    """mAP of queries over all items; what is stored is seen to have the model's codes."""
    codes, asked = items.model().transform(X), items.encode(Xq)
    nearest = np.sort(np.bitwise_count(codes ^ asked[:1]).sum(axis=1))[:10]
    np.testing.assert_array_equal(items.search(Xq[:1], k=10)[0][0], nearest)
    return mean_average_precision(asked, yq, codes, y)


@contextmanager
def listening() -> Iterator[list[tuple[int, float]]]:
    """Every answer that a collection notes before it learns: items so far, precision."""
    heard: list[tuple[int, float]] = []
    answers = Monitor.answers

    def note(self: Monitor, precisions: NDArray[np.float64], *, time: float, labelled: int) -> None:
        first = labelled - len(precisions)
        heard.extend((first + i, value) for i, value in enumerate(precisions.tolist()))
        answers(self, precisions, time=time, labelled=labelled)

    with mock.patch.object(Monitor, "answers", note):
        yield heard


def river_alarms(answers: list[tuple[int, float]]) -> dict[str, list[int]]:
    """When detectors of river, with their defaults, say that the answers fell."""
    if importlib.util.find_spec("river") is None:
        return {}
    drift: Any = importlib.import_module("river.drift")
    detectors = {
        "river ADWIN": drift.ADWIN(),
        "river PageHinkley": drift.PageHinkley(mode="down"),
    }
    found: dict[str, list[int]] = {name: [] for name in detectors}
    for name, detector in detectors.items():
        recent = before = 1.0
        for at, value in answers:
            recent += 0.01 * (value - recent)
            before += 0.001 * (value - before)
            detector.update(value)
            if detector.drift_detected and recent < before:
                found[name].append(at)
    return found


@contextmanager
def settled_once() -> Iterator[None]:
    """Work SDOH's hash functions out once for all collections that have learned the same rows."""
    kept: dict[tuple[int, ...], dict[str, Any]] = {}
    settle = SDOH.settle

    def once(self: SDOH) -> SDOH:
        if getattr(self, "settled_", True):
            return settle(self)
        key = self.seed_, self.n_bits, self.n_samples_seen_
        if key in kept:
            self.__dict__.update(kept[key])
            return self
        settle(self)
        kept[key] = {name: getattr(self, name) for name in SETTLED}
        return self

    with mock.patch.object(SDOH, "settle", once):
        yield


def run_all(cells: list[Cell]) -> list[Row]:
    """Run the cells of one stream, one method and one seed."""
    with settled_once():
        return [run(cell) for cell in cells]


def run(cell: Cell) -> Row:
    """Let a collection take a stream; return what became of it."""
    streamhash.set_threads(1)
    data = load_data(cell.data)
    stream, queries = draw(cell, data)
    X, y, Xq, yq = data.X[stream], data.y[stream], data.X[queries], data.y[queries]
    hasher = HASHERS[cell.method](n_bits=cell.bits, random_state=cell.seed)
    n, half = len(y), len(y) // 2
    old = np.isin(yq, np.unique(y[:half]))  # queries of the classes that came first
    looks = {*np.linspace(cell.batch, n, LOOKS + 1).astype(int).tolist()}
    looks |= {half + late * cell.batch for late in (0, 1, 2, 4)}
    looks = {min(n, -(-at // cell.batch) * cell.batch) for at in looks}
    curve, start, looking = [], time.process_time(), 0.0
    with tempfile.TemporaryDirectory() as folder, listening() as heard:
        items = Collection.create(f"{folder}/items", hasher, refresh=cell.refresh)
        for first in range(0, n, cell.batch):
            last = first + cell.batch
            items.add(np.arange(first, last), X[first:last], y[first:last])
            if cell.strategy == "every batch":
                items.refresh()
            if last in looks and items.model_number:
                began = time.process_time()
                seen, now = np.unique(y[:last]), np.unique(y[first:last])
                of_all, of_now = np.isin(yq, seen), np.isin(yq, now)
                look = {
                    "items": last,
                    "map": quality(items, X[:last], y[:last], Xq[of_all], yq[of_all]),
                    "map_now": quality(items, X[:last], y[:last], Xq[of_now], yq[of_now]),
                    "encoded": items.encoded_items,
                }
                if last == n and not old.all():
                    look["map_old"], look["map_new"] = (
                        quality(items, X, y, Xq[some], yq[some]) for some in (old, ~old)
                    )
                curve.append(look)
                looking += time.process_time() - began
        history = items.history()
        items.close()
    alarms = {"streamhash": [drift["labelled"] for drift in history.drifts]}
    if cell.strategy == "on its own":
        alarms |= river_alarms(heard)
    return {
        "benchmark": "live-drift",
        **vars(cell),
        "items": n,
        "parameters": hasher.get_params(),
        "version": streamhash.__version__,
        "machine": describe_machine(),
        "curve": curve,
        "map": curve[-1]["map"],
        **{name: curve[-1].get(name) for name in ("map_now", "map_old", "map_new")},
        "encoded": items.encoded_items,
        "refreshes": [event["items"] for event in history.refreshes],
        "alarms": alarms,
        "cpu_seconds": round(time.process_time() - start - looking, 2),
    }


def cells(options: argparse.Namespace) -> Iterator[Cell]:
    """Everything there is to run."""
    data = "mnist" if any(c.name == "mnist" and c.here for c in available()) else "digits"
    small = {"batch": 20, "length": 1_000} if data == "digits" else {}
    if options.quick and data == "mnist":
        small = {"length": 6_000}
    every = str(50 if data == "digits" else 2_000)
    methods, bits, seeds = options.method.split(","), options.bits, options.seeds
    if options.tune:
        for stream, method, price in itertools.product(STREAMS[:2], methods, (None, *PRICES)):
            strategy = "every batch" if price is None else "on its own"
            refresh = "manual" if price is None else f"gain={price}"
            yield Cell(data, stream, method, 32, 100, strategy, refresh, "stream", **small)
        return
    if options.quick:
        methods, bits, seeds = methods[:1], bits[:1], 1
    for seed, method, k, stream in itertools.product(range(seeds), methods, bits, STREAMS):
        for strategy, refresh in STRATEGIES.items():
            if stream != "steady" or strategy == "on its own":
                yield Cell(
                    data, stream, method, k, seed, strategy, refresh or every, "test", **small
                )


def show(rows: list[Row]) -> None:
    """Print the end of every stream, mean over seeds, and the two claims at their worst."""
    groups: dict[tuple[Any, ...], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        name = row["strategy"] if row["queries"] == "test" else row["refresh"]
        groups[row["stream"], row["method"], row["bits"]][name].append(row)
    for (stream, method, bits), by_name in groups.items():
        if stream == "steady":
            continue
        print(f"{stream}, {method}, {bits} bits")
        every = by_name.get("every batch") or by_name["manual"]
        work = np.array([row["encoded"] for row in every])
        for name, found in by_name.items():
            reached = np.array([row["map"] for row in found])
            now = np.array([row["map_now"] for row in found])
            less = reached - [row["map"] for row in every]
            encoded = np.array([row["encoded"] for row in found]) / work
            print(
                f"  {name:<12} mAP {reached.mean():.3f} ± {reached.std():.3f} (least difference "
                f"{less.min():+.3f}), of classes now {now.mean():.3f}; encoded {encoded.mean():.3f}"
                f" of every batch (most {encoded.max():.3f}), "
                f"{np.mean([len(row['refreshes']) for row in found]):.1f} refreshes"
            )
    show_alarms(rows)


def show_alarms(rows: list[Row]) -> None:
    """Print how late changes were noticed, and how many alarms there were without one."""
    asked = [row for row in rows if row["strategy"] == "on its own" and row["queries"] == "test"]
    for name in dict.fromkeys(name for row in asked for name in row["alarms"]):
        late, missed, false, steady = [], 0, 0, 0
        for row in asked:
            alarms, half = row["alarms"][name], row["items"] // 2
            if row["stream"] == "steady":
                steady += len(alarms)
                continue
            false += sum(at < half for at in alarms)
            after = [at - half for at in alarms if at >= half]
            late += after[:1]
            missed += not after
        print(
            f"alarms, {name}: {np.median(late or [np.nan]):.0f} items after the change (median; "
            f"most {max(late, default=0)}), {missed} changes missed, {false} alarms before a "
            f"change, {steady} on steady streams"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--method", default=",".join(HASHERS))
    parser.add_argument("--bits", type=int, nargs="+", default=[32, 64])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    if options.out and options.out.exists():
        rows = [json.loads(line) for line in options.out.read_text(encoding="utf-8").splitlines()]
    names = Cell.__dataclass_fields__
    done = {tuple(row[name] for name in names) for row in rows}
    todo = [cell for cell in cells(options) if tuple(vars(cell).values()) not in done]
    together = [
        [*group]
        for _, group in itertools.groupby(
            todo, lambda cell: (cell.stream, cell.method, cell.bits, cell.seed)
        )
    ]
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for row in itertools.chain.from_iterable(pool.map(run_all, together)):
            rows.append(row)
            if options.out:
                options.out.parent.mkdir(parents=True, exist_ok=True)
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(to_json(row) + "\n")
    show(rows)


if __name__ == "__main__":
    main()
