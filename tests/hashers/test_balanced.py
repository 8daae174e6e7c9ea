"""Balanced stand-ins of codes: their constraints, their optimum, and what has no room for them."""

import numpy as np
import pytest

from streamhash.hashers._balanced import balanced


@pytest.mark.parametrize("rank", [2, 5, 8])
def test_the_optimum_is_reached_under_both_constraints(rank):
    random = np.random.default_rng(0)
    Q = random.standard_normal((40, rank)) @ random.standard_normal((rank, 8)) * 1e6 + 3
    V = balanced(Q, random)
    np.testing.assert_allclose(V.T @ V, 40 * np.eye(8), atol=1e-8)
    np.testing.assert_allclose(V.sum(axis=0), 0, atol=1e-8)
    # No V can have more than √n times the sum of the singular values of the centred Q.
    best = np.sqrt(40) * np.linalg.svd(Q - Q.mean(axis=0), compute_uv=False).sum()
    assert np.trace(V.T @ Q) == pytest.approx(best)


def test_two_rows_worked_by_hand():
    V = balanced(np.array([[3.0], [1.0]]), np.random.default_rng(0))
    np.testing.assert_allclose(V, [[1.0], [-1.0]])


@pytest.mark.parametrize("n", [1, 3, 8])
def test_few_rows_have_as_many_directions_as_they_can(n):
    random = np.random.default_rng(0)
    V = balanced(random.standard_normal((n, 8)), random)
    assert np.linalg.matrix_rank(V) == n - 1
    np.testing.assert_allclose(V.sum(axis=0), 0, atol=1e-9)


def test_without_anything_to_fit_directions_are_random_and_balanced():
    V = balanced(np.ones((20, 4)), np.random.default_rng(0))
    np.testing.assert_allclose(V.T @ V, 20 * np.eye(4), atol=1e-9)
