"""Probabilities of neighbours and of votes, from what labelled items found before."""

import numpy as np
import pytest
from sklearn.isotonic import isotonic_regression

from data import need_data
from streamhash import HCOH, LSH, SDOH
from streamhash.base import NotStartedError
from streamhash.errors import InputError
from streamhash.lab.datasets import load_data
from streamhash.labels import label_lists, share_label
from streamhash.live import Collection
from streamhash.live.calibration import (
    CARRIED,
    COMING,
    FEWEST,
    MODELS,
    Calibration,
    binned,
    falling,
    judge,
    tally,
)

N_BITS = 32


def world(n, seed, steepness=0.5, labels=4):
    """Queries that found 20 items each; one at distance r has their label with a known chance."""
    random = np.random.default_rng(seed)
    distances = np.sort(random.integers(0, 12, (n, 20)), axis=1)
    own = random.integers(0, labels, n)
    right = random.random(distances.shape) < chance(distances, steepness)
    other = (own[:, None] + random.integers(1, labels, distances.shape)) % labels
    found = np.where(right, own[:, None], other)
    codes = random.integers(0, 256, (n, N_BITS // 8), np.uint8)
    return judge(codes, own.tolist(), distances, found.tolist()), found, own


def chance(distances, steepness=0.5):
    return 1 / (1 + np.exp(steepness * (distances - 6.0)))


def error(said, true):
    sums = binned(np.ravel(said), np.ravel(true))
    return np.abs(sums[0] - sums[1]).sum() / sums[2].sum()


def taught(n=3000, seed=0, model=1, **kinds):
    calibration = Calibration(N_BITS)
    for i in range(0, n, 200):
        calibration.count(model, world(200, seed + i, **kinds)[0])
    return calibration


@pytest.mark.parametrize("seed", range(20))
def test_falling_values_are_those_of_scikit_learn(seed):
    random = np.random.default_rng(seed)
    values, weights = random.random(30), random.random(30) + 0.01
    wanted = isotonic_regression(values, sample_weight=weights, increasing=False)
    np.testing.assert_allclose(falling(values, weights), wanted)


def test_probabilities_are_the_chances_that_items_have_the_label():
    calibration = taught()
    judged, found, own = world(4000, 99)
    said = calibration.probabilities(1, judged.distances)
    assert error(said, found == own[:, None]) < 0.02
    np.testing.assert_allclose(said, chance(judged.distances), atol=0.15)
    assert (np.diff(said, axis=1) <= 1e-12).all()  # sure answers come first


def test_votes_are_as_probable_as_they_come_true():
    calibration = taught()
    judged, _, own = world(4000, 98)
    said = calibration.probabilities(1, judged.distances)
    ballots = [tally(found, row) for found, row in zip(judged.found, said, strict=True)]
    told = calibration.predictions(1, ballots)
    best = np.array([row[0][1] for row in told])
    true = np.array([ballot[0][0] == label for ballot, label in zip(ballots, own, strict=True)])
    assert error(best, true) < 0.03
    assert error([row[0][1] for row in ballots], true) > 0.1  # the score itself is no probability
    others = [
        (p, label == mine)
        for ballot, row, mine in zip(ballots, told, own, strict=True)
        for (label, _), (_, p) in zip(ballot[1:], row[1:], strict=True)
    ]
    assert error(*np.array(others).T) < 0.03
    told = calibration.reliability()
    assert told["neighbours"]["error"] < 0.03
    assert told["votes"]["error"] < 0.03
    assert 0.9 < told["neighbours"]["points"][-1]["observed"] <= 1


def test_where_nothing_is_near_less_is_right():
    """At the same distance, neighbours of queries without near items are told apart."""
    calibration, random = Calibration(N_BITS), np.random.default_rng(0)
    for _ in range(10):
        near = random.integers(0, 2, 200)  # whether the query has a near item
        distances = np.where(near, 1, 6)[:, None] + np.zeros((1, 10), int)
        distances[:, 1:] = 6
        right = random.random((200, 10)) < np.where(near, 0.9, 0.3)[:, None]
        found = np.where(right, 1, 2).tolist()
        codes = random.integers(0, 256, (200, 4), np.uint8)
        calibration.count(1, judge(codes, [1] * 200, distances, found))
    said = calibration.probabilities(1, np.array([[1, 6], [6, 6]]))
    np.testing.assert_allclose(said[:, 1], [0.9, 0.3], atol=0.05)


def test_the_nearest_item_need_not_have_a_label():
    """Which curve tells of a query is known by what searches see: all items."""
    calibration, random = Calibration(N_BITS), np.random.default_rng(0)
    for _ in range(10):
        near = random.integers(0, 2, 200)
        distances = np.c_[np.where(near, 1, 6), np.full((200, 5), 6), np.full(200, -1)]
        right = random.random((200, 5)) < np.where(near, 0.9, 0.3)[:, None]
        own = np.arange(200)  # far pairs have nothing in common
        found = [[None, *row, None] for row in np.where(right, own[:, None], -1).tolist()]
        codes = random.integers(0, 256, (200, 4), np.uint8)
        calibration.count(1, judge(codes, own.tolist(), distances, found))
    said = calibration.probabilities(1, np.array([[1, 6], [6, 6]]))
    np.testing.assert_allclose(said[:, 1], [0.9, 0.3], atol=0.05)
    assert calibration.reliability()["votes"]["error"] < 0.05


def test_far_pairs_are_those_of_queries_with_each_other():
    calibration = Calibration(N_BITS)
    for seed in range(20):
        calibration.count(1, world(200, seed)[0])
    far = calibration.probabilities(1, np.array([[2, 14, 16, 18]]))[0, 1:]
    np.testing.assert_allclose(far, 0.25, atol=0.08)  # four labels, at random


def test_nothing_is_said_before_enough_has_asked():
    calibration = Calibration(N_BITS)
    distances = np.array([[0, 3]])
    assert calibration.probabilities(1, distances) is None
    calibration.count(1, world(FEWEST - 1, 0)[0])
    assert calibration.probabilities(1, distances) is None
    assert np.isnan(calibration.predictions(1, [[("a", 0.5)]])[0][0][1])
    calibration.count(
        1, judge(np.zeros((9, 4), np.uint8), [1] * 9, np.full((9, 1), 3), [[None]] * 9)
    )
    assert calibration.probabilities(1, distances) is None  # they found no label
    calibration.count(1, world(2, 0)[0])
    assert calibration.probabilities(1, distances) is not None
    said = calibration.probabilities(1, np.array([[3, 2**31 - 1], [2**31 - 1, 2**31 - 1]]))
    assert np.isnan(said).tolist() == [[False, True], [True, True]]


def test_a_new_model_begins_with_the_counts_of_the_last_and_soon_has_its_own():
    calibration = taught(model=1)
    before = calibration.probabilities(1, np.array([[0, 4, 8]]))
    np.testing.assert_array_equal(calibration.probabilities(2, np.array([[0, 4, 8]])), before)
    calibration.count(2, world(200, 5, steepness=4)[0])
    assert calibration.queries_.tolist()[1] == pytest.approx(CARRIED * 0.5**0.1 + 200)
    np.testing.assert_array_equal(calibration.probabilities(1, np.array([[0, 4, 8]])), before)
    for i in range(5):
        calibration.count(2, world(200, i, steepness=4)[0])
    told = calibration.probabilities(2, np.array([[0, 4, 8]]))[0]
    assert told[1] > 0.9 > 0.2 > told[2]
    for model in range(3, 9):
        calibration.count(model, world(40, model)[0])
    assert calibration.models_.tolist() == [5, 6, 7, 8]
    assert len(calibration.pairs_) == MODELS


def test_a_model_that_comes_back_has_its_own_counts_again():
    calibration = taught(model=1)
    for i in range(10):
        calibration.count(2, world(200, i, steepness=4)[0])
    asked = np.array([[0, 4, 8]])
    calibration.serves(3, older=1)
    np.testing.assert_array_equal(
        calibration.probabilities(3, asked), calibration.probabilities(1, asked)
    )


def test_the_model_to_come_has_counts_of_its_own():
    calibration = taught(model=1)
    asked = np.array([[0, 4, 8]])
    before = calibration.probabilities(1, asked)
    calibration.begin()
    assert calibration.wants(200)
    calibration.count(COMING, world(1000, 3, steepness=4)[0])
    np.testing.assert_array_equal(calibration.probabilities(1, asked), before)
    coming = calibration.probabilities(COMING, asked)
    calibration.serves(2)
    assert calibration.models_.tolist() == [1, 2]
    np.testing.assert_array_equal(calibration.probabilities(2, asked), coming)
    calibration.begin()
    calibration.serves(3)  # nothing was asked: as after a refresh
    np.testing.assert_array_equal(calibration.probabilities(3, asked), coming)


def test_counting_writes_to_no_array_and_comes_back_from_bytes():
    calibration = taught(400)
    for name in ("queries_", "pairs_", "votes_", "reliability_"):
        getattr(calibration, name).setflags(write=False)
    calibration.count(1, world(200, 7)[0])
    back = Calibration.from_bytes(calibration.to_bytes())
    asked = np.array([[0, 4, 8]])
    np.testing.assert_array_equal(back.probabilities(1, asked), calibration.probabilities(1, asked))
    assert back.reliability() == calibration.reliability()


@pytest.mark.parametrize("n_bits", [1, 8, 64, 65, 100, 1024])
def test_codes_of_any_length_have_probabilities(n_bits):
    random = np.random.default_rng(0)
    distances = np.sort(random.integers(0, n_bits + 1, (100, 5)), axis=1)
    codes = random.integers(0, 2, (100, -(-n_bits // 8)), np.uint8)
    calibration = Calibration(n_bits)
    calibration.count(1, judge(codes, [1] * 100, distances, [[1, 2, 1, 2, None]] * 100))
    said = calibration.probabilities(1, np.arange(n_bits + 1)[None])
    assert ((said >= 0) & (said <= 1)).all()
    assert (np.diff(said) <= 1e-12).all()


def test_items_without_labels_are_passed_over_and_one_of_several_is_enough():
    judged = judge(
        np.zeros((2, 1), np.uint8),
        [("grain", "wheat"), 3],
        np.array([[1, 2, 3], [4, 5, 6]]),
        [[None, ("wheat",), ("corn", "rice")], [None, None, None]],
    )
    assert judged.distances.tolist() == [[2, 3, -1], [-1, -1, -1]]
    assert judged.right.tolist() == [[True, False, False], [False] * 3]
    assert judged.precisions.tolist() == [0.5]
    assert judged.found == [[("wheat",), ("corn", "rice")], []]


def rows(n, seed):
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(0).standard_normal((5, 16)) * 1.2
    y = random.integers(0, 5, n)
    return (centres[y] + random.standard_normal((n, 16))).astype(np.float32), y


def collection(path, hasher, *, n=3000, size=200):
    """A collection that has learned rows, piece by piece."""
    items = Collection.create(path, hasher, random_state=0)
    X, y = rows(n, 1)
    for start in range(0, n, size):
        items.add(None, X[start : start + size], y[start : start + size])
    return items


def errors(items):
    """The calibration errors of the ten nearest, and of votes, of rows that never came."""
    X, y = rows(1000, 2)
    found, predicted = items.search(X, 10), items.predict(X)
    neighbours = error(found.probabilities, np.array(found.labels) == y[:, None])
    return neighbours, error(predicted.probabilities, np.array(predicted.labels) == y)


@pytest.mark.slow
@pytest.mark.parametrize("hasher", [HCOH(32, random_state=0), LSH(32, random_state=0)])
def test_answers_are_as_probable_as_they_come_true(tmp_path, hasher):
    with collection(tmp_path / "items", hasher) as items:
        assert max(errors(items)) < 0.05
        items.refresh()
        assert max(errors(items)) < 0.05  # the new model has answered nothing yet
        before = items.search(rows(5, 3)[0], 4).probabilities
        told = items.status()["quality"]["reliability"]
    assert told["neighbours"]["error"] < 0.05
    with Collection.open(tmp_path / "items", read_only=True) as items:
        np.testing.assert_array_equal(items.search(rows(5, 3)[0], 4).probabilities, before)
        assert items.status()["quality"]["reliability"] == told


@pytest.mark.slow
def test_news_to_come_are_as_probable_as_they_come_true(tmp_path):
    need_data("reuters")
    news = load_data("reuters")
    labels = label_lists(news.y)
    hasher = SDOH(32, memory=0, features=None, random_state=0)
    with Collection.create(tmp_path / "items", hasher, random_state=0) as items:
        for start in range(0, 9000, 300):
            items.add(None, news.X[start : start + 300], labels[start : start + 300])
        found, predicted = items.search(news.X[9000:], 10), items.predict(news.X[9000:])
    later = [*zip(labels[9000:], found.labels, *predicted, strict=True)]
    right = [share_label(tuple(own), row) for own, row, _, _ in later]
    assert error(found.probabilities, np.array(right)) < 0.03
    said = [p for *_, chances in later for p in chances]
    true = [each in own for own, _, names, _ in later for each in names]
    assert error(said, true) < 0.05


@pytest.mark.slow
def test_all_in_one_call_and_learned_anew_are_known_too(tmp_path):
    hasher = HCOH(32, random_state=0)
    with collection(tmp_path / "items", hasher, size=3000) as items:
        assert max(errors(items)) < 0.1
        before = items.search(rows(5, 3)[0], 4).probabilities
        items.rebuild(LSH(32, random_state=0))
        assert max(errors(items)) < 0.15
        items.revert(1)
        np.testing.assert_array_equal(items.search(rows(5, 3)[0], 4).probabilities, before)


def test_less_probable_answers_are_left_out(tmp_path):
    with collection(tmp_path / "items", LSH(16, random_state=0), n=600) as items:
        X = rows(50, 4)[0]
        found = items.search(X, 8)
        sure = items.search(X, 8, min_probability=0.8)
        for i, row in enumerate(found.probabilities):
            n = int((row >= 0.8).sum())
            assert sure.ids[i].tolist() == found.ids[i, :n].tolist() + [-1] * (8 - n)
            assert (sure.distances[i, n:] == 2**31 - 1).all()
            assert len(sure.labels[i]) == n
        assert np.isnan(sure.probabilities).any()
        assert not np.isnan(sure.probabilities).all()


def test_probabilities_before_anything_is_known(tmp_path):
    with collection(tmp_path / "items", LSH(16, random_state=0), n=200) as items:
        X = rows(3, 4)[0]
        assert items.search(X).probabilities is None
        label, probability = items.predict(X)
        assert all(label)
        assert np.isnan(probability).all()
        message = "min_probability=0.5, and nothing is known of probabilities yet; add labelled"
        with pytest.raises(NotStartedError, match=message):
            items.search(X, min_probability=0.5)
        with pytest.raises(InputError, match="min_probability=2 must be"):
            items.search(X, min_probability=2)
        with pytest.raises(InputError, match="k=0 must be"):
            items.predict(X, k=0)


def test_several_labels_are_predicted(tmp_path):
    def lists(y):
        return [[["a", "b"], ["b"], ["c"], ["c", "d"], ["e"]][i] for i in y]

    hasher = LSH(64, random_state=0)
    with Collection.create(tmp_path / "items", hasher, labels="several") as items:
        X, y = rows(1500, 1)
        for start in range(0, 1500, 100):
            items.add(None, X[start : start + 100], lists(y[start : start + 100]))
        X, y = rows(300, 2)
        labels, probabilities = items.predict(X)
    said = [p for row in probabilities for p in row]
    true = [each in own for own, row in zip(lists(y), labels, strict=True) for each in row]
    assert error(said, true) < 0.1
    assert np.mean(true) > 0.6
    assert all(len(row) for row in labels)
    assert any(len(row) > 1 for row in labels)


def test_items_without_labels_do_not_vote(tmp_path):
    with collection(tmp_path / "items", HCOH(16, random_state=0), n=400) as items:
        X = rows(40, 4)[0]
        before = items.predict(X)
        items.add(range(10_000, 10_040), X)  # the nearest of all
        after = items.predict(X)
        assert after.labels == before.labels
        assert items.predict(X, k=1).labels == [
            next(label for label in row if label is not None) for row in items.search(X, 20).labels
        ]
