"""FourierMap: what it holds, how it is drawn, and its life inside a pipeline."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_digits

import streamhash
from streamhash import SDOH, CenterScale, FourierMap, InputError, StreamPipeline
from streamhash.kernels.learning.fourier import plain_fourier_features
from streamhash.threads import using_threads

DIGITS, CLASSES = load_digits(return_X_y=True)


def unit_rows(n, d):
    X = np.random.default_rng(0).standard_normal((n, d))
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)


def pipeline():
    parts = [CenterScale(scale="unit"), FourierMap(200, random_state=3)]
    return StreamPipeline(parts, SDOH(16, random_state=0))


@pytest.mark.parametrize("d", [1, 64, 100])
def test_the_row_stands_before_its_cosines(d):
    X = unit_rows(20, d)
    part = FourierMap(150, random_state=0).fit(X)
    both = part.transform(X)
    assert both.shape == (20, d + 150)
    assert both.dtype == np.float32
    assert np.array_equal(both[:, :d], X)
    expected = plain_fourier_features(X, part.signs_, part.lengths_, part.phases_)
    np.testing.assert_allclose(both[:, d:], expected, atol=1e-6)
    alone = FourierMap(150, linear=False, random_state=0).fit(X)
    assert np.array_equal(alone.transform(X), both[:, d:])


def test_what_is_drawn():
    part = FourierMap(3000, bandwidth=0.5, random_state=0).fit(unit_rows(1, 784))
    assert part.signs_.shape == (3, 3, 1024)
    assert part.signs_.dtype == np.int8
    assert set(np.unique(part.signs_)) == {-1, 1}
    assert abs(part.signs_.mean()) < 0.05
    # of a vector of 1,024 Gaussian numbers: mean squared length 1,024, with deviation √2048
    squares = (part.lengths_.astype(float) * 0.5) ** 2
    assert squares.mean() == pytest.approx(1024, abs=4 * math.sqrt(2048 / 3000))
    assert squares.std() == pytest.approx(math.sqrt(2048), rel=0.1)
    assert part.phases_.min() >= 0
    assert part.phases_.max() <= np.float32(2 * math.pi)
    assert part.phases_.mean() == pytest.approx(math.pi, abs=0.15)


def test_nothing_is_learned_from_the_data():
    first, other = unit_rows(30, 10), np.ones((5, 10), np.float32)
    one, two = (FourierMap(64, random_state=0) for _ in range(2))
    one.partial_fit(first)
    two.partial_fit(other).partial_fit(first)
    assert all(np.array_equal(one.learned()[name], two.learned()[name]) for name in one.learned())
    assert np.array_equal(two.follow_rows(first), one.transform(first))
    different = FourierMap(64, random_state=1).fit(first)
    assert not np.array_equal(different.phases_, one.phases_)


def test_a_row_of_zeros_has_the_cosines_of_the_phases():
    part = FourierMap(100, random_state=0).fit(np.zeros((1, 7)))
    row = part.transform(np.zeros((1, 7)))[0]
    assert not row[:7].any()
    np.testing.assert_allclose(row[7:], math.sqrt(2 / 100) * np.cos(part.phases_), atol=1e-6)


def test_rows_of_a_hundred_thousand_features():
    X = unit_rows(3, 100_000)
    part = FourierMap(500, linear=False, random_state=0).fit(X)
    expected = plain_fourier_features(X, part.signs_, part.lengths_, part.phases_)
    np.testing.assert_allclose(part.transform(X), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"n_features": 0}, "n_features=0 must be a whole number from 1 up"),
        ({"bandwidth": 0}, "bandwidth=0 must be a number greater than 0"),
        ({"linear": 1}, "linear=1 must be one of True, False"),
    ],
)
def test_parameters_are_checked(wrong, reason):
    with pytest.raises(InputError, match=f"FourierMap: {reason}"):
        FourierMap(**wrong).fit(np.eye(3))


def test_a_pipeline_with_it_learns_saves_and_goes_on(tmp_path):
    whole = pipeline().partial_fit(DIGITS[:600], CLASSES[:600])
    whole.save(tmp_path / "model.streamhash")
    loaded = streamhash.load(tmp_path / "model.streamhash")
    assert loaded.parts_[1].signs_.dtype == np.int8
    for model in (whole, loaded):
        model.partial_fit(DIGITS[600:1200], CLASSES[600:1200])
    assert np.array_equal(loaded.project(DIGITS), whole.project(DIGITS))
    codes, queries = whole.transform(DIGITS[:1200]), whole.transform(DIGITS[1200:])
    found = streamhash.mean_average_precision(queries, CLASSES[1200:], codes, CLASSES[:1200])
    assert found > 0.8


def test_a_refused_first_piece_draws_nothing():
    model = pipeline()
    with pytest.raises(InputError):
        model.partial_fit(DIGITS[:50], CLASSES[:40])
    assert not model.learned()
    model.partial_fit(DIGITS[:300], CLASSES[:300])
    assert np.array_equal(
        model.project(DIGITS), pipeline().fit(DIGITS[:300], CLASSES[:300]).project(DIGITS)
    )


def test_features_do_not_depend_on_threads_or_neighbours():
    X = np.tile(DIGITS, (3, 1))  # more than one block of rows
    model = pipeline().fit(DIGITS[:400], CLASSES[:400])
    with using_threads(1):
        alone = model.project(X)
    with using_threads(2):
        assert np.array_equal(model.project(X), alone)
    scale, part = model.parts_
    rows = scale.transform(X)
    features = part.transform(rows)
    for piece in (slice(5, 6), slice(3000, 3100), slice(17, None, 13)):
        assert np.array_equal(part.transform(rows[piece]), features[piece])
