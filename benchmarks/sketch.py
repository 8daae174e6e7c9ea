"""FROSH's sketch against SketchHash's, at 4096 features: seconds, and how far each is off.

    python benchmarks/sketch.py

One thread, all in one run, interleaved; read the ratios. The streams are of low rank plus noise,
and one has a spectrum that falls slowly; the error is ‖AᵀA − SᵀS‖₂ / ‖A‖², with A all rows that
went by and S the sketch. FROSH with guides is our default, without them (q = 0) the paper's. The
second part learns a stream with the hashers, which also renew their hash functions every stage.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from _machine import describe_machine
from streamhash import FROSH, SketchHash, set_threads
from streamhash.hashers._sketch import FastFrequentDirections, FrequentDirections
from streamhash.kernels.learning.hadamard import fold_block, plain_fold_block
from streamhash.threads import single_threaded_blas

N, D, RANK = 12_288, 4096, 40
REPEATS = 3


def low_rank_plus_noise(noise: float, seed: int = 0) -> Any:
    """Rows (N, D) of rank 40, singular values falling to a tenth, and noise of so much energy."""
    random = np.random.default_rng(seed)
    left = random.standard_normal((N, RANK), dtype=np.float32) * np.geomspace(1, 0.1, RANK)
    A = left.astype(np.float32) @ random.standard_normal((RANK, D), dtype=np.float32)
    A *= np.float32(((1 - noise) / np.square(A).sum(dtype=np.float64)) ** 0.5)
    E = random.standard_normal((N, D), dtype=np.float32)
    A += E * np.float32((noise / np.square(E).sum(dtype=np.float64)) ** 0.5)
    return A * np.float32(N**0.5)


def cpu_seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def error(A: Any, S: Any) -> float:
    """‖AᵀA − SᵀS‖₂ / ‖A‖², by Lanczos on products with A and S alone."""

    def difference(x: Any) -> Any:
        x = x.astype(np.float32).ravel()
        return (A.T @ (A @ x) - S.T @ (S @ x)).astype(np.float64)

    operator = LinearOperator((D, D), matvec=difference, dtype=np.float64)
    (largest,) = eigsh(operator, k=1, tol=1e-3, v0=np.ones(D), return_eigenvectors=False)
    return float(abs(largest) / np.square(A).sum(dtype=np.float64))


def falling_spectrum(seed: int = 0) -> Any:
    """Rows (N, D) whose i-th direction has a variance of 1/i."""
    random = np.random.default_rng(seed)
    return random.standard_normal((N, D), dtype=np.float32) / np.sqrt(
        np.arange(1, D + 1, dtype=np.float32)
    )


def sketches() -> None:
    streams: dict[str, Callable[[], Any]] = {
        f"noise {share:.0%}": partial(low_rank_plus_noise, share) for share in (0.1, 0.5, 0.9)
    }
    streams["variance 1/i"] = falling_spectrum
    print(
        f"\n{N} rows, d = {D}; rank {RANK} plus noise, or variance 1/i: CPU seconds to sketch them"
        f"\n(best of {REPEATS}), times faster, error, and error beside SketchHash's"
    )
    print(f"{'stream':>13} {'l':>4} {'SketchHash':>18}  {'FROSH':>31}  {'FROSH, no guides':>31}")
    for name, make in streams.items():
        A = make()
        for size in (100, 200, 400) if name == "noise 50%" else (200,):
            made: dict[str, Callable[[int], FrequentDirections]] = {
                "plain": partial(_plain, size),
                "fast": partial(_fast, size, size // 4),
                "mixed": partial(_fast, size, 0),
            }
            seconds: dict[str, list[float]] = {kind: [] for kind in made}
            errors: dict[str, list[float]] = {kind: [] for kind in made}
            for repeat in range(REPEATS):
                for kind, new in made.items():
                    sketch = new(repeat)
                    seconds[kind].append(cpu_seconds(partial(sketch.add_rows, A)))
                    if kind != "plain" or repeat == 0:  # the plain one is the same every time
                        errors[kind].append(error(A, sketch.rows()))
            best = {kind: min(seconds[kind]) for kind in made}
            off = {kind: float(np.mean(errors[kind])) for kind in made}
            cells = [f"{name:>13} {size:4} {best['plain']:8.2f}s {off['plain']:8.5f}"]
            cells += [
                f"{best[kind]:6.2f}s {best['plain'] / best[kind]:6.1f}x {off[kind]:8.5f}"
                f" {off[kind] / off['plain']:6.2f}"
                for kind in ("fast", "mixed")
            ]
            print("  ".join(cells))


def _plain(size: int, seed: int) -> FrequentDirections:  # noqa: ARG001
    return FrequentDirections(size)


def _fast(size: int, guides: int, seed: int) -> FrequentDirections:
    return FastFrequentDirections(size, guides=guides, random_state=seed)


def hashers() -> None:
    print("\nThe same stream (noise 0.5) learned with 32 bits, l = 200: CPU seconds")
    print(f"{'stages of':>10} {'SketchHash':>11} {'FROSH':>8} {'faster':>8}")
    A = low_rank_plus_noise(0.5)
    for batch_size in (50, 200, 1000):
        plain, fast = (
            cpu_seconds(partial(method(32, batch_size=batch_size, random_state=0).fit, A))
            for method in (SketchHash, FROSH)
        )
        print(f"{batch_size:10} {plain:10.2f}s {fast:7.2f}s {plain / fast:7.1f}x")


def compiled_against_plain() -> None:
    print("\nOne block of 64 rows into 100, d = 4096: CPU ms, best of 20, interleaved")
    random = np.random.default_rng(0)
    F = random.standard_normal((64, D), dtype=np.float32)
    flips = np.where(random.random(64) < 0.5, -1, 1).astype(np.float32)
    picked = random.integers(64, size=100)
    weights = np.full(100, 0.1, np.float32)
    outcome = {}
    times: dict[str, list[float]] = {"plain": [], "compiled": []}
    for _ in range(20):
        for name, fold in (("plain", plain_fold_block), ("compiled", fold_block)):
            Y = np.zeros((100, D), np.float32)
            times[name].append(1000 * cpu_seconds(partial(fold, F, flips, picked, weights, Y)))
            outcome[name] = Y
    plain, compiled = (min(times[name]) for name in ("plain", "compiled"))
    difference = abs(outcome["plain"] - outcome["compiled"]).max()
    print(f"{'plain':>8} {'compiled':>9} {'ratio':>7} {'largest difference':>20}")
    print(f"{plain:8.2f} {compiled:9.2f} {plain / compiled:6.1f}x {difference:20.1e}")


if __name__ == "__main__":
    set_threads(1)
    print(describe_machine("scipy"))
    FROSH(8, random_state=0).fit(np.eye(400, 64, dtype=np.float32))  # compile before the clock runs
    with single_threaded_blas():
        sketches()
        hashers()
        compiled_against_plain()
