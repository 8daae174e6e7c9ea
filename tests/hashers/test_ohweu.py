"""OHWEU against its formulas: the start, a worked step, a plain loop, options, settings."""

import numpy as np
import pytest

from streamhash import OHWEU, unpack

BITS = 8


def stream(n=400, d=12, classes=5, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    X = 2 * random.standard_normal((classes, d))[y] + random.standard_normal((n, d))
    return (X / np.linalg.norm(X, axis=1)[:, None]).astype(np.float32), y


def several(y, classes=5):
    Y = np.eye(classes, dtype=int)[y]
    Y[::3, 0] = 1
    Y[1::4, 2] = 1
    Y[5::50] = 0
    return Y


def sgn(values):
    return np.where(values >= 0, 1.0, -1.0)


def plain_loop(X, Y, F, P, Q, M, c, *, clip):
    """Section 1 of the specification, row by row and bit by bit, in float64."""
    P, Q = P.astype(np.float64), Q.astype(np.float64)
    for x, labels in zip(X.astype(np.float64), Y, strict=True):
        if not labels.any():
            continue
        t = sgn(labels @ M)
        for rows, W in ((x, Q), (sgn(x @ F), P)):
            length = rows @ rows
            for r in range(len(t)):
                a = min(c, 1 - t[r] * (rows @ W[:, r]) / length)
                W[:, r] += (max(a, 0) if clip else a) * t[r] * rows
    return P, Q


def begun(**options):
    """A model before its first step: rows of zeros move neither Q, nor P before there is F."""
    model = OHWEU(BITS, normalize=False, random_state=0, **options)
    return model.partial_fit(np.zeros((1, 12)), [0])


@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize("matrix", [True, False])
def test_learning_is_the_plain_loop(clip, matrix):
    X, y = stream()
    Y = several(y) if matrix else np.eye(5, dtype=int)[y]
    options = {"clip_at_zero": clip, "start_size": 150}
    model = OHWEU(BITS, normalize=False, random_state=0, **options).fit(X, Y if matrix else y)
    first = begun(**options)
    M = np.zeros((5, BITS))
    M[model.table_.labels_] = model.M_
    P, Q = plain_loop(X, Y, model.F_.astype(np.float64), first.P_, first.Q_, M, 0.1, clip=clip)
    np.testing.assert_allclose(model.P_, P, atol=2e-5)
    np.testing.assert_allclose(model.Q_, Q, atol=2e-5)
    items = unpack(model.transform(X), BITS)
    assert np.array_equal(items, sgn(X @ model.F_) @ P > 0)
    asked = unpack(model.transform_queries(X), BITS)
    assert np.array_equal(asked, X @ Q > 0)
    assert not np.array_equal(asked, items)


def test_a_step_worked_by_hand():
    # One feature, one bit, one class. Row 2: the margin is to be 4; Q moves by at most c x = .2 t.
    model = OHWEU(1, normalize=False, start_size=2, random_state=0)
    q, p = (begun_of_one(model, name) for name in ("Q_", "P_"))
    model.fit(np.array([[2.0], [-2.0]]), ["only", "only"])
    t = np.sign(model.M_[0, 0])
    a = [max(0, min(0.1, 1 - t * 2 * q / 4))]
    q += a[0] * t * 2
    q += max(0, min(0.1, 1 - t * -2 * q / 4)) * t * -2
    assert model.Q_[0, 0] == pytest.approx(q)
    # F is +1 or -1; base codes are the signs of the rows, or the others; margins are to be 1.
    (f,) = model.F_[0]
    assert abs(f) == pytest.approx(1)
    for s in (np.sign(f), -np.sign(f)):
        p += max(0, min(0.1, 1 - t * s * p)) * t * s
    assert model.P_[0, 0] == pytest.approx(p)


def begun_of_one(model, name):
    return getattr(OHWEU(**model.get_params()).partial_fit([[0.0]], ["only"]), name)[0, 0]


def test_base_codes_are_iterative_quantization_of_the_first_rows():
    X, y = stream()
    model = OHWEU(BITS, normalize=False, start_size=200, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.F_.T @ model.F_, np.eye(BITS), atol=1e-5)
    first = X[:200].astype(np.float64)
    _, _, Vt = np.linalg.svd(first - first.mean(axis=0), full_matrices=False)
    within = Vt[:BITS] @ model.F_  # F spans the first principal directions
    np.testing.assert_allclose(within @ within.T, np.eye(BITS), atol=1e-4)
    Z = X[:200] @ model.F_
    U, _, Wt = np.linalg.svd(Z.T @ sgn(Z))  # and another pass does not turn it any more
    assert np.linalg.norm(U @ Wt - np.eye(BITS)) < 0.05
    model.partial_fit(X[::-1], y[::-1])
    assert len(model.waiting_) == 0
    again = OHWEU(BITS, normalize=False, start_size=200, random_state=0).fit(X[:200], y[:200])
    assert np.array_equal(again.F_, model.F_)  # learned once, from the first rows


def test_until_the_first_rows_have_come_items_are_coded_as_queries():
    X, y = stream()
    model = OHWEU(BITS, start_size=300, random_state=0).fit(X[:299], y[:299])
    assert len(model.waiting_) == 299
    assert np.array_equal(model.transform(X), model.transform_queries(X))
    model.partial_fit(X[299:], y[299:])
    assert len(model.waiting_) == len(model.waiting_targets_) == 0
    whole = OHWEU(BITS, start_size=300, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.P_, whole.P_, atol=1e-5)


@pytest.mark.parametrize("size", [1, 7, 400, 1000])
def test_the_batch_size_does_not_matter(size):
    X, y = stream()
    usual, other = (
        OHWEU(BITS, batch_size=batch, start_size=100, random_state=0).fit(X, y)
        for batch in (64, size)
    )
    assert np.array_equal(other.table_.labels_, usual.table_.labels_)
    np.testing.assert_allclose(other.Q_, usual.Q_, atol=1e-5)
    assert (unpack(other.transform(X), BITS) == unpack(usual.transform(X), BITS)).mean() > 0.9


def test_symmetric_queries_are_coded_as_items():
    X, y = stream()
    model = OHWEU(BITS, asymmetric=False, start_size=100, random_state=0).fit(X, y)
    assert np.array_equal(model.transform(X), model.transform_queries(X))


def test_a_class_that_is_new_in_mid_stream_gets_a_row_and_moves_none():
    X, y = stream()
    late = y == 4
    model = OHWEU(BITS, start_size=100, random_state=0).fit(X[~late], y[~late])
    before = model.M_
    assert model.label_codes([4])[1].tolist() == [False]
    model.partial_fit(X[late], y[late])
    assert np.array_equal(model.M_[:4], before)
    codes, is_known = model.label_codes([4])
    assert is_known.all()
    assert np.array_equal(unpack(codes, BITS)[0], model.M_[4] > 0)


def test_more_bits_than_directions():
    X, y = stream(d=3)
    model = OHWEU(16, start_size=100, random_state=0).fit(X, y)
    assert model.F_.shape == (3, 16)
    assert len(np.unique(model.transform(X), axis=0)) > 1
    same = OHWEU(16, start_size=10, random_state=0).fit(np.ones((20, 3)), y[:20])
    assert not same.F_.any()  # rows that are all the same have none


def test_codes_find_their_class():
    X, y = stream(n=1000, d=20)
    model = OHWEU(16, random_state=0).fit(X, y)
    codes, _ = model.label_codes(np.arange(5))
    apart = (unpack(model.transform_queries(X), 16)[:, None] != unpack(codes, 16)).sum(axis=2)
    assert (apart.argmin(axis=1) == y).mean() > 0.9


def test_published_settings():
    model = OHWEU.published("mnist", n_bits=48)
    assert (model.aggressiveness, model.start_size, model.normalize) == (0.1, 300, False)
    assert (model.clip_at_zero, model.asymmetric, model.codewords) == (False, True, "random")
