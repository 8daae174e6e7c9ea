"""FOH against its formulas with every item kept, an update worked by hand, and its options."""

import numpy as np
import pytest

from streamhash import FOH, InputError
from streamhash.base import new_generator, random_directions

WEIGHTS = {
    "ridge": 0.6,
    "fit": 0.8,
    "eta_s": 1.6,
    "eta_d": 0.2,
    "theta": 1.2,
    "mu": 0.5,
    "tau": 0.6,
}


def stream(n=240, d=9, classes=5, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    X = random.standard_normal((classes, d))[y] + random.standard_normal((n, d))
    return (X / np.linalg.norm(X, axis=1)[:, None]).astype(np.float32), y


def several(y, classes=5):
    Y = np.eye(classes, dtype=int)[y]
    Y[::3, 0] = 1
    Y[1::4, 2] = 1
    return Y


def sgn(values):
    return np.where(values >= -1e-9, 1.0, -1.0)


def sweep(B, T, A):
    B = B.copy()
    for r in range(B.shape[1]):
        others = [q for q in range(B.shape[1]) if q != r]
        B[:, r] = sgn(T[:, r] - B[:, others] @ A[others, r])
    return B


def similarity(a, b, matrix, w):
    common = (a * b).sum()
    if common == 0:
        return -w["eta_d"]
    return (common / a.sum() + common / b.sum()) / 2 if matrix else w["eta_s"]


def growing(X, Y, size, k, w, *, released, repelled, matrix):
    """Section 3 of the specification, with all items and the whole of S, in float64."""
    random = new_generator(0)
    W = random_directions(X.shape[1], k, random).astype(np.float64)
    total, P = W.copy(), np.zeros((0, k))
    Be, Le, columns = np.zeros((0, k)), np.zeros((0, Y.shape[1])), []
    for start in range(0, len(X), size):
        Xs, raw = X[start : start + size].astype(np.float64), Y[start : start + size]
        came = np.flatnonzero(raw.any(axis=0)) if matrix else raw.argmax(axis=1)
        columns += [c for c in dict.fromkeys(came.tolist()) if c not in columns]
        new = random.standard_normal((len(columns) - len(P), k), dtype=np.float32)
        P = np.vstack([P, new / np.linalg.norm(new, axis=1, keepdims=True)])
        L, Lo = raw[:, columns].astype(float), Le[:, columns]
        B = sgn(Xs @ W)
        if start:
            S = np.array([[similarity(a, b, matrix, w) for b in Lo] for a in L])
            for i, labels in enumerate(L):
                same = (Lo == labels).all(axis=1)
                if same.any() and labels.any():
                    B[i] = Be[np.flatnonzero(same)[0]]
            G = k * S @ Be + w["fit"] * Xs @ W + w["theta"] * L @ P
            B = sweep(B, G, Be.T @ Be)
            if released:
                new = sgn(2 * (k * S.T @ B - w["mu"] * Lo @ P) - Be @ (B.T @ B))
            else:
                new = sweep(Be, k * S.T @ B + w["mu"] * Lo @ P, B.T @ B)
            there = (Lo @ L.T > 0).any(axis=1) | repelled
            Be = np.where(there[:, None], new, Be)
            A = w["theta"] * L.T @ L + w["mu"] * Lo.T @ Lo + w["tau"] * np.eye(len(columns))
            P = np.linalg.solve(A, w["mu"] * Lo.T @ Be + w["theta"] * L.T @ B)
            A = w["fit"] * Xs.T @ Xs + w["ridge"] * np.eye(X.shape[1])
            W = w["fit"] * np.linalg.solve(A, Xs.T @ B)
            total = total + W
        Be, Le = np.vstack([Be, B]), np.vstack([Le, raw])
        yield W, total, P, Be, Le[:, columns]


def compare(X, y, size, *, released, repelled, k=8):
    matrix = y.ndim == 2
    Y = y if matrix else np.eye(y.max() + 1, dtype=int)[y]
    model = FOH(
        k,
        batch_size=size,
        ridge=WEIGHTS["ridge"],
        dissimilar_weight=WEIGHTS["eta_d"],
        form="released" if released else "objective",
        absent_classes="released" if repelled else "kept",
        normalize=False,
        random_state=0,
    )
    options = {"released": released, "repelled": repelled, "matrix": matrix}
    for stage, (W, total, P, Be, Le) in enumerate(growing(X, Y, size, k, WEIGHTS, **options)):
        rows = slice(stage * size, (stage + 1) * size)
        model.partial_fit(X[rows], y[rows])
        np.testing.assert_allclose(model.W_, W, atol=2e-5)
        np.testing.assert_allclose(model.total_, total, atol=1e-4)
        np.testing.assert_allclose(model.P_, P, atol=1e-6)
        # Each pair of labels and code once, in the order of their first items, with its count.
        both = np.hstack([Le, Be])
        pairs, first, counts = np.unique(both, axis=0, return_index=True, return_counts=True)
        order = np.argsort(first)
        kept = np.hstack([model.item_labels_, model.item_codes_])
        assert np.array_equal(kept, pairs[order])
        assert np.array_equal(model.item_counts_, counts[order])
    return model


@pytest.mark.parametrize("repelled", [True, False])
@pytest.mark.parametrize("released", [True, False])
@pytest.mark.parametrize("size", [60, 25, 4])
def test_the_bounded_state_is_the_growing_one(size, released, repelled):
    compare(*stream(), size, released=released, repelled=repelled)


@pytest.mark.parametrize("released", [True, False])
def test_several_labels_are_graded_as_in_the_growing_form(released):
    X, y = stream()
    compare(X, several(y), 40, released=released, repelled=released)


def test_new_classes_come_as_in_the_growing_form():
    X, y = stream()
    y[:60] %= 2
    y[60:120] %= 4
    compare(X, y, 30, released=False, repelled=False)


def test_a_stage_worked_by_hand():
    # One feature, one bit, one class. w₀ = s = ±1; the second row copies the code s of the first,
    # and 1.6 s + 0.8 s ± 1.2 keeps it; then w = σ s / (σ + λ) = 0.8 s / (0.8 + 0.2).
    model = FOH(1, batch_size=1, dissimilar_weight=0.2, normalize=False, random_state=0)
    s = np.sign(random_directions(1, 1, new_generator(0))[0, 0])
    model.fit(np.array([[1.0], [1.0]]), ["only", "only"])
    assert model.W_[0, 0] == pytest.approx(0.8 * s)
    assert model.total_[0, 0] == pytest.approx(1.8 * s)
    assert model.item_codes_.tolist() == [[s]]
    assert model.item_counts_.tolist() == [2]


def test_one_label_a_row_makes_the_projection_inert():
    X, y = stream()
    options = {"batch_size": 40, "normalize": False, "random_state": 0}
    usual, without = FOH(8, **options), FOH(8, new_weight=0.0, old_weight=0.0, **options)
    for model in (usual, without):
        model.partial_fit(X[:40], y[:40])
    start = usual.item_codes_.copy()
    assert np.array_equal(start, without.item_codes_)
    for model in (usual, without):
        model.partial_fit(X[40:], y[40:])
    assert np.array_equal(usual.W_, without.W_)


def test_queries_of_the_released_program_are_coded_by_the_mean():
    X, y = stream()
    models = {
        weights: FOH(16, batch_size=40, weights=weights, random_state=0).fit(X, y)
        for weights in ("averaged", "last", "released")
    }
    released = models["released"]
    assert np.array_equal(released.transform_queries(X), models["averaged"].transform(X))
    assert np.array_equal(released.transform(X), models["last"].transform(X))
    assert not np.array_equal(released.transform(X), released.transform_queries(X))
    assert released.weights == "released"


def test_codes_of_classes_that_stopped_coming_stay_or_are_driven_away():
    X, y = stream(n=600)
    for absent in ("kept", "released"):
        model = FOH(16, batch_size=60, absent_classes=absent, form="released", random_state=0)
        model.fit(X[:120], y[:120])
        gone = model.item_labels_[:, 0] > 0
        before = model.item_codes_[gone]
        rows = y != model.table_.labels_[0]
        model.partial_fit(X[120:][rows[120:]], y[120:][rows[120:]])
        after = model.item_codes_[model.item_labels_[:, 0] > 0]
        assert np.array_equal(after, before) == (absent == "kept")


def test_published_settings():
    model = FOH.published("cifar10", n_bits=48)
    assert (model.ridge, model.fit_weight, model.label_ridge) == (0.6, 0.8, 0.6)
    assert (model.similar_weight, model.dissimilar_weight) == (1.6, 0.2)
    assert (model.new_weight, model.old_weight, model.batch_size) == (1.2, 0.5, 2000)
    assert (model.form, model.absent_classes, model.weights) == ("released", "released", "averaged")


def test_a_memory_is_refused():
    X, y = stream()
    with pytest.raises(InputError, match="FOH: memory=100 is for methods that learn classes"):
        FOH(memory=100).fit(X, y)
