"""SDOH: the fused step against its plain NumPy twin, and our default against the published one.

    python benchmarks/sdoh_step.py

One thread each, all in one run; read the ratios. The second part needs MNIST (STREAMHASH_DATA or
the cache folder) and is left out without it.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from _machine import describe_machine
from streamhash import SDOH, MissingDataError, mean_average_precision, set_threads
from streamhash.kernels.learning.pairs import (
    PairRule,
    count_similar,
    pair_gradient,
    plain_pair_gradient,
)
from streamhash.lab.datasets import load_data, split
from streamhash.threads import single_threaded_blas


def cpu_seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def step(gradient: Callable[..., Any], X: Any, W: Any, labels: Any, rule: PairRule) -> Any:
    B = np.tanh(X @ W)
    G, _ = gradient(B, B, labels, rule)
    return W - X.T @ (G * (1 - B * B))


def fused_against_plain() -> None:
    print(
        "\nOne gradient step, n_t = 2000, d = 784, exact gradient: CPU ms, best of 9, interleaved"
    )
    print(f"{'bits':>5} {'plain':>8} {'fused':>8} {'ratio':>7} {'largest difference in W':>26}")
    random = np.random.default_rng(0)
    X = random.random((2000, 784), dtype=np.float32)
    labels = random.integers(10, size=2000).astype(np.int32)
    p = 1 / (count_similar(labels) + 0.1 * (2000 * 1999 - count_similar(labels)))
    for k in (32, 64, 128):
        W = (random.standard_normal((784, k)) / 28).astype(np.float32)
        rule = PairRule(p, 0.1 * p, k / 10, k / 15)
        W_fused, W_plain = (
            step(gradient, X, W, labels, rule) for gradient in (pair_gradient, plain_pair_gradient)
        )
        times: dict[str, list[float]] = {"plain": [], "fused": []}
        for _ in range(9):
            for name, gradient in (("plain", plain_pair_gradient), ("fused", pair_gradient)):
                times[name].append(cpu_seconds(partial(step, gradient, X, W, labels, rule)))
        plain, fused = (1000 * min(times[name]) for name in ("plain", "fused"))
        difference = abs(W_fused - W_plain).max()
        print(f"{k:5} {plain:8.1f} {fused:8.1f} {plain / fused:6.1f}x {difference:26.1e}")


def default_against_published() -> None:
    try:
        data = load_data("mnist")
    except MissingDataError as error:
        print(f"\nLeft out, without MNIST: {error}")
        return
    print(
        "\nMNIST, 20,000 instances learned by the paper's protocol, one seed: mAP and CPU seconds"
    )
    print(f"{'bits':>5} {'published':>18} {'default':>18} {'ratio':>8}")
    parts = split(data.y, queries_per_class=100, stream=20_000, random_state=0)
    stream = data.X[parts.stream], data.y[parts.stream]
    SDOH(n_bits=8).fit(stream[0][:400], stream[1][:400])  # compile before the clock runs
    for k in (32, 48, 64, 128):
        cells = []
        for model in (SDOH.published("mnist", n_bits=k, random_state=0), SDOH(k, random_state=0)):
            seconds = cpu_seconds(partial(model.fit, *stream))
            queries, database = (
                (model.transform(data.X[rows]), data.y[rows])
                for rows in (parts.queries, parts.database)
            )
            cells.append((mean_average_precision(*queries, *database), seconds))
        (map_p, seconds_p), (map_d, seconds_d) = cells
        print(
            f"{k:5} {map_p:9.4f} {seconds_p:7.2f}s {map_d:9.4f} {seconds_d:7.2f}s"
            f" {seconds_p / seconds_d:7.0f}x"
        )


if __name__ == "__main__":
    set_threads(1)
    print(describe_machine("scikit-learn"))
    with single_threaded_blas():
        fused_against_plain()
        default_against_published()
