"""Feature maps learned online: centring and scaling, anchors, the pipeline."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from quick import plain_sdoh
from streamhash import LSH, OKH, AnchorMap, CenterScale, InputError, StreamPipeline
from streamhash.base import StreamPart
from streamhash.features import RadialMap, unit_length


def material(n=300, d=8):
    random = np.random.default_rng(0)
    return random.standard_normal((n, d)).astype(np.float32), random.integers(3, size=n)


X, Y = material()
# Squares of such rows are zero or infinite in float32.
EXTREMES = [2.0**power for power in (-110, -75, -60, 60, 75, 120)]


@pytest.mark.parametrize("factor", EXTREMES)
def test_the_shortest_and_longest_rows_are_brought_to_unit_length(factor):
    rows = (X * factor).astype(np.float32)
    assert np.array_equal(unit_length(rows), unit_length(X))
    mixed = np.concatenate([X, rows, np.zeros((1, 8), np.float32)])
    expected = np.concatenate([unit_length(X), unit_length(X), np.zeros((1, 8), np.float32)])
    assert np.array_equal(unit_length(mixed), expected)


@pytest.mark.parametrize("scale", ["rms", "unit"])
@pytest.mark.parametrize("factor", EXTREMES)
def test_the_smallest_and_largest_features_are_centred_and_scaled(factor, scale):
    rows = (X * factor).astype(np.float32)
    usual, extreme = (CenterScale(scale=scale).partial_fit(R[:200]) for R in (X, rows))
    assert np.array_equal(extreme.transform(rows), usual.transform(X))
    usual.partial_fit(X[200:])
    extreme.partial_fit(rows[200:])
    assert np.array_equal(extreme.transform(rows), usual.transform(X))
    assert np.array_equal(extreme.follow_rows(rows), usual.follow_rows(X))


def test_features_of_the_smallest_numbers_there_are():
    tiny = (X * 2.0**-140).astype(np.float32)  # only a few digits are left of them
    lengths = np.linalg.norm(unit_length(tiny[np.abs(tiny).max(axis=1) > 0]), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-6)


def test_a_part_of_ones_own_may_follow_rows():
    class Largest(StreamPart):
        def learn_rows(self, X):
            self.largest_ = np.maximum(getattr(self, "largest_", 0), abs(X).max())

        def map_rows(self, X):
            return X / self.largest_

    running = np.maximum.accumulate(abs(X).max(axis=1))[:, None]
    assert np.array_equal(Largest().follow_rows(X), X / running)
    model = StreamPipeline([Largest()], plain_sdoh(8, random_state=0)).fit(X, Y)
    assert model.parts_[0].largest_ == abs(X).max()


def test_methods_see_prepared_rows_and_their_parts_can_be_used_alone():
    model = OKH(8, n_anchors=20, random_state=0).fit(X, Y)
    rows = X
    for part in model.parts_:
        rows = part.transform(rows)
    np.testing.assert_allclose(rows @ model.W_, model.project(X), atol=1e-6)
    assert model.W_.shape == (21, 8)


def test_a_pipeline_is_its_parts_in_a_row():
    parts = [CenterScale(scale="unit"), AnchorMap(20)]
    model = StreamPipeline(parts, plain_sdoh(8, batch_size=100, random_state=0)).fit(X, Y)
    assert not hasattr(parts[0], "mean_")
    scale, anchors, hasher = (clone(part) for part in (*parts, model.hasher))
    for start in range(0, 300, 100):
        rows = slice(start, start + 100)
        mapped = scale.partial_fit(X[rows]).transform(X[rows])
        mapped = anchors.partial_fit(mapped).transform(mapped)
        hasher.partial_fit(mapped, Y[rows])
    expected = hasher.transform(anchors.transform(scale.transform(X)))
    assert np.array_equal(model.transform(X), expected)


def test_a_pipeline_refuses_what_cannot_stream():
    with pytest.raises(InputError, match="does not learn from a stream; use CenterScale"):
        StreamPipeline([StandardScaler()], LSH(8)).fit(X)
    with pytest.raises(InputError, match="is not a hasher; pass one such as SDOH"):
        StreamPipeline([CenterScale()], StandardScaler()).fit(X)


def test_centre_and_scale_are_those_of_all_rows_so_far():
    part = CenterScale()
    for start in range(0, 300, 70):
        part.partial_fit(X[start : start + 70])
    rows = X.astype(np.float64)
    np.testing.assert_allclose(part.mean_, rows.mean(axis=0), atol=1e-12)
    spread = np.square(rows - rows.mean(axis=0)).sum(axis=1).mean()
    assert part.spread_ == pytest.approx(spread)
    np.testing.assert_allclose(
        part.transform(X), (rows - rows.mean(axis=0)) / spread**0.5, atol=1e-6
    )


def test_unit_length_leaves_zero_rows():
    rows = np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)
    part = CenterScale(center=False, scale="unit").fit(rows)
    assert part.transform(rows).tolist() == [[np.float32(0.6), np.float32(0.8)], [0, 0]]


def test_anchors_are_the_first_rows_and_do_not_move():
    part = AnchorMap(100).partial_fit(X[:60])
    assert not part.transform(X[:5])[:, 60:].any()
    part.partial_fit(X[60:200]).partial_fit(X[200:])
    assert np.array_equal(part.anchors_, X[:100])
    directions = X - X[:100].mean(axis=0)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    distances = ((directions[:, None] - directions[None, :100]) ** 2).sum(axis=2)
    np.testing.assert_allclose(part.transform(X), np.exp(-distances / part.bandwidth), atol=1e-5)


@pytest.mark.parametrize("scale", ["rms", "unit", None])
@pytest.mark.parametrize("center", [True, False])
def test_following_rows_is_learning_and_mapping_them_one_by_one(center, scale):
    X = (np.random.default_rng(0).standard_normal((40, 6)) + 3).astype(np.float32)
    slow, quick = (CenterScale(center=center, scale=scale) for _ in range(2))
    expected = []
    for i in range(len(X)):
        slow.learn_rows(X[i : i + 1])
        expected.append(slow.map_rows(X[i : i + 1])[0])
    got = np.concatenate([quick.follow_rows(X[start : start + 15]) for start in (0, 15, 30)])
    np.testing.assert_allclose(got[1:], expected[1:], atol=2e-6)
    np.testing.assert_allclose(quick.mean_, slow.mean_, atol=1e-12)
    assert quick.n_rows_ == 40


def squared_distances(A, B):
    return ((A[:, None].astype(float) - B[None]) ** 2).sum(axis=2)


def test_the_width_follows_the_anchors_distances():
    X = (np.random.default_rng(0).standard_normal((60, 5)) + 20).astype(np.float32)
    part = RadialMap(30, divisor=6)
    part.learn_rows(X)
    D = squared_distances(X[:30], X[:30])
    eta = D.sum() / (30 * 29) / 6
    expected = np.exp(-squared_distances(X, X[:30]) / (2 * eta))
    np.testing.assert_allclose(part.map_rows(X), expected, atol=1e-5)
    before = part.anchors_
    part.learn_rows(X[30:])
    assert part.anchors_ is before


@pytest.mark.parametrize("size", [1, 7, 30, 60])
def test_each_row_is_mapped_by_the_anchors_that_have_come(size):
    X = np.random.default_rng(1).standard_normal((60, 5)).astype(np.float32)
    part = RadialMap(20, divisor=3)
    got = np.concatenate([part.follow_rows(X[i : i + size]) for i in range(0, 60, size)])
    for i in (0, 1, 5, 19, 20, 59):
        there = X[: min(i + 1, 20)]
        n = len(there)
        eta = squared_distances(there, there).sum() / max(n * (n - 1), 1) / 3
        expected = np.zeros(20)
        expected[:n] = np.exp(-squared_distances(X[i : i + 1], there)[0] / (2 * (eta or 1)))
        np.testing.assert_allclose(got[i], expected, atol=1e-5)


def test_equal_anchors_have_no_width_and_all_rows_look_alike():
    part = RadialMap(4)
    part.learn_rows(np.full((4, 3), 2.5, np.float32))
    assert part.map_rows(np.ones((2, 3), np.float32)).tolist() == [[1.0] * 4] * 2
