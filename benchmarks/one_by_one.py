"""Learning one instance at a time: exact blocks against the plain NumPy loop, same trajectory.

    python benchmarks/one_by_one.py

d = 4096, k = 128, one thread, all in one run; read the ratios. The plain loop is what one writes
first: project, take the step, add its outer product to W in place. "class" is the same through
``partial_fit``, with all its checks, in pieces of 1,000 rows; of OHWEU it learns P as well, which
the loops leave out.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from _machine import describe_machine
from streamhash import ATHOH, HCOH, OHWEU, OSH, OnlineHasher, set_threads
from streamhash.kernels.learning.hard_mining import mine_hard_bits
from streamhash.kernels.learning.sequential import learn_one_by_one
from streamhash.threads import single_threaded_blas

D, K, N, CLASSES, ROUNDS = 4096, 128, 4000, 10, 5
Loop = Callable[[Any, Any, Any, Any], Any]  # of X, W, targets and numbers of classes: W


def plain_loop(rule: str, step: float, X: Any, W: Any, T: Any, _: Any) -> Any:
    W = W.copy()
    for x, t in zip(X, T, strict=True):
        z = x @ W
        if rule == "regression":
            f = np.tanh(z)
            W += np.outer(x, np.float32(step) * (t - f) * (1 - f * f))
        elif rule == "hinge":
            W += np.outer(x, np.float32(step) * t * (t * z < 1))
        else:
            W += np.outer(x, t * np.clip(1 - t * z / (x @ x), 0, np.float32(step)))
    return W


def blocks(rule: str, step: float, X: Any, W: Any, T: Any, _: Any) -> Any:
    return learn_one_by_one(X, W, T, rule, step)[0]


def plain_mining(step: float, threshold: float, X: Any, W: Any, T: Any, numbers: Any) -> Any:
    W = W.copy()
    counts, squares = np.zeros(CLASSES, np.float32), np.zeros((CLASSES, K), np.float32)
    for x, t, c in zip(X, T, numbers, strict=True):
        e = x @ W - t
        counts[c] += 1
        squares[c] += (e * e - squares[c]) / counts[c]
        density = np.exp(-e * e / (2 * squares[c])) / np.sqrt(2 * np.pi * squares[c])
        w = np.maximum(0, 1 - density / threshold)
        W -= np.outer(x, np.float32(step) * (e + w * (1 - step * (x @ x)) * e))
    return W


def mining(step: float, threshold: float, X: Any, W: Any, T: Any, numbers: Any) -> Any:
    errors = np.zeros(CLASSES), np.zeros((CLASSES, K))
    learn = partial(mine_hard_bits, X, W, T, numbers, *errors, root=True, twice=True)
    return learn(step=step, threshold=threshold)[0]


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


def compare(
    name: str,
    plain_way: Loop,
    block_way: Loop,
    fresh: Callable[[], OnlineHasher],
    weights: Callable[[Any], Any] = lambda model: model.W_,
    book: Callable[[Any], Any] = lambda model: model.codebook_,
) -> None:
    X, y = stream()
    begun = weights(fresh().partial_fit(0 * X[:1], y[:1]))  # no step: compiles, shows the first W
    known = learned(fresh, X, y)
    numbers = known.table_.number(y)
    T = book(known).targets_[numbers]
    work: dict[str, Callable[[], Any]] = {
        "plain": partial(plain_way, X, begun, T, numbers),
        "blocks": partial(block_way, X, begun, T, numbers),
        "class": lambda: weights(learned(fresh, X, y)),
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
    by_blocks, by_class = (micro["plain"] / micro[way] for way in ("blocks", "class"))
    print(
        f"{name:10} {micro['plain']:8.0f} {micro['blocks']:8.1f} {by_blocks:6.1f}x"
        f" {micro['class']:8.1f} {by_class:6.1f}x {abs(plain).max():9.3f} {difference:12.1e}"
        f" {bits:6} of {N * K}"
    )


def main() -> None:
    print(f"\nd = {D}, k = {K}, {N} instances: CPU µs an instance, best of {ROUNDS}, interleaved")
    heads = f"{'plain':>8} {'blocks':>8} {'ratio':>7} {'class':>8} {'ratio':>7}"
    print(f"{'':10} {heads} {'max |W|':>9} {'difference':>12} {'bits that differ':>17}")

    def ways(rule: str, step: float) -> tuple[Loop, Loop]:
        return partial(plain_loop, rule, step), partial(blocks, rule, step)

    hcoh = partial(HCOH.published, "mnist", n_bits=K, random_state=0)
    compare("HCOH", *ways("regression", 0.2), hcoh)
    hinge = partial(OSH.published, "mnist", n_bits=K, random_state=0, loss="hinge")
    compare("OSH, hinge", *ways("hinge", 0.1), hinge)
    ohweu = partial(OHWEU.published, "mnist", n_bits=K, random_state=0, clip_at_zero=True)
    compare("OHWEU", *ways("passive_aggressive", 0.1), ohweu, lambda model: model.Q_)
    athoh = partial(ATHOH, K, stage_size=N + 1, normalize=False, random_state=0)
    compare(
        *("ATHOH", partial(plain_mining, 0.1, 0.3), partial(mining, 0.1, 0.3), athoh),
        *(lambda model: model.student_.W_, lambda model: model.student_.codebook_),
    )


if __name__ == "__main__":
    set_threads(1)
    print(describe_machine("scikit-learn"))
    with single_threaded_blas():
        main()
