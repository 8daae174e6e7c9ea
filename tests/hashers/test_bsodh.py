"""BSODH against its formulas: the form that keeps every code, hand-worked updates, its options."""

from itertools import permutations

import numpy as np
import pytest

from streamhash import BSODH, InputError
from streamhash.base import new_generator, random_directions
from streamhash.kernels.learning.bit_updates import plain_update_bits, update_bits

STEPS = ("new_codes", "old_codes", "weights")


def stream(n=240, d=9, classes=5, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    X = random.standard_normal((classes, d))[y] + random.standard_normal((n, d))
    return (X / np.linalg.norm(X, axis=1)[:, None]).astype(np.float32), y


def sgn(values):
    return np.where(values >= -1e-9, 1.0, -1.0)


def first_codes(Be, ye):
    return np.array([Be[np.flatnonzero(ye == label)[0]] for label in ye])


def growing(
    X, y, size, k, *, ridge, fit, eta_s, eta_d, released, repelled, everything, order=STEPS
):
    """Section 11.4 of the specification with all codes and the whole of S, in float64."""
    W = random_directions(X.shape[1], k, new_generator(0)).astype(np.float64)
    Be, ye, history = np.zeros((0, k)), np.zeros(0, y.dtype), []
    for start in range(0, len(X), size):
        Xs, ys = X[start : start + size].astype(np.float64), y[start : start + size]
        Bs = sgn(Xs @ W)
        for i, label in enumerate(ys):
            if (ye == label).any():
                Bs[i] = Be[np.flatnonzero(ye == label)[0]]
        weight = 1.5 * eta_s / len({*ye, *ys}) if eta_d is None else eta_d
        S = np.where(ys[:, None] == ye[None], eta_s, -weight)
        for step in order if start else ():
            if step == "new_codes":
                P = k * k * S @ Be + Xs @ W if released else k * S @ Be + fit * (Xs @ W)
                Q = Be.T @ Be
                for r in range(k):
                    others = [q for q in range(k) if q != r]
                    Bs[:, r] = sgn(P[:, r] - Bs[:, others] @ Q[others, r])
            elif step == "old_codes":
                there = np.isin(ye, ys) | repelled
                Be = np.where(there[:, None], sgn(S.T @ Bs), first_codes(Be, ye))
            else:
                Xr, Br = (X[: start + size], np.vstack([Be, Bs])) if everything else (Xs, Bs)
                A = fit * Xr.T @ Xr + ridge * np.eye(X.shape[1])  # primal, whatever the shape
                W = fit * np.linalg.solve(A, Xr.T @ Br)
        Be, ye = np.vstack([Be, Bs]), np.concatenate([ye, ys])
        history.append((W, Be))
    return history


def compare(X, y, size, k=8, **options):
    options = {
        **{"ridge": 0.3, "fit": 0.5, "eta_s": 1.2, "eta_d": 0.2},
        **{"released": True, "repelled": True, "everything": False, **options},
    }
    model = BSODH(
        n_bits=k,
        batch_size=size,
        ridge=options["ridge"],
        fit_weight=options["fit"],
        similar_weight=options["eta_s"],
        dissimilar_weight=options["eta_d"],
        form="released" if options["released"] else "objective",
        absent_classes="released" if options["repelled"] else "kept",
        regression="all" if options["everything"] else "stage",
        order=options.get("order", STEPS),
        normalize=False,
        random_state=0,
    )
    for stage, (W, Be) in enumerate(growing(X, y, size, k, **options)):
        rows = slice(stage * size, (stage + 1) * size)
        model.partial_fit(X[rows], y[rows])
        seen = y[: len(Be)]
        for number, label in enumerate(model.classes_.labels_):
            codes = Be[seen == label]
            assert np.array_equal(model.first_codes_[number], codes[0])
            assert np.array_equal(model.code_sums_[number], codes.sum(axis=0))
            assert model.class_counts_[number] == len(codes)
        assert np.array_equal(model.code_gram_, Be.T @ Be)
        np.testing.assert_allclose(model.W_, W, atol=2e-5)
    return model


@pytest.mark.parametrize("released", [True, False])
@pytest.mark.parametrize("size", [60, 25, 4])  # primal, and dual with fewer rows than features
def test_the_bounded_state_is_the_growing_one(size, released):
    model = compare(*stream(), size, released=released)
    assert model.n_stages_ == -(-240 // size)


@pytest.mark.parametrize("order", [*permutations(STEPS)])
@pytest.mark.parametrize("released", [True, False])
def test_every_order_of_updates_is_the_growing_one(order, released):
    compare(*stream(), 30, order=order, released=released)


@pytest.mark.parametrize("order", [*permutations(STEPS)])
def test_our_default_is_the_growing_one(order):
    X, y = stream()
    y[:30] %= 2
    y[90:150] = 2 + y[90:150] % 2
    options = {"released": False, "repelled": False, "everything": True, "eta_d": None}
    model = compare(X, y, 30, order=order, **options)
    plain = BSODH(8, batch_size=30, order=order, ridge=0.3, normalize=False, random_state=0)
    assert np.array_equal(plain.fit(X, y).W_, model.W_)


def test_orders_differ():
    X, y = stream()
    W = {
        order: BSODH(n_bits=8, batch_size=30, order=order, random_state=0).fit(X, y).W_.tobytes()
        for order in permutations(STEPS)
    }
    assert len(set(W.values())) > 1


@pytest.mark.parametrize("eta_d", [0.0, 0.2])
@pytest.mark.parametrize("repelled", [True, False])
def test_new_classes_and_absent_ones_are_as_in_the_growing_form(eta_d, repelled):
    X, y = stream(n=200)
    y[:40] %= 2  # classes 2 to 4 come in the second stage
    y[120:] = 2 + y[120:] % 2  # and then 0, 1 and 4 stay away
    compare(X, y, 40, eta_s=1.0, eta_d=eta_d, repelled=repelled)


def test_an_update_worked_by_hand():
    # One feature, one bit, W = w. The first stage, x = 1 ("a") and x = -1 ("b"), gets the codes
    # sgn(w) and -sgn(w) and trains nothing.
    model = BSODH(
        1, batch_size=2, ridge=0.5, fit_weight=0.25, similar_weight=1.0, dissimilar_weight=0.5,
        regression="stage", normalize=False, random_state=0,
    )  # fmt: skip
    model.partial_fit([[1.0], [-1.0]], ["a", "b"])
    w = float(model.W_[0, 0])
    s = np.sign(w)
    assert model.code_sums_.ravel().tolist() == [s, -s]
    # The second stage, x = 2 of "a" and x = 1 of "b", both against their own old codes:
    # P = 1·s + 0.5·s + σ 2w for "a", and -s - 0.5 s + σ w for "b". |w| = 1, so they become s, -s.
    # Old: sgn(s + 0.5 s) = s for "a", and -s for "b".
    # W = σ (σ (4 + 1) + λ)⁻¹ (2 s − s) = 0.25 s / 1.75.
    model.partial_fit([[2.0], [1.0]], ["a", "b"])
    assert model.code_sums_.ravel().tolist() == [2 * s, -2 * s]
    assert model.class_counts_.tolist() == [2, 2]
    assert model.code_gram_.tolist() == [[4.0]]
    assert model.W_[0, 0] == pytest.approx(0.25 * s / 1.75)


def test_the_first_stage_trains_nothing():
    X, y = stream()
    model = BSODH(8, batch_size=60, random_state=3, normalize=False).partial_fit(X[:60], y[:60])
    assert np.array_equal(model.W_, random_directions(9, 8, new_generator(3)))
    model.partial_fit(X[60:120], y[60:120])
    assert not np.array_equal(model.W_, random_directions(9, 8, new_generator(3)))


def test_zero_counts_as_plus_inside_and_as_zero_in_codes():
    model = BSODH(8, normalize=False, random_state=0).partial_fit(np.zeros((2, 3)), [0, 1])
    assert (model.first_codes_ == 1).all()  # sgn(0) = +1
    assert not model.transform(np.zeros((1, 3))).any()  # projection > 0
    # η_s m − η_d (all others) is 0 but for rounding: 1.2 − 6 × 0.2.
    own, others = np.array([[1.0]]), np.full((6, 1), 1.0)
    balance = BSODH(dissimilar_weight=0.2)._balance(np.vstack([own, others]))
    assert balance[0, 0] != 0
    assert update_bits(np.array([[-1]], np.int8), balance[:1], np.zeros((1, 1)))[0, 0] == 1


@pytest.mark.parametrize("seed", range(3))
def test_the_compiled_update_of_bits_is_the_plain_one(seed):
    random = np.random.default_rng(seed)
    old = random.choice([-1.0, 1.0], (300, 20))
    B = random.choice(np.array([-1, 1], np.int8), (50, 20))
    P = 600 * random.standard_normal((50, 20))
    before = B.copy()
    updated = update_bits(B, P, old.T @ old)
    assert np.array_equal(updated, plain_update_bits(B, P, old.T @ old))
    assert np.array_equal(B, before)
    assert (updated != B).sum() > 0


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("cifar10", (2000, 0.6, 0.5, 1.2, 0.2)),
        ("mnist", (2000, 0.3, 0.5, 1.2, 0.2)),
        ("places205", (10000, 0.9, 0.8, 1.0, 0.0)),
    ],
)
def test_published_settings(data, expected):
    model = BSODH.published(data, n_bits=48, random_state=3)
    assert (
        model.batch_size,
        model.ridge,
        model.fit_weight,
        model.similar_weight,
        model.dissimilar_weight,
    ) == expected
    assert (model.n_bits, model.random_state, model.normalize) == (48, 3, False)
    assert (model.form, model.order) == ("objective", STEPS)
    assert (model.absent_classes, model.regression) == ("released", "stage")


def test_a_wrong_order_is_refused():
    for order in (STEPS[:2], (*STEPS, "weights"), "weights", (1, 2, 3), None):
        with pytest.raises(
            InputError, match="a tuple with each of 'new_codes', 'old_codes', 'weigh"
        ):
            BSODH(order=order).fit(*stream())


def test_several_labels_a_row_are_refused():
    X, y = stream()
    with pytest.raises(InputError, match="BSODH is defined for one label a row"):
        BSODH().fit(X, np.eye(5)[y])
