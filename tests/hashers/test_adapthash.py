"""AdaptHash against its formulas: a worked step, a plain loop, autograd, options, settings."""

import numpy as np
import pytest

from streamhash import AdaptHash, InputError
from streamhash.base import new_generator, random_directions
from streamhash.kernels.learning.pairwise_steps import learn_adaptive_pairs


def stream(n=101, d=12, classes=3, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    X = random.standard_normal((classes, d))[y] + 0.6 * random.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1)[:, None]
    return X.astype(np.float32), y


def steps(X, y, W, alpha, beta, step):
    """Section 6.3 of the method notes, pair by pair and bit by bit, in float64."""
    W, k = W.astype(np.float64), W.shape[1]
    for t in range(len(X) // 2):
        x1, x2 = X[2 * t].astype(np.float64), X[2 * t + 1].astype(np.float64)
        s = 1 if y[2 * t] == y[2 * t + 1] else -1
        v, u = x1 @ W, x2 @ W
        differ = (v > 0) != (u > 0)
        D = differ.sum()
        loss = max(0, D - (1 - alpha) * k) if s == 1 else max(0, alpha * k - D)
        if loss < 1e-9:
            continue
        wrong = [r for r in range(k) if differ[r] == (s == 1)]
        wrong.sort(key=lambda r: -max(abs(v[r]), abs(u[r])))
        w, z = 2 / (1 + np.exp(-v)) - 1, 2 / (1 + np.exp(-u)) - 1
        M = np.zeros_like(W)
        for r in wrong[: int(np.ceil(loss - 1e-9))]:
            pull = z[r] * (1 - w[r] ** 2) / 2 * x1 + w[r] * (1 - z[r] ** 2) / 2 * x2
            M[:, r] = step * 2 * (w @ z - k * s) * pull
        M += beta * W @ (W.T @ W - np.eye(k))
        W = W - M
        W = W / np.linalg.norm(W, axis=0)
    return W


def test_a_step_worked_by_hand():
    # One bit, two features, w = (1, 0), x₁ = (2, 0), x₂ = (1, 1), dissimilar: v = 2, u = 1, the bit
    # is equal and must differ (α k = 0.8): M = 2 η (f(2) f(1) + 1) (f(1) f'(2) x₁ + f(2) f'(1) x₂),
    # WᵀW = 1, so no penalty.
    W, X = np.array([[1.0], [0.0]]), np.array([[2.0, 0.0], [1.0, 1.0]])
    got, n_active = learn_adaptive_pairs(W, X, np.array([False]), step=0.5, margin=0.8, spread=0.1)
    f2, f1 = np.tanh(1.0), np.tanh(0.5)
    error = f2 * f1 + 1
    M = error * (f1 * (1 - f2**2) / 2 * X[0] + f2 * (1 - f1**2) / 2 * X[1])
    moved = np.array([1.0, 0.0]) - M
    np.testing.assert_allclose(got[:, 0], moved / np.linalg.norm(moved), atol=1e-14)
    assert n_active == 1
    # Similar: nothing is wrong, and nothing changes, the penalty neither.
    got, n_active = learn_adaptive_pairs(W, X, np.array([True]), step=0.5, margin=0.8, spread=0.1)
    assert np.array_equal(got, W)
    assert n_active == 0


@pytest.mark.parametrize(
    ("alpha", "beta", "step"),
    [(0.8, 0.01, 0.2), (0.9, 0.01, 0.1), (0.5, 0.0, 1.0), (1.0, 0.1, 0.5)],
)
def test_the_update_is_that_of_the_notes(alpha, beta, step):
    X, y = stream(n=80)
    W = random_directions(12, 10, np.random.default_rng(0)).astype(np.float64)
    got, n_active = learn_adaptive_pairs(
        W, X.astype(np.float64), y[::2] == y[1::2], step=step, margin=alpha, spread=beta
    )
    assert n_active >= 10
    np.testing.assert_allclose(got, steps(X, y, W, alpha, beta, step), atol=1e-9)


def test_the_step_is_the_gradient_of_automatic_differentiation():
    torch = pytest.importorskip("torch", reason="the oracle is optional")
    random = np.random.default_rng(3)
    k, beta = 6, 0.05
    start = random_directions(8, k, random).astype(np.float64)
    W = torch.tensor(start, requires_grad=True)
    x = random.standard_normal(8)
    X = np.stack([x, x])  # equal items of two classes: all bits are wrong, and with α = 1 all move
    w, z = (torch.tanh(torch.tensor(row) @ W / 2) for row in X)
    penalty = ((W.T @ W - torch.eye(k)) ** 2).sum()
    (0.01 * (w @ z + k) ** 2 + beta / 4 * penalty).backward()
    moved = start - W.grad.numpy()
    got, _ = learn_adaptive_pairs(start, X, np.array([False]), step=0.01, margin=1.0, spread=beta)
    np.testing.assert_allclose(got, moved / np.linalg.norm(moved, axis=0), atol=1e-12)


def test_the_hasher_takes_these_steps():
    X, y = stream(n=61)
    model = AdaptHash.published("mnist", n_bits=8, random_state=0).fit(X, y)
    start = random_directions(12, 8, new_generator(0))
    np.testing.assert_allclose(model.W_, steps(X, y, start, 0.8, 0.01, 0.2), atol=1e-3)
    assert model.parts_ == []
    assert len(model.queue_.row_) == 1
    np.testing.assert_allclose(model.project(X), X @ model.W_, atol=1e-6)


def test_a_scaled_step_is_divided_by_the_code_length():
    X, y = stream(n=60)
    scaled = AdaptHash(8, learning_rate=1.6, random_state=0).fit(X, y)
    plain = AdaptHash(8, learning_rate=0.2, scale_step=False, random_state=0).fit(X, y)
    assert np.array_equal(scaled.W_, plain.W_)


def test_columns_stay_of_unit_length():
    X, y = stream(n=1000)
    model = AdaptHash(16, random_state=0).fit(X, y)
    assert model.n_updates_ > 200
    np.testing.assert_allclose(np.linalg.norm(model.W_, axis=0), 1, atol=1e-5)


def test_the_penalty_spreads_the_hash_functions():
    X, y = stream(n=1000, d=30)

    def overlap(spread):
        W = AdaptHash(8, spread=spread, random_state=0).fit(X, y).W_
        return np.linalg.norm(W.T @ W - np.eye(8))

    assert overlap(0.3) < 0.7 * overlap(0.0)


@pytest.mark.parametrize("size", [1, 3, 50, 101])
def test_the_batch_size_does_not_matter(size):
    X, y = stream()
    first, second = (
        AdaptHash(8, batch_size=batch, random_state=0).fit(X, y).project(X) for batch in (64, size)
    )
    np.testing.assert_allclose(first, second, atol=5e-3)


@pytest.mark.parametrize(
    ("data", "alpha", "step"), [("cifar10", 0.9, 0.1), ("mnist", 0.8, 0.2), ("places205", 0.9, 0.1)]
)
def test_published_settings(data, alpha, step):
    model = AdaptHash.published(data, n_bits=48, random_state=3)
    assert (model.n_bits, model.random_state) == (48, 3)
    assert (model.margin, model.spread) == (alpha, 0.01)
    assert (model.learning_rate, model.scale_step, model.normalize) == (step, False, False)
    assert AdaptHash.published_features == "centre_unit"


def test_label_matrices_learn_from_shared_classes():
    X, y = stream()
    single = AdaptHash(8, random_state=0).fit(X, y)
    assert np.array_equal(AdaptHash(8, random_state=0).fit(X, np.eye(3)[y]).W_, single.W_)
    shared = np.eye(3)[y]
    shared[:, 0] = 1
    everyone = AdaptHash(8, random_state=0).fit(X, np.zeros(len(X)))
    assert np.array_equal(AdaptHash(8, random_state=0).fit(X, shared).W_, everyone.W_)
    assert not np.array_equal(everyone.W_, single.W_)


def test_more_bits_than_features_and_wrong_parameters():
    X, y = stream(d=3)
    assert np.isfinite(AdaptHash(40, random_state=0).fit(X, y).W_).all()
    with pytest.raises(InputError) as caught:
        AdaptHash(8, margin=-0.1).fit(X, y)
    assert str(caught.value) == "AdaptHash: margin=-0.1 must be a number from 0 to 1."
