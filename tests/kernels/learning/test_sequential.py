"""Learning in blocks against one step after the other."""

import numpy as np
import pytest

from streamhash.kernels.learning.sequential import (
    ROWS,
    RULES,
    learn_one_by_one,
    plain_learn_one_by_one,
)


def material(n, d=30, k=12, seed=0, dtype=np.float64):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d)) / np.sqrt(d)
    W = random.standard_normal((d, k)) / np.sqrt(d)
    T = random.choice([-1.0, 1.0], size=(n, k))
    return X.astype(dtype), W.astype(dtype), T.astype(dtype)


@pytest.mark.parametrize("n", [0, 1, 2, ROWS, ROWS + 1, 3 * ROWS + 17])
@pytest.mark.parametrize("rule", RULES)
def test_blocks_walk_the_path_of_the_plain_loop(rule, n):
    X, W, T = material(n)
    total = np.full(W.shape, 0.5)
    expected, expected_total = plain_learn_one_by_one(X, W, T, rule, 0.3, total)
    got, got_total = learn_one_by_one(X, W, T, rule, 0.3, total)
    np.testing.assert_allclose(got, expected, atol=1e-12)
    np.testing.assert_allclose(got_total, expected_total, atol=1e-10)
    assert n == 0 or abs(got - W).max() > 0.01


@pytest.mark.parametrize("rule", RULES)
def test_single_precision_keeps_to_it(rule):
    X, W, T = material(500, dtype=np.float32)
    got, none = learn_one_by_one(X, W, T, rule, 0.1)
    assert got.dtype == np.float32
    assert none is None
    expected, _ = plain_learn_one_by_one(*material(500), rule, 0.1)
    np.testing.assert_allclose(got, expected, atol=2e-5)


@pytest.mark.parametrize("rule", RULES)
def test_what_is_passed_in_is_left_alone(rule):
    arrays = (*material(100), np.zeros((30, 12)))
    before = [array.copy() for array in arrays]
    X, W, T, total = arrays
    moved, _ = learn_one_by_one(X, W, T, rule, 0.1, total)
    assert not np.array_equal(moved, W)
    assert all(np.array_equal(array, copy) for array, copy in zip(arrays, before, strict=True))


def test_steps_worked_by_hand():
    # Two equal instances of length 2, one feature, two bits, W = (0.2, -0.4); z = 2 W.
    X = np.array([[2.0], [2.0]])
    W = np.array([[0.2, -0.4]])
    T = np.array([[1.0, 1.0], [1.0, 1.0]])
    # Hinge, step 0.1: z = (.4, -.8), both short of 1: W + 0.1 * 2 = (.4, -.2); then z = (.8, -.4),
    # both short again: (.6, 0).
    got, total = learn_one_by_one(X, W, T, "hinge", 0.1, np.zeros((1, 2)))
    np.testing.assert_allclose(got, [[0.6, 0.0]], atol=1e-15)
    np.testing.assert_allclose(total, [[0.4 + 0.6, -0.2 + 0.0]], atol=1e-15)
    # Perceptron, step 1: only the second bit errs: -.4 + 2 = 1.6; then none does.
    got, total = learn_one_by_one(X, W, T, "perceptron", 1.0, np.zeros((1, 2)))
    np.testing.assert_allclose(got, [[0.2, 1.6]], atol=1e-15)
    np.testing.assert_allclose(total, [[0.4, 3.2]], atol=1e-15)
    # Boosting, step 0.1, first instance: g1 = .1 e^-.4, z1' = .4 + 4 g1, g2 = .1 e^(.8 - z1').
    g1 = 0.1 * np.exp(-0.4)
    g2 = 0.1 * np.exp(0.8 - (0.4 + 4 * g1))
    got, _ = learn_one_by_one(X[:1], W, T[:1], "boosting", 0.1)
    np.testing.assert_allclose(got, [[0.2 + 2 * g1, -0.4 + 2 * g2]], atol=1e-15)
    # Regression, step 0.1, first instance.
    f = np.tanh([0.4, -0.8])
    got, _ = learn_one_by_one(X[:1], W, T[:1], "regression", 0.1)
    np.testing.assert_allclose(got, W - 0.1 * 2 * (f - 1) * (1 - f * f), atol=1e-15)


def test_steps_towards_a_margin_worked_by_hand():
    # Length 4: the aim is a margin of 4. z = 2 W = (1, 7): 1 - z / 4 = (3/4, -3/4); at most .1.
    X, W, T = np.array([[2.0]]), np.array([[0.5, 3.5]]), np.array([[1.0, 1.0]])
    got, _ = learn_one_by_one(X, W, T, "aggressive", 0.1)
    np.testing.assert_allclose(got, [[0.5 + 0.1 * 2, 3.5 - 0.75 * 2]], atol=1e-15)  # at its aim
    got, _ = learn_one_by_one(X, W, T, "passive_aggressive", 0.1)
    np.testing.assert_allclose(got, [[0.5 + 0.1 * 2, 3.5]], atol=1e-15)
    got, _ = learn_one_by_one(X, W, T, "passive_aggressive", 10.0)
    np.testing.assert_allclose(got, [[2.0, 3.5]], atol=1e-15)


@pytest.mark.parametrize("learn", [learn_one_by_one, plain_learn_one_by_one])
@pytest.mark.parametrize("rule", ["aggressive", "passive_aggressive"])
def test_rows_and_targets_of_zeros_do_not_move_towards_a_margin(rule, learn):
    X, W, T = material(3)
    X[0], T[1:] = 0, 0
    assert np.array_equal(learn(X, W, T, rule, 0.1)[0], W)


def test_zero_counts_as_minus_one_for_the_perceptron():
    X, W, T = np.array([[1.0]]), np.zeros((1, 2)), np.array([[1.0, -1.0]])
    assert learn_one_by_one(X, W, T, "perceptron", 1.0)[0].tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("learn", [learn_one_by_one, plain_learn_one_by_one])
def test_boosting_does_not_overflow(learn):
    X, W, T = material(5, k=200)
    W = -1e6 * X[:1].T * T[:1]  # every bit as wrong as can be
    got, _ = learn(X, W, T, "boosting", 0.1)
    assert np.isfinite(got).all()


@pytest.mark.slow
def test_one_step_is_the_gradient_of_automatic_differentiation():
    torch = pytest.importorskip("torch", reason="the oracle is optional")
    X, W, T = material(1)
    weights = torch.tensor(W, requires_grad=True)
    loss = ((torch.tanh(torch.tensor(X) @ weights) - torch.tensor(T)) ** 2).sum() / 2
    loss.backward()
    got, _ = learn_one_by_one(X, W, T, "regression", 1.0)
    np.testing.assert_allclose(W - got, weights.grad.numpy(), atol=1e-14)
    weights.grad = None
    loss = torch.clamp(1 - torch.tensor(T) * (torch.tensor(X) @ weights), min=0).sum()
    loss.backward()
    got, _ = learn_one_by_one(X, W, T, "hinge", 1.0)
    np.testing.assert_allclose(W - got, weights.grad.numpy(), atol=1e-14)
