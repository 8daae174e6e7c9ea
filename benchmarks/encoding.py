"""Encoding with random features: by structured transforms, by a dense product, and without any.

    python benchmarks/encoding.py

One thread, all in one run, interleaved; read the ratios. *Linear*: X W. *Absolute* and *fourier*:
the 3,584 features of RandomFeatures, times W. *Dense*: the absolute ones with the directions as a
matrix. The second table goes the whole way, from rows to packed codes, as a model does: centred,
brought to unit length, mapped, projected, packed. The third is SDOH as it comes, beside SDOH that
learns stage by stage: learning a stream, working out the hash functions, encoding, and its state.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from _machine import describe_machine
from streamhash import LSH, SDOH, CenterScale, RandomFeatures, StreamPipeline, set_threads
from streamhash.base import ROWS_PER_BLOCK
from streamhash.kernels.learning.random_projections import plain_linear_features
from streamhash.threads import single_threaded_blas

N, BITS = 4096, 32
FEATURES = RandomFeatures().n_features
KINDS = ("absolute", "fourier")
DIMENSIONS = (128, 784, 4096)
ROUNDS = 7
STREAM = 20_000


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


def dense_matrix(part: RandomFeatures, d: int) -> Any:
    """All directions of the map as one matrix (d, FEATURES), the linear ones first."""
    rows = np.eye(d)
    linear = part.n_linear_
    m = FEATURES - linear
    if linear == d:
        halves = [rows, plain_linear_features(rows, part.signs_, m)]
    else:
        halves = [
            plain_linear_features(rows, part.signs_[:1], linear),
            plain_linear_features(rows, part.signs_[1:], m),
        ]
    return np.concatenate(halves, axis=1).astype(np.float32)


def dense_features(X: Any, matrix: Any, n_linear: int) -> Any:
    features = X @ matrix
    nonlinear = features[:, n_linear:]
    np.abs(nonlinear, out=nonlinear)
    return features


def projections() -> None:
    print(
        f"\n{N} rows of d features, mapped to {FEATURES} or not, to {BITS} projections: rows a CPU"
        f"\nsecond, best of {ROUNDS}; how many times the linear map's time absolute features take,"
        "\nhow many times faster they are than dense; largest difference of a feature"
    )
    print(
        f"{'d':>5} {'linear':>9} {'absolute':>9} {'fourier':>8} {'dense':>7}"
        f" {'linear x':>9} {'dense x':>8} {'difference':>11}"
    )
    for d in DIMENSIONS:
        X = unit_rows(d)
        random = np.random.default_rng(1)
        V = random.standard_normal((d, BITS), dtype=np.float32)
        W = random.standard_normal((FEATURES, BITS), dtype=np.float32)
        absolute, fourier = (RandomFeatures(kind=kind).fit(X[:1]) for kind in KINDS)
        dense = partial(
            dense_features, matrix=dense_matrix(absolute, d), n_linear=absolute.n_linear_
        )
        found = rows_a_second(
            {
                "linear": partial(project, np.asarray, X, V),
                "absolute": partial(project, absolute.map_rows, X, W),
                "fourier": partial(project, fourier.map_rows, X, W),
                "dense": partial(project, dense, X, W),
            }
        )
        difference = abs(absolute.map_rows(X[:500]) - dense(X[:500])).max()
        print(
            f"{d:5} {found['linear']:9.0f} {found['absolute']:9.0f} {found['fourier']:8.0f}"
            f" {found['dense']:7.0f} {found['linear'] / found['absolute']:8.1f}x"
            f" {found['absolute'] / found['dense']:7.1f}x {difference:11.1e}"
        )


def codes() -> None:
    print(f"\nThe same from rows to packed codes of {BITS} bits: rows a CPU second")
    print(f"{'d':>5} {'linear':>9} {'absolute':>9} {'µs a row':>9} {'linear x':>9} {'fourier':>8}")
    for d in DIMENSIONS:
        X = unit_rows(d)
        hasher, scale = LSH(BITS, center=False, random_state=0), CenterScale(scale="unit")
        models = {"linear": StreamPipeline([scale], hasher)}
        for kind in KINDS:
            models[kind] = StreamPipeline([scale, RandomFeatures(kind=kind)], hasher)
        found = rows_a_second(
            {name: partial(model.fit(X[:200]).transform, X) for name, model in models.items()}
        )
        print(
            f"{d:5} {found['linear']:9.0f} {found['absolute']:9.0f} {1e6 / found['absolute']:9.1f}"
            f" {found['linear'] / found['absolute']:8.1f}x {found['fourier']:8.0f}"
        )


def class_rows(n: int, d: int) -> tuple[Any, Any]:
    """Rows of ten classes."""
    random = np.random.default_rng(0)
    y = random.integers(10, size=n)
    centres = random.standard_normal((10, d), dtype=np.float32)
    return centres[y] + 2 * random.standard_normal((n, d), dtype=np.float32), y


def sdoh() -> None:
    print(
        f"\nSDOH() and SDOH(memory=0, features=None), {BITS} bits: CPU seconds to learn {STREAM}"
        "\nrows of 10 classes in pieces of 2000 and to work out the hash functions, megabytes"
        "\nsaved, rows encoded a CPU second"
    )
    print(
        f"{'d':>5} {'learn':>6} {'settle':>7} {'MB':>6} {'encode':>7} {'µs a row':>9}"
        f" | {'learn':>6} {'MB':>6} {'encode':>8} {'ratio':>6}"
    )
    for d in DIMENSIONS:
        X, y = class_rows(STREAM, d)
        default, linear = SDOH(BITS, random_state=0), SDOH(BITS, memory=0, features=None)
        learning, settling, saved = {}, 0.0, {}
        for name, model in {"default": default, "linear": linear}.items():
            pieces = [slice(start, start + 2000) for start in range(0, STREAM, 2000)]
            learning[name] = sum(
                cpu_seconds(partial(model.partial_fit, X[piece], y[piece])) for piece in pieces
            )
            settling = settling or cpu_seconds(model.settle)
            saved[name] = len(model.to_bytes()) / 1e6
        found = rows_a_second(
            {
                "default": partial(default.transform, X[:N]),
                "linear": partial(linear.transform, X[:N]),
            }
        )
        print(
            f"{d:5} {learning['default']:6.2f} {settling:7.2f} {saved['default']:6.1f}"
            f" {found['default']:7.0f} {1e6 / found['default']:9.1f} | {learning['linear']:6.2f}"
            f" {saved['linear']:6.2f} {found['linear']:8.0f}"
            f" {found['linear'] / found['default']:5.1f}x"
        )


if __name__ == "__main__":
    set_threads(1)
    print(describe_machine())
    with single_threaded_blas():
        projections()
        codes()
        sdoh()
