"""Fourier features by transforms: against the twin, the dense formula and the Gaussian kernel."""

import math

import numba
import numpy as np
import pytest
from scipy.linalg import hadamard

from streamhash.kernels.learning.fourier import (
    ROWS,
    block_size,
    fourier_features,
    plain_angles,
    plain_fourier_features,
    wave,
)


def draw(d, m, bandwidth=0.8, seed=0):
    """Signs, lengths and phases of m frequencies in d dimensions."""
    random, p = np.random.default_rng(seed), block_size(d)
    return (
        random.choice(np.array([-1, 1], np.int8), size=(math.ceil(m / p), 3, p)),
        (np.sqrt(random.chisquare(p, size=m)) / bandwidth).astype(np.float32),
        random.uniform(0, 2 * math.pi, size=m).astype(np.float32),
    )


def unit_rows(n, d, seed=1):
    X = np.random.default_rng(seed).standard_normal((n, d))
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)


def compiled(U, frequencies):
    out = np.full((len(U), len(frequencies[1])), np.nan, np.float32)
    fourier_features(U, *frequencies, out)
    return out


@pytest.mark.parametrize(
    ("n", "d", "m"),
    [
        *[(5, 1, 1), (1, 2, 7), (ROWS, 32, 32), (ROWS + 1, 33, 65), (3, 60, 2048), (0, 8, 20)],
        *[(40, 784, 2048), (20, 300, 1001), (2, 2049, 30)],  # one to many blocks, whole and not
    ],
)
def test_the_compiled_loop_is_its_twin(n, d, m):
    U, frequencies = unit_rows(n, d), draw(d, m)
    expected = plain_fourier_features(U, *frequencies)
    assert expected.shape == (n, m)
    np.testing.assert_allclose(compiled(U, frequencies), expected, atol=3e-6 * math.sqrt(2 / m))


@pytest.mark.parametrize("d", [1, 30, 100])
def test_frequencies_are_those_of_dense_orthogonal_matrices(d):
    m, p = 300, block_size(d)
    U, (signs, lengths, phases) = unit_rows(20, d), draw(d, m)
    H = hadamard(p) / math.sqrt(p)
    rotations = [H @ np.diag(a) @ H @ np.diag(b) @ H @ np.diag(c) for a, b, c in signs.astype(int)]
    for Q in rotations:
        np.testing.assert_allclose(Q @ Q.T, np.eye(p), atol=1e-12)
    W = lengths[:, None] * np.concatenate(rotations)[:m, :d]  # (m, d)
    np.testing.assert_allclose(plain_angles(np.eye(d), signs, lengths), W.T, atol=1e-12)
    expected = math.sqrt(2 / m) * np.cos(U @ W.T + phases)
    np.testing.assert_allclose(
        plain_fourier_features(U, signs, lengths, phases), expected, atol=1e-12
    )
    np.testing.assert_allclose(compiled(U, (signs, lengths, phases)), expected, atol=1e-6)


@pytest.mark.parametrize("d", [1, 3, 32, 200])
@pytest.mark.parametrize("bandwidth", [0.5, 1.0])
def test_inner_products_are_a_gaussian_kernel(d, bandwidth):
    U = np.concatenate([unit_rows(10, d), np.eye(5, d, dtype=np.float32), np.zeros((1, d))])
    features = compiled(U, draw(d, 1 << 16, bandwidth)).astype(np.float64)
    squares = ((U[:, None] - U[None]) ** 2).sum(axis=2)
    off = features @ features.T - np.exp(-squares / (2 * bandwidth**2))
    assert abs(off).max() < 0.015  # four deviations of the mean of 65,536 cosines


@numba.njit
def waves(turns):
    out = np.empty_like(turns)
    for i in range(len(turns)):
        out[i] = wave(turns[i])
    return out


def test_the_cosine_is_one_over_hundreds_of_turns():
    random = np.random.default_rng(0)
    turns = np.concatenate(
        [
            random.uniform(-300, 300, size=200_000),
            random.uniform(-1, 1, size=200_000),
            np.arange(-400, 401) / 8,
        ]
    ).astype(np.float32)
    got = waves(turns)
    assert abs(got - np.cos(2 * math.pi * turns.astype(np.float64))).max() < 3e-7
    assert got[turns == 0].tolist() == [pytest.approx(1, abs=1e-7)]


def test_a_row_does_not_depend_on_its_neighbours():
    U, frequencies = unit_rows(3 * ROWS + 5, 100), draw(100, 500)
    together = compiled(U, frequencies)
    order = np.random.default_rng(2).permutation(len(U))
    assert np.array_equal(compiled(U[order], frequencies), together[order])
    for i in (0, ROWS - 1, ROWS, len(U) - 1):
        assert np.array_equal(compiled(U[i : i + 1], frequencies), together[i : i + 1])
    loud = U.copy()
    loud[1::2] = np.nan
    assert np.array_equal(compiled(loud, frequencies)[::2], together[::2])


def test_only_its_own_columns_are_written():
    U, frequencies = unit_rows(ROWS + 3, 50), draw(50, 77)
    wide = np.full((len(U), 100), -5, np.float32)
    fourier_features(U, *frequencies, wide, 13)
    assert np.array_equal(wide[:, 13:90], compiled(U, frequencies))
    assert (wide[:, :13] == -5).all()
    assert (wide[:, 90:] == -5).all()


def test_rows_may_be_read_only_or_a_view():
    U, frequencies = unit_rows(9, 40), draw(40, 64)
    expected = compiled(U, frequencies)
    columns = np.asfortranarray(U)
    U.flags.writeable = False
    assert np.array_equal(compiled(U, frequencies), expected)
    assert np.array_equal(compiled(columns, frequencies), expected)
