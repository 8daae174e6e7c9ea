"""What mAP of ATHOH on MNIST hangs on: one choice of its port changed at a time, and each draw.

    python benchmarks/athoh_choices.py > results/benchmarks/athoh_choices.txt

The port's settings, 20,000 rows learned, 69,000 items, 1,000 queries; rows centred by the mean of
2,000 items and of unit length. Three parts, all of them mAP at 32 and 64 bits:

- the library's blocks in float32 beside a plain loop in float64, from the same codewords and W;
- each choice that a text of the method leaves open, as a difference from the port's, the draws
  being the same: mean ± deviation over the seeds;
- the deviation that each draw brings by itself, the others being fixed.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _machine import describe_machine
from streamhash import mean_average_precision, pack, set_threads
from streamhash.kernels.learning.hadamard import hadamard_signs
from streamhash.kernels.learning.hard_mining import mine_hard_bits
from streamhash.lab import datasets
from streamhash.threads import single_threaded_blas

BITS, STREAM, CLASSES, STEP, THRESHOLD = (32, 64), 20_000, 10, 0.2, 0.3
SEEDS, COMPARED, CHANGED, DRAWN = 20, 3, 5, 10  # seeds of each part
Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Choices:
    """The port's choices, and the seeds of all that is drawn."""

    codewords: str = "orthogonal"
    start: str = "unit"
    stage: int = 2000
    twice: str = "first"
    forget: bool = True
    root: bool = False
    threshold: float = THRESHOLD
    mean: str = "some"
    queries: str = "balanced"
    order: str = "shuffled"
    ties: str = "index"
    split_seed: int = 0
    order_seed: int | None = None  # None: the order of the split
    codeword_seed: int = 0
    start_seed: int = 0

    def seeded(self, seed: int) -> "Choices":
        return replace(self, split_seed=seed, codeword_seed=seed, start_seed=seed)


CHANGES: dict[str, dict[str, Any]] = {
    "codewords: rows of a Hadamard matrix": {"codewords": "hadamard"},
    "codewords: random signs": {"codewords": "random"},
    "first W: zero": {"start": "zero"},
    "first W: normal, columns not divided by their norms": {"start": "normal"},
    "first stage: each row learned once": {"twice": "never"},
    "all stages: each row learned twice": {"twice": "always"},
    "stages of 500": {"stage": 500},
    "stages of 5,000": {"stage": 5000},
    "mean squares of errors kept": {"forget": False},
    "deviation: the root": {"root": True},
    "weights of bits off": {"threshold": math.inf},
    "ties: expected precision": {"ties": "expected"},
    "ties: relevant items first": {"ties": "relevant"},
    "mean of all rows taken off": {"mean": "all"},
    "no mean taken off": {"mean": "none"},
    "queries: any 1,000 rows": {"queries": "any"},
    "queries: 100 a class of the test file": {"queries": "test"},
    "stream and items in the order of the files": {"order": "files"},
}
DRAWS = {
    "codewords": "codeword_seed",
    "first W": "start_seed",
    "order of the same stream": "order_seed",
    "split: queries, items and stream": "split_seed",
}


@lru_cache(maxsize=1)
def mnist() -> tuple[NDArray[Any], NDArray[np.int64]]:
    data = datasets.load_data("mnist")
    return np.asarray(data.X, np.float32), np.asarray(data.y).astype(np.int64)


@lru_cache(maxsize=1)
def split(seed: int, queries: str, order: str, mean: str) -> tuple[Any, ...]:
    """Rows of unit length, their classes, and which are queries and items; these begin a stream."""
    X, y = mnist()
    shuffled = np.random.default_rng([seed, 0]).permutation(len(y))
    pool = shuffled[shuffled >= 60_000] if queries == "test" else shuffled
    if queries == "any":
        asked = shuffled[:1000]
    else:
        asked = np.concatenate([pool[y[pool] == c][:100] for c in range(CLASSES)])
    rows = np.arange(len(y)) if order == "files" else shuffled
    items = rows[~np.isin(rows, asked)]
    centre = {
        "some": X[items[:2000]].mean(axis=0, dtype=np.float64),
        "all": X.mean(axis=0, dtype=np.float64),
        "none": 0.0,
    }[mean]
    unit = X - np.asarray(centre, np.float32)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    return unit, y, asked, items


def draw_codewords(kind: str, k: int, seed: int) -> Doubles:
    random = np.random.default_rng([seed, 1, k])
    if kind == "random":
        signs = random.standard_normal((CLASSES, k))
    elif kind == "hadamard":
        chosen = random.permutation(k)[:CLASSES]
        signs = np.array([hadamard_signs(np.arange(k), int(row)) for row in chosen])
    else:
        left = np.linalg.svd(random.standard_normal((k, k)))[0]
        signs = left[random.permutation(k)[:CLASSES]]
    return np.where(signs < 0, -1.0, 1.0)


def draw_start(kind: str, d: int, k: int, seed: int) -> Doubles:
    W = np.random.default_rng([seed, 2, k]).standard_normal((d, k))
    if kind == "zero":
        return np.zeros((d, k))
    return W if kind == "normal" else W / np.linalg.norm(W, axis=0)


def plain_loop(X: Any, classes: Any, W: Doubles, D: Doubles) -> Doubles:
    """The port's student, row by row in float64."""
    W, X = W.copy(), X.astype(np.float64)
    for i, (x, c) in enumerate(zip(X, classes, strict=True)):
        if i % 2000 == 0:
            N, S = np.zeros(len(D)), np.zeros_like(D)
        e = x @ W - D[c]
        N[c] += 1
        S[c] += (e**2 - S[c]) / N[c]
        density = np.exp(-((e / S[c]) ** 2) / 2) / (S[c] * np.sqrt(2 * np.pi))
        w = np.maximum(0, 1 - density / THRESHOLD)
        if i < 2000:
            W -= STEP * x[:, None] * e
            e = x @ W - D[c]
        W -= STEP * x[:, None] * (w * e)
    return W


def blocks(X: Any, classes: Any, W: Doubles, D: Doubles, chosen: Choices) -> Any:
    """The library's, stage by stage."""
    model, codewords = W.astype(np.float32), D.astype(np.float32)
    counts, squares = np.zeros(len(D)), np.zeros_like(D)
    for first in range(0, len(X), chosen.stage):
        piece = slice(first, first + chosen.stage)
        numbers = classes[piece].astype(np.int32)
        if chosen.forget:
            counts, squares = np.zeros(len(D)), np.zeros_like(D)
        twice = chosen.twice == "always" or (chosen.twice == "first" and first == 0)
        rule: dict[str, Any] = {
            "step": STEP,
            "threshold": chosen.threshold,
            "root": chosen.root,
            "twice": twice,
        }
        model, counts, squares, _ = mine_hard_bits(
            X[piece], model, codewords[numbers], numbers, counts, squares, **rule
        )
    return model


def quality(k: int, chosen: Choices, *, plain: bool = False) -> float:
    """Learn and return mAP."""
    parts = (chosen.split_seed, chosen.queries, chosen.order, chosen.mean)
    unit, y, asked, items = split(*parts)
    stream = items[:STREAM]
    if chosen.order_seed is not None:
        stream = np.random.default_rng([chosen.order_seed, 3]).permutation(stream)
    D = draw_codewords(chosen.codewords, k, chosen.codeword_seed)
    W = draw_start(chosen.start, unit.shape[1], k, chosen.start_seed)
    rows, classes = unit[stream], y[stream]
    model = plain_loop(rows, classes, W, D) if plain else blocks(rows, classes, W, D, chosen)
    codes = pack(unit @ model.astype(np.float32) > 0)
    if chosen.ties != "relevant":
        coded = codes[asked], y[asked], codes[items], y[items]
        return mean_average_precision(*coded, ties=chosen.ties)
    found = []
    for c in range(CLASSES):  # in as many orders of the items
        own, first = asked[y[asked] == c], items[np.argsort(y[items] != c, kind="stable")]
        found.append(mean_average_precision(codes[own], y[own], codes[first], y[first]))
    return float(np.mean(found))  # each class asks with as many


def spread(values: Any, form: str = ".3f") -> str:
    return f"{np.mean(values):{form}} ± {np.std(values, ddof=1):.3f}"


def line(name: str, cells: list[str]) -> None:
    print(f"{name:<53}" + "".join(f"{cell:>17}" for cell in cells), flush=True)


def main() -> None:
    port = Choices()
    print(describe_machine())
    seeds = [port.seeded(seed) for seed in range(SEEDS)]
    usual = {(k, seed): quality(k, seeds[seed]) for seed in range(SEEDS) for k in BITS}
    away = {
        (k, seed): abs(quality(k, seeds[seed], plain=True) - usual[k, seed])
        for seed in range(COMPARED)
        for k in BITS
    }
    of_two = {
        k: [(usual[k, a] + usual[k, b]) / 2 for a in range(SEEDS) for b in range(a)] for k in BITS
    }
    line("\nmAP", [f"{k} bits" for k in BITS])
    every = {k: [usual[k, seed] for seed in range(SEEDS)] for k in BITS}
    line(f"port's choices, {SEEDS} seeds", [spread(every[k]) for k in BITS])
    line("  lowest and highest seed", [f"{min(every[k]):.3f}, {max(every[k]):.3f}" for k in BITS])
    line("  highest mean of two seeds", [f"{max(of_two[k]):.3f}" for k in BITS])
    largest = [max(away[k, seed] for seed in range(COMPARED)) for k in BITS]
    line(f"  away from the plain loop, {COMPARED} seeds", [f"{each:.1e}" for each in largest])
    changed: dict[tuple[str, int], list[float]] = {}
    for seed in range(CHANGED):
        for name, change in CHANGES.items():
            for k in BITS:
                found = quality(k, replace(seeds[seed], **change))
                changed.setdefault((name, k), []).append(found - usual[k, seed])
    line(f"\nchanged, {CHANGED} seeds: difference", [])
    for name in CHANGES:
        line(name, [spread(changed[name, k], "+.3f") for k in BITS])
    line(f"\ndrawn {DRAWN} times, all else fixed", [])
    for name, seed_of in DRAWS.items():
        changes: list[dict[str, Any]] = [{seed_of: seed} for seed in range(DRAWN)]
        drawn = [replace(port, **change) for change in changes]
        by_bits = np.array([[quality(k, each) for k in BITS] for each in drawn])
        line(name, [spread(column) for column in by_bits.T])


if __name__ == "__main__":
    set_threads(1)
    with single_threaded_blas():
        main()
