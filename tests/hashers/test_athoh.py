"""ATHOH against its formulas: a plain loop with its teacher, a worked step, options, settings."""

import numpy as np
import pytest

from streamhash import ATHOH, InputError, unpack

BITS = 8


def stream(n=300, d=12, classes=5, seed=0):
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


def density(e, deviation):
    return np.exp(-((e / deviation) ** 2) / 2) / (deviation * np.sqrt(2 * np.pi))


def plain_loop(X, Y, models, size, *, distil, rate=0.2, lam=0.1, T=0.3, **slips):
    """Section 2 of the specification, row by row and label by label, in float64.

    ``models``: student and teacher, each a first W and the codewords by column of Y.
    """
    W = [start.astype(np.float64) for start, _ in models]
    D = [codewords.astype(np.float64) for _, codewords in models]
    k, N = D[0].shape[1], None
    for i, (x, labels) in enumerate(zip(X.astype(np.float64), Y, strict=True)):
        stage = i // size
        if N is None or (i % size == 0 and not slips["kept"]):
            N, S = np.zeros(len(D[0])), np.zeros((2, *D[0].shape))
        for c in np.flatnonzero(labels):
            N[c] += 1
            w, e = [None, None], [None, None]
            for m in range(2):
                e[m] = x @ W[m] - D[m][c]
                S[m][c] += (e[m] ** 2 - S[m][c]) / N[c]
                deviation = np.sqrt(S[m][c]) if slips["root"] else S[m][c]
                w[m] = np.maximum(0, 1 - density(e[m], deviation) / T)
                if not slips["mining"]:
                    w[m] = np.ones(k)
                if stage == 0:
                    W[m] = W[m] - rate * np.outer(x, e[m])
                    e[m] = x @ W[m] - D[m][c]
            if stage % 2 == 0:
                W[1] = W[1] - rate * np.outer(x, w[1] * e[1])
            r = [(k - D[m][c] @ (x @ W[m])) / (2 * k) for m in range(2)]
            move = -rate * np.outer(x, w[0] * e[0])
            if distil:
                move += lam * (r[0] - r[1]) * np.outer(x, D[0][c])
            W[0] = W[0] + move
    return W


def first_models(k=BITS, **options):
    """The models before their first step, by a row of zeros that moves nothing."""
    model = ATHOH(k, normalize=False, random_state=0, **options).partial_fit(np.zeros((1, 12)), [0])
    return [each.W_ for each in (model.student_, model.teacher_)]


@pytest.mark.parametrize("matrix", [True, False])
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize(("mining", "root"), [(True, True), (True, False), (False, True)])
def test_learning_is_the_plain_loop(mining, root, kept, matrix):
    X, y = stream()
    Y = several(y) if matrix else np.eye(5, dtype=int)[y]
    options = {
        "hard_mining": mining,
        "deviation": "root" if root else "variance",
        "errors": "kept" if kept else "released",
        "learning_rate": 0.2,
        "distil": "gradient",
        "stage_size": 70,
    }
    model = ATHOH(BITS, normalize=False, random_state=0, **options).fit(X, Y if matrix else y)
    codewords = []
    for each in (model.student_, model.teacher_):
        codewords.append(np.zeros((5, BITS)))
        codewords[-1][model.table_.labels_] = each.codebook_.targets_
    start = [*zip(first_models(**options), codewords, strict=True)]
    slips = {"mining": mining, "root": root, "kept": kept}
    if kept:  # a teacher that rests gathers no errors; the loop gathers them all
        expected = plain_loop(X, Y, start, 1000, distil=True, **slips)
        model = ATHOH(BITS, normalize=False, random_state=0, **options | {"stage_size": 1000})
        model.fit(X, Y if matrix else y)
    else:
        expected = plain_loop(X, Y, start, 70, distil=True, **slips)
    np.testing.assert_allclose(model.student_.W_, expected[0], atol=5e-5)
    np.testing.assert_allclose(model.teacher_.W_, expected[1], atol=5e-5)
    assert np.array_equal(unpack(model.transform(X), BITS), model.project(X) > 0)


def test_without_distillation_the_teacher_would_change_nothing():
    X, y = stream()
    options = {"normalize": False, "random_state": 0, "stage_size": 70, "hard_mining": True}
    alone = ATHOH(BITS, **options).fit(X, y)
    assert not hasattr(alone, "teacher_")
    codewords = alone.student_.codebook_.targets_[np.argsort(alone.table_.labels_)]
    W = first_models(**{"stage_size": 70, "distil": "gradient"})
    slips = {"mining": True, "root": True, "kept": True, "rate": alone.learning_rate}
    start = [(W[0], codewords), (W[1], codewords)]
    expected = plain_loop(X, np.eye(5)[y], start, 70, distil=False, **slips)
    np.testing.assert_allclose(alone.student_.W_, expected[0], atol=5e-5)


def test_steps_worked_by_hand():
    # One feature, one bit, x = 1. First stage: e ← .9 e, and .9 e once more; then one step.
    model = ATHOH(1, learning_rate=0.1, hard_mining=False, stage_size=1, normalize=False)
    model.set_params(random_state=0).fit([[1.0]], ["only"])
    start = ATHOH(**model.get_params()).fit([[0.0]], ["only"]).student_
    (t,), (w,) = start.codebook_.targets_[0], start.W_[0]
    e = (w - t) * 0.9 * 0.9
    assert model.student_.W_[0, 0] == pytest.approx(t + e)
    model.partial_fit([[1.0]], ["only"])
    assert model.student_.W_[0, 0] == pytest.approx(t + 0.9 * e)
    assert model.student_.counts_.tolist() == [2.0]


@pytest.mark.parametrize("distil", [None, "gradient"])
@pytest.mark.parametrize("size", [1, 7, 300, 1000])
def test_the_batch_size_does_not_matter(size, distil):
    X, y = stream()
    options = {"stage_size": 50, "distil": distil, "hard_mining": True, "random_state": 0}
    usual, other = (
        ATHOH(BITS, batch_size=batch, **options).fit(X, y).project(X) for batch in (64, size)
    )
    np.testing.assert_allclose(other, usual, atol=1e-4)


def test_the_term_of_the_comment_diverges():
    X, y = stream(n=2000)
    model = ATHOH(32, distil="commented", normalize=False, random_state=0)
    with pytest.raises(InputError, match="without finite values"):
        model.fit(X, y)


def test_a_class_that_is_new_in_mid_stream_gets_a_codeword_and_moves_none():
    X, y = stream()
    late = y == 4
    model = ATHOH(BITS, random_state=0).fit(X[~late], y[~late])
    before = model.student_.codebook_.targets_
    assert model.label_codes([4])[1].tolist() == [False]
    model.partial_fit(X[late], y[late])
    assert np.array_equal(model.student_.codebook_.targets_[:4], before)
    assert model.student_.counts_[4] == late.sum()
    codes, is_known = model.label_codes([4])
    assert is_known.all()
    assert np.array_equal(unpack(codes, BITS)[0], model.student_.codebook_.targets_[4] > 0)


def test_codes_find_their_class():
    X, y = stream(n=1000, d=20)
    model = ATHOH(16, random_state=0).fit(X, y)
    codes, _ = model.label_codes(np.arange(5))
    apart = (unpack(model.transform(X), 16)[:, None] != unpack(codes, 16)).sum(axis=2)
    assert (apart.argmin(axis=1) == y).mean() > 0.9


def test_published_settings():
    model = ATHOH.published("mnist", n_bits=8)
    assert (model.learning_rate, model.threshold, model.stage_size) == (0.2, 0.3, 2000)
    assert (model.hard_mining, model.deviation, model.errors) == (True, "variance", "released")
    assert (model.distil, model.codewords, model.normalize) == (None, "orthogonal", False)
    X, y = stream()
    assert model.fit(X, y).student_.codebook_.size_ == 10  # m = max(k, C)
