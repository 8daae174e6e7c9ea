"""HCOH against the plain loop of its paper, and what happens to its targets."""

import numpy as np
import pytest

from streamhash import HCOH, InputError
from streamhash.base import new_generator, random_directions


def stream(n=300, d=12, classes=5, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    X = 2 * random.standard_normal((classes, d))[y] + random.standard_normal((n, d))
    return (X / np.linalg.norm(X, axis=1)[:, None]).astype(np.float32), y


def start(d, k, seed=0):
    return random_directions(d, k, new_generator(seed)).astype(np.float64)


def plain_loop(X, y, W, targets, rate):
    """F = tanh(x W), W ← W − η xᵀ ((F − t) ∘ (1 − F ∘ F)), one instance at a time, in float64."""
    for x, label in zip(X.astype(np.float64), y, strict=True):
        f = np.tanh(x @ W)
        W = W - rate * np.outer(x, (f - targets[label]) * (1 - f * f))
    return W


def targets_of(model):
    return dict(zip(model.table_.labels_, model.codebook_.targets_, strict=True))


@pytest.mark.parametrize("n_bits", [8, 12])  # rows of the matrix themselves, and projected
def test_learning_is_the_plain_loop(n_bits):
    X, y = stream()
    model = HCOH(n_bits, learning_rate=0.7, normalize=False, random_state=0).fit(X, y)
    expected = plain_loop(X, y, start(12, n_bits), targets_of(model), 0.7)
    np.testing.assert_allclose(model.W_, expected, atol=2e-5)
    assert np.array_equal(model.project(X) > 0, X @ expected > 0)


def test_with_normalisation_each_row_is_centred_by_those_before_it():
    X, y = stream()
    X = X + 3
    model = HCOH(8, random_state=0).fit(X, y)
    means = np.cumsum(X, axis=0, dtype=np.float64) / np.arange(1, len(X) + 1)[:, None]
    rows = X - means
    lengths = np.linalg.norm(rows, axis=1)
    rows = rows / np.where(lengths > 1e-9, lengths, 1)[:, None]
    expected = plain_loop(rows, y, start(12, 8), targets_of(model), 0.2)
    np.testing.assert_allclose(model.W_, expected, atol=2e-5)


@pytest.mark.parametrize("size", [1, 7, 300, 1000])
def test_the_batch_size_does_not_matter(size):
    X, y = stream()
    usual, other = (
        HCOH(8, batch_size=batch, random_state=0).fit(X, y).project(X) for batch in (64, size)
    )
    np.testing.assert_allclose(other, usual, atol=1e-5)


def test_a_step_worked_by_hand():
    # One feature, one bit, one class: the matrix has one row, (+1).
    model = HCOH(1, learning_rate=0.5, normalize=False, random_state=0)
    w = start(1, 1)[0, 0]
    f = np.tanh(2 * w)
    model.fit(np.array([[2.0]]), ["only"])
    assert model.codebook_.targets_.tolist() == [[1.0]]
    assert model.W_[0, 0] == pytest.approx(w - 0.5 * 2 * (f - 1) * (1 - f * f), abs=1e-6)


def test_targets_are_distinct_rows_given_by_first_appearance():
    X, y = stream()
    model = HCOH(16, random_state=0).fit(X, y)
    _, first = np.unique(y, return_index=True)
    assert model.table_.labels_ == y[np.sort(first)].tolist()
    T = model.codebook_.targets_
    assert np.array_equal(T @ T.T, 16 * np.eye(5))


def test_new_classes_move_no_target_even_beyond_the_rows():
    X, y = stream()
    model = HCOH(8, random_state=0).fit(X, y)
    before = model.codebook_.targets_.copy()
    model.partial_fit(X, np.arange(len(X)) + 100)  # 300 more, in a matrix of 8 rows
    assert model.codebook_.targets_.shape == (305, 8)
    assert np.array_equal(model.codebook_.targets_[:5], before)
    assert model.codebook_.size_ == 512


@pytest.mark.parametrize(
    ("data", "rate", "n_classes", "size"),
    [("cifar10", 0.2, 10, 64), ("mnist", 0.2, 10, 64), ("places205", 0.1, 205, 256)],
)
def test_published_settings(data, rate, n_classes, size):
    model = HCOH.published(data, n_bits=48, random_state=3)
    assert (model.n_bits, model.random_state) == (48, 3)
    assert (model.learning_rate, model.n_classes, model.normalize) == (rate, n_classes, False)
    assert HCOH.published_features == "centre_unit"
    X, y = stream()
    assert model.fit(X, y).codebook_.size_ == size


def test_several_labels_an_instance_are_refused():
    X, y = stream()
    with pytest.raises(InputError, match="HCOH is defined for one label a row"):
        HCOH().fit(X, np.eye(5)[y])
