"""OKH against its formulas: features, a worked round, a plain loop, options, settings."""

import numpy as np
import pytest

from streamhash import OKH, InputError
from streamhash.base import new_generator, random_directions
from streamhash.hashers.okh import KernelFeatures
from streamhash.kernels.learning.pairwise_steps import learn_passive_pairs


def stream(n=301, d=6, classes=3, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    X = random.standard_normal((classes, d))[y] + 0.6 * random.standard_normal((n, d))
    return X.astype(np.float32), y


def sgn(values):
    return np.where(values > 0, 1.0, -1.0)


def rounds(Z, y, W, C, alpha):
    """Section 3.4 of the method notes, pair by pair and bit by bit, in float64."""
    W, k = W.astype(np.float64), W.shape[1]
    for t in range(len(Z) // 2):
        zi, zj = Z[2 * t].astype(np.float64), Z[2 * t + 1].astype(np.float64)
        s = 1 if y[2 * t] == y[2 * t + 1] else -1
        u, v = zi @ W, zj @ W
        hi, hj = sgn(u), sgn(v)
        D = sum(hi[r] != hj[r] for r in range(k))
        R = max(0, D) if s == 1 else max(0, alpha * k - D)
        if R == 0:
            continue
        wrong = [r for r in range(k) if (hi[r] != hj[r]) == (s == 1)]
        wrong.sort(key=lambda r: min(abs(u[r]), abs(v[r])))
        gi, gj = hi.copy(), hj.copy()
        for r in wrong[: int(np.ceil(R))]:
            if abs(u[r]) <= abs(v[r]):
                gi[r] = -gi[r]
            else:
                gj[r] = -gj[r]
        move = np.outer(zi, gi - hi) + np.outer(zj, gj - hj)
        loss = (hi - gi) @ u + (hj - gj) @ v + np.sqrt(R)
        tau = min(C, loss / np.linalg.norm(move) ** 2)
        W = W + tau * move
    return W


def features(X, anchors, b):
    """[exp(−‖x − a‖² / 2b), 1] by loops."""
    rows = [[np.exp(-((x - a) @ (x - a)) / (2 * b)) for a in anchors] + [1.0] for x in X]
    return np.array(rows)


def mean_squared_distance(rows):
    n = len(rows)
    apart = [((a - b) ** 2).sum() for i, a in enumerate(rows) for j, b in enumerate(rows) if i != j]
    return sum(apart) / (n * (n - 1))


def test_a_round_worked_by_hand():
    # Two features, two bits, W = I: u = z_i = (1, 2), v = z_j = (−3, 4).
    W = np.eye(2)
    Z = np.array([[1.0, 2.0], [-3.0, 4.0]])
    # Similar: the codes (+, +) and (−, +) differ in bit 0, R = 1. |u_0| = 1 < 3, so the first item
    # gets the target −: ℓ = 2·1 + 1 = 3, ‖z_i (−2, 0)ᵀ‖² = 4 · 5 = 20, τ = 0.15.
    got, n_active = learn_passive_pairs(W, Z, np.array([True]), cap=1.0, margin=0.5)
    np.testing.assert_allclose(got, [[1 - 0.3, 0], [-0.6, 1]], atol=1e-15)
    assert n_active == 1
    # Capped at C = 0.1: W_0 falls by 0.1 · 2 · z_i.
    got, _ = learn_passive_pairs(W, Z, np.array([True]), cap=0.1, margin=0.5)
    np.testing.assert_allclose(got, [[0.8, 0], [-0.4, 1]], atol=1e-15)
    # Dissimilar: one bit of two differs. α = 1/2 asks for one, nothing moves; α = 0.9 asks for 1.8,
    # R = 0.8, and the one equal bit, 1, is flipped in the first item (2 < 4):
    # ℓ = 2·2 + √0.8, norm² = 4 · 5.
    got, n_active = learn_passive_pairs(W, Z, np.array([False]), cap=1.0, margin=0.5)
    assert n_active == 0
    assert np.array_equal(got, W)
    got, _ = learn_passive_pairs(W, Z, np.array([False]), cap=1.0, margin=0.9)
    tau = (4 + np.sqrt(0.8)) / 20
    np.testing.assert_allclose(got, [[1, -2 * tau], [0, 1 - 4 * tau]], atol=1e-15)


@pytest.mark.parametrize(("C", "alpha"), [(0.001, 0.3), (0.1, 0.45), (10.0, 0.7)])
def test_the_update_is_that_of_the_notes(C, alpha):
    random = np.random.default_rng(1)
    Z, y = random.random((400, 30)), random.integers(3, size=400)
    W = random_directions(30, 12, random).astype(np.float64)
    got, _ = learn_passive_pairs(W, Z, y[::2] == y[1::2], cap=C, margin=alpha)
    np.testing.assert_allclose(got, rounds(Z, y, W, C, alpha), atol=1e-12)


@pytest.mark.parametrize(
    ("bandwidth", "b"),
    [("mean", lambda s: s), ("released", lambda s: s**2), ("demo", lambda _: 0.81),
     (0.1, lambda s: 0.1 * s)],
)  # fmt: skip
def test_bandwidths_of_given_anchors(bandwidth, b):
    X, y = stream()
    anchors = X[50:90].astype(np.float64)
    model = OKH(
        12, aggressiveness=0.05, margin=0.3, anchors=anchors, bandwidth=bandwidth,
        normalize=False, random_state=0,
    ).fit(X, y)  # fmt: skip
    Z = features(X.astype(np.float64), anchors, b(mean_squared_distance(anchors)))
    np.testing.assert_allclose(model.parts_[0].map_rows(X), Z, atol=1e-5)
    start = random_directions(41, 12, new_generator(0))
    np.testing.assert_allclose(model.W_, rounds(Z, y, start, 0.05, 0.3), atol=1e-4)
    assert model.n_updates_ > 20


def test_anchors_come_with_the_stream():
    X, _ = stream(n=12)
    kernel = KernelFeatures(5, bandwidth="mean")
    got = kernel.follow_rows(X)
    assert got.shape == (12, 6)
    for i, x in enumerate(X.astype(np.float64)):
        there = X[: min(i + 1, 5)].astype(np.float64)
        if len(there) == 1:  # no distance between anchors yet
            expected = [[1.0, 1.0]]
        else:
            expected = features(x[None], there, mean_squared_distance(there))
        row = np.zeros(6)
        row[: len(there)], row[-1] = expected[0][:-1], 1
        np.testing.assert_allclose(got[i], row, atol=1e-5)
    np.testing.assert_allclose(kernel.map_rows(X)[5:], got[5:], atol=1e-6)


def test_normalised_features_are_centred_and_of_unit_length():
    X, y = stream()
    model = OKH(12, n_anchors=20, random_state=0).fit(X, y)
    Z = model.parts_[1].map_rows(model.parts_[0].map_rows(X))
    assert Z.min() >= 0
    final = model.parts_[2].map_rows(Z)
    np.testing.assert_allclose(np.linalg.norm(final, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(final[:, -1], 0, atol=1e-6)  # the constant
    np.testing.assert_allclose(model.project(X), final @ model.W_, atol=1e-5)


@pytest.mark.parametrize("size", [1, 3, 50, 301])
def test_the_batch_size_does_not_matter(size):
    X, y = stream()
    first, second = (
        OKH(12, n_anchors=20, batch_size=batch, random_state=0).fit(X, y).project(X)
        for batch in (64, size)
    )
    np.testing.assert_allclose(first, second, atol=1e-4)


def test_an_odd_row_waits_for_the_next_piece():
    X, y = stream(n=3)
    model = OKH(8, n_anchors=2, random_state=0).partial_fit(X[:1], y[:1])
    before = model.W_
    assert len(model.queue_.row_) == 1
    assert model.n_updates_ == 0
    model.partial_fit(X[1:2], 1 - y[:1])
    assert len(model.queue_.row_) == 0
    model.partial_fit(X[2:], y[2:])
    assert len(model.queue_.row_) == 1
    assert model.W_.shape == before.shape == (3, 8)


@pytest.mark.parametrize(
    ("data", "C", "alpha"),
    [("cifar10", 0.001, 0.3), ("mnist", 0.001, 0.3), ("places205", 0.0001, 0.7)],
)
def test_published_settings(data, C, alpha):
    model = OKH.published(data, n_bits=48, random_state=3)
    assert (model.n_bits, model.random_state) == (48, 3)
    assert (model.aggressiveness, model.margin) == (C, alpha)
    assert (model.n_anchors, model.bandwidth, model.normalize) == (300, "released", False)
    assert OKH.published_features == "centre_unit"


def test_label_matrices_learn_from_shared_classes():
    X, y = stream()
    single = OKH(8, n_anchors=20, random_state=0).fit(X, y)
    matrix = OKH(8, n_anchors=20, random_state=0).fit(X, np.eye(3)[y])
    assert np.array_equal(matrix.W_, single.W_)
    shared = np.eye(3)[y]
    shared[:, 0] = 1  # now everything shares a class
    everyone = OKH(8, n_anchors=20, random_state=0).fit(X, np.zeros(len(X)))
    assert np.array_equal(OKH(8, n_anchors=20, random_state=0).fit(X, shared).W_, everyone.W_)
    assert not np.array_equal(everyone.W_, single.W_)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"margin": 1.5}, "OKH: margin=1.5 must be a number from 0 to 1."),
        ({"bandwidth": "wide"}, "OKH: bandwidth='wide' must be one of 'mean', 'released', 'demo', "
         "or a number greater than 0."),
        ({"n_anchors": 0}, "OKH: n_anchors=0 must be a whole number from 1 up."),
        ({"anchors": np.ones((4, 2))}, "OKH: anchors has rows of 2 features, X has 6; pass rows of "
         "the same features."),
    ],
)  # fmt: skip
def test_wrong_parameters_are_refused(wrong, message):
    X, y = stream(n=10)
    with pytest.raises(InputError) as caught:
        OKH(8, **wrong).fit(X, y)
    assert str(caught.value) == message


def test_given_anchors_are_saved_with_the_model(tmp_path):
    X, y = stream()
    model = OKH(8, anchors=X[:10], random_state=0).fit(X, y)
    model.save(tmp_path / "okh")
    loaded = OKH.load(tmp_path / "okh")
    assert np.array_equal(loaded.anchors, X[:10])
    assert np.array_equal(loaded.project(X), model.project(X))
