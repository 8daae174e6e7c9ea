"""SDOH with its memory: whatever the order and the cut of the stream, merged, and forgetting."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits

from streamhash import SDOH, InputError, load
from streamhash.metrics import mean_average_precision


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order].astype(np.float32), y[order]


def small(**parameters):
    return SDOH(**{"n_bits": 32, "n_features": 448, "memory": 600, "random_state": 0, **parameters})


def quality(model, X, y):
    return mean_average_precision(
        model.transform(X[1400:]), y[1400:], model.transform(X[:1400]), y[:1400]
    )


def states(model):
    return [model.W_, model.offset_, model.score_weights_, model.sums_.products_]


def orders(y):
    rng = np.random.default_rng(1)
    return {
        "shuffled": np.arange(1400),
        "sorted": np.argsort(y[:1400], kind="stable"),
        "halves": np.argsort(y[:1400] > 4, kind="stable"),
        "backwards": np.arange(1400)[::-1],
        "runs": np.concatenate(rng.permutation(np.argsort(y[:1400]).reshape(-1, 50))),
    }


@pytest.mark.parametrize("order", ["shuffled", "sorted", "halves", "backwards", "runs"])
def test_the_order_of_the_stream_does_not_matter(digits, order):
    X, y = digits
    rows = orders(y)[order]
    assert quality(small().fit(X[rows], y[rows]), X, y) > 0.95


@pytest.mark.parametrize("size", [1, 7, 200, 513])
def test_nor_does_its_cut(digits, size):
    X, y = digits
    n = 700 if size == 1 else 1400
    whole, pieces = small().fit(X[:n], y[:n]), small()
    for start in range(0, n, size):
        stop = min(start + size, n)
        pieces.partial_fit(X[start:stop], y[start:stop])
        if start == 7 * size:
            pieces.transform(X[:5])  # working out the hash functions on the way changes nothing
    assert (pieces.transform(X) == whole.transform(X)).all()
    assert all(map(np.array_equal, states(pieces), states(whole)))


def test_units_and_offset_of_the_features_do_not_matter(digits):
    X, y = digits
    codes = small().fit(X[:600], y[:600]).transform(X)
    assert (small().fit(1024 * X[:600], y[:600]).transform(1024 * X) == codes).all()
    shifted = small().fit(X[:600] + 1000, y[:600]).transform(X + 1000)
    assert np.unpackbits(shifted ^ codes).mean() < 0.002


@pytest.mark.parametrize("n", [1, 2, 30, 511, 512, 1100])
def test_saved_and_loaded_it_goes_on_bit_for_bit(digits, tmp_path, n):
    X, y = digits
    model = small().fit(X[:n], y[:n])
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert (again.transform(X) == model.transform(X)).all()
    for each in (model, again):
        each.partial_fit(X[n:1400], y[n:1400])
    assert (again.transform(X) == model.transform(X)).all()
    assert all(map(np.array_equal, states(again), states(model)))


def test_a_refused_piece_changes_nothing(digits):
    X, y = digits
    model = small().fit(X[:600], y[:600])
    codes, before = model.transform(X), model.to_bytes()
    bad = X[600:1200].copy()
    bad[-1, 0] = np.nan
    with pytest.raises(InputError):
        model.partial_fit(bad, y[600:1200])
    with pytest.raises(InputError):
        model.forget(X[:600], np.full(600, 3))
    assert model.to_bytes() == before
    assert (model.transform(X) == codes).all()


def test_forgotten_rows_are_gone(digits):
    X, y = digits
    kept, gone = slice(0, 800), slice(800, 1200)
    model = small(memory=5000).fit(X[:1200], y[:1200]).forget(X[gone], y[gone])
    never = small(memory=5000).fit(X[kept], y[kept])
    assert model.n_samples_seen_ == 800
    assert len(model.memory_) == len(never.memory_) == 800
    codes, wanted = model.transform(X), never.transform(X)
    scale = np.abs(never.score_weights_).max()
    np.testing.assert_allclose(model.score_weights_, never.score_weights_, atol=0.01 * scale)
    assert quality(model, X, y) == pytest.approx(quality(never, X, y), abs=0.01)
    assert codes.shape == wanted.shape


@pytest.mark.parametrize("kept", [50, 88, 300])
def test_of_summed_and_of_waiting_rows_those_are_forgotten_that_were_named(digits, kept):
    X, y = digits  # 512 rows are summed, 88 wait
    model = small().partial_fit(X[:600], y[:600]).forget(X[kept:600], y[kept:600]).settle()
    never = small().partial_fit(X[:kept], y[:kept]).settle()
    scale = np.abs(never.score_weights_).max()
    np.testing.assert_allclose(model.score_weights_, never.score_weights_, atol=0.02 * scale)


def test_with_all_rows_forgotten_it_is_as_new(digits):
    X, y = digits
    model = small().partial_fit(X[:600], y[:600]).forget(X[:600], y[:600])
    with pytest.raises(InputError, match="has not seen any data"):
        model.transform(X)
    again, new = (each.fit(X[:700], y[:700]) for each in (model, small()))
    assert (again.transform(X) == new.transform(X)).all()


def test_a_class_can_be_forgotten_whole(digits):
    X, y = digits
    nines = y[:1200] == 9
    model = small().fit(X[:1200], y[:1200]).forget(X[:1200][nines], y[:1200][nines])
    model.settle()
    assert model.score_weights_.shape[1] == 9


def test_before_anything_is_summed_rows_can_be_forgotten(digits):
    X, y = digits
    model = small().fit(X[:300], y[:300]).forget(X[200:300], y[200:300])
    assert model.n_samples_seen_ == 200
    assert quality(model, X, y) > 0.8


@pytest.mark.parametrize("split", ["shuffled", "by class", "a few"])
def test_merged_models_are_as_good_as_one(digits, split):
    X, y = digits
    first = {
        "shuffled": np.arange(1400) < 700,
        "by class": y[:1400] < 5,
        "a few": np.arange(1400) < 100,
    }[split]
    a, b = (
        small(random_state=seed).fit(X[:1400][rows], y[:1400][rows])
        for seed, rows in ((1, first), (2, ~first))
    )
    whole = SDOH.merged(a, b)
    assert whole.n_samples_seen_ == 1400
    alone = quality(small().fit(X[:1400], y[:1400]), X, y)
    assert quality(whole, X, y) == pytest.approx(alone, abs=0.01)
    assert quality(SDOH.merged(b, a), X, y) == pytest.approx(alone, abs=0.01)
    whole.partial_fit(X[1400:], y[1400:])


def test_models_that_do_not_go_together_are_not_merged(digits):
    X, y = digits
    model = small().fit(X[:600], y[:600])
    with pytest.raises(InputError, match="differ in their parameters"):
        SDOH.merged(model, small(ridge=0.1).fit(X[:600], y[:600]))
    with pytest.raises(InputError, match="only models that have learned"):
        SDOH.merged(model, small())
    with pytest.raises(InputError, match="encoder"):
        SDOH.merged(model, model.encoder())
    few = [small().fit(X[rows, :8], y[rows]) for rows in (slice(600), slice(600, 1200))]
    with pytest.raises(InputError, match="means of their own"):
        SDOH.merged(*few)


def test_an_encoder_is_small_and_does_not_learn(digits):
    X, y = digits
    model = small().fit(X[:1200], y[:1200])
    encoder = model.encoder()
    assert (encoder.transform(X) == model.transform(X)).all()
    assert len(encoder.to_bytes()) < len(model.to_bytes()) / 4
    for learn in (encoder.partial_fit, encoder.forget):
        with pytest.raises(InputError, match="encoder"):
            learn(X[:10], y[:10])
    assert (SDOH.from_bytes(encoder.to_bytes()).transform(X) == model.transform(X)).all()


def test_several_labels_a_row_and_rows_without(digits):
    X, y = digits
    Y = np.eye(10, dtype=np.uint8)[y]
    Y[:, 3] |= Y[:, 8]  # an eight is also a three
    Y[:20] = 0
    model = small().fit(X[:1400], Y[:1400])
    found = mean_average_precision(
        model.transform(X[1400:]), Y[1400:], model.transform(X[:1400]), Y[:1400]
    )
    assert found > 0.9
    wider = np.pad(Y, ((0, 0), (0, 2)))
    wider[1400:, 11] = 1
    model.partial_fit(X[1400:], wider[1400:]).transform(X[:5])


def test_new_classes_may_come_at_any_time(digits):
    X, y = digits
    names = np.array(list("abcdefghij"))[y]
    model = small()
    for letter in "jihgfedcba":
        rows = names[:1400] == letter
        model.partial_fit(X[:1400][rows], names[:1400][rows])
        model.transform(X[:3])
    assert quality(model, X, y) > 0.95


def test_one_class_one_row_and_equal_rows(digits):
    X, _ = digits
    for rows in (X[:1], X[:300], np.ones_like(X[:20]), np.zeros_like(X[:700])):
        assert np.isfinite(small().fit(rows, np.zeros(len(rows))).project(X)).all()


def test_rows_of_few_features_and_with_large_offsets(digits):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=1500)
    X = (rng.normal(size=(1500, 2)) + 4 * np.eye(3, 2)[y]).astype(np.float32)
    assert quality(small().fit(X[:1400], y[:1400]), X, y) > 0.9
    X, y = digits
    offset = 5000 * rng.random(64).astype(np.float32)
    model = small().fit((X + offset)[:1400], y[:1400])
    assert quality(model, X + offset, y) > 0.95


def test_sparse_rows_are_learned_as_dense_ones(digits):
    X, y = digits
    sparse = small().fit(csr_matrix(X[:600]), y[:600])
    assert (sparse.transform(csr_matrix(X)) == small().fit(X[:600], y[:600]).transform(X)).all()


@pytest.mark.parametrize(
    "changes",
    [
        {"class_scores": "linear"},
        {"class_scores": None},
        {"features": "fourier"},
        {"features": None},
        {"equal_classes": False},
        {"memory": 0},
    ],
)
def test_every_addition_can_be_switched_off(digits, changes):
    X, y = digits
    assert quality(small(**changes).fit(X[:1400], y[:1400]), X, y) > 0.85


def test_wrong_labels_do_little_harm(digits):
    X, y = digits
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(len(y)) < 0.2, rng.integers(10, size=len(y)), y)
    clean = quality(small().fit(X[:1400], y[:1400]), X, y)
    assert quality(small().fit(X[:1400], noisy[:1400]), X, y) > clean - 0.1


def test_too_many_features_for_sums_are_refused():
    with pytest.raises(InputError, match="features=None sums the products"):
        SDOH(features=None).fit(np.ones((2, 9000)), [0, 1])


def test_a_learning_rate_that_diverges_is_refused(digits):
    X, y = digits
    model = small(learning_rate=1e39).partial_fit(X[:300], y[:300])
    with pytest.raises(InputError, match="without finite values"), np.errstate(all="ignore"):
        model.transform(X)


def test_few_rows_with_wrong_labels_ask_for_a_larger_ridge(digits):
    X, y = digits
    random = np.random.default_rng(2)
    wrong = np.where(random.random(1400) < 0.2, random.integers(10, size=1400), y[:1400])
    clean, noisy, trusting = (
        quality(small(n_features=3584, **options).fit(X[:1400], labels), X, y)
        for options, labels in (
            ({}, y[:1400]),
            ({}, wrong),
            ({"ridge": 0.05, "doubt": None}, wrong),
        )
    )
    assert noisy > clean - 0.05
    assert noisy > trusting + 0.02
