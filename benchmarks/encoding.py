"""Encoding with Fourier features: by structured transforms, by a dense product, and without any.

    python benchmarks/encoding.py

One thread, all in one run, interleaved; read the ratios. *Linear*: X W. *Structured*: the rows and
2,048 cosines beside them by FourierMap, times W. *Dense*: the same with the frequencies as a matrix
and NumPy's cosine. The second table goes the whole way, from rows to packed codes, as a model does:
centred, brought to unit length, mapped, projected, packed.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from _machine import describe_machine
from streamhash import LSH, CenterScale, FourierMap, StreamPipeline, set_threads
from streamhash.base import ROWS_PER_BLOCK
from streamhash.kernels.learning.fourier import plain_angles
from streamhash.threads import single_threaded_blas

N, FEATURES, BITS = 2 * ROWS_PER_BLOCK, 2048, 32
DIMENSIONS = (128, 784, 4096)
ROUNDS = 7


def cpu_seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def rows_a_second(ways: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """CPU time of N rows, the best of a few rounds in which the ways take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, work in ways.items():
            seconds[name].append(cpu_seconds(work))
    return {name: N / min(found) for name, found in seconds.items()}


def unit_rows(d: int) -> Any:
    X = np.random.default_rng(0).standard_normal((N, d), dtype=np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def project(features: Callable[[Any], Any], X: Any, W: Any) -> None:
    """Map and project rows in blocks, as hashers do."""
    for start in range(0, N, ROWS_PER_BLOCK):
        features(X[start : start + ROWS_PER_BLOCK]) @ W


def dense_features(X: Any, frequencies: Any, phases: Any) -> Any:
    n, d = X.shape
    features = np.empty((n, d + FEATURES), np.float32)
    features[:, :d] = X
    cosines = features[:, d:]
    np.matmul(X, frequencies, out=cosines)
    cosines += phases
    np.cos(cosines, out=cosines)
    cosines *= np.float32((2 / FEATURES) ** 0.5)
    return features


def projections() -> None:
    print(
        f"\n{N} rows of d features, m = {FEATURES}, to {BITS} projections: rows a CPU second,"
        f"\nbest of {ROUNDS}; how many times the linear map's time, and how many times faster than"
        " dense; largest\ndifference of a feature"
    )
    print(
        f"{'d':>5} {'linear':>9} {'structured':>11} {'µs a row':>9} {'dense':>8}"
        f" {'linear x':>9} {'dense x':>8} {'difference':>11}"
    )
    for d in DIMENSIONS:
        X = unit_rows(d)
        random = np.random.default_rng(1)
        V = random.standard_normal((d, BITS), dtype=np.float32)
        W = random.standard_normal((d + FEATURES, BITS), dtype=np.float32)
        part = FourierMap(FEATURES, random_state=0).fit(X[:1])
        frequencies = plain_angles(np.eye(d), part.signs_, part.lengths_).astype(np.float32)
        dense = partial(dense_features, frequencies=frequencies, phases=part.phases_)
        found = rows_a_second(
            {
                "linear": partial(project, np.asarray, X, V),
                "structured": partial(project, part.map_rows, X, W),
                "dense": partial(project, dense, X, W),
            }
        )
        difference = abs(part.map_rows(X[:500]) - dense(X[:500])).max()
        print(
            f"{d:5} {found['linear']:9.0f} {found['structured']:11.0f}"
            f" {1e6 / found['structured']:9.1f} {found['dense']:8.0f}"
            f" {found['linear'] / found['structured']:8.1f}x"
            f" {found['structured'] / found['dense']:7.1f}x {difference:11.1e}"
        )


def codes() -> None:
    print(f"\nThe same from rows to packed codes of {BITS} bits: rows a CPU second")
    print(f"{'d':>5} {'linear':>9} {'with Fourier features':>22} {'µs a row':>9} {'linear x':>9}")
    for d in DIMENSIONS:
        X = unit_rows(d)
        hasher = LSH(BITS, center=False, random_state=0)
        scale, fourier = CenterScale(scale="unit"), FourierMap(FEATURES, random_state=0)
        plain = StreamPipeline([scale], hasher).fit(X[:200])
        mapped = StreamPipeline([scale, fourier], hasher).fit(X[:200])
        found = rows_a_second(
            {"plain": partial(plain.transform, X), "mapped": partial(mapped.transform, X)}
        )
        print(
            f"{d:5} {found['plain']:9.0f} {found['mapped']:22.0f} {1e6 / found['mapped']:9.1f}"
            f" {found['plain'] / found['mapped']:8.1f}x"
        )


if __name__ == "__main__":
    set_threads(1)
    print(describe_machine())
    with single_threaded_blas():
        projections()
        codes()
