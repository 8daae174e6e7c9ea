"""Random projections by transforms: against the twins, dense matrices and the Gaussian kernel."""

import math

import numba
import numpy as np
import pytest
from scipy.linalg import hadamard

from streamhash.kernels.learning.random_projections import (
    ROWS,
    absolute_features,
    block_size,
    fourier_features,
    linear_features,
    plain_absolute_features,
    plain_fourier_features,
    plain_linear_features,
    plain_projections,
    wave,
)

TWINS = {
    linear_features: plain_linear_features,
    absolute_features: plain_absolute_features,
    fourier_features: plain_fourier_features,
}
each_kind = pytest.mark.parametrize("kind", TWINS, ids=lambda kind: kind.__name__)


def draw(kind, d, m, bandwidth=0.8, seed=0):
    """What a kind of m features in d dimensions is made of: signs, then m or lengths and phases."""
    random, p = np.random.default_rng(seed), block_size(d)
    signs = random.choice(np.array([-1, 1], np.int8), size=(math.ceil(m / p), 3, p))
    if kind is not fourier_features:
        return signs, m
    lengths = (np.sqrt(random.chisquare(p, size=m)) / bandwidth).astype(np.float32)
    return signs, lengths, random.uniform(0, 2 * math.pi, size=m).astype(np.float32)


def unit_rows(n, d, seed=1):
    X = np.random.default_rng(seed).standard_normal((n, d))
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)


def compiled(kind, U, drawn, m):
    out = np.full((len(U), m), np.nan, np.float32)
    kind(U, *drawn, out)
    return out


@each_kind
@pytest.mark.parametrize(
    ("n", "d", "m"),
    [
        *[(5, 1, 1), (1, 2, 7), (ROWS, 32, 32), (ROWS + 1, 33, 65), (3, 60, 2048), (0, 8, 20)],
        *[(40, 784, 2048), (20, 300, 1001), (2, 2049, 30)],  # one to many blocks, whole and not
    ],
)
def test_the_compiled_loop_is_its_twin(kind, n, d, m):
    U, drawn = unit_rows(n, d), draw(kind, d, m)
    expected = TWINS[kind](U, *drawn)
    assert expected.shape == (n, m)
    np.testing.assert_allclose(compiled(kind, U, drawn, m), expected, atol=3e-6 * math.sqrt(2 / m))


@pytest.mark.parametrize("d", [1, 30, 100])
def test_directions_are_those_of_dense_orthogonal_matrices(d):
    m, p = 300, block_size(d)
    U, (signs, lengths, phases) = unit_rows(20, d), draw(fourier_features, d, m)
    H = hadamard(p) / math.sqrt(p)
    rotations = [H @ np.diag(a) @ H @ np.diag(b) @ H @ np.diag(c) for a, b, c in signs.astype(int)]
    for Q in rotations:
        np.testing.assert_allclose(Q @ Q.T, np.eye(p), atol=1e-12)
    W = np.concatenate(rotations)[:m, :d]  # (m, d)
    np.testing.assert_allclose(plain_projections(np.eye(d), signs, m), p**0.5 * W.T, atol=1e-12)
    z = U @ W.T * math.sqrt(p)
    np.testing.assert_allclose(plain_linear_features(U, signs, m), z / m**0.5, atol=1e-12)
    np.testing.assert_allclose(plain_absolute_features(U, signs, m), abs(z) / m**0.5, atol=1e-12)
    cosines = math.sqrt(2 / m) * np.cos(U @ (lengths[:, None] * W).T + phases)
    np.testing.assert_allclose(
        plain_fourier_features(U, signs, lengths, phases), cosines, atol=1e-6
    )


@pytest.mark.parametrize("d", [1, 3, 32, 200])
@pytest.mark.parametrize("bandwidth", [0.5, 1.0])
def test_inner_products_of_cosines_are_a_gaussian_kernel(d, bandwidth):
    U = np.concatenate([unit_rows(10, d), np.eye(5, d, dtype=np.float32), np.zeros((1, d))])
    m = 1 << 16
    drawn = draw(fourier_features, d, m, bandwidth)
    features = compiled(fourier_features, U, drawn, m).astype(np.float64)
    squares = ((U[:, None] - U[None]) ** 2).sum(axis=2)
    off = features @ features.T - np.exp(-squares / (2 * bandwidth**2))
    assert abs(off).max() < 0.015  # four deviations of the mean of 65,536 cosines


@pytest.mark.parametrize("d", [20, 32, 200])
def test_absolute_features_keep_lengths_and_know_angles(d):
    U, m = unit_rows(10, d), 1 << 16
    features = compiled(absolute_features, U, draw(absolute_features, d, m), m).astype(np.float64)
    # Of two Gaussian numbers with correlation ρ: E |z w| = (2/π) (√(1 − ρ²) + ρ arcsin ρ)
    cosines = np.clip(U.astype(np.float64) @ U.T, -1, 1)
    expected = 2 / math.pi * (np.sqrt(1 - cosines**2) + cosines * np.arcsin(cosines))
    np.testing.assert_allclose(features @ features.T, expected, atol=0.02)


@pytest.mark.parametrize("d", [1, 40, 500])
def test_linear_features_keep_inner_products(d):
    U, m = unit_rows(10, d), 1 << 16
    features = compiled(linear_features, U, draw(linear_features, d, m), m).astype(np.float64)
    np.testing.assert_allclose(features @ features.T, U.astype(np.float64) @ U.T, atol=0.02)


@pytest.mark.parametrize("kind", [linear_features, absolute_features])
@pytest.mark.parametrize("power", [-40, -1, 10, 60])
def test_features_grow_exactly_with_the_row(kind, power):
    U, drawn = unit_rows(20, 100), draw(kind, 100, 300)
    scaled = np.ldexp(U, power)
    assert np.array_equal(
        compiled(kind, scaled, drawn, 300), np.ldexp(compiled(kind, U, drawn, 300), power)
    )


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


@each_kind
def test_a_row_does_not_depend_on_its_neighbours(kind):
    U, drawn, m = unit_rows(3 * ROWS + 5, 100), draw(kind, 100, 500), 500
    together = compiled(kind, U, drawn, m)
    order = np.random.default_rng(2).permutation(len(U))
    assert np.array_equal(compiled(kind, U[order], drawn, m), together[order])
    for i in (0, ROWS - 1, ROWS, len(U) - 1):
        assert np.array_equal(compiled(kind, U[i : i + 1], drawn, m), together[i : i + 1])
    loud = U.copy()
    loud[1::2] = np.nan
    assert np.array_equal(compiled(kind, loud, drawn, m)[::2], together[::2])


@each_kind
def test_only_its_own_columns_are_written(kind):
    U, drawn = unit_rows(ROWS + 3, 50), draw(kind, 50, 77)
    wide = np.full((len(U), 100), -5, np.float32)
    kind(U, *drawn, wide, 13)
    assert np.array_equal(wide[:, 13:90], compiled(kind, U, drawn, 77))
    assert (wide[:, :13] == -5).all()
    assert (wide[:, 90:] == -5).all()


@each_kind
def test_rows_may_be_read_only_or_a_view(kind):
    U, drawn = unit_rows(9, 40), draw(kind, 40, 64)
    expected = compiled(kind, U, drawn, 64)
    columns = np.asfortranarray(U)
    U.flags.writeable = False
    assert np.array_equal(compiled(kind, U, drawn, 64), expected)
    assert np.array_equal(compiled(kind, columns, drawn, 64), expected)
