"""What many items take: opening without looking at ids, and a refresh that copies codes alone."""

import gc
import tracemalloc

import numpy as np
import pytest

from streamhash import SDOH, InputError
from streamhash.live import Collection, journal
from streamhash.live.journal import Journal

RANDOM = np.random.default_rng(0)
N = 200_000


def hasher():
    return SDOH(64, batch_size=100, memory=0, features=None, random_state=0)


def many(path, n=N):
    """A collection of many items in any order of ids, most of them not learned from."""
    X = RANDOM.standard_normal((n, 4)).astype(np.float32)
    ids = RANDOM.permutation(n)
    with Collection.create(path, hasher(), refresh="manual", durability="process") as items:
        items.add(ids[:500], X[:500], (X[:500, 0] > 0).astype(int))
    stored = Journal(str(path))
    stored.open(read_only=False)
    stored.load()[-1].release()
    model = stored.read_model(stored.serving).hasher()
    labels = (X[500:, 0] > 0).astype(int).tolist()
    codes = model.transform(X[500:])
    stored.append_items(ids[500:], X[500:], labels, [None] * (n - 500), codes)
    stored.release()
    return ids, X


def test_a_refresh_copies_codes_and_little_else(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "ENCODED_NUMBERS", 2**14)  # what encoding takes is not the matter
    ids, X = many(tmp_path / "c")
    with Collection.open(tmp_path / "c") as items:
        items.delete(ids[1000:2000])
        items.add(range(N, N + 300), X[:300], (X[:300, 0] > 0.5).astype(int))
        items.search(X[:1], 10)
        gc.collect()
        tracemalloc.start()
        assert items.refresh()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(items) == N - 700
        assert items.model_number == 2
        # Eight bytes of codes, a bit, and some MB whatever the number of items. A copy of the keys
        # would be eight more; with those of version 0.1 it was 32.
        assert peak < 12 * N + 4e6


def same(items, ids, X, gone=()):
    assert len(items) == len(ids) - len(gone)
    found = items.search(X[:50], 1)
    there = ~np.isin(ids[:50], gone)
    assert (found.ids[there, 0] == ids[:50][there]).mean() > 0.5
    assert set(found.ids.ravel().tolist()).isdisjoint(gone)


def test_ids_are_looked_at_when_the_first_is_looked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "MANY_ITEMS", 1000)
    ids, X = many(tmp_path / "c", 3000)
    with Collection.open(tmp_path / "c") as items:
        assert not items._journal.is_unique  # who stored them has not said so
    for read_only in (True, False):
        with Collection.open(tmp_path / "c", read_only=read_only) as items:
            assert items._journal.is_unique
            same(items, ids, X)
            table = items._view.now.directory._table
            assert table.size == 0
            assert items.get([int(ids[7])])[0].label == int(X[7, 0] > 0)
            assert table.size == 3000
    with Collection.open(tmp_path / "c") as items, pytest.raises(InputError, match="already"):
        items.add([int(ids[5])], X[:1])
    with Collection.open(tmp_path / "c") as items:
        items.add(ids[100:110], X[100:110], existing="replace")
        items.delete(ids[200:300])
        items.label(ids[:10], [1] * 10)
        items.add(range(3000, 3010), X[:10])
    with Collection.open(tmp_path / "c", read_only=True) as items:
        assert items._journal.is_unique  # the writer said so again
        assert len(items) == 2910
        assert items.labels(ids[:10].tolist()) == [1] * 10
        assert not {*ids[200:300].tolist()} & {*items.ids}
        assert items.ids[-10:] == [*range(3000, 3010)]


def test_what_a_crash_has_left_twice_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "MANY_ITEMS", 1000)
    ids, X = many(tmp_path / "c", 3000)
    Collection.open(tmp_path / "c").close()
    with Collection.open(tmp_path / "c") as items:
        assert items._journal.is_unique
        items._journal.takes = lambda *_: False  # not by the log
        items._journal.delete_replaced = lambda _: None  # the crash
        items.add(ids[:100], -X[:100], existing="replace")
        stored = items._journal
        items._refresher.stop = stored.release  # it closes nothing
    for read_only in (True, False):
        with Collection.open(tmp_path / "c", read_only=read_only) as items:
            assert not stored.is_unique
            assert not items._journal.is_unique
            assert len(items) == 3000
            assert items.ids[-100:] == ids[:100].tolist()
            found = items.get(ids[:100].tolist())
            np.testing.assert_array_equal([each.vector for each in found], -X[:100])
    with Collection.open(tmp_path / "c") as items:
        assert items._journal.is_unique
        assert items._journal.n_rows == 3000
