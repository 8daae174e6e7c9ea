"""RandomFeatures: what they hold, how they are drawn, and their life inside a pipeline."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_digits

import streamhash
from quick import plain_sdoh
from streamhash import CenterScale, InputError, RandomFeatures, StreamPipeline
from streamhash.kernels.learning.random_projections import (
    plain_absolute_features,
    plain_fourier_features,
    plain_linear_features,
)
from streamhash.threads import using_threads

DIGITS, CLASSES = load_digits(return_X_y=True)
each_kind = pytest.mark.parametrize("kind", ["absolute", "fourier"])


def unit_rows(n, d):
    X = np.random.default_rng(0).standard_normal((n, d))
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)


def pipeline(kind):
    parts = [CenterScale(scale="unit"), RandomFeatures(264, kind=kind)]
    return StreamPipeline(parts, plain_sdoh(16, random_state=0))


def nonlinear(part, X, signs, m):
    """The plain twins' features."""
    if part.kind == "absolute":
        return plain_absolute_features(X, signs, m)
    return plain_fourier_features(X, signs, part.lengths_, part.phases_)


@each_kind
@pytest.mark.parametrize("d", [1, 16, 21])
def test_a_short_row_stands_before_its_nonlinear_features(kind, d):
    X = unit_rows(20, d)
    part = RandomFeatures(300, kind=kind).fit(X)
    features = part.transform(X)
    assert features.shape == (20, 300)
    assert features.dtype == np.float32
    assert np.array_equal(features[:, :d], X)
    expected = nonlinear(part, X, part.signs_, 300 - d)
    np.testing.assert_allclose(features[:, d:], expected, atol=1e-6)


@each_kind
@pytest.mark.parametrize("d", [22, 300, 100_000])
def test_of_a_long_row_a_fourteenth_are_projections(kind, d):
    X = unit_rows(10, d)
    part = RandomFeatures(300, kind=kind).fit(X)
    features = part.transform(X)
    assert features.shape == (10, 300)
    assert part.n_linear_ == 300 // 14 == 21
    linear = plain_linear_features(X, part.signs_[:1], 21)
    np.testing.assert_allclose(features[:, :21], linear, atol=1e-6)
    expected = nonlinear(part, X, part.signs_[1:], 279)
    np.testing.assert_allclose(features[:, 21:], expected, atol=1e-6)


@each_kind
@pytest.mark.parametrize("d", [5, 400])
def test_without_linear_ones_all_are_nonlinear(kind, d):
    X = unit_rows(10, d)
    part = RandomFeatures(100, kind=kind, linear=False).fit(X)
    expected = nonlinear(part, X, part.signs_, 100)
    np.testing.assert_allclose(part.transform(X), expected, atol=1e-6)


@each_kind
def test_two_features_are_the_fewest_and_none_of_them_linear(kind):
    X = unit_rows(10, 3)
    part = RandomFeatures(2, kind=kind).fit(X)
    np.testing.assert_allclose(part.transform(X), nonlinear(part, X, part.signs_, 2), atol=1e-6)


@pytest.mark.parametrize("d", [20, 784, 5000])
def test_lengths_are_kept_by_both_halves(d):
    X = 3 * unit_rows(50, d)
    part = RandomFeatures().fit(X)
    squares = part.transform(X).astype(float) ** 2
    n_linear = min(d, 256)
    assert part.n_linear_ == n_linear
    assert squares[:, :n_linear].sum(axis=1).mean() == pytest.approx(9, rel=0.02)
    assert squares[:, n_linear:].sum(axis=1).mean() == pytest.approx(9, rel=0.02)


@pytest.mark.parametrize("d", [20, 500])
def test_absolute_features_grow_exactly_with_the_row(d):
    X = unit_rows(20, d)
    part = RandomFeatures(600).fit(X)
    features = part.transform(X)
    for power in (-30, 1, 40):
        assert np.array_equal(part.transform(np.ldexp(X, power)), np.ldexp(features, power))


def test_what_is_drawn():
    absolute = RandomFeatures().fit(unit_rows(1, 784))
    assert set(absolute.learned()) == {"n_features_in_", "n_linear_", "signs_"}
    assert absolute.signs_.shape == (5, 3, 1024)  # 256 linear directions, 3,328 others
    assert RandomFeatures().fit(unit_rows(1, 4096)).signs_.shape == (2, 3, 4096)
    part = RandomFeatures(kind="fourier", linear=False, bandwidth=0.5).fit(unit_rows(1, 784))
    assert part.signs_.shape == (4, 3, 1024)
    assert part.signs_.dtype == np.int8
    assert set(np.unique(part.signs_)) == {-1, 1}
    assert abs(part.signs_.mean()) < 0.05
    # of a vector of 1,024 Gaussian numbers: mean squared length 1,024, with deviation √2048
    squares = (part.lengths_.astype(float) * 0.5) ** 2
    assert squares.mean() == pytest.approx(1024, abs=4 * math.sqrt(2048 / 3584))
    assert squares.std() == pytest.approx(math.sqrt(2048), rel=0.1)
    assert part.phases_.min() >= 0
    assert part.phases_.max() <= np.float32(2 * math.pi)
    assert part.phases_.mean() == pytest.approx(math.pi, abs=0.15)


@each_kind
def test_nothing_is_learned_from_the_data(kind):
    first, other = unit_rows(30, 10), np.ones((5, 10), np.float32)
    one, two = (RandomFeatures(64, kind=kind) for _ in range(2))
    one.partial_fit(first)
    two.partial_fit(other).partial_fit(first)
    assert all(np.array_equal(one.learned()[name], two.learned()[name]) for name in one.learned())
    assert np.array_equal(two.follow_rows(first), one.transform(first))
    different = RandomFeatures(64, kind=kind, random_state=1).fit(first)
    assert not np.array_equal(different.signs_, one.signs_)


def test_a_row_of_zeros_has_the_cosines_of_the_phases():
    part = RandomFeatures(100, kind="fourier").fit(np.zeros((1, 7)))
    row = part.transform(np.zeros((1, 7)))[0]
    assert not row[:7].any()
    np.testing.assert_allclose(row[7:], math.sqrt(2 / 93) * np.cos(part.phases_), atol=1e-6)
    assert not RandomFeatures(100).fit_transform(np.zeros((1, 7))).any()


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"n_features": 1}, "n_features=1 must be a whole number from 2 to 1048576"),
        ({"kind": "cosine"}, "kind='cosine' must be one of 'absolute', 'fourier'"),
        ({"bandwidth": 0}, "bandwidth=0 must be a number greater than 0"),
        ({"linear": 1}, "linear=1 must be one of True, False"),
    ],
)
def test_parameters_are_checked(wrong, reason):
    with pytest.raises(InputError, match=f"RandomFeatures: {reason}"):
        RandomFeatures(**wrong).fit(np.eye(3))


@each_kind
def test_a_pipeline_with_it_learns_saves_and_goes_on(kind, tmp_path):
    whole = pipeline(kind).partial_fit(DIGITS[:600], CLASSES[:600])
    whole.save(tmp_path / "model.streamhash")
    loaded = streamhash.load(tmp_path / "model.streamhash")
    assert loaded.parts_[1].signs_.dtype == np.int8
    for model in (whole, loaded):
        model.partial_fit(DIGITS[600:1200], CLASSES[600:1200])
    assert np.array_equal(loaded.project(DIGITS), whole.project(DIGITS))
    codes, queries = whole.transform(DIGITS[:1200]), whole.transform(DIGITS[1200:])
    found = streamhash.mean_average_precision(queries, CLASSES[1200:], codes, CLASSES[:1200])
    assert found > 0.8


@each_kind
def test_a_refused_first_piece_draws_nothing(kind):
    model = pipeline(kind)
    with pytest.raises(InputError):
        model.partial_fit(DIGITS[:50], CLASSES[:40])
    assert not model.learned()
    model.partial_fit(DIGITS[:300], CLASSES[:300])
    assert np.array_equal(
        model.project(DIGITS), pipeline(kind).fit(DIGITS[:300], CLASSES[:300]).project(DIGITS)
    )


@each_kind
def test_features_do_not_depend_on_threads_or_neighbours(kind):
    X = np.tile(DIGITS, (3, 1))  # more than one block of rows
    model = pipeline(kind).fit(DIGITS[:400], CLASSES[:400])
    with using_threads(1):
        alone = model.project(X)
    with using_threads(2):
        assert np.array_equal(model.project(X), alone)
    scale, part = model.parts_
    rows = scale.transform(X)
    features = part.transform(rows)
    for piece in (slice(5, 6), slice(3000, 3100), slice(17, None, 13)):
        assert np.array_equal(part.transform(rows[piece]), features[piece])
