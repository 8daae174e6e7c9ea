"""What a live collection learns, when that makes it refresh, and what it remembers of it."""

import numpy as np
import pytest

from streamhash import SDOH
from streamhash.kernels.learning.information import code_information
from streamhash.live import Collection
from streamhash.live.learner import REMEMBERED, Learner, Monitor


def piece(n, classes, seed):
    """Rows around the centres of some classes."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(0).standard_normal((10, 16)) * 2
    y = random.choice(classes, n)
    return (centres[y] + random.standard_normal((n, 16))).astype(np.float32), y.tolist()


def test_queries_of_items_that_ask_themselves_tell_as_much():
    random = np.random.default_rng(0)
    codes = random.integers(0, 256, (50, 3), np.uint8)
    labels = random.integers(0, 4, 50)
    same = labels[:, None] == labels
    alone = code_information(codes, same, 20)
    assert code_information(codes, same, 20, queries=codes) == pytest.approx(alone, abs=1e-12)
    half = [
        code_information(codes, same[p], 20, queries=codes[p])
        for p in ([*range(25)], [*range(25, 50)])
    ]
    assert np.mean(half) == pytest.approx(alone, abs=1e-12)


def test_the_gain_is_measured_before_the_rows_are_learned():
    learner = Learner(SDOH(16, batch_size=100, random_state=0), random_state=0)
    learner.start()
    learner.learn(*piece(100, [0, 1], 1))
    serving = learner.copy().hasher_
    learner.learn(*piece(100, [0, 1, 2, 3], 2), serving=serving, n_items=200)
    assert (learner.gain_, learner.missed_) == (0.0, 0.0)  # both models are still the same
    learner.learn(*piece(100, [0, 1, 2, 3], 3), serving=serving, n_items=300)
    assert learner.gain_ > 0.05
    assert learner.missed_ == pytest.approx(100 * learner.gain_)


def test_items_without_labels_count_for_what_was_missed():
    learner = Learner(SDOH(16, batch_size=100, random_state=0), random_state=0)
    learner.start()
    learner.learn(*piece(100, [0, 1], 1), n_items=100)
    serving = learner.copy().hasher_
    learner.learn(*piece(100, [2, 3], 2), serving=serving, n_items=1100)
    learner.learn(*piece(100, [2, 3], 3), serving=serving, n_items=2100)
    assert learner.missed_ == pytest.approx(1000 * learner.gain_)


@pytest.mark.slow
def test_a_collection_refreshes_after_a_change_and_hardly_without(tmp_path):
    hasher = SDOH(16, batch_size=100, n_features=64, memory=200, random_state=0)
    with Collection.create(tmp_path / "items", hasher, refresh="gain", random_state=0) as items:
        for seed in range(20):
            items.add(None, *piece(100, [0, 1, 2], seed))
        before = items.history().refreshes
        for seed in range(20, 30):
            items.add(None, *piece(100, [3, 4, 5], seed))
        refreshes = items.history().refreshes
        status = items.status()["refresh"]
    assert len(before) <= 8
    assert sum(event["items"] for event in refreshes) < 100 * 30 * 31 / 2 / 5  # of every batch
    assert any(2000 < event["items"] <= 2500 for event in refreshes)
    assert status["worth"] == pytest.approx(status["missed"] / (0.001 * 3000))
    assert status["due"] is False


def test_the_state_of_the_trigger_is_durable(tmp_path):
    hasher = SDOH(16, batch_size=100, n_features=64, memory=200, random_state=0)
    path = tmp_path / "items"
    with Collection.create(path, hasher, refresh="manual") as items:
        for seed, classes in enumerate([[0, 1], [0, 1, 2, 3], [0, 1, 2, 3]]):
            items.add(None, *piece(100, classes, seed))
        before = items.status()["refresh"]
    assert before["missed"] > 0
    with Collection.open(path) as items:
        after = items.status()["refresh"]
        assert (after["gain"], after["missed"]) == (before["gain"], before["missed"])
        items.refresh()
        assert items.status()["refresh"]["missed"] == 0
        assert len(items.status()["codes"]["flips"]) == 16


def test_refreshes_are_remembered_as_they_were():
    monitor = Monitor()
    event = {"time": 1.5, "model": 1, "learned": 2, "labelled": 3, "items": 4}
    event |= {"seconds": 0.5, "gain": None}
    monitor.refreshed(event, None)
    assert monitor.last_refresh == {**event, "flips": None, "reverted_to": None}
    monitor.refreshed({**event, "model": 2, "gain": 0.25}, np.array([0.5, 0.0]))
    second = {"model": 2, "gain": 0.25, "flips": 0.25, "reverted_to": None}
    assert monitor.last_refresh == {**event, **second}
    assert [each["model"] for each in monitor.refreshes] == [1, 2]
    for _ in range(3):
        monitor.refreshes_ = np.repeat(monitor.refreshes_, 1000, axis=0)[:REMEMBERED]
    monitor.refreshed({**event, "model": 9}, None)
    assert len(monitor.refreshes) == REMEMBERED
    assert monitor.last_refresh["model"] == 9


@pytest.mark.parametrize("seed", range(5))
def test_drift_is_a_fall_of_the_answers_and_nothing_else(seed):
    random, monitor = np.random.default_rng(seed), Monitor()
    monitor.answers(random.random(5000) ** 0.3, time=0.0, labelled=5000)  # mean 0.77
    monitor.answers(random.random(3000) ** 0.1, time=1.0, labelled=8000)  # better: 0.91
    assert monitor.drifts_ == []
    monitor.answers(random.random(1000) ** 2, time=2.0, labelled=9000)  # worse: 0.33
    assert len(monitor.drifts_) == 1
    assert 8000 < monitor.drifts_[0]["labelled"] < 8150
    assert monitor.drifts_[0]["time"] == 2.0


def test_the_first_item_after_all_are_deleted_is_learned_and_nothing_is_judged(tmp_path):
    X, y = piece(40, [0, 1], 1)
    hasher = SDOH(16, batch_size=20, n_features=32, memory=40, random_state=0)
    with Collection.create(tmp_path / "items", hasher, forget_deleted=False) as items:
        items.add(range(40), X, y)
        n = items.status()["quality"]["answers"]
        items.delete(range(40))
        items.add([0], X[:1], y[:1])
        assert items.status()["quality"]["answers"] == n
        items.add([1], X[1:2], y[1:2])
        assert items.status()["quality"]["answers"] == n + 1
