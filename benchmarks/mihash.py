"""MIHash: cached projections and compiled histograms against the plain loop, same trajectory.

    python benchmarks/mihash.py

One thread, a sample of 1000 items, all in one run; read the ratios. The plain form is the paper's
update in NumPy: for every instance the sample is projected anew (2 R d k operations), the soft
histograms are R × (K + 1) arrays, and W is updated at once.
"""

import copy
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from _machine import describe_machine
from streamhash import MIHash, set_threads
from streamhash.threads import single_threaded_blas

ROWS, SAMPLE, STEPS, CHECKED = 784, 1000, 256, 32


def data(n: int, d: int, seed: int = 0) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    y = random.integers(10, size=n)
    X = random.standard_normal((10, d))[y] + 8 * random.standard_normal((n, d))
    return (X / np.linalg.norm(X, axis=1)[:, None]).astype(np.float32), y


def plain(model: Any, X: Any, y: Any) -> Any:
    """Learn as the formulas say it, one instance after the other, from a model's state on."""
    W, k, A, bins = model.W_, model.n_bits, np.float32(model.sharpness), model.n_bins
    sample = copy.deepcopy(model.reservoir_)
    rows, labels = sample.rows_.copy(), sample.labels_.copy()
    slots = sample.take(X, y)
    numbers = sample.numbered(y)
    width = np.float32(k / bins)
    centres = width * np.arange(bins + 1, dtype=np.float32)
    for x, number, slot in zip(X, numbers, slots, strict=True):
        phi = 1 / (1 + np.exp(-np.clip(A * (x @ W), -42, 42)))
        phi_r = 1 / (1 + np.exp(-np.clip(A * (rows @ W), -42, 42)))
        psi_r = 2 * phi_r - 1
        offset = ((k - psi_r @ (2 * phi - 1)) / 2)[:, None] / width - centres / width
        t = np.maximum(0, 1 - abs(offset))
        slope = (((offset > -1) & (offset <= 0)) * 1.0 - ((offset > 0) & (offset <= 1))) / width
        near = labels == number
        p, p_near, p_far = (q.mean(axis=0) for q in (t, t[near], t[~near]))
        logs = [np.log2(q, out=np.zeros_like(q), where=q > 0) for q in (p, p_near, p_far)]
        by_row = np.where(near[:, None], logs[0] - logs[1], logs[0] - logs[2])
        weights = ((slope * by_row).sum(axis=1) / len(rows)).astype(np.float32)
        W = W - np.outer(x, A * phi * (1 - phi) * (weights @ -psi_r))
        if slot >= 0:
            rows[slot], labels[slot] = x, number
    return W


def cpu_seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def learned(k: int, X: Any, y: Any) -> MIHash:
    model = MIHash(k, n_bins=16, sharpness=10.0, normalize=False, random_state=0)
    return model.fit(X, y)


def main() -> None:
    print(f"\nR = {SAMPLE}, d = {ROWS}, K = 16, A = 10: CPU µs an instance, best of 5, interleaved")
    print(
        f"{'bits':>5} {'plain':>9} {'ours':>9} {'ratio':>7}   largest change of W, and difference"
    )
    X, y = data(SAMPLE + STEPS, ROWS)
    X, y, X_next, y_next = X[:SAMPLE], y[:SAMPLE], X[SAMPLE:], y[SAMPLE:]
    for k in (32, 64, 128):
        start = learned(k, X, y)
        times: dict[str, list[float]] = {"plain": [], "ours": []}
        for _ in range(5):
            times["plain"] += [cpu_seconds(partial(plain, start, X_next, y_next))]
            ours = learned(k, X, y)
            times["ours"] += [cpu_seconds(partial(ours.partial_fit, X_next, y_next))]
        slow, fast = (1e6 * min(times[name]) / STEPS for name in ("plain", "ours"))
        # Rounding that moves a distance over the edge of a bin changes a gradient by a finite
        # amount: so trajectories are compared before such differences add up.
        W_plain = plain(start, X_next[:CHECKED], y_next[:CHECKED])
        W = learned(k, X, y).partial_fit(X_next[:CHECKED], y_next[:CHECKED]).W_
        moved, apart = abs(W_plain - start.W_).max(), abs(W_plain - W).max()
        print(
            f"{k:5} {slow:9.0f} {fast:9.0f} {slow / fast:6.1f}x"
            f"   {moved:.4f} in {CHECKED} steps, {apart:.1e}"
        )
        if apart > 1e-3 * moved:
            raise SystemExit("the two trajectories are not the same")


if __name__ == "__main__":
    set_threads(1)
    print(describe_machine())
    with single_threaded_blas():
        main()
