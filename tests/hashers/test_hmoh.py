"""HMOH against the plain loop: mistakes, average, kernel, several labels."""

import numpy as np
import pytest
from scipy.linalg import hadamard

from streamhash import HMOH, InputError

LINEAR = {"n_anchors": None, "normalize": False}


def stream(n=300, d=12, classes=5, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    X = random.standard_normal((classes, d))[y] + random.standard_normal((n, d)) + 0.5
    return X.astype(np.float32), y


def plain_loop(X, T):
    """W ← W + xᵀ (e ∘ t) where sgn(x W) ≠ t, sgn 0 = −1; the sum of W over all rounds."""
    W = np.zeros((X.shape[1], T.shape[1]))
    total = W.copy()
    for x, t in zip(X.astype(np.float64), T, strict=True):
        sign = np.where(x @ W > 0, 1, -1)
        W = W + np.outer(x, (sign != t) * t)
        total = total + W
    return W, total


def targets_of(model, y):
    return model.codebook_.targets_[model.table_.number(y)]


@pytest.mark.parametrize("n_bits", [8, 11])
def test_learning_is_the_plain_loop(n_bits):
    X, y = stream()
    X = np.round(X * 16) / 16  # so that float32 has no rounding, and no mistake hangs on it
    model = HMOH(n_bits, random_state=0, **LINEAR).fit(X, y)
    W, total = plain_loop(X, targets_of(model, y))
    np.testing.assert_allclose(model.W_, W, atol=1e-4)
    np.testing.assert_allclose(model.total_, total, rtol=1e-5, atol=1e-2)
    assert model.n_rounds_ == 300
    np.testing.assert_allclose(model.project(X), X @ total / 300, rtol=1e-4, atol=1e-3)
    last = HMOH(n_bits, weights="last", random_state=0, **LINEAR).fit(X, y)
    np.testing.assert_allclose(last.project(X), X @ W, atol=1e-3)


def test_rounds_worked_by_hand():
    # Classes a and b with the natural rows of the 2 × 2 matrix: (+, +) and (+, −).
    X, y = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), ["a", "b", "a"]
    model = HMOH(2, rows="natural", random_state=0, **LINEAR).fit(X, y)
    # 1: z = (0, 0), both err: both columns become (1, 0).
    # 2: z = (1, 1), target (+, −): the second errs and becomes (0, −1).
    # 3: z = (0, −1), target (+, +): both err: (1, 1) and (0, 0).
    assert model.W_.tolist() == [[1.0, 0.0], [1.0, 0.0]]
    # Sum: column 1: (1,0) + (1,0) + (1,1); column 2: (1,0) + (0,−1) + (0,0).
    assert model.total_.tolist() == [[3.0, 1.0], [1.0, -1.0]]
    assert model.transform(np.array([[1.0, 0.0], [0.0, 1.0]])).tolist() == [[0b11000000], [128]]


def test_the_kernel_comes_before_the_loop():
    X, y = stream()
    model = HMOH(8, n_anchors=30, divisor=6, normalize=False, random_state=0).fit(X, y)
    assert model.W_.shape == (30, 8)
    D = ((X[:, None].astype(float) - X[None, :30]) ** 2).sum(axis=2)
    eta = D[:30].sum() / (30 * 29) / 6
    expected = np.exp(-D / (2 * eta)) @ (model.total_ / 300)
    np.testing.assert_allclose(model.project(X), expected, atol=1e-4)


def test_anchors_may_be_given():
    X, y = stream()
    anchors = stream(seed=5)[0][:40].astype(np.float64)
    model = HMOH(8, anchors=anchors, divisor=6, normalize=False, random_state=0).fit(X, y)
    A = anchors.astype(np.float32).astype(float)
    apart = ((A[:, None] - A[None]) ** 2).sum() / (40 * 39)
    D = ((X[:, None].astype(float) - A[None]) ** 2).sum(axis=2)
    features = np.exp(-D / (2 * apart / 6))
    np.testing.assert_allclose(model.project(X), features @ model.total_ / 300, atol=1e-4)
    W, _ = plain_loop(features, targets_of(model, y))
    np.testing.assert_allclose(model.W_, W, atol=1e-3)
    assert HMOH(8, anchors=anchors, random_state=0).fit(X, y).W_.shape == (40, 8)


@pytest.mark.parametrize("bad", [np.ones(3), np.ones((0, 12)), np.full((2, 12), np.nan), 0, "300"])
def test_other_anchors_are_refused(bad):
    X, y = stream()
    with pytest.raises(InputError, match=r"HMOH: anchors=[\s\S]* must be None or a finite array"):
        HMOH(8, anchors=bad).fit(X, y)


@pytest.mark.parametrize("bad", [0, "300", np.ones((3, 12))])
def test_other_numbers_of_anchors_are_refused(bad):
    X, y = stream()
    with pytest.raises(InputError, match=r"HMOH: n_anchors=[\s\S]* must be None or a whole number"):
        HMOH(8, n_anchors=bad).fit(X, y)


def test_anchors_of_another_width_are_refused():
    X, y = stream()
    with pytest.raises(InputError) as caught:
        HMOH(8, anchors=np.ones((5, 4))).fit(X, y)
    assert str(caught.value) == (
        "HMOH: anchors has rows of 4 features, X has 12; pass rows of the same features."
    )


@pytest.mark.parametrize("size", [1, 7, 300, 1000])
@pytest.mark.parametrize("n_anchors", [None, 40])
def test_the_batch_size_does_not_matter(n_anchors, size):
    X, y = stream()
    usual, other = (
        HMOH(8, n_anchors=n_anchors, batch_size=batch, random_state=0).fit(X, y).project(X)
        for batch in (64, size)
    )
    np.testing.assert_allclose(other, usual, atol=1e-4)


@pytest.mark.parametrize("n_bits", [32, 128])
def test_rows_in_natural_order_leave_few_different_bits(n_bits):
    X, y = stream(classes=10)
    different = {}
    for rows in ("natural", "permuted"):
        model = HMOH(n_bits, rows=rows, random_state=0).fit(X, y)
        different[rows] = len(np.unique(model.codebook_.targets_, axis=1).T)
    assert different["natural"] == 16
    assert different["permuted"] > 20
    natural = HMOH(n_bits, rows="natural", random_state=0).fit(X, y)
    assert np.array_equal(natural.codebook_.targets_, hadamard(n_bits)[:10])


def test_targets_of_several_labels_are_signs_of_sums_filled_up_evenly():
    model = HMOH(8, rows="natural", random_state=0, **LINEAR)
    model.fit(np.ones((4, 1)), np.eye(4))  # four classes with their rows
    H = hadamard(8)
    Y = np.array([[1, 0, 0, 0], [0, 1, 1, 0], [1, 0, 0, 1], [0, 1, 1, 1]], np.uint8)
    T = model._shared_targets(Y)
    assert np.array_equal(T[0], H[0])
    # Rows 1 and 2 agree on bits 0, 4 (+) and 3, 7 (−): four are open, two of each sign to come.
    assert T[1].tolist() == [1, 1, 1, -1, 1, -1, -1, -1]
    # Rows 0 and 3 agree on bits 0, 3, 4, 7, all +: the four open bits become −.
    assert T[2].tolist() == [1, -1, -1, 1, 1, -1, -1, 1]
    # Three rows leave nothing open.
    assert np.array_equal(T[3], np.sign(H[1] + H[2] + H[3]))


def test_several_labels_are_learned_towards_the_shared_target():
    X, _ = stream(n=150)
    X = np.round(X * 16) / 16
    Y = np.random.default_rng(1).random((150, 4)) < 0.4
    Y[:5] = False
    model = HMOH(8, random_state=0, **LINEAR).fit(X, Y)
    there = Y.any(axis=1)
    rows, columns = np.nonzero(Y)
    T = np.array([model.codebook_.targets_[model.table_.number(columns[rows == i])].sum(axis=0)
                  for i in np.flatnonzero(there)])  # fmt: skip
    decided = T != 0
    assert np.array_equal(model._shared_targets(Y[there].astype(np.uint8))[decided],
                          np.sign(T)[decided])  # fmt: skip
    W, _ = plain_loop(X[there], model._shared_targets(Y[there].astype(np.uint8)))
    np.testing.assert_allclose(model.W_, W, atol=1e-4)
    assert model.n_rounds_ == there.sum()


def test_a_matrix_of_single_labels_is_the_same_as_the_labels():
    X, y = stream()
    single, matrix = (HMOH(8, random_state=0).fit(X, labels) for labels in (y, np.eye(5)[y]))
    assert np.array_equal(single.W_, matrix.W_)


def test_new_classes_move_no_target():
    X, y = stream()
    model = HMOH(8, random_state=0).fit(X, y)
    before = model.codebook_.targets_.copy()
    model.partial_fit(X, np.arange(300) + 50)
    assert np.array_equal(model.codebook_.targets_[:5], before)


@pytest.mark.parametrize(
    ("data", "n_anchors", "divisor", "n_classes"),
    [("cifar10", None, 6, 10), ("mnist", 300, 6, 10), ("places205", 800, 10, 205)],
)
def test_published_settings(data, n_anchors, divisor, n_classes):
    model = HMOH.published(data, n_bits=48, random_state=3)
    assert (model.n_bits, model.random_state) == (48, 3)
    assert (model.n_anchors, model.divisor, model.n_classes) == (n_anchors, divisor, n_classes)
    assert (model.rows, model.weights, model.normalize) == ("natural", "averaged", False)
    assert HMOH.published_features == "raw"


def test_scale_does_not_matter_even_without_normalisation():
    X, y = stream()
    for n_anchors in (None, 40):
        hasher = HMOH(8, n_anchors=n_anchors, normalize=False, random_state=0)
        codes = [hasher.fit(c * X, y).transform(c * X) for c in (1, 256)]
        assert np.array_equal(*codes)
