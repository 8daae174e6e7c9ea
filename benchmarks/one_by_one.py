"""Learning one instance at a time: exact blocks against the plain NumPy loop, same trajectory.

    python benchmarks/one_by_one.py

d = 4096, k = 128, one thread, all in one run; read the ratios. The plain loop is what one writes
first: project, take the step, add its outer product to W in place. "class" is the same through
``partial_fit``, with all its checks, in pieces of 1,000 rows.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from _machine import describe_machine
from streamhash import HCOH, OSH, OnlineHasher, set_threads
from streamhash.kernels.learning.sequential import learn_one_by_one
from streamhash.threads import single_threaded_blas

D, K, N, CLASSES, ROUNDS = 4096, 128, 4000, 10, 5


def plain_loop(X: Any, W: Any, T: Any, rule: str, step: float) -> Any:
    W = W.copy()
    for x, t in zip(X, T, strict=True):
        z = x @ W
        if rule == "regression":
            f = np.tanh(z)
            W += np.outer(x, np.float32(step) * (t - f) * (1 - f * f))
        else:
            W += np.outer(x, np.float32(step) * t * (t * z < 1))
    return W


def learned(fresh: Callable[[], OnlineHasher], X: Any, y: Any) -> Any:
    model = fresh()
    for start in range(0, N, 1000):
        model.partial_fit(X[start : start + 1000], y[start : start + 1000])
    return model


def stream() -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    y = random.integers(CLASSES, size=N)
    X = random.standard_normal((CLASSES, D))[y] + 2 * random.standard_normal((N, D))
    return (X / np.linalg.norm(X, axis=1)[:, None]).astype(np.float32), y


def compare(name: str, rule: str, step: float, fresh: Callable[[], OnlineHasher]) -> None:
    X, y = stream()
    begun = fresh().partial_fit(0 * X[:1], y[:1])  # no step: compiles, and shows the first W
    known = learned(fresh, X, y)
    T = known.codebook_.targets_[known.table_.number(y)]
    work: dict[str, Callable[[], Any]] = {
        "plain": partial(plain_loop, X, begun.W_, T, rule, step),
        "blocks": lambda: learn_one_by_one(X, begun.W_, T, rule, step)[0],
        "class": lambda: learned(fresh, X, y).W_,
    }
    micro = dict.fromkeys(work, np.inf)
    W = {}
    for _ in range(ROUNDS):
        for way, run in work.items():
            began = time.process_time()
            W[way] = run()
            micro[way] = min(micro[way], 1e6 * (time.process_time() - began) / N)
    plain = W["plain"]
    difference = max(abs(W[way] - plain).max() for way in ("blocks", "class"))
    bits = max(int(((X @ W[way] > 0) != (X @ plain > 0)).sum()) for way in ("blocks", "class"))
    assert difference < 1e-3 * abs(plain).max(), "the trajectories differ"
    blocks, by_class = (micro["plain"] / micro[way] for way in ("blocks", "class"))
    print(
        f"{name:10} {micro['plain']:8.0f} {micro['blocks']:8.1f} {blocks:6.1f}x"
        f" {micro['class']:8.1f} {by_class:6.1f}x {abs(plain).max():9.3f} {difference:12.1e}"
        f" {bits:6} of {N * K}"
    )


def main() -> None:
    print(f"\nd = {D}, k = {K}, {N} instances: CPU µs an instance, best of {ROUNDS}, interleaved")
    heads = f"{'plain':>8} {'blocks':>8} {'ratio':>7} {'class':>8} {'ratio':>7}"
    print(f"{'':10} {heads} {'max |W|':>9} {'difference':>12} {'bits that differ':>17}")
    compare("HCOH", "regression", 0.2, partial(HCOH.published, "mnist", n_bits=K, random_state=0))
    hinge = partial(OSH.published, "mnist", n_bits=K, random_state=0, loss="hinge")
    compare("OSH, hinge", "hinge", 0.1, hinge)


if __name__ == "__main__":
    set_threads(1)
    print(describe_machine("scikit-learn"))
    with single_threaded_blas():
        main()
