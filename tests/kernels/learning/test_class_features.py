"""What is seen of few rows: the twin, NumPy's sums, and rows that are left to NumPy."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from streamhash import SDOH
from streamhash.hashers import sdoh
from streamhash.kernels.learning.class_features import (
    class_features,
    plain_class_features,
    side_by_side,
    sum_of,
)

X, Y = load_digits(return_X_y=True)
X = X.astype(np.float32)


def wide(d):
    """Digits with more features, as many as ``d``."""
    random = np.random.default_rng(0)
    return (X @ random.standard_normal((64, d))).astype(np.float32)


@pytest.fixture(scope="module", params=[64, 300], ids=["rows themselves", "projections of rows"])
def fitted(request):
    rows = X if request.param == 64 else wide(request.param)
    return SDOH(40, n_features=1500, random_state=0).fit(rows[:600], Y[:600]), rows[600:800]


def test_the_compiled_loops_are_their_twin(fitted):
    model, rows = fitted
    model.project(rows[:1])
    found, random = model._few[2], model.parts_[1]
    assert found is not None
    twin = plain_class_features(rows[:8], random.signs_, found)
    np.testing.assert_allclose(class_features(rows[:8], found), twin, atol=1e-4)


def test_few_rows_have_the_bits_of_many(fitted):
    model, rows = fitted
    whole = model.project(rows)
    for n in (1, 2, 5, 8):
        parts = [model.project(rows[i : i + n]) for i in range(0, 80, n)]
        assert np.array_equal(np.concatenate(parts)[:80], whole[:80])
    turned = np.asfortranarray(rows[:3])
    turned.flags.writeable = False
    assert np.array_equal(model.project(turned), whole[:3])


def test_what_is_not_ordinary_is_left_to_numpy(fitted, monkeypatch):
    model, rows = fitted
    odd = np.repeat(rows[:1], 4, axis=0)
    odd[0] = 3  # no length about its mean
    odd[1, 2] = 1e30
    odd[2] *= 1e-20
    few = [model.project(odd[i : i + 1]) for i in range(4)]
    assert class_features(odd[:1], model._few[2]) is None
    monkeypatch.setattr(sdoh, "FEW_ROWS", 0)
    assert np.array_equal(np.concatenate(few), model.project(odd))


def test_other_bits_are_not_taken(fitted, monkeypatch):
    model, rows = fitted
    twin = model.encoder()
    monkeypatch.setattr(
        sdoh, "class_features", lambda X, to: np.nextafter(class_features(X, to), np.float32(9))
    )
    del twin._few
    assert np.array_equal(twin.project(rows[:2]), model.project(rows)[:2])
    assert twin._few[2] is None


def test_what_is_learned_later_counts(fitted):
    model, rows = fitted
    model = model.from_bytes(model.to_bytes())
    model.project(rows[:1])
    model.partial_fit(rows[100:], Y[700:800])
    assert np.array_equal(model.project(rows[:1]), model.project(rows[:50])[:1])


@pytest.mark.parametrize("settings", [{"class_scores": "linear"}, {"features": "fourier"}])
def test_other_settings_go_the_ordinary_way(settings):
    model = SDOH(16, n_features=300, random_state=0, **settings).fit(X[:300], Y[:300])
    assert np.array_equal(model.project(X[:1]), model.project(X[:50])[:1])
    assert model._few[2] is None


@pytest.mark.parametrize("n", [1, 7, 8, 9, 100, 128, 129, 300, 1000])
def test_sums_are_those_of_numpy(n):
    x = np.random.default_rng(n).standard_normal((1, n), np.float32)
    assert sum_of(x[0]) == x.sum(axis=1)[0]


def test_blocks_stand_side_by_side():
    signs = np.random.default_rng(0).choice(np.array([-1, 1], np.int8), (9, 3, 32))
    beside, scales = side_by_side(signs, 10, 266, 40)
    assert beside.shape == (3, 32, 16)
    assert np.array_equal(beside[1, :, 4], signs[4, 1])
    assert not beside[:, :, 9:].any()
    np.testing.assert_allclose(scales[:2], [10**-0.5 / 32, 256**-0.5 / 32], rtol=1e-6)
