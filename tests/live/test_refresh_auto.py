"""A collection that refreshes when precision gains by it, within a share of the time."""

import itertools
import threading
import time

import numpy as np
import pytest

from streamhash import ITQ, SDOH
from streamhash.live import Collection, add_from, refresh as live_refresh

pytest.importorskip("lance", reason="Lance is not installed")

D = 16


def stream(n=1200, classes=6, seed=0):
    """Two halves, of which the second has classes of its own."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((classes, D))
    y = np.concatenate([random.integers(3, size=n // 2), random.integers(classes, size=n // 2)])
    return (1.5 * centres[y] + random.standard_normal((n, D))).astype(np.float32), y.tolist()


X, Y = stream()


def made(path, **options):
    hasher = SDOH(16, batch_size=50, n_features=64, memory=100, random_state=0)
    return Collection.create(path, hasher, random_state=0, **options)


def fill(items, start, stop, size=50):
    for at in range(start, stop, size):
        items.add(range(at, at + size), X[at : at + size], Y[at : at + size])


def precision(items):
    labels = items.search(X[1100:], 10).labels
    pairs = zip(labels, Y[1100:], strict=True)
    return np.mean([np.mean([each == wanted for each in row]) for row, wanted in pairs])


class Clock:
    """The clock of refreshes, which stands still while nothing is encoded."""

    now = 1e9

    def time(self):
        return self.now

    monotonic = time


@pytest.fixture
def clock(monkeypatch):
    """Return the clock, once it is said how many seconds a refresh seems to take."""
    clock, encode = Clock(), live_refresh._Work.encode
    monkeypatch.setattr(live_refresh, "time", clock)

    def with_cost(cost):
        def slow(*args):
            clock.now += cost
            return encode(*args)

        monkeypatch.setattr(live_refresh._Work, "encode", slow)
        return clock

    return with_cost


def test_small_collections_refresh_freely(tmp_path, clock):
    clock(0.01)
    with made(tmp_path / "items") as items, made(tmp_path / "by-bits", refresh="gain") as other:
        assert items.status()["refresh"]["policy"] == "auto=0.2"
        assert items.status()["refresh"]["reason"].startswith("too little has been learned")
        fill(items, 0, 1100)
        fill(other, 0, 1100)
        facts = items.status()["refresh"]
        assert len(items.history().refreshes) > 2
        assert facts["due"] is (facts["reason"] is None)
        assert precision(items) > precision(other) - 0.02


def test_a_stage_that_nobody_could_weigh_is_taken_where_there_is_time(tmp_path, clock):
    clock(0.01)
    with made(tmp_path / "items") as items:
        for n in (50, 100, 150):
            fill(items, n - 50, n)
            assert items.history().refreshes[-1]["learned"] == n


def test_items_without_labels_are_followed_too(tmp_path, clock):
    clock(0.01)
    hasher = ITQ(8, batch_size=50, random_state=0)
    with Collection.create(tmp_path / "items", hasher, random_state=0) as items:
        for at in range(0, 1000, 50):
            items.add(range(at, at + 50), X[at : at + 50])
        learned = [event["learned"] for event in items.history().refreshes]
        assert learned[0] == 50
        assert 5 < len(learned) < 20  # a tenth more each time, at least
        assert all(b >= 1.1 * a for a, b in itertools.pairwise(learned))


def test_a_refresh_waits_for_its_share_of_the_time_and_says_so(tmp_path, clock):
    passing = clock(20.0)
    with made(tmp_path / "items") as items:
        fill(items, 0, 1100)
        facts = items.status()["refresh"]
        assert len(items.history().refreshes) == 1
        assert facts["precision_gain"] > facts["precision_error"]
        assert facts["reason"] == (
            "it takes 20.0 s, and refreshes may take 20% of the time: in 75 s"
        )
        before = precision(items)
        passing.now += 1000  # by now it is due, and nothing has come to tell
        items.catch_up()
        assert precision(items) > before + 0.02
        assert items.status()["refresh"]["precision_gain"] is None
        items.catch_up()
        assert len(items.history().refreshes) == 2


def test_catching_up_takes_the_last_stage_that_nobody_could_weigh(tmp_path, clock):
    clock(20.0)
    with made(tmp_path / "items") as items:
        fill(items, 0, 100)
        assert items.history().refreshes[-1]["learned"] == 50
        assert items.status()["refresh"]["precision_gain"] is None
        items.catch_up()
        assert items.history().refreshes[-1]["learned"] == 100
        items.catch_up()
        assert len(items.history().refreshes) == 2


def test_the_end_of_a_file_is_caught_up_with(tmp_path, clock):
    clock(20.0)
    with made(tmp_path / "items") as items:
        add_from(items, (X[:1100], np.array(Y[:1100])), batch_size=50)
        assert len(items.history().refreshes) == 2


def test_the_time_that_refreshes_took_is_known_when_opened_again(tmp_path, clock):
    passing = clock(20.0)
    with made(tmp_path / "items") as items:
        fill(items, 0, 400)
    with Collection.open(tmp_path / "items") as items:
        fill(items, 400, 800)
        assert len(items.history().refreshes) == 1
        passing.now += 200
        fill(items, 800, 850)
        assert len(items.history().refreshes) == 2


def test_what_a_refresh_costs_is_encoding_and_not_the_making_of_hash_functions(
    tmp_path, clock, monkeypatch
):
    passing, settle = clock(0.5), SDOH.settle

    def slow(self):
        passing.now += 0 if getattr(self, "settled_", True) else 100
        return settle(self)

    monkeypatch.setattr(SDOH, "settle", slow)
    with made(tmp_path / "items") as items:
        fill(items, 0, 1100)
        done = items.history().refreshes
        assert {event["seconds"] for event in done} == {0.5}
        assert len(done) > 2
        assert items.status()["refresh"]["cost_seconds"] == pytest.approx(0.5, abs=0.01)


def test_the_model_that_serves_gains_nothing_and_is_not_asked(tmp_path):
    with made(tmp_path / "items", refresh="manual") as items:
        fill(items, 0, 600)
        items.refresh()
        fill(items, 600, 650)  # asks the model that serves
        assert items.status()["refresh"]["precision_gain"] is None
        fill(items, 650, 700)
        assert items.status()["refresh"]["precision_gain"] not in (None, 0.0)


def test_in_the_background_it_comes_by_itself(tmp_path, clock, monkeypatch):
    passing, timers = clock(20.0), []
    plain = threading.Timer
    monkeypatch.setattr(
        threading, "Timer", lambda wait, call: timers.append(wait) or plain(0.01, pass_and(call))
    )

    def pass_and(call):
        def later():
            passing.now += timers[-1]
            call()

        return later

    with made(tmp_path / "items", background=True) as items:
        fill(items, 0, 1100)
        end = time.monotonic() + 30
        while len(items.history().refreshes) == 1 and time.monotonic() < end:
            time.sleep(0.01)
        assert len(items.history().refreshes) > 1
        assert 0 < timers[0] <= 100


def test_gains_are_stored(tmp_path):
    with made(tmp_path / "items", refresh="manual") as items:
        fill(items, 0, 600)
        items.refresh()
        fill(items, 600, 900)
        gain = items.status()["refresh"]["precision_gain"]
        assert gain is not None
    with Collection.open(tmp_path / "items") as items:
        assert items.status()["refresh"]["precision_gain"] == gain
