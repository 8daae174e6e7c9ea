"""Run one cell: learn from the stream, look at checkpoints, measure at the end."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import streamhash
from streamhash.base import OnlineHasher
from streamhash.codes import Codes
from streamhash.hashers import LSH
from streamhash.lab.arena import Arena, set_up
from streamhash.lab.datasets import DataSet
from streamhash.lab.machine import describe_machine
from streamhash.lab.plan import Plan, plan_cell
from streamhash.lab.rows import Row
from streamhash.metrics import Retrieval, area_under_curve, evaluate, mean_average_precision

__all__ = ["checkpoint_positions", "run_cell", "run_plan"]

Coded = tuple[Codes, Any, Codes, Any]
WARM_UP_ROWS = 200  # twice, as some methods only begin to learn at their second stage
CONVENTIONS = {
    "ties": "index: items at equal distance stand in database order, which is random",
    "map": "divided by all relevant items; queries without any are dropped",
    "map@1000": "divided by the relevant items among the 1000; queries without any are dropped",
    "precision@h2": "0 for a query without any item within distance 2",
    "auc": "mean of the curve over the checkpoints, of which the first is the first stage's end",
    "distances": "before = LSH with the same features, bits and seed; after = the whole stream",
    "seconds": "learn = whole stream; encode, evaluate = once, at the end; compilation left out",
}

CURVE_TOP = {"map": None, "map@1000": 1000}  # results that a curve's metric looks at


@dataclass
class Clock:
    """Adds up processor and wall seconds by what they were spent on."""

    seconds: dict[str, dict[str, float]] = field(default_factory=dict)

    @contextmanager
    def measure(self, what: str) -> Iterator[None]:
        """Count the time inside the block as spent on ``what``."""
        cpu, wall = time.process_time(), time.perf_counter()
        yield
        spent = self.seconds.setdefault(what, {"cpu": 0.0, "wall": 0.0})
        spent["cpu"] += time.process_time() - cpu
        spent["wall"] += time.perf_counter() - wall


def run_cell(
    method: str,
    data: DataSet | str | Path,
    n_bits: int,
    seed: int = 0,
    **choices: Any,
) -> Row:
    """Plan a cell (``choices`` are those of ``plan_cell``), run it and return its result row."""
    return run_plan(plan_cell(method, data, n_bits, seed, **choices))


def run_plan(plan: Plan) -> Row:
    """Run a planned cell and return its result row."""
    began = time.perf_counter()
    arena = set_up(plan)
    hasher = plan.hasher()
    _warm_up(hasher, arena)
    clock = Clock()
    curve: list[dict[str, float]] = []
    done = 0
    n_stream, metric = len(arena.stream_labels), plan.curve_metric
    for stop in checkpoint_positions(n_stream, hasher.batch_size, plan.checkpoints):
        with clock.measure("learn"):
            arena.learn(hasher, done, stop)
        done = stop
        if done < n_stream:
            value = mean_average_precision(*arena.encode(hasher), top=CURVE_TOP[metric])
            curve.append({"instances": done, metric: value})
    with clock.measure("encode"):
        coded = arena.encode(hasher)
    with clock.measure("evaluate"):
        metrics = evaluate(*coded)
    curve.append({"instances": done, metric: metrics[metric]})
    instances, values = zip(*((at["instances"], at[metric]) for at in curve), strict=True)
    metrics["auc"] = area_under_curve(instances, values)
    before = LSH(plan.n_bits, random_state=plan.seed)
    arena.learn(before, 0, n_stream)
    clock.seconds["cell"] = {"wall": time.perf_counter() - began}
    return {
        **plan.identity(),
        "database": len(arena.database),
        "queries": len(arena.queries),
        "instances": hasher.n_samples_seen_,
        "metrics": metrics,
        "curve": curve,
        "distances": {
            "before": _distances(arena.encode(before), plan.n_bits),
            "after": _distances(coded, plan.n_bits),
        },
        "seconds": clock.seconds,
        "conventions": CONVENTIONS,
        "version": streamhash.__version__,
        "machine": describe_machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": plan.command(),
    }


def checkpoint_positions(n: int, batch_size: int, count: int) -> list[int]:
    """Return after how many instances to look: after the first stage, evenly on, and at the end.

    Positions are ends of stages, so that looking never cuts a stage in two.

    >>> checkpoint_positions(1000, batch_size=100, count=4)
    [100, 400, 700, 1000]
    >>> checkpoint_positions(250, batch_size=100, count=10)
    [100, 200, 250]
    """
    n_stages = -(-n // batch_size)
    # With one look, it is the last: the one that is measured in full.
    stages = np.linspace(1, n_stages, count) if count > 1 else [n_stages]
    return sorted({min(round(stage) * batch_size, n) for stage in stages})


def _warm_up(hasher: OnlineHasher, arena: Arena) -> None:
    """Compile or load the kernels before time is taken."""
    rows = slice(min(WARM_UP_ROWS, len(arena.stream_labels)))
    twin = clone(hasher)
    X, labels = arena.stream[rows], arena.stream_labels[rows]
    for _ in range(2):
        twin.partial_fit(X, labels)
    codes = twin.transform(X)
    evaluate(codes, labels, codes, labels)


def _distances(coded: Coded, n_bits: int) -> dict[str, list[int]]:
    """Count query-database pairs at each distance 0..n_bits, similar ones and others."""
    similar, dissimilar = Retrieval(*coded).histograms()
    counts = {"similar": similar, "dissimilar": dissimilar}
    return {name: values[: n_bits + 1].tolist() for name, values in counts.items()}
