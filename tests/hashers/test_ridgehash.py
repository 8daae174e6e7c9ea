"""RidgeHash against plain linear algebra, and what its sums promise."""

import numpy as np
import pytest

from streamhash import InputError, RidgeHash, unpack
from streamhash.hashers._regression import solve_ridge, stage_regression


def stream(n=300, d=12, classes=5, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    X = 2 * random.standard_normal((classes, d))[y] + random.standard_normal((n, d))
    return (X / np.linalg.norm(X, axis=1)[:, None]).astype(np.float32), y


def codewords(model):
    return dict(zip(model.table_.labels_, model.codebook_.targets_, strict=True))


def test_a_step_worked_by_hand():
    # One feature, one bit: w = Σ x t / (Σ x² + δ) = (2·1 + 1·1) / (4 + 1 + 0.5)
    model = RidgeHash(1, n_anchors=None, ridge=0.5, normalize=False, random_state=0)
    model.fit(np.array([[2.0], [1.0]]), ["only", "only"])
    assert model.codebook_.targets_.tolist() == [[1.0]]
    assert model.W_[0, 0] == pytest.approx(3 / 5.5, abs=1e-6)


@pytest.mark.parametrize("kind", ["permuted", "natural", "spread", "random"])
def test_weights_are_the_regression_onto_the_codewords(kind):
    X, y = stream()
    model = RidgeHash(8, n_anchors=None, ridge=0.3, codewords=kind, normalize=False)
    model.set_params(batch_size=70, random_state=0).fit(X, y)
    T = np.array([codewords(model)[label] for label in y])
    rows = X.astype(np.float64)
    expected = np.linalg.solve(rows.T @ rows + 0.3 * np.eye(12), rows.T @ T)
    np.testing.assert_allclose(model.W_, expected, atol=1e-5)


def test_kernel_features_are_those_of_the_formula():
    X, y = stream()
    model = RidgeHash(8, n_anchors=40, divisor=2.0, ridge=0.1, normalize=False, batch_size=300)
    model.set_params(random_state=0).fit(X, y)
    rows = X.astype(np.float64)
    apart = ((rows[:40, None] - rows[None, :40]) ** 2).sum(axis=2)
    s = apart[~np.eye(40, dtype=bool)].mean() / 2
    Z = np.exp(-((rows[:, None] - rows[None, :40]) ** 2).sum(axis=2) / (2 * s))
    Z -= Z.mean(axis=0)
    T = np.array([codewords(model)[label] for label in y])
    expected = np.linalg.solve(Z.T @ Z + 0.1 * np.eye(40), Z.T @ T)
    np.testing.assert_allclose(model.project(X), Z @ expected, atol=1e-3)


def test_the_order_of_the_stream_does_not_matter():
    X, y = stream()
    by_class = np.argsort(y, kind="stable")
    options = {"n_anchors": None, "normalize": False, "codewords": "natural", "batch_size": 50}
    first = [int(np.flatnonzero(y == label)[0]) for label in range(5)]  # codewords in one order
    models = [
        RidgeHash(8, **options).fit(X[first], y[first]).partial_fit(X[order], y[order]).settle()
        for order in (np.arange(len(X)), by_class)
    ]
    np.testing.assert_allclose(models[1].W_, models[0].W_, atol=1e-5)


def test_several_labels_share_their_codewords_and_rows_without_any_move_nothing():
    X, y = stream(classes=3)
    Y = np.eye(3, dtype=int)[y]
    Y[::3, 0] = 1
    Y[1::7] = 0
    model = RidgeHash(8, n_anchors=None, normalize=False, random_state=0).fit(X, Y)
    order = [model.table_.labels_.index(column) for column in range(3)]
    T = np.sign(Y @ model.codebook_.targets_[order])
    assert not T[1::7].any()
    rows = X.astype(np.float64)
    expected = np.linalg.solve(rows.T @ rows + 0.1 * np.eye(12), rows.T @ T)
    np.testing.assert_allclose(model.W_, expected, atol=1e-5)


def test_hash_functions_are_worked_out_when_they_are_asked_for():
    X, y = stream()
    model = RidgeHash(8, n_anchors=None, random_state=0).partial_fit(X, y)
    assert not hasattr(model, "W_")
    codes = model.transform(X)
    before = model.W_
    assert np.array_equal(model.transform(X), codes)
    assert model.settle().W_ is before
    model.partial_fit(X, (y + 1) % 5)
    assert not hasattr(model, "W_")


def test_labels_have_their_codewords_as_codes():
    X, y = stream()
    model = RidgeHash(8, n_anchors=None, random_state=0).fit(X, y)
    codes, is_known = model.label_codes([*y[:9].tolist(), 99])
    assert is_known.tolist() == [True] * 9 + [False]
    wanted = np.array([codewords(model)[label] for label in y[:9]])
    assert np.array_equal(unpack(codes[:9], 8), wanted > 0)
    assert not codes[9].any()


def test_a_ridge_far_below_rounding_still_gives_weights():
    random = np.random.default_rng(0)
    A = random.standard_normal((50, 3)) @ random.standard_normal((3, 20)) * 1e6
    gram, B = A.T @ A, A.T @ random.standard_normal((50, 4))
    W = solve_ridge(gram, B, 1e-9)
    assert np.isfinite(W).all()
    assert np.linalg.norm(gram @ W - B) < 1e-3 * np.linalg.norm(B)


@pytest.mark.parametrize("n", [5, 40])
def test_the_regression_of_a_stage_is_the_same_in_both_forms(n):
    X, _ = stream(n)
    B = np.where(X[:, :4] > 0, 1, -1).astype(np.int8)
    rows = X.astype(np.float64)
    expected = np.linalg.solve(rows.T @ rows + 0.7 * np.eye(12), rows.T @ B)
    np.testing.assert_allclose(stage_regression(X, B, 0.7), expected, atol=1e-5)


def test_published_settings():
    model = RidgeHash.published("mnist", n_bits=48)
    assert (model.n_anchors, model.divisor, model.ridge) == (1000, 1.0, 1.0)
    assert (model.codewords, model.normalize, model.batch_size) == ("random", False, 2000)


def test_a_memory_is_refused():
    X, y = stream()
    with pytest.raises(InputError, match="this one keeps sums of all that has come"):
        RidgeHash(memory=100).fit(X, y)
