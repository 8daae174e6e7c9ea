"""SDOH-HC against its formulas with every item kept, its exemplars, and its released form."""

import numpy as np
import pytest

from streamhash import SDOHHC, InputError
from streamhash.base import new_generator
from streamhash.hashers._balanced import balanced
from streamhash.hashers._codebook import Codebook

ALPHA = BETA = GAMMA = 1.0
THETA, ETA, DELTA, K, N_EXEMPLARS, N_KEPT = 0.1, 100.0, 0.7, 4, 20, 8


def stream(n=180, d=9, classes=6, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    X = random.standard_normal((classes, d))[y] + random.standard_normal((n, d))
    y[:classes] = range(classes)
    return (X / np.linalg.norm(X, axis=1)[:, None]).astype(np.float32), y


def test_the_published_lengths_of_places_have_the_weights_of_cifar():
    places, cifar = (SDOHHC.published(name).get_params() for name in ("places205", "cifar10"))
    lengths = {"batch_size": 100_000, "n_exemplars": 4000, "n_kept": 1000}
    assert places == {**cifar, **lengths}


def sweep(B, T, A):
    B = B.copy()
    for _ in range(3):
        for r in range(B.shape[1]):
            others = [q for q in range(B.shape[1]) if q != r]
            B[:, r] = np.where(T[:, r] - B[:, others] @ A[others, r] >= -1e-9, 1.0, -1.0)
    return B


def plain(X, L, size, *, released, start):
    """Section 5 of the specification, one stage after the other, in float64."""
    random, C = new_generator(0), L.shape[1]
    codebook = Codebook(K)
    H = codebook.targets(np.arange(C, dtype=np.int32), random).astype(float)
    Y, history = H.copy(), []
    kernel = 2 * np.eye(C) - 1
    Lq, Uq, Bq = np.zeros((0, C)), np.zeros((0, X.shape[1])), np.zeros((0, K))
    Ls, Vs, Bs = np.zeros((0, C)), np.zeros((0, K)), np.zeros((0, K))
    for stage, first in enumerate(range(0, len(X), size)):
        Z, labels = X[first : first + size].astype(float), L[first : first + size].astype(float)
        U = Z / np.linalg.norm(Z, axis=1, keepdims=True)
        G = labels / np.sqrt(labels.sum(axis=1, keepdims=True))
        if start == "centres":
            B = np.where(labels @ Y >= 0, 1.0, -1.0)
        else:
            B = 2.0 * random.integers(2, size=(len(labels), K)) - 1
        fit = np.arange(len(labels)) if stage == 0 else np.linalg.norm(labels - B @ Y.T, axis=1)
        S = np.where(labels @ Lq.T > 0, U @ Uq.T, -1)
        old = G @ (Ls / np.sqrt(np.maximum(Ls.sum(axis=1, keepdims=True), 1))).T @ Vs
        before = Y
        for _ in range(10):
            V = balanced(BETA * B + GAMMA * K * S @ Bq, random)
            if released:
                held = K * THETA if stage else THETA
                T = THETA * K * kernel @ Y + held * H + ETA * K * labels.T @ B
                Y = sweep(Y, T, ETA * Y.T @ Y + B.T @ B)
            else:
                T = THETA * (K * kernel @ before + H) + ETA * K * labels.T @ B
                Y = sweep(Y, T, THETA * before.T @ before + ETA * B.T @ B)
            own = 0 if released and stage else ETA * K * labels @ Y
            B = sweep(B, BETA * V + own + ALPHA * K * old, ETA * Y.T @ Y)
        Ls, Vs, Bs = np.vstack([Ls, labels]), np.vstack([Vs, V]), np.vstack([Bs, B])
        n_kept = min(N_KEPT, len(Bq))
        kept = [random.permutation(len(Bq))[:n_kept] for _ in range(3 if released else 1)]
        if not released:
            fit = np.linalg.norm(K * labels - B @ Y.T, axis=1)
        new = np.argsort(fit, kind="stable")[: N_EXEMPLARS - n_kept]
        Lq = np.vstack([Lq[kept[0]], labels[new]])
        Uq = np.vstack([Uq[kept[len(kept) // 2]], (Z if released else U)[new]])
        Bq = np.vstack([Bq[kept[-1]], B[new]])
        rows = X[: first + size].astype(float)
        W = np.linalg.solve(rows.T @ rows + DELTA * np.eye(X.shape[1]), rows.T @ Bs)
        history.append((W, Y, Lq, Uq, Bq))
    return history


@pytest.mark.parametrize("kind", ["one", "several"])
@pytest.mark.parametrize("start", ["random", "centres"])
@pytest.mark.parametrize("form", ["objective", "released"])
def test_learning_is_the_plain_form(form, start, kind):
    X, y = stream()
    L = np.eye(6, dtype=int)[y]
    if kind == "several":
        L[6::3, 0] = 1
    model = SDOHHC(K, batch_size=60, n_anchors=None, ridge=DELTA, form=form, start=start)
    model.set_params(n_exemplars=N_EXEMPLARS, n_kept=N_KEPT, normalize=False, random_state=0)
    for stage, (W, Y, Lq, Uq, Bq) in enumerate(
        plain(X, L, 60, released=form == "released", start=start)
    ):
        rows = slice(60 * stage, 60 * stage + 60)
        model.partial_fit(X[rows], L[rows]).settle()
        assert np.array_equal(model.table_.labels_, np.arange(6))
        assert np.array_equal(model.Y_, Y)
        assert np.array_equal(model.exemplar_labels_, Lq)
        np.testing.assert_allclose(model.exemplar_rows_, Uq, atol=1e-6)
        assert np.array_equal(model.exemplar_codes_, Bq)
        np.testing.assert_allclose(model.W_, W, atol=2e-5)


def objective(B, V, Y, before, H, L, S, Bq, G, GV):
    """The paper's sum, but for what is constant: its items are those of one stage."""
    kernel = 2 * np.eye(len(Y)) - 1
    return (
        -2 * ALPHA * K * np.sum(B * (G @ GV))
        - 2 * GAMMA * K * np.sum(V * (S @ Bq))
        + BETA * np.sum((B - V) ** 2)
        + THETA * (np.sum((K * kernel - before @ Y.T) ** 2) + np.sum((H - Y) ** 2))
        + ETA * np.sum((K * L - B @ Y.T) ** 2)
    )


def test_each_update_lowers_the_objective():
    random = np.random.default_rng(0)
    n, C, q = 50, 6, 10
    L = np.eye(C)[random.integers(C, size=n)]
    S, Bq = random.uniform(-1, 1, (n, q)), np.sign(random.standard_normal((q, K)))
    GV, H = random.standard_normal((C, K)), np.sign(random.standard_normal((C, K)))
    B, Y = np.sign(random.standard_normal((n, K))), np.sign(random.standard_normal((C, K)))
    before, kernel = Y, 2 * np.eye(C) - 1
    V = balanced(random.standard_normal((n, K)), random)
    rest = (before, H, L, S, Bq, L, GV)
    values = [objective(B, V, Y, *rest)]
    V = balanced(BETA * B + GAMMA * K * S @ Bq, random)
    values.append(objective(B, V, Y, *rest))
    T = THETA * (K * kernel @ before + H) + ETA * K * L.T @ B
    Y = sweep(Y, T, THETA * before.T @ before + ETA * B.T @ B)
    values.append(objective(B, V, Y, *rest))
    B = sweep(B, BETA * V + ETA * K * L @ Y + ALPHA * K * L @ GV, ETA * Y.T @ Y)
    values.append(objective(B, V, Y, *rest))
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]


def test_a_stage_worked_by_hand():
    # One row of one class, one bit: V = 0 (nothing can be balanced), the centre is the Hadamard
    # row +1, the code follows it by η k L Y = 100, and w = x b / (x² + δ) = 2 / (4 + 1).
    model = SDOHHC(1, n_anchors=None, ridge=1.0, normalize=False, random_state=0)
    model.fit(np.array([[2.0]]), ["only"])
    assert model.Y_.tolist() == [[1]]
    assert model.exemplar_codes_.tolist() == [[1]]
    assert model.GV_.tolist() == [[0.0]]
    assert model.W_[0, 0] == pytest.approx(0.4)


def test_random_codes_lose_the_hadamard_rows_and_centres_keep_them():
    X, y = stream(n=600)
    moved = {}
    for start in ("random", "centres"):
        model = SDOHHC(32, n_anchors=None, start=start, random_state=0).fit(X, y)
        moved[start] = np.mean(model.codebook_.targets_ != model.Y_)
    assert moved["random"] > 0.3
    assert moved["centres"] < 0.1


def test_exemplars_are_as_many_as_asked_however_short_stages_are():
    X, y = stream()
    model = SDOHHC(8, n_anchors=None, n_exemplars=30, n_kept=10, random_state=0)
    model.partial_fit(X[:20], y[:20])
    assert len(model.exemplar_codes_) == 20
    for start in range(20, 180, 7):
        model.partial_fit(X[start : start + 7], y[start : start + 7])
    assert len(model.exemplar_codes_) == 30
    lengths = np.linalg.norm(model.exemplar_rows_, axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-5)


def test_published_settings():
    model = SDOHHC.published("cifar10", n_bits=48)
    assert (model.old_weight, model.exemplar_weight, model.balance_weight) == (1.0, 1.0, 1.0)
    assert (model.centre_weight, model.label_weight, model.ridge) == (0.1, 100.0, 1.0)
    assert (model.n_exemplars, model.n_kept, model.batch_size) == (200, 100, 2000)
    assert (model.form, model.start, model.rows, model.divisor) == (
        *("objective", "random", "natural"),
        1.0,
    )


def test_a_memory_is_refused():
    X, y = stream()
    with pytest.raises(InputError, match="this one keeps sums of all that has come"):
        SDOHHC(memory=100).fit(X, y)
