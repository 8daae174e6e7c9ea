"""A collection that refreshes when precision gains by it, within a share of the time."""

import time

import numpy as np
import pytest

from streamhash import SDOH
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


@pytest.fixture
def slow(monkeypatch):
    """Refreshes that seem to take ten seconds."""
    plain = live_refresh.Refresher._prospect

    def prospect(self):
        return plain(self)._replace(seconds=10.0)

    monkeypatch.setattr(live_refresh.Refresher, "_prospect", prospect)


def test_small_collections_refresh_freely(tmp_path, monkeypatch):
    plain = live_refresh.Refresher._prospect
    monkeypatch.setattr(  # whatever else the machine does
        live_refresh.Refresher, "_prospect", lambda self: plain(self)._replace(seconds=0.5)
    )
    with made(tmp_path / "items") as items, made(tmp_path / "by-bits", refresh="gain") as other:
        assert items.status()["refresh"]["policy"] == "auto=0.2"
        assert items.status()["refresh"]["reason"].startswith("too little has been learned")
        fill(items, 0, 1100)
        fill(other, 0, 1100)
        facts = items.status()["refresh"]
        assert len(items.history().refreshes) > 2
        assert facts["due"] is (facts["reason"] is None)
        assert precision(items) > precision(other) - 0.02


@pytest.mark.usefixtures("slow")
def test_a_refresh_waits_for_its_share_of_the_time_and_says_so(tmp_path):
    with made(tmp_path / "items") as items:
        fill(items, 0, 1100)
        facts = items.status()["refresh"]
        assert len(items.history().refreshes) == 1
        assert facts["precision_gain"] > facts["precision_error"]
        assert "refreshes may take 20% of the time" in facts["reason"]
        before = precision(items)
        items.catch_up()
        assert precision(items) > before + 0.02
        assert items.status()["refresh"]["precision_gain"] is None
        items.catch_up()
        assert len(items.history().refreshes) == 2


@pytest.mark.usefixtures("slow")
def test_the_end_of_a_file_is_caught_up_with(tmp_path):
    with made(tmp_path / "items") as items:
        add_from(items, (X[:1100], np.array(Y[:1100])), batch_size=50)
        assert len(items.history().refreshes) == 2


def test_in_the_background_it_comes_by_itself(tmp_path, monkeypatch):
    plain = live_refresh.Refresher._prospect

    def prospect(self):
        return plain(self)._replace(seconds=1.1)

    monkeypatch.setattr(live_refresh.Refresher, "_prospect", prospect)
    with made(tmp_path / "items", background=True) as items:
        fill(items, 0, 1100)
        done = len(items.history().refreshes)
        if items.status()["refresh"]["reason"] is None or done == 1:
            end = time.monotonic() + 30
            while len(items.history().refreshes) == done and time.monotonic() < end:
                time.sleep(0.05)
            assert len(items.history().refreshes) > done


def test_gains_are_stored(tmp_path):
    with made(tmp_path / "items", refresh="manual") as items:
        fill(items, 0, 600)
        items.refresh()
        fill(items, 600, 900)
        gain = items.status()["refresh"]["precision_gain"]
        assert gain is not None
    with Collection.open(tmp_path / "items") as items:
        assert items.status()["refresh"]["precision_gain"] == gain
