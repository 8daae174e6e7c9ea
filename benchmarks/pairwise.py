"""OKH and AdaptHash: learning from pairs in blocks against the plain NumPy loop on W itself.

    python benchmarks/pairwise.py

One thread each, all in one run, interleaved; read the ratios. Both start from the same W and the
ends are compared: over the pairs that are timed, and for AdaptHash, which amplifies rounding, in
float64 as well.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from _machine import describe_machine
from streamhash import set_threads
from streamhash.kernels.learning import pairwise_steps as steps
from streamhash.threads import single_threaded_blas

ROUNDS = 5
PASSIVE = {"cap": 0.1, "margin": 0.45}
ADAPTIVE = {"step": 0.05, "margin": 0.8, "spread": 0.01}


def cpu_seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def pairs(n_pairs: int, d: int, k: int) -> tuple[Any, Any, Any]:
    """W and unit rows of ten classes, two of them a pair."""
    random = np.random.default_rng(0)
    y = random.integers(10, size=2 * n_pairs)
    X = random.standard_normal((10, d))[y] + random.standard_normal((2 * n_pairs, d))
    X /= np.linalg.norm(X, axis=1)[:, None]
    W = random.standard_normal((d, k))
    W /= np.linalg.norm(W, axis=0)
    return W.astype(np.float32), X.astype(np.float32), y[::2] == y[1::2]


def compare(
    name: str, blocked: Any, plain: Any, parameters: dict[str, float], d: int, k: int, n_pairs: int
) -> None:
    W, X, similar = pairs(n_pairs, d, k)
    work = {
        "blocked": partial(blocked, W, X, similar, **parameters),
        "plain": partial(plain, W, X, similar, **parameters),
    }
    (fast, n_active), (slow, n_plain) = work["blocked"](), work["plain"]()
    same_pairs = "same" if n_active == n_plain else f"{n_active - n_plain:+d}"
    exact = [
        learn(W.astype(float), X.astype(float), similar, **parameters)[0]
        for learn in (blocked, plain)
    ]
    times: dict[str, list[float]] = {"blocked": [], "plain": []}
    for _ in range(ROUNDS):
        for which, seconds in times.items():
            seconds.append(cpu_seconds(work[which]))
    us = {which: 1e6 * min(seconds) / n_pairs for which, seconds in times.items()}
    print(
        f"{name:>10} {d:6} {k:5} {n_pairs:6} {n_active:7} {us['plain']:10.1f} {us['blocked']:10.1f}"
        f" {us['plain'] / us['blocked']:6.1f}x {same_pairs:>6} {abs(fast - slow).max():9.1e}"
        f" {abs(exact[0] - exact[1]).max():9.1e}"
    )


if __name__ == "__main__":
    set_threads(1)
    print(describe_machine())
    print(f"\nCPU microseconds a pair, best of {ROUNDS}; differences: largest in W at the end")
    print(
        f"{'':>10} {'d':>6} {'k':>5} {'pairs':>6} {'active':>7} {'plain':>10} {'blocked':>10}"
        f" {'ratio':>7} {'active':>6} {'float32':>9} {'float64':>9}"
    )
    okh = ("OKH", steps.learn_passive_pairs, steps.plain_passive_pairs, PASSIVE)
    adapt = ("AdaptHash", steps.learn_adaptive_pairs, steps.plain_adaptive_pairs, ADAPTIVE)
    with single_threaded_blas():
        compare(*okh, d=301, k=32, n_pairs=2000)
        compare(*okh, d=301, k=128, n_pairs=2000)
        compare(*okh[:3], {**PASSIVE, "margin": 0.7}, d=301, k=128, n_pairs=2000)
        compare(*okh, d=4096, k=128, n_pairs=500)
        compare(*adapt, d=784, k=32, n_pairs=100)
        compare(*adapt, d=784, k=128, n_pairs=100)
        compare(*adapt, d=4096, k=128, n_pairs=100)
