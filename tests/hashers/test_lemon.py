"""LEMON against its formulas with every item kept, and stages that say too little."""

import numpy as np
import pytest

from streamhash import LEMON, InputError
from streamhash.base import new_generator
from streamhash.hashers._balanced import balanced

ALPHA, BETA, GAMMA, XI = 1e4, 1e4, 0.1, 0.7


def stream(n=240, d=9, classes=6, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    X = random.standard_normal((classes, d))[y] + random.standard_normal((n, d))
    return (X / np.linalg.norm(X, axis=1)[:, None]).astype(np.float32), y


def growing(X, Y, size, k):
    """Section 4 of the specification with all items kept, and nothing divided by α k."""
    random = new_generator(0)
    old = [np.zeros((0, width)) for width in (k, k, Y.shape[1])]  # B, V, L
    for start in range(0, len(X), size):
        L = Y[start : start + size].astype(float)
        B = np.where(random.integers(2, size=(len(L), k)) > 0, 1.0, -1.0)
        V = random.standard_normal((len(L), k))
        R = np.linalg.qr(random.standard_normal((k, k)))[0]
        for _ in range(5):
            all_B, all_V, all_L = (np.vstack([o, n]) for o, n in zip(old, (B, V, L), strict=True))
            G, all_G = unit(L), unit(all_L)
            S = 2 * G @ all_G.T - 1  # (n, all)
            P = np.linalg.solve(all_V.T @ all_V + GAMMA * np.eye(k), all_V.T @ all_L)
            V = balanced(B @ R.T + BETA * L @ P.T + ALPHA * k * S @ all_B, random)
            all_V = np.vstack([old[1], V])
            U, _, Zt = np.linalg.svd(all_B.T @ all_V)
            R = Zt.T @ U.T
            B = np.where(ALPHA * k * S @ all_V + V @ R >= 0, 1.0, -1.0)
        old = [np.vstack([o, n]) for o, n in zip(old, (B, V, L), strict=True)]
        rows = X[: start + size].astype(np.float64)
        yield np.linalg.solve(rows.T @ rows + XI * np.eye(X.shape[1]), rows.T @ old[0]), *old


def unit(L):
    return L / np.sqrt(L.sum(axis=1, keepdims=True))


def labels_of(y, kind):
    Y = np.eye(6, dtype=int)[y]
    if kind == "several":
        Y[::3, 0] = 1
        Y[1::4, 2] = 1
    return Y


# As many bits as six classes can fix: with more, directions are random, and rounding shows.
@pytest.mark.parametrize("kind", ["one", "several"])
@pytest.mark.parametrize("few", ["codewords", "released"])
def test_running_sums_stand_for_all_items(kind, few):
    X, y = stream()
    Y = labels_of(y, kind)
    model = LEMON(4, n_anchors=None, ridge=XI, few_classes=few, normalize=False, random_state=0)
    model.set_params(batch_size=60)
    for stage, (W, B, V, L) in enumerate(growing(X, Y, 60, 4)):
        rows = slice(60 * stage, 60 * stage + 60)
        model.partial_fit(X[rows], Y[rows]).settle()
        order = model.table_.labels_
        np.testing.assert_allclose(model.W_, W, atol=2e-5)
        np.testing.assert_allclose(model.VV_, V.T @ V, atol=1e-6)
        np.testing.assert_allclose(model.BV_, B.T @ V, atol=1e-6)
        np.testing.assert_allclose(model.VL_, (L.T @ V)[order], atol=1e-6)
        np.testing.assert_allclose(model.GB_, (unit(L).T @ B)[order], atol=1e-6)
        np.testing.assert_allclose(model.GV_, (unit(L).T @ V)[order], atol=1e-6)
        np.testing.assert_allclose(model.V_sum_, V.sum(axis=0), atol=1e-6)
        np.testing.assert_allclose(model.B_sum_, B.sum(axis=0), atol=1e-6)
    if kind == "one":  # on a shuffled stream a label's code is the one that its rows were given
        codes, _ = model.label_codes(Y[rows])
        assert np.array_equal(np.unpackbits(codes, axis=1)[:, :4], B[-60:] > 0)


def test_two_classes_worked_by_hand():
    # Two rows of two classes, one bit: balance makes V (1, −1) or (−1, 1), and B follows it; then
    # w = Σ x b / (Σ x² + ξ) = (2 − 1) s / (4 + 1 + 1), s the sign of the first code.
    model = LEMON(1, n_anchors=None, ridge=1.0, normalize=False, random_state=0)
    model.fit(np.array([[2.0], [1.0]]), ["a", "b"])
    s = np.sign(model.GB_[0, 0])
    assert model.GB_.tolist() == [[s], [-s]]
    assert model.W_[0, 0] == pytest.approx(s / 6)


def test_a_stage_of_one_class_gives_it_a_code_for_good():
    X, y = stream()
    for few in ("codewords", "released"):
        model = LEMON(16, n_anchors=None, few_classes=few, random_state=0)
        for label in range(6):
            model.partial_fit(X[y == label], y[y == label])
        codes, _ = model.label_codes(np.arange(6))
        assert len(np.unique(codes, axis=0)) == 6
        for label in (3, 0):
            model.partial_fit(X[y == label], y[y == label])
        assert np.array_equal(model.label_codes(np.arange(6))[0], codes)


def test_stages_of_few_classes_share_codes_in_the_program_only():
    X, y = stream(n=900)
    order = np.argsort(y, kind="stable")
    n_codes = {}
    for few in ("codewords", "released"):
        model = LEMON(16, n_anchors=None, batch_size=50, few_classes=few, random_state=0)
        model.fit(X[order], y[order])
        n_codes[few] = len(np.unique(model.label_codes(np.arange(6))[0], axis=0))
    assert n_codes["codewords"] == 6
    assert n_codes["released"] < 6


def test_rows_without_labels_teach_nothing():
    X, y = stream()
    Y = labels_of(y, "one")
    blank = np.zeros_like(Y)
    options = {"n_anchors": None, "normalize": False, "random_state": 0}
    model = LEMON(8, **options).fit(X, Y)
    before = model.W_
    assert np.array_equal(model.partial_fit(X, blank).settle().W_, before)


def test_published_settings():
    model = LEMON.published("mnist", n_bits=48)
    assert (model.similarity_weight, model.label_weight, model.label_ridge) == (1e4, 1e4, 0.1)
    assert (model.ridge, model.n_anchors, model.n_iterations) == (1.0, None, 5)
    assert (model.few_classes, model.batch_size) == ("released", 2000)


def test_a_memory_is_refused():
    X, y = stream()
    with pytest.raises(InputError, match="this one keeps sums of all that has come"):
        LEMON(memory=100).fit(X, y)
