"""FROSH's sketch against SketchHash's, at 4096 features: seconds, and how far each is off.

    python benchmarks/sketch.py

One thread, all in one run, interleaved; read the ratios. The stream is of low rank plus noise; the
error is ‖AᵀA − SᵀS‖₂ / ‖A‖², with A all rows that went by and S the sketch. The second part learns
the same stream with the hashers, which also renew their hash functions at every stage.
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
from streamhash.kernels.hadamard import fold_block, plain_fold_block
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


def sketches() -> None:
    print(f"\n{N} rows, d = {D}, rank {RANK} plus noise: CPU seconds to sketch (best of {REPEATS})")
    print("and error")
    print(
        f"{'l':>5} {'noise':>6} {'SketchHash':>11} {'FROSH':>8} {'faster':>8}"
        f" {'SketchHash':>11} {'FROSH':>8} {'ratio':>7}"
    )
    for noise in (0.1, 0.5):
        A = low_rank_plus_noise(noise)
        for size in (100, 200, 400):
            seconds: dict[str, list[float]] = {"plain": [], "fast": []}
            errors: dict[str, list[float]] = {"plain": [], "fast": []}
            for repeat in range(REPEATS):
                made = {
                    "plain": FrequentDirections(size),
                    "fast": FastFrequentDirections(size, random_state=repeat),
                }
                for name, sketch in made.items():
                    seconds[name].append(cpu_seconds(partial(sketch.add_rows, A)))
                    if name == "fast" or repeat == 0:  # the plain sketch is the same every time
                        errors[name].append(error(A, sketch.rows()))
            plain, fast = (min(seconds[name]) for name in ("plain", "fast"))
            off, off_fast = (float(np.mean(errors[name])) for name in ("plain", "fast"))
            print(
                f"{size:5} {noise:6.1f} {plain:10.2f}s {fast:7.2f}s {plain / fast:7.1f}x"
                f" {off:11.5f} {off_fast:8.5f} {off_fast / off:7.2f}"
            )


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
